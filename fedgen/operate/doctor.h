// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fedgen/fuse/knowledge.h"

namespace fedgen {

// What keeps a Cloud or a learner from working, and how to mend it. It looks and changes nothing.

/// What is to be looked at; what is empty is not.
struct DoctorOptions {
  std::string tls_directory;
  std::optional<LearnerId> who{};     // whose the certificate must be
  std::vector<std::string> clouds{};  // host:port, to be reached with that certificate
  std::string listen{};               // host:port that a Cloud is to listen at
  std::string store{};                // sqlite:PATH
  std::vector<std::string> files{};   // that must be readable, such as RUN.toml
  std::optional<std::int64_t> now{};  // the clock of this machine; none: as it is
};

enum class Health { kOk, kWarning, kBad };

struct Finding {
  std::string what;  // certificate, clock, cloud, listen, store, disk, file
  Health health = Health::kOk;
  std::string found;     // what is well, or what the problem is
  std::string remedy{};  // if there is one

  bool operator==(const Finding&) const = default;
};

/// Binds to host:port and lets go: the problem, or nothing.
std::string TryToListen(const std::string& listen);

std::vector<Finding> Diagnose(const DoctorOptions& options);

/// For people, one or two lines each.
std::string FindingsText(const std::vector<Finding>& findings);

}  // namespace fedgen
