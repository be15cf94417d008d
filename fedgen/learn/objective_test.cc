// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/objective.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fedgen/base/aligned.h"
#include "fedgen/base/kernel.h"
#include "fedgen/learn/analytic.h"
#include "fedgen/learn/normal_kernel.h"

namespace fedgen {
namespace {

// Two parts of 100 and 300 worlds: the mean of the functions by worlds, 1 to 3. A world's phase
// adds noise, which z of the whole has a known amount of.
TEST(PooledObjective, IsTheMeanOfItsPartsByWorlds) {
  const auto slope = [](double level, double by) {
    AnalyticFunction f;
    f.level = level;
    f.slope = {by, -by};
    f.amplitude = 0.1;
    f.kappa = {3, 4};
    return f;
  };
  const AnalyticFunction first = slope(0.2, 0.1), second = slope(0.6, 0.5);
  std::vector<PooledPart> parts;
  parts.push_back({MakeAnalyticObjective(first, 100), 100});
  parts.push_back({MakeAnalyticObjective(second, 300), 300});
  const std::unique_ptr<Objective> pooled = MakePooledObjective(std::move(parts));
  const Search search = {{0.1F, 0.3F}, {0.1F, 0.1F}};
  const double eta = (first.Eta(search.mu) + 3 * second.Eta(search.mu)) / 4;
  constexpr int kTrials = 2000;
  double y = 0, z = 0, squares = 0, spread = 0;
  for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
    const Measurement m = pooled->Measure(search, Key(6).Fork(trial));
    y += m.y / kTrials;
    z += m.z_mu[0] / kTrials;
    squares += (std::pow(m.z_mu[0] - 0.4, 2) + std::pow(m.z_mu[1] + 0.4, 2)) / kTrials;
    spread += m.spread * m.spread / kTrials;
    EXPECT_EQ(m.pairs, 400);
    EXPECT_EQ(m.episodes, 400);
  }
  // 400 independent phases, whoever drew them.
  const double noise = first.GradientNoise(400);
  EXPECT_NEAR(y, eta, 5 * 0.1 / std::sqrt(2.0 * 400 * kTrials));
  EXPECT_NEAR(z, 0.4, 5 * noise / std::sqrt(kTrials));  // (0.1 + 3 * 0.5) / 4
  EXPECT_NEAR(squares / (noise * noise), 1, 0.15);
  EXPECT_NEAR(spread / (noise * noise), 1, 0.05);
}

// As one list of costs: mean and sample variance of what the parts' worlds cost together.
TEST(PooledObjective, ValuesAPolicyOnWorldsOfAllParts) {
  class Constant final : public Objective {  // costs: half of them c, half of them c + 0.2
   public:
    explicit Constant(double c) : c_(c) {}
    Measurement Measure(const Search&, Key) override { return {}; }
    Value MeasureValue(std::span<const float>, std::int64_t worlds, Key) override {
      const auto n = static_cast<double>(worlds);
      return {c_ + 0.1, worlds > 1 ? 0.01 * n / (n - 1) : 0, worlds, 2 * worlds};
    }

   private:
    double c_;
  };
  std::vector<PooledPart> parts;
  parts.push_back({std::make_unique<Constant>(0.1), 10});
  parts.push_back({std::make_unique<Constant>(0.5), 30});
  const Value value = MakePooledObjective(std::move(parts))->MeasureValue({}, 8, Key(1));
  EXPECT_EQ(value.worlds, 8);
  EXPECT_EQ(value.episodes, 16);
  double mean = 0, squares = 0;
  const double costs[] = {0.1, 0.3, 0.5, 0.7, 0.5, 0.7, 0.5, 0.7};
  for (const double cost : costs) mean += cost / 8;
  for (const double cost : costs) squares += (cost - mean) * (cost - mean);
  EXPECT_NEAR(value.y, mean, 1e-12);
  EXPECT_NEAR(value.variance, squares / 7, 1e-12);
}

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
