// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fedgen/base/kernel.h"
#include "fedgen/sim/batch.h"
#include "fedgen/sim/lidar.h"

namespace fedgen {

/// What the robots in slots [first, last) meet where they stand: ranges along each beam (Eq. 8, 9),
/// whether the robot's disc (robot_radius, m) touches anything (Eq. 4), and where the goal is.
/// Reads x, y, cos, sin, world. The ranges of a robot that collided are unspecified.
///
/// The scalar kernel tries every beam on every obstacle. The SIMD kernel skips pairs that cannot
/// meet, by bounds with a margin far above rounding, and computes the rest with the same
/// operations.
void Observe(Kernel kernel, const Lidar& lidar, float robot_radius, int first, int last,
             Batch& batch);

}  // namespace fedgen
