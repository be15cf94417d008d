// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "fedgen/base/text.h"
#include "fedgen/cli/print.h"
#include "fedgen/cli/reproduce.h"
#include "fedgen/report/campaign_tables.h"
#include "fedgen/report/run_curves.h"
#include "fedgen/run/experiment.h"
#include "fedgen/run/run_tables.h"

namespace fedgen {
namespace {

constexpr char kDefaultConfig[] = "configs/default.toml";
constexpr char kRoomsConfig[] = "configs/rooms.toml";
constexpr char kEvolutionConfig[] = "configs/evolution.toml";

// ---- Algorithms ---------------------------------------------------------------------------------

// Is the federation worth it? fedgen beside other ways to use as many episodes, in three settings;
// then three statements that were named before any of them was run.

struct Setting {
  const char* name;  // of its experiment
  const char* config;
  int share;  // of the configured rounds, as 1 / share
  const char* share_name;
  int seeds;
  std::int64_t worlds;  // on which each policy is measured
};

constexpr Setting kTenth = {
    "comparison-tenth", kDefaultConfig, 10, "a tenth of the rounds", 10, 100'000};
constexpr Setting kRooms = {
    "comparison-rooms", kRoomsConfig, 5, "a fifth of the rounds", 5, 20'000};
constexpr Setting kFull = {"comparison-full", kDefaultConfig, 1, "all rounds", 3, 100'000};

// Recipes were tuned with other seeds.
constexpr std::uint64_t kFirstSeed = 1001;
// Of --quick, which has few to share.
constexpr int kFewestRounds = 4;

constexpr std::array<Algorithm, 4> kAlgorithms = {Algorithm::kFedGen, Algorithm::kLocal,
                                                  Algorithm::kFedAvg, Algorithm::kCentralized};

Result<Config> LoadSetting(const ReproduceCommand& command, const Setting& setting,
                           Algorithm algorithm, int rounds) {
  std::vector<std::string> overrides = {fmt::format("federation.algorithm={}", NameOf(algorithm)),
                                        fmt::format("federation.rounds={}", rounds)};
  // So few rounds would have none of stock.
  if (command.quick) overrides.emplace_back("learner.stock_every=2");
  // The others' rounds are their budget.
  if (algorithm != Algorithm::kFedGen) overrides.emplace_back("federation.episodes=0");
  return LoadExperiment(command, setting.config, overrides);
}

Part MakeComparisonPart(const ReproduceCommand& command, const Setting& setting,
                        Algorithm algorithm, Config config, int index) {
  Part part = MakePart(std::move(config), SeedOf(command, index, kFirstSeed),
                       fmt::format("{}, ", NameOf(algorithm)), NumWorlds(command, setting.worlds));
  part.race = true;
  return part;
}

// fedgen's runs, one for each seed, with its share of the rounds.
Result<std::vector<Part>> MakeFirst(const ReproduceCommand& command, const Setting& setting) {
  const Config whole = FEDGEN_TRY(LoadExperiment(command, setting.config, {}));
  const int rounds = std::max(kFewestRounds, whole.training.federation.rounds / setting.share);
  const Config config = FEDGEN_TRY(LoadSetting(command, setting, Algorithm::kFedGen, rounds));
  const int num_seeds = NumSeeds(command, setting.seeds);
  std::vector<Part> parts;
  parts.reserve(static_cast<std::size_t>(num_seeds));
  for (int index = 0; index < num_seeds; ++index) {
    parts.push_back(MakeComparisonPart(command, setting, Algorithm::kFedGen, config, index));
  }
  return parts;
}

// The runs of another algorithm, each with about the episodes that fedgen's run of its seed took.
// The budget is given as a number of rounds, so that schedules end with the run. (Nobody stops in
// these algorithms, so a round always takes as many.)
Result<std::vector<Part>> MakeOpponents(const ReproduceCommand& command, const Setting& setting,
                                        Algorithm algorithm,
                                        const std::vector<RunOutcome>& fedgen) {
  const Config probe = FEDGEN_TRY(LoadSetting(command, setting, algorithm, 1));
  std::vector<Part> parts;
  for (int index = 0; const RunOutcome& run : fedgen) {
    const std::int64_t rounds = run.episodes / EpisodesPerRound(probe.training);
    Config config = FEDGEN_TRY(LoadSetting(command, setting, algorithm,
                                           static_cast<int>(std::max<std::int64_t>(1, rounds))));
    parts.push_back(MakeComparisonPart(command, setting, algorithm, std::move(config), index++));
  }
  return parts;
}

// Every algorithm in a setting, in the order of kAlgorithms.
Result<std::vector<Contestant>> RunSetting(const ReproduceCommand& command,
                                           const Campaign& campaign, const Setting& setting) {
  std::vector<Part> parts = FEDGEN_TRY(MakeFirst(command, setting));
  const std::vector<RunOutcome> fedgen = FEDGEN_TRY(RunParts(campaign, setting.name, parts));
  parts.clear();
  for (const Algorithm algorithm : kAlgorithms) {
    if (algorithm == Algorithm::kFedGen) continue;
    const std::vector<Part> more = FEDGEN_TRY(MakeOpponents(command, setting, algorithm, fedgen));
    parts.insert(parts.end(), more.begin(), more.end());
  }
  const std::vector<RunOutcome> others = FEDGEN_TRY(RunParts(campaign, setting.name, parts));
  std::vector<Contestant> all;
  auto next = others.begin();
  for (const Algorithm algorithm : kAlgorithms) {
    std::vector<RunOutcome> runs = fedgen;
    if (algorithm != Algorithm::kFedGen) {
      std::copy_n(next, fedgen.size(), runs.begin());
      next += static_cast<std::ptrdiff_t>(fedgen.size());
    }
    all.push_back(MakeContestant(std::string(NameOf(algorithm)), runs));
  }
  return all;
}

Result<Checked> CompareIn(const Setting& setting, const ReproduceCommand& command,
                          const Campaign& campaign) {
  const std::vector<Contestant> all = FEDGEN_TRY(RunSetting(command, campaign, setting));
  const int num_seeds = NumSeeds(command, setting.seeds);
  const std::string title =
      fmt::format("Comparison, {}: {}, seeds {} to {}, {} for each policy", setting.share_name,
                  SourceText(command, setting.config), SeedOf(command, 0, kFirstSeed),
                  SeedOf(command, num_seeds - 1, kFirstSeed),
                  Counted(NumWorlds(command, setting.worlds), "unseen world"));
  FEDGEN_TRY(Publish(campaign, setting.name, ComparisonText(all, title),
                     ComparisonCsv(all, SeedOf(command, 0, kFirstSeed))));
  return Checked{};
}

// fedgen's best policy against another algorithm's.
Statement MakeStatement(const std::string& claim, const std::vector<Contestant>& all,
                        Algorithm other, double least) {
  const auto place = std::find(kAlgorithms.begin(), kAlgorithms.end(), other);
  const auto index = static_cast<std::size_t>(place - kAlgorithms.begin());
  return {claim, all.front().best_safe, all[index].best_safe, least};
}

// The settings were run just before, so every outcome is known.
Result<Checked> JudgeStatements(const ReproduceCommand& command, const Campaign& campaign) {
  constexpr double kAllowed = 0.0005;
  const std::vector<Contestant> tenth = FEDGEN_TRY(RunSetting(command, campaign, kTenth));
  const std::vector<Contestant> rooms = FEDGEN_TRY(RunSetting(command, campaign, kRooms));
  const std::vector<Contestant> full = FEDGEN_TRY(RunSetting(command, campaign, kFull));
  const std::vector<Statement> statements = {
      MakeStatement("tenth: with a tenth of the rounds of default, fedgen's best policy arrives "
                    "safely more often than local's best",
                    tenth, Algorithm::kLocal, 0),
      MakeStatement("rooms: with a fifth of the rounds of rooms, fedgen's best policy arrives "
                    "safely more often than local's best",
                    rooms, Algorithm::kLocal, 0),
      MakeStatement(
          fmt::format("full: with all rounds of default, fedgen's best policy arrives safely at "
                      "most {} less often than centralized's best, which has everybody's worlds",
                      kAllowed),
          full, Algorithm::kCentralized, -kAllowed)};
  const bool as_named = !command.quick && command.seeds == 0 && command.overrides.empty() &&
                        SeedOf(command, 0, kFirstSeed) == kFirstSeed;
  const std::string title =
      fmt::format("Statements named before the runs: {}, from seed {} on{}",
                  SourceText(command, "default and rooms"), SeedOf(command, 0, kFirstSeed),
                  as_named ? "" : " (NOT the seeds and settings that were named)");
  FEDGEN_TRY(Publish(campaign, "comparison", StatementsText(statements, title),
                     StatementsCsv(statements)));
  return Checked{};
}

NamedExperiment ExperimentOf(const Setting& setting) {
  return {setting.name,
          {setting.config},
          [&setting](const ReproduceCommand& command, const Campaign& campaign) {
            return CompareIn(setting, command, campaign);
          },
          setting.seeds,
          kFirstSeed,
          "comparison",
          {"federation.algorithm"}};
}

// ---- Estimators ---------------------------------------------------------------------------------

// How often the truth is looked at, at most, if the run is short.
constexpr int kLooks = 60;

const std::vector<SafetyLevel> kLevels = {{0.944}, {0.99}, {0.996}};

// A whole run of a configuration, tracked, in a directory of its name.
Result<RunCurve> TrackRun(const ReproduceCommand& command, const Campaign& campaign,
                          const char* file) {
  const Config plain = FEDGEN_TRY(LoadExperiment(command, file, {}));
  std::vector<std::string> tracking = {
      fmt::format("federation.track_every={}",
                  std::clamp(plain.training.federation.rounds / kLooks, 1, 10)),
      "federation.track_growth=1.1",  // most happens at the beginning
      fmt::format("federation.track_worlds={}", NumWorlds(command, 20'000))};
  if (command.quick) tracking.emplace_back("federation.certificate_worlds=300");
  const Config config = FEDGEN_TRY(LoadExperiment(command, file, tracking));
  const std::string name = ConfigName(command, file);
  const RunFiles files =
      FEDGEN_TRY(TrainInside(campaign, "estimators", name, config, {SeedOf(command, 0), name}));
  const std::vector<TruthRow> truth = FEDGEN_TRY(LoadTruth(files.Truth()));
  const std::vector<TimingRow> timing = FEDGEN_TRY(LoadTiming(files.Timing()));
  // In the order of EstimatorOptions::Kind.
  constexpr std::array<const char*, 3> kNames = {"evolution strategies", "finite differences",
                                                 "policy gradients"};
  const auto kind = static_cast<std::size_t>(config.learner.estimator.kind);
  return MakeRunCurve(fmt::format("{} ({}.toml)", kNames[kind], name), truth, timing);
}

// Which estimator is worth its time? Policy gradients and evolution strategies in the same world,
// one after the other.
Result<Checked> CompareEstimators(const ReproduceCommand& command, const Campaign& campaign) {
  std::vector<RunCurve> curves;
  for (const char* file : {kDefaultConfig, kEvolutionConfig}) {
    curves.push_back(FEDGEN_TRY(TrackRun(command, campaign, file)));
  }
  const std::string source =
      fmt::format("{}, seed {}", SourceText(command, "default, evolution"), SeedOf(command, 0));
  FEDGEN_TRY(Publish(campaign, "estimators",
                     CurvesText(curves, kLevels, fmt::format("Estimators: {}", source)),
                     CurvesCsv(curves)));
  const std::string stem = campaign.PathOf("estimators") + "/estimators";
  const ChartFigure figure =
      MakeCurvesFigure(curves, kLevels, "Two estimators of the gradient, one world", source);
  FEDGEN_TRY(SaveSvgAndPng(stem, figure, IfExists::kReplace));
  Print("\nfigure: {}.{{svg,png}}\n", stem);
  return Checked{};
}

}  // namespace

std::vector<NamedExperiment> ComparisonExperiments() {
  return {
      ExperimentOf(kTenth),
      ExperimentOf(kRooms),
      ExperimentOf(kFull),
      {"comparison",
       {kDefaultConfig, kRoomsConfig},
       JudgeStatements,
       kTenth.seeds + kRooms.seeds + kFull.seeds,
       kFirstSeed},
      {.name = "estimators",
       .configs = {kDefaultConfig, kEvolutionConfig},
       .run = CompareEstimators,
       .sets = {"federation.track_every", "federation.track_growth", "federation.track_worlds"}}};
}

}  // namespace fedgen
