// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "fedgen/cli/commands.h"
#include "fedgen/cli/print.h"
#include "fedgen/policy/policy_file.h"
#include "fedgen/report/figure.h"
#include "fedgen/report/run_figures.h"
#include "fedgen/rollout/rollout.h"
#include "fedgen/run/config.h"
#include "fedgen/run/run_files.h"
#include "fedgen/run/run_tables.h"

namespace fedgen {
namespace {

// The figures of a run, each as SVG and PNG, and the files they went to.
class FigureWriter {
 public:
  explicit FigureWriter(const RunFiles& files) : files_(files) {}

  Result<void> Save(const std::string& name, const ChartFigure& figure) {
    return SaveBoth(
        name, [&](const std::string& path) { return SaveChart(path, figure, IfExists::kReplace); });
  }
  Result<void> Save(const std::string& name, const std::vector<Panel>& panels,
                    const FigureOptions& options) {
    return SaveBoth(name, [&](const std::string& path) {
      return SaveFigure(panels, options, path, IfExists::kReplace);
    });
  }

  std::vector<std::string> TakeWritten() { return std::move(written_); }

 private:
  Result<void> SaveBoth(const std::string& name, const auto& save) {
    for (const char* ending : {".svg", ".png"}) {
      std::string path = files_.Figure(name) + ending;
      if (Result<void> saved = save(path); !saved) return saved;
      written_.push_back(std::move(path));
    }
    return {};
  }

  const RunFiles& files_;
  std::vector<std::string> written_;
};

// A policy of the run that is there, under the name it gets in the figure.
struct Drawn {
  std::string label;
  std::string file;
};

// The ways of a learner's initial, first stopped and final policy through six unseen worlds.
Result<void> DrawTrajectories(const RunFiles& files, const Config& config,
                              const RunIdentity& identity, int learner, FigureWriter& writer) {
  const Task& task = config.task();
  constexpr std::size_t kWorlds = 6;
  std::vector<World> worlds(kWorlds);
  const WorldSource source =
      DrawnWorlds(task, Key(identity.seed).Fork(Stream::kEvaluation), BestKernel());
  for (std::size_t w = 0; w < kWorlds; ++w) source(static_cast<std::int64_t>(w), worlds[w]);

  const std::string run = fmt::format("{}, seed {}", identity.config_name, identity.seed);
  FigureOptions options;
  options.robot_radius = task.robot.radius;
  const Lidar lidar(task.lidar);
  FigureOptions sample_options = options;
  sample_options.lidar = &lidar;
  sample_options.title = fmt::format("A sample world \u2013 {}", run);
  if (auto saved = writer.Save("world", {{&worlds[0], "", {}}}, sample_options); !saved) {
    return saved;
  }

  std::vector<Panel> panels(kWorlds);
  for (std::size_t w = 0; w < kWorlds; ++w) {
    panels[w].world = &worlds[w];
    panels[w].title = fmt::format("unseen world {}", w + 1);
  }
  for (const Drawn& drawn : {Drawn{"final", fmt::format("final-{}", learner)},
                             Drawn{"locally converged", fmt::format("first-stop-{}", learner)},
                             Drawn{"initial", fmt::format("initial-{}", learner)}}) {
    const std::string path = files.Policy(drawn.file);
    if (!std::filesystem::exists(path)) continue;  // a learner that never stopped
    Result<Mlp> mlp = LoadPolicy(path);
    if (!mlp) return mlp.error();
    const Policy policy = *std::move(mlp);
    if (const auto mismatch = FindMismatch(policy, task.lidar, task.robot)) {
      return Error{ErrorCode::kMismatch, fmt::format("{}: {}", path, *mismatch)};
    }
    Rollout rollout(task, policy, BestKernel());
    for (std::size_t w = 0; w < kWorlds; ++w) {
      std::vector<Episode> episode(1);
      std::vector<Trajectory> way(1);
      const std::span<const World> one(&worlds[w], 1);
      rollout.Run(GivenWorlds(one), static_cast<int>(worlds[w].starts.size()), 0, episode, way);
      panels[w].paths.push_back({std::move(way[0]), episode[0].outcome, drawn.label});
    }
  }
  const bool stopped = std::filesystem::exists(files.Policy(fmt::format("first-stop-{}", learner)));
  options.title = fmt::format("Learner {}: initial{} and final policy \u2013 {}", learner,
                              stopped ? ", locally converged" : "", run);
  return writer.Save("trajectories", panels, options);
}

}  // namespace

Result<std::vector<std::string>> DrawRun(const PlotCommand& command) {
  const Result<RunFiles> files = OpenRun(command.directory);
  if (!files) return files.error();
  const Result<RunIdentity> identity = LoadRunIdentity(*files);
  if (!identity) return identity.error();
  const Result<Config> config = LoadConfig(files->Config());
  if (!config) return config.error();
  if (command.learner < 1 || command.learner > config->num_learners) {
    return Error{ErrorCode::kUsage, fmt::format("--learner = {}: the run has learners 1..{}",
                                                command.learner, config->num_learners)};
  }
  const auto metrics = LoadMetrics(files->Metrics());
  if (!metrics) return metrics.error();
  const auto truth = LoadTruth(files->Truth());
  if (!truth) return truth.error();
  const auto timing = LoadTiming(files->Timing());
  if (!timing) return timing.error();

  RunFigureOptions options;
  options.title = fmt::format("seed {}", identity->seed);
  options.config = identity->config_name;
  // The paper's rate is a level of its own world, and of ours that is harder.
  const bool like_the_paper = options.config == "paper-tables" || options.config == "default";
  const std::vector<SafetyLevel> levels =
      like_the_paper ? kSafetyLevels : std::vector<SafetyLevel>{{0.9, ""}, {0.95, ""}, {0.99, ""}};
  const std::pair<const char*, ChartFigure> figures[] = {
      {"bounds",
       MakeBoundsFigure(*metrics, *truth, command.learner, config->training.gamma, options)},
      {"learning", MakeLearningFigure(*metrics, *truth, options)},
      {"seconds", MakeSecondsFigure(*truth, *timing, levels, options)},
  };
  FigureWriter writer(*files);
  for (const auto& [name, figure] : figures) {
    if (auto saved = writer.Save(name, figure); !saved) return saved.error();
  }
  if (auto drawn = DrawTrajectories(*files, *config, *identity, command.learner, writer); !drawn) {
    return drawn.error();
  }
  return writer.TakeWritten();
}

Result<void> RunPlot(const PlotCommand& command) {
  const Result<std::vector<std::string>> written = DrawRun(command);
  if (!written) return written.error();
  for (const std::string& path : *written) Print("{}\n", path);
  return {};
}

}  // namespace fedgen
