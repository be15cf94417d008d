// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "fedgen/base/aligned.h"
#include "fedgen/sim/lidar.h"
#include "fedgen/world/world.h"

namespace fedgen {

// The episodes in flight on one thread: everything that changes while the robots drive, allocated
// once. Slot s is one robot in one world. Active slots are always the first ones, and kernels may
// compute on up to fifteen slots past the last active one (their numbers are finite and ignored).
struct Batch {
  Batch(int capacity, const Lidar& lidar);

  static constexpr int kNoiseSteps = 32;  // steps of noise drawn at once

  int capacity;     // multiple of sixteen
  int beam_stride;  // of a row of ranges

  // What is driven through. Not owned.
  std::vector<const World*> world;  // [capacity]
  std::vector<std::int32_t> step;   // [capacity] steps taken
  std::vector<Key> noise_key;       // [capacity] names the episode's noise

  // Where the robot is.
  AlignedVector<float> x, y;      // [capacity] m
  AlignedVector<float> heading;   // [capacity] rad
  AlignedVector<float> cos, sin;  // [capacity] of the heading

  // What it meets (written by Observe).
  AlignedVector<float> ranges;                   // [capacity][beam_stride] m
  AlignedVector<float> goal_distance;            // [capacity] m, 0 in the goal
  AlignedVector<float> goal_forward, goal_left;  // [capacity] m, to the goal's nearest point
  std::vector<std::uint8_t> collided;            // [capacity] touches an obstacle
  std::vector<std::uint8_t> arrived;             // [capacity] is in the goal

  // What it does (control: written by the policy; push: by Disturb).
  AlignedVector<float> control;                      // [capacity] rad or rad/s
  AlignedVector<float> push_x, push_y, push_heading;  // [capacity] m/s, m/s, rad/s
  AlignedVector<float> noise;                        // [capacity][kNoiseSteps] in [-1, 1)

  /// Puts a robot at the start of an episode into a slot.
  void Place(int slot, const World& in_world, const Pose& start, Key noise_key_of_episode);
  /// Copies one slot's episode over another's.
  void Move(int from, int to);
};

}  // namespace fedgen
