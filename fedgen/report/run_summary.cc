// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "fedgen/report/evaluation.h"
#include "fedgen/report/number_text.h"

namespace fedgen {
namespace {

using Json = nlohmann::ordered_json;

double SafeRate(const Tally& tally) {
  return static_cast<double>(tally.reached) / static_cast<double>(tally.episodes);
}

double MeanCost(const Tally& tally) { return tally.cost_sum / static_cast<double>(tally.episodes); }

Json RacerJson(const Racer& racer) {
  return {{"name", racer.name},
          {"episodes", racer.tally.episodes},
          {"safe_rate", SafeRate(racer.tally)},
          {"mean_cost", MeanCost(racer.tally)}};
}

}  // namespace

std::string_view AlgorithmName(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kFedGen:
      return "fedgen";
    case Algorithm::kLocal:
      return "local";
    case Algorithm::kFedAvg:
      return "fedavg";
    case Algorithm::kCentralized:
      return "centralized";
  }
  return "unknown";
}

std::string_view EndingText(Ending ending) {
  switch (ending) {
    case Ending::kNotYet:
      return "not finished";
    case Ending::kRounds:
      return "all rounds were run";
    case Ending::kSettled:
      return "every learner has stopped and no fusion can fire";
    case Ending::kEpisodes:
      return "the budget of episodes is spent";
  }
  return "unknown";
}

std::string RunSummaryJson(const RunSummary& summary) {
  Json json = {{"format", "fedgen-run-summary"},
               {"version", 1},
               {"program", summary.program},
               {"config", summary.config_name},
               {"seed", summary.seed},
               {"algorithm", AlgorithmName(summary.algorithm)},
               {"ending", EndingText(summary.ending)},
               {"rounds", summary.rounds},
               {"episodes", summary.episodes}};
  for (std::size_t i = 0; i < summary.learners.size(); ++i) {
    const LearnerState& s = summary.learners[i];
    json["learners"].push_back({{"learner", i + 1},
                                {"y", s.y},
                                {"b", s.b},
                                {"stopped", s.stopped},
                                {"first_stop", s.first_stop},
                                {"adoptions", s.adoptions},
                                {"origin", s.origin + 1},
                                {"episodes", s.episodes}});
  }
  if (summary.incumbent) {
    json["incumbent"] = {{"learner", summary.incumbent->learner + 1},
                         {"round", summary.incumbent->round},
                         {"y", summary.incumbent->y},
                         {"b", summary.incumbent->b},
                         {"theta_sha256", summary.incumbent->hash}};
  }
  for (const Racer& racer : summary.race) json["race"].push_back(RacerJson(racer));
  if (!summary.race.empty()) json["winner"] = summary.race[summary.winner].name;
  for (const Guarantee& guarantee : summary.guarantees) {
    json["guarantees"].push_back({{"name", guarantee.name},
                                  {"holds", guarantee.standing != Standing::kNo},
                                  {"standing", StandingName(guarantee.standing)},
                                  {"statement", guarantee.statement},
                                  {"reason", guarantee.reason}});
  }
  json["warnings"] = summary.warnings;
  if (summary.certificate) {
    json["certificate"] = {{"file", "certificate.json"},
                           {"worlds", summary.certificate->worlds},
                           {"confidence", summary.certificate->confidence},
                           {"safe_arrival", summary.certificate->safe_arrival},
                           {"expected_cost", summary.certificate->expected_cost}};
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

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
