// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "fedgen/base/aligned.h"
#include "fedgen/base/option.h"

namespace fedgen {

// The range sensor: beams at even angles across a fan, each reporting the distance (m) from the
// robot's centre to the nearest obstacle along it, or the range if there is none (Eq. 8 and 9).

struct LidarOptions {
  int beams = 20;
  double range = 5;           // m
  double from_degrees = -60;  // first beam, relative to the heading, counter-clockwise
  double to_degrees = 60;     // last beam, >= from_degrees
};

/// The paper's literal fan: beam phi of 20 at -60 + 3 (phi - 1) degrees, so it sees one side only.
inline constexpr LidarOptions kOneSidedFan{20, 5, -60, -3};
/// The fan of the task's ancestor: 20 beams evenly from -60 to +60 degrees.
inline constexpr LidarOptions kSymmetricFan{20, 5, -60, 60};

void Describe(OptionVisitor& visitor, LidarOptions& options);
std::optional<FieldError> Validate(const LidarOptions& options);

/// The fan, worked out once.
struct Lidar {
  explicit Lidar(const LidarOptions& options);

  int num_beams;
  int beam_stride;           // num_beams rounded up to eight: a row of ranges
  float range;               // m
  float first, spacing;      // rad; angle of beam 0 and from one beam to the next (> 0)
  bool wraps;                // the fan reaches behind the robot: angles near +-pi need care
  AlignedVector<float> cos;  // [beam_stride] of the beam's angle to the heading
  AlignedVector<float> sin;  // [beam_stride]; padding repeats the last beam

  // The same fan as a cone around its centre, which is how kernels see it.
  float centre_cos, centre_sin;  // of the centre's angle to the heading
  float half_width;              // rad, from the centre to the last beam
  float half_width_cos, half_width_sin;
  AlignedVector<float> fan_cos;  // [beam_stride] of the beam's angle to the centre
  AlignedVector<float> fan_sin;  // [beam_stride]
};

}  // namespace fedgen
