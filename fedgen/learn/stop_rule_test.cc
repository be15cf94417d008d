// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/stop_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fedgen/base/random.h"

namespace fedgen {
namespace {

using ::testing::HasSubstr;
using Rule = StopOptions::Rule;

Measurement Measured(double z, double spread = 0.1, double y = 0.5) {
  Measurement m;
  m.y = y;
  m.z_mu = {0.6 * z, -0.8 * z};
  m.spread = spread;
  m.pairs = 30;
  return m;
}

StopOptions With(Rule rule) {
  StopOptions options;
  options.rule = rule;
  return options;
}

TEST(ShouldStop, AtAGradientBelowTheThreshold) {  // Eq. 28
  StopOptions options = With(Rule::kGradient);
  options.threshold = 5;
  StopState state;
  EXPECT_FALSE(ShouldStop(options, Measured(6), state));
  EXPECT_EQ(state.threshold, 5);
  EXPECT_FALSE(ShouldStop(options, Measured(5), state));  // strictly below
  EXPECT_TRUE(ShouldStop(options, Measured(4.99), state));
  options.threshold = 0;
  EXPECT_FALSE(ShouldStop(options, Measured(0), state));
}

TEST(ShouldStop, AutomaticallyAtFourTimesTheFirstSpread) {
  const StopOptions options = With(Rule::kAuto);
  StopState state;
  EXPECT_FALSE(ShouldStop(options, Measured(1, 0.1), state));
  EXPECT_DOUBLE_EQ(*state.threshold, 0.4);
  EXPECT_FALSE(ShouldStop(options, Measured(0.41, 10), state));  // later spreads do not count
  EXPECT_TRUE(ShouldStop(options, Measured(0.39, 0), state));
}

TEST(ShouldStop, NeverIfToldSo) {
  StopState state;
  EXPECT_FALSE(ShouldStop(With(Rule::kNever), Measured(0), state));
  EXPECT_FALSE(state.threshold);
}

// The round in which the plateau rule stops on y(k); 0 if it does not within 400.
template <typename Y>
int PlateauRound(int window, double tolerance, const Y& y) {
  StopOptions options = With(Rule::kPlateau);
  options.window = window;
  options.tolerance = tolerance;
  StopState state;
  for (int k = 1; k <= 400; ++k) {
    if (ShouldStop(options, Measured(100, 0, y(k)), state)) return k;
    EXPECT_LE(state.recent.size(), 2U * static_cast<std::size_t>(window));
    EXPECT_EQ(state.recent.back(), y(k));
  }
  return 0;
}

double Noise(int k, std::uint64_t seed) {
  return static_cast<double>(UnitFloat(Key(seed).Block(static_cast<std::uint64_t>(k))[0])) - 0.5;
}

TEST(ShouldStop, OnAPlateauAsSoonAsThereAreTwoWindows) {  // Eq. 29
  EXPECT_EQ(PlateauRound(20, 1, [](int) { return 0.5; }), 40);
  EXPECT_EQ(PlateauRound(5, 1, [](int) { return 0.5; }), 10);
  EXPECT_EQ(PlateauRound(5, 1, [](int k) { return 0.001 * k; }), 10);  // rising counts as well
}

TEST(ShouldStop, NotWhileTheCostFalls) {
  EXPECT_EQ(PlateauRound(10, 1, [](int k) { return 1 - k / 500.0; }), 0);
  EXPECT_EQ(PlateauRound(10, 2, [](int k) { return 1 - k / 500.0 + 1e-4 * Noise(k, 1); }), 0);
}

TEST(ShouldStop, WhenAFallEndsInNoise) {
  int late = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const int round = PlateauRound(20, 1, [&](int k) {
      return std::max(0.3, 1 - k / 100.0) + 0.05 * Noise(k, seed);  // falls until round 70
    });
    EXPECT_GT(round, 70) << seed;  // the fall of 0.2 between windows is 20 standard errors
    late += round > 150 ? 1 : 0;
  }
  EXPECT_LE(late, 5);
}

// By hand: windows (1, 3) and (0, 2): B - A = 1, variances of the means 1 each.
TEST(ShouldStop, ComparesTheFallWithItsStandardError) {
  const auto y = [](int k) {
    return std::vector<double>{1, 3, 0, 2}[static_cast<std::size_t>(k - 1) % 4];
  };
  EXPECT_EQ(PlateauRound(2, 1 / std::sqrt(2.0) + 1e-9, y), 4);
  EXPECT_GT(PlateauRound(2, 1 / std::sqrt(2.0) - 1e-9, y), 4);
}

TEST(ExplainStopAtOnce, NamesTheNumberOfPairs) {  // Eq. 28
  EXPECT_FALSE(ExplainStopAtOnce(Measured(4, 1)));
  EXPECT_FALSE(ExplainStopAtOnce(Measured(5, 1)));
  // |z|^2 - s^2 = 3: P' = 16 * 30 / 3 = 160.
  const auto line = ExplainStopAtOnce(Measured(2, 1));
  ASSERT_TRUE(line);
  EXPECT_THAT(*line, HasSubstr("about 160 pairs instead of 30"));
  // With that many the gradient is 4 spreads long: sqrt(3) = 4 * sqrt(30 / 160).
  EXPECT_NEAR(std::sqrt(3), 4 * std::sqrt(30.0 / 160), 1e-12);
  const auto lost = ExplainStopAtOnce(Measured(0.9, 1));
  ASSERT_TRUE(lost);
  EXPECT_THAT(*lost, HasSubstr("no gradient is visible above the noise of 30 pairs"));
}

TEST(PairsAdvice, KnowsWhatItDoesNotKnow) {
  // 16 * 10^2 * 30 / 7 = 6857, to two digits, rounded up.
  EXPECT_EQ(PairsAdvice({7, 3}, 10, 30), "about 6900 pairs instead of 30 would show the gradient");
  // Within two standard deviations of nothing: the gradient's square is at most 5 + 2 * 3.
  EXPECT_THAT(PairsAdvice({5, 3}, 10, 30), HasSubstr("it takes more than about 4400 to show one"));
  EXPECT_THAT(PairsAdvice({-9, 3}, 10, 30), HasSubstr("it takes more than about 8000 to show one"));
}

TEST(StopOptions, AreValidated) {
  EXPECT_FALSE(Validate(StopOptions{}));
  StopOptions options;
  options.threshold = -1;
  EXPECT_EQ(Validate(options)->field, "threshold");
  options = {};
  options.window = 1;
  EXPECT_EQ(Validate(options)->field, "window");
  options = {};
  options.tolerance = std::nan("");
  EXPECT_EQ(Validate(options)->field, "tolerance");
}

}  // namespace
}  // namespace fedgen
