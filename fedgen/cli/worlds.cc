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

// The worlds [first, first + worlds.size()) of a file with `available` worlds, as a table.
std::string WorldsText(const std::string& file, std::int64_t available, std::int64_t first,
                       std::span<const World> worlds) {
  const std::int64_t last = first + static_cast<std::int64_t>(worlds.size()) - 1;
  std::string text = fmt::format(
      "{}: {}, {} in each; shown: {}\n\n", file, Counted(available, "world"),
      Counted(static_cast<std::int64_t>(worlds.front().starts.size()), "start"),
      first == last ? fmt::format("world {}", first) : fmt::format("worlds {} to {}", first, last));
  text += fmt::format("{:>6} {:>6} {:>6} {:>6}  {:<42} {}\n", "world", "discs", "walls", "boxes",
                      "goal", "disturbance");
  for (std::int64_t number = first; const World& world : worlds) {
    text += fmt::format("{:>6} {:>6} {:>6} {:>6}  {:<42} {}\n", number++, world.discs.size(),
                        world.walls.size(), world.boxes.size(), GoalText(world.goal),
                        DisturbanceText(world.disturbance));
  }
  return text;
}

}  // namespace

Result<void> RunWorldsGenerate(const WorldsGenerateCommand& command) {
  const Config config = FEDGEN_TRY(LoadConfig(command.config, command.overrides));
  AtomicFile file = FEDGEN_TRY(AtomicFile::Create(command.output, WhatIfExists(command.force)));
  const WorldSource source =
      DrawnWorlds(config.task(), Key(command.seed).Fork(Stream::kEvaluation), BestKernel());
  Progress progress("generate", "worlds", command.worlds);
  const double radius = config.task().robot.radius;
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
      return Error{
          ErrorCode::kUsage,
          fmt::format(
              "--worlds = {}: must be at most {}, since a world file may have at most {} bytes",
              command.worlds, index, kMaxWorldFileBytes)};
    }
    FEDGEN_TRY(file.Write(block));
    block.clear();
    progress.Update(index + 1);
  }
  FEDGEN_TRY(file.Commit());
  progress.Wipe();
  Print("{}: {}\n", command.output, Counted(command.worlds, "world"));
  return {};
}

Result<void> RunWorldsShow(const WorldsShowCommand& command) {
  if (!command.policies.empty() && command.config.empty()) {
    return Error{ErrorCode::kUsage,
                 "--policy: needs --config, which describes the robot that drives"};
  }
  Task task;
  if (!command.config.empty()) {
    task = FEDGEN_TRY(LoadConfig(command.config, command.overrides)).task();
  }
  const double robot_radius = command.config.empty() ? 0.0 : task.robot.radius;
  const std::vector<World> loaded = FEDGEN_TRY(LoadWorlds(command.world_file, robot_radius));
  const auto available = static_cast<std::int64_t>(loaded.size());
  if (command.first >= available) {
    return Error{ErrorCode::kUsage,
                 fmt::format("--first = {}: must be at most {}, the last world of {}",
                             command.first, available - 1, command.world_file)};
  }
  const std::int64_t count = std::min(available - command.first, command.count);
  const std::span<const World> worlds(loaded.data() + command.first,
                                      static_cast<std::size_t>(count));
  std::string text = WorldsText(command.world_file, available, command.first, worlds);

  std::vector<Panel> panels;
  for (std::int64_t number = command.first; const World& world : worlds) {
    panels.push_back({&world, fmt::format("world {}", number++), {}});
  }
  if (!command.policies.empty()) text += "\nfrom the first start of each world\n";
  for (const std::string& name : command.policies) {
    const Policy policy = FEDGEN_TRY(FindPolicy(name, BodyOf(task), command.anyway));
    const std::string label = std::filesystem::path(name).stem().string();
    std::int64_t number = command.first;
    for (const Episode& episode : DrivePanels(task, policy, label, panels)) {
      text += fmt::format("{:>6}  {:<14} {} after {:.2f} s\n", number++, label,
                          OutcomeName(episode.outcome), episode.steps * task.episode.time_step);
    }
  }
  if (!command.picture.empty()) {
    FigureOptions options;
    options.robot_radius = task.robot.radius;
    FEDGEN_TRY(SaveFigure(panels, options, command.picture, WhatIfExists(command.force)));
    text += fmt::format("\n{}: drawn\n", command.picture);
  }
  Print("{}", text);  // only when everything has worked
  return {};
}

}  // namespace fedgen
