// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/paper_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fedgen {
namespace {

using ::testing::HasSubstr;

Tally MakeTally(std::int64_t reached, std::int64_t collided, std::int64_t timed_out, double cost,
                double distance) {
  Tally tally;
  tally.episodes = reached + collided + timed_out;
  tally.reached = reached;
  tally.collided = collided;
  tally.timed_out = timed_out;
  tally.cost_sum = cost * static_cast<double>(tally.episodes);
  tally.goal_distance_sum = distance * static_cast<double>(tally.episodes);
  return tally;
}

RunOutcome MakeRun(const std::vector<double>& safe) {
  RunOutcome run;
  run.rounds = 220;
  for (const double rate : safe) {
    LearnerOutcome learner;
    learner.bias = 0.23;
    learner.initial = MakeTally(1792, 8208, 0, 0.875, 4.4);
    const auto reached = static_cast<std::int64_t>(rate * 10000);
    learner.final = MakeTally(reached, 10000 - reached, 0, 1 - 0.66 * rate, 0.3);
    learner.local = learner.final;
    run.learners.push_back(learner);
  }
  return run;
}

TEST(PaperTables, TheTwoTablesAgreeWithEachOther) {
  // Table 2's last column is the mean and the population deviation of Table 1's Final rows; its
  // first is the Local row of learner 8. Up to rounding; the deviation of the cost is printed as
  // 0.0027, the population's is 0.00256.
  const auto& finals = PaperTable1(Stage::kFinal);
  const MeanAndDeviation summary = Summarise({finals.begin(), finals.end()});
  const MeanAndDeviation printed = PaperTable2(4);
  EXPECT_NEAR(summary.mean.distance, printed.mean.distance, 1e-4);
  EXPECT_NEAR(summary.mean.cost, printed.mean.cost, 1e-4);
  EXPECT_NEAR(summary.mean.safe, printed.mean.safe, 2e-4);
  EXPECT_NEAR(summary.deviation.distance, printed.deviation.distance, 1e-4);
  EXPECT_NEAR(summary.deviation.cost, printed.deviation.cost, 2e-4);
  EXPECT_NEAR(summary.deviation.safe, printed.deviation.safe, 2e-4);
  EXPECT_EQ(PaperTable2(0).mean.safe, PaperTable1(Stage::kLocal)[7].safe);
  EXPECT_EQ(PaperTable2(0).mean.cost, PaperTable1(Stage::kLocal)[7].cost);
}

TEST(PaperTables, CountsTimeOutsAsItIsTold) {
  const Tally tally = MakeTally(900, 60, 40, 0.37, 0.25);
  const Score ours = ScoreOf(tally, Counting::kOurs);
  EXPECT_DOUBLE_EQ(ours.safe, 0.9);
  EXPECT_DOUBLE_EQ(ours.distance, 0.025);
  EXPECT_DOUBLE_EQ(ours.cost, 0.37);
  const Score authors = ScoreOf(tally, Counting::kAuthors);
  EXPECT_DOUBLE_EQ(authors.safe, 0.94);
  EXPECT_DOUBLE_EQ(authors.distance, 0.025 + 0.1 * 0.06);
  EXPECT_DOUBLE_EQ(authors.cost, 0.37);
}

TEST(PaperTables, TheDeviationIsThePopulations) {
  const MeanAndDeviation summary = Summarise({{1, 2, 0}, {3, 2, 1}});
  EXPECT_EQ(summary.mean.distance, 2);
  EXPECT_EQ(summary.deviation.distance, 1);
  EXPECT_EQ(summary.deviation.cost, 0);
  EXPECT_EQ(summary.deviation.safe, 0.5);
}

TEST(PaperTables, KnowsWhetherTheBarsAreMet) {
  const FinalSummary good = SummariseFinals(MakeRun({0.91, 0.93, 0.95}));
  EXPECT_TRUE(good.Meets({}));
  EXPECT_NEAR(good.mean, 0.93, 1e-12);
  EXPECT_NEAR(good.safe_gap, 0.04, 1e-12);
  EXPECT_NEAR(good.cost_gap, 0.66 * 0.04, 1e-12);
  EXPECT_FALSE(SummariseFinals(MakeRun({0.89, 0.95, 0.95})).Meets({}));  // one below 0.90
  EXPECT_FALSE(SummariseFinals(MakeRun({0.91, 0.91, 0.91})).Meets({}));  // mean below 0.92
  EXPECT_FALSE(SummariseFinals(MakeRun({0.20, 0.95, 0.95})).Meets({}));  // gap above 2 b
}

TEST(PaperTables, TableOneShowsEveryLearnerBesideThePaper) {
  const std::string text =
      Table1Text(MakeRun({0.91, 0.92, 0.93, 0.94, 0.95, 0.93, 0.93, 0.93}), "Table 1: example");
  EXPECT_THAT(text, HasSubstr("10,000 unseen worlds"));
  EXPECT_THAT(text, HasSubstr("0.5198  0.5170  0.5208"));  // paper, Init
  EXPECT_THAT(text, HasSubstr("0.9100  0.9200  0.9300"));  // ours, Final
  EXPECT_THAT(text, HasSubstr("lowest safe rate 0.9100, wanted at least 0.90: met"));
  EXPECT_EQ(text.find("MISSED"), std::string::npos);
  const std::string bad = Table1Text(MakeRun({0.85}), "Table 1: one");
  EXPECT_THAT(bad, HasSubstr("MISSED"));
  RunOutcome loose = MakeRun({0.20, 0.95});
  for (LearnerOutcome& learner : loose.learners) learner.bias = 0.5147;
  EXPECT_THAT(Table1Text(loose, "Table 1: b of the text"), HasSubstr("2 b = 1.0294: says nothing"));
  const std::string csv = Table1Csv(MakeRun({0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9}));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 9 * 3);
  EXPECT_THAT(csv, HasSubstr("8,Local,10000,"));
}

TEST(PaperTables, TableTwoSeparatesLearnersFromSeeds) {
  const Table2Column two = {2, false, {MakeRun({0.9, 0.8}), MakeRun({0.7, 0.6})}};
  const Table2Column one = {1, true, two.runs};
  const std::string text = Table2Text({one, two}, "Table 2: example");
  EXPECT_THAT(text, HasSubstr("0.7325 +-0.0225"));
  EXPECT_THAT(text, HasSubstr("0.7500"));    // over all
  EXPECT_THAT(text, HasSubstr("+-0.0500"));  // over learners, in each run
  EXPECT_THAT(text, HasSubstr("+-0.1000"));  // over seeds
  const std::string csv = Table2Csv({one, two}, 5);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 8);
  EXPECT_THAT(csv, HasSubstr("\n2,6,1,10000,"));
}

}  // namespace
}  // namespace fedgen
