// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace fedgen {

// SHA-256 (FIPS 180-4): the name of a sequence of bytes that nobody can give to other bytes. What a
// certificate speaks about is named this way. For fingerprints that only guard against accidents,
// the sums of fedgen/rollout/evaluate.h and CRC-32 are cheaper.

/// The digest as 64 lower-case hexadecimal digits.
std::string Sha256Hex(std::string_view bytes);

/// The digest of bytes that come piece by piece.
class RunningSha256 {
 public:
  RunningSha256();
  void Add(std::string_view bytes);
  /// Sha256Hex of all that was added so far. More may be added afterwards.
  std::string Hex() const;

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;  // libcrypto's EVP_MD_CTX
};

/// The first eight bytes of the digest, big endian: the number its first 16 digits spell.
std::uint64_t Sha256Word(std::string_view bytes);

}  // namespace fedgen
