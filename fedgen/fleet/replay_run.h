// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "fedgen/base/kernel.h"
#include "fedgen/base/result.h"
#include "fedgen/federation/run_log.h"
#include "fedgen/run/config.h"

namespace fedgen {

// A federation that was logged, once more in one process: who was silent, late or faster than
// others is in the log, so learners end with the bytes that they had. For who has all secrets: a
// federation of fedgen up, whose secrets follow from one seed.

struct ReplaySettings {
  Config config;           // of all learners, as fedgen up read it
  std::uint64_t seed = 1;  // as fedgen up had it
  RunLog log;
  std::string log_name;   // its file, in messages
  std::string directory;  // to be made: learner-N/ in it are those of the federation
  int num_threads = 1;    // of each learner; they run side by side
  Kernel kernel = BestKernel();
};

/// How many learners came to the end of the run; who left it, or was left out for good, stops where
/// the log has nothing more of it. An error if the log does not follow from the configuration and
/// the seed, or the run was not over when it was written.
Result<int> Replay(const ReplaySettings& settings);

}  // namespace fedgen
