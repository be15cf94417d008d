// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fedgen/base/result.h"
#include "fedgen/federation/cloud_watcher.h"
#include "fedgen/federation/served_run.h"

namespace fedgen {

// What a Cloud tells about its runs to anybody with a certificate of the federation: names, rounds
// and hashes, no policy.

struct MemberStatus {
  LearnerId learner;
  int step = -1;  // the last in which it was heard (fuse/cloud.h); -1 before it joined
  bool settled = false;
  bool awaited = false;           // in the phase that the run is in
  std::optional<double> silence;  // s since its last message; none since the Cloud started
  std::string presence{};         // resting, left out, left, revoked; empty: it takes part
};

struct RunStatus {
  RunProgress progress;
  std::string ending;  // rounds, settled, episodes; empty while the run goes on
  /// The incumbent without its policy.
  std::optional<Submission> incumbent;
  std::vector<MemberStatus> members;  // those who are awaited first; at most kMostMembers

  static constexpr std::size_t kMostMembers = 1000;
};

struct CloudStatus {
  double now = 0;       // the Cloud's clock, s since 1970
  std::string version;  // of its program
  std::string peer;     // whom it takes the asker for
  std::vector<RunStatus> runs;
};

RunProgress ProgressOf(const ServedRun& run);
RunStatus StatusOf(const ServedRun& run);

/// Asks a Cloud. `run`: its name; empty for all.
Result<CloudStatus> FetchStatus(const std::string& address, const std::string& tls_directory,
                                const std::string& run,
                                std::chrono::milliseconds deadline = std::chrono::seconds(10));

}  // namespace fedgen
