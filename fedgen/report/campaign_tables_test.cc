// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/campaign_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace fedgen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Tally TallyOf(int reached, double cost_sum) {
  Tally tally;
  tally.episodes = 100;
  tally.reached = reached;
  tally.collided = 100 - reached;
  tally.cost_sum = cost_sum;
  return tally;
}

// Two learners, of which the second is stuck if it arrives in fewer than half of the worlds.
RunOutcome RunOf(int reached_1, int reached_2, int adoptions) {
  RunOutcome run;
  run.rounds = 12;
  run.episodes = 3400;
  run.learners.resize(2);
  run.learners[0].bias = 0.25;
  run.learners[0].adoptions = adoptions;
  run.learners[0].final = TallyOf(reached_1, 130 - reached_1);
  run.learners[1].final = TallyOf(reached_2, 130 - reached_2);
  run.winner = TallyOf(reached_1, 130 - reached_1);
  return run;
}

std::vector<SweepRow> Rows() {
  return {MakeSweepRow(0.1, 1, RunOf(90, 80, 0)), MakeSweepRow(0.1, 2, RunOf(90, 40, 2)),
          MakeSweepRow(0.2, 1, RunOf(96, 94, 1)), MakeSweepRow(0.2, 2, RunOf(98, 92, 1))};
}

TEST(MakeTradeoffs, GivesMeanLowestAndHighestOfEachValue) {
  const std::vector<TradeoffPoint> points = MakeTradeoffs(Rows());
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].x, 0.1);
  EXPECT_NEAR(points[0].final_safety.mean, 0.75, 1e-12);  // of 0.85 and 0.65
  EXPECT_NEAR(points[0].final_safety.low, 0.65, 1e-12);
  EXPECT_NEAR(points[0].final_safety.high, 0.85, 1e-12);
  EXPECT_NEAR(points[0].consensus_gap.mean, 0.3, 1e-12);  // of 0.1 and 0.5
  EXPECT_EQ(points[0].adoptions.high, 2);
  EXPECT_EQ(points[1].x, 0.2);
  EXPECT_NEAR(points[1].final_safety.mean, 0.95, 1e-12);
  EXPECT_TRUE(MakeTradeoffs({}).empty());
}

TEST(SweepText, HasALineForEachValue) {
  const std::string text = SweepText("b (learner.bias)", Rows());
  EXPECT_THAT(text, StartsWith("b (learner.bias)\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
  EXPECT_THAT(text, HasSubstr("0.250"));                    // b
  EXPECT_THAT(text, HasSubstr("1.0 [0, 2]"));               // adoptions
  EXPECT_THAT(text, HasSubstr("0.7500 [0.6500, 0.8500]"));  // safe rate
  EXPECT_THAT(text, HasSubstr("             1\n"));         // one stuck learner with 0.1
  EXPECT_THAT(text, HasSubstr("             0\n"));         // none with 0.2
}

TEST(SweepCsv, HasARowForEachRun) {
  const std::string text = SweepCsv(Rows());
  EXPECT_THAT(text, StartsWith("value,seed,b,"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
  EXPECT_THAT(text, HasSubstr("\n0.1,2,0.25,"));
  EXPECT_THAT(text, HasSubstr(",1,3400\n"));
}

TEST(ComparisonText, JudgesTheLeadOfTheFirst) {
  const Contestant fedgen = MakeContestant("fedgen", {RunOf(96, 94, 1), RunOf(98, 92, 1)});
  const Contestant worse = MakeContestant("local", {RunOf(76, 74, 0), RunOf(78, 72, 0)});
  const Contestant uneven = MakeContestant("fedavg", {RunOf(76, 74, 0), RunOf(99, 99, 0)});
  const std::string text = ComparisonText({fedgen, worse, uneven}, "Comparison");
  EXPECT_THAT(text, StartsWith("Comparison\n"));
  EXPECT_THAT(text, HasSubstr("0.9700 [0.9600, 0.9800]"));  // best of fedgen
  EXPECT_THAT(text, HasSubstr("fedgen's lead"));
  EXPECT_THAT(text, HasSubstr("local        +0.2000 \u00b1 0.0000 better"));
  EXPECT_THAT(text, HasSubstr("even"));
  const std::string one = ComparisonText(
      {MakeContestant("fedgen", {RunOf(96, 94, 1)}), MakeContestant("local", {RunOf(76, 74, 0)})},
      "");
  EXPECT_THAT(one, HasSubstr("local        +0.2000 "));  // one seed has no interval
  EXPECT_THAT(one, Not(HasSubstr("better")));
}

TEST(ComparisonCsv, CountsSeedsFromTheFirst) {
  const Contestant fedgen = MakeContestant("fedgen", {RunOf(96, 94, 1), RunOf(98, 92, 1)});
  const std::string text = ComparisonCsv({fedgen}, 7);
  EXPECT_THAT(text, HasSubstr("\nfedgen,7,12,3400,0.95,0.35,0.96,0.34\n"));
  EXPECT_THAT(text, HasSubstr("\nfedgen,8,"));
}

}  // namespace
}  // namespace fedgen
