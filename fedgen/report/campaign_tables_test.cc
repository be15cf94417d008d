// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/campaign_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

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
  EXPECT_THAT(text, HasSubstr("0.97000 [0.96000, 0.98000]"));  // best of fedgen
  EXPECT_THAT(text, HasSubstr("fedgen's lead"));
  EXPECT_THAT(text, HasSubstr("exploratory: each interval holds by itself"));
  EXPECT_THAT(text, HasSubstr("local        +0.20000 \u00b1 0.00000 better"));
  EXPECT_THAT(text, HasSubstr("even"));
  const std::string one = ComparisonText(
      {MakeContestant("fedgen", {RunOf(96, 94, 1)}), MakeContestant("local", {RunOf(76, 74, 0)})},
      "");
  EXPECT_THAT(one, HasSubstr("local        +0.20000 "));  // one seed has no interval
  EXPECT_THAT(one, Not(HasSubstr("better")));
}

TEST(ComparisonCsv, CountsSeedsFromTheFirst) {
  const Contestant fedgen = MakeContestant("fedgen", {RunOf(96, 94, 1), RunOf(98, 92, 1)});
  const std::string text = ComparisonCsv({fedgen}, 7);
  EXPECT_THAT(text, HasSubstr("\nfedgen,7,12,3400,0.95,0.35,0.96,0.34\n"));
  EXPECT_THAT(text, HasSubstr("\nfedgen,8,"));
}

// ---- Statements ---------------------------------------------------------------------------------

// Student's quantiles in closed form: with confidence c the half width of the interval around the
// mean of 2 samples is tan(pi c / 2) s / sqrt(2), of 3 samples c sqrt(2 / (1 - c^2)) s / sqrt(3).
constexpr double kEach = 1 - 0.05 / 3;                               // of three statements, Eq. 40
const double kQuantileOf2 = std::tan(std::numbers::pi / 2 * kEach);  // 38.19
const double kQuantileOf3 = kEach * std::sqrt(2 / (1 - kEach * kEach));    // 7.649
const double kQuantileOf3Alone = 0.95 * std::sqrt(2 / (1 - 0.95 * 0.95));  // 4.303

// Two more, so that there are three.
std::vector<Statement> WithOthers(Statement statement) {
  const Statement other = {"another", {0.9, 0.9}, {0.9, 0.9}, 0};
  return {std::move(statement), other, other};
}

TEST(Judge, HasStudentsIntervalOfThePairedLeads) {
  const std::vector<double> local = {0.90, 0.93, 0.96};
  const Statement three = {"", {0.92, 0.96, 1.00}, local, 0};  // leads 0.02, 0.03, 0.04
  const Judgement judged = Judge(WithOthers(three)).front();
  EXPECT_NEAR(judged.mean, 0.03, 1e-12);
  EXPECT_NEAR(judged.low, 0.03 - kQuantileOf3 * 0.01 / std::sqrt(3), 1e-9);   // -0.0142
  EXPECT_NEAR(judged.high, 0.03 + kQuantileOf3 * 0.01 / std::sqrt(3), 1e-9);  // 0.0742
  EXPECT_EQ(judged.verdict, Judgement::Verdict::kUndecided);
  // Leads 0.01 and 0.03: s = 0.02 / sqrt(2), over sqrt(2) seeds.
  const Judgement two = Judge(WithOthers({"", {0.5, 0.6}, {0.49, 0.57}, 0})).front();
  EXPECT_NEAR(two.high - two.mean, kQuantileOf2 * 0.01, 1e-9);
}

// The lead is 0.013 with s = 0.003: 0.0075 wide at 95 %, 0.0132 at 98.3 %.
TEST(Judge, PaysForEveryStatement) {
  const Statement close = {"", {0.910, 0.913, 0.916}, {0.9, 0.9, 0.9}, 0};
  ASSERT_GT(0.013, kQuantileOf3Alone * 0.003 / std::sqrt(3));
  ASSERT_LT(0.013, kQuantileOf3 * 0.003 / std::sqrt(3));
  EXPECT_EQ(Judge({close}).front().verdict, Judgement::Verdict::kHolds);
  EXPECT_EQ(Judge(WithOthers(close)).front().verdict, Judgement::Verdict::kUndecided);
}

// Seeds differ by 0.05 and more, the leads of a seed by 0.0001. Unpaired, s of either side is
// 0.045, and a lead of 0.01 would be nothing.
TEST(Judge, ComparesSeedBySeed) {
  const Statement statement = {"", {0.91, 0.9501, 0.9999}, {0.90, 0.94, 0.99}, 0};
  const Judgement judged = Judge(WithOthers(statement)).front();
  EXPECT_EQ(judged.verdict, Judgement::Verdict::kHolds);
  EXPECT_NEAR(judged.high - judged.low, 2 * kQuantileOf3 * 0.0001 / std::sqrt(3), 1e-9);
}

TEST(Judge, KnowsWhatWasClaimed) {
  // Always 0.0004 less, give or take: at most 0.0005 less often holds, more often does not.
  const Statement allowed = {"", {0.9986, 0.99961, 0.99959}, {0.9990, 1, 1}, -0.0005};
  Statement more = allowed;
  more.least = 0;
  EXPECT_EQ(Judge(WithOthers(allowed)).front().verdict, Judgement::Verdict::kHolds);
  EXPECT_EQ(Judge(WithOthers(more)).front().verdict, Judgement::Verdict::kDoesNotHold);
  // One seed decides nothing, however large the lead.
  EXPECT_EQ(Judge({{"", {1}, {0}, 0}}).front().verdict, Judgement::Verdict::kUndecided);
}

TEST(StatementsText, SaysWhatHolds) {
  const std::vector<Statement> statements = {{"fedgen before local", {0.91, 0.95}, {0.9, 0.94}, 0},
                                             {"local before fedgen", {0.9, 0.94}, {0.91, 0.95}, 0},
                                             {"who knows", {0.9, 0.95}, {0.95, 0.9}, -0.0005}};
  const std::string text = StatementsText(statements, "Statements");
  EXPECT_THAT(text, StartsWith("Statements\n"));
  EXPECT_THAT(text, HasSubstr("98.33 % each, so 95 % jointly"));
  EXPECT_THAT(text, HasSubstr("S1 fedgen before local\n     lead +0.01000 [+0.01000, +0.01000], "
                              "claimed above +0.0000; 2 seeds: holds\n"));
  EXPECT_THAT(text, HasSubstr("2 seeds: does not hold\n"));
  EXPECT_THAT(text, HasSubstr("claimed above -0.0005; 2 seeds: undecided\n"));
  const std::string csv = StatementsCsv(statements);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 4);
  EXPECT_THAT(csv, HasSubstr("\nS3,2,-0.0005,0,"));
}

}  // namespace
}  // namespace fedgen
