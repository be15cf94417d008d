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
// compute on up to 31 slots past the last active one (their numbers are finite and ignored).
struct Batch {
  Batch(int capacity, const Lidar& lidar);

  static constexpr int kNoiseSteps = 32;  // steps of noise drawn at once

  int capacity;     // multiple of 32
  int beam_stride;  // of a row of ranges

  // What is driven through. Not owned; kernels read its disturbance only.
  std::vector<const World*> world;  // [capacity]
  std::vector<std::int32_t> step;   // [capacity] steps taken
  std::vector<Key> noise_key;       // [capacity] names the episode's noise

  // Where the robot is.
  AlignedVector<float> x, y;      // [capacity] m
  AlignedVector<float> heading;   // [capacity] rad
  AlignedVector<float> cos, sin;  // [capacity] of the heading

  // What is in the robots' worlds, laid out so that kernels can take eight robots at once. Unused
  // rows hold padding obstacles at 1e9 m, out of every sensor's reach.
  int num_disc_rows = 0;
  std::vector<std::int32_t> num_discs;  // [capacity]
  AlignedVector<float> disc_x, disc_y;  // [num_disc_rows][capacity] m
  AlignedVector<float> disc_radius;     // [num_disc_rows][capacity] m
  int num_wall_rows = 0;
  AlignedVector<float> wall_x, wall_y;    // [num_wall_rows][capacity] m; sides of boxes, then walls
  AlignedVector<float> wall_dx, wall_dy;  // [num_wall_rows][capacity] m
  AlignedVector<float> wall_length;       // [num_wall_rows][capacity] m
  AlignedVector<float> wall_inverse_length2;          // [num_wall_rows][capacity] 1/m^2
  AlignedVector<float> num_boxes;                     // [capacity] four sides each
  AlignedVector<float> goal_is_disc;                  // [capacity] 1 or 0
  AlignedVector<float> goal_x, goal_y;                // [capacity] unit normal, or centre in m
  AlignedVector<float> goal_size;                     // [capacity] m, offset or radius
  AlignedVector<float> goal_depth;                    // [capacity] m
  std::vector<Disturbance::Kind> push_kind;           // [capacity]
  AlignedVector<float> gain_x, gain_y, gain_heading;  // [capacity] of the disturbance

  // What it meets (written by Observe).
  AlignedVector<float> ranges;                   // [capacity][beam_stride] m
  AlignedVector<float> goal_distance;            // [capacity] m, 0 in the goal
  AlignedVector<float> goal_forward, goal_left;  // [capacity] m, to the goal's nearest point
  // All ones if so and 0 if not, as bits of a float: what a comparison of eight lanes gives.
  AlignedVector<std::uint32_t> collided;  // [capacity] touches an obstacle
  AlignedVector<std::uint32_t> arrived;   // [capacity] is in the goal

  // What it does (control: written by the policy; push: by Disturb).
  AlignedVector<float> control;                       // [capacity] rad or rad/s
  AlignedVector<float> push_x, push_y, push_heading;  // [capacity] m/s, m/s, rad/s
  AlignedVector<float> push;                          // [capacity] m/s, d of Eq. 5
  AlignedVector<float> noise;                         // [capacity][kNoiseSteps] m/s

  /// Puts a robot at the start of an episode into a slot. Allocates only if no world before had as
  /// many discs or walls.
  void Place(int slot, const World& in_world, const Pose& start, Key noise_key_of_episode);
  /// Copies one slot's episode over another's.
  void Move(int from, int to);
};

}  // namespace fedgen
