// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/summary_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "fedgen/base/text.h"
#include "fedgen/report/evaluation.h"

namespace fedgen {

std::string RunSummaryText(const RunSummary& summary) {
  std::string text =
      fmt::format("{} of {}, {:.2f} M training episodes; {}\n", Counted(summary.rounds, "round"),
                  AlgorithmName(summary.algorithm), static_cast<double>(summary.episodes) / 1e6,
                  EndingText(summary.ending));
  const auto adoptions =
      std::accumulate(summary.learners.begin(), summary.learners.end(), 0,
                      [](int sum, const LearnerState& s) { return sum + s.adoptions; });
  const auto rescued = std::count_if(summary.learners.begin(), summary.learners.end(),
                                     [](const LearnerState& s) { return s.adoptions > 0; });
  if (summary.algorithm == Algorithm::kFedGen) {  // nobody adopts in the others
    const auto num_learners = static_cast<std::int64_t>(summary.learners.size());
    text += fmt::format("{}; {} of {} {} rescued at least once\n", Counted(adoptions, "adoption"),
                        rescued, Counted(num_learners, "learner"), rescued == 1 ? "was" : "were");
  }
  text += "\n";

  if (!summary.race.empty()) {
    text += fmt::format(
        "the race, {}{} each (99 % intervals, one by one)\n",
        Counted(summary.race.front().tally.episodes / summary.race_starts, "unseen world"),
        summary.race_starts == 1 ? "" : fmt::format(" with {} starts", summary.race_starts));
    text += "  policy       safe arrival             cost J\n";
    for (std::size_t i = 0; i < summary.race.size(); ++i) {
      const Racer& racer = summary.race[i];
      Evaluation evaluation;
      evaluation.tally = racer.tally;
      evaluation.starts_per_world = summary.race_starts;
      const ProportionInterval interval = RateInterval(evaluation, racer.tally.reached);
      const ProportionInterval cost = CostInterval(evaluation);
      text +=
          fmt::format("  {:<11}  {:.4f} [{:.4f}, {:.4f}]  {:.4f} [{:.4f}, {:.4f}]{}\n", racer.name,
                      SafeRate(racer.tally), interval.low, interval.high, MeanCost(racer.tally),
                      cost.low, cost.high, i == summary.winner ? "  <- best.fgp" : "");
    }
  }
  text +=
      "\nwhat holds for this run (docs/guarantees.md)\n"
      "  yes: as corrected there; own: what is said here, not all of the theorem; no: not proved\n";
  for (const Guarantee& guarantee : summary.guarantees) {
    text += fmt::format("  {:<3}  {:<11}  {}\n", StandingName(guarantee.standing), guarantee.name,
                        guarantee.statement);
    if (guarantee.standing == Standing::kYes) continue;
    text += fmt::format("         {}: {}\n",
                        guarantee.standing == Standing::kNo ? "not here" : "but", guarantee.reason);
  }
  return text;
}

}  // namespace fedgen
