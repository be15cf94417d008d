// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "fedgen/base/result.h"
#include "fedgen/run/run_files.h"
#include "fedgen/run/train.h"

namespace fedgen {

// A run whose learners and Cloud all live in this process, in a directory of its own: started,
// recorded round by round, continued after a kill, and concluded.

struct LocalRun {
  RunFiles files;
  RunIdentity identity;
  Experiment experiment;
};

/// Makes the directory of a new run. `config_name` is for people.
Result<LocalRun> StartRun(Config config, std::uint64_t seed, const std::string& config_name,
                          const std::string& directory);

/// A run that was started before, as it was started.
Result<LocalRun> ReopenRun(const std::string& directory);

/// Trains from where the run is, records every round, races and certifies, and writes the results.
/// A run that is refused is left as it is. The listeners hear of each round after it was recorded.
Result<RunSummary> Execute(const LocalRun& run, RunListeners listeners);

}  // namespace fedgen
