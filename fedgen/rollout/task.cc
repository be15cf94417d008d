// SPDX-License-Identifier: Apache-2.0
#include "fedgen/rollout/task.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fedgen/base/hash.h"

namespace fedgen {

void Describe(OptionVisitor& visitor, EpisodeOptions& options) {
  auto& [time_step, horizon, cost_rate, clock] = options;
  visitor.Number({"time_step", "s", "From one decision of the robot to the next."}, time_step,
                 kTimeStep);
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
  visitor.Enter("world", Owner::kLearner);
  Describe(visitor, world);
  visitor.Leave();
  DescribeGroup(visitor, "robot", robot);
  DescribeGroup(visitor, "lidar", lidar);
  DescribeGroup(visitor, "episode", episode);
}

Body BodyOf(const Task& task) { return {task.lidar, task.robot, task.episode.time_step}; }

namespace {

std::string TextOf(Task task, std::string title, CanonicalText::What what) {
  CanonicalText canonical(what);
  canonical.text = std::move(title);
  Describe(canonical, task);
  return canonical.text;
}

// In which order fixed obstacles are listed, and how often, is nothing that a robot meets.
void ListOnce(auto& obstacles) {
  std::ranges::sort(obstacles);
  const auto again = std::ranges::unique(obstacles);
  obstacles.erase(again.begin(), again.end());
}

}  // namespace

std::string CanonicalTask(const Task& task) {
  Task acting = task;
  auto& normal = acting.world.goal.normal;
  const double length = std::hypot(normal[0], normal[1]);
  for (double& entry : normal) entry /= length;
  double& clearance = acting.world.start.clearance;
  clearance = std::max(clearance, task.robot.radius);
  RoundNumbers round;
  Describe(round, acting);
  ListOnce(acting.world.walls);
  ListOnce(acting.world.boxes);
  ListOnce(acting.world.discs);
  return TextOf(acting, "fedgen-task 2\n", CanonicalText::What::kWhatActs);
}

std::string TaskName(const Task& task) { return Sha256Hex(CanonicalTask(task)); }

std::string CanonicalTaskV1(const Task& task) {
  return TextOf(task, "fedgen-task 1\n", CanonicalText::What::kAll);
}

}  // namespace fedgen
