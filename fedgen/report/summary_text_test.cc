// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/summary_text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fedgen/certify/bounds.h"

namespace fedgen {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

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
  incumbent.learner = 1;
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
  summary.guarantees = {{"T1", Standing::kYes, "a statement", ""},
                        {"T4", Standing::kNo, "another", "for a reason"},
                        {"T5", Standing::kOwn, "a third", "not all of it"}};
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
  EXPECT_EQ(json["ending"], "every learner has stopped and no fusion can fire");
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
  EXPECT_EQ(json["guarantees"][0]["standing"], "yes");
  EXPECT_EQ(json["guarantees"][1]["holds"], false);
  EXPECT_EQ(json["guarantees"][1]["standing"], "no");
  EXPECT_EQ(json["guarantees"][2]["holds"], true);
  EXPECT_EQ(json["guarantees"][2]["standing"], "own");
  EXPECT_EQ(json["guarantees"][1]["reason"], "for a reason");
  EXPECT_EQ(json["warnings"][0], "mind the gap");
  EXPECT_FALSE(json.contains("certificate"));
  EXPECT_EQ(text, RunSummaryJson(summary));  // no clock in it
  EXPECT_TRUE(nlohmann::json::accept(RunSummaryJson({})));
}

TEST(RunSummaryText, ListsTheRaceAndTheGuarantees) {
  const std::string text = RunSummaryText(Sample());
  EXPECT_THAT(text, StartsWith("17 rounds of fedgen, 1.23 M training episodes"));
  EXPECT_THAT(text, HasSubstr("3 adoptions; 1 of 2 learners was rescued at least once"));
  EXPECT_THAT(text, HasSubstr("the race, 100 unseen worlds each"));
  EXPECT_THAT(text, HasSubstr("  <- best.fgp"));
  EXPECT_THAT(text, HasSubstr("\n  yes  T1           a statement\n"));
  EXPECT_THAT(text, HasSubstr("\n  no   T4           another\n         not here: for a reason\n"));
  EXPECT_THAT(text, HasSubstr("\n  own  T5           a third\n         but: not all of it\n"));
  const ProportionInterval exact = ClopperPearson(90, 100, 0.99);
  EXPECT_THAT(text, HasSubstr(fmt::format("[{:.4f}, {:.4f}]", exact.low, exact.high)));
}

TEST(RunSummaryText, SpeaksOfAdoptionsOnlyWhereTheyCanHappen) {
  RunSummary summary = Sample();
  summary.rounds = 1;
  EXPECT_THAT(RunSummaryText(summary), StartsWith("1 round of fedgen, "));
  for (const Algorithm algorithm :
       {Algorithm::kLocal, Algorithm::kFedAvg, Algorithm::kCentralized}) {
    summary.algorithm = algorithm;
    EXPECT_EQ(RunSummaryText(summary).find("adoption"), std::string::npos);
  }
}

// Four starts share a world: 25 worlds are the samples, and the interval is Hoeffding's.
TEST(RunSummaryText, CountsWorldsNotStarts) {
  RunSummary summary = Sample();
  summary.race_starts = 4;
  const std::string text = RunSummaryText(summary);
  const ProportionInterval honest = HoeffdingInterval(0.9, 25, 0.99);
  EXPECT_THAT(text, HasSubstr(fmt::format("[{:.4f}, {:.4f}]", honest.low, honest.high)));
  EXPECT_THAT(text, HasSubstr("the race, 25 unseen worlds with 4 starts each"));
}

TEST(AlgorithmName, IsWhatTheConfigurationCallsIt) {
  EXPECT_EQ(AlgorithmName(Algorithm::kFedGen), "fedgen");
  EXPECT_EQ(AlgorithmName(Algorithm::kLocal), "local");
  EXPECT_EQ(AlgorithmName(Algorithm::kFedAvg), "fedavg");
  EXPECT_EQ(AlgorithmName(Algorithm::kCentralized), "centralized");
}

}  // namespace
}  // namespace fedgen
