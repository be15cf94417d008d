// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>

#include "fedgen/base/parallel.h"
#include "fedgen/cli/commands.h"
#include "fedgen/cli/print.h"
#include "fedgen/cli/progress.h"
#include "fedgen/policy/policy_file.h"
#include "fedgen/report/evaluation.h"
#include "fedgen/rollout/evaluate.h"
#include "fedgen/run/config.h"
#include "fedgen/world/world_file.h"

namespace fedgen {

Result<int> NumThreads(int threads) {
  if (threads > 0) return threads;
  return DefaultNumThreads();
}

void WarnOfBody(const std::string& path, const std::optional<std::string>& differs) {
  if (differs) PrintError("warning: {}: {}; it drives anyway\n", path, *differs);
}

Result<Policy> FindPolicy(const std::string& name_or_path, const Body& body, bool anyway) {
  if (const auto built_in = BuiltInPolicy(name_or_path)) return *built_in;
  std::error_code ignored;
  if (!std::filesystem::exists(name_or_path, ignored)) {
    return Error{ErrorCode::kIo,
                 fmt::format("--policy = {}: no such file, and the built-in policies are straight "
                             "and gap-follower",
                             name_or_path)};
  }
  Mlp mlp = FEDGEN_TRY(LoadPolicy(name_or_path));
  const auto differs = anyway ? ForgetBody(body, mlp) : std::nullopt;
  Policy policy = std::move(mlp);
  if (const auto mismatch = FindMismatch(policy, body)) {
    return Error{ErrorCode::kMismatch, fmt::format("{}: {}", name_or_path, *mismatch)};
  }
  WarnOfBody(name_or_path, differs);
  return policy;
}

Result<Driving> PrepareDriving(const std::string& config, const std::vector<std::string>& overrides,
                               const std::string& policy, bool anyway, int threads,
                               WorldsAre worlds) {
  const int num_threads = FEDGEN_TRY(NumThreads(threads));
  Config loaded = FEDGEN_TRY(LoadConfig(config, overrides));
  Policy found = FEDGEN_TRY(FindPolicy(policy, BodyOf(loaded.task()), anyway));
  if (worlds == WorldsAre::kDrawn && IsEmpty(loaded.task().world)) {
    PrintError("warning: {}\n", kEmptyWorldWarning);
  }
  return Driving{std::move(loaded), std::move(found), num_threads};
}

Result<void> RunEvaluate(const EvaluateCommand& command) {
  const Kernel kernel = FEDGEN_TRY(KernelFromName(command.kernel));
  const Driving driving = FEDGEN_TRY(PrepareDriving(
      command.config, command.overrides, command.policy, command.anyway, command.threads,
      command.world_file.empty() ? WorldsAre::kDrawn : WorldsAre::kGiven));
  const Task& task = driving.config.task();

  EvaluateOptions options;
  options.num_threads = driving.num_threads;
  options.kernel = kernel;
  options.num_worlds = command.worlds.value_or(10000);
  options.starts_per_world = task.world.start.per_world;
  std::vector<World> given;
  WorldSource source;
  if (command.world_file.empty()) {
    source = DrawnWorlds(task, Key(command.seed).Fork(Stream::kEvaluation), kernel);
  } else {
    given = FEDGEN_TRY(LoadWorlds(command.world_file, task.robot.radius));
    const auto available = static_cast<std::int64_t>(given.size());
    options.num_worlds = command.worlds.value_or(available);
    if (options.num_worlds > available) {
      return Error{ErrorCode::kUsage,
                   fmt::format("--worlds = {}: must be at most {}, the worlds of {}",
                               options.num_worlds, available, command.world_file)};
    }
    options.starts_per_world = static_cast<int>(given.front().starts.size());
    source = GivenWorlds(given);
  }

  Progress progress("evaluate", "episodes", options.num_worlds * options.starts_per_world);
  std::vector<bool> arrived;
  const Tally tally = Evaluate(
      task, driving.policy, source, options, [&](std::int64_t done) { progress.Update(done); },
      [&](std::int64_t /*index*/, const Episode& episode) {
        if (command.crossable) arrived.push_back(episode.outcome == Outcome::kReachedGoal);
      });

  Evaluation evaluation;
  evaluation.tally = tally;
  evaluation.seconds = progress.seconds();
  progress.Wipe();
  if (command.crossable) {
    Progress search("search", "episodes", tally.episodes - tally.reached);
    evaluation.crossable =
        FindCrossable(task, source, options, arrived,
                      [&](std::int64_t done, std::int64_t /*total*/) { search.Update(done); });
  }
  evaluation.starts_per_world = options.starts_per_world;
  evaluation.census = !command.world_file.empty();
  if (!evaluation.census) evaluation.seed = command.seed;
  evaluation.policy = command.policy;
  evaluation.config = command.config;
  evaluation.overrides = command.overrides;
  evaluation.kernel = KernelName(kernel);
  evaluation.threads = options.num_threads;
  if (command.json) {
    Print("{}\n", EvaluationJson(evaluation));
  } else {
    Print("{}", EvaluationTable(evaluation));
  }
  return {};
}

}  // namespace fedgen
