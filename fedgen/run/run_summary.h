// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fedgen/certify/certificate.h"
#include "fedgen/run/guarantees.h"
#include "fedgen/run/race.h"

namespace fedgen {

// How a training run ended, for people and for programs. It holds no clock time: the same seed
// gives the same bytes.

struct RunSummary {
  std::string program;      // with its version
  std::string config_name;  // the file the run was started with
  std::uint64_t seed = 1;
  Algorithm algorithm = Algorithm::kFedGen;
  Ending ending = Ending::kNotYet;
  int rounds = 0;             // that were run
  std::int64_t episodes = 0;  // of training
  std::vector<LearnerState> learners;
  std::optional<Submission> incumbent;
  std::vector<Racer> race;
  int race_starts = 1;                 // in each of its worlds, >= 1
  std::size_t winner = 0;              // index into race
  std::optional<Baselines> baselines;  // in the worlds of the race
  std::vector<Guarantee> guarantees;
  std::vector<std::string> warnings;
  std::optional<Certificate> certificate;
};

std::string_view EndingText(Ending ending);

/// One JSON object, several lines.
std::string RunSummaryJson(const RunSummary& summary);

}  // namespace fedgen
