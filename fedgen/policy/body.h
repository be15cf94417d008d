// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "fedgen/base/option.h"
#include "fedgen/sim/lidar.h"
#include "fedgen/sim/robot.h"

namespace fedgen {

// The robot that a policy drives: its sensor, how it moves, and how often it decides. A network
// reads distances without their angles and steers without knowing what that does, so in another
// body the same numbers are another driver.

struct Body {
  LidarOptions lidar;
  RobotOptions robot;
  double time_step = 0.05;  // s, from one decision to the next
};

inline constexpr NumberRange kTimeStep = Above(0, 10);  // s

/// Calls visit(group, name, number) for the numbers of a body, by their keys in a configuration, in
/// the order of a policy's file. A number that this kind of robot does not read is left out, as are
/// the beams, which a network counts itself.
template <typename AnyBody, typename Visit>
void VisitNumbers(AnyBody& body, const Visit& visit) {
  visit("lidar", "range", body.lidar.range);
  visit("lidar", "from_degrees", body.lidar.from_degrees);
  visit("lidar", "to_degrees", body.lidar.to_degrees);
  visit("robot", "speed", body.robot.speed);
  visit("robot", "radius", body.robot.radius);
  if (body.robot.kind == RobotOptions::Kind::kCar) {
    visit("robot", "length", body.robot.length);
    visit("robot", "steering_limit_degrees", body.robot.steering_limit_degrees);
  } else {
    visit("robot", "turn_rate_limit", body.robot.turn_rate_limit);
  }
  visit("episode", "time_step", body.time_step);
}

/// What is wrong with a body that came from a file.
std::optional<FieldError> Validate(const Body& body);

/// Where a body differs from the one that a policy was made for, as text for people: "robot.speed =
/// 2.5, configured 3; episode.time_step = 0.05, configured 0.1". Nothing if it does not.
std::optional<std::string> FindDifferences(const Body& made_for, const Body& body);

}  // namespace fedgen
