// SPDX-License-Identifier: Apache-2.0
#include "fedgen/sim/robot.h"

#include <numbers>

namespace fedgen {

void Describe(OptionVisitor& visitor, RobotOptions& options) {
  constexpr NumberRange kSize = Closed(0.001, 1e4);
  auto& [kind, speed, radius, length, steering_limit_degrees, turn_rate_limit] = options;
  visitor.Choice({"kind", "",
                  "How it turns: a car by its steering angle (Eq. 6), a differential "
                  "drive by its turn rate (Eq. 7)."},
                 kind);
  visitor.Number({"speed", "m/s", "How fast it drives forward, always."}, speed, kSize);
  visitor.Number({"radius", "m", "Of the disc that may touch nothing."}, radius, kSize);
  const bool car = kind == RobotOptions::Kind::kCar;
  visitor.Number(
      ActsIf(car, {"length", "m", "Car: from axle to axle; a shorter one turns faster."}), length,
      kSize);
  // A smaller limit would be 0 in a policy's file, which has floats.
  visitor.Number(
      ActsIf(car, {"steering_limit_degrees", "degrees", "Car: the largest steering angle."}),
      steering_limit_degrees, Closed(0.001, 85));
  visitor.Number(
      ActsIf(!car, {"turn_rate_limit", "rad/s", "Differential drive: the largest turn rate."}),
      turn_rate_limit, kSize);
}

double ControlLimit(const RobotOptions& o) {
  return o.kind == RobotOptions::Kind::kCar ? o.steering_limit_degrees * (std::numbers::pi / 180)
                                            : o.turn_rate_limit;
}

}  // namespace fedgen
