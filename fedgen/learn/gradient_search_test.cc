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
  const Look look = search.Measure(1, 10, theta, Key(3));
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

// An objective with the same gradients in every round.
class GivenGradients final : public Objective {
 public:
  explicit GivenGradients(std::vector<double> z_sigma) : z_sigma_(std::move(z_sigma)) {}
  Measurement Measure(const Search& search, Key /*key*/) override {
    Measurement m;
    m.z_mu.assign(search.mu.size(), 1.0);
    m.z_sigma = z_sigma_;
    return m;
  }
  Value MeasureValue(std::span<const float>, std::int64_t, Key) override { return {}; }

 private:
  std::vector<double> z_sigma_;
};

// Eq. 20a by hand, with a step of 0.5 and a rate of 0.5: sigma - z_sigma / 4. The second component
// steps to -0.25 and goes on as 0.25, the third to 0, which would freeze it, and the last one is
// frozen.
TEST(GradientSearch, StepsSigmaDownItsGradientAsPrinted) {
  GradientSearchOptions options;
  options.step.step = 0.5;
  options.step.exponent = 0;
  options.stop.rule = StopOptions::Rule::kNever;
  options.sigma_rate = 0.5;
  options.sigma_step = SigmaStep::kAdditive;
  GradientSearch search(options,
                        std::make_unique<GivenGradients>(std::vector<double>{-40, 3, 2, 1}),
                        {0.5F, 0.5F, 0.5F, 0.0F});
  std::vector<float> theta(4, 0.0F);
  const auto improve = [&](int k) {
    const Look look = search.Measure(1, 10, theta, Key(1));
    EXPECT_TRUE(search.Improve(k, 10, Key(), theta).moved);
    return look.remark;
  };
  EXPECT_EQ(improve(1), "");
  EXPECT_EQ(search.state().sigma, (std::vector<float>{10.5F, 0.25F, 1e-6F, 0.0F}));
  EXPECT_THAT(improve(2), HasSubstr("sigma of 2 of its 3 parameters below 0"));
  EXPECT_EQ(search.state().sigma[0], 20.5F) << "no factor of ten, no limit of a tenth";
  EXPECT_EQ(search.state().sigma[1], 0.5F);
  EXPECT_EQ(improve(3), "") << "it is said once";
}

// Why the absolute value changes nothing: with sigma and -sigma the members of the search, and so
// both gradients up to the sign of z_sigma, have the same distribution (Eq. 19, 20). Mirrored
// directions give the same members, and mirrored normals are normals.
TEST(GradientSearch, SearchesAlikeWithEitherSignOfSigma) {
  const AnalyticFunction f = ThreeWells();
  const auto gradients = [&](double sign) {  // of one coordinate; directions mirrored with sigma
    double mu = 0, sigma = 0;
    const double s = sign * 0.3;
    for (int i = 0; i < 4000; ++i) {
      const double e = sign * 3 * std::sin(0.7 * i);
      const float at[2] = {static_cast<float>(-1 + s * e), 0.5F};
      mu += f.Eta(at) * e / s;
      sigma += f.Eta(at) * (e * e - 1) / s;
    }
    return std::pair(mu, sigma);
  };
  const auto [mu, sigma] = gradients(1);
  const auto [mirrored_mu, mirrored_sigma] = gradients(-1);
  EXPECT_DOUBLE_EQ(mirrored_mu, mu);
  EXPECT_DOUBLE_EQ(mirrored_sigma, -sigma);
  EXPECT_GT(std::abs(sigma), 1);
}

TEST(GradientSearch, StopsBelowTheThresholdAndLeavesTheta) {
  GradientSearchOptions options;
  options.stop.threshold = 1e9;
  GradientSearch search = Make(options);
  std::vector<float> theta = {-1, 0.5F};
  EXPECT_EQ(search.Measure(1, 10, theta, Key(3)).threshold, 1e9);
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
      s.Measure(k, 10, at, Key(3).Fork(static_cast<std::uint64_t>(k)));
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
  const Look first = search.Measure(1, 10, theta, Key(3));
  EXPECT_EQ(*first.threshold, 4 * *first.spread);
  ASSERT_LT(*first.z_norm, *first.threshold);
  EXPECT_THAT(first.remark, HasSubstr("is below q"));
  EXPECT_FALSE(search.Improve(1, 100, Key(), theta).moved);
  const Look second = search.Measure(1, 10, theta, Key(4));
  EXPECT_EQ(second.threshold, first.threshold);
  EXPECT_EQ(second.remark, "");
}

}  // namespace
}  // namespace fedgen
