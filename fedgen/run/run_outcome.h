// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fedgen/rollout/evaluate.h"

namespace fedgen {

// What one training run came to, on worlds that trained and chose nothing: the numbers that tables
// over many runs are made of. As text it is kept between runs of the program, with a checksum, so
// that work which was done once is not done again.

/// One learner. A tally that was not asked for has no episodes.
struct LearnerOutcome {
  double bias = 0;     // b, >= 0
  int first_stop = 0;  // round of its first stop; 0 if it never stopped
  int adoptions = 0;
  Tally initial;  // of the policy it began with
  Tally local;    // where it first stopped; of its final policy if it never stopped
  Tally final;    // where it ended
};

struct RunOutcome {
  int rounds = 0;
  std::int64_t episodes = 0;  // spent in training
  double seconds = 0;         // wall clock of the training
  int starts_per_world = 1;
  std::vector<LearnerOutcome> learners;
  Tally winner;  // of the race among the finals; without episodes if there was none

  int adoptions() const;
};

/// Whether a final policy counts as stuck: it arrives in fewer than half of the worlds.
bool IsStuck(const Tally& tally);

std::string RunOutcomeToText(const RunOutcome& outcome);

/// What the text says; nothing if it is not, to the last byte, what RunOutcomeToText wrote.
std::optional<RunOutcome> RunOutcomeFromText(std::string_view text);

}  // namespace fedgen
