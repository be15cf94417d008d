// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "fedgen/rollout/rollout.h"

namespace fedgen {

// How a policy does on many episodes, as sums. Memory does not grow with their number.

struct Tally {
  std::int64_t episodes = 0;
  std::int64_t reached = 0;
  std::int64_t collided = 0;
  std::int64_t timed_out = 0;
  std::int64_t steps = 0;
  double cost_sum = 0;           // of J
  double goal_distance_sum = 0;  // m, of rho at the end
  double arrival_time_sum = 0;   // s, over those that arrived
  // Order-free fingerprint of every episode's outcome, length and final distance, bit by bit.
  std::uint64_t outcome_hash = 0;

  void Add(const EpisodeOptions& options, std::int64_t index, const Episode& episode);
};

double SafeRate(const Tally& tally);  // share of safe arrivals; requires episodes >= 1
double MeanCost(const Tally& tally);  // E[J]; requires episodes >= 1

struct EvaluateOptions {
  std::int64_t num_worlds = 10000;  // >= 1
  int starts_per_world = 1;         // >= 1
  int num_threads = 1;              // >= 1
  Kernel kernel = Kernel::kScalar;
  int chunk = 512;  // episodes a thread takes at a time at most; changes no bit
  int num_slots = Rollout::kDefaultSlots;
};

/// Runs every start of every world. on_progress (may be empty) is called with the number of
/// episodes done, from one thread at a time. Sums are taken in order of the episode's index, and
/// on_episode (may be empty) is called in that order too, for who needs more than the sums.
Tally Evaluate(
    const Task& task, const Policy& policy, const WorldSource& worlds,
    const EvaluateOptions& options, const std::function<void(std::int64_t done)>& on_progress = {},
    const std::function<void(std::int64_t index, const Episode& episode)>& on_episode = {});

}  // namespace fedgen
