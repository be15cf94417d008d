// SPDX-License-Identifier: Apache-2.0
#include "fedgen/rollout/task.h"

namespace fedgen {

void Describe(OptionVisitor& visitor, EpisodeOptions& options) {
  auto& [time_step, horizon, cost_rate, clock] = options;
  visitor.Number({"time_step", "s", "From one decision of the robot to the next."}, time_step,
                 Above(0, 10));
  visitor.Integer({"horizon", "steps", "After so many the episode has timed out."}, horizon,
                  {1, 1000000});
  visitor.Number({"cost_rate", "1/s",
                  "How fast the cost J of an arrival grows with its time: J = 1 - "
                  "exp(-cost_rate time) (Eq. 3)."},
                 cost_rate, Above(0, 100));
  visitor.Choice({"clock", "",
                  "Whether arriving on the n-th step took n steps (elapsed), or n - 1 as "
                  "the published tables count (Eq. 3)."},
                 clock);
}

void Describe(OptionVisitor& visitor, Task& task) {
  auto& [world, robot, lidar, episode] = task;
  DescribeGroup(visitor, "world", world);
  DescribeGroup(visitor, "robot", robot);
  DescribeGroup(visitor, "lidar", lidar);
  DescribeGroup(visitor, "episode", episode);
}

std::string CanonicalTask(const Task& task) {
  CanonicalText canonical;
  canonical.text = "fedgen-task 1\n";
  Task copy = task;
  Describe(canonical, copy);
  return canonical.text;
}

}  // namespace fedgen
