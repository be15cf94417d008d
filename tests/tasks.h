// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fedgen/policy/policy.h"
#include "fedgen/rollout/task.h"

namespace fedgen {

// Tasks and policies that several tests share.

/// The world as the paper's text has it, driven through by the car.
inline Task TextTask() {
  Task task;
  task.world.walls = {{-5, 0, -5, 10}, {5, 0, 5, 10}, {-5, 0, 5, 0}};
  task.world.random_discs = {{15, 30}, {-5, 5}, {2, 10}, {0.1, 0.25}};
  task.world.goal.offset = {10, 10};
  task.world.disturbance.kind = Disturbance::Kind::kVonKarman;
  return task;
}

/// The world that the paper's tables came from, with the inner faces of its thick walls.
inline Task TablesTask() {
  Task task;
  task.world.walls = {{-4.9, 0, -4.9, 10}, {4.9, 0, 4.9, 10}, {-5, 0.1, 5, 0.1}};
  task.world.random_discs = {{15, 25}, {-5, 5}, {2, 10}, {0.1, 0.2}};
  task.world.goal.offset = {10, 10};
  task.world.goal.depth = 0.1;
  task.world.disturbance.kind = Disturbance::Kind::kUniformNoise;
  task.world.disturbance.half_width = 0.2;
  task.robot.kind = RobotOptions::Kind::kDifferential;
  task.episode.clock = EpisodeOptions::Clock::kStepIndex;
  return task;
}

/// Everything else a world can have: boxes, a goal disc, three random starts, a push on all rates.
inline Task MixedTask() {
  Task task = TextTask();
  task.world.discs = {{0, 4, 0.3}};
  task.world.boxes = {{-2, 6, 0.4, 0.2, 30}};
  task.world.random_discs.count = {0, 40};
  task.world.random_boxes = {{0, 4}, {-4, 4}, {3, 8}, {0.1, 0.4}, {0.1, 0.4}, {0, 180}};
  task.world.goal.kind = Goal::Kind::kDisc;
  task.world.goal.x = {-3, 3};
  task.world.goal.y = {9, 9};
  task.world.goal.radius = {0.6, 0.8};
  task.world.start = {{-4, 4}, {0.5, 2}, {45, 135}, 3, 0};
  task.world.disturbance.gain = {1, 0.5, -0.3};
  task.lidar = {33, 4, -135, 135};
  return task;
}

/// The paper's network, 24-20-20-20-1 with 20 beams, with random weights.
inline Policy RandomTextNet(const Task& task, Key key) {
  Mlp mlp = MakeMlp(MlpOptions{}, task.lidar.beams, task.lidar.range, ControlLimit(task.robot));
  DrawParameters(key, 0.5, mlp);
  return mlp;
}

/// The tables' network, 20-20-1 on inverse ranges, with random weights.
inline Policy RandomTablesNet(const Task& task, Key key) {
  MlpOptions options;
  options.hidden = {20};
  options.state_inputs = false;
  options.range_code = RangeCode::kInverse;
  options.output_map = OutputMap::kClamp;
  Mlp mlp = MakeMlp(options, task.lidar.beams, task.lidar.range, ControlLimit(task.robot));
  DrawParameters(key, 1, mlp);
  return mlp;
}

}  // namespace fedgen
