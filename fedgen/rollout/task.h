// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "fedgen/policy/body.h"
#include "fedgen/sim/lidar.h"
#include "fedgen/sim/robot.h"
#include "fedgen/world/distribution.h"

namespace fedgen {

// The task: which worlds, which robot, which sensor, how long, and what an episode costs.

struct EpisodeOptions {
  enum class Clock {
    kElapsed,    // arriving on the n-th step takes n time steps
    kStepIndex,  // arriving on the n-th step counts n - 1, as the published tables do
  };
  double time_step = 0.05;  // s
  int horizon = 150;        // steps after which the episode has timed out
  double cost_rate = 0.1;   // 1/s, alpha of Eq. 3
  Clock clock = Clock::kElapsed;
};
template <>
inline constexpr auto kWords<EpisodeOptions::Clock> = Words("elapsed", "step-index");

void Describe(OptionVisitor& visitor, EpisodeOptions& options);

struct Task {
  WorldDistribution world;
  RobotOptions robot;
  LidarOptions lidar;
  EpisodeOptions episode;
};

void Describe(OptionVisitor& visitor, Task& task);

/// What drives in the task.
Body BodyOf(const Task& task);

/// Every number of a task that acts, as text, one `name=value` a line, to the precision of a float
/// and of 1e-9. What a certificate speaks about is the hash of it. A number that this kind of goal
/// or robot does not read is not there, so that changing it cannot draw other worlds: nor are
/// digits that no float holds, the length of a goal's normal, a clearance below the robot's radius,
/// or the order of fixed obstacles and how often each is listed.
std::string CanonicalTask(const Task& task);

/// Its SHA-256: a name for who needs to know only whether two tasks are the same.
std::string TaskName(const Task& task);

/// Every number of a task, read or not: what certificates of version 1 hash.
std::string CanonicalTaskV1(const Task& task);

}  // namespace fedgen
