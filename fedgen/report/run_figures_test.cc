// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/run_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "fedgen/base/file_testing.h"
#include "fedgen/certify/bounds.h"

namespace fedgen {
namespace {

using ::testing::HasSubstr;

MetricsRow Row(int round, int learner, LearnerPhase state, double y) {
  return {.round = round,
          .learner = learner,
          .state = state,
          .y = y,
          .b = 0.1,
          .adopted_from = state == LearnerPhase::kAdopted ? std::optional<int>(2) : std::nullopt,
          .incumbent_learner = 2,
          .incumbent_y = 0.3};
}

// Learner 1 stops in round 2 and adopts in round 4; learner 2 goes on.
std::vector<MetricsRow> TwoLearners() {
  std::vector<MetricsRow> rows;
  const LearnerPhase states[] = {LearnerPhase::kRunning, LearnerPhase::kStopped,
                                 LearnerPhase::kStopped, LearnerPhase::kAdopted,
                                 LearnerPhase::kRunning};
  const double costs[] = {0.95, 0.8, 0.8, 0.8, 0.35};
  for (int round = 1; round <= 5; ++round) {
    rows.push_back(Row(round, 1, states[round - 1], costs[round - 1]));
    rows.push_back(Row(round, 2, LearnerPhase::kRunning, 0.4));
  }
  return rows;
}

std::vector<TruthRow> Truth() {
  return {{0, 1, 1000, 0.9, 0.2},
          {3, 1, 1000, 0.78, 0.4},
          {3, std::nullopt, 1000, 0.3, 0.95},
          {5, 1, 1000, 0.33, 0.9},
          {5, std::nullopt, 1000, 0.3, 0.989}};
}

const Series* FindSeries(const Chart& chart, const std::string& label) {
  for (const Series& series : chart.series) {
    if (series.label == label) return &series;
  }
  return nullptr;
}

// T1: y + b. T2: 1 - gamma - (1 - gamma)(y + b). What is beyond [0, 1] is at its ends.
TEST(BoundsFigure, DrawsBothTheorems) {
  const ChartFigure figure = MakeBoundsFigure(TwoLearners(), Truth(), 1, 0.01, {});
  ASSERT_EQ(figure.charts.size(), 2U);
  const Series* const cost = FindSeries(figure.charts[0], "bound");
  const Series* const rate = FindSeries(figure.charts[1], "bound");
  ASSERT_TRUE(cost != nullptr && rate != nullptr);
  ASSERT_EQ(cost->points.size(), 5U);
  EXPECT_DOUBLE_EQ(cost->points[0].y, 1);
  EXPECT_DOUBLE_EQ(rate->points[0].y, 0);
  EXPECT_DOUBLE_EQ(cost->points[4].x, 5);
  EXPECT_DOUBLE_EQ(cost->points[4].y, 0.45);
  EXPECT_DOUBLE_EQ(rate->points[4].y, 0.99 - 0.99 * 0.45);
}

TEST(BoundsFigure, DrawsTheTruthWithItsInterval) {
  const ChartFigure figure = MakeBoundsFigure(TwoLearners(), Truth(), 1, 0.01, {});
  const Series* const cost = FindSeries(figure.charts[0], "actual");
  const Series* const rate = FindSeries(figure.charts[1], "actual");
  ASSERT_TRUE(cost != nullptr && rate != nullptr);
  // Rounds 0 and 3, then a gap for the adoption in round 4, then round 5.
  ASSERT_EQ(rate->points.size(), 4U);
  EXPECT_EQ(rate->points[1].x, 3);
  EXPECT_TRUE(std::isnan(rate->points[2].y));
  EXPECT_EQ(rate->points[3].x, 5);
  const ProportionInterval exact = ClopperPearson(400, 1000, 0.99);
  EXPECT_EQ(rate->points[1].low, exact.low);
  EXPECT_EQ(rate->points[1].high, exact.high);
  const ProportionInterval mean = HoeffdingInterval(0.78, 1000, 0.99);
  EXPECT_EQ(cost->points[1].y, 0.78);
  EXPECT_EQ(cost->points[1].low, mean.low);
  EXPECT_EQ(cost->points[1].high, mean.high);
}

// 0.4005 of 1000 worlds is no number of worlds: each had several starts, which are not independent.
TEST(BoundsFigure, TakesHoeffdingsIntervalForSeveralStarts) {
  std::vector<TruthRow> truth = Truth();
  truth[1].safe_rate = 0.4005;
  const ChartFigure figure = MakeBoundsFigure(TwoLearners(), truth, 1, 0.01, {});
  const ProportionInterval interval = HoeffdingInterval(0.2, 1000, 0.99);
  EXPECT_EQ(FindSeries(figure.charts[1], "actual")->points[0].high, interval.high);
}

TEST(BoundsFigure, MarksStopsAndAdoptions) {
  const ChartFigure figure = MakeBoundsFigure(TwoLearners(), Truth(), 1, 0.01, {});
  for (const Chart& chart : figure.charts) {
    ASSERT_EQ(chart.marks.size(), 2U);
    ASSERT_EQ(chart.marks[0].marks.size(), 1U);
    EXPECT_EQ(chart.marks[0].shape, MarkShape::kSquare);
    EXPECT_EQ(chart.marks[0].marks[0].x, 2);
    ASSERT_EQ(chart.marks[1].marks.size(), 1U);
    EXPECT_EQ(chart.marks[1].shape, MarkShape::kTriangle);
    EXPECT_EQ(chart.marks[1].marks[0].x, 4);
    EXPECT_EQ(chart.marks[1].marks[0].text, "from 2");
  }
  EXPECT_DOUBLE_EQ(figure.charts[0].marks[1].marks[0].y, 0.9);
}

TEST(BoundsFigure, SaysHowManyWorldsAndHowSure) {
  const ChartFigure figure =
      MakeBoundsFigure(TwoLearners(), Truth(), 1, 0.01, {"seed 1", "quick.toml"});
  EXPECT_EQ(figure.title, "Bounds and truth of learner 1 \u2013 seed 1");
  EXPECT_EQ(
      figure.subtitle,
      "quick.toml; actual: measured in 1,000 fresh worlds, band: 99 % interval at each point");
}

TEST(LearningFigure, DrawsEveryLearnerAndTheIncumbent) {
  const ChartFigure figure = MakeLearningFigure(TwoLearners(), Truth(), {});
  ASSERT_EQ(figure.charts.size(), 2U);
  const Chart& costs = figure.charts[0];
  ASSERT_EQ(costs.series.size(), 3U);
  EXPECT_EQ(costs.series[0].label, "learner 1");
  EXPECT_EQ(costs.series[0].points[4].y, 0.35);
  EXPECT_EQ(costs.series[2].label, "incumbent");
  EXPECT_EQ(costs.series[2].points.size(), 5U);
  EXPECT_EQ(costs.series[2].points[0].y, 0.3);
  EXPECT_EQ(costs.marks[1].marks[0].y, 0.8);
  EXPECT_EQ(costs.marks[1].marks[0].colour.red, costs.series[0].colour.red);
  // Learner 2 was never measured in fresh worlds.
  const Chart& rates = figure.charts[1];
  ASSERT_EQ(rates.series.size(), 2U);
  EXPECT_EQ(rates.series[0].label, "learner 1");
  EXPECT_EQ(rates.series[1].points[1].y, 0.989);
  EXPECT_EQ(*costs.x.low, *rates.x.low);
}

TEST(LearningFigure, GivesOneColourToACrowd) {
  std::vector<MetricsRow> rows;
  for (int learner = 1; learner <= 40; ++learner) {
    rows.push_back(Row(1, learner, LearnerPhase::kRunning, 0.5));
  }
  const Chart chart = MakeLearningFigure(rows, {}, {}).charts[0];
  EXPECT_EQ(chart.series[0].label, "each of 40 learners");
  EXPECT_EQ(chart.series[39].label, "each of 40 learners");
}

TEST(SecondsFigure, SaysWhenLevelsAreReached) {
  const std::vector<TimingRow> timing = {{0, 0, 0}, {3, 1.5, 100}, {5, 12.25, 200}};
  const ChartFigure figure = MakeSecondsFigure(Truth(), timing, kSafetyLevels, {});
  const Chart& chart = figure.charts[0];
  EXPECT_EQ(chart.x.scale, Scale::kLog);
  ASSERT_EQ(chart.series[0].points.size(), 2U);
  EXPECT_EQ(chart.series[0].points[0].x, 1.5);
  EXPECT_EQ(chart.series[0].points[0].low, ClopperPearson(950, 1000, 0.99).low);
  ASSERT_EQ(chart.references.size(), 3U);
  EXPECT_EQ(chart.references[0].label, "0.944 (paper): 1.5 s");
  EXPECT_EQ(chart.references[1].label, "0.985: 12.2 s");
  EXPECT_EQ(chart.references[2].label, "0.99: not reached");
  EXPECT_EQ(chart.marks[0].marks.size(), 2U);
}

TEST(SecondsFigure, TakesTheBestLearnerWithoutIncumbents) {
  const std::vector<TruthRow> truth = {
      {0, 1, 1000, 0.9, 0.2}, {3, 1, 1000, 0.5, 0.5}, {3, 2, 1000, 0.4, 0.7}};
  const std::vector<TimingRow> timing = {{0, 0, 0}, {3, 2, 100}};
  const Chart chart = MakeSecondsFigure(truth, timing, kSafetyLevels, {}).charts[0];
  // Nothing at 0 s: a logarithm has no zero.
  ASSERT_EQ(chart.series[0].points.size(), 1U);
  EXPECT_EQ(chart.series[0].points[0].y, 0.7);
  EXPECT_EQ(chart.series[0].spread, Spread::kNone);
  EXPECT_THAT(chart.series[0].label, HasSubstr("picked by these worlds"));
}

TEST(TradeoffFigure, SortsPointsAndKeepsRanges) {
  const TradeoffPoint many = {100, {0.05, 0.04, 0.06}, {3, 2, 4}, {0.97, 0.96, 0.98}};
  const TradeoffPoint few = {10, {0.2, 0.1, 0.3}, {1, 0, 2}, {0.94, 0.93, 0.95}};
  const ChartFigure figure =
      MakeTradeoffFigure({many, few}, {.title = "t", .x_label = "worlds", .log_x = true});
  ASSERT_EQ(figure.charts.size(), 3U);
  for (const Chart& chart : figure.charts) {
    EXPECT_EQ(chart.x.label, "worlds");
    EXPECT_EQ(chart.x.scale, Scale::kLog);
    EXPECT_EQ(chart.series[0].spread, Spread::kBars);
    EXPECT_EQ(chart.series[0].points[0].x, 10);
  }
  EXPECT_EQ(figure.charts[0].series[0].points[1].high, 0.06);
  EXPECT_EQ(figure.charts[1].series[0].points[0].y, 1);
  EXPECT_EQ(figure.charts[2].series[0].points[0].low, 0.93);
}

TEST(RunFigures, AreWrittenAsSvgAndPngEvenWithoutRows) {
  const TemporaryDirectory directory;
  const std::vector<ChartFigure> figures = {
      MakeBoundsFigure({}, {}, 1, 0.01, {}),
      MakeLearningFigure({}, {}, {}),
      MakeSecondsFigure({}, {}, kSafetyLevels, {}),
      MakeTradeoffFigure({}, {}),
      MakeBoundsFigure(TwoLearners(), Truth(), 1, 0.01, {}),
      MakeLearningFigure(TwoLearners(), Truth(), {}),
  };
  for (std::size_t index = 0; index < figures.size(); ++index) {
    const std::string stem = directory.Path(std::to_string(index));
    const Result<void> saved = SaveSvgAndPng(stem, figures[index], IfExists::kRefuse);
    EXPECT_TRUE(saved) << (saved ? "" : saved.error().message);
    EXPECT_GT(std::filesystem::file_size(stem + ".svg"), 1000U);
    EXPECT_GT(std::filesystem::file_size(stem + ".png"), 1000U);
  }
  EXPECT_EQ(SaveSvgAndPng(directory.Path("0"), figures[0], IfExists::kRefuse).error().code,
            ErrorCode::kExists);
}

}  // namespace
}  // namespace fedgen
