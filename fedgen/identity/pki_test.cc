// SPDX-License-Identifier: Apache-2.0
#include "fedgen/identity/pki.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "fedgen/base/text.h"

namespace fedgen {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::int64_t kNow = 1'800'000'000;  // 2027-01-15 08:00:00 UTC
constexpr std::int64_t kDay = 86400;
constexpr LearnerId kThird{2};

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using BioPtr = std::unique_ptr<BIO, Freed<BIO_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, Freed<X509_free>>;
using RequestPtr = std::unique_ptr<X509_REQ, Freed<X509_REQ_free>>;
using ListPtr = std::unique_ptr<X509_CRL, Freed<X509_CRL_free>>;

BioPtr Reader(const std::string& text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

CertificatePtr ParsedCertificate(const std::string& pem) {
  return CertificatePtr(PEM_read_bio_X509(Reader(pem).get(), nullptr, nullptr, nullptr));
}

KeyPtr ParsedKey(const std::string& pem) {
  return KeyPtr(PEM_read_bio_PrivateKey(Reader(pem).get(), nullptr, nullptr, nullptr));
}

std::string Written(const auto& write) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  EXPECT_EQ(write(bio.get()), 1);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

std::string ToPem(X509* certificate) {
  return Written([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

// An authority with a list, and a node of each kind: what an operator has after the first day.
struct Fleet {
  explicit Fleet(const std::string& name = "Acme fleet")
      : authority(*MakeAuthority(name, kAuthorityDays, kNow)) {
    crl = {*MakeRevocationList(authority, {}, kNow), "crl.pem"};
    Join({kThird, {}}, learner_key, learner);
    Join({LearnerId::Cloud(), {"cloud.example.org", "10.0.0.7", "::1"}}, cloud_key, cloud);
  }

  void Join(const Identity& identity, Pem& key, Pem& certificate) const {
    const NewRequest made = *MakeRequest(identity);
    key = {made.key, "node.key"};
    certificate = {*Sign(authority, {made.request, "node.csr"}, identity, 365, kNow), "node.pem"};
  }

  const Pem& ca() const { return authority.certificate; }

  std::string Check(const Pem& key, const Pem& certificate, std::int64_t now = kNow,
                    std::optional<LearnerId> expected = std::nullopt) const {
    const Result<CertificateInfo> checked = CheckPair(key, certificate, ca(), crl, expected, now);
    return checked ? "good" : checked.error().message;
  }

  // The learner's certificate with another purpose, signed by the authority once more; none: it
  // names no purpose.
  Pem WithPurpose(const char* purpose) const {
    const CertificatePtr certificate = ParsedCertificate(learner.text);
    X509* const c = certificate.get();
    X509_EXTENSION_free(X509_delete_ext(c, X509_get_ext_by_NID(c, NID_ext_key_usage, -1)));
    if (purpose != nullptr) {
      X509_EXTENSION* const extension =
          X509V3_EXT_conf_nid(nullptr, nullptr, NID_ext_key_usage, purpose);
      EXPECT_EQ(X509_add_ext(c, extension, -1), 1);
      X509_EXTENSION_free(extension);
    }
    return Resigned(c);
  }

  Pem Resigned(X509* certificate) const {
    EXPECT_GT(X509_sign(certificate, ParsedKey(authority.key.text).get(), EVP_sha256()), 0);
    return {ToPem(certificate), "node.pem"};
  }

  Authority authority;
  Pem crl, learner_key, learner, cloud_key, cloud;
};

// The oracle: libcrypto's verifier, as strict as it can be.
std::string Verdict(const Fleet& fleet, const Pem& certificate, int purpose,
                    std::int64_t now = kNow) {
  X509_STORE* const store = X509_STORE_new();
  const CertificatePtr ca = ParsedCertificate(fleet.ca().text);
  const ListPtr list(
      PEM_read_bio_X509_CRL(Reader(fleet.crl.text).get(), nullptr, nullptr, nullptr));
  X509_STORE_add_cert(store, ca.get());
  X509_STORE_add_crl(store, list.get());
  X509_STORE_CTX* const context = X509_STORE_CTX_new();
  const CertificatePtr leaf = ParsedCertificate(certificate.text);
  X509_STORE_CTX_init(context, store, leaf.get(), nullptr);
  X509_STORE_CTX_set_purpose(context, purpose);
  X509_VERIFY_PARAM* const parameters = X509_STORE_CTX_get0_param(context);
  X509_VERIFY_PARAM_set_time(parameters, now);
  X509_VERIFY_PARAM_set_flags(parameters, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL |
                                              X509_V_FLAG_X509_STRICT |
                                              X509_V_FLAG_CHECK_SS_SIGNATURE);
  X509_VERIFY_PARAM_set_auth_level(parameters, 3);  // 128 bits
  const int good = X509_verify_cert(context);
  const int code = X509_STORE_CTX_get_error(context);
  X509_STORE_CTX_free(context);
  X509_STORE_free(store);
  ERR_clear_error();
  return good == 1 ? "ok" : X509_verify_cert_error_string(code);
}

std::string Extension(const X509* certificate, int nid) {
  const int at = X509_get_ext_by_NID(certificate, nid, -1);
  if (at < 0) return "none";
  X509_EXTENSION* const extension = X509_get_ext(certificate, at);
  const std::string text =
      Written([&](BIO* bio) { return X509V3_EXT_print(bio, extension, 0, 0); });
  return (X509_EXTENSION_get_critical(extension) != 0 ? "critical, " : "") + text;
}

// ---- Names --------------------------------------------------------------------------------------

TEST(PeerOf, IsTheInverseOfCommonNameOf) {
  EXPECT_EQ(*PeerOf("cloud"), LearnerId::Cloud());
  EXPECT_EQ(*PeerOf("learner-12"), LearnerId(11));
  for (const std::uint32_t number : {1U, 2U, 9U, 10U, 4294967294U, 4294967295U}) {
    const LearnerId id(number - 1);
    EXPECT_EQ(CommonNameOf(id), "learner-" + std::to_string(number));
    EXPECT_EQ(*PeerOf(CommonNameOf(id)), id);
  }
}

// 4294967296 is the number that would come out as the Cloud (index 2^32 - 1).
TEST(PeerOf, RefusesEverythingElse) {
  for (const std::string name : {"",
                                 "Cloud",
                                 "cloud ",
                                 " cloud",
                                 "cloud1",
                                 "learner",
                                 "learner-",
                                 "learner-0",
                                 "learner-01",
                                 "learner-1 ",
                                 " learner-1",
                                 "learner- 1",
                                 "learner-+1",
                                 "learner--1",
                                 "learner-1.0",
                                 "learner-0x1",
                                 "Learner-1",
                                 "learner-4294967296",
                                 "learner-4294967297",
                                 "learner-18446744073709551617",
                                 "learner-1\n",
                                 "learner-1,cloud",
                                 "average",
                                 "01",
                                 "0"}) {
    const Result<LearnerId> peer = PeerOf(name);
    ASSERT_FALSE(peer) << name;
    EXPECT_EQ(peer.error().code, ErrorCode::kData);
    EXPECT_EQ(peer.error().message,
              "name = " + Printable(name) + ": must be cloud or learner-N, N from 1");
  }
  EXPECT_FALSE(PeerOf(std::string("learner-1\0", 10)));
  EXPECT_FALSE(PeerOf(std::string("cloud\0", 6)));
}

TEST(TimeText, IsUtc) {
  EXPECT_EQ(TimeText(0), "1970-01-01 00:00:00 UTC");
  EXPECT_EQ(TimeText(kNow), "2027-01-15 08:00:00 UTC");
}

// ---- What is made -------------------------------------------------------------------------------

TEST(Sign, MakesCertificatesThatLibcryptoTakesForTheirPurposeOnly) {
  const Fleet fleet;
  EXPECT_EQ(Verdict(fleet, fleet.learner, X509_PURPOSE_SSL_CLIENT), "ok");
  EXPECT_EQ(Verdict(fleet, fleet.cloud, X509_PURPOSE_SSL_SERVER), "ok");
  EXPECT_EQ(Verdict(fleet, fleet.cloud, X509_PURPOSE_SSL_CLIENT), "ok");
  // A learner cannot pose as the Cloud.
  EXPECT_NE(Verdict(fleet, fleet.learner, X509_PURPOSE_SSL_SERVER), "ok");
  EXPECT_EQ(Verdict(fleet, fleet.learner, X509_PURPOSE_SSL_CLIENT, kNow + 366 * kDay),
            "certificate has expired");
  EXPECT_NE(Verdict(Fleet(), fleet.learner, X509_PURPOSE_SSL_CLIENT), "ok");
}

TEST(Sign, WritesWhatTheAuthorityDecides) {
  const Fleet fleet;
  const CertificatePtr learner = ParsedCertificate(fleet.learner.text);
  const CertificatePtr cloud = ParsedCertificate(fleet.cloud.text);
  for (const X509* const c : {learner.get(), cloud.get()}) {
    EXPECT_EQ(X509_get_version(c), X509_VERSION_3);
    EXPECT_EQ(X509_get_signature_nid(c), NID_ecdsa_with_SHA256);
    EXPECT_EQ(Extension(c, NID_basic_constraints), "critical, CA:FALSE");
    EXPECT_EQ(Extension(c, NID_key_usage), "critical, Digital Signature");
  }
  EXPECT_EQ(Extension(learner.get(), NID_ext_key_usage), "TLS Web Client Authentication");
  EXPECT_EQ(Extension(cloud.get(), NID_ext_key_usage),
            "TLS Web Server Authentication, TLS Web Client Authentication");
  EXPECT_EQ(Extension(learner.get(), NID_subject_alt_name), "none");
  EXPECT_EQ(Extension(cloud.get(), NID_subject_alt_name),
            "DNS:cloud.example.org, IP Address:10.0.0.7, IP Address:0:0:0:0:0:0:0:1");
  EXPECT_EQ(X509_check_host(cloud.get(), "cloud.example.org", 0, 0, nullptr), 1);
  EXPECT_EQ(X509_check_host(cloud.get(), "other.example.org", 0, 0, nullptr), 0);
  EXPECT_EQ(X509_check_ip_asc(cloud.get(), "10.0.0.7", 0), 1);
  EXPECT_EQ(X509_check_ip_asc(cloud.get(), "10.0.0.8", 0), 0);
}

TEST(ReadCertificate, GivesBackWhatWasSigned) {
  const Fleet fleet;
  const CertificateInfo learner = *ReadCertificate(fleet.learner);
  EXPECT_EQ(learner.peer, kThird);
  EXPECT_EQ(learner.subject, "learner-3");
  EXPECT_EQ(learner.issuer, "Acme fleet");
  EXPECT_EQ(learner.not_before, kNow - kClockSkew);
  EXPECT_EQ(learner.not_after, kNow + 365 * kDay);
  EXPECT_EQ(learner.serial.size(), 32U);
  EXPECT_THAT(learner.hosts, IsEmpty());
  const CertificateInfo cloud = *ReadCertificate(fleet.cloud);
  EXPECT_EQ(cloud.peer, LearnerId::Cloud());
  EXPECT_THAT(cloud.hosts, ElementsAre("cloud.example.org", "10.0.0.7", "::1"));
  const CertificateInfo ca = *ReadCertificate(fleet.ca());
  EXPECT_EQ(ca.peer, std::nullopt);
  EXPECT_EQ(ca.subject, "Acme fleet");
  EXPECT_EQ(ca.not_after, kNow + kAuthorityDays * kDay);
  // libcrypto's own digest of the same certificate.
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  ASSERT_EQ(X509_digest(ParsedCertificate(fleet.ca().text).get(), EVP_sha256(), digest, &size), 1);
  std::string hex;
  for (unsigned int at = 0; at < size; ++at) hex += fmt::format("{:02x}", digest[at]);
  EXPECT_EQ(ca.fingerprint, hex);
}

// 64 draws of 128 bits: with 8 bits less, or a constant first bit, all of the first digits would be
// below 8 (probability 2^-64 otherwise).
TEST(Sign, DrawsSerialsOf128Bits) {
  const Fleet fleet;
  std::set<std::string> serials;
  bool high = false;
  for (int draw = 0; draw < 64; ++draw) {
    Pem key;
    Pem certificate;
    fleet.Join({kThird, {}}, key, certificate);
    const std::string serial = ReadCertificate(certificate)->serial;
    EXPECT_EQ(serial.size(), 32U);
    high = high || serial.front() >= '8';
    serials.insert(serial);
  }
  EXPECT_EQ(serials.size(), 64U);
  EXPECT_TRUE(high);
}

TEST(Sign, BoundsTheTimeByTheAuthoritysOwn) {
  const Authority authority = *MakeAuthority("Short", 100, kNow);
  const Pem request{MakeRequest({kThird, {}})->request, "node.csr"};
  EXPECT_TRUE(Sign(authority, request, {kThird, {}}, 100, kNow));
  EXPECT_EQ(Sign(authority, request, {kThird, {}}, 100, kNow + kDay).error().message,
            "days = 100: must be at most 99, the authority ends at 2027-04-25 08:00:00 UTC");
  for (const int days : {-1, 0, 36501}) {
    EXPECT_EQ(Sign(authority, request, {kThird, {}}, days, kNow).error().code, ErrorCode::kUsage);
  }
  EXPECT_EQ(Sign(authority, request, {kThird, {}}, 1, kNow + 101 * kDay).error().message,
            "ca.pem: not_after = 2027-04-25 08:00:00 UTC: the authority has expired");
  EXPECT_EQ(Sign(authority, request, {kThird, {}}, 1, -5).error().message,
            "clock = -5 s: must be in 1970..2200");
}

TEST(Sign, RefusesAnAuthorityThatIsNone) {
  const Fleet fleet;
  const Fleet other;
  const Pem request{MakeRequest({kThird, {}})->request, "node.csr"};
  const auto problem = [&](const Authority& authority) {
    return Sign(authority, request, {kThird, {}}, 1, kNow).error().message;
  };
  EXPECT_EQ(problem({other.authority.key, fleet.ca()}), "ca.key: is not the key of ca.pem");
  EXPECT_EQ(problem({fleet.learner_key, fleet.learner}),
            "node.pem: must be an authority's certificate");
}

TEST(MakeAuthority, WantsAPlainName) {
  for (const std::string& name : {std::string(), std::string(" a"), std::string("a "),
                                  std::string("a\nb"), std::string(65, 'a'), std::string("cloud"),
                                  std::string("learner-1"), std::string("Universit\xc3\xa4t")}) {
    const Result<Authority> made = MakeAuthority(name, 1, kNow);
    ASSERT_FALSE(made) << name;
    EXPECT_THAT(made.error().message, StartsWith("--name = " + Printable(name, 64)));
  }
  EXPECT_EQ(ReadCertificate(MakeAuthority(std::string(64, 'a'), 1, kNow)->certificate)->subject,
            std::string(64, 'a'));
}

TEST(MakeRequest, TakesHostsOfTheCloudOnly) {
  const auto problem = [](LearnerId who, std::vector<std::string> hosts) {
    const Result<NewRequest> made = MakeRequest({who, std::move(hosts)});
    return made ? "good" : made.error().message;
  };
  const LearnerId cloud = LearnerId::Cloud();
  for (const std::string host : {"localhost", "a.b-c.example", "1.example", "10.0.0.1", "fe80::1",
                                 "3com", "xn--bcher-kva.example"}) {
    EXPECT_EQ(problem(cloud, {"localhost", host}), "good") << host;
  }
  const std::string label(64, 'a');
  for (const std::string& host :
       {std::string(""), std::string("."), std::string("a..b"), std::string("a."),
        std::string("-a"), std::string("a-"), std::string("a b"), std::string("*.example"),
        std::string("a_b"), std::string("10.0.0.256"), std::string("1"),
        std::string("fe80::1%eth0"), std::string("a,DNS:evil"), std::string("https://a"),
        std::string("a:443"), label, std::string("a\0b", 3)}) {
    EXPECT_EQ(problem(cloud, {"localhost", host}),
              "--host = " + Printable(host) + ": must be a DNS name or an IP address");
  }
  EXPECT_EQ(problem(cloud, {}), "--host: must name at least one host of the Cloud");
  EXPECT_EQ(problem(kThird, {"localhost"}),
            "--host = localhost: only the Cloud is called by hosts");
}

// ---- Requests are not believed ------------------------------------------------------------------

TEST(ReadRequest, SaysWhatIsAskedFor) {
  const NewRequest made = *MakeRequest({LearnerId::Cloud(), {"localhost", "10.0.0.1"}});
  const RequestInfo info = *ReadRequest({made.request, "node.csr"});
  EXPECT_EQ(info.subject, "cloud");
  EXPECT_THAT(info.hosts, ElementsAre("localhost", "10.0.0.1"));
  const Fleet fleet;
  const Pem request{MakeRequest({kThird, {}})->request, "node.csr"};
  const Pem certificate{*Sign(fleet.authority, request, {kThird, {}}, 1, kNow), "node.pem"};
  EXPECT_EQ(ReadRequest(request)->key, ReadCertificate(certificate)->key);
}

// A request of `key` for what its maker would like best.
std::string GreedyRequest(EVP_PKEY* key) {
  const RequestPtr request(X509_REQ_new());
  X509_NAME* const name = X509_NAME_new();
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("cloud"), -1, -1, 0);
  X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("Evil"), -1, -1, 0);
  X509_REQ_set_subject_name(request.get(), name);
  X509_NAME_free(name);
  STACK_OF(X509_EXTENSION)* const extensions = sk_X509_EXTENSION_new_null();
  for (const auto& [nid, value] : {std::pair{NID_basic_constraints, "critical,CA:TRUE"},
                                   std::pair{NID_key_usage, "critical,keyCertSign"},
                                   std::pair{NID_ext_key_usage, "serverAuth"},
                                   std::pair{NID_subject_alt_name, "DNS:cloud.example.org"}}) {
    sk_X509_EXTENSION_push(extensions, X509V3_EXT_conf_nid(nullptr, nullptr, nid, value));
  }
  X509_REQ_add_extensions(request.get(), extensions);
  sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
  X509_REQ_set_pubkey(request.get(), key);
  EXPECT_GT(X509_REQ_sign(request.get(), key, EVP_sha256()), 0);
  return Written([&](BIO* bio) { return PEM_write_bio_X509_REQ(bio, request.get()); });
}

TEST(Sign, GivesNothingOfWhatTheRequestAsksFor) {
  const Fleet fleet;
  const KeyPtr key(EVP_EC_gen("P-256"));
  const Pem request{GreedyRequest(key.get()), "node.csr"};
  ASSERT_THAT(ReadRequest(request)->hosts, ElementsAre("cloud.example.org"));
  const Pem signed_one{*Sign(fleet.authority, request, {kThird, {}}, 1, kNow), "node.pem"};
  EXPECT_EQ(ReadCertificate(signed_one)->subject, "learner-3");
  const CertificatePtr certificate = ParsedCertificate(signed_one.text);
  EXPECT_EQ(Extension(certificate.get(), NID_basic_constraints), "critical, CA:FALSE");
  EXPECT_EQ(Extension(certificate.get(), NID_key_usage), "critical, Digital Signature");
  EXPECT_EQ(Extension(certificate.get(), NID_ext_key_usage), "TLS Web Client Authentication");
  EXPECT_EQ(Extension(certificate.get(), NID_subject_alt_name), "none");
  EXPECT_EQ(X509_get_ext_count(certificate.get()), 5);  // these three, and two key identifiers
  EXPECT_EQ(X509_check_ca(certificate.get()), 0);
}

TEST(Sign, RefusesARequestWithAnyByteAltered) {
  const Fleet fleet;
  const NewRequest made = *MakeRequest({kThird, {}});
  const RequestPtr request(
      PEM_read_bio_X509_REQ(Reader(made.request).get(), nullptr, nullptr, nullptr));
  unsigned char* der = nullptr;
  const int size = i2d_X509_REQ(request.get(), &der);
  ASSERT_GT(size, 100);
  for (int at = 0; at < size; ++at) {
    for (const int flip : {0x01, 0x10, 0x80}) {
      der[at] = static_cast<unsigned char>(der[at] ^ flip);
      const std::string pem = Written([&](BIO* bio) {
        return PEM_write_bio(bio, "CERTIFICATE REQUEST", "", der, size) > 0 ? 1 : 0;
      });
      der[at] = static_cast<unsigned char>(der[at] ^ flip);
      const Result<std::string> refused =
          Sign(fleet.authority, {pem, "node.csr"}, {kThird, {}}, 1, kNow);
      ASSERT_FALSE(refused) << at << " " << flip;
      EXPECT_EQ(refused.error().code, ErrorCode::kData);
      EXPECT_THAT(refused.error().message, StartsWith("node.csr: "));
    }
  }
  OPENSSL_free(der);
}

// Somebody else's public key under one's own signature: no proof of having the private one.
TEST(Sign, RefusesAKeyThatDidNotSignTheRequest) {
  const Fleet fleet;
  const RequestPtr request(PEM_read_bio_X509_REQ(Reader(MakeRequest({kThird, {}})->request).get(),
                                                 nullptr, nullptr, nullptr));
  X509_REQ_set_pubkey(request.get(), KeyPtr(EVP_EC_gen("P-256")).get());
  const std::string pem =
      Written([&](BIO* bio) { return PEM_write_bio_X509_REQ(bio, request.get()); });
  EXPECT_EQ(Sign(fleet.authority, {pem, "node.csr"}, {kThird, {}}, 1, kNow).error().message,
            "node.csr: signature: is not of the request's own key, the file was altered");
}

TEST(Sign, RefusesKeysOfOtherKinds) {
  const Fleet fleet;
  const auto problem = [&](EVP_PKEY* key) {
    const KeyPtr owner(key);
    return Sign(fleet.authority, {GreedyRequest(key), "node.csr"}, {kThird, {}}, 1, kNow)
        .error()
        .message;
  };
  EXPECT_EQ(problem(EVP_EC_gen("P-384")), "node.csr: key = secp384r1: must be of the curve P-256");
  EXPECT_EQ(problem(EVP_RSA_gen(2048)), "node.csr: key = RSA: must be of the curve P-256");
}

// ---- What is wrong is said ----------------------------------------------------------------------

TEST(CheckPair, TakesWhatBelongsTogether) {
  const Fleet fleet;
  EXPECT_EQ(fleet.Check(fleet.learner_key, fleet.learner), "good");
  EXPECT_EQ(fleet.Check(fleet.learner_key, fleet.learner, kNow, kThird), "good");
  EXPECT_EQ(fleet.Check(fleet.cloud_key, fleet.cloud, kNow, LearnerId::Cloud()), "good");
  EXPECT_EQ(CheckPair(fleet.learner_key, fleet.learner, fleet.ca(), fleet.crl, kThird, kNow)->peer,
            kThird);
}

TEST(CheckPair, NamesAnotherKey) {
  const Fleet fleet;
  EXPECT_EQ(fleet.Check(fleet.cloud_key, fleet.learner), "node.key: is not the key of node.pem");
}

// Authority, certificate and list all begin with a day of their own, in this order.
TEST(CheckPair, NamesTheEndsOfTime) {
  Fleet fleet;
  const NewRequest made = *MakeRequest({kThird, {}});
  const Pem certificate{
      *Sign(fleet.authority, {made.request, "node.csr"}, {kThird, {}}, 365, kNow + kDay),
      "node.pem"};
  fleet.crl.text = *MakeRevocationList(fleet.authority, {}, kNow + 2 * kDay);
  const auto at = [&](std::int64_t now) {
    return fleet.Check({made.key, "node.key"}, certificate, now);
  };
  EXPECT_EQ(at(kNow + 2 * kDay - kClockSkew), "good");
  EXPECT_EQ(at(kNow + 2 * kDay - kClockSkew - 1),
            "crl.pem: is not valid yet, the clock says 2027-01-17 06:59:59 UTC");
  EXPECT_EQ(at(kNow + kDay - kClockSkew - 1),
            "node.pem: not_before = 2027-01-16 07:00:00 UTC: is not valid yet, the clock says "
            "2027-01-16 06:59:59 UTC");
  EXPECT_EQ(at(kNow - kClockSkew - 1),
            "ca.pem: not_before = 2027-01-15 07:00:00 UTC: is not valid yet, the clock says "
            "2027-01-15 06:59:59 UTC");
  EXPECT_EQ(at(kNow + 366 * kDay - 1), "good");
  EXPECT_EQ(at(kNow + 366 * kDay + 1),
            "node.pem: not_after = 2028-01-16 08:00:00 UTC: has expired, the clock says "
            "2028-01-16 08:00:01 UTC");
}

// A certificate outlives its authority only if another program signed it.
TEST(CheckPair, NamesAnAuthorityThatHasExpired) {
  const Fleet fleet;
  const CertificatePtr certificate = ParsedCertificate(fleet.learner.text);
  ASSERT_NE(ASN1_TIME_set(X509_getm_notAfter(certificate.get()), kNow + 5000 * kDay), nullptr);
  EXPECT_THAT(fleet.Check(fleet.learner_key, fleet.Resigned(certificate.get()),
                          kNow + (kAuthorityDays + 1) * kDay),
              StartsWith("ca.pem: not_after = 2037-01-12 08:00:00 UTC: has expired"));
}

TEST(CheckPair, NamesAnotherAuthority) {
  const Fleet fleet;
  const Fleet other("Other fleet");
  const Fleet twin;  // has the same name and another key
  EXPECT_EQ(fleet.Check(other.learner_key, other.learner),
            "node.pem: issuer = Other fleet: was signed by another authority than ca.pem");
  EXPECT_EQ(fleet.Check(twin.learner_key, twin.learner),
            "node.pem: issuer = Acme fleet: was signed by another authority than ca.pem");
  for (const Fleet* const stranger : {&other, &twin}) {
    const Result<CertificateInfo> checked =
        CheckCertificate(fleet.learner, fleet.ca(), stranger->crl, kThird, kNow);
    ASSERT_FALSE(checked);
    EXPECT_THAT(checked.error().message,
                HasSubstr("fleet: is the list of another authority than ca.pem"));
  }
  EXPECT_EQ(CheckCertificate(fleet.learner, fleet.cloud, fleet.crl, kThird, kNow).error().message,
            "node.pem: must be an authority's certificate");
}

TEST(CheckPair, NamesARevokedCertificate) {
  Fleet fleet;
  const std::string serial = ReadCertificate(fleet.learner)->serial;
  const std::vector<Revocation> revoked = {{serial, kNow + 5}};
  fleet.crl.text = *MakeRevocationList(fleet.authority, revoked, kNow + 5);
  EXPECT_EQ(fleet.Check(fleet.learner_key, fleet.learner, kNow + 5),
            "node.pem: serial = " + serial + ": was revoked (crl.pem)");
  EXPECT_EQ(Verdict(fleet, fleet.learner, X509_PURPOSE_SSL_CLIENT), "certificate revoked");
  EXPECT_EQ(fleet.Check(fleet.cloud_key, fleet.cloud, kNow + 5), "good");
}

TEST(CheckPair, NamesAnotherPeer) {
  const Fleet fleet;
  EXPECT_EQ(fleet.Check(fleet.cloud_key, fleet.cloud, kNow, kThird),
            "node.pem: subject = cloud: must be learner-3");
  EXPECT_EQ(fleet.Check(fleet.learner_key, fleet.learner, kNow, LearnerId(3)),
            "node.pem: subject = learner-3: must be learner-4");
  EXPECT_EQ(fleet.Check(fleet.authority.key, fleet.ca()),
            "ca.pem: subject = Acme fleet: must be cloud or learner-N");
}

TEST(CheckPair, NamesAnotherPurpose) {
  const Fleet fleet;
  EXPECT_EQ(fleet.Check(fleet.learner_key, fleet.WithPurpose("clientAuth")), "good");
  for (const char* const purpose :
       {"serverAuth", "codeSigning", static_cast<const char*>(nullptr)}) {
    EXPECT_EQ(fleet.Check(fleet.learner_key, fleet.WithPurpose(purpose)),
              "node.pem: purpose: learner-3 needs a certificate of a TLS client, this is none");
  }
}

// Names that begin like a peer's, to a reader that stops at a zero or takes the first of two.
TEST(CheckPair, TakesNoNameForHalfOfIt) {
  const Fleet fleet;
  const std::string zero("learner-3\0.evil", 15);
  for (const auto& names :
       {std::vector<std::string>{zero}, std::vector<std::string>{"learner-3", "cloud"},
        std::vector<std::string>{"learner-3\033[2J\n"}}) {
    const CertificatePtr certificate = ParsedCertificate(fleet.learner.text);
    X509_NAME* const name = X509_NAME_new();
    for (const std::string& text : names) {
      X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(text.data()),
                                 static_cast<int>(text.size()), -1, 0);
    }
    X509_set_subject_name(certificate.get(), name);
    X509_NAME_free(name);
    const Pem pem = fleet.Resigned(certificate.get());
    const Result<CertificateInfo> info = ReadCertificate(pem);
    ASSERT_TRUE(info);
    EXPECT_EQ(info->peer, std::nullopt);
    EXPECT_EQ(Printable(info->subject, 200), info->subject);
    EXPECT_THAT(fleet.Check(fleet.learner_key, pem), HasSubstr(": must be cloud or learner-N"));
  }
}

TEST(ReadIssued, RefusesWhatAnotherAuthoritySigned) {
  const Fleet fleet;
  EXPECT_EQ(ReadIssued(fleet.learner, fleet.ca())->peer, kThird);
  EXPECT_EQ(ReadIssued(fleet.learner, Fleet().ca()).error().message,
            "node.pem: issuer = Acme fleet: was signed by another authority than ca.pem");
}

// ---- Revocation lists ---------------------------------------------------------------------------

TEST(MakeRevocationList, GivesBackWhatWasRevoked) {
  const Fleet fleet;
  const std::vector<Revocation> revoked = {{std::string(31, '0') + "1", kNow},
                                           {std::string(32, 'f'), kNow + 7}};
  const RevocationListInfo info =
      *ReadRevocationList({*MakeRevocationList(fleet.authority, revoked, kNow + 7), "crl.pem"});
  EXPECT_EQ(info.issuer, "Acme fleet");
  EXPECT_EQ(info.made, kNow + 7 - kClockSkew);
  EXPECT_EQ(info.until, kNow + kAuthorityDays * kDay);
  EXPECT_THAT(info.revoked, ElementsAre(revoked[0], revoked[1]));
}

TEST(MakeRevocationList, RefusesASerialThatIsNone) {
  const Fleet fleet;
  for (const char* const serial : {"", "-1", "xyz", "12 ", "1g"}) {
    const std::vector<Revocation> revoked = {{serial, kNow}};
    EXPECT_EQ(MakeRevocationList(fleet.authority, revoked, kNow).error().message,
              fmt::format("serial = {}: must be hexadecimal digits", serial));
  }
}

// ---- Malformed files ----------------------------------------------------------------------------

TEST(ReadPem, RefusesEveryPrefix) {
  const Fleet fleet;
  const NewRequest made = *MakeRequest({kThird, {}});
  const auto each_prefix = [](const std::string& text, const auto& read) {
    // Without its last line break a file is whole.
    for (std::size_t size = 0; size + 1 < text.size(); ++size) {
      const auto result = read(Pem{text.substr(0, size), "x.pem"});
      ASSERT_FALSE(result) << size << " of " << text.size();
      EXPECT_EQ(result.error().code, ErrorCode::kData);
      EXPECT_THAT(result.error().message, StartsWith("x.pem: holds no whole "));
      EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
    }
  };
  each_prefix(fleet.learner.text, ReadCertificate);
  each_prefix(made.request, ReadRequest);
  each_prefix(fleet.crl.text, ReadRevocationList);
  each_prefix(fleet.learner_key.text, [&](const Pem& key) {
    return CheckPair(key, fleet.learner, fleet.ca(), fleet.crl, kThird, kNow);
  });
}

// Whatever bit is flipped, it is one line or a certificate that does not verify, or it changes
// nothing (white space, and bits of base64 that do not count).
TEST(ReadPem, SurvivesEveryFlippedBit) {
  const Fleet fleet;
  const std::string fingerprint = ReadCertificate(fleet.learner)->fingerprint;
  for (std::size_t at = 0; at < fleet.learner.text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Pem altered = fleet.learner;
      altered.text[at] = static_cast<char>(altered.text[at] ^ (1 << bit));
      const Result<CertificateInfo> checked =
          CheckCertificate(altered, fleet.ca(), fleet.crl, kThird, kNow);
      if (checked) {
        EXPECT_EQ(checked->fingerprint, fingerprint) << at << " " << bit;
      } else {
        EXPECT_EQ(Printable(checked.error().message, 1000), checked.error().message);
      }
    }
  }
}

TEST(ReadPem, RefusesOtherThingsThanTheOneThatIsWanted) {
  const Fleet fleet;
  for (const std::string& text : {std::string(), std::string("hello\n"), std::string(5000, '\0'),
                                  fleet.learner_key.text, fleet.crl.text}) {
    EXPECT_EQ(ReadCertificate({text, "x"}).error().message,
              "x: holds no whole certificate in PEM form");
  }
  EXPECT_EQ(ReadCertificate({fleet.learner.text + fleet.ca().text, "x"}).error().message,
            "x: must hold one certificate and nothing after it");
  EXPECT_TRUE(ReadCertificate({"for learner 3:\n" + fleet.learner.text + "\n", "x"}));
  EXPECT_EQ(ReadCertificate({std::string((16 << 20) + 1, 'a'), "x"}).error().message,
            "x: larger than the 16777216 bytes allowed");
}

// libcrypto would ask for the passphrase at the terminal and wait.
TEST(ReadPem, RefusesAnEncryptedKeyWithoutAsking) {
  const Fleet fleet;
  const KeyPtr key = ParsedKey(fleet.learner_key.text);
  char passphrase[] = "secret";
  const auto encrypted = [&](auto write) {
    return Written([&](BIO* bio) {
      return write(bio, key.get(), EVP_aes_128_cbc(), reinterpret_cast<unsigned char*>(passphrase),
                   6, nullptr, nullptr);
    });
  };
  for (const std::string& text :
       {encrypted(PEM_write_bio_PrivateKey), encrypted(PEM_write_bio_PrivateKey_traditional)}) {
    EXPECT_EQ(fleet.Check({text, "node.key"}, fleet.learner),
              "node.key: is encrypted: must be without a passphrase");
  }
}

// A TLS connection of this thread would take our errors for its own.
TEST(ReadPem, LeavesNoErrorsBehind) {
  ERR_clear_error();
  const Fleet fleet;
  EXPECT_FALSE(ReadCertificate({fleet.learner.text.substr(0, 200), "x"}));
  EXPECT_FALSE(ReadRequest({"x", "x"}));
  EXPECT_FALSE(ReadRevocationList({"x", "x"}));
  EXPECT_NE(fleet.Check(fleet.cloud_key, fleet.learner), "good");
  EXPECT_NE(fleet.Check(fleet.learner_key, fleet.learner, 0), "good");
  EXPECT_FALSE(ReadIssued(fleet.learner, Fleet().ca()));
  EXPECT_EQ(ERR_peek_error(), 0U);
}

}  // namespace
}  // namespace fedgen
