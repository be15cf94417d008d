// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fedgen/base/kernel.h"
#include "fedgen/sim/batch.h"
#include "fedgen/sim/robot.h"

namespace fedgen {

/// Works out cos and sin of the heading of slots [first, last), as Observe and Advance want them.
void FaceHeading(Kernel kernel, int first, int last, Batch& batch);

/// The push on each robot's rates in slots [0, last) where it stands now (Eq. 5). Reads x, y, step,
/// world, noise_key; writes push_x, push_y, push_heading.
void Disturb(Kernel kernel, int last, Batch& batch);

/// One explicit Euler step of Eq. 6 (car) or Eq. 7 (differential drive) for slots [0, last):
/// reads control and push, moves x, y, heading, refreshes cos and sin, counts the step.
void Advance(Kernel kernel, const RobotOptions& robot, float time_step, int last, Batch& batch);

}  // namespace fedgen
