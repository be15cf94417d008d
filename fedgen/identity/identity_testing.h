// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "fedgen/identity/pki.h"
#include "fedgen/identity/tls.h"

namespace fedgen {

// Certificates that live as long as a test.

inline std::int64_t SystemSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

inline Authority MakeTestAuthority(const std::string& name) {
  return *MakeAuthority(name, 30, SystemSeconds());
}

/// What the authority gives to a learner or, with the address of loopback, to the Cloud.
inline TlsIdentity MakeTestIdentity(const Authority& authority, LearnerId who, int days = 7,
                                    std::int64_t now = SystemSeconds()) {
  Identity identity{who, {}};
  if (who.is_cloud()) identity.hosts = {"127.0.0.1"};
  const NewRequest made = *MakeRequest(identity);
  const std::string certificate = *Sign(authority, {made.request, "request"}, identity, days, now);
  return {authority.certificate.text, certificate, made.key};
}

}  // namespace fedgen
