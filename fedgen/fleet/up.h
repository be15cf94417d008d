// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fedgen/base/result.h"
#include "fedgen/run/config.h"
#include "fedgen/run/run_files.h"

namespace fedgen {

// A Cloud and learners on this machine, each a process of its own, with certificates that live as
// long as the run: a federation to try, from the file of a run in one process, and with its bytes.
//
//   DIR/config.toml             the configuration; DIR/federation.json: the seed
//   DIR/run.toml                what all share
//   DIR/mine/learner-N.toml     what is learner N's own
//   DIR/secrets/learner-N.key   what its worlds follow from: those of fedgen train with this seed
//   DIR/tls/                    certificates
//   DIR/cloud/                  the Cloud's store and log
//   DIR/learner-N/, .log        the learner's run (run/run_files.h) and log
//   DIR/policies/best.fgp       the winner, as fedgen train has it

struct Federation {
  std::string directory;
  int num_learners = 0;
  std::uint64_t seed = 1;
};

/// Makes the files of a federation, all at once; refuses a directory that exists.
Result<Federation> PrepareFederation(const Config& config, std::uint64_t seed,
                                     const std::string& directory);

/// One that was prepared before, and its configuration.
struct FoundFederation {
  Federation federation;
  Config config;
};
Result<FoundFederation> FindFederation(const std::string& directory);

/// The words that start one of its processes: the verb and its flags, without the program.
std::vector<std::string> CloudWords(const Federation& federation, int port);
std::vector<std::string> LearnerWords(const Federation& federation, int learner, int port);

/// A process that one of these words started.
struct Child {
  std::string name;  // "cloud", "learner-3"
  std::vector<std::string> words;
  int pid = 0;
  std::uintmax_t log_begin = 0;  // bytes of its log that are older
};

/// Refuses a federation that another `fedgen up` runs; while the lock lives others are refused.
Result<RunLock> LockFederation(const Federation& federation);

/// Starts `program` with words. Its output goes to the end of the file `log`; it ends with this
/// process.
Result<int> StartProcess(const std::string& program, const std::vector<std::string>& words,
                         const std::string& log);

/// Tells processes to end (SIGTERM) and waits until they have; kills who has not after so long.
void EndProcesses(std::span<const int> processes, std::chrono::milliseconds patience);

/// A port of loopback that nobody has now.
Result<int> FindFreePort();

}  // namespace fedgen
