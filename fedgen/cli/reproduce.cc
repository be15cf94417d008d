// SPDX-License-Identifier: Apache-2.0
#include "fedgen/cli/reproduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>

#include "fedgen/base/file.h"
#include "fedgen/base/hash.h"
#include "fedgen/base/text.h"
#include "fedgen/base/version.h"
#include "fedgen/cli/commands.h"
#include "fedgen/cli/live_view.h"
#include "fedgen/cli/print.h"
#include "fedgen/cli/progress.h"
#include "fedgen/report/campaign_tables.h"
#include "fedgen/report/paper_tables.h"
#include "fedgen/report/run_figures.h"
#include "fedgen/report/run_pictures.h"
#include "fedgen/run/campaign.h"
#include "fedgen/run/experiment.h"
#include "fedgen/run/run_files.h"
#include "fedgen/run/run_summary.h"
#include "fedgen/run/run_tables.h"

namespace fedgen {
namespace {

namespace fs = std::filesystem;

constexpr char kPaperTablesConfig[] = "configs/paper-tables.toml";
constexpr char kPaperTextConfig[] = "configs/paper-text.toml";
constexpr int kSigmaSeeds = 5;
constexpr int kTable2Seeds = 5;
constexpr int kTradeoffSeeds = 3;

// ---- What all experiments share -----------------------------------------------------------------

// Whether the directory holds a run of this configuration and seed, finished or not.
bool HoldsRun(const RunFiles& files, const RunIdentity& wanted, const Config& config) {
  const Result<RunIdentity> identity = LoadRunIdentity(files);
  const Result<Config> held = LoadConfig(files.Config());
  return identity && identity->seed == wanted.seed && identity->config_name == wanted.config_name &&
         held && held->resolved == config.resolved;
}

}  // namespace

Result<Config> LoadExperiment(const ReproduceCommand& command, const std::string& default_config,
                              const std::vector<std::string>& overrides) {
  std::vector<std::string> all = command.overrides;
  if (command.quick) {
    for (const char* quick :
         {"federation.rounds=12", "federation.selection_worlds=200", "learner.worlds=10",
          "learner.pairs=4", "learner.stock_worlds=50", "learner.policy_gradient.episodes=32"}) {
      all.emplace_back(quick);
    }
  }
  all.insert(all.end(), overrides.begin(), overrides.end());
  if (!command.config.empty()) return LoadConfig(command.config, all);
  Result<Config> config = LoadConfig(default_config, all);
  if (!config && config.error().code == ErrorCode::kIo) {
    return Error{
        ErrorCode::kIo,
        config.error().message + " (run fedgen where configs/ is, or name a file with --config)"};
  }
  return config;
}

std::string ConfigName(const ReproduceCommand& command, const std::string& default_config) {
  return fs::path(command.config.empty() ? default_config : command.config).stem().string();
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

std::uint64_t SeedOf(const ReproduceCommand& command, int index, std::uint64_t first) {
  return command.seed.value_or(first) + static_cast<std::uint64_t>(index);
}

std::int64_t NumWorlds(const ReproduceCommand& command, std::int64_t wanted) {
  return command.quick ? 200 : wanted;
}

Part MakePart(Config config, std::uint64_t seed, const std::string& what, std::int64_t worlds) {
  Part part;
  part.config = std::move(config);
  part.seed = seed;
  part.name = fmt::format("{}seed {}", what, part.seed);
  part.worlds = worlds;
  return part;
}

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
    progress->Wipe();
    PrintError("{} {}/{}  {}: {}, {} in {:.1f} s, {}{}\n", experiment, number, missing, part.name,
               Counted(outcome.rounds, "round"), Counted(outcome.episodes, "episode"),
               outcome.seconds, Counted(outcome.adoptions(), "adoption"),
               number < missing ? "  " + DurationText(left) + " left" : "");
  };
  return campaign.Run(experiment, parts, listener);
}

Result<void> Publish(const Campaign& campaign, const std::string& name, const std::string& text,
                     const std::string& csv) {
  FEDGEN_TRY(campaign.Write(name, name + ".txt", text));
  FEDGEN_TRY(campaign.Write(name, name + ".csv", csv));
  Print("{}", text);
  return {};
}

Result<RunFiles> TrainInside(const Campaign& campaign, const std::string& experiment,
                             const std::string& name, const Config& config,
                             const RunIdentity& identity) {
  RunFiles files(campaign.PathOf(experiment) + "/" + name);
  std::error_code error;
  const bool resumes = HoldsRun(files, identity, config);
  if (!resumes && fs::exists(files.directory(), error)) {
    return LeftAsItIs(files.directory(), "another run");
  }
  FEDGEN_TRY(campaign.Directory(experiment));
  if (!fs::exists(files.Summary(), error)) {
    LocalRun run = FEDGEN_TRY(
        resumes ? ReopenRun(files.directory())
                : StartRun(config, identity.seed, identity.config_name, files.directory()));
    run.experiment.num_threads = campaign.num_threads();
    FEDGEN_TRY(ExecuteWithView(run, resumes));
  }
  return files;
}

namespace {

// ---- The paper's tables and figures -------------------------------------------------------------

// A run with its learners' stages beside the paper's Table 1, and what is expected of it.
Result<Checked> ReproduceStages(const ReproduceCommand& command, const Campaign& campaign,
                                const std::string& experiment, const std::string& title,
                                const char* default_config,
                                std::vector<Check> (*checks_of)(const RunOutcome&)) {
  Config config = FEDGEN_TRY(LoadExperiment(command, default_config, {}));
  Part part = MakePart(std::move(config), SeedOf(command, 0), "", NumWorlds(command));
  part.stages = true;
  const std::vector<RunOutcome> outcomes = FEDGEN_TRY(RunParts(campaign, experiment, {part}));
  const RunOutcome& run = outcomes.front();
  const std::vector<Check> checks = checks_of(run);
  const std::string heading =
      fmt::format("{}: {}, seed {}", title, SourceText(command, default_config), part.seed);
  FEDGEN_TRY(Publish(campaign, experiment, Table1Text(run, heading, checks), Table1Csv(run)));
  return Checked{static_cast<int>(checks.size()), NumMissed(checks)};
}

Result<Checked> ReproduceTable1(const ReproduceCommand& command, const Campaign& campaign) {
  return ReproduceStages(command, campaign, "table1", "Table 1", kPaperTablesConfig, Table1Checks);
}

// The paper's text by the letter, beside the same table.
Result<Checked> ReproduceText(const ReproduceCommand& command, const Campaign& campaign) {
  return ReproduceStages(command, campaign, "text", "The text's numbers beside Table 1",
                         kPaperTextConfig, TextChecks);
}

// Table 1 with sigma kept and moving, since the paper updates sigma and does not say how fast.
Result<Checked> ReproduceSigma(const ReproduceCommand& command, const Campaign& campaign) {
  struct Way {
    const char* name;
    const char* rate;
    const char* step;
  };
  constexpr std::array<Way, 4> kWays = {{{"frozen", "0", "additive"},
                                         {"additive, mu's step", "1", "additive"},
                                         {"additive, mu's step / 50", "0.02", "additive"},
                                         {"multiplicative, mu's step", "1", "multiplicative"}}};
  const int num_seeds = NumSeeds(command, kSigmaSeeds);
  std::vector<Part> parts;
  for (const Way& way : kWays) {
    const Config config =
        FEDGEN_TRY(LoadExperiment(command, kPaperTablesConfig,
                                  {fmt::format("learner.sigma_rate={}", way.rate),
                                   fmt::format("learner.sigma_step={}", way.step)}));
    for (int index = 0; index < num_seeds; ++index) {
      Part part = MakePart(config, SeedOf(command, index), fmt::format("sigma {}, ", way.name),
                           NumWorlds(command));
      part.stages = true;
      parts.push_back(std::move(part));
    }
  }
  const std::vector<RunOutcome> outcomes = FEDGEN_TRY(RunParts(campaign, "sigma", parts));
  std::vector<Table1Variant> variants;
  auto next = outcomes.begin();
  for (const Way& way : kWays) {
    variants.push_back({way.name, {next, next + num_seeds}});
    next += num_seeds;
  }
  const std::string title =
      fmt::format("Table 1 with sigma frozen and moving: {}, {} unseen worlds for each policy\n",
                  SourceText(command, kPaperTablesConfig), NumWorlds(command));
  FEDGEN_TRY(Publish(campaign, "sigma", VariantsText(variants, title, SeedOf(command, 0)),
                     VariantsCsv(variants, SeedOf(command, 0))));
  return Checked{};
}

// Every column has about as many learners in all: half as many learners per run, twice as many
// seeds. Whether a run of few learners succeeds is a matter of luck (one of them must learn to
// arrive), so it takes many runs to see how often.
//
// Until its first stop a learner receives nothing from the others, so it does what it would do
// alone. The first column therefore comes from where the learners of the largest runs first
// stopped.
Result<Checked> ReproduceTable2(const ReproduceCommand& command, const Campaign& campaign) {
  const int num_learners = kPaperTable2Learners.back() * NumSeeds(command, kTable2Seeds);
  std::vector<Part> parts;
  std::vector<Table2Column> columns;
  for (const int learners : kPaperTable2Learners) {
    Table2Column& column = columns.emplace_back();
    column.learners = learners;
    column.local = learners == 1;
    if (column.local) continue;
    const Config config = FEDGEN_TRY(LoadExperiment(
        command, kPaperTablesConfig, {fmt::format("federation.learners={}", learners)}));
    const int num_seeds = (num_learners + learners - 1) / learners;
    column.runs.resize(static_cast<std::size_t>(num_seeds));
    for (int index = 0; index < num_seeds; ++index) {
      Part part = MakePart(config, SeedOf(command, index), fmt::format("{} learners, ", learners),
                           NumWorlds(command));
      part.stages = true;
      parts.push_back(std::move(part));
    }
  }
  const std::vector<RunOutcome> outcomes = FEDGEN_TRY(RunParts(campaign, "table2", parts));
  auto next = outcomes.begin();
  for (Table2Column& column : columns) {
    for (RunOutcome& run : column.runs) run = *next++;
  }
  columns.front().runs = columns.back().runs;
  const std::string title =
      fmt::format("Table 2: {}, seeds from {} on, {} unseen worlds for each policy",
                  SourceText(command, kPaperTablesConfig), SeedOf(command, 0), NumWorlds(command));
  FEDGEN_TRY(Publish(campaign, "table2", Table2Text(columns, title),
                     Table2Csv(columns, SeedOf(command, 0))));
  return Checked{};
}

// The learner whose figures are drawn: the first that ever adopted a policy, else learner 1, the
// paper's.
int ChooseLearner(const std::vector<MetricsRow>& metrics) {
  std::vector<int> adopters;
  for (const MetricsRow& row : metrics) {
    if (row.state == LearnerPhase::kAdopted) adopters.push_back(row.learner);
  }
  return adopters.empty() ? 1 : *std::min_element(adopters.begin(), adopters.end());
}

// The run of table 1 again, with policies measured in fresh worlds every few rounds (truth.csv).
Result<Checked> ReproduceFigures(const ReproduceCommand& command, const Campaign& campaign) {
  const std::vector<std::string> tracking =
      command.quick
          ? std::vector<std::string>{"federation.track_every=4", "federation.track_worlds=200",
                                     "federation.certificate_worlds=300"}
          : std::vector<std::string>{"federation.track_every=5", "federation.track_worlds=10000"};
  const Config config = FEDGEN_TRY(LoadExperiment(command, kPaperTablesConfig, tracking));
  const RunFiles files =
      FEDGEN_TRY(TrainInside(campaign, "figures", "run", config,
                             {SeedOf(command, 0), ConfigName(command, kPaperTablesConfig)}));
  const int learner = ChooseLearner(FEDGEN_TRY(LoadMetrics(files.Metrics())));
  FEDGEN_TRY(DrawRun({files.directory(), learner}));
  Print("figures of learner {}{}: {}/figures/{{bounds,learning,world,trajectories}}.{{svg,png}}\n",
        learner,
        learner == 1 ? "" : ", the first that adopted a policy (learner 1, the paper's, did not)",
        files.directory());
  return Checked{};
}

// ---- Trade-offs ---------------------------------------------------------------------------------

// One setting is changed, all others stay as configured.
struct Sweep {
  const char* name;   // of its files
  const char* title;  // of its figure
  const char* key;    // what is changed
  const char* x_label;
  bool log_x;
  std::vector<double> values;
};

std::vector<Sweep> Sweeps(bool quick) {
  std::vector<Sweep> sweeps = {
      {"gamma",
       "The confidence parameter \u03b3, which sets b",
       "federation.gamma",
       "\u03b3",
       true,
       {1e-6, 1e-4, 0.01, 0.1, 0.5}},
      {"b",
       "The bias b, set directly",
       "learner.bias",
       "b",
       false,
       {0.05, 0.1, 0.15, 0.2, 0.23, 0.25, 0.3}},
      {"worlds",
       "Worlds per round",
       "learner.worlds",
       "worlds n_E per round and learner",
       true,
       {10, 20, 35, 50, 100, 200}},
      {"q",
       "The stop threshold q of the gradient",
       "learner.threshold",
       "threshold q",
       false,
       {2.2, 2.4, 2.6, 2.8, 3.2, 4}},
      {"step",
       "The step size",
       "learner.step",
       "step size r",
       true,
       {0.1, 0.2, 0.35, 0.5, 0.7, 1.0}},
      {"learners",
       "The number of learners",
       "federation.learners",
       "learners",
       false,
       {1, 2, 4, 6, 8, 12}},
  };
  if (quick) {
    for (Sweep& sweep : sweeps) sweep.values = {sweep.values[1], sweep.values[2]};
  }
  return sweeps;
}

Result<std::vector<Part>> MakeSweepParts(const ReproduceCommand& command,
                                         const std::vector<Sweep>& sweeps, int num_seeds) {
  std::vector<Part> parts;
  for (const Sweep& sweep : sweeps) {
    for (const double value : sweep.values) {
      const std::string setting = fmt::format("{}={}", sweep.key, value);
      const Config config = FEDGEN_TRY(LoadExperiment(command, kPaperTablesConfig, {setting}));
      for (int index = 0; index < num_seeds; ++index) {
        parts.push_back(MakePart(config, SeedOf(command, index),
                                 fmt::format("{} = {}, ", sweep.key, value),
                                 NumWorlds(command, 2000)));
      }
    }
  }
  return parts;
}

Result<Checked> ReproduceTradeoffs(const ReproduceCommand& command, const Campaign& campaign) {
  const int num_seeds = NumSeeds(command, kTradeoffSeeds);
  const std::vector<Sweep> sweeps = Sweeps(command.quick);
  const std::vector<Part> parts = FEDGEN_TRY(MakeSweepParts(command, sweeps, num_seeds));
  const std::vector<RunOutcome> outcomes = FEDGEN_TRY(RunParts(campaign, "tradeoffs", parts));
  const std::string directory = FEDGEN_TRY(campaign.Directory("tradeoffs"));

  const std::string source = SourceText(command, kPaperTablesConfig);
  const std::string seeds = Counted(num_seeds, "seed");
  const std::string worlds =
      fmt::format("{} for each final policy", Counted(parts.front().worlds, "unseen world"));
  std::string text = fmt::format("Trade-offs around {}: mean over {} [lowest, highest]; {}\n\n",
                                 source, seeds, worlds);
  std::size_t next = 0;
  for (const Sweep& sweep : sweeps) {
    std::vector<SweepRow> rows;
    for (const double value : sweep.values) {
      for (int index = 0; index < num_seeds; ++index, ++next) {
        rows.push_back(MakeSweepRow(value, parts[next].seed, outcomes[next]));
      }
    }
    TradeoffOptions options;
    options.title = sweep.title;
    options.subtitle = fmt::format("{}; mean, lowest and highest of {}; {}", source, seeds, worlds);
    options.x_label = sweep.x_label;
    options.log_x = sweep.log_x;
    FEDGEN_TRY(SaveSvgAndPng(fmt::format("{}/{}", directory, sweep.name),
                             MakeTradeoffFigure(MakeTradeoffs(rows), options), IfExists::kReplace));
    FEDGEN_TRY(campaign.Write("tradeoffs", fmt::format("{}.csv", sweep.name), SweepCsv(rows)));
    text += SweepText(fmt::format("{} ({})", sweep.name, sweep.key), rows) + "\n";
  }
  FEDGEN_TRY(campaign.Write("tradeoffs", "tradeoffs.txt", text));
  Print("{}figures and tables: {}/\n", text, directory);
  return Checked{};
}

// ---- The verb -----------------------------------------------------------------------------------

std::vector<NamedExperiment> AllExperiments() {
  std::vector<NamedExperiment> all = {
      {"table1", {kPaperTablesConfig}, ReproduceTable1},
      {"text", {kPaperTextConfig}, ReproduceText},
      {.name = "sigma",
       .configs = {kPaperTablesConfig},
       .run = ReproduceSigma,
       .seeds = kSigmaSeeds,
       .sets = {"learner.sigma_rate", "learner.sigma_step"}},
      {.name = "table2",
       .configs = {kPaperTablesConfig},
       .run = ReproduceTable2,
       .seeds = kTable2Seeds,
       .sets = {"federation.learners"}},
      {"figures", {kPaperTablesConfig}, ReproduceFigures},
      {"tradeoffs", {kPaperTablesConfig}, ReproduceTradeoffs, kTradeoffSeeds},
  };
  for (NamedExperiment& experiment : ComparisonExperiments()) all.push_back(std::move(experiment));
  return all;
}

// Those that the command asks for, in the order in which they are run.
Result<std::vector<NamedExperiment>> WantedExperiments(const ReproduceCommand& command) {
  std::vector<NamedExperiment> wanted;
  std::vector<std::string> names;
  for (NamedExperiment& experiment : AllExperiments()) {
    names.push_back(experiment.name);
    if (command.what == "all" || command.what == experiment.name ||
        command.what == experiment.whole) {
      wanted.push_back(std::move(experiment));
    }
  }
  if (!wanted.empty()) return wanted;
  const std::string known = fmt::format("{}", fmt::join(names, ", "));
  names.emplace_back("all");
  return Error{ErrorCode::kUsage, fmt::format("{}: must be {} or all{}", command.what, known,
                                              DidYouMean(command.what, names))};
}

Result<void> CheckFlags(const ReproduceCommand& command,
                        const std::vector<NamedExperiment>& wanted) {
  const auto has_seeds = [](const NamedExperiment& experiment) { return experiment.seeds > 0; };
  if (command.seeds > 0 && std::none_of(wanted.begin(), wanted.end(), has_seeds)) {
    return Error{ErrorCode::kUsage,
                 fmt::format("--seeds = {}: {} has one seed, the one that --seed names",
                             command.seeds, command.what)};
  }
  // Few more than the last would begin again at 0.
  constexpr std::uint64_t kMostSeeds = 1'000'000;
  if (command.seed && *command.seed > std::numeric_limits<std::uint64_t>::max() - kMostSeeds) {
    return Error{ErrorCode::kUsage, fmt::format("--seed = {}: must leave room for {} more",
                                                *command.seed, kMostSeeds)};
  }
  for (const NamedExperiment& experiment : wanted) {
    for (const std::string& given : command.overrides) {
      const auto is_set = [&](const std::string& key) { return Sets(given, key); };
      if (std::ranges::none_of(experiment.sets, is_set)) continue;
      return Error{ErrorCode::kUsage,
                   fmt::format("--set {}: {} sets this key itself", given, experiment.name)};
    }
    if (command.config.empty() || experiment.configs.size() == 1) continue;
    return Error{ErrorCode::kUsage,
                 fmt::format("--config = {}: is one file, {} reads {}", command.config,
                             experiment.name, fmt::join(experiment.configs, " and "))};
  }
  return {};
}

// All that the results depend on: for people, and as a hash of the whole configuration.
Result<std::string> SettingsText(const ReproduceCommand& command,
                                 const NamedExperiment& experiment) {
  std::vector<std::string> names;
  std::string resolved;
  for (const std::string& file : experiment.configs) {
    names.push_back(ConfigName(command, file));
    resolved += FEDGEN_TRY(LoadExperiment(command, file, {})).resolved;
  }
  std::string given = fmt::format("{}", fmt::join(command.overrides, " "));
  std::replace(given.begin(), given.end(), '\n', ' ');
  return fmt::format(
      "program = {}\nconfig = {}\nsettings = {}\nquick = {}\nseed = {}\n{}sha256 = {}\n", kVersion,
      fmt::join(names, ", "), given.empty() ? "(none)" : given, command.quick ? "yes" : "no",
      SeedOf(command, 0, experiment.first_seed),
      experiment.seeds > 0 ? fmt::format("seeds = {}\n", NumSeeds(command, experiment.seeds)) : "",
      Sha256Hex(resolved));
}

}  // namespace

Result<void> RunReproduce(const ReproduceCommand& command) {
  const std::vector<NamedExperiment> wanted = FEDGEN_TRY(WantedExperiments(command));
  FEDGEN_TRY(CheckFlags(command, wanted));
  const int num_threads = FEDGEN_TRY(NumThreads(command.threads));
  // A configuration that cannot be read should leave no directory behind.
  ExperimentSettings settings;
  for (const NamedExperiment& experiment : wanted) {
    settings[experiment.name] = FEDGEN_TRY(SettingsText(command, experiment));
  }
  const Campaign campaign =
      FEDGEN_TRY(Campaign::Open(command.out, num_threads, std::move(settings)));
  std::vector<std::string> missed;
  for (const NamedExperiment& experiment : wanted) {
    const Checked checked = FEDGEN_TRY(experiment.run(command, campaign));
    if (checked.missed > 0) {
      missed.push_back(fmt::format("{}: {} of {} checks {} missed", experiment.name, checked.missed,
                                   checked.made, checked.missed == 1 ? "was" : "were"));
    }
    if (wanted.size() > 1) Print("\n");
  }
  // What means nothing misses nothing.
  if (command.quick || missed.empty()) return {};
  return Error{ErrorCode::kMissed, fmt::format("{}", fmt::join(missed, "; "))};
}

}  // namespace fedgen
