// SPDX-License-Identifier: Apache-2.0
#include "fedgen/base/hash.h"

#include <openssl/evp.h>

#include <array>

#include "fedgen/base/check.h"

namespace fedgen {
namespace {

using Digest = std::array<unsigned char, 32>;

// Looked up once: libcrypto would look it up for each digest, which takes longer than a short one.
const EVP_MD* Algorithm() {
  static const EVP_MD* const found = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  FEDGEN_CHECK(found != nullptr, "libcrypto has no SHA-256");
  return found;
}

Digest Sha256(std::string_view bytes) {
  Digest digest{};
  unsigned int size = 0;
  const int done =
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, Algorithm(), nullptr);
  FEDGEN_CHECK(done == 1 && size == digest.size(), "libcrypto: {} and {} bytes", done, size);
  return digest;
}

std::string HexOf(const Digest& digest) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * digest.size());
  for (const unsigned char byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

}  // namespace

std::string Sha256Hex(std::string_view bytes) { return HexOf(Sha256(bytes)); }

void RunningSha256::Free::operator()(void* context) const {
  EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(context));
}

RunningSha256::RunningSha256() : context_(EVP_MD_CTX_new()) {
  auto* const context = static_cast<EVP_MD_CTX*>(context_.get());
  FEDGEN_CHECK(context != nullptr && EVP_DigestInit_ex(context, Algorithm(), nullptr) == 1,
               "libcrypto has no SHA-256");
}

void RunningSha256::Add(std::string_view bytes) {
  const int done =
      EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(context_.get()), bytes.data(), bytes.size());
  FEDGEN_CHECK(done == 1, "libcrypto: {} bytes", bytes.size());
}

std::string RunningSha256::Hex() const {
  // Finishing ends a context, so a copy is finished.
  const RunningSha256 copy;
  auto* const context = static_cast<EVP_MD_CTX*>(copy.context_.get());
  Digest digest{};
  unsigned int size = 0;
  const bool done =
      EVP_MD_CTX_copy_ex(context, static_cast<const EVP_MD_CTX*>(context_.get())) == 1 &&
      EVP_DigestFinal_ex(context, digest.data(), &size) == 1;
  FEDGEN_CHECK(done && size == digest.size(), "libcrypto: {} bytes", size);
  return HexOf(digest);
}

std::uint64_t Sha256Word(std::string_view bytes) {
  const Digest digest = Sha256(bytes);
  std::uint64_t word = 0;
  for (std::size_t index = 0; index < sizeof word; ++index) word = word << 8 | digest[index];
  return word;
}

}  // namespace fedgen
