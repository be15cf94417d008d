// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "fedgen/base/file.h"
#include "fedgen/base/text.h"
#include "fedgen/cli/commands.h"
#include "fedgen/cli/print.h"
#include "fedgen/cli/progress.h"
#include "fedgen/report/figure.h"
#include "fedgen/rollout/rollout.h"
#include "fedgen/run/config.h"
#include "fedgen/world/world_file.h"

namespace fedgen {
namespace {

std::string GoalText(const Goal& goal) {
  if (goal.kind == Goal::Kind::kDisc) {
    return fmt::format("disc at ({:.2f}, {:.2f}), radius {:.2f} m", goal.x, goal.y, goal.radius);
  }
  return fmt::format("half plane ({:.2f}, {:.2f}) . p >= {:.2f} m", goal.normal_x, goal.normal_y,
                     goal.offset);
}

std::string DisturbanceText(const Disturbance& push) {
  switch (push.kind) {
    case Disturbance::Kind::kNone:
      return "none";
    case Disturbance::Kind::kVonKarman:
      return fmt::format("Von Karman {:.3g} m/s, scale {:.3g} m", push.intensity,
                         push.length_scale);
    case Disturbance::Kind::kUniformNoise:
      return fmt::format("uniform +-{:.3g} m/s", push.half_width);
  }
  return "";
}

}  // namespace

Result<void> RunWorldsGenerate(const WorldsGenerateCommand& command) {
  const Result<Config> config = LoadConfig(command.config, command.overrides);
  if (!config) return config.error();
  Result<AtomicFile> file =
      AtomicFile::Create(command.output, command.force ? IfExists::kReplace : IfExists::kRefuse);
  if (!file) return file.error();
  const WorldSource source =
      DrawnWorlds(config->task(), Key(command.seed).Fork(Stream::kEvaluation), BestKernel());
  Progress progress("generate", "worlds", command.worlds);
  const double radius = config->task().robot.radius;
  World world;
  std::string block = WorldFileHeader() + "\n";
  std::size_t written_bytes = 0;
  constexpr std::size_t kBlockBytes = 1 << 20;
  for (std::int64_t index = 0; index < command.worlds; ++index) {
    source(index, world);
    // A world file holds no start that the robot cannot stand at; say so before anybody reads it.
    for (std::size_t start = 0; start < world.starts.size(); ++start) {
      if (Clearance(world, world.starts[start].x, world.starts[start].y) >= radius) continue;
      return Error{ErrorCode::kConfig,
                   fmt::format("{}: world.start: start {} of world {} touches an obstacle; a world "
                               "file may not hold it",
                               command.config, start, index)};
    }
    block += WorldToJson(world) + "\n";
    if (block.size() < kBlockBytes && index + 1 < command.worlds) continue;
    written_bytes += block.size();
    if (written_bytes > kMaxWorldFileBytes) {
      return Error{ErrorCode::kUsage,
                   fmt::format("--worlds = {}: {} worlds fill the {} bytes a world file may have",
                               command.worlds, index, kMaxWorldFileBytes)};
    }
    if (Result<void> written = file->Write(block); !written) return written;
    block.clear();
    progress.Update(index + 1);
  }
  if (Result<void> committed = file->Commit(); !committed) return committed;
  Print("{}: {}\n", command.output, Counted(command.worlds, "world"));
  return {};
}

Result<void> RunWorldsShow(const WorldsShowCommand& command) {
  if (!command.policies.empty() && command.config.empty()) {
    return Error{ErrorCode::kUsage, "--policy: needs --config, which says what robot drives"};
  }
  std::string text;  // printed when everything has worked
  Task task;
  if (!command.config.empty()) {
    const Result<Config> config = LoadConfig(command.config, command.overrides);
    if (!config) return config.error();
    task = config->task();
  }
  const double robot_radius = command.config.empty() ? 0.0 : task.robot.radius;
  const Result<std::vector<World>> loaded = LoadWorlds(command.world_file, robot_radius);
  if (!loaded) return loaded.error();
  const auto available = static_cast<std::int64_t>(loaded->size());
  if (command.first >= available) {
    return Error{ErrorCode::kUsage, fmt::format("--first = {}: {} holds worlds 0 to {}",
                                                command.first, command.world_file, available - 1)};
  }
  const std::int64_t last = std::min(available, command.first + command.count);
  const std::span<const World> worlds(loaded->data() + command.first,
                                      static_cast<std::size_t>(last - command.first));

  text += fmt::format("{}: {}, {} in each; {}\n\n", command.world_file, Counted(available, "world"),
                      Counted(static_cast<std::int64_t>(worlds.front().starts.size()), "start"),
                      last - command.first == 1
                          ? fmt::format("here is {}", command.first)
                          : fmt::format("here are {} to {}", command.first, last - 1));
  text += fmt::format("{:>6} {:>6} {:>6} {:>6}  {:<42} {}\n", "world", "discs", "walls", "boxes",
                      "goal", "disturbance");
  for (std::size_t index = 0; index < worlds.size(); ++index) {
    const World& world = worlds[index];
    text += fmt::format("{:>6} {:>6} {:>6} {:>6}  {:<42} {}\n",
                        command.first + static_cast<std::int64_t>(index), world.discs.size(),
                        world.walls.size(), world.boxes.size(), GoalText(world.goal),
                        DisturbanceText(world.disturbance));
  }

  // Ways of each policy from the first start of each world.
  std::vector<Panel> panels(worlds.size());
  for (std::size_t index = 0; index < worlds.size(); ++index) {
    panels[index].world = &worlds[index];
    panels[index].title = fmt::format("world {}", command.first + static_cast<std::int64_t>(index));
  }
  if (!command.policies.empty()) text += "\nfrom the first start of each world\n";
  for (const std::string& name : command.policies) {
    const Result<Policy> policy = FindPolicy(name, task.lidar, task.robot);
    if (!policy) return policy.error();
    const std::string label = std::filesystem::path(name).stem().string();
    Rollout rollout(task, *policy, BestKernel());
    for (std::size_t index = 0; index < worlds.size(); ++index) {
      Episode episode;
      Trajectory trajectory;
      rollout.Run(GivenWorlds(worlds), static_cast<int>(worlds[index].starts.size()),
                  static_cast<std::int64_t>(index * worlds[index].starts.size()), {&episode, 1},
                  {&trajectory, 1});
      text += fmt::format("{:>6}  {:<14} {} after {:.2f} s\n",
                          command.first + static_cast<std::int64_t>(index), label,
                          OutcomeName(episode.outcome), episode.steps * task.episode.time_step);
      panels[index].paths.push_back({std::move(trajectory), episode.outcome, label});
    }
  }
  if (command.picture.empty()) {
    Print("{}", text);
    return {};
  }
  FigureOptions options;
  options.robot_radius = task.robot.radius;
  if (Result<void> saved = SaveFigure(panels, options, command.picture,
                                      command.force ? IfExists::kReplace : IfExists::kRefuse);
      !saved) {
    return saved;
  }
  text += fmt::format("\n{}: drawn\n", command.picture);
  Print("{}", text);
  return {};
}

}  // namespace fedgen
