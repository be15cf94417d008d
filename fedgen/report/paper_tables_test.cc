// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/paper_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fedgen {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

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

// A run that is all that Table 1's checks want: Init as the paper's, half of the learners rescued.
RunOutcome MakeRescue() {
  RunOutcome run = MakeRun({0.91, 0.92, 0.93, 0.94, 0.95, 0.93, 0.93, 0.93});
  for (std::size_t i = 0; i < run.learners.size(); ++i) {
    LearnerOutcome& learner = run.learners[i];
    learner.first_stop = 1;
    if (i % 2 == 0) learner.local = learner.initial;
  }
  return run;
}

std::vector<std::string> Missed(const std::vector<Check>& checks) {
  std::vector<std::string> names;
  for (const Check& check : checks) {
    if (!check.met) names.push_back(check.what);
  }
  EXPECT_EQ(static_cast<int>(names.size()), NumMissed(checks));
  return names;
}

// Each check by itself, spoilt in one place.
TEST(Table1Checks, MissWhatIsWrong) {
  EXPECT_THAT(Missed(Table1Checks(MakeRescue())), IsEmpty());
  const auto spoilt = [](void (*spoil)(RunOutcome&)) {
    RunOutcome run = MakeRescue();
    spoil(run);
    return Missed(Table1Checks(run));
  };
  EXPECT_THAT(spoilt([](RunOutcome& run) {  // 0.2 safe, where 0.1792 +- 0.0140 is expected
                for (LearnerOutcome& learner : run.learners) {
                  learner.initial = MakeTally(2000, 8000, 0, 0.875, 4.4);
                }
              }),
              ElementsAre("Init, mean safe rate"));
  EXPECT_THAT(spoilt([](RunOutcome& run) {
                for (LearnerOutcome& learner : run.learners) learner.initial.cost_sum *= 1.02;
              }),
              ElementsAre("Init, mean E[J]"));
  EXPECT_THAT(spoilt([](RunOutcome& run) {  // 0.44 + 0.082 in all, where 0.52 is expected
                for (LearnerOutcome& learner : run.learners) {
                  learner.initial.goal_distance_sum *= 1.06;
                }
              }),
              ElementsAre("Init, mean 0.1 E[rho] + 0.1 P[collision]"));
  EXPECT_THAT(spoilt([](RunOutcome& run) { run.learners[3].local.cost_sum -= 1; }),
              ElementsAre("Pareto, worse at Final than at Local"));
  EXPECT_THAT(spoilt([](RunOutcome& run) {
                for (LearnerOutcome& learner : run.learners) learner.local = learner.final;
              }),
              ElementsAre("Pareto, better at Final than at Local"));
  EXPECT_THAT(Missed(Table1Checks(MakeRun({0.85}))),
              IsSupersetOf({"Final, lowest safe rate", "Final, mean safe rate"}));
  EXPECT_THAT(spoilt([](RunOutcome& run) { run.learners[1].bias = 0.23; }), IsEmpty());
  EXPECT_THAT(spoilt([](RunOutcome& run) {
                for (LearnerOutcome& learner : run.learners) learner.bias = 0.01;
              }),
              ElementsAre("Final, max - min of E[J]"));
}

TEST(TextChecks, MissWhatIsWrong) {
  RunOutcome run = MakeRun({0.13, 0.13});
  for (LearnerOutcome& learner : run.learners) {
    learner.bias = 0.5147;
    learner.initial = MakeTally(1362, 8638, 0, 0.905, 4.8);
  }
  EXPECT_THAT(Missed(TextChecks(run)), IsEmpty());
  RunOutcome other = run;
  other.learners[1].adoptions = 1;
  EXPECT_THAT(Missed(TextChecks(other)), ElementsAre("Adoptions"));
  other = run;
  other.learners[1].first_stop = 7;
  EXPECT_THAT(Missed(TextChecks(other)), ElementsAre("Learners that ever stop"));
  EXPECT_THAT(Missed(TextChecks(MakeRun({0.13}))), ElementsAre("b", "Init, mean safe rate"));
}

TEST(PaperTables, TableOneShowsEveryLearnerBesideThePaper) {
  const RunOutcome run = MakeRescue();
  const std::string text = Table1Text(run, "Table 1: example", Table1Checks(run));
  EXPECT_THAT(text, HasSubstr("10,000 unseen worlds"));
  EXPECT_THAT(text, HasSubstr("0.5198  0.5170  0.5208"));  // paper, Init
  EXPECT_THAT(text, HasSubstr("0.9100  0.9200  0.9300"));  // ours, Final
  EXPECT_THAT(text, ContainsRegex("Final, lowest safe rate +at least 0.90 +0.9100 +met\n"));
  EXPECT_EQ(text.find("MISSED"), std::string::npos);
  const RunOutcome bad = MakeRun({0.85});
  EXPECT_THAT(Table1Text(bad, "Table 1: one", Table1Checks(bad)),
              ContainsRegex("Final, lowest safe rate +at least 0.90 +0.8500 +MISSED\n"));
  RunOutcome loose = MakeRun({0.20, 0.95});
  for (LearnerOutcome& learner : loose.learners) learner.bias = 0.5147;
  EXPECT_THAT(Table1Text(loose, "Table 1: b of the text", Table1Checks(loose)),
              HasSubstr("2 b = 1.0294 (nothing)"));
  const std::string csv = Table1Csv(MakeRun({0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9}));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 9 * 3);
  EXPECT_THAT(csv, HasSubstr("8,Local,10000,"));
}

TEST(PaperTables, VariantsCountHowOftenTheChecksAreMet) {
  const std::vector<Table1Variant> variants = {{"frozen", {MakeRescue(), MakeRescue()}},
                                               {"moving", {MakeRescue(), MakeRun({0.2})}}};
  const std::string text = VariantsText(variants, "Table 1: example", 5);
  EXPECT_THAT(text, ContainsRegex("frozen +all checks of Table 1 in 2 of 2 runs"));
  EXPECT_THAT(text, ContainsRegex("moving +all checks of Table 1 in 1 of 2 runs"));
  EXPECT_THAT(text, ContainsRegex("moving +5 .* 0 of 8\n +6 .* 3 of 8\n"));
  const std::string csv = VariantsCsv(variants, 5);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 4);
  EXPECT_THAT(csv, HasSubstr("\nmoving,6,220,"));
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
