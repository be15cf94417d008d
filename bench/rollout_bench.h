// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fedgen/base/result.h"

namespace fedgen {

// How many steps per second whole episodes run at, on one thread, against the same episodes on
// Bullet and in a plain scalar loop, and against the cost of the policy's multiplications alone.
//
// Machines are noisy. The contestants take turns in many short slices, timed by the processor time
// of their thread, and the speed of each is that of its best slice: what other programs do to a
// slice does not count. Two threads against one is a matter of the clock on the wall.

struct RolloutBenchOptions {
  std::int64_t num_worlds = 4000;  // drawn before any clock starts; >= 1
  double seconds = 4;              // for each contestant and net, in (0, 3600]
};

struct RolloutBenchRow {
  std::string net;
  double steps_per_second = 0;  // ours, one thread
  double bullet_steps_per_second = 0;
  double scalar_steps_per_second = 0;
  double floor_steps_per_second = 0;  // samples through the network's multiplications
  double two_threads = 0;             // speed on two threads / on one
  // Of the worlds that Bullet had time for:
  std::int64_t bullet_worlds = 0;
  double outcome_agreement = 0;  // share of episodes with Bullet's outcome
  double safe_rate = 0;          // share of episodes that arrive
  double bullet_safe_rate = 0;
  // Of all worlds:
  std::int64_t worlds = 0;
  double outcome_agreement_scalar = 0;  // share of episodes with the scalar loop's outcome
  std::string floor_choice;             // how Eigen multiplied

  double ratio_bullet() const { return steps_per_second / bullet_steps_per_second; }
  double ratio_scalar() const { return steps_per_second / scalar_steps_per_second; }
  /// Cost of the whole step / cost of the network's multiplications.
  double ratio_floor() const { return floor_steps_per_second / steps_per_second; }
};

/// One row for each of kBenchNets. Fails if a policy file cannot be read or the processor has no
/// AVX2.
Result<std::vector<RolloutBenchRow>> RunRolloutBench(const RolloutBenchOptions& options);

/// One JSON object, {"nets": [{"net": "24-20-20-20-1", "steps_per_second": ...}, ...]}.
std::string RolloutBenchToJson(const std::vector<RolloutBenchRow>& rows);

/// The same for people: an aligned table, one column for each net.
std::string RolloutBenchToTable(const std::vector<RolloutBenchRow>& rows);

}  // namespace fedgen
