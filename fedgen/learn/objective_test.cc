// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/objective.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fedgen/base/aligned.h"
#include "fedgen/base/kernel.h"
#include "fedgen/learn/normal_kernel.h"

namespace fedgen {
namespace {

TEST(Norm, IsTheTwoNorm) {
  EXPECT_EQ(Norm({}), 0);
  EXPECT_EQ(Norm(std::vector<double>{-3, 4}), 5);
  EXPECT_EQ(Norm(std::vector<double>{2, 3, 6}), 7);
}

// v = g + noise with E|noise|^2 = squared_noise: the estimate of |g|^2 has mean |g|^2, and without
// a signal its standard deviation is `error` (Eq. 28).
TEST(EstimateSignal, IsUnbiasedAndKnowsItsNoise) {
  constexpr std::size_t kEntries = 64;
  constexpr double kNoise = 0.5;  // of each entry
  constexpr int kTrials = 4000;
  for (const double gradient : {0.0, 0.25}) {
    double sum = 0, squares = 0, error = 0;
    int visible = 0;
    for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
      AlignedVector<float> normals(PaddedNormals(kEntries));
      DrawNormals(BestKernel(), Key(5).Fork(trial), normals);
      std::vector<double> v(kEntries);
      for (std::size_t i = 0; i < kEntries; ++i) {
        v[i] = gradient + kNoise * static_cast<double>(normals[i]);
      }
      const SquaredSignal signal = EstimateSignal(v, kNoise * kNoise * kEntries);
      sum += signal.value / kTrials;
      squares += signal.value * signal.value / kTrials;
      error = signal.error;
      visible += signal.IsVisible() ? 1 : 0;
    }
    const double truth = gradient * gradient * kEntries;
    const double deviation = std::sqrt(squares - sum * sum);
    EXPECT_NEAR(sum, truth, 4 * deviation / std::sqrt(kTrials)) << gradient;
    if (gradient == 0) {
      EXPECT_NEAR(deviation / error, 1, 0.06);
      EXPECT_LT(visible, kTrials / 20);  // 2 standard deviations: some 3 % of a skewed law
    } else {
      EXPECT_GT(visible, kTrials / 5);
    }
  }
}

TEST(SquaredSignal, IsVisibleAboveTwoStandardDeviations) {
  EXPECT_FALSE((SquaredSignal{2, 1}).IsVisible());
  EXPECT_TRUE((SquaredSignal{2.01, 1}).IsVisible());
  EXPECT_FALSE((SquaredSignal{-5, 1}).IsVisible());
}

}  // namespace
}  // namespace fedgen
