// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace fedgen {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Evaluation TenThousandWorlds() {
  Evaluation evaluation;
  Tally& tally = evaluation.tally;
  tally.episodes = 10'000;
  tally.reached = 1'783;
  tally.collided = 8'200;
  tally.timed_out = 17;
  tally.steps = 1'234'567;
  tally.cost_sum = 8'750.5;
  tally.goal_distance_sum = 32'100;
  tally.arrival_time_sum = 6'400.97;
  tally.outcome_hash = 0x00ab'cdef'0123'4567;
  evaluation.seconds = 0.5;
  return evaluation;
}

std::vector<std::string> Keys(const nlohmann::ordered_json& json) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  return keys;
}

// Given worlds are counted, not sampled.
TEST(Evaluation, ShowsNoIntervalForACensus) {
  Evaluation census = TenThousandWorlds();
  census.census = true;
  const std::string table = EvaluationTable(census);
  EXPECT_THAT(table, HasSubstr("safe arrival  0.1783  (10,000 worlds, as given)\n"));
  EXPECT_THAT(table, HasSubstr("cost J        0.8750  (10,000 worlds, as given)\n"));
  EXPECT_THAT(table, HasSubstr("a census: "));
  EXPECT_THAT(table, Not(HasSubstr("99 %")));
  const auto json = nlohmann::ordered_json::parse(EvaluationJson(census));
  EXPECT_EQ(json["safe_rate"], 0.1783);
  for (const char* name : {"safe_rate_interval", "collision_rate_interval", "timeout_rate_interval",
                           "mean_cost_interval", "interval_confidence"}) {
    EXPECT_TRUE(json[name].is_null()) << name;
  }
  EXPECT_EQ(json["interval_method"], "none");
}

TEST(EvaluationJson, GivesEveryNumberUnderItsName) {
  const auto json = nlohmann::ordered_json::parse(EvaluationJson(TenThousandWorlds()));
  EXPECT_THAT(Keys(json),
              ElementsAre("worlds", "safe_rate", "safe_rate_interval", "collision_rate",
                          "collision_rate_interval", "timeout_rate", "timeout_rate_interval",
                          "mean_cost", "mean_cost_interval", "mean_distance", "mean_arrival_time",
                          "steps", "steps_per_second", "outcome_hash", "interval_method",
                          "mean_cost_interval_method", "interval_confidence", "episodes",
                          "starts_per_world"));
  EXPECT_EQ(json["worlds"], 10'000);
  EXPECT_EQ(json["safe_rate"], 0.1783);
  EXPECT_EQ(json["collision_rate"], 0.82);
  EXPECT_EQ(json["timeout_rate"], 0.0017);
  EXPECT_EQ(json["mean_cost"], 0.87505);
  EXPECT_EQ(json["mean_distance"], 3.21);
  EXPECT_EQ(json["mean_arrival_time"], 6'400.97 / 1'783);
  EXPECT_EQ(json["steps"], 1'234'567);
  EXPECT_EQ(json["steps_per_second"], 2'469'134.0);
  EXPECT_EQ(json["outcome_hash"], "00abcdef01234567");
  EXPECT_EQ(json["interval_method"], "clopper-pearson");
  EXPECT_EQ(json["interval_confidence"], 0.99);
  const ProportionInterval interval = ClopperPearson(1'783, 10'000, 0.99);
  EXPECT_EQ(json["safe_rate_interval"][0], interval.low);
  EXPECT_EQ(json["safe_rate_interval"][1], interval.high);
  EXPECT_EQ(json["collision_rate_interval"][0], ClopperPearson(8'200, 10'000, 0.99).low);
  EXPECT_EQ(json["timeout_rate_interval"][1], ClopperPearson(17, 10'000, 0.99).high);
  const ProportionInterval cost = HoeffdingInterval(0.87505, 10'000, 0.99);
  EXPECT_EQ(json["mean_cost_interval"][0], cost.low);
  EXPECT_EQ(json["mean_cost_interval"][1], cost.high);
}

TEST(EvaluationJson, AddsWhatWasGiven) {
  Evaluation evaluation = TenThousandWorlds();
  evaluation.seed = 0xffff'ffff'ffff'ffff;
  evaluation.policy = "gap-follower";
  evaluation.config = "caf\xe9.toml";  // Latin-1, not UTF-8
  evaluation.kernel = "simd";
  evaluation.threads = 2;
  const auto json = nlohmann::ordered_json::parse(EvaluationJson(evaluation));
  EXPECT_EQ(json["seed"], 0xffff'ffff'ffff'ffffU);
  EXPECT_EQ(json["policy"], "gap-follower");
  EXPECT_EQ(json["config"], "caf\xef\xbf\xbd.toml");
  EXPECT_EQ(json["kernel"], "simd");
  EXPECT_EQ(json["threads"], 2);
}

TEST(EvaluationJson, IsNullWhereThereIsNoNumber) {
  Evaluation evaluation = TenThousandWorlds();
  evaluation.tally.reached = 0;
  evaluation.tally.arrival_time_sum = 0;
  evaluation.seconds = 0;
  const auto json = nlohmann::ordered_json::parse(EvaluationJson(evaluation));
  EXPECT_TRUE(json["mean_arrival_time"].is_null());
  EXPECT_TRUE(json["steps_per_second"].is_null());
}

// Five starts in each of 2000 worlds are 2000 samples, not 10,000.
TEST(EvaluationJson, CountsWorldsWhereStartsShareThem) {
  Evaluation evaluation = TenThousandWorlds();
  evaluation.starts_per_world = 5;
  const auto json = nlohmann::ordered_json::parse(EvaluationJson(evaluation));
  EXPECT_EQ(json["worlds"], 2'000);
  EXPECT_EQ(json["episodes"], 10'000);
  EXPECT_EQ(json["safe_rate"], 0.1783);
  EXPECT_EQ(json["interval_method"], "hoeffding");
  const ProportionInterval interval = HoeffdingInterval(0.1783, 2'000, 0.99);
  EXPECT_EQ(json["safe_rate_interval"][0], interval.low);
  EXPECT_EQ(json["safe_rate_interval"][1], interval.high);
}

TEST(EvaluationTable, ShowsUnitSampleSizeAndConfidence) {
  Evaluation evaluation = TenThousandWorlds();
  evaluation.policy = "straight";
  evaluation.seed = 7;
  evaluation.kernel = "simd";
  evaluation.threads = 1;
  EXPECT_EQ(EvaluationTable(evaluation),
            "policy        straight\n"
            "seed          7\n"
            "safe arrival  0.1783  [0.1685, 0.1884] (99 %, 10,000 worlds)\n"
            "collision     0.8200  [0.8099, 0.8298] (99 %, 10,000 worlds)\n"
            "time-out      0.0017  [0.0008, 0.0031] (99 %, 10,000 worlds)\n"
            "cost J        0.8750  [0.8587, 0.8914] (99 % Hoeffding, 10,000 worlds)\n"
            "goal distance 3.210 m  (mean at the end of 10,000 episodes)\n"
            "arrival time  3.590 s  (mean over 1,783 arrivals)\n"
            "steps         1,234,567 in 0.5 s: 2.47 million steps/s (simd kernel, 1 thread)\n"
            "outcome hash  00abcdef01234567\n");
}

TEST(EvaluationTable, NamesTheMethodWhereStartsShareAWorld) {
  Evaluation evaluation = TenThousandWorlds();
  evaluation.starts_per_world = 5;
  const std::string table = EvaluationTable(evaluation);
  EXPECT_THAT(table, HasSubstr("safe arrival  0.1783  [0.1419, 0.2147] "
                               "(99 % Hoeffding, 2,000 worlds with 5 starts each)\n"));
}

TEST(EvaluationTable, SaysSoIfNothingArrivedOrNothingWasTimed) {
  Evaluation evaluation = TenThousandWorlds();
  evaluation.tally.episodes = 1;
  evaluation.tally.reached = 0;
  evaluation.tally.collided = 1;
  evaluation.tally.timed_out = 0;
  evaluation.tally.cost_sum = 1;
  evaluation.seconds = 0;
  const std::string table = EvaluationTable(evaluation);
  EXPECT_THAT(table, HasSubstr("arrival time  none  (no episode arrived)\n"));
  EXPECT_THAT(table, HasSubstr("(99 %, 1 world)\n"));
  EXPECT_THAT(table, HasSubstr("steps         1,234,567\n"));
  EXPECT_THAT(table, Not(HasSubstr("steps/s")));
}

// What the search did not find may be there: the interval ends at 1.
TEST(Evaluation, SaysHowManyWorldsCanBeCrossedAtLeast) {
  Evaluation evaluation = TenThousandWorlds();
  evaluation.crossable = Crossable{10'000, 8'217, 9'990, 3'650};
  const double low = ClopperPearson(9'990, 10'000, 0.99).low;
  const auto json = nlohmann::ordered_json::parse(EvaluationJson(evaluation));
  EXPECT_EQ(json["crossable_rate"], 0.999);
  EXPECT_EQ(json["crossable_rate_interval"][0], low);
  EXPECT_EQ(json["crossable_rate_interval"][1], 1);
  EXPECT_EQ(json["searched"], 8'217);
  EXPECT_EQ(json["expansions"], 3'650);
  const std::string table = EvaluationTable(evaluation);
  EXPECT_THAT(table, HasSubstr("crossable     0.9990  [0.9978, 1.0000] (99 %, 10,000 worlds)\n"));
  EXPECT_THAT(table,
              HasSubstr("finds a way in 8,207 of the 8,217 episodes that the policy failed"));
}

}  // namespace
}  // namespace fedgen
