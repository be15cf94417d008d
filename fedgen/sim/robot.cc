// SPDX-License-Identifier: Apache-2.0
#include "fedgen/sim/robot.h"

#include <numbers>

namespace fedgen {

std::optional<FieldError> Validate(const RobotOptions& o) {
  const auto positive = [](const char* field, double value) -> std::optional<FieldError> {
    if (value >= 1e-3 && value <= 1e4) return std::nullopt;
    return FieldError{field, fmt::format("{}: must be in [0.001, 1e4]", value)};
  };
  if (auto error = positive("speed", o.speed)) return error;
  if (auto error = positive("radius", o.radius)) return error;
  if (auto error = positive("length", o.length)) return error;
  if (auto error = positive("turn_rate_limit", o.turn_rate_limit)) return error;
  if (!(o.steering_limit_degrees > 0 && o.steering_limit_degrees <= 85)) {
    return FieldError{"steering_limit_degrees",
                      fmt::format("{}: must be in (0, 85]", o.steering_limit_degrees)};
  }
  return std::nullopt;
}

double ControlLimit(const RobotOptions& o) {
  return o.kind == RobotOptions::Kind::kCar ? o.steering_limit_degrees * (std::numbers::pi / 180)
                                            : o.turn_rate_limit;
}

}  // namespace fedgen
