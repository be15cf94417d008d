// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/campaign_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "fedgen/base/check.h"
#include "fedgen/base/text.h"
#include "fedgen/certify/bounds.h"

namespace fedgen {
namespace {

constexpr double kLeadConfidence = 0.95;
constexpr int kRateDigits = 5;  // policies are measured on up to 100,000 worlds
constexpr int kCostDigits = 4;

MeanAndRange RangeOf(const std::vector<double>& values) {
  MeanAndRange range;
  for (const double value : values) range.mean += value / static_cast<double>(values.size());
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  range.low = *low;
  range.high = *high;
  return range;
}

std::string RangeText(const MeanAndRange& range, int digits) {
  return fmt::format("{:.{}f} [{:.{}f}, {:.{}f}]", range.mean, digits, range.low, digits,
                     range.high, digits);
}

// first - other, seed by seed.
std::vector<double> LeadsOf(const std::vector<double>& first, const std::vector<double>& other) {
  FEDGEN_CHECK(first.size() == other.size(), "{} and {} seeds", first.size(), other.size());
  std::vector<double> leads(first.size());
  std::transform(first.begin(), first.end(), other.begin(), leads.begin(), std::minus<>());
  return leads;
}

// By how much one contestant is above another one, on average over the seeds, and whether that is
// more than chance.
std::string LeadText(const std::vector<double>& above, const std::vector<double>& below,
                     int digits) {
  const std::vector<double> leads = LeadsOf(above, below);
  const double mean = RangeOf(leads).mean;
  if (leads.size() < 2) return fmt::format("{:+.{}f}", mean, digits);
  const double error = StudentHalfWidth(leads, kLeadConfidence);
  const char* const verdict = mean > error ? "better" : mean < -error ? "worse" : "even";
  return fmt::format("{:+.{}f} \u00b1 {:.{}f} {}", mean, digits, error, digits, verdict);
}

// What is said of finals and of the best, in a line of the comparison.
std::string FourColumns(const std::string& finals_safe, const std::string& finals_cost,
                        const std::string& best_safe, const std::string& best_cost) {
  return fmt::format("{:<28} {:<25} {:<28} {}\n", finals_safe, finals_cost, best_safe, best_cost);
}

const char* NameOf(Judgement::Verdict verdict) {
  switch (verdict) {
    case Judgement::Verdict::kHolds:
      return "holds";
    case Judgement::Verdict::kDoesNotHold:
      return "does not hold";
    case Judgement::Verdict::kUndecided:
      return "undecided";
  }
  return "";
}

}  // namespace

SweepRow MakeSweepRow(double value, std::uint64_t seed, const RunOutcome& run) {
  SweepRow row = {value, seed, SummariseFinals(run), run.adoptions(), 0, run.episodes};
  for (const LearnerOutcome& learner : run.learners) row.stuck += IsStuck(learner.final) ? 1 : 0;
  return row;
}

std::vector<TradeoffPoint> MakeTradeoffs(const std::vector<SweepRow>& rows) {
  std::vector<TradeoffPoint> points;
  for (auto row = rows.begin(); row != rows.end();) {
    std::vector<double> gaps, adoptions, safety;
    const double value = row->value;
    for (; row != rows.end() && row->value == value; ++row) {
      gaps.push_back(row->finals.cost_gap);
      adoptions.push_back(row->adoptions);
      safety.push_back(row->finals.mean);
    }
    points.push_back({value, RangeOf(gaps), RangeOf(adoptions), RangeOf(safety)});
  }
  return points;
}

std::string SweepText(const std::string& title, const std::vector<SweepRow>& rows) {
  std::string text =
      fmt::format("{}\n  {:>10}  {:>6}  {:>22}  {:>18}  {:>26}  {:>12}\n", title, "value", "b",
                  "max - min E[J]", "adoptions", "mean safe rate", "stuck finals");
  auto row = rows.begin();
  for (const TradeoffPoint& point : MakeTradeoffs(rows)) {
    double b = 0;
    int stuck = 0;
    for (; row != rows.end() && row->value == point.x; ++row) {
      b = row->b();
      stuck += row->stuck;
    }
    text += fmt::format("  {:>10}  {:>6.3f}  {:>22}  {:>18}  {:>26}  {:>12}\n", point.x, b,
                        RangeText(point.consensus_gap, 3),
                        fmt::format("{:.1f} [{:.0f}, {:.0f}]", point.adoptions.mean,
                                    point.adoptions.low, point.adoptions.high),
                        RangeText(point.final_safety, 4), stuck);
  }
  return text;
}

std::string SweepCsv(const std::vector<SweepRow>& rows) {
  std::string text = "value,seed,b,cost_gap,adoptions,safe_mean,safe_min,safe_max,stuck,episodes\n";
  for (const SweepRow& row : rows) {
    text += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", row.value, row.seed, row.b(),
                        row.finals.cost_gap, row.adoptions, row.finals.mean, row.finals.least,
                        row.finals.most, row.stuck, row.episodes);
  }
  return text;
}

Contestant MakeContestant(const std::string& name, const std::vector<RunOutcome>& runs) {
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
    contestant.rounds.push_back(run.rounds);
    contestant.episodes.push_back(static_cast<double>(run.episodes));
    contestant.mean_safe.push_back(mean.safe);
    contestant.mean_cost.push_back(mean.cost);
    contestant.best_safe.push_back(best.safe);
    contestant.best_cost.push_back(best.cost);
  }
  return contestant;
}

std::string ComparisonText(const std::vector<Contestant>& all, const std::string& title) {
  const std::string heads =
      FourColumns("finals: safe rate", "finals: E[J]", "best: safe rate", "best: E[J]");
  std::string text =
      title +
      "\nfinals: mean over the learners' final policies; best: the policy that won the race"
      "\nmean over seeds [lowest, highest]\n\n" +
      fmt::format("  {:<12} {:>7} {:>12}  {}", "algorithm", "rounds", "episodes", heads);
  const auto cell = [](const std::vector<double>& values, int digits) {
    return RangeText(RangeOf(values), digits);
  };
  for (const Contestant& contestant : all) {
    text +=
        fmt::format("  {:<12} {:>7.0f} {:>12}  ", contestant.name, RangeOf(contestant.rounds).mean,
                    Grouped(static_cast<std::int64_t>(RangeOf(contestant.episodes).mean))) +
        FourColumns(
            cell(contestant.mean_safe, kRateDigits), cell(contestant.mean_cost, kCostDigits),
            cell(contestant.best_safe, kRateDigits), cell(contestant.best_cost, kCostDigits));
  }
  const Contestant& first = all.front();
  text += fmt::format(
      "\n{}'s lead, seed by seed, with Student's {:.0f} % interval (E[J]: how much lower)\n"
      "exploratory: each interval holds by itself, not all of them at once\n\n  {:<12} {}",
      first.name, 100 * kLeadConfidence, "over", heads);
  for (auto other = all.begin() + 1; other != all.end(); ++other) {
    text += fmt::format("  {:<12} ", other->name) +
            FourColumns(LeadText(first.mean_safe, other->mean_safe, kRateDigits),
                        LeadText(other->mean_cost, first.mean_cost, kCostDigits),
                        LeadText(first.best_safe, other->best_safe, kRateDigits),
                        LeadText(other->best_cost, first.best_cost, kCostDigits));
  }
  return text;
}

std::string ComparisonCsv(const std::vector<Contestant>& all, std::uint64_t first_seed) {
  std::string text = "algorithm,seed,rounds,episodes,safe_mean,cost_mean,safe_best,cost_best\n";
  for (const Contestant& contestant : all) {
    for (std::size_t run = 0; run < contestant.rounds.size(); ++run) {
      text += fmt::format("{},{},{},{},{},{},{},{}\n", contestant.name, first_seed + run,
                          contestant.rounds[run], contestant.episodes[run],
                          contestant.mean_safe[run], contestant.mean_cost[run],
                          contestant.best_safe[run], contestant.best_cost[run]);
    }
  }
  return text;
}

std::vector<Judgement> Judge(const std::vector<Statement>& statements) {
  const double risk = (1 - kJointConfidence) / static_cast<double>(statements.size());
  std::vector<Judgement> judgements;
  for (const Statement& statement : statements) {
    const std::vector<double> leads = LeadsOf(statement.first, statement.other);
    const double mean = RangeOf(leads).mean;
    const double error = leads.size() < 2 ? std::numeric_limits<double>::infinity()
                                          : StudentHalfWidth(leads, 1 - risk);
    Judgement& judgement = judgements.emplace_back(Judgement{mean, mean - error, mean + error});
    if (judgement.low > statement.least) judgement.verdict = Judgement::Verdict::kHolds;
    if (judgement.high < statement.least) judgement.verdict = Judgement::Verdict::kDoesNotHold;
  }
  return judgements;
}

std::string StatementsText(const std::vector<Statement>& statements, const std::string& title) {
  const double risk = (1 - kJointConfidence) / static_cast<double>(statements.size());
  std::string text = fmt::format(
      "{}\nmean lead over the seeds, in pairs, with Student's interval: {:.4g} % each, so {:.0f} % "
      "jointly\n",
      title, 100 * (1 - risk), 100 * kJointConfidence);
  const std::vector<Judgement> judgements = Judge(statements);
  for (std::size_t s = 0; s < statements.size(); ++s) {
    const Judgement& judged = judgements[s];
    text += fmt::format(
        "\n  S{} {}\n     lead {:+.5f} [{:+.5f}, {:+.5f}], claimed above {:+.4f}; {}: {}\n", s + 1,
        statements[s].claim, judged.mean, judged.low, judged.high, statements[s].least,
        Counted(static_cast<std::int64_t>(statements[s].first.size()), "seed"),
        NameOf(judged.verdict));
  }
  return text;
}

std::string StatementsCsv(const std::vector<Statement>& statements) {
  std::string text = "statement,seeds,claimed_above,lead,low,high,verdict\n";
  const std::vector<Judgement> judgements = Judge(statements);
  for (std::size_t s = 0; s < statements.size(); ++s) {
    const Judgement& judged = judgements[s];
    text += fmt::format("S{},{},{},{},{},{},{}\n", s + 1, statements[s].first.size(),
                        statements[s].least, judged.mean, judged.low, judged.high,
                        NameOf(judged.verdict));
  }
  return text;
}

}  // namespace fedgen
