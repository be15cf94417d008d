// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "fedgen/policy/mlp.h"
#include "fedgen/rollout/rollout.h"

namespace fedgen {

// The robot, its network and what pushes it, one robot at a time, with the functions of the
// standard library: what both peers share. Only sensing and touching differ between them.
//
// Written from the formulas (docs/math.md), not from the kernels: equal outcomes mean that two
// programs agree. Rounding differs, so single episodes may part where the robot passes an obstacle
// by a hair.

/// Where a robot is, and its step.
struct PlainRobot {
  float x = 0, y = 0;      // m
  float heading = 0;       // rad
  float cos = 1, sin = 0;  // of the heading
  int step = 0;

  explicit PlainRobot(const Pose& start);
};

/// Eq. 11 to 13 for one robot. Weights are stored [inputs][outputs], so that the loop over the
/// outputs is one a compiler can vectorise.
class PlainNetwork {
 public:
  explicit PlainNetwork(const Mlp& mlp);
  /// The control for what the robot senses. ranges: [num_beams] m.
  float Decide(const PlainRobot& robot, std::span<const float> ranges);

 private:
  Mlp mlp_;
  std::vector<float> weights_;             // layer after layer [inputs][outputs], then biases
  std::vector<float> activations_, sums_;  // [widest_layer]
};

/// d of Eq. 5 where the robot is, m/s.
float PlainPush(const Disturbance& push, Key noise_key, const PlainRobot& robot);

/// One Euler step of Eq. 6 or 7.
void PlainAdvance(const Task& task, float control, const Disturbance& push, Key noise_key,
                  PlainRobot& robot);

/// Whether the episode is over, given whether the robot touches something, and if so how it ended.
bool PlainHasEnded(const Task& task, const Goal& goal, const PlainRobot& robot, bool touches,
                   Episode& episode);

}  // namespace fedgen
