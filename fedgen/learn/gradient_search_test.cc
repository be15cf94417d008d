// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/gradient_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fedgen/learn/analytic_testing.h"
#include "fedgen/learn/estimator.h"

namespace fedgen {
namespace {

using ::testing::HasSubstr;

GradientSearch Make(const GradientSearchOptions& options) {
  EstimatorOptions estimator;
  estimator.pairs = 6;
  return {options,
          MakeEstimator(estimator, MakeAnalyticCosts(ThreeWells(), 10), Kernel::kScalar, 1),
          {0.1F, 0.1F}};
}

// By hand: one measurement, one step down it.
TEST(GradientSearch, StepsDownWhatItMeasured) {
  GradientSearchOptions options;
  options.step.step = 0.5;
  options.stop.rule = StopOptions::Rule::kNever;
  GradientSearch search = Make(options);
  std::vector<float> theta = {-1, 0.5F};
  const Look look = search.Measure(theta, Key(3));
  EstimatorOptions estimator;
  estimator.pairs = 6;
  const Measurement m =
      MakeEstimator(estimator, MakeAnalyticCosts(ThreeWells(), 10), Kernel::kScalar, 1)
          ->Measure({theta, {0.1F, 0.1F}}, Key(3));
  EXPECT_EQ(look.y, m.y);
  EXPECT_EQ(look.episodes, m.episodes);
  EXPECT_EQ(look.z_norm, Norm(m.z_mu));
  EXPECT_EQ(look.spread, m.spread);
  EXPECT_FALSE(look.threshold);
  ASSERT_TRUE(search.Improve(4, 100, Key(), theta).moved);
  const double step = 0.5 / std::pow(4, 0.7);
  EXPECT_EQ(search.StepLength(4, 100), step);
  EXPECT_EQ(theta[0], static_cast<float>(-1 - step * m.z_mu[0]));
  EXPECT_EQ(theta[1], static_cast<float>(0.5 - step * m.z_mu[1]));
}

TEST(GradientSearch, StopsBelowTheThresholdAndLeavesTheta) {
  GradientSearchOptions options;
  options.stop.threshold = 1e9;
  GradientSearch search = Make(options);
  std::vector<float> theta = {-1, 0.5F};
  EXPECT_EQ(search.Measure(theta, Key(3)).threshold, 1e9);
  EXPECT_FALSE(search.Improve(1, 100, Key(), theta).moved);
  EXPECT_EQ(theta, (std::vector<float>{-1, 0.5F}));
}

// A search that is saved, loaded into another and continued goes on bit for bit; a restart is as
// good as new.
TEST(GradientSearch, RemembersWhatTheNextStepsDependOn) {
  for (const auto kind : {OptimizerOptions::Kind::kAdam, OptimizerOptions::Kind::kClipUp}) {
    GradientSearchOptions options;
    options.optimizer.kind = kind;
    options.step.step = 0.1;
    options.sigma_rate = 1;
    options.stop.rule = StopOptions::Rule::kPlateau;
    GradientSearch search = Make(options), other = Make(options);
    std::vector<float> theta = {-1, 0.5F};
    const auto improve = [](GradientSearch& s, int k, std::vector<float>& at) {
      s.Measure(at, Key(3).Fork(static_cast<std::uint64_t>(k)));
      ASSERT_TRUE(s.Improve(k, 100, Key(), at).moved);
    };
    for (int k = 1; k <= 5; ++k) improve(search, k, theta);
    ASSERT_TRUE(other.LoadState(search.SaveState(), 2));
    EXPECT_EQ(other.state(), search.state());
    std::vector<float> again = theta;
    for (int k = 6; k <= 9; ++k) {
      improve(search, k, theta);
      improve(other, k, again);
      ASSERT_EQ(again, theta);
    }
    EXPECT_EQ(other.SaveState(), search.SaveState());
    EXPECT_NE(search.state().sigma[0], 0.1F);
    search.Restart();
    EXPECT_EQ(search.SaveState(), Make(options).SaveState());
  }
}

TEST(GradientSearch, RefusesAStateThatDoesNotFit) {
  GradientSearch search = Make({});
  const std::string before = search.SaveState();
  EXPECT_THAT(search.LoadState(before, 3).error().message, HasSubstr("number of parameters"));
  EXPECT_THAT(search.LoadState("", 2).error().message, HasSubstr("truncated"));
  EXPECT_THAT(search.LoadState(before + "x", 2).error().message, HasSubstr("bytes after the end"));
  std::string negative = before;
  negative[8 + 3] = '\xbf';  // the sign of the first sigma
  EXPECT_THAT(search.LoadState(negative, 2).error().message, HasSubstr("negative"));
  EXPECT_EQ(search.SaveState(), before);
}

// An automatic threshold is 4 x the spread of the first measurement, and stays.
TEST(GradientSearch, SaysWhenItsAutomaticThresholdStopsItAtOnce) {
  GradientSearchOptions options;
  options.stop.rule = StopOptions::Rule::kAuto;
  GradientSearch search = Make(options);
  std::vector<float> theta = {-1, 0.5F};
  const Look first = search.Measure(theta, Key(3));
  EXPECT_EQ(*first.threshold, 4 * *first.spread);
  ASSERT_LT(*first.z_norm, *first.threshold);
  EXPECT_THAT(first.remark, HasSubstr("is below q"));
  EXPECT_FALSE(search.Improve(1, 100, Key(), theta).moved);
  const Look second = search.Measure(theta, Key(4));
  EXPECT_EQ(second.threshold, first.threshold);
  EXPECT_EQ(second.remark, "");
}

}  // namespace
}  // namespace fedgen
