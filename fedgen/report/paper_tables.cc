// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/paper_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fedgen/base/text.h"
#include "fedgen/report/evaluation.h"

namespace fedgen {
namespace {

constexpr std::array<Score, kPaperLearners> kInit = {{{0.5198, 0.8743, 0.1802},
                                                      {0.5170, 0.8761, 0.1776},
                                                      {0.5208, 0.8744, 0.1800},
                                                      {0.5210, 0.8782, 0.1746},
                                                      {0.5148, 0.8692, 0.1876},
                                                      {0.5231, 0.8748, 0.1794},
                                                      {0.5237, 0.8797, 0.1724},
                                                      {0.5167, 0.8732, 0.1818}}};
constexpr std::array<Score, kPaperLearners> kLocal = {{{0.0436, 0.3759, 0.9320},
                                                       {0.0396, 0.3763, 0.9408},
                                                       {0.0331, 0.3701, 0.9522},
                                                       {0.4810, 0.8385, 0.2314},
                                                       {0.4105, 0.7815, 0.3172},
                                                       {0.0341, 0.3700, 0.9450},
                                                       {0.3992, 0.7622, 0.3426},
                                                       {0.4989, 0.8569, 0.2054}}};
constexpr std::array<Score, kPaperLearners> kFinal = {{{0.0374, 0.3748, 0.9386},
                                                       {0.0396, 0.3763, 0.9408},
                                                       {0.0331, 0.3701, 0.9522},
                                                       {0.0335, 0.3679, 0.9452},
                                                       {0.0353, 0.3711, 0.9432},
                                                       {0.0341, 0.3700, 0.9450},
                                                       {0.0363, 0.3716, 0.9428},
                                                       {0.0335, 0.3704, 0.9468}}};
constexpr std::array<MeanAndDeviation, kPaperTable2Learners.size()> kTable2 = {{
    {{0.4989, 0.8569, 0.2054}, {}},
    {{0.1548, 0.4997, 0.7325}, {0.0132, 0.0158, 0.0225}},
    {{0.1391, 0.4910, 0.7563}, {0.0247, 0.0234, 0.0338}},
    {{0.0760, 0.4111, 0.8717}, {0.0126, 0.0169, 0.0256}},
    {{0.0354, 0.3715, 0.9442}, {0.0021, 0.0027, 0.0038}},
}};

constexpr std::array<Stage, 3> kStages = {Stage::kInit, Stage::kLocal, Stage::kFinal};

const char* StageName(Stage stage) {
  switch (stage) {
    case Stage::kInit:
      return "Init";
    case Stage::kLocal:
      return "Local";
    case Stage::kFinal:
      return "Final";
  }
  return "";
}

const Tally& TallyOf(const LearnerOutcome& learner, Stage stage) {
  switch (stage) {
    case Stage::kInit:
      return learner.initial;
    case Stage::kLocal:
      return learner.local;
    case Stage::kFinal:
      return learner.final;
  }
  return learner.final;
}

ProportionInterval SafeInterval(const Tally& tally, int starts_per_world) {
  Evaluation evaluation;
  evaluation.tally = tally;
  evaluation.starts_per_world = starts_per_world;
  return RateInterval(evaluation, tally.reached);
}

std::vector<Score> ScoresOf(const RunOutcome& run, Stage stage, Counting counting) {
  std::vector<Score> scores;
  scores.reserve(run.learners.size());
  for (const LearnerOutcome& learner : run.learners) {
    scores.push_back(ScoreOf(TallyOf(learner, stage), counting));
  }
  return scores;
}

std::vector<Score> PaperScores(Stage stage) {
  const auto& scores = PaperTable1(stage);
  return {scores.begin(), scores.end()};
}

using Field = double Score::*;

// A line of Table 1: a number for each learner, then their mean.
std::string Line(const char* stage, const char* whose, const std::vector<Score>& scores,
                 Field field, std::size_t num_columns) {
  std::string line = fmt::format("  {:<6}{:<30}", stage, whose);
  for (std::size_t i = 0; i < num_columns; ++i) {
    line += i < scores.size() ? fmt::format("{:>7.4f}", scores[i].*field) : "       ";
    line += " ";
  }
  return line + fmt::format("{:>8.4f}\n", Summarise(scores).mean.*field);
}

// How much two evaluations of one policy may differ, in 99 % of cases: the paper's and ours, with
// as many episodes as ours. Learners share their worlds, so a mean over learners is hardly less
// noisy than one learner. `variance` is that of one episode.
double Noise(double variance, const RunOutcome& run) {
  const auto episodes = static_cast<double>(run.learners.front().initial.episodes);
  return 2.576 * std::sqrt(2 * variance / episodes);
}

Check Near(const char* what, double expected, double noise, double measured) {
  return {what, fmt::format("{:.4f} +- {:.4f}", expected, noise), fmt::format("{:.4f}", measured),
          std::abs(measured - expected) <= noise};
}

// Who stopped where, and how often somebody adopted.
std::string StopsText(const RunOutcome& run) {
  int stuck = 0, never = 0, adopters = 0;
  for (const LearnerOutcome& learner : run.learners) {
    if (learner.first_stop == 0) ++never;
    if (IsStuck(learner.local)) ++stuck;
    if (learner.adoptions > 0) ++adopters;
  }
  const std::size_t all = run.learners.size();
  return fmt::format(
      "Local: {} of {} learners stuck at their first stop (safe rate below 0.5; paper: 4 of 8);\n"
      "{} never stopped (their Local is their final policy). Adoptions: {}, by {} of {} "
      "learners.\n",
      stuck, all, never, run.adoptions(), adopters, all);
}

std::string ChecksText(const std::vector<Check>& checks) {
  std::string text = fmt::format("{:<46}{:<35}{}\n", "Checks", "expected", "measured");
  for (const Check& check : checks) {
    text += fmt::format("  {:<44}{:<35}{:<10}{}\n", check.what, check.expected, check.measured,
                        check.met ? "met" : "MISSED");
  }
  return text;
}

// How many learners' mean cost is higher at Final than at Local, and how many's is lower. Both are
// measured in the same worlds.
struct Moves {
  int worse = 0, better = 0;
};
Moves MovesOf(const RunOutcome& run) {
  Moves moves;
  for (const LearnerOutcome& learner : run.learners) {
    const double change = MeanCost(learner.final) - MeanCost(learner.local);
    moves.worse += change > 0 ? 1 : 0;
    moves.better += change < 0 ? 1 : 0;
  }
  return moves;
}

// The tallies that a column of Table 2 takes from a run.
std::vector<Score> ColumnScores(const Table2Column& column, const RunOutcome& run,
                                Counting counting) {
  return ScoresOf(run, column.local ? Stage::kLocal : Stage::kFinal, counting);
}

struct ColumnSummary {
  Score mean, over_learners, over_seeds;
};

ColumnSummary SummariseColumn(const Table2Column& column, Counting counting) {
  std::vector<Score> means, deviations;
  for (const RunOutcome& run : column.runs) {
    const MeanAndDeviation of_run = Summarise(ColumnScores(column, run, counting));
    means.push_back(of_run.mean);
    deviations.push_back(of_run.deviation);
  }
  const MeanAndDeviation over_runs = Summarise(means);
  return {over_runs.mean, Summarise(deviations).mean, over_runs.deviation};
}

// How often the runs of each column end as wanted.
std::string Table2Checks(const std::vector<Table2Column>& columns) {
  const Bars bars;
  std::string text;
  for (const Table2Column& column : columns) {
    if (column.local) continue;
    int as_wanted = 0, none_stuck = 0, all_stuck = 0;
    double least = 1;
    for (const RunOutcome& run : column.runs) {
      const FinalSummary finals = SummariseFinals(run);
      as_wanted += finals.Meets(bars) ? 1 : 0;
      none_stuck += finals.least >= 0.5 ? 1 : 0;
      all_stuck += finals.most < 0.5 ? 1 : 0;
      least = std::min(least, finals.least);
    }
    text += fmt::format(
        "  {} learners, {} runs: in {} no final policy is stuck (safe rate below 0.5), in {} all "
        "are; lowest safe rate {:.4f};\n    in {} every final has at least {:.2f}, their mean is "
        "at "
        "least {:.2f} and max - min of E[J] is at most 2 b\n",
        column.learners, column.runs.size(), none_stuck, all_stuck, least, as_wanted,
        bars.every_final, bars.mean_final);
  }
  return text;
}

}  // namespace

Score ScoreOf(const Tally& tally, Counting counting) {
  const auto n = static_cast<double>(tally.episodes);
  Score score = {0.1 * tally.goal_distance_sum / n, MeanCost(tally), SafeRate(tally)};
  if (counting == Counting::kAuthors) {
    score.distance += 0.1 * static_cast<double>(tally.collided) / n;
    score.safe = static_cast<double>(tally.reached + tally.timed_out) / n;
  }
  return score;
}

MeanAndDeviation Summarise(const std::vector<Score>& scores) {
  MeanAndDeviation result;
  if (scores.empty()) return result;
  const auto n = static_cast<double>(scores.size());
  for (const Field field : {&Score::distance, &Score::cost, &Score::safe}) {
    double sum = 0, squares = 0;
    for (const Score& score : scores) sum += score.*field;
    const double mean = sum / n;
    for (const Score& score : scores) squares += (score.*field - mean) * (score.*field - mean);
    result.mean.*field = mean;
    result.deviation.*field = std::sqrt(squares / n);
  }
  return result;
}

const std::array<Score, kPaperLearners>& PaperTable1(Stage stage) {
  switch (stage) {
    case Stage::kInit:
      return kInit;
    case Stage::kLocal:
      return kLocal;
    case Stage::kFinal:
      return kFinal;
  }
  return kFinal;
}

MeanAndDeviation PaperTable2(std::size_t column) { return kTable2.at(column); }

FinalSummary SummariseFinals(const RunOutcome& run) {
  FinalSummary summary;
  double least_cost = 1, most_cost = 0;
  for (const LearnerOutcome& learner : run.learners) {
    const Score score = ScoreOf(learner.final, Counting::kOurs);
    summary.least = std::min(summary.least, score.safe);
    summary.most = std::max(summary.most, score.safe);
    summary.mean += score.safe / static_cast<double>(run.learners.size());
    least_cost = std::min(least_cost, score.cost);
    most_cost = std::max(most_cost, score.cost);
    summary.two_b = std::max(summary.two_b, 2 * learner.bias);
  }
  summary.cost_gap = most_cost - least_cost;
  summary.safe_gap = summary.most - summary.least;
  return summary;
}

int NumMissed(const std::vector<Check>& checks) {
  return static_cast<int>(
      std::count_if(checks.begin(), checks.end(), [](const Check& check) { return !check.met; }));
}

std::vector<Check> Table1Checks(const RunOutcome& run) {
  const Score paper = Summarise(PaperScores(Stage::kInit)).mean;
  const Score ours = Summarise(ScoresOf(run, Stage::kInit, Counting::kAuthors)).mean;
  const double noise = Noise(paper.safe * (1 - paper.safe), run);
  const Moves moves = MovesOf(run);
  const Bars bars;
  const FinalSummary finals = SummariseFinals(run);
  const auto at_least = [](double bar) { return fmt::format("at least {:.2f}", bar); };
  const auto number = [](double value) { return fmt::format("{:.4f}", value); };
  return {
      Near("Init, mean safe rate", paper.safe, noise, ours.safe),
      // J is about 1 - safe e^(-alpha t).
      Near("Init, mean E[J]", paper.cost, noise * (1 - paper.cost) / paper.safe, ours.cost),
      // Of numbers in [0, 1] with mean m the variance is at most m (1 - m).
      Near("Init, mean 0.1 E[rho] + 0.1 P[collision]", paper.distance,
           Noise(paper.distance * (1 - paper.distance), run), ours.distance),
      {"Pareto, worse at Final than at Local", "0", fmt::format("{}", moves.worse),
       moves.worse == 0},
      {"Pareto, better at Final than at Local", "at least 1", fmt::format("{}", moves.better),
       moves.better > 0},
      {"Final, lowest safe rate", at_least(bars.every_final), number(finals.least),
       finals.least >= bars.every_final},
      {"Final, mean safe rate", at_least(bars.mean_final), number(finals.mean),
       finals.mean >= bars.mean_final},
      {"Final, max - min of E[J]",
       fmt::format("at most 2 b = {:.4f}{}", finals.two_b, finals.two_b < 1 ? "" : " (nothing)"),
       number(finals.cost_gap), finals.cost_gap <= finals.two_b},
  };
}

std::vector<Check> TextChecks(const RunOutcome& run) {
  const Score paper = Summarise(PaperScores(Stage::kInit)).mean;
  const Score ours = Summarise(ScoresOf(run, Stage::kInit, Counting::kAuthors)).mean;
  const double noise = Noise(paper.safe * (1 - paper.safe), run);
  const FinalSummary finals = SummariseFinals(run);
  std::ptrdiff_t stopped =
      std::count_if(run.learners.begin(), run.learners.end(),
                    [](const LearnerOutcome& learner) { return learner.first_stop > 0; });
  return {
      {"b", "above 0.5: nobody can adopt", fmt::format("{:.4f}", finals.two_b / 2),
       finals.two_b > 1},
      {"Adoptions", "0", fmt::format("{}", run.adoptions()), run.adoptions() == 0},
      {"Learners that ever stop", "0", fmt::format("{}", stopped), stopped == 0},
      {"Init, mean safe rate", fmt::format("not {:.4f} +- {:.4f}", paper.safe, noise),
       fmt::format("{:.4f}", ours.safe), std::abs(ours.safe - paper.safe) > noise},
  };
}

std::string Table1Text(const RunOutcome& run, const std::string& title,
                       const std::vector<Check>& checks) {
  const std::size_t num_columns = std::max<std::size_t>(run.learners.size(), kPaperLearners);
  std::string text = title + "\n";
  text += fmt::format(
      "{}, {}, {}; each number is from {}\n\n",
      Counted(static_cast<std::int64_t>(run.learners.size()), "learner"),
      Counted(run.rounds, "round"), Counted(run.episodes, "training episode"),
      Counted(run.learners.front().final.episodes / run.starts_per_world, "unseen world"));
  text += fmt::format("  {:<36}", "learner");
  for (std::size_t i = 0; i < num_columns; ++i) text += fmt::format("{:>7} ", i + 1);
  text += "    mean\n";

  const auto block = [&](const char* name, Field field, const char* authors, const char* ours) {
    text += fmt::format("{}\n", name);
    for (const Stage stage : kStages) {
      text += Line(StageName(stage), "paper", PaperScores(stage), field, num_columns);
      if (authors != nullptr) {
        text += Line("", authors, ScoresOf(run, stage, Counting::kAuthors), field, num_columns);
      }
      text += Line("", ours, ScoresOf(run, stage, Counting::kOurs), field, num_columns);
    }
  };
  block("0.1 E[rho]", &Score::distance, "ours, + 0.1 on collision", "ours");
  block("E[J]", &Score::cost, nullptr, "ours");
  block("safe arrival rate", &Score::safe, "ours, time-outs are safe", "ours, time-outs fail");

  for (const Stage stage : kStages) {
    double half = 0;
    for (const LearnerOutcome& learner : run.learners) {
      const ProportionInterval interval =
          SafeInterval(TallyOf(learner, stage), run.starts_per_world);
      half = std::max(half, (interval.high - interval.low) / 2);
    }
    text += stage == Stage::kInit
                ? fmt::format(
                      "99 % intervals of the safe rates (Clopper-Pearson), half width at "
                      "most: {} {:.4f}",
                      StageName(stage), half)
                : fmt::format(", {} {:.4f}", StageName(stage), half);
  }
  return text + "\n" + StopsText(run) + "\n" + ChecksText(checks);
}

std::string Table1Csv(const RunOutcome& run) {
  std::string text =
      "learner,stage,worlds,distance,distance_authors,cost,safe,safe_low,safe_high,safe_authors,"
      "paper_distance,paper_cost,paper_safe,first_stop,adoptions\n";
  for (std::size_t i = 0; i < run.learners.size(); ++i) {
    const LearnerOutcome& learner = run.learners[i];
    for (const Stage stage : kStages) {
      const Tally& tally = TallyOf(learner, stage);
      const Score ours = ScoreOf(tally, Counting::kOurs);
      const Score authors = ScoreOf(tally, Counting::kAuthors);
      const ProportionInterval interval = SafeInterval(tally, run.starts_per_world);
      std::string paper = ",,";
      if (i < kPaperLearners) {
        const Score& score = PaperTable1(stage)[i];
        paper = fmt::format("{},{},{}", score.distance, score.cost, score.safe);
      }
      text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}\n", i + 1, StageName(stage),
                          tally.episodes / run.starts_per_world, ours.distance, authors.distance,
                          ours.cost, ours.safe, interval.low, interval.high, authors.safe, paper,
                          learner.first_stop, learner.adoptions);
    }
  }
  return text;
}

std::string VariantsText(const std::vector<Table1Variant>& variants, const std::string& title,
                         std::uint64_t first_seed) {
  std::string text = title + "\n";
  text += fmt::format("  {:<28}{:>5}{:>8}{:>8}{:>11}{:>13}{:>11}{:>11}{:>15}  {}\n", "sigma",
                      "seed", "rounds", "stuck", "adoptions", "lowest safe", "mean safe",
                      "mean E[J]", "max-min E[J]", "missed");
  std::string summary;
  for (const Table1Variant& variant : variants) {
    std::vector<Score> finals;
    int all_met = 0, pareto = 0;
    for (std::size_t index = 0; index < variant.runs.size(); ++index) {
      const RunOutcome& run = variant.runs[index];
      const FinalSummary of_run = SummariseFinals(run);
      const Score mean = Summarise(ScoresOf(run, Stage::kFinal, Counting::kOurs)).mean;
      const std::vector<Check> checks = Table1Checks(run);
      const auto stuck =
          std::count_if(run.learners.begin(), run.learners.end(),
                        [](const LearnerOutcome& learner) { return IsStuck(learner.local); });
      text += fmt::format(
          "  {:<28}{:>5}{:>8}{:>8}{:>11}{:>13.4f}{:>11.4f}{:>11.4f}{:>15.4f}  {} of {}\n",
          index == 0 ? variant.name : "", first_seed + index, run.rounds, stuck, run.adoptions(),
          of_run.least, of_run.mean, mean.cost, of_run.cost_gap, NumMissed(checks), checks.size());
      finals.push_back(mean);
      all_met += NumMissed(checks) == 0 ? 1 : 0;
      pareto += MovesOf(run).worse == 0 ? 1 : 0;
    }
    const MeanAndDeviation over_seeds = Summarise(finals);
    summary += fmt::format(
        "  {:<28} all checks of Table 1 in {} of {} runs, nobody worse at Final in {}; mean safe "
        "rate "
        "{:.4f} +- {:.4f}\n",
        variant.name, all_met, variant.runs.size(), pareto, over_seeds.mean.safe,
        over_seeds.deviation.safe);
  }
  return text +
         "\nstuck: learners with a safe rate below 0.5 where they first stopped; +-: "
         "standard deviation over the runs' means (population)\n" +
         summary;
}

std::string VariantsCsv(const std::vector<Table1Variant>& variants, std::uint64_t first_seed) {
  std::string text =
      "sigma,seed,rounds,episodes,adoptions,safe_min,safe_mean,cost_mean,cost_gap,missed\n";
  for (const Table1Variant& variant : variants) {
    for (std::size_t index = 0; index < variant.runs.size(); ++index) {
      const RunOutcome& run = variant.runs[index];
      const FinalSummary finals = SummariseFinals(run);
      text += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", variant.name, first_seed + index,
                          run.rounds, run.episodes, run.adoptions(), finals.least, finals.mean,
                          Summarise(ScoresOf(run, Stage::kFinal, Counting::kOurs)).mean.cost,
                          finals.cost_gap, NumMissed(Table1Checks(run)));
    }
  }
  return text;
}

std::string Table2Text(const std::vector<Table2Column>& columns, const std::string& title) {
  std::string text = title + "\n";
  text +=
      "mean over learners and seeds; +- l: standard deviation over the learners of a run; +- s: "
      "over "
      "the means of runs\n(both of the population); the paper's +- is +- l of one run\n\n";
  text += fmt::format("  {:<30}", "learners");
  for (const Table2Column& column : columns) text += fmt::format("{:>18}", column.learners);
  text += fmt::format("\n  {:<30}", "our runs");
  for (const Table2Column& column : columns) {
    std::size_t num_learners = 0;
    for (const RunOutcome& run : column.runs) num_learners += run.learners.size();
    text += fmt::format("{:>18}", column.local ? num_learners : column.runs.size());
  }
  text += "\n";

  const auto block = [&](const char* name, Field field, const char* authors, const char* ours) {
    text += fmt::format("{}\n  {:<30}", name, "paper");
    for (const Table2Column& column : columns) {
      const auto* place =
          std::find(kPaperTable2Learners.begin(), kPaperTable2Learners.end(), column.learners);
      std::string cell;
      if (place != kPaperTable2Learners.end()) {
        const MeanAndDeviation paper =
            PaperTable2(static_cast<std::size_t>(place - kPaperTable2Learners.begin()));
        cell = column.learners == 1
                   ? fmt::format("{:.4f}", paper.mean.*field)
                   : fmt::format("{:.4f} +-{:.4f}", paper.mean.*field, paper.deviation.*field);
      }
      text += fmt::format("{:>18}", cell);
    }
    text += "\n";
    const auto rows = [&](const char* whose, Counting counting) {
      std::string mean = fmt::format("  {:<30}", whose);
      std::string learners = fmt::format("  {:<30}", "  +- l");
      std::string over_seeds = fmt::format("  {:<30}", "  +- s");
      for (const Table2Column& column : columns) {
        const ColumnSummary summary = SummariseColumn(column, counting);
        mean += fmt::format("{:>18.4f}", summary.mean.*field);
        learners += fmt::format("{:>18}", fmt::format("+-{:.4f}", summary.over_learners.*field));
        over_seeds += fmt::format("{:>18}", fmt::format("+-{:.4f}", summary.over_seeds.*field));
      }
      text += mean + "\n";
      if (counting == Counting::kOurs) text += learners + "\n" + over_seeds + "\n";
    };
    if (authors != nullptr) rows(authors, Counting::kAuthors);
    rows(ours, Counting::kOurs);
  };
  block("0.1 E[rho]", &Score::distance, "ours, + 0.1 on collision", "ours");
  block("E[J]", &Score::cost, nullptr, "ours");
  block("safe arrival rate", &Score::safe, "ours, time-outs are safe", "ours, time-outs fail");

  return text + "\nChecks\n" + Table2Checks(columns);
}

std::string Table2Csv(const std::vector<Table2Column>& columns, std::uint64_t first_seed) {
  std::string text =
      "learners,seed,learner,worlds,distance,distance_authors,cost,safe,safe_authors,first_stop,"
      "adoptions\n";
  for (const Table2Column& column : columns) {
    for (std::size_t seed = 0; seed < column.runs.size(); ++seed) {
      const RunOutcome& run = column.runs[seed];
      for (std::size_t i = 0; i < run.learners.size(); ++i) {
        const LearnerOutcome& learner = run.learners[i];
        const Tally& tally = column.local ? learner.local : learner.final;
        const Score ours = ScoreOf(tally, Counting::kOurs);
        const Score authors = ScoreOf(tally, Counting::kAuthors);
        text += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", column.learners,
                            first_seed + seed, i + 1, tally.episodes / run.starts_per_world,
                            ours.distance, authors.distance, ours.cost, ours.safe, authors.safe,
                            learner.first_stop, column.local ? 0 : learner.adoptions);
      }
    }
  }
  return text;
}

}  // namespace fedgen
