// SPDX-License-Identifier: Apache-2.0
#include "fedgen/cli/reproduce.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "fedgen/base/file.h"
#include "fedgen/base/hash.h"
#include "fedgen/base/text.h"
#include "fedgen/base/version.h"
#include "fedgen/cli/print.h"
#include "fedgen/cli/progress.h"
#include "fedgen/report/paper_tables.h"
#include "fedgen/run/run_files.h"
#include "fedgen/run/run_tables.h"

namespace fedgen {
namespace {

namespace fs = std::filesystem;

std::int64_t UnseenWorlds(const ReproduceCommand& command) { return command.quick ? 200 : 10000; }

Result<void> ReproduceTable1(const ReproduceCommand& command, const Campaign& campaign) {
  Result<Config> config = LoadExperiment(command, kPaperTablesConfig, {});
  if (!config) return config.error();
  Part part;
  part.name = fmt::format("seed {}", command.seed);
  part.config = *std::move(config);
  part.seed = command.seed;
  part.worlds = UnseenWorlds(command);
  part.stages = true;
  const auto outcomes = RunParts(campaign, "table1", {part});
  if (!outcomes) return outcomes.error();
  const RunOutcome& run = outcomes->front();
  const std::string text = Table1Text(
      run, fmt::format("Table 1: {}, seed {}", SourceText(command, kPaperTablesConfig), part.seed));
  if (auto done = campaign.Write("table1", "table1.txt", text); !done) return done;
  if (auto done = campaign.Write("table1", "table1.csv", Table1Csv(run)); !done) return done;
  Print("{}", text);
  return {};
}

// Every column sees about as many learners: twice as many seeds for half as many learners. Whether
// a run of few learners goes well is a matter of luck (one of them must find a way), so it takes
// many to see how often.
//
// One learner alone is any learner of a larger run until it first stops: nothing reaches it before.
// So the first column comes from where all learners of the largest runs first stopped.
Result<void> ReproduceTable2(const ReproduceCommand& command, const Campaign& campaign) {
  const int num_learners = kPaperTable2Learners.back() * NumSeeds(command, kTable2Seeds);
  std::vector<Part> parts;
  std::vector<Table2Column> columns;
  for (const int learners : kPaperTable2Learners) {
    Table2Column& column = columns.emplace_back();
    column.learners = learners;
    column.local = learners == 1;
    if (column.local) continue;
    Result<Config> config = LoadExperiment(command, kPaperTablesConfig,
                                           {fmt::format("federation.learners={}", learners)});
    if (!config) return config.error();
    const int num_seeds = (num_learners + learners - 1) / learners;
    column.runs.resize(static_cast<std::size_t>(num_seeds));
    for (int index = 0; index < num_seeds; ++index) {
      Part part;
      part.config = *config;
      part.seed = command.seed + static_cast<std::uint64_t>(index);
      part.name = fmt::format("{} learners, seed {}", learners, part.seed);
      part.worlds = UnseenWorlds(command);
      part.stages = true;
      parts.push_back(std::move(part));
    }
  }
  const auto outcomes = RunParts(campaign, "table2", parts);
  if (!outcomes) return outcomes.error();
  auto next = outcomes->begin();
  for (Table2Column& column : columns) {
    for (RunOutcome& run : column.runs) run = *next++;
  }
  columns.front().runs = columns.back().runs;
  const std::string text = Table2Text(
      columns,
      fmt::format("Table 2: {}, seeds from {} on, {} unseen worlds for each policy",
                  SourceText(command, kPaperTablesConfig), command.seed, UnseenWorlds(command)));
  if (auto done = campaign.Write("table2", "table2.txt", text); !done) return done;
  if (auto done = campaign.Write("table2", "table2.csv", Table2Csv(columns, command.seed)); !done) {
    return done;
  }
  Print("{}", text);
  return {};
}

std::string ConfigName(const ReproduceCommand& command, const std::string& default_config) {
  return fs::path(command.config.empty() ? default_config : command.config).stem().string();
}

// Whether the directory holds a run of this configuration and seed, finished or not.
bool HoldsRun(const RunFiles& files, const RunIdentity& wanted, const Config& config) {
  const Result<RunIdentity> identity = LoadRunIdentity(files);
  const Result<Config> held = LoadConfig(files.Config());
  return identity && identity->seed == wanted.seed && identity->config_name == wanted.config_name &&
         held && held->resolved == config.resolved;
}

// The learner whose figures are drawn: the first, as in the paper, unless it was never rescued and
// another one was.
int ChooseLearner(const std::vector<MetricsRow>& metrics) {
  std::vector<int> rescued;
  for (const MetricsRow& row : metrics) {
    if (row.state == LearnerPhase::kAdopted) rescued.push_back(row.learner);
  }
  return rescued.empty() ? 1 : *std::min_element(rescued.begin(), rescued.end());
}

// A table-1 run again, with the truth looked at every few rounds.
Result<void> ReproduceFigures(const ReproduceCommand& command, const Campaign& campaign) {
  const std::vector<std::string> tracking =
      command.quick
          ? std::vector<std::string>{"federation.track_every=4", "federation.track_worlds=200",
                                     "federation.certificate_worlds=200"}
          : std::vector<std::string>{"federation.track_every=5", "federation.track_worlds=10000"};
  const Result<Config> config = LoadExperiment(command, kPaperTablesConfig, tracking);
  if (!config) return config.error();
  const RunFiles files(campaign.PathOf("figures") + "/run");
  const std::string stem = ConfigName(command, kPaperTablesConfig);
  std::error_code error;
  const bool resumes = HoldsRun(files, {command.seed, stem}, *config);
  if (!resumes && fs::exists(files.directory(), error)) {
    return LeftAsItIs(files.directory(), "another run");
  }
  const Result<std::string> directory = campaign.Directory("figures");
  if (!directory) return directory.error();
  const std::string resolved = fmt::format("{}/{}.toml", *directory, stem);  // names the figures
  if (auto done = WriteFileAtomically(resolved, config->resolved, IfExists::kReplace); !done) {
    return done;
  }
  TrainCommand train;
  train.threads = campaign.num_threads();
  train.no_figures = true;
  if (resumes) {
    train.resume = files.directory();
  } else {
    train.config = resolved;
    train.seed = command.seed;
    train.out = files.directory();
  }
  if (!fs::exists(files.Summary(), error)) {
    if (auto done = RunTrain(train); !done) return done;
  }

  const auto metrics = LoadMetrics(files.Metrics());
  if (!metrics) return metrics.error();
  const int learner = ChooseLearner(*metrics);
  if (auto drawn = DrawRun({files.directory(), learner}); !drawn) return drawn.error();
  Print("figures of learner {}{}: {}/figures/{{bounds,learning,world,trajectories}}.{{svg,png}}\n",
        learner,
        learner == 1 ? "" : ", the first that was rescued (learner 1, the paper's, was not)",
        files.directory());
  return {};
}

}  // namespace

Result<Config> LoadExperiment(const ReproduceCommand& command, const std::string& default_config,
                              const std::vector<std::string>& overrides) {
  std::vector<std::string> all = command.overrides;
  if (command.quick) {
    for (const char* quick : {"federation.rounds=12", "federation.selection_worlds=200",
                              "learner.worlds=10", "learner.pairs=4"}) {
      all.emplace_back(quick);
    }
  }
  all.insert(all.end(), overrides.begin(), overrides.end());
  if (!command.config.empty()) return LoadConfig(command.config, all);
  Result<Config> config = LoadConfig(default_config, all);
  if (!config && config.error().code == ErrorCode::kIo) {
    return Error{ErrorCode::kIo, config.error().message + " (--config names one elsewhere)"};
  }
  return config;
}

std::string SourceText(const ReproduceCommand& command, const std::string& default_config) {
  std::string text = ConfigName(command, default_config);
  for (const std::string& given : command.overrides) text += " " + given;
  return command.quick ? text + " (quick: these numbers mean nothing)" : text;
}

int NumSeeds(const ReproduceCommand& command, int wanted) {
  if (command.seeds > 0) return command.seeds;
  return command.quick ? 2 : wanted;
}

namespace {

struct Experiment {
  const char* name;
  Result<void> (*run)(const ReproduceCommand&, const Campaign&);
  const char* config;  // if the command names none
  int seeds;           // that it wants; 0 if it has one
};

constexpr std::array<Experiment, 5> kExperiments = {{
    {"table1", ReproduceTable1, kPaperTablesConfig, 0},
    {"table2", ReproduceTable2, kPaperTablesConfig, kTable2Seeds},
    {"figures", ReproduceFigures, kPaperTablesConfig, 0},
    {"tradeoffs", ReproduceTradeoffs, kPaperTablesConfig, kTradeoffSeeds},
    {"comparison", ReproduceComparison, kComparisonConfig, kComparisonSeeds},
}};

// All that results depend on, for people first and then to the last bit.
Result<std::string> SettingsText(const ReproduceCommand& command, const Experiment& experiment) {
  const Result<Config> config = LoadExperiment(command, experiment.config, {});
  if (!config) return config.error();
  std::string given = fmt::format("{}", fmt::join(command.overrides, " "));
  std::replace(given.begin(), given.end(), '\n', ' ');
  return fmt::format(
      "program = {}\nconfig = {}\nsettings = {}\nquick = {}\nseed = {}\n{}sha256 = {}\n", kVersion,
      ConfigName(command, experiment.config), given.empty() ? "(none)" : given,
      command.quick ? "yes" : "no", command.seed,
      experiment.seeds > 0 ? fmt::format("seeds = {}\n", NumSeeds(command, experiment.seeds)) : "",
      Sha256Hex(config->resolved));
}

}  // namespace

Result<std::vector<RunOutcome>> RunParts(const Campaign& campaign, const std::string& experiment,
                                         const std::vector<Part>& parts) {
  std::optional<Progress> progress;
  std::int64_t total = 0;
  CampaignListener listener;
  listener.on_begin = [&](const std::string& name, std::size_t known, std::size_t all,
                          std::int64_t episodes) {
    PrintError("{}: {} of {} runs were done before\n", name, known, all);
    total = episodes;
    progress.emplace(name, "episodes", episodes);
  };
  listener.on_progress = [&](std::int64_t episodes) { progress->Update(episodes); };
  listener.on_part = [&](const Part& part, const RunOutcome& outcome, std::size_t number,
                         std::size_t missing, std::int64_t done) {
    const double left =
        progress->seconds() * static_cast<double>(total - done) / static_cast<double>(done);
    PrintError("{}{} {}/{}  {}: {}, {} in {:.1f} s, {}{}\n",
               ::isatty(STDERR_FILENO) == 1 ? "\r\033[K" : "", experiment, number, missing,
               part.name, Counted(outcome.rounds, "round"), Counted(outcome.episodes, "episode"),
               outcome.seconds, Counted(outcome.adoptions(), "adoption"),
               number < missing ? "  " + DurationText(left) + " left" : "");
  };
  return campaign.Run(experiment, parts, listener);
}

Result<void> RunReproduce(const ReproduceCommand& command) {
  std::vector<std::string> names = {"all"};
  for (const Experiment& experiment : kExperiments) names.emplace_back(experiment.name);
  if (std::find(names.begin(), names.end(), command.what) == names.end()) {
    return Error{ErrorCode::kUsage,
                 fmt::format("{}: must be table1, table2, figures, tradeoffs, comparison or all, "
                             "did you mean {}?",
                             command.what, NearestName(command.what, names))};
  }
  const Result<int> num_threads = NumThreads(command.threads);
  if (!num_threads) return num_threads.error();
  const auto is_wanted = [&](const Experiment& experiment) {
    return command.what == "all" || command.what == experiment.name;
  };
  // A configuration that cannot be read should leave no directory behind.
  ExperimentSettings settings;
  for (const Experiment& experiment : kExperiments) {
    if (!is_wanted(experiment)) continue;
    Result<std::string> text = SettingsText(command, experiment);
    if (!text) return text.error();
    settings[experiment.name] = *std::move(text);
  }
  const Result<Campaign> campaign = Campaign::Open(command.out, *num_threads, std::move(settings));
  if (!campaign) return campaign.error();
  for (const Experiment& experiment : kExperiments) {
    if (!is_wanted(experiment)) continue;
    if (auto done = experiment.run(command, *campaign); !done) return done;
    if (command.what == "all") Print("\n");
  }
  return {};
}

}  // namespace fedgen
