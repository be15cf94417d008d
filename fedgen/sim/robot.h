// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fedgen/base/option.h"

namespace fedgen {

// The robot: a disc that moves forward at constant speed and turns as it is told (Eq. 6 and 7).

struct RobotOptions {
  enum class Kind {
    kCar,           // turn rate = tan(u) / length, u = steering angle in rad
    kDifferential,  // turn rate = u, in rad/s
  };
  Kind kind = Kind::kCar;
  double speed = 2.5;                  // m/s
  double radius = 0.27;                // m, of the robot's disc
  double length = 0.08;                // m, of the car
  double steering_limit_degrees = 45;  // car: |u|
  double turn_rate_limit = 5;          // differential: |u| in rad/s
};
template <>
inline constexpr auto kWords<RobotOptions::Kind> = Words("car", "differential");

void Describe(OptionVisitor& visitor, RobotOptions& options);

/// The largest control |u| the robot obeys: rad for the car, rad/s for the differential drive.
double ControlLimit(const RobotOptions& options);

}  // namespace fedgen
