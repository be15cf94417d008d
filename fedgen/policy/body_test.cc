// SPDX-License-Identifier: Apache-2.0
#include "fedgen/policy/body.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace fedgen {
namespace {

Body Differential() {
  Body body;
  body.robot.kind = RobotOptions::Kind::kDifferential;
  return body;
}

// Every field, alone: what it was made for, then what is configured.
TEST(FindDifferences, NamesEveryFieldThatDiffers) {
  struct Case {
    Body made_for;
    std::function<void(Body&)> change;
    std::string says;
  };
  const std::vector<Case> cases = {
      {{}, [](Body& b) { b.lidar.beams = 24; }, "lidar.beams = 20, configured 24"},
      {{}, [](Body& b) { b.lidar.range = 6; }, "lidar.range = 5, configured 6"},
      {{}, [](Body& b) { b.lidar.from_degrees = -45; }, "lidar.from_degrees = -60, configured -45"},
      {{}, [](Body& b) { b.lidar.to_degrees = -3; }, "lidar.to_degrees = 60, configured -3"},
      {{}, [](Body& b) { b.robot.speed = 3; }, "robot.speed = 2.5, configured 3"},
      {{}, [](Body& b) { b.robot.radius = 0.3; }, "robot.radius = 0.27, configured 0.3"},
      {{}, [](Body& b) { b.robot.length = 0.1; }, "robot.length = 0.08, configured 0.1"},
      {{},
       [](Body& b) { b.robot.steering_limit_degrees = 30; },
       "robot.steering_limit_degrees = 45, configured 30"},
      {Differential(), [](Body& b) { b.robot.turn_rate_limit = 4; },
       "robot.turn_rate_limit = 5, configured 4"},
      {{},
       [](Body& b) { b.robot.kind = RobotOptions::Kind::kDifferential; },
       "robot.kind = car, configured differential"},
      {{}, [](Body& b) { b.time_step = 0.1; }, "episode.time_step = 0.05, configured 0.1"},
      {{},
       [](Body& b) { b.robot.speed = 3, b.time_step = 0.1; },
       "robot.speed = 2.5, configured 3; episode.time_step = 0.05, configured 0.1"},
  };
  for (const Case& c : cases) {
    Body body = c.made_for;
    EXPECT_FALSE(FindDifferences(c.made_for, body));
    c.change(body);
    EXPECT_EQ(FindDifferences(c.made_for, body), c.says);
  }
}

TEST(FindDifferences, IgnoresWhatTheRobotDoesNotRead) {
  Body car;
  car.robot.turn_rate_limit = 1;
  EXPECT_FALSE(FindDifferences({}, car));
  Body differential = Differential();
  differential.robot.length = 1;
  differential.robot.steering_limit_degrees = 1;
  EXPECT_FALSE(FindDifferences(Differential(), differential));
}

TEST(Validate, NamesWhatIsWrongWithABody) {
  EXPECT_FALSE(Validate(Body()));
  Body body;
  body.lidar.to_degrees = -90;
  EXPECT_EQ(Validate(body)->field, "lidar.to_degrees");
  body = {};
  body.robot.speed = 0;
  EXPECT_EQ(Validate(body)->field, "robot.speed");
  body = {};
  body.time_step = 0;
  EXPECT_EQ(Validate(body)->field, "episode.time_step");
  EXPECT_EQ(Validate(body)->problem, "0: must be in (0, 10]");
}

}  // namespace
}  // namespace fedgen
