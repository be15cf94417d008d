// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fedgen/base/kernel.h"
#include "fedgen/sim/batch.h"
#include "fedgen/sim/lidar.h"

namespace fedgen {

/// What the robots in slots [first, last) meet where they stand: ranges along each beam (Eq. 8, 9),
/// whether the robot's disc (robot_radius, m) touches anything (Eq. 4), and where the goal is.
/// Reads where the robots are and what is in their worlds. The ranges of a robot that collided are
/// unspecified.
///
/// The scalar kernel tries every beam on every obstacle. The SIMD kernel skips pairs that cannot
/// meet, by bounds with a margin far above rounding, and computes the rest with the same
/// operations.
void Observe(Kernel kernel, const Lidar& lidar, float robot_radius, int first, int last,
             Batch& batch);

/// What one robot senses at a pose: it is placed in slot 0, faces its heading and observes.
void Sense(Kernel kernel, const Lidar& lidar, float robot_radius, const World& world,
           const Pose& pose, Batch& batch);

}  // namespace fedgen
