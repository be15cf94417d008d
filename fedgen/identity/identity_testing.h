// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fedgen/base/file.h"
#include "fedgen/identity/pki.h"
#include "fedgen/identity/tls.h"

namespace fedgen {

// Certificates that live as long as a test.

inline Authority MakeTestAuthority(const std::string& name) {
  return *MakeAuthority(name, 30, SystemClock());
}

/// What the authority gives to a learner or, with the address of loopback, to the Cloud.
inline TlsIdentity MakeTestIdentity(const Authority& authority, LearnerId who, int days = 7,
                                    std::int64_t now = SystemClock()) {
  Identity identity{who, {}};
  if (who.is_cloud()) identity.hosts = {"127.0.0.1"};
  const NewRequest made = *MakeRequest(identity);
  const std::string certificate = *Sign(authority, {made.request, "request"}, identity, days, now);
  return {authority.certificate.text, certificate, made.key,
          *ReadCertificate({certificate, "node.pem"})};
}

/// Puts it into a directory, the key first, also in place of another; gives the directory back.
inline std::string WriteTestIdentity(const std::string& directory, const TlsIdentity& tls) {
  const auto write = [&](const char* name, const std::string& text, Access access) {
    EXPECT_TRUE(WriteFileAtomically(directory + name, text, IfExists::kReplace, access));
  };
  write("/ca.pem", tls.authority, Access::kUmask);
  write("/node.key", tls.key, Access::kOwner);
  write("/node.pem", tls.certificate, Access::kUmask);
  return directory;
}

/// The authority's list in a directory.
inline void WriteTestList(const std::string& directory, const Authority& authority,
                          const std::vector<Revocation>& revoked,
                          std::int64_t now = SystemClock()) {
  const std::string list = *MakeRevocationList(authority, revoked, now);
  EXPECT_TRUE(WriteFileAtomically(directory + "/crl.pem", list, IfExists::kReplace));
}

}  // namespace fedgen
