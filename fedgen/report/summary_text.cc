// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/summary_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "fedgen/base/text.h"
#include "fedgen/report/evaluation.h"
#include "fedgen/run/certify.h"

namespace fedgen {
namespace {

std::string AdoptionsText(const std::vector<LearnerState>& learners) {
  int adoptions = 0, rescued = 0;
  for (const LearnerState& learner : learners) {
    adoptions += learner.adoptions;
    rescued += learner.adoptions > 0 ? 1 : 0;
  }
  return fmt::format("{}; {} of {} adopted a better policy at least once\n",
                     Counted(adoptions, "adoption"), rescued,
                     Counted(static_cast<std::int64_t>(learners.size()), "learner"));
}

// One driver in the worlds of the race, without the line's end.
std::string DriverText(const RunSummary& summary, const std::string& name, const Tally& tally) {
  const double confidence = RaceConfidence(summary.race.size());
  Evaluation evaluation;
  evaluation.tally = tally;
  evaluation.starts_per_world = summary.race_starts;
  const ProportionInterval safe = RateInterval(evaluation, tally.reached, confidence);
  const ProportionInterval cost = CostInterval(evaluation, confidence);
  return fmt::format("  {:<12}  {:.4f} [{:.4f}, {:.4f}]  {:.4f} [{:.4f}, {:.4f}]", name,
                     SafeRate(tally), safe.low, safe.high, MeanCost(tally), cost.low, cost.high);
}

// Whether learning was worth it, in one line.
std::string ComparisonText(const Comparison& comparison, double winner, double gap_follower) {
  switch (comparison.verdict) {
    case Comparison::Verdict::kBetter:
      return fmt::format(
          "best.fgp does better than the gap follower, which learns nothing ({:.4f} against "
          "{:.4f}, 99 %)\n",
          winner, gap_follower);
    case Comparison::Verdict::kWorse:
      return fmt::format(
          "the gap follower, which learns nothing, does better here ({:.4f} against {:.4f}, 99 %): "
          "see docs/when-it-does-not-learn.md\n",
          gap_follower, winner);
    case Comparison::Verdict::kOpen:
      break;
  }
  return fmt::format(
      "best.fgp and the gap follower, which learns nothing, cannot be told apart by safe arrival "
      "({:.4f} against {:.4f}, 99 %)\n",
      winner, gap_follower);
}

std::string BaselinesText(const RunSummary& summary, const Baselines& baselines) {
  std::string text = "to compare with, in the same worlds\n";
  for (const Baseline& driver : baselines.drivers) {
    text += DriverText(summary, driver.name, driver.tally) + "\n";
  }
  const Crossable& crossable = baselines.crossable;
  Evaluation evaluation;
  evaluation.tally.episodes = crossable.episodes;
  evaluation.starts_per_world = summary.race_starts;
  const double low = CrossableInterval(evaluation, crossable).low;
  const double rate =
      static_cast<double>(crossable.crossed) / static_cast<double>(crossable.episodes);
  // Rounded down: it is a lower bound.
  text += fmt::format("  can be crossed, at least: {:.4f} [{:.4f}, 1]",
                      std::floor(1e4 * rate) / 1e4, std::floor(1e4 * low) / 1e4);
  const std::int64_t drivers = crossable.episodes - crossable.searched;
  text += crossable.searched == 0
              ? " (in each of them somebody arrived)\n"
              : fmt::format(
                    " (a search that knows the map finds a way in {} of the {} in which nobody "
                    "arrived)\n",
                    Grouped(crossable.crossed - drivers), Counted(crossable.searched, "episode"));
  const double winner = SafeRate(summary.race[summary.winner].tally);
  if (baselines.with_straight.verdict == Comparison::Verdict::kWorse) {
    text += fmt::format("driving straight ahead does better here ({:.4f} against {:.4f}, 99 %)\n",
                        SafeRate(baselines.drivers.front().tally), winner);
  }
  return text + ComparisonText(baselines.with_gap_follower, winner,
                               SafeRate(baselines.drivers.back().tally));
}

std::string RaceText(const RunSummary& summary) {
  std::string text = fmt::format(
      "the race that selects the policy, {}{} each (99 % intervals; each column holds for all "
      "policies at once, so for the winner too)\n",
      Counted(summary.race.front().tally.episodes / summary.race_starts, "unseen world"),
      summary.race_starts == 1 ? "" : fmt::format(" with {} starts", summary.race_starts));
  text += "  policy        safe arrival             cost J\n";
  for (std::size_t i = 0; i < summary.race.size(); ++i) {
    text += DriverText(summary, summary.race[i].name, summary.race[i].tally) +
            (i == summary.winner ? "  <- best.fgp\n" : "\n");
    if (!summary.race[i].also.empty()) {
      text += fmt::format("    the same policy: {}\n", fmt::join(summary.race[i].also, ", "));
    }
  }
  if (summary.baselines) text += BaselinesText(summary, *summary.baselines);
  return text;
}

// In words that need no glossary; why something is open does, and stands in summary.json.
std::string GuaranteesText(const std::vector<Guarantee>& guarantees) {
  std::string text = "what is proved about how it was learned\n";
  bool all = true;
  for (const Guarantee& guarantee : guarantees) {
    if (guarantee.name == "certificate") continue;  // it stands above
    const std::string_view standing = guarantee.standing == Standing::kYes      ? "proved"
                                      : guarantee.standing == Standing::kPartly ? "in part"
                                                                                : "not proved";
    all = all && guarantee.standing == Standing::kYes;
    text += fmt::format("  {:<10}  {}{}\n", standing, guarantee.statement,
                        guarantee.name.starts_with('T') ? " [" + guarantee.name + "]" : "");
  }
  return text + (all ? "" : "  why not, and what would be: summary.json, docs/guarantees.md\n");
}

}  // namespace

double RaceConfidence(std::size_t num_racers) {
  return 1 - (1 - kEvaluationConfidence) / static_cast<double>(num_racers);
}

std::string RunSummaryText(const RunSummary& summary) {
  std::string text;
  if (summary.certificate) text = Summary(*summary.certificate) + "\n\n";
  text += fmt::format("{} of {}, {:.2f} M training episodes; {}\n",
                      Counted(summary.rounds, "round"), NameOf(summary.algorithm),
                      static_cast<double>(summary.episodes) / 1e6, EndingText(summary.ending));
  if (summary.algorithm == Algorithm::kFedGen) text += AdoptionsText(summary.learners);
  text += "\n";
  if (!summary.race.empty()) text += RaceText(summary) + "\n";
  return text + GuaranteesText(summary.guarantees);
}

}  // namespace fedgen
