// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/analytic.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fedgen/learn/analytic_testing.h"

namespace fedgen {
namespace {

AnalyticFunction Everything() {
  AnalyticFunction f = ThreeWells();
  f.slope = {0.3, -0.2};
  f.curvature = 0.7;
  f.centre = {0.5, -1};
  return f;
}

TEST(AnalyticFunction, HasTheGradientOfItsValue) {
  const AnalyticFunction f = Everything();
  for (std::uint64_t trial = 0; trial < 50; ++trial) {
    const std::vector<float> theta = UniformTheta(Key(1).Fork(trial), 2, 3);
    const std::vector<double> gradient = f.Gradient(theta);
    for (std::size_t index = 0; index < 2; ++index) {
      constexpr float kStep = 0x1p-9F;
      std::vector<float> up = theta, down = theta;
      up[index] += kStep;
      down[index] -= kStep;
      const double run = static_cast<double>(up[index]) - static_cast<double>(down[index]);
      EXPECT_NEAR(gradient[index], (f.Eta(up) - f.Eta(down)) / run, 1e-5);
    }
  }
}

TEST(AnalyticFunction, HasTheConstantsItStates) {
  const AnalyticFunction f = ThreeWells();
  for (std::uint64_t trial = 0; trial < 3000; ++trial) {
    const std::vector<float> a = UniformTheta(Key(2).Fork(trial), 2, 4);
    const std::vector<float> b = UniformTheta(Key(3).Fork(trial), 2, 4);
    const std::vector<double> ga = f.Gradient(a), gb = f.Gradient(b);
    const double apart = std::hypot(static_cast<double>(a[0]) - static_cast<double>(b[0]),
                                    static_cast<double>(a[1]) - static_cast<double>(b[1]));
    EXPECT_LE(std::hypot(ga[0] - gb[0], ga[1] - gb[1]), f.Lambda1() * apart * (1 + 1e-9));
    EXPECT_LE(std::fabs(f.Eta(a) - f.Eta(b)), f.Lambda0() * apart * (1 + 1e-9));
    for (const double u : {0.0, 0.25, 0.6, 0.99}) {
      EXPECT_GE(f.Cost(a, u), 0);
      EXPECT_LE(f.Cost(a, u), 1);
    }
  }
}

TEST(AnalyticObjective, IsUnbiasedWithTheStatedNoise) {
  const AnalyticFunction f = Everything();
  constexpr int kWorlds = 4;
  const auto objective = MakeAnalyticObjective(f, kWorlds);
  const Search search{{0.4F, -0.3F}, {0.1F, 0.1F}};
  const std::vector<double> gradient = f.Gradient(search.mu);
  constexpr int kTrials = 20000;
  std::vector<double> mean(2);
  double y = 0, squares = 0, spread2 = 0;
  for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
    const Measurement m = objective->Measure(search, Key(4).Fork(trial));
    y += m.y / kTrials;
    spread2 += m.spread * m.spread / kTrials;
    for (std::size_t index = 0; index < 2; ++index) {
      mean[index] += m.z_mu[index] / kTrials;
      squares += std::pow(m.z_mu[index] - gradient[index], 2) / kTrials;
    }
  }
  const double noise = f.GradientNoise(kWorlds);
  EXPECT_NEAR(y, f.Eta(search.mu), 5 * f.amplitude / std::sqrt(2.0 * kWorlds * kTrials));
  for (std::size_t index = 0; index < 2; ++index) {
    EXPECT_NEAR(mean[index], gradient[index], 5 * noise / std::sqrt(kTrials));
  }
  EXPECT_NEAR(squares / (noise * noise), 1, 0.05);
  EXPECT_NEAR(spread2 / (noise * noise), 1, 0.05);
}

TEST(AnalyticObjective, AgreesWithItsCostSource) {
  const AnalyticFunction f = Everything();
  const auto costs = MakeAnalyticCosts(f, 7);
  const auto objective = MakeAnalyticObjective(f, 7);
  const Search search{{1, 2}, {0.1F, 0.1F}};
  const auto measured = costs->Measure(
      search.mu, 2, [](std::int64_t member, std::span<float> p) { p[0] += member == 1 ? 1 : 0; },
      Key(5));
  EXPECT_EQ(measured.y, objective->Measure(search, Key(5)).y);
  EXPECT_EQ(measured.y, objective->MeasureValue(search.mu, 7, Key(5)).y);
  EXPECT_EQ(measured.members[0], measured.y);
  EXPECT_EQ(measured.members[1], objective->MeasureValue(std::vector<float>{2, 2}, 7, Key(5)).y);
  EXPECT_NE(measured.y, objective->MeasureValue(search.mu, 7, Key(6)).y);
  EXPECT_EQ(measured.episodes, 21);
}

}  // namespace
}  // namespace fedgen
