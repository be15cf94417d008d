// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "fedgen/base/result.h"

namespace fedgen {

// What learning from samples costs: Forward and Backward (learn/network_kernel.h) through scattered
// samples, against the products alone as Eigen does them (bench/learning_floor.h). Both on one
// thread, in turns, best slice counts.

struct LearningBenchRow {
  std::string net;         // "28-32-32-1"
  std::string activation;  // "relu" or "tanh"
  double samples_per_second = 0;
  double floor_samples_per_second = 0;
  std::string floor_choice;

  /// Our time over the floor's.
  double ratio() const { return floor_samples_per_second / samples_per_second; }
};

/// A whole round of a learner of configs/default.toml: measuring, practising, all passes over the
/// samples. In seconds of one thread, but for `two_threads`.
struct LearningRoundRow {
  std::string policy, critic;  // "24-20-20-20-1"
  double samples = 0;          // of a round
  int epochs = 0;
  double rollout = 0;      // the same steps driven bare, without noise or notes
  double floor = 0;        // the products of all passes, and those of the critic's values
  double round = 0;        // the whole round
  double one_thread = 0;   // the same by the clock on the wall
  double two_threads = 0;  // by the clock on the wall

  /// What learning took besides driving, over the floor.
  double ratio() const { return (round - rollout) / floor; }
};

struct LearningBench {
  std::vector<LearningBenchRow> nets;
  LearningRoundRow round;
};

/// seconds: for each network, activation and contestant.
Result<LearningBench> RunLearningBench(double seconds);
std::string LearningBenchToJson(const LearningBench& bench);
std::string LearningBenchToTable(const LearningBench& bench);

}  // namespace fedgen
