// SPDX-License-Identifier: Apache-2.0
#include "fedgen/sim/robot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <vector>

namespace fedgen {
namespace {

TEST(Robot, IsThePapersCarByDefault) {
  const RobotOptions robot;
  EXPECT_FALSE(Validate(robot));
  EXPECT_EQ(robot.kind, RobotOptions::Kind::kCar);
  EXPECT_EQ(robot.speed, 2.5);
  EXPECT_EQ(robot.radius, 0.27);
  EXPECT_EQ(robot.length, 0.08);
  EXPECT_DOUBLE_EQ(ControlLimit(robot), std::numbers::pi / 4);
}

TEST(ControlLimit, IsASteeringAngleOrATurnRate) {
  RobotOptions robot;
  robot.steering_limit_degrees = 30;
  robot.turn_rate_limit = 4;
  EXPECT_DOUBLE_EQ(ControlLimit(robot), std::numbers::pi / 6);
  robot.kind = RobotOptions::Kind::kDifferential;
  EXPECT_DOUBLE_EQ(ControlLimit(robot), 4);
}

TEST(Validate, NamesWhatIsWrongWithARobot) {
  struct Case {
    std::function<void(RobotOptions&)> spoil;
    std::string field;
    std::string problem;
  };
  const std::vector<Case> cases = {
      {[](RobotOptions& r) { r.speed = 0; }, "speed", "0: must be in [0.001, 1e4]"},
      {[](RobotOptions& r) { r.speed = std::nan(""); }, "speed", "nan: must be in [0.001, 1e4]"},
      {[](RobotOptions& r) { r.radius = -0.27; }, "radius", "-0.27: must be in [0.001, 1e4]"},
      {[](RobotOptions& r) { r.length = 0; }, "length", "0: must be in [0.001, 1e4]"},
      {[](RobotOptions& r) { r.turn_rate_limit = 20000; }, "turn_rate_limit",
       "20000: must be in [0.001, 1e4]"},
      {[](RobotOptions& r) { r.steering_limit_degrees = 90; }, "steering_limit_degrees",
       "90: must be in [0.001, 85]"},
      {[](RobotOptions& r) { r.steering_limit_degrees = 0; }, "steering_limit_degrees",
       "0: must be in [0.001, 85]"},
      // 0 as a float: no policy could be saved for it.
      {[](RobotOptions& r) { r.steering_limit_degrees = 1e-60; }, "steering_limit_degrees",
       "1e-60: must be in [0.001, 85]"},
  };
  for (const Case& c : cases) {
    RobotOptions robot;
    c.spoil(robot);
    const std::optional<FieldError> error = Validate(robot);
    ASSERT_TRUE(error) << c.field << " = " << c.problem;
    EXPECT_EQ(error->field, c.field);
    EXPECT_EQ(error->problem, c.problem);
  }
}

}  // namespace
}  // namespace fedgen
