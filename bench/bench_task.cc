// SPDX-License-Identifier: Apache-2.0
#include "bench/bench_task.h"

#include <fmt/format.h>

#include "fedgen/base/check.h"

namespace fedgen {
namespace {

// Obstacles over a field of 10 m x 10 m, the goal at its open far end, the start near the other
// one.
Task TextTask() {
  Task task;
  task.world.walls = {{-5, 0, -5, 10}, {5, 0, 5, 10}, {-5, 0, 5, 0}};
  task.world.random_discs = {{15, 30}, {-5, 5}, {2, 10}, {0.1, 0.25}};
  task.world.disturbance.kind = Disturbance::Kind::kVonKarman;
  task.robot.kind = RobotOptions::Kind::kCar;
  task.lidar = kSymmetricFan;
  return task;
}

// The same with walls 0.1 m thick to each side, fewer and smaller discs, noise instead of a field.
Task TablesTask() {
  Task task;
  task.world.walls = {{-4.9, 0, -4.9, 10}, {4.9, 0, 4.9, 10}, {-5, 0.1, 5, 0.1}};
  task.world.random_discs = {{15, 25}, {-5, 5}, {2, 10}, {0.1, 0.2}};
  task.world.goal.depth = 0.1;
  task.world.disturbance.kind = Disturbance::Kind::kUniformNoise;
  task.robot.kind = RobotOptions::Kind::kDifferential;
  task.lidar = kSymmetricFan;
  task.episode.clock = EpisodeOptions::Clock::kStepIndex;
  return task;
}

bool IsTextNet(std::string_view net) {
  FEDGEN_CHECK(net == kBenchNets[0] || net == kBenchNets[1], "no such net: {}", net);
  return net == kBenchNets[0];
}

}  // namespace

Task BenchTask(std::string_view net) { return IsTextNet(net) ? TextTask() : TablesTask(); }

MlpOptions BenchMlpOptions(std::string_view net) {
  // Inverse ranges tell near obstacles apart, so both nets learn in a minute to survive nearly
  // every world; with ranges scaled to [0, 1] the first one stays at a safe rate near 0.95.
  MlpOptions options;
  options.range_code = RangeCode::kInverse;
  if (IsTextNet(net)) return options;
  options.hidden = {20};
  options.state_inputs = false;
  return options;
}

std::string BenchPolicyPath(std::string_view net) {
  return fmt::format("{}/{}.fgp", FEDGEN_BENCH_POLICY_DIR, net);
}

}  // namespace fedgen
