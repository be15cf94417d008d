// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "fedgen/base/text.h"
#include "fedgen/certify/bounds.h"
#include "fedgen/cli/print.h"
#include "fedgen/cli/reproduce.h"
#include "fedgen/report/paper_tables.h"
#include "fedgen/report/run_figures.h"
#include "fedgen/run/experiment.h"
#include "fedgen/run/run_summary.h"

namespace fedgen {
namespace {

MeanAndRange RangeOf(const std::vector<double>& values) {
  MeanAndRange range;
  for (const double value : values) range.mean += value / static_cast<double>(values.size());
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  range.low = *low;
  range.high = *high;
  return range;
}

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
       "Confidence: b through \u03b3",
       "federation.gamma",
       "\u03b3",
       true,
       {1e-6, 1e-4, 0.01, 0.1, 0.5}},
      {"b",
       "The bias b, given",
       "learner.bias",
       "b",
       false,
       {0.05, 0.1, 0.15, 0.2, 0.23, 0.25, 0.3}},
      {"worlds",
       "Worlds in a round",
       "learner.worlds",
       "worlds n_E per round and learner",
       true,
       {10, 20, 35, 50, 100, 200}},
      {"q",
       "The threshold of the gradient",
       "learner.threshold",
       "threshold q",
       false,
       {2.2, 2.4, 2.6, 2.8, 3.2, 4}},
      {"step", "The step", "learner.step", "step r", true, {0.1, 0.2, 0.35, 0.5, 0.7, 1.0}},
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

struct SweepRow {
  double value = 0;
  std::uint64_t seed = 0;
  double b = 0;
  FinalSummary finals;
  int adoptions = 0;
  int stuck = 0;
  std::int64_t episodes = 0;
};

std::string SweepText(const Sweep& sweep, const std::vector<TradeoffPoint>& points,
                      const std::vector<SweepRow>& rows) {
  std::string text = fmt::format("{} ({})\n  {:>10}  {:>6}  {:>22}  {:>18}  {:>26}  {:>12}\n",
                                 sweep.name, sweep.key, "value", "b", "max - min E[J]", "adoptions",
                                 "mean safe rate", "stuck finals");
  for (const TradeoffPoint& point : points) {
    double b = 0;
    int stuck = 0;
    for (const SweepRow& row : rows) {
      if (row.value != point.x) continue;
      b = row.b;
      stuck += row.stuck;
    }
    const auto cell = [](const MeanAndRange& range, int digits) {
      return fmt::format("{:.{}f} [{:.{}f}, {:.{}f}]", range.mean, digits, range.low, digits,
                         range.high, digits);
    };
    text += fmt::format("  {:>10}  {:>6.3f}  {:>22}  {:>18}  {:>26}  {:>12}\n", point.x, b,
                        cell(point.consensus_gap, 3),
                        fmt::format("{:.1f} [{:.0f}, {:.0f}]", point.adoptions.mean,
                                    point.adoptions.low, point.adoptions.high),
                        cell(point.final_safety, 4), stuck);
  }
  return text;
}

std::string SweepCsv(const std::vector<SweepRow>& rows) {
  std::string text = "value,seed,b,cost_gap,adoptions,safe_mean,safe_min,safe_max,stuck,episodes\n";
  for (const SweepRow& row : rows) {
    text += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", row.value, row.seed, row.b,
                        row.finals.cost_gap, row.adoptions, row.finals.mean, row.finals.least,
                        row.finals.most, row.stuck, row.episodes);
  }
  return text;
}

// What one algorithm came to, over the seeds.
struct Contestant {
  std::string name;
  std::vector<double> episodes, rounds;
  std::vector<double> mean_safe, mean_cost;  // mean over the learners' finals
  std::vector<double> best_safe, best_cost;  // of the winner of the race
};

Contestant ContestantOf(const std::string& name, const std::vector<RunOutcome>& runs) {
  Contestant contestant;
  contestant.name = name;
  for (const RunOutcome& run : runs) {
    std::vector<Score> finals;
    finals.reserve(run.learners.size());
    for (const LearnerOutcome& learner : run.learners) {
      finals.push_back(ScoreOf(learner.final, Counting::kOurs));
    }
    const Score mean = Summarise(finals).mean;
    const Score best = ScoreOf(run.winner, Counting::kOurs);
    contestant.episodes.push_back(static_cast<double>(run.episodes));
    contestant.rounds.push_back(run.rounds);
    contestant.mean_safe.push_back(mean.safe);
    contestant.mean_cost.push_back(mean.cost);
    contestant.best_safe.push_back(best.safe);
    contestant.best_cost.push_back(best.cost);
  }
  return contestant;
}

constexpr double kDuelConfidence = 0.95;

// fedgen beside another, seed by seed: by how much it is better on average, and whether that is
// more than chance.
std::string Duel(const Contestant& fedgen, const Contestant& other,
                 std::vector<double> Contestant::* field, double better_sign) {
  const std::vector<double>& ours = fedgen.*field;
  const std::vector<double>& theirs = other.*field;
  std::vector<double> leads(ours.size());
  std::transform(ours.begin(), ours.end(), theirs.begin(), leads.begin(),
                 [&](double a, double b) { return better_sign * (a - b); });
  const double mean = RangeOf(leads).mean;
  if (leads.size() < 2) return fmt::format("{:+.4f}", mean);
  const double error = StudentHalfWidth(leads, kDuelConfidence);
  const char* const verdict = mean > error ? "better" : mean < -error ? "worse" : "even";
  return fmt::format("{:+.4f} \u00b1 {:.4f} {}", mean, error, verdict);
}

// The first is fedgen.
std::string ComparisonText(const std::vector<Contestant>& all, const std::string& title) {
  std::string text =
      title + "\nmean over seeds [lowest, highest]\n\n" +
      fmt::format("  {:<12} {:>7} {:>12}  {:<25} {:<25} {:<25} {}\n", "algorithm", "rounds",
                  "episodes", "finals: safe rate", "finals: E[J]", "best: safe rate", "best: E[J]");
  for (const Contestant& contestant : all) {
    const auto cell = [](const std::vector<double>& values) {
      const MeanAndRange range = RangeOf(values);
      return fmt::format("{:.4f} [{:.4f}, {:.4f}]", range.mean, range.low, range.high);
    };
    text += fmt::format("  {:<12} {:>7.0f} {:>12}  {:<25} {:<25} {:<25} {}\n", contestant.name,
                        RangeOf(contestant.rounds).mean,
                        Grouped(static_cast<std::int64_t>(RangeOf(contestant.episodes).mean)),
                        cell(contestant.mean_safe), cell(contestant.mean_cost),
                        cell(contestant.best_safe), cell(contestant.best_cost));
  }
  text += fmt::format(
              "\nfedgen's lead, seed by seed, with Student's {:.0f} % interval (E[J]: how much "
              "lower)\n\n",
              100 * kDuelConfidence) +
          fmt::format("  {:<12} {:<25} {:<25} {:<25} {}\n", "over", "finals: safe rate",
                      "finals: E[J]", "best: safe rate", "best: E[J]");
  for (auto other = all.begin() + 1; other != all.end(); ++other) {
    text += fmt::format("  {:<12} {:<25} {:<25} {:<25} {}\n", other->name,
                        Duel(all.front(), *other, &Contestant::mean_safe, 1),
                        Duel(all.front(), *other, &Contestant::mean_cost, -1),
                        Duel(all.front(), *other, &Contestant::best_safe, 1),
                        Duel(all.front(), *other, &Contestant::best_cost, -1));
  }
  return text;
}

}  // namespace

Result<void> ReproduceTradeoffs(const ReproduceCommand& command, const Campaign& campaign) {
  const int num_seeds = NumSeeds(command, kTradeoffSeeds);
  const std::vector<Sweep> sweeps = Sweeps(command.quick);
  std::vector<Part> parts;
  for (const Sweep& sweep : sweeps) {
    for (const double value : sweep.values) {
      Result<Config> config =
          LoadExperiment(command, kPaperTablesConfig, {fmt::format("{}={}", sweep.key, value)});
      if (!config) return config.error();
      for (int index = 0; index < num_seeds; ++index) {
        Part part;
        part.config = *config;
        part.seed = command.seed + static_cast<std::uint64_t>(index);
        part.name = fmt::format("{} = {}, seed {}", sweep.key, value, part.seed);
        part.worlds = command.quick ? 200 : 2000;
        parts.push_back(std::move(part));
      }
    }
  }
  const auto outcomes = RunParts(campaign, "tradeoffs", parts);
  if (!outcomes) return outcomes.error();
  const Result<std::string> directory = campaign.Directory("tradeoffs");
  if (!directory) return directory.error();

  const std::string source = SourceText(command, kPaperTablesConfig);
  std::string text = fmt::format(
      "Trade-offs around {}: mean over {} [lowest, highest]; {} unseen worlds for each final\n\n",
      source, Counted(num_seeds, "seed"), parts.front().worlds);
  auto run = outcomes->begin();
  auto part = parts.begin();
  for (const Sweep& sweep : sweeps) {
    std::vector<TradeoffPoint> points;
    std::vector<SweepRow> rows;
    for (const double value : sweep.values) {
      std::vector<double> gaps, adoptions, safety;
      for (int index = 0; index < num_seeds; ++index, ++run, ++part) {
        SweepRow row;
        row.value = value;
        row.seed = part->seed;
        row.finals = SummariseFinals(*run);
        row.b = row.finals.two_b / 2;
        row.adoptions = run->adoptions();
        row.episodes = run->episodes;
        for (const LearnerOutcome& learner : run->learners) row.stuck += IsStuck(learner.final);
        gaps.push_back(row.finals.cost_gap);
        adoptions.push_back(row.adoptions);
        safety.push_back(row.finals.mean);
        rows.push_back(row);
      }
      points.push_back({value, RangeOf(gaps), RangeOf(adoptions), RangeOf(safety)});
    }
    TradeoffOptions options;
    options.title = sweep.title;
    options.subtitle =
        fmt::format("{}; mean, lowest and highest of {}; {} unseen worlds for each final", source,
                    Counted(num_seeds, "seed"), Grouped(parts.front().worlds));
    options.x_label = sweep.x_label;
    options.log_x = sweep.log_x;
    auto saved = SaveSvgAndPng(fmt::format("{}/{}", *directory, sweep.name),
                               MakeTradeoffFigure(points, options), IfExists::kReplace);
    if (!saved) return saved;
    saved = campaign.Write("tradeoffs", fmt::format("{}.csv", sweep.name), SweepCsv(rows));
    if (!saved) return saved;
    text += SweepText(sweep, points, rows) + "\n";
  }
  if (auto done = campaign.Write("tradeoffs", "tradeoffs.txt", text); !done) return done;
  Print("{}figures and tables: {}/\n", text, *directory);
  return {};
}

Result<void> ReproduceComparison(const ReproduceCommand& command, const Campaign& campaign) {
  const int num_seeds = NumSeeds(command, kComparisonSeeds);
  const auto make_part = [&](Config config, Algorithm algorithm, int index) {
    Part part;
    part.config = std::move(config);
    part.seed = command.seed + static_cast<std::uint64_t>(index);
    part.name = fmt::format("{}, seed {}", AlgorithmName(algorithm), part.seed);
    part.worlds = command.quick ? 200 : 10000;
    part.race = true;
    return part;
  };
  const Result<Config> fedgen =
      LoadExperiment(command, kComparisonConfig, {"federation.algorithm=fedgen"});
  if (!fedgen) return fedgen.error();
  std::vector<Part> parts;
  parts.reserve(static_cast<std::size_t>(num_seeds));
  for (int index = 0; index < num_seeds; ++index) {
    parts.push_back(make_part(*fedgen, Algorithm::kFedGen, index));
  }
  const auto reference = RunParts(campaign, "comparison", parts);
  if (!reference) return reference.error();

  // The others get the episodes that fedgen spent, as a number of rounds, so that their steps'
  // schedules end with them. What a round costs is found by running one.
  constexpr std::array<Algorithm, 3> kOthers = {Algorithm::kLocal, Algorithm::kFedAvg,
                                                Algorithm::kCentralized};
  parts.clear();
  for (const Algorithm algorithm : kOthers) {
    const std::string name = fmt::format("federation.algorithm={}", AlgorithmName(algorithm));
    const Result<Config> probe = LoadExperiment(command, kComparisonConfig, {name});
    if (!probe) return probe.error();
    Federation federation =
        MakeFederation(probe->training, Key(command.seed), BestKernel(), campaign.num_threads());
    if (const auto round = federation.Round(); !round) return round.error();
    for (int index = 0; index < num_seeds; ++index) {
      const std::int64_t budget = (*reference)[static_cast<std::size_t>(index)].episodes;
      const std::int64_t rounds = std::max<std::int64_t>(1, budget / federation.episodes());
      Result<Config> config = LoadExperiment(
          command, kComparisonConfig,
          {name, fmt::format("federation.rounds={}", rounds), "federation.episodes=0"});
      if (!config) return config.error();
      parts.push_back(make_part(*std::move(config), algorithm, index));
    }
  }
  const auto others = RunParts(campaign, "comparison", parts);
  if (!others) return others.error();

  std::vector<Contestant> all = {ContestantOf("fedgen", *reference)};
  auto next = others->begin();
  for (const Algorithm algorithm : kOthers) {
    all.push_back(ContestantOf(std::string(AlgorithmName(algorithm)), {next, next + num_seeds}));
    next += num_seeds;
  }
  const std::string text = ComparisonText(
      all, fmt::format("Comparison: {}, seeds {} to {}, {} unseen worlds for each policy",
                       SourceText(command, kComparisonConfig), command.seed, parts.back().seed,
                       parts.back().worlds));
  std::string csv = "algorithm,seed,rounds,episodes,safe_mean,cost_mean,safe_best,cost_best\n";
  for (const Contestant& contestant : all) {
    for (std::size_t index = 0; index < contestant.episodes.size(); ++index) {
      csv += fmt::format("{},{},{},{},{},{},{},{}\n", contestant.name, command.seed + index,
                         contestant.rounds[index], contestant.episodes[index],
                         contestant.mean_safe[index], contestant.mean_cost[index],
                         contestant.best_safe[index], contestant.best_cost[index]);
    }
  }
  if (auto done = campaign.Write("comparison", "comparison.txt", text); !done) return done;
  if (auto done = campaign.Write("comparison", "comparison.csv", csv); !done) return done;
  Print("{}", text);
  return {};
}

}  // namespace fedgen
