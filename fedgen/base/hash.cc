// SPDX-License-Identifier: Apache-2.0
#include "fedgen/base/hash.h"

#include <openssl/evp.h>

#include <array>

#include "fedgen/base/check.h"

namespace fedgen {
namespace {

using Digest = std::array<unsigned char, 32>;

Digest Sha256(std::string_view bytes) {
  Digest digest{};
  unsigned int size = 0;
  const int done =
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  FEDGEN_CHECK(done == 1 && size == digest.size(), "libcrypto: {} and {} bytes", done, size);
  return digest;
}

}  // namespace

std::string Sha256Hex(std::string_view bytes) {
  std::string hex;
  for (const unsigned char byte : Sha256(bytes)) hex += fmt::format("{:02x}", byte);
  return hex;
}

std::uint64_t Sha256Word(std::string_view bytes) {
  const Digest digest = Sha256(bytes);
  std::uint64_t word = 0;
  for (std::size_t index = 0; index < sizeof word; ++index) word = word << 8 | digest[index];
  return word;
}

}  // namespace fedgen
