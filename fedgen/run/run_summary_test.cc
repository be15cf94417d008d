// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/run_summary.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace fedgen {
namespace {

RunSummary Sample() {
  RunSummary summary;
  summary.program = "fedgen 1.2.3";
  summary.config_name = "quick";
  summary.seed = 0xffffffffffffffff;
  summary.ending = Ending::kSettled;
  summary.rounds = 17;
  summary.episodes = 1'234'567;
  summary.learners.resize(2);
  summary.learners[0].y = 0.1 + 0.2;
  summary.learners[0].stopped = true;
  summary.learners[1].adoptions = 3;
  summary.learners[0].b = 0.25;
  summary.learners[1].b = 0.5;
  Submission incumbent;
  incumbent.learner = LearnerId(1);
  incumbent.round = 12;
  incumbent.y = 1.0 / 3;
  incumbent.hash = "abcd";
  summary.incumbent = incumbent;
  Tally good, bad;
  good.episodes = bad.episodes = 100;
  good.reached = 90;
  bad.reached = 20;
  good.cost_sum = 37;
  bad.cost_sum = 87;
  summary.race = {{"final-1", {}, bad}, {"incumbent", {}, good}};
  summary.winner = 1;
  Baselines baselines;
  baselines.drivers = {{"straight", bad}, {"gap-follower", good}};
  baselines.with_gap_follower = {3, 14, Comparison::Verdict::kWorse};
  baselines.crossable = {100, 8, 95, 30'000};
  summary.baselines = baselines;
  summary.guarantees = {{"T1", Standing::kYes, "a statement", ""},
                        {"T4", Standing::kNo, "another", "for a reason"},
                        {"T5", Standing::kPartly, "a third", "not all of it"}};
  summary.warnings = {"mind the gap"};
  return summary;
}

TEST(RunSummaryJson, SaysWhatHappened) {
  const RunSummary summary = Sample();
  const std::string text = RunSummaryJson(summary);
  const auto json = nlohmann::json::parse(text, nullptr, false);
  ASSERT_TRUE(json.is_object()) << text;
  EXPECT_EQ(json["format"], "fedgen-run-summary");
  EXPECT_EQ(json["seed"], 0xffffffffffffffff);
  EXPECT_EQ(json["algorithm"], "fedgen");
  EXPECT_EQ(json["ending"], "every learner has stopped and none can adopt");
  EXPECT_EQ(json["rounds"], 17);
  ASSERT_EQ(json["learners"].size(), 2U);
  EXPECT_EQ(json["learners"][0]["learner"], 1);
  EXPECT_EQ(json["learners"][0]["y"], 0.1 + 0.2);  // the same double back
  EXPECT_EQ(json["learners"][0]["stopped"], true);
  EXPECT_EQ(json["learners"][1]["b"], 0.5);
  EXPECT_EQ(json["learners"][1]["adoptions"], 3);
  EXPECT_EQ(json["incumbent"]["learner"], 2);
  EXPECT_EQ(json["incumbent"]["y"], 1.0 / 3);
  EXPECT_EQ(json["winner"], "incumbent");
  EXPECT_EQ(json["race"][1]["safe_rate"], 0.9);
  EXPECT_EQ(json["race"][0]["mean_cost"], 0.87);
  ASSERT_EQ(json["race"].size(), 2U);  // baselines do not race
  ASSERT_EQ(json["baselines"].size(), 3U);
  EXPECT_EQ(json["baselines"][1]["name"], "gap-follower");
  EXPECT_EQ(json["baselines"][1]["mean_cost"], 0.37);
  EXPECT_EQ(json["baselines"][2]["name"], "search");
  EXPECT_EQ(json["baselines"][2]["safe_rate"], 0.95);
  EXPECT_EQ(json["baselines"][2]["searched"], 8);
  EXPECT_EQ(json["winner_against_gap_follower"]["verdict"], "worse");
  EXPECT_EQ(json["winner_against_gap_follower"]["confidence"], 0.99);
  EXPECT_EQ(json["winner_against_gap_follower"]["only_winner"], 3);
  EXPECT_EQ(json["winner_against_gap_follower"]["only_gap_follower"], 14);
  EXPECT_EQ(json["guarantees"][0]["standing"], "yes");
  EXPECT_EQ(json["guarantees"][1]["holds"], false);
  EXPECT_EQ(json["guarantees"][1]["standing"], "no");
  EXPECT_EQ(json["guarantees"][2]["holds"], true);
  EXPECT_EQ(json["guarantees"][2]["standing"], "partly");
  EXPECT_EQ(json["guarantees"][1]["reason"], "for a reason");
  EXPECT_EQ(json["warnings"][0], "mind the gap");
  EXPECT_FALSE(json.contains("certificate"));
  EXPECT_EQ(text, RunSummaryJson(summary));  // no clock in it
  EXPECT_TRUE(nlohmann::json::accept(RunSummaryJson({})));
}

TEST(AlgorithmName, IsWhatTheConfigurationCallsIt) {
  EXPECT_EQ(NameOf(Algorithm::kFedGen), "fedgen");
  EXPECT_EQ(NameOf(Algorithm::kLocal), "local");
  EXPECT_EQ(NameOf(Algorithm::kFedAvg), "fedavg");
  EXPECT_EQ(NameOf(Algorithm::kCentralized), "centralized");
  EXPECT_EQ(NameOf(Algorithm::kSingle), "single");
}

}  // namespace
}  // namespace fedgen
