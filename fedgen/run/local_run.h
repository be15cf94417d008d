// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fedgen/base/result.h"
#include "fedgen/run/experiment.h"
#include "fedgen/run/run_files.h"
#include "fedgen/run/train.h"

namespace fedgen {

// A run whose learners and Cloud all live in this process, in a directory of its own: started,
// recorded round by round, continued after a kill, and concluded.

struct LocalRun {
  RunFiles files;
  RunIdentity identity;
  Experiment experiment;
  bool extended = false;                // its number of rounds is not the one in its directory
  std::vector<std::string> warnings{};  // for people
};

/// Whether initial policies may have been made for another body (policy/policy.h).
enum class OtherBodies { kRefuse, kAllow };

/// Policies as the files that a configuration names say; one that may drive another body than its
/// own knows none.
struct GivenPolicies {
  std::map<std::uint32_t, Mlp> policies;  // of learners, by their index: theta_0
  std::optional<Mlp> teacher;             // whom drawn ones imitate
  std::vector<std::string> warnings;
};

/// Reads them, and puts them into the configuration's training, as policies for its body.
Result<GivenPolicies> LoadGivenPolicies(OtherBodies other_bodies, Config& config);

/// Makes the directory of a new run, with these files in it. `config_name` is for people.
Result<LocalRun> StartRun(Config config, std::uint64_t seed, const std::string& config_name,
                          const std::string& directory,
                          OtherBodies other_bodies = OtherBodies::kRefuse,
                          std::vector<FileToBegin> begin_with = {});

/// A run keeps copies of the policies that its configuration names: makes the configuration name
/// these, as that of the run's directory does.
void NameKeptPolicies(Config& config);

/// A run that was started before, as it was started; or, with `rounds` > 0, with that number of
/// rounds in all. Its directory is changed by Execute() only.
Result<LocalRun> ReopenRun(const std::string& directory, int rounds = 0);

/// Where a learner is whose Cloud and fellows may live elsewhere, when nothing is left to train.
struct Trained {
  Host host;
  Finalists finalists;
};

/// Trains the learners of these seats from where they are, with the others behind the exchange, and
/// records every round: all of Execute() up to the race, but for the Cloud. For the holder of the
/// run's lock.
Result<Trained> TrainSeats(const LocalRun& run, std::span<const Seat> seats, Exchange& exchange,
                           RunListeners listeners);

/// Writes what came of a run: the winner, the certificate, the summary.
Result<void> WriteResults(const LocalRun& run, const Finalists& finalists,
                          const RunSummary& summary);

/// Trains from where the run is, records every round, races and certifies, and writes the results.
/// A run that is refused is left as it is. One that is extended ends with the bytes of a run that
/// was started with SetRounds(). The listeners hear of each round after it was recorded.
Result<RunSummary> Execute(const LocalRun& run, RunListeners listeners);

}  // namespace fedgen
