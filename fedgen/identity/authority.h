// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fedgen/base/result.h"
#include "fedgen/identity/pki.h"

namespace fedgen {

// The identity of a federation in files.
//
//   ca/ca.key               the authority's private key, 0600: the operator's alone
//   ca/ca.pem               its certificate: everybody's
//   ca/crl.pem              what it has revoked: the Cloud's, and whoever wants to check
//   ca/issued/index.jsonl   a line for each certificate; this is what the authority knows
//   ca/issued/SERIAL.pem    copies of the certificates
//
//   node/node.key           a node's private key, 0600: never leaves its machine
//   node/node.csr           its request, for the operator
//   node/node.pem           its certificate, from the operator (tls.h reads what is here)
//
// One process at a time works on an authority; a second one is refused. If one is killed, the next
// finds a state in which nothing is valid that cannot be revoked (authority.cc says why).

/// A line of the index.
struct IssuedCertificate {
  LearnerId who;
  std::string serial;  // hexadecimal, 32 digits
  std::int64_t not_before = 0;
  std::int64_t not_after = 0;
  std::string fingerprint;  // SHA-256 of the certificate
  std::string key;          // SHA-256 of its public key
  std::optional<std::int64_t> revoked{};

  bool operator==(const IssuedCertificate&) const = default;
};

/// A new authority in a directory that has none.
Result<CertificateInfo> CreateAuthority(const std::string& directory, const std::string& name,
                                        std::int64_t now);

/// What an authority has signed, oldest first.
Result<std::vector<IssuedCertificate>> ReadIndex(const std::string& directory);

/// The same from a text; `name` is the file that messages name.
Result<std::vector<IssuedCertificate>> ParseIndex(std::string_view text, const std::string& name);

/// Whether a peer that has a certificate, neither expired nor revoked, gets another: kAgain is how
/// certificates are renewed. The old one stays valid until it ends or is revoked.
enum class IfIssued { kRefuse, kAgain };

/// Signs a request and remembers it. Refuses, even with kAgain, a key that was revoked or that is
/// another peer's.
Result<std::string> SignRequest(const std::string& directory, const Pem& request,
                                const Identity& identity, int days, IfIssued if_issued,
                                std::int64_t now);

/// Takes back all certificates of a peer. The result are those that were not revoked before; if
/// there are none, the list is written again nevertheless.
Result<std::vector<IssuedCertificate>> RevokePeer(const std::string& directory, LearnerId who,
                                                  std::int64_t now);

/// Takes back one certificate of this authority, also one that the index has lost.
Result<std::vector<IssuedCertificate>> RevokeCertificate(const std::string& directory,
                                                         const Pem& certificate, std::int64_t now);

/// Makes node.key and node.csr. A key that is there is never replaced.
Result<RequestInfo> WriteRequest(const std::string& directory, const Identity& asked);

/// For tests and federations on one machine: ca.pem and crl.pem, and a directory for everybody
/// (tls.h), cloud/ (for localhost, 127.0.0.1 and ::1) and learner-N/. The authority's key is thrown
/// away, so nothing can be added or revoked. Refuses a directory that has such files.
Result<void> MakeThrowAway(const std::string& directory, int num_learners, std::int64_t now,
                           int days = 30);

}  // namespace fedgen
