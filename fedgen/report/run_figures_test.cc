// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/run_figures.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "fedgen/base/file_testing.h"
#include "fedgen/certify/bounds.h"

namespace fedgen {
namespace {

using ::testing::HasSubstr;

const std::string kActual = "actual value (dots: measurements)";

MetricsRow Row(int round, int learner, LearnerPhase state, double y) {
  return {
      .round = round,
      .learner = learner,
      .state = state,
      .kept_policy = state == LearnerPhase::kStopping || state == LearnerPhase::kStopped,
      .y = y,
      .b = 0.1,
      .adopted_from = state == LearnerPhase::kAdopted ? std::optional(LearnerId(1)) : std::nullopt,
      .incumbent_learner = LearnerId(1),
      .incumbent_y = 0.3};
}

// Learner 1 stops in round 2 and adopts in round 4; learner 2 goes on.
std::vector<MetricsRow> TwoLearners() {
  std::vector<MetricsRow> rows;
  const LearnerPhase states[] = {LearnerPhase::kRunning, LearnerPhase::kStopping,
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
  return {{0, 1, 1000, 1, 0.9, 0.2},
          {3, 1, 1000, 1, 0.78, 0.4},
          {3, std::nullopt, 1000, 1, 0.3, 0.95},
          {5, 1, 1000, 1, 0.33, 0.9},
          {5, std::nullopt, 1000, 1, 0.3, 0.989}};
}

const Series* FindSeries(const Chart& chart, const std::string& label) {
  for (const Series& series : chart.series) {
    if (series.label == label) return &series;
  }
  return nullptr;
}

// The measurement of a round.
const SeriesPoint& PointAt(const Series& series, double round) {
  static const SeriesPoint none;
  for (const SeriesPoint& point : series.points) {
    if (point.x == round && point.dot) return point;
  }
  ADD_FAILURE() << "nothing measured in round " << round;
  return none;
}

// Points as (x, y), a dot behind those that were measured, and gaps.
std::string Describe(const std::vector<SeriesPoint>& points) {
  std::string text;
  for (const SeriesPoint& point : points) {
    if (!text.empty()) text += " ";
    text += std::isnan(point.y) ? "gap"
                                : fmt::format("({}, {}){}", point.x, point.y, point.dot ? "." : "");
  }
  return text;
}

// T1: y + b. T2: 1 - gamma - (1 - gamma)(y + b). What is beyond [0, 1] is at its ends.
TEST(BoundsFigure, DrawsBothTheorems) {
  const ChartFigure figure = MakeBoundsFigure(TwoLearners(), Truth(), 1, 0.01, {});
  ASSERT_EQ(figure.charts.size(), 2U);
  const Series* const cost = FindSeries(figure.charts[0], "proved bound");
  const Series* const rate = FindSeries(figure.charts[1], "proved bound");
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
  const Series* const cost = FindSeries(figure.charts[0], kActual);
  const Series* const rate = FindSeries(figure.charts[1], kActual);
  ASSERT_TRUE(cost != nullptr && rate != nullptr);
  const ProportionInterval exact = ClopperPearson(400, 1000, 0.99);
  const SeriesPoint& third_rate = PointAt(*rate, 3);
  EXPECT_EQ(third_rate.y, 0.4);
  EXPECT_EQ(third_rate.low, exact.low);
  EXPECT_EQ(third_rate.high, exact.high);
  const ProportionInterval mean = HoeffdingInterval(0.78, 1000, 0.99);
  const SeriesPoint& third_cost = PointAt(*cost, 3);
  EXPECT_EQ(third_cost.y, 0.78);
  EXPECT_EQ(third_cost.low, mean.low);
  EXPECT_EQ(third_cost.high, mean.high);
}

// Learner 1 steps in round 1, stops in round 2 with that policy, adopts another one in round 4, and
// steps in round 5. So what is measured in round 3 holds from round 1 until the adoption.
TEST(BoundsFigure, IsFlatWhileTheLearnerIsStoppedAndJumpsWhereItAdopts) {
  const Chart chart = MakeBoundsFigure(TwoLearners(), Truth(), 1, 0.01, {}).charts[1];
  const Series& jumps = chart.series[1];
  const Series& rate = chart.series[2];
  EXPECT_EQ(Describe(rate.points), "(0, 0.2). (1, 0.4) (3, 0.4). (4, 0.4) gap (5, 0.9).");
  EXPECT_EQ(rate.points[3].low, PointAt(rate, 3).low);
  EXPECT_EQ(Describe(jumps.points), "(4, 0.4) (5, 0.9) gap");
  EXPECT_GT(jumps.dash, 0);
  EXPECT_EQ(jumps.label, "");
}

// Stopped before it ever moved: flat from the beginning, though nothing was measured meanwhile.
TEST(BoundsFigure, IsFlatFromTheLastMeasurementBeforeAStop) {
  std::vector<MetricsRow> rows = {Row(1, 1, LearnerPhase::kStopped, 0.9)};
  for (int round = 2; round <= 17; ++round) {
    rows.push_back(Row(round, 1, LearnerPhase::kStopped, 0.9));
  }
  rows.push_back(Row(18, 1, LearnerPhase::kAdopted, 0.9));
  for (const int round : {19, 20}) rows.push_back(Row(round, 1, LearnerPhase::kRunning, 0.4));
  const std::vector<TruthRow> truth = {{0, 1, 1000, 1, 0.9, 0.2}, {20, 1, 1000, 1, 0.4, 0.7}};
  const Chart chart = MakeBoundsFigure(rows, truth, 1, 0.01, {}).charts[1];
  EXPECT_EQ(Describe(chart.series[2].points), "(0, 0.2). (18, 0.2) gap (20, 0.7).");
  EXPECT_EQ(Describe(chart.series[1].points), "(18, 0.2) (20, 0.7) gap");
}

// An average replaces the policy of a learner that stopped, which therefore measures again.
TEST(BoundsFigure, HoldsNothingForALearnerThatGoesOnAfterItsStop) {
  std::vector<MetricsRow> rows = {Row(1, 1, LearnerPhase::kStopped, 0.9),
                                  Row(2, 1, LearnerPhase::kRunning, 0.8),
                                  Row(3, 1, LearnerPhase::kRunning, 0.7)};
  rows[0].kept_policy = false;
  const std::vector<TruthRow> truth = {{0, 1, 1000, 1, 0.9, 0.2}, {3, 1, 1000, 1, 0.4, 0.7}};
  const Chart chart = MakeBoundsFigure(rows, truth, 1, 0.01, {}).charts[1];
  EXPECT_EQ(Describe(chart.series[1].points), "(0, 0.2). (3, 0.7).");
}

TEST(BoundsFigure, MarksWhereStockIsTaken) {
  std::vector<MetricsRow> rows = TwoLearners();
  rows[8].b = 0.002;  // learner 1, round 5
  rows[8].took_stock = true;
  const Chart chart = MakeBoundsFigure(rows, Truth(), 1, 0.01, {}).charts[0];
  ASSERT_EQ(chart.marks.size(), 3U);
  ASSERT_EQ(chart.marks[2].marks.size(), 1U);
  EXPECT_EQ(chart.marks[2].shape, MarkShape::kDiamond);
  EXPECT_EQ(chart.marks[2].marks[0].x, 5);
  EXPECT_DOUBLE_EQ(chart.marks[2].marks[0].y, 0.352);
}

// Starts in one world are not independent.
TEST(BoundsFigure, TakesHoeffdingsIntervalForSeveralStarts) {
  std::vector<TruthRow> truth = Truth();
  for (TruthRow& row : truth) row.starts = 4;
  const ChartFigure figure = MakeBoundsFigure(TwoLearners(), truth, 1, 0.01, {});
  const ProportionInterval interval = HoeffdingInterval(0.2, 1000, 0.99);
  EXPECT_EQ(FindSeries(figure.charts[1], kActual)->points[0].high, interval.high);
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
  EXPECT_EQ(figure.title, "Learner 1: proved bounds and actual values \u2013 seed 1");
  EXPECT_EQ(figure.subtitle,
            "quick.toml; actual values measured in 1,000 fresh worlds; band: 99 % interval of each "
            "measurement");
}

TEST(LearningFigure, DrawsEveryLearnerAndTheIncumbent) {
  const ChartFigure figure = MakeLearningFigure(TwoLearners(), Truth(), {});
  ASSERT_EQ(figure.charts.size(), 2U);
  const Chart& costs = figure.charts[0];
  ASSERT_EQ(costs.series.size(), 3U);
  EXPECT_EQ(costs.series[0].label, "learner 1");
  EXPECT_EQ(costs.series[0].points[4].y, 0.35);
  EXPECT_EQ(costs.series[2].label, "incumbent (least y + b so far)");
  EXPECT_EQ(costs.series[2].points.size(), 5U);
  EXPECT_EQ(costs.series[2].points[0].y, 0.3);
  EXPECT_EQ(costs.marks[1].marks[0].y, 0.8);
  EXPECT_EQ(costs.marks[1].marks[0].colour.red, costs.series[0].colour.red);
  // Learner 1 with its jump; learner 2 was never measured in fresh worlds.
  const Chart& rates = figure.charts[1];
  ASSERT_EQ(rates.series.size(), 3U);
  EXPECT_EQ(Describe(rates.series[0].points), "(4, 0.4) (5, 0.9) gap");
  EXPECT_EQ(rates.series[1].label, "learner 1");
  EXPECT_EQ(rates.series[2].points[1].y, 0.989);
  EXPECT_EQ(rates.series[2].points[1].low, ClopperPearson(989, 1000, 0.99).low);
  EXPECT_EQ(rates.series[2].spread, Spread::kBand);
  EXPECT_EQ(costs.x.low, rates.x.low);
}

TEST(LearningFigure, NamesASourceOnceForAllThatAdoptIt) {
  std::vector<MetricsRow> rows = {
      Row(1, 1, LearnerPhase::kAdopted, 0.5), Row(1, 3, LearnerPhase::kAdopted, 0.7),
      Row(1, 4, LearnerPhase::kAdopted, 0.6), Row(2, 1, LearnerPhase::kAdopted, 0.4)};
  rows[2].adopted_from = LearnerId(4);
  const Chart chart = MakeLearningFigure(rows, {}, {}).charts[0];
  std::vector<std::string> texts;
  for (const Mark& mark : chart.marks[1].marks) texts.push_back(mark.text);
  EXPECT_THAT(texts, ::testing::ElementsAre("", "2 adopt from 2", "from 5", "from 2"));
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
  EXPECT_EQ(chart.references[0].label, "0.944 (paper): after 1.5 s");
  EXPECT_EQ(chart.references[1].label, "0.985: after 12.2 s");
  EXPECT_EQ(chart.references[2].label, "0.99: not reached");
  EXPECT_EQ(chart.marks[0].marks.size(), 2U);
}

TEST(SecondsFigure, TakesTheBestLearnerWithoutIncumbents) {
  const std::vector<TruthRow> truth = {
      {0, 1, 1000, 1, 0.9, 0.2}, {3, 1, 1000, 1, 0.5, 0.5}, {3, 2, 1000, 1, 0.4, 0.7}};
  const std::vector<TimingRow> timing = {{0, 0, 0}, {3, 2, 100}};
  const Chart chart = MakeSecondsFigure(truth, timing, kSafetyLevels, {}).charts[0];
  // Nothing at 0 s: a logarithm has no zero.
  ASSERT_EQ(chart.series[0].points.size(), 1U);
  EXPECT_EQ(chart.series[0].points[0].y, 0.7);
  EXPECT_EQ(chart.series[0].spread, Spread::kNone);
  EXPECT_THAT(chart.series[0].label, HasSubstr("selected in these worlds"));
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
