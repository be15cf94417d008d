// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "fedgen/base/result.h"
#include "fedgen/federation/remote_exchange.h"
#include "fedgen/run/local_run.h"

namespace fedgen {

// One learner of a federation, in a process and a directory of its own.
//
//   RemoteExchange exchange(options);
//   const LearnerRun run = FEDGEN_TRY(EnterRun(settings, exchange));   // new, or where it was
//   const RunSummary summary = FEDGEN_TRY(Execute(run, exchange, listeners));
//
// The directory is that of fedgen train (run/run_files.h) without the Cloud, and
//
//   shared.toml   what the run shares, as the Cloud said when the learner came
//   secret.key    what its worlds follow from; nobody else's to read

struct LearnerRunSettings {
  LearnerId learner;
  std::string run;        // its name; empty: the only one that the Cloud serves
  std::string own;        // MINE.toml
  std::string agreed;     // RUN.toml as the owner has agreed to it; empty: as the Cloud says
  std::string directory;  // of this learner in this run; made if it is not there; empty: by name
  std::string secret;     // a file outside of the directory; empty: in it
  Certifying certifying = Certifying::kYes;  // of the winner, at home
};

struct LearnerRun {
  LocalRun local;
  Seat seat;
  std::string run;  // its name
  Certifying certifying = Certifying::kYes;
  bool resumed = false;
};

/// Whether this is the directory of such a learner.
bool IsLearnersHome(const std::string& directory);

/// Asks the Cloud what is shared, reads the learner's own file, and makes the directory, or finds
/// that the one that is there was begun with the same.
Result<LearnerRun> EnterRun(const LearnerRunSettings& settings, RemoteExchange& exchange);

/// Trains, races and certifies. Where all learners have one task, each drives its part of the
/// race's worlds; otherwise everybody races in its own. Either way the winner is policies/best.fgp.
Result<RunSummary> Execute(const LearnerRun& run, Exchange& exchange, RunListeners listeners);

}  // namespace fedgen
