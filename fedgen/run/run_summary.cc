// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/run_summary.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "fedgen/run/config_options.h"

namespace fedgen {
namespace {

using Json = nlohmann::ordered_json;

// Learners count from 1 for people.
Json AuthorJson(LearnerId learner) {
  return learner.is_cloud() ? Json(learner.name()) : Json(learner.number());
}

Json DriverJson(const std::string& name, const Tally& tally) {
  return {{"name", name},
          {"episodes", tally.episodes},
          {"safe_rate", SafeRate(tally)},
          {"mean_cost", MeanCost(tally)}};
}

void AddBaselines(const Baselines& baselines, Json& json) {
  for (const Baseline& driver : baselines.drivers) {
    json["baselines"].push_back(DriverJson(driver.name, driver.tally));
  }
  const Crossable& crossable = baselines.crossable;
  json["baselines"].push_back({{"name", "search"},
                               {"episodes", crossable.episodes},
                               {"safe_rate", static_cast<double>(crossable.crossed) /
                                                 static_cast<double>(crossable.episodes)},
                               {"searched", crossable.searched},
                               {"expansions", crossable.expansions}});
  const Comparison& comparison = baselines.with_gap_follower;
  json["winner_against_straight"] = NameOf(baselines.with_straight.verdict);
  json["winner_against_gap_follower"] = {{"verdict", NameOf(comparison.verdict)},
                                         {"confidence", kComparisonConfidence},
                                         {"only_winner", comparison.only_first},
                                         {"only_gap_follower", comparison.only_second}};
}

}  // namespace

std::string_view EndingText(Ending ending) {
  switch (ending) {
    case Ending::kNotYet:
      return "not finished";
    case Ending::kRounds:
      return "all rounds were run";
    case Ending::kSettled:
      return "every learner has stopped and none can adopt";
    case Ending::kEpisodes:
      return "the budget of training episodes is used up";
  }
  return "unknown";
}

std::string RunSummaryJson(const RunSummary& summary) {
  Json json = {{"format", "fedgen-run-summary"},
               {"version", 1},
               {"program", summary.program},
               {"config", summary.config_name},
               {"seed", summary.seed},
               {"algorithm", NameOf(summary.algorithm)},
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
                                {"origin", s.origin.number()},
                                {"episodes", s.episodes}});
  }
  if (summary.incumbent) {
    json["incumbent"] = {{"learner", AuthorJson(summary.incumbent->learner)},
                         {"round", summary.incumbent->round},
                         {"y", summary.incumbent->y},
                         {"b", summary.incumbent->b},
                         {"theta_sha256", summary.incumbent->hash}};
  }
  for (const Racer& racer : summary.race) {
    json["race"].push_back(DriverJson(racer.name, racer.tally));
    if (!racer.also.empty()) json["race"].back()["also"] = racer.also;
  }
  if (!summary.race.empty()) json["winner"] = summary.race[summary.winner].name;
  if (summary.baselines) AddBaselines(*summary.baselines, json);
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

}  // namespace fedgen
