// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "fedgen/base/result.h"

namespace fedgen {

// What a learner of configs/evolution.toml loses against bare episodes: steps per second of whole
// measurements (worlds drawn, directions drawn, members driven, gradient summed) against steps per
// second of one policy through many worlds. Both on one thread, in turns, best slice counts.

struct TrainingBenchRow {
  int worlds = 0;  // n_E
  int pairs = 0;
  double rollout_steps_per_second = 0;
  double training_steps_per_second = 0;
  double training_episodes_per_second = 0;

  double share() const { return training_steps_per_second / rollout_steps_per_second; }
};

Result<TrainingBenchRow> RunTrainingBench(double seconds);
std::string TrainingBenchToJson(const TrainingBenchRow& row);
std::string TrainingBenchToLine(const TrainingBenchRow& row);

}  // namespace fedgen
