// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/summary_text.h"

#include <fmt/format.h>

#include "fedgen/base/text.h"
#include "fedgen/report/evaluation.h"

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
  std::string text = fmt::format(
      "the race that selects the policy, {}{} each (99 % intervals, one by one)\n",
      Counted(summary.race.front().tally.episodes / summary.race_starts, "unseen world"),
      summary.race_starts == 1 ? "" : fmt::format(" with {} starts", summary.race_starts));
  text += "  policy       safe arrival             cost J\n";
  for (std::size_t i = 0; i < summary.race.size(); ++i) {
    const Racer& racer = summary.race[i];
    Evaluation evaluation;
    evaluation.tally = racer.tally;
    evaluation.starts_per_world = summary.race_starts;
    const ProportionInterval safe = RateInterval(evaluation, racer.tally.reached);
    const ProportionInterval cost = CostInterval(evaluation);
    text +=
        fmt::format("  {:<11}  {:.4f} [{:.4f}, {:.4f}]  {:.4f} [{:.4f}, {:.4f}]{}\n", racer.name,
                    SafeRate(racer.tally), safe.low, safe.high, MeanCost(racer.tally), cost.low,
                    cost.high, i == summary.winner ? "  <- best.fgp" : "");
  }
  return text;
}

std::string GuaranteesText(const std::vector<Guarantee>& guarantees) {
  std::string text =
      "what is proved about this run (docs/guarantees.md)\n"
      "  yes: the theorem as corrected there; partly: only what is stated here, not the whole "
      "theorem; no: nothing\n";
  for (const Guarantee& guarantee : guarantees) {
    text += fmt::format("  {:<6}  {:<11}  {}\n", StandingName(guarantee.standing), guarantee.name,
                        guarantee.statement);
    if (guarantee.standing == Standing::kYes) continue;
    text +=
        fmt::format("            {}: {}\n",
                    guarantee.standing == Standing::kNo ? "not proved" : "but", guarantee.reason);
  }
  return text;
}

}  // namespace

std::string RunSummaryText(const RunSummary& summary) {
  std::string text =
      fmt::format("{} of {}, {:.2f} M training episodes; {}\n", Counted(summary.rounds, "round"),
                  NameOf(summary.algorithm), static_cast<double>(summary.episodes) / 1e6,
                  EndingText(summary.ending));
  if (summary.algorithm == Algorithm::kFedGen) text += AdoptionsText(summary.learners);
  text += "\n";
  if (!summary.race.empty()) text += RaceText(summary) + "\n";
  return text + GuaranteesText(summary.guarantees);
}

}  // namespace fedgen
