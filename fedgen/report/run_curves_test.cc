// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/run_curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace fedgen {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::vector<SafetyLevel> kLevels = {{0.944, "paper"}, {0.99}};

// The incumbent reaches 0.95 in round 4, falls below again, and reaches 0.99 exactly in round 8.
RunCurve Curve(const std::string& name, double pace) {
  const std::vector<TruthRow> truth = {{0, 1, 1000, 1, 0.9, 0.999},  // a learner, not the incumbent
                                       {2, std::nullopt, 1000, 1, 0.8, 0.2},
                                       {4, 1, 1000, 1, 0.3, 1.0},
                                       {4, std::nullopt, 1000, 1, 0.4, 0.95},
                                       {6, std::nullopt, 1000, 1, 0.41, 0.943},
                                       {8, std::nullopt, 1000, 1, 0.32, 0.99},
                                       {9, std::nullopt, 1000, 1, 0.3, 1.0}};  // without a time
  std::vector<TimingRow> timing;
  for (int round = 1; round <= 8; ++round) timing.push_back({round, pace * round, 100 * round});
  return MakeRunCurve(name, truth, timing);
}

TEST(MakeRunCurve, HasTheIncumbentsLooksWithTheirTimes) {
  const RunCurve curve = Curve("slow", 2);
  ASSERT_EQ(curve.looks.size(), 4U);
  EXPECT_EQ(curve.looks[1].truth.round, 4);
  EXPECT_EQ(curve.looks[1].seconds, 8);
  EXPECT_EQ(curve.looks[1].episodes, 400);
  EXPECT_EQ(curve.seconds, 16);
  EXPECT_EQ(curve.episodes, 800);
}

TEST(FirstReached, IsTheFirstLookAtOrAboveTheLevel) {
  const RunCurve curve = Curve("slow", 2);
  const std::optional<Reached> paper = FirstReached(curve, 0.944);
  ASSERT_TRUE(paper);
  EXPECT_EQ(paper->at.truth.round, 4);  // that it fell again does not count
  EXPECT_EQ(paper->at.seconds, 8);
  EXPECT_EQ(paper->seconds_before, 4);
  EXPECT_EQ(paper->at.episodes, 400);
  const std::optional<Reached> exactly = FirstReached(curve, 0.99);
  ASSERT_TRUE(exactly);
  EXPECT_EQ(exactly->at.seconds, 16);
  EXPECT_EQ(exactly->seconds_before, 12);
  EXPECT_EQ(FirstReached(curve, 0.1)->seconds_before, 0);
  EXPECT_FALSE(FirstReached(curve, 0.991));
  EXPECT_FALSE(FirstReached({}, 0));
}

TEST(CurvesText, ComparesTheTimes) {
  const std::string text = CurvesText({Curve("fast", 2), Curve("slow", 5)}, kLevels, "Two runs");
  EXPECT_THAT(text, StartsWith("Two runs\nincumbents in 1,000 fresh worlds"));
  EXPECT_THAT(text, ContainsRegex("fast +0.944 .paper. +8.0 +4.0 +400  0.9500 "));
  EXPECT_THAT(text, HasSubstr("slow, against fast: 2.5 times to 0.944, 2.5 times to 0.99\n"));
  EXPECT_THAT(text, ContainsRegex("slow +40.0 +800  0.9900 .*0.3200 "));
  const std::string never = CurvesText({Curve("fast", 2), {.name = "none"}}, kLevels, "");
  EXPECT_THAT(never, HasSubstr("not reached"));
  EXPECT_THAT(never, HasSubstr("none, against fast: unknown to 0.944, unknown to 0.99\n"));
  EXPECT_THAT(never, HasSubstr("not measured\n"));
}

TEST(CurvesCsv, HasARowForEachLook) {
  const std::string csv = CurvesCsv({Curve("fast", 2), Curve("slow", 5)});
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 2 * 4);
  EXPECT_THAT(csv, HasSubstr("\nslow,4,20,400,1000,0.95,0.4\n"));
}

TEST(MakeCurvesFigure, DrawsBothRunsInBothCharts) {
  const ChartFigure figure =
      MakeCurvesFigure({Curve("fast", 2), Curve("slow", 5)}, kLevels, "T", "seed 1");
  EXPECT_THAT(figure.subtitle, StartsWith("seed 1; incumbents measured in 1,000 fresh worlds; "));
  ASSERT_EQ(figure.charts.size(), 2U);
  for (const Chart& chart : figure.charts) {
    ASSERT_EQ(chart.series.size(), 2U);
    EXPECT_EQ(chart.series[1].label, "slow");
    EXPECT_EQ(chart.series[1].points[1].x, 20);
  }
  EXPECT_EQ(figure.charts[0].series[0].points[1].y, 0.95);
  EXPECT_LT(figure.charts[0].series[0].points[1].low, 0.95);
  EXPECT_EQ(figure.charts[1].series[0].points[1].y, 0.4);
  // Each run reaches both levels.
  ASSERT_EQ(figure.charts[0].marks.front().marks.size(), 4U);
  EXPECT_EQ(figure.charts[0].marks.front().marks[2].text, "20 s");
}

}  // namespace
}  // namespace fedgen
