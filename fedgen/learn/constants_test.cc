// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/constants.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fedgen/base/aligned.h"
#include "fedgen/learn/normal_kernel.h"

namespace fedgen {
namespace {

// The gradient of (theta_0^2 + 4 theta_1^2) / 2, plus noise along theta_0 that the key draws.
class Quadratic : public Objective {
 public:
  explicit Quadratic(double noise) : noise_(noise) {}
  Measurement Measure(const Search& search, Key key) override {
    Measurement m;
    const double sign = key.Block(0)[0] % 2 == 0 ? 1 : -1;
    m.z_mu = {static_cast<double>(search.mu[0]) + sign * noise_,
              4 * static_cast<double>(search.mu[1])};
    return m;
  }
  Value MeasureValue(std::span<const float> /*mu*/, std::int64_t /*worlds*/, Key /*key*/) override {
    return {};
  }

 private:
  double noise_;
};

TEST(MeasureConstants, FindsThoseOfAQuadratic) {
  Quadratic objective(0.5);
  const GradientConstants c =
      MeasureConstants(objective, {{3, 1}, {0.1F, 0.1F}}, 400, 50, Key(1), {});
  EXPECT_NEAR(c.spread, 0.5, 0.01);                   // the noise is +-0.5
  EXPECT_NEAR(std::sqrt(c.gradient.value), 5, 0.05);  // |(3, 4)|
  EXPECT_GT(c.smoothness, 3.9);                       // some probe runs along the steeper axis
  EXPECT_LE(c.smoothness, 4 * 1.0001);                // and none sees more than its curvature
  EXPECT_NEAR(c.smoothness_noise, 0, 1e-4);  // the same worlds on both ends: the noise cancels
  EXPECT_NEAR(c.largest_step().value_or(0), 1.0 / 8, 0.005);
  EXPECT_EQ(c.least_threshold(), 4 * c.spread);
}

// Where there is no gradient at all, the estimate of its square scatters around 0 as it says.
TEST(MeasureConstants, KnowsTheNoiseOfTheGradient) {
  class Noise : public Objective {
   public:
    Measurement Measure(const Search& search, Key key) override {
      AlignedVector<float> normals(PaddedNormals(search.mu.size()));
      DrawNormals(Kernel::kScalar, key, normals);
      Measurement m;
      m.z_mu.assign(normals.begin(),
                    normals.begin() + static_cast<std::ptrdiff_t>(search.mu.size()));
      return m;
    }
    Value MeasureValue(std::span<const float> /*mu*/, std::int64_t /*worlds*/,
                       Key /*key*/) override {
      return {};
    }
  } objective;
  const Search search{std::vector<float>(64), std::vector<float>(64, 0.1F)};
  constexpr int kTrials = 400;
  double mean = 0;
  double square = 0;
  int visible = 0;
  for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
    const GradientConstants c = MeasureConstants(objective, search, 10, 0, Key(7).Fork(trial), {});
    const double score = c.gradient.value / c.gradient.error;
    mean += score / kTrials;
    square += score * score / kTrials;
    visible += c.gradient.IsVisible() ? 1 : 0;
  }
  EXPECT_NEAR(mean, 0, 0.2);                // 4 standard errors
  EXPECT_NEAR(std::sqrt(square), 1, 0.15);  // 4 standard errors, and a little for few repeats
  EXPECT_LT(visible, kTrials / 15);         // one side of two standard deviations: some 3 %
}

TEST(GradientConstants, KnowNoStepWhereSmoothnessIsBelowItsNoise) {
  GradientConstants c;
  EXPECT_FALSE(c.largest_step());
  c.smoothness = 2;
  EXPECT_EQ(c.largest_step(), 0.25);
  c.smoothness_noise = 2.5;
  EXPECT_FALSE(c.largest_step());
}

}  // namespace
}  // namespace fedgen
