// SPDX-License-Identifier: Apache-2.0
#include "fedgen/identity/pki.h"

#include <arpa/inet.h>

#include <array>
#include <cctype>
#include <charconv>
#include <ctime>

#include "fedgen/base/hash.h"
#include "fedgen/base/text.h"
#include "fedgen/identity/pki-inl.h"

namespace fedgen {
namespace pki {
namespace {

Result<void> CheckCurve(const EVP_PKEY* key, const Pem& pem) {
  std::array<char, 64> group{};
  if (key == nullptr) return DataError(pem, "key: cannot be read, must be of the curve P-256");
  const bool named = EVP_PKEY_is_a(key, "EC") == 1 &&
                     EVP_PKEY_get_group_name(key, group.data(), group.size(), nullptr) == 1;
  if (named && std::string_view(group.data()) == SN_X9_62_prime256v1) return {};
  const char* const type = EVP_PKEY_get0_type_name(key);
  return DataError(
      pem, fmt::format("key = {}: must be of the curve P-256", named             ? group.data()
                                                               : type != nullptr ? type
                                                                                 : "unknown"));
}

// The name, if it is a common name and nothing else: as all that we sign have.
std::optional<std::string> OnlyCommonName(const X509_NAME* name) {
  if (X509_NAME_entry_count(name) != 1) return std::nullopt;
  const X509_NAME_ENTRY* const entry = X509_NAME_get_entry(name, 0);
  if (OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry)) != NID_commonName) return std::nullopt;
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(entry));
  if (size < 0) return std::nullopt;
  std::string text(reinterpret_cast<const char*>(utf8), static_cast<std::size_t>(size));
  OPENSSL_free(utf8);
  return text;
}

constexpr std::size_t kLongestShown = 100;

std::string NameText(const X509_NAME* name) {
  if (const std::optional<std::string> common = OnlyCommonName(name)) {
    return Printable(*common, kLongestShown);
  }
  char* const line = X509_NAME_oneline(name, nullptr, 0);
  std::string text = Printable(line == nullptr ? "?" : line, kLongestShown);
  OPENSSL_free(line);
  return text;
}

std::string SerialText(const ASN1_INTEGER* serial) {
  constexpr std::size_t kDigits = 32;
  const BigPtr number(Made(ASN1_INTEGER_to_BN(serial, nullptr)));
  char* const hex = Made(BN_bn2hex(number.get()));
  std::string text(hex);
  OPENSSL_free(hex);
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text.size() < kDigits ? std::string(kDigits - text.size(), '0') + text : text;
}

template <typename Object>
std::string HashOfDer(const Object* object, int (*encode)(const Object*, unsigned char**)) {
  unsigned char* der = nullptr;
  const int size = encode(object, &der);
  Must(size > 0, "cannot encode");
  std::string hash =
      Sha256Hex({reinterpret_cast<const char*>(der), static_cast<std::size_t>(size)});
  OPENSSL_free(der);
  return hash;
}

std::vector<std::string> HostsText(const GENERAL_NAMES* names) {
  std::vector<std::string> hosts;
  for (int index = 0; index < sk_GENERAL_NAME_num(names); ++index) {  // -1 of none at all
    int type = 0;
    const auto* const value = static_cast<const ASN1_STRING*>(
        GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, index), &type));
    if (type != GEN_DNS && type != GEN_IPADD) continue;
    const unsigned char* const bytes = ASN1_STRING_get0_data(value);
    const auto size = static_cast<std::size_t>(ASN1_STRING_length(value));
    if (type == GEN_DNS) {
      hosts.push_back(Printable({reinterpret_cast<const char*>(bytes), size}, kLongestShown));
    } else if (size == sizeof(in_addr) || size == sizeof(in6_addr)) {
      std::array<char, INET6_ADDRSTRLEN> text{};
      inet_ntop(size == sizeof(in_addr) ? AF_INET : AF_INET6, bytes, text.data(), text.size());
      hosts.emplace_back(text.data());
    }
  }
  return hosts;
}

Result<std::int64_t> TimeFrom(const ASN1_TIME* time, const Pem& pem, const char* field) {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) {
    return DataError(pem, fmt::format("{}: must be a time", field));
  }
  return std::int64_t{timegm(&parts)};
}

}  // namespace

Result<CertificatePtr> CertificateFrom(const Pem& pem) {
  return FromPem<CertificatePtr, PEM_read_bio_X509>(pem, "certificate");
}

Result<ListPtr> ListFrom(const Pem& pem) {
  return FromPem<ListPtr, PEM_read_bio_X509_CRL>(pem, "revocation list");
}

Result<KeyPtr> KeyFrom(const Pem& pem) {
  KeyPtr key = FEDGEN_TRY(FromPem<KeyPtr, PEM_read_bio_PrivateKey>(pem, "private key"));
  FEDGEN_TRY(CheckCurve(key.get(), pem));
  return key;
}

// Who made the request has the private key: otherwise a stranger's public key could be certified
// under any name.
Result<RequestPtr> RequestFrom(const Pem& pem) {
  RequestPtr request =
      FEDGEN_TRY(FromPem<RequestPtr, PEM_read_bio_X509_REQ>(pem, "certificate request"));
  EVP_PKEY* const key = X509_REQ_get0_pubkey(request.get());
  FEDGEN_TRY(CheckCurve(key, pem));
  if (X509_REQ_verify(request.get(), key) != 1) {
    return DataError(pem, "signature: is not of the request's own key, the file was altered");
  }
  return request;
}

Result<CertificateInfo> InfoOf(X509* certificate, const Pem& pem) {
  CertificateInfo info;
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  // What an authority is called must not make it a learner.
  if (const auto common = OnlyCommonName(subject); common && X509_check_ca(certificate) == 0) {
    if (const Result<LearnerId> peer = PeerOf(*common)) info.peer = *peer;
  }
  const EVP_PKEY* const key = X509_get0_pubkey(certificate);
  if (key == nullptr) return DataError(pem, "key: cannot be read");
  info.subject = NameText(subject);
  info.issuer = NameText(X509_get_issuer_name(certificate));
  info.not_before = FEDGEN_TRY(TimeFrom(X509_get0_notBefore(certificate), pem, "not_before"));
  info.not_after = FEDGEN_TRY(TimeFrom(X509_get0_notAfter(certificate), pem, "not_after"));
  info.serial = SerialText(X509_get0_serialNumber(certificate));
  info.fingerprint = HashOfDer<X509>(certificate, i2d_X509);
  info.key = HashOfDer<EVP_PKEY>(key, i2d_PUBKEY);
  const HostsPtr hosts(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  info.hosts = HostsText(hosts.get());
  return info;
}

}  // namespace pki

using namespace pki;  // NOLINT(google-build-using-namespace): of the same files

// ---- Checking -----------------------------------------------------------------------------------

namespace {

Error OtherAuthority(const X509* certificate, const Pem& pem, const Pem& authority) {
  return Mismatch(pem, fmt::format("issuer = {}: was signed by another authority than {}",
                                   NameText(X509_get_issuer_name(certificate)), authority.name));
}

// Whether the key of the authority has signed what bears its name.
Result<void> CheckListSignature(X509_CRL* list, X509* issuer, const Pem& revocations,
                                const Pem& authority) {
  EVP_PKEY* const key = X509_get0_pubkey(issuer);
  if (key == nullptr || X509_check_ca(issuer) != 1) {
    return Mismatch(authority, "must be an authority's certificate");
  }
  if (X509_NAME_cmp(X509_CRL_get_issuer(list), X509_get_subject_name(issuer)) != 0 ||
      X509_CRL_verify(list, key) != 1) {
    return Mismatch(revocations,
                    fmt::format("issuer = {}: is the list of another authority than {}",
                                NameText(X509_CRL_get_issuer(list)), authority.name));
  }
  return {};
}

Result<void> CheckSignature(X509* certificate, X509* issuer, const Pem& pem, const Pem& authority) {
  EVP_PKEY* const key = X509_get0_pubkey(issuer);
  const X509_NAME* const name = X509_get_subject_name(issuer);
  if (key == nullptr || X509_check_ca(issuer) != 1) {
    return Mismatch(authority, "must be an authority's certificate");
  }
  if (X509_NAME_cmp(X509_get_issuer_name(certificate), name) != 0 ||
      X509_verify(certificate, key) != 1) {
    return OtherAuthority(certificate, pem, authority);
  }
  return {};
}

// Who has left with a revoked certificate, if the list says so (GoneExtension).
std::optional<LearnerId> GoneOf(const X509_REVOKED* revoked) {
  const int at = X509_REVOKED_get_ext_by_OBJ(revoked, GoneExtension().get(), -1);
  if (at < 0) return std::nullopt;
  const ASN1_OCTET_STRING* const data = X509_EXTENSION_get_data(X509_REVOKED_get_ext(revoked, at));
  const unsigned char* bytes = ASN1_STRING_get0_data(data);
  const Utf8Ptr name(d2i_ASN1_UTF8STRING(nullptr, &bytes, ASN1_STRING_length(data)));
  if (name == nullptr) return std::nullopt;
  const Result<LearnerId> peer =
      PeerOf({reinterpret_cast<const char*>(ASN1_STRING_get0_data(name.get())),
              static_cast<std::size_t>(ASN1_STRING_length(name.get()))});
  return peer ? std::optional(*peer) : std::nullopt;
}

Result<RevocationListInfo> InfoOfList(X509_CRL* read, const Pem& list) {
  RevocationListInfo info;
  info.issuer = NameText(X509_CRL_get_issuer(read));
  info.made = FEDGEN_TRY(TimeFrom(X509_CRL_get0_lastUpdate(read), list, "made"));
  info.until = FEDGEN_TRY(TimeFrom(X509_CRL_get0_nextUpdate(read), list, "until"));
  STACK_OF(X509_REVOKED)* const revoked = X509_CRL_get_REVOKED(read);
  for (int index = 0; index < sk_X509_REVOKED_num(revoked); ++index) {  // -1 of none at all
    const X509_REVOKED* const one = sk_X509_REVOKED_value(revoked, index);
    const ASN1_TIME* const time = X509_REVOKED_get0_revocationDate(one);
    info.revoked.push_back({SerialText(X509_REVOKED_get0_serialNumber(one)),
                            FEDGEN_TRY(TimeFrom(time, list, "revoked")), GoneOf(one)});
  }
  return info;
}

// libcrypto takes a certificate without purposes for one that serves all of them; here it must name
// the one that its owner needs.
Result<void> CheckPurpose(X509* certificate, LearnerId peer, const Pem& pem) {
  const std::uint32_t purposes = X509_get_extended_key_usage(certificate);
  const bool named = purposes != UINT32_MAX;
  const std::uint32_t needed = peer.is_cloud() ? XKU_SSL_SERVER : XKU_SSL_CLIENT;
  if (named && (purposes & needed) != 0) return {};
  return Mismatch(pem, fmt::format("purpose: {} needs a certificate of a TLS {}, this is none",
                                   CommonNameOf(peer), peer.is_cloud() ? "server" : "client"));
}

struct Verified {
  int code = X509_V_OK;
  int depth = 0;  // 0: the certificate, 1: the authority
};

// libcrypto's own judgement; without a list, of all but revocation.
Verified Verify(X509* certificate, X509* issuer, X509_CRL* list, LearnerId peer, std::int64_t now) {
  const StorePtr store(Made(X509_STORE_new()));
  Must(X509_STORE_add_cert(store.get(), issuer) == 1, "a store");
  if (list != nullptr) Must(X509_STORE_add_crl(store.get(), list) == 1, "a store");
  const StoreContextPtr context(Made(X509_STORE_CTX_new()));
  Must(X509_STORE_CTX_init(context.get(), store.get(), certificate, nullptr) == 1, "a context");
  const int purpose = peer.is_cloud() ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT;
  Must(X509_STORE_CTX_set_purpose(context.get(), purpose) == 1, "a purpose");
  X509_VERIFY_PARAM* const parameters = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(parameters, now);
  if (list != nullptr) X509_VERIFY_PARAM_set_flags(parameters, X509_V_FLAG_CRL_CHECK);
  if (X509_verify_cert(context.get()) == 1) return {};
  const int code = X509_STORE_CTX_get_error(context.get());
  // Whatever is not a clear yes is a no.
  return {code == X509_V_OK ? X509_V_ERR_UNSPECIFIED : code,
          X509_STORE_CTX_get_error_depth(context.get())};
}

// The judgement in words. The times are those of the certificate that was found wanting.
Error VerifyError(const Verified& verified, const CertificateInfo& certificate,
                  const CertificateInfo& issuer, const Pem& pem, const Pem& authority,
                  const Pem& revocations, std::int64_t now) {
  const CertificateInfo& wanting = verified.depth == 0 ? certificate : issuer;
  const Pem& whose = verified.depth == 0 ? pem : authority;
  switch (verified.code) {
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return Mismatch(whose, fmt::format("not_before = {}: is not valid yet, the clock says {}",
                                         TimeText(wanting.not_before), TimeText(now)));
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return Mismatch(whose, fmt::format("not_after = {}: has expired, the clock says {}",
                                         TimeText(wanting.not_after), TimeText(now)));
    case X509_V_ERR_CERT_REVOKED:
      return Mismatch(
          pem, fmt::format("serial = {}: was revoked ({})", certificate.serial, revocations.name));
    case X509_V_ERR_CRL_NOT_YET_VALID:
      return Mismatch(revocations,
                      fmt::format("is not valid yet, the clock says {}", TimeText(now)));
    case X509_V_ERR_CRL_HAS_EXPIRED:
      return Mismatch(revocations, fmt::format("has expired, the clock says {}", TimeText(now)));
    default:
      return Mismatch(whose, X509_verify_cert_error_string(verified.code));
  }
}

}  // namespace

std::string CommonNameOf(LearnerId who) {
  return who.is_cloud() ? "cloud" : fmt::format("learner-{}", who.number());
}

Result<LearnerId> PeerOf(const std::string& common_name) {
  constexpr std::string_view kLearner = "learner-";
  if (common_name == "cloud") return LearnerId::Cloud();
  std::uint32_t number = 0;
  if (common_name.starts_with(kLearner)) {
    const char* const end = common_name.data() + common_name.size();
    std::from_chars(common_name.data() + kLearner.size(), end, number);
  }
  // Written again it must be the same: that leaves one text for each number.
  if (number == 0 || CommonNameOf(LearnerId(number - 1)) != common_name) {
    return Error{ErrorCode::kData, fmt::format("name = {}: must be cloud or learner-N, N from 1",
                                               Printable(common_name))};
  }
  return LearnerId(number - 1);
}

std::string TimeText(std::int64_t time) {
  const std::time_t seconds = time;
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return fmt::format("{} s", time);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

Result<CertificateInfo> ReadCertificate(const Pem& certificate) {
  const ErrorsCleared cleared;
  return InfoOf(FEDGEN_TRY(CertificateFrom(certificate)).get(), certificate);
}

Result<CertificateInfo> ReadIssued(const Pem& certificate, const Pem& authority) {
  const ErrorsCleared cleared;
  const CertificatePtr read = FEDGEN_TRY(CertificateFrom(certificate));
  const CertificatePtr issuer = FEDGEN_TRY(CertificateFrom(authority));
  EVP_PKEY* const key = X509_get0_pubkey(issuer.get());
  if (key == nullptr || X509_verify(read.get(), key) != 1) {
    return OtherAuthority(read.get(), certificate, authority);
  }
  return InfoOf(read.get(), certificate);
}

Result<RequestInfo> ReadRequest(const Pem& request) {
  const ErrorsCleared cleared;
  const RequestPtr read = FEDGEN_TRY(RequestFrom(request));
  RequestInfo info;
  info.subject = NameText(X509_REQ_get_subject_name(read.get()));
  info.key = HashOfDer<EVP_PKEY>(X509_REQ_get0_pubkey(read.get()), i2d_PUBKEY);
  const ExtensionsPtr extensions(X509_REQ_get_extensions(read.get()));
  const HostsPtr hosts(static_cast<GENERAL_NAMES*>(
      X509V3_get_d2i(extensions.get(), NID_subject_alt_name, nullptr, nullptr)));
  info.hosts = HostsText(hosts.get());
  return info;
}

Result<RevocationListInfo> ReadRevocationList(const Pem& list) {
  const ErrorsCleared cleared;
  return InfoOfList(FEDGEN_TRY(ListFrom(list)).get(), list);
}

Result<RevocationListInfo> ReadIssuedList(const Pem& list, const Pem& authority) {
  const ErrorsCleared cleared;
  const ListPtr read = FEDGEN_TRY(ListFrom(list));
  const CertificatePtr issuer = FEDGEN_TRY(CertificateFrom(authority));
  FEDGEN_TRY(CheckListSignature(read.get(), issuer.get(), list, authority));
  return InfoOfList(read.get(), list);
}

Result<CertificateInfo> CheckCertificate(const Pem& certificate, const Pem& authority,
                                         const std::optional<Pem>& revocations,
                                         std::optional<LearnerId> expected, std::int64_t now) {
  const ErrorsCleared cleared;
  const CertificatePtr read = FEDGEN_TRY(CertificateFrom(certificate));
  const CertificatePtr issuer = FEDGEN_TRY(CertificateFrom(authority));
  ListPtr list;
  if (revocations) list = FEDGEN_TRY(ListFrom(*revocations));
  CertificateInfo info = FEDGEN_TRY(InfoOf(read.get(), certificate));
  const CertificateInfo issuer_info = FEDGEN_TRY(InfoOf(issuer.get(), authority));
  FEDGEN_TRY(CheckSignature(read.get(), issuer.get(), certificate, authority));
  if (revocations)
    FEDGEN_TRY(CheckListSignature(list.get(), issuer.get(), *revocations, authority));
  if (!info.peer) {
    return Mismatch(certificate,
                    fmt::format("subject = {}: must be cloud or learner-N", info.subject));
  }
  if (expected && *info.peer != *expected) {
    return Mismatch(certificate,
                    fmt::format("subject = {}: must be {}", info.subject, CommonNameOf(*expected)));
  }
  FEDGEN_TRY(CheckPurpose(read.get(), *info.peer, certificate));
  // Twice, since libcrypto would speak of a list that is not valid yet before it speaks of the
  // certificate.
  for (X509_CRL* const crl : {static_cast<X509_CRL*>(nullptr), list.get()}) {
    const Verified verified = Verify(read.get(), issuer.get(), crl, *info.peer, now);
    if (verified.code != X509_V_OK) {
      return VerifyError(verified, info, issuer_info, certificate, authority,
                         revocations.value_or(Pem{}), now);
    }
  }
  return info;
}

Result<CertificateInfo> CheckPair(const Pem& key, const Pem& certificate, const Pem& authority,
                                  const std::optional<Pem>& revocations,
                                  std::optional<LearnerId> expected, std::int64_t now) {
  const ErrorsCleared cleared;
  const KeyPtr private_key = FEDGEN_TRY(KeyFrom(key));
  const CertificatePtr read = FEDGEN_TRY(CertificateFrom(certificate));
  if (X509_check_private_key(read.get(), private_key.get()) != 1) {
    return Mismatch(key, fmt::format("is not the key of {}", certificate.name));
  }
  return CheckCertificate(certificate, authority, revocations, expected, now);
}

}  // namespace fedgen
