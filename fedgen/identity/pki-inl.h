// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>

#include "fedgen/identity/pki.h"

// libcrypto's objects with owners, and read from PEM: what pki.cc, which reads and checks, and
// pki_make.cc share. No header of ours includes this.

namespace fedgen::pki {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using BioPtr = std::unique_ptr<BIO, Freed<BIO_free>>;
using BigPtr = std::unique_ptr<BIGNUM, Freed<BN_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, Freed<X509_free>>;
using RequestPtr = std::unique_ptr<X509_REQ, Freed<X509_REQ_free>>;
using ListPtr = std::unique_ptr<X509_CRL, Freed<X509_CRL_free>>;
using NamePtr = std::unique_ptr<X509_NAME, Freed<X509_NAME_free>>;
using IntegerPtr = std::unique_ptr<ASN1_INTEGER, Freed<ASN1_INTEGER_free>>;
using TimePtr = std::unique_ptr<ASN1_TIME, Freed<ASN1_TIME_free>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;
using ObjectPtr = std::unique_ptr<ASN1_OBJECT, Freed<ASN1_OBJECT_free>>;
using Utf8Ptr = std::unique_ptr<ASN1_UTF8STRING, Freed<ASN1_UTF8STRING_free>>;
using OctetsPtr = std::unique_ptr<ASN1_OCTET_STRING, Freed<ASN1_OCTET_STRING_free>>;
using HostsPtr = std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>>;
using StorePtr = std::unique_ptr<X509_STORE, Freed<X509_STORE_free>>;
using StoreContextPtr = std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>>;
struct FreeExtensions {
  void operator()(STACK_OF(X509_EXTENSION) * all) const {
    sk_X509_EXTENSION_pop_free(all, X509_EXTENSION_free);
  }
};
using ExtensionsPtr = std::unique_ptr<STACK_OF(X509_EXTENSION), FreeExtensions>;

// TLS connections of the same thread read libcrypto's queue of errors: what we cause there must not
// be taken for theirs.
struct ErrorsCleared {
  ErrorsCleared() = default;
  ErrorsCleared(const ErrorsCleared&) = delete;
  ErrorsCleared& operator=(const ErrorsCleared&) = delete;
  ~ErrorsCleared() { ERR_clear_error(); }
};

// For calls that fail only for want of memory or random numbers, or if we call them wrongly.
inline void Must(bool done, const char* what) {
  FEDGEN_CHECK(done, "libcrypto: {}: error {:x}", what, ERR_peek_last_error());
}

template <typename Pointer>
Pointer Made(Pointer object) {
  Must(object != nullptr, "cannot make an object");
  return object;
}

inline Error DataError(const Pem& pem, std::string_view problem) {
  return {ErrorCode::kData, fmt::format("{}: {}", pem.name, problem)};
}

inline Error Mismatch(const Pem& pem, std::string_view problem) {
  return {ErrorCode::kMismatch, fmt::format("{}: {}", pem.name, problem)};
}

// In place of libcrypto's own, which would ask at the terminal.
inline int NoPassphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

// The extension of a line of a revocation list that says who has left: a name, as UTF8String. An
// arc of our own (X.667, from a UUID); other programs pass over it.
inline ObjectPtr GoneExtension() {
  return ObjectPtr(Made(OBJ_txt2obj("2.25.16258881679429064384508730163818618480", 1)));
}

constexpr std::size_t kMaxPemBytes = std::size_t{16} << 20;

// The one object of a kind in a text. Others before it are skipped, as libcrypto does; one after it
// is refused, lest somebody believes that a chain or a bundle is read.
template <typename Pointer, auto Read>
Result<Pointer> FromPem(const Pem& pem, const char* what) {
  if (pem.text.size() > kMaxPemBytes) {
    return DataError(pem, fmt::format("larger than the {} bytes allowed", kMaxPemBytes));
  }
  const BioPtr bio(Made(BIO_new_mem_buf(pem.text.data(), static_cast<int>(pem.text.size()))));
  bool encrypted = false;
  Pointer object(Read(bio.get(), nullptr, NoPassphrase, &encrypted));
  if (encrypted) return DataError(pem, "is encrypted: must be without a passphrase");
  if (object == nullptr) return DataError(pem, fmt::format("holds no whole {} in PEM form", what));
  if constexpr (!std::is_same_v<Pointer, KeyPtr>) {
    char* rest = nullptr;
    const auto size = static_cast<std::size_t>(BIO_get_mem_data(bio.get(), &rest));
    if (std::string_view(rest, size).find("-----BEGIN ") != std::string_view::npos) {
      return DataError(pem, fmt::format("must hold one {} and nothing after it", what));
    }
  }
  return object;
}

Result<CertificatePtr> CertificateFrom(const Pem& pem);
Result<ListPtr> ListFrom(const Pem& pem);
/// A private key of the curve P-256.
Result<KeyPtr> KeyFrom(const Pem& pem);
/// A request with a key of that curve, which has signed it.
Result<RequestPtr> RequestFrom(const Pem& pem);
Result<CertificateInfo> InfoOf(X509* certificate, const Pem& pem);

}  // namespace fedgen::pki
