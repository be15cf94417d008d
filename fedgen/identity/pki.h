// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fedgen/base/result.h"
#include "fedgen/fuse/knowledge.h"

namespace fedgen {

// Who is who in a federation: X.509 certificates of an authority that the operator runs.
//
//   const NewRequest node = FEDGEN_TRY(MakeRequest({LearnerId(2), {}}));      // at the learner's
//   const std::string certificate = FEDGEN_TRY(                              // at the operator's
//       Sign(authority, {node.request, "node.csr"}, {LearnerId(2), {}}, 365, now));
//   FEDGEN_TRY(CheckPair(key, certificate, ca, crl, LearnerId(2), now));      // anywhere
//
// A private key never leaves the machine that made it. The authority decides what a certificate
// says: of a request it takes the public key and nothing else.
//
// Here texts come in and texts go out; fedgen/identity/authority.h keeps them in files. Times are
// seconds since 1970 (UTC), `now` is an argument. All keys are ECDSA P-256, all signatures SHA-256.

/// A text in PEM form, and the file that messages name.
struct Pem {
  std::string text;
  std::string name;
};

// ---- Names --------------------------------------------------------------------------------------

/// "learner-3" (numbers from 1), or "cloud".
std::string CommonNameOf(LearnerId who);

/// The inverse, for exactly these names: no leading zeros, no spaces, numbers in 1..4294967295.
Result<LearnerId> PeerOf(const std::string& common_name);

/// What a certificate says of its owner.
struct Identity {
  LearnerId who;
  std::vector<std::string> hosts{};  // DNS names and IP addresses: of the Cloud, which needs one
};

// ---- What is in a file --------------------------------------------------------------------------

struct CertificateInfo {
  std::optional<LearnerId> peer;  // none: an authority, or a stranger
  std::string subject;            // for people
  std::string issuer;             // for people
  std::int64_t not_before = 0;
  std::int64_t not_after = 0;
  std::string serial;              // hexadecimal; 32 digits if it is ours
  std::string fingerprint;         // SHA-256 of the certificate, 64 hexadecimal digits
  std::string key;                 // SHA-256 of the public key, 64 hexadecimal digits
  std::vector<std::string> hosts;  // for people
};
Result<CertificateInfo> ReadCertificate(const Pem& certificate);

/// The same of one that this authority has signed, or an error.
Result<CertificateInfo> ReadIssued(const Pem& certificate, const Pem& authority);

/// What a request asks for, which binds nobody. Its signature is checked: who made it has the key.
struct RequestInfo {
  std::string subject;             // for people
  std::string key;                 // SHA-256 of the public key, to be compared by telephone
  std::vector<std::string> hosts;  // for people
};
Result<RequestInfo> ReadRequest(const Pem& request);

struct Revocation {
  std::string serial;  // hexadecimal
  std::int64_t time = 0;
  /// Who has left the federation with it; none if its owner had another certificate when the list
  /// was made, as after a renewal.
  std::optional<LearnerId> gone{};

  bool operator==(const Revocation&) const = default;
};

struct RevocationListInfo {
  std::string issuer;  // for people
  std::int64_t made = 0;
  std::int64_t until = 0;
  std::vector<Revocation> revoked;
};
Result<RevocationListInfo> ReadRevocationList(const Pem& list);

/// The same of one that this authority has signed, or an error.
Result<RevocationListInfo> ReadIssuedList(const Pem& list, const Pem& authority);

/// "2026-11-18 08:12:03 UTC".
std::string TimeText(std::int64_t time);

// ---- Making -------------------------------------------------------------------------------------

/// What it takes to sign.
struct Authority {
  Pem key;
  Pem certificate;
};

/// A new authority that signs itself: 1 to 64 printable characters of a name, `days` of validity.
Result<Authority> MakeAuthority(const std::string& name, int days, std::int64_t now);

constexpr int kAuthorityDays = 3650;
constexpr int kCertificateDays = 365;
/// Certificates begin this much before they were made (s), for clocks that are late.
constexpr std::int64_t kClockSkew = 3600;

struct NewRequest {
  std::string key;
  std::string request;
};
Result<NewRequest> MakeRequest(const Identity& asked);

/// A certificate of the request's public key that says `identity`, whatever the request asks for:
/// of a learner for TLS clients, of the Cloud for servers and clients. Refuses a request that the
/// owner of the key did not sign, and `days` beyond the authority's own end.
Result<std::string> Sign(const Authority& authority, const Pem& request, const Identity& identity,
                         int days, std::int64_t now);

/// The list of what the authority takes back. It is good until the authority ends, so that a
/// federation does not stop because nobody renewed the list; a new one must reach the Cloud at
/// once.
Result<std::string> MakeRevocationList(const Authority& authority,
                                       std::span<const Revocation> revoked, std::int64_t now);

// ---- Checking -----------------------------------------------------------------------------------

/// Whether a certificate may be relied on: signed by this authority, valid now, not revoked, made
/// for what its owner does. `revocations`: the authority's list; none: no list is asked.
/// `expected`: whose it must be; none: anybody's in the federation. The error says which of these
/// is wrong.
Result<CertificateInfo> CheckCertificate(const Pem& certificate, const Pem& authority,
                                         const std::optional<Pem>& revocations,
                                         std::optional<LearnerId> expected, std::int64_t now);

/// The same, and that the private key is the certificate's.
Result<CertificateInfo> CheckPair(const Pem& key, const Pem& certificate, const Pem& authority,
                                  const std::optional<Pem>& revocations,
                                  std::optional<LearnerId> expected, std::int64_t now);

}  // namespace fedgen
