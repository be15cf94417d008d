// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <openssl/rand.h>

#include <array>
#include <string_view>

#include "fedgen/base/text.h"
#include "fedgen/identity/pki-inl.h"
#include "fedgen/identity/pki.h"

namespace fedgen {

using namespace pki;  // NOLINT(google-build-using-namespace): of the same files

namespace {

template <typename Object>
std::string ToPem(Object* object, int (*write)(BIO*, const Object*)) {
  const BioPtr bio(Made(BIO_new(BIO_s_mem())));
  Must(write(bio.get(), object) == 1, "cannot write");
  char* text = nullptr;
  const auto size = static_cast<std::size_t>(BIO_get_mem_data(bio.get(), &text));
  return {text, size};
}

int WriteKey(BIO* bio, const EVP_PKEY* key) {
  return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
}

KeyPtr NewKey() { return KeyPtr(Made(EVP_EC_gen("P-256"))); }

NamePtr NameOf(const std::string& common_name) {
  NamePtr name(Made(X509_NAME_new()));
  Must(X509_NAME_add_entry_by_NID(name.get(), NID_commonName, MBSTRING_UTF8,
                                  reinterpret_cast<const unsigned char*>(common_name.data()),
                                  static_cast<int>(common_name.size()), -1, 0) == 1,
       "a name");
  return name;
}

TimePtr TimeOf(std::int64_t time) { return TimePtr(Made(ASN1_TIME_set(nullptr, time))); }

// 128 random bits: nobody foresees it, and no two are alike.
IntegerPtr NewSerial() {
  std::array<unsigned char, 16> bytes{};
  Must(RAND_bytes(bytes.data(), bytes.size()) == 1, "no random numbers");
  const BigPtr number(Made(BN_bin2bn(bytes.data(), bytes.size(), nullptr)));
  return IntegerPtr(Made(BN_to_ASN1_INTEGER(number.get(), nullptr)));
}

// The bytes of an IP address; empty if the text is none.
std::string AddressOf(const std::string& host) {
  std::string bytes(sizeof(in6_addr), '\0');
  if (inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1) return bytes;
  bytes.resize(sizeof(in_addr));
  return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ? bytes : "";
}

// Letters, digits and hyphens between dots. The last label has a letter: 10.0.0.256 is a mistake.
bool IsDnsName(std::string_view host) {
  constexpr std::size_t kLongestName = 253;
  constexpr std::size_t kLongestLabel = 63;
  if (host.size() > kLongestName) return false;
  bool has_letter = false;
  while (true) {
    const std::string_view label = host.substr(0, host.find('.'));
    if (label.empty() || label.size() > kLongestLabel) return false;
    if (label.front() == '-' || label.back() == '-') return false;
    has_letter = false;
    for (const char c : label) {
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      if (!letter && !(c >= '0' && c <= '9') && c != '-') return false;
      has_letter = has_letter || letter;
    }
    if (label.size() == host.size()) return has_letter;
    host.remove_prefix(label.size() + 1);
  }
}

Result<void> CheckIdentity(const Identity& identity) {
  if (!identity.who.is_cloud() && !identity.hosts.empty()) {
    return Error{ErrorCode::kUsage, fmt::format("--host = {}: only the Cloud is called by hosts",
                                                Printable(identity.hosts.front()))};
  }
  if (identity.who.is_cloud() && identity.hosts.empty()) {
    return Error{ErrorCode::kUsage, "--host: must name at least one host of the Cloud"};
  }
  for (const std::string& host : identity.hosts) {
    if (AddressOf(host).empty() && !IsDnsName(host)) {
      return Error{
          ErrorCode::kUsage,
          fmt::format("--host = {}: must be a DNS name or an IP address", Printable(host))};
    }
  }
  return {};
}

HostsPtr HostsOf(const Identity& identity) {
  HostsPtr names(Made(GENERAL_NAMES_new()));
  for (const std::string& host : identity.hosts) {
    const std::string address = AddressOf(host);
    const std::string& bytes = address.empty() ? host : address;
    const int type = address.empty() ? GEN_DNS : GEN_IPADD;
    ASN1_STRING* const value =
        Made(ASN1_STRING_type_new(address.empty() ? V_ASN1_IA5STRING : V_ASN1_OCTET_STRING));
    Must(ASN1_STRING_set(value, bytes.data(), static_cast<int>(bytes.size())) == 1, "a host");
    GENERAL_NAME* const name = Made(GENERAL_NAME_new());
    GENERAL_NAME_set0_value(name, type, value);
    Must(sk_GENERAL_NAME_push(names.get(), name) > 0, "a host");
  }
  return names;
}

// Adds an extension, written as in an openssl.cnf. Without an issuer it is its own.
void Extend(X509* certificate, X509* issuer, int nid, const char* value) {
  X509V3_CTX context{};
  if (issuer == nullptr) issuer = certificate;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionPtr extension(Made(X509V3_EXT_conf_nid(nullptr, &context, nid, value)));
  Must(X509_add_ext(certificate, extension.get(), -1) == 1, "an extension");
}

// What all certificates have. The issuer's identifier of its key comes after the subject's own,
// which it may be.
CertificatePtr Blank(EVP_PKEY* key, const std::string& common_name, X509* issuer,
                     std::int64_t not_before, std::int64_t not_after) {
  CertificatePtr certificate(Made(X509_new()));
  X509* const c = certificate.get();
  if (issuer == nullptr) issuer = c;
  Must(X509_set_version(c, X509_VERSION_3) == 1 &&
           X509_set_serialNumber(c, NewSerial().get()) == 1 &&
           X509_set_subject_name(c, NameOf(common_name).get()) == 1 &&
           X509_set_issuer_name(c, X509_get_subject_name(issuer)) == 1 &&
           X509_set1_notBefore(c, TimeOf(not_before).get()) == 1 &&
           X509_set1_notAfter(c, TimeOf(not_after).get()) == 1 && X509_set_pubkey(c, key) == 1,
       "a certificate");
  Extend(c, issuer, NID_subject_key_identifier, "hash");
  Extend(c, issuer, NID_authority_key_identifier, "keyid:always");
  return certificate;
}

constexpr std::int64_t kDay = 86400;
// 2200-01-01: a clock beyond that is wrong, and so is one before 1970.
constexpr std::int64_t kLatestNow = 7258118400;

Result<void> CheckTimes(int days, std::int64_t now) {
  constexpr int kMostDays = 36500;
  if (days < 1 || days > kMostDays) {
    return Error{ErrorCode::kUsage, fmt::format("days = {}: must be in 1..{}", days, kMostDays)};
  }
  if (now < kClockSkew || now > kLatestNow) {
    return Error{ErrorCode::kUsage, fmt::format("clock = {} s: must be in 1970..2200", now)};
  }
  return {};
}

struct Signer {
  KeyPtr key;
  CertificatePtr certificate;
  std::int64_t not_after = 0;
};

Result<Signer> SignerOf(const Authority& authority, std::int64_t now) {
  Signer signer;
  signer.key = FEDGEN_TRY(KeyFrom(authority.key));
  signer.certificate = FEDGEN_TRY(CertificateFrom(authority.certificate));
  X509* const certificate = signer.certificate.get();
  if (X509_check_ca(certificate) != 1) {
    return Mismatch(authority.certificate, "must be an authority's certificate");
  }
  if (X509_check_private_key(certificate, signer.key.get()) != 1) {
    return Mismatch(authority.key, fmt::format("is not the key of {}", authority.certificate.name));
  }
  signer.not_after = FEDGEN_TRY(InfoOf(certificate, authority.certificate)).not_after;
  if (now > signer.not_after) {
    return Mismatch(authority.certificate, fmt::format("not_after = {}: the authority has expired",
                                                       TimeText(signer.not_after)));
  }
  return signer;
}

void AddGone(LearnerId who, X509_REVOKED* entry) {
  const std::string name = CommonNameOf(who);
  const Utf8Ptr text(Made(ASN1_UTF8STRING_new()));
  Must(ASN1_STRING_set(text.get(), name.data(), static_cast<int>(name.size())) == 1, "a name");
  unsigned char* der = nullptr;
  const int size = i2d_ASN1_UTF8STRING(text.get(), &der);
  Must(size > 0, "a name");
  const OctetsPtr octets(Made(ASN1_OCTET_STRING_new()));
  Must(ASN1_OCTET_STRING_set(octets.get(), der, size) == 1, "a name");
  OPENSSL_free(der);
  const ExtensionPtr extension(
      Made(X509_EXTENSION_create_by_OBJ(nullptr, GoneExtension().get(), 0, octets.get())));
  Must(X509_REVOKED_add_ext(entry, extension.get(), -1) == 1, "an extension");
}

Result<void> AddRevocation(const Revocation& revocation, X509_CRL* list) {
  BIGNUM* read = nullptr;
  const int digits = BN_hex2bn(&read, revocation.serial.c_str());
  const BigPtr number(read);
  if (digits == 0 || static_cast<std::size_t>(digits) != revocation.serial.size() ||
      revocation.serial.starts_with('-')) {
    return Error{ErrorCode::kData, fmt::format("serial = {}: must be hexadecimal digits",
                                               Printable(revocation.serial))};
  }
  const IntegerPtr serial(Made(BN_to_ASN1_INTEGER(number.get(), nullptr)));
  X509_REVOKED* const entry = Made(X509_REVOKED_new());
  if (revocation.gone) AddGone(*revocation.gone, entry);
  Must(X509_REVOKED_set_serialNumber(entry, serial.get()) == 1 &&
           X509_REVOKED_set_revocationDate(entry, TimeOf(revocation.time).get()) == 1 &&
           X509_CRL_add0_revoked(list, entry) == 1,
       "a revocation");
  return {};
}

}  // namespace

Result<Authority> MakeAuthority(const std::string& name, int days, std::int64_t now) {
  const ErrorsCleared cleared;
  constexpr std::size_t kLongestName = 64;
  // A peer's name would make two kinds of certificates look alike to people.
  if (name.empty() || name.size() > kLongestName || Printable(name, kLongestName) != name ||
      name.front() == ' ' || name.back() == ' ' || PeerOf(name)) {
    return Error{
        ErrorCode::kUsage,
        fmt::format("--name = {}: must be 1 to {} printable ASCII characters, without spaces "
                    "around them, and not the name of a learner or the Cloud",
                    Printable(name, kLongestName), kLongestName)};
  }
  FEDGEN_TRY(CheckTimes(days, now));
  const KeyPtr key = NewKey();
  const CertificatePtr certificate =
      Blank(key.get(), name, nullptr, now - kClockSkew, now + days * kDay);
  Extend(certificate.get(), nullptr, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  Extend(certificate.get(), nullptr, NID_key_usage, "critical,keyCertSign,cRLSign");
  Must(X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0, "cannot sign");
  return Authority{{ToPem(key.get(), WriteKey), "ca.key"},
                   {ToPem<X509>(certificate.get(), PEM_write_bio_X509), "ca.pem"}};
}

Result<NewRequest> MakeRequest(const Identity& asked) {
  const ErrorsCleared cleared;
  FEDGEN_TRY(CheckIdentity(asked));
  const KeyPtr key = NewKey();
  const RequestPtr request(Made(X509_REQ_new()));
  X509_REQ* const r = request.get();
  Must(X509_REQ_set_version(r, X509_REQ_VERSION_1) == 1 &&
           X509_REQ_set_subject_name(r, NameOf(CommonNameOf(asked.who)).get()) == 1 &&
           X509_REQ_set_pubkey(r, key.get()) == 1,
       "a request");
  if (asked.who.is_cloud()) {
    STACK_OF(X509_EXTENSION)* added = nullptr;
    const int done = X509V3_add1_i2d(&added, NID_subject_alt_name, HostsOf(asked).get(), 0, 0);
    const ExtensionsPtr extensions(added);
    Must(done == 1 && X509_REQ_add_extensions(r, extensions.get()) == 1, "hosts");
  }
  Must(X509_REQ_sign(r, key.get(), EVP_sha256()) > 0, "cannot sign");
  return NewRequest{ToPem(key.get(), WriteKey), ToPem<X509_REQ>(r, PEM_write_bio_X509_REQ)};
}

Result<std::string> Sign(const Authority& authority, const Pem& request, const Identity& identity,
                         int days, std::int64_t now) {
  const ErrorsCleared cleared;
  FEDGEN_TRY(CheckIdentity(identity));
  FEDGEN_TRY(CheckTimes(days, now));
  const Signer signer = FEDGEN_TRY(SignerOf(authority, now));
  const RequestPtr asked = FEDGEN_TRY(RequestFrom(request));
  // Cutting it short in silence would surprise who planned to renew after `days`.
  const std::int64_t not_after = now + days * kDay;
  if (not_after > signer.not_after) {
    return Error{ErrorCode::kUsage,
                 fmt::format("days = {}: must be at most {}, the authority ends at {}", days,
                             (signer.not_after - now) / kDay, TimeText(signer.not_after))};
  }
  X509* const issuer = signer.certificate.get();
  const CertificatePtr certificate =
      Blank(X509_REQ_get0_pubkey(asked.get()), CommonNameOf(identity.who), issuer, now - kClockSkew,
            not_after);
  X509* const c = certificate.get();
  const bool cloud = identity.who.is_cloud();
  Extend(c, issuer, NID_basic_constraints, "critical,CA:FALSE");
  Extend(c, issuer, NID_key_usage, "critical,digitalSignature");
  Extend(c, issuer, NID_ext_key_usage, cloud ? "serverAuth,clientAuth" : "clientAuth");
  if (cloud) {
    Must(X509_add1_ext_i2d(c, NID_subject_alt_name, HostsOf(identity).get(), 0, 0) == 1, "hosts");
  }
  Must(X509_sign(c, signer.key.get(), EVP_sha256()) > 0, "cannot sign");
  return ToPem<X509>(c, PEM_write_bio_X509);
}

Result<std::string> MakeRevocationList(const Authority& authority,
                                       std::span<const Revocation> revoked, std::int64_t now) {
  const ErrorsCleared cleared;
  FEDGEN_TRY(CheckTimes(1, now));
  const Signer signer = FEDGEN_TRY(SignerOf(authority, now));
  X509* const issuer = signer.certificate.get();
  const ListPtr list(Made(X509_CRL_new()));
  X509_CRL* const l = list.get();
  Must(X509_CRL_set_version(l, X509_CRL_VERSION_2) == 1 &&
           X509_CRL_set_issuer_name(l, X509_get_subject_name(issuer)) == 1 &&
           X509_CRL_set1_lastUpdate(l, TimeOf(now - kClockSkew).get()) == 1 &&
           X509_CRL_set1_nextUpdate(l, TimeOf(signer.not_after).get()) == 1,
       "a revocation list");
  for (const Revocation& one : revoked) FEDGEN_TRY(AddRevocation(one, l));
  X509_CRL_sort(l);
  // It only grows, so its length numbers it.
  const IntegerPtr number(Made(ASN1_INTEGER_new()));
  Must(ASN1_INTEGER_set_uint64(number.get(), revoked.size() + 1) == 1 &&
           X509_CRL_add1_ext_i2d(l, NID_crl_number, number.get(), 0, 0) == 1,
       "a number");
  X509V3_CTX context{};
  X509V3_set_ctx(&context, issuer, nullptr, nullptr, l, 0);
  const ExtensionPtr key_identifier(
      Made(X509V3_EXT_conf_nid(nullptr, &context, NID_authority_key_identifier, "keyid:always")));
  Must(X509_CRL_add_ext(l, key_identifier.get(), -1) == 1, "an extension");
  Must(X509_CRL_sign(l, signer.key.get(), EVP_sha256()) > 0, "cannot sign");
  return ToPem<X509_CRL>(l, PEM_write_bio_X509_CRL);
}

}  // namespace fedgen
