// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/summary_text.h"

#include <fmt/format.h>

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

std::string RaceText(const RunSummary& summary) {
  const double confidence = RaceConfidence(summary.race.size());
  std::string text = fmt::format(
      "the race that selects the policy, {}{} each (99 % intervals; each column holds for all "
      "policies at once, so for the winner too)\n",
      Counted(summary.race.front().tally.episodes / summary.race_starts, "unseen world"),
      summary.race_starts == 1 ? "" : fmt::format(" with {} starts", summary.race_starts));
  text += "  policy       safe arrival             cost J\n";
  for (std::size_t i = 0; i < summary.race.size(); ++i) {
    const Racer& racer = summary.race[i];
    Evaluation evaluation;
    evaluation.tally = racer.tally;
    evaluation.starts_per_world = summary.race_starts;
    const ProportionInterval safe = RateInterval(evaluation, racer.tally.reached, confidence);
    const ProportionInterval cost = CostInterval(evaluation, confidence);
    text +=
        fmt::format("  {:<11}  {:.4f} [{:.4f}, {:.4f}]  {:.4f} [{:.4f}, {:.4f}]{}\n", racer.name,
                    SafeRate(racer.tally), safe.low, safe.high, MeanCost(racer.tally), cost.low,
                    cost.high, i == summary.winner ? "  <- best.fgp" : "");
  }
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
