// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fedgen/learn/analytic_testing.h"

namespace fedgen {
namespace {

using Kind = OptimizerOptions::Kind;

// Gradients with a direction of their own, noise, and one parameter that never has any.
std::vector<double> Gradient(std::uint64_t step) {
  const std::vector<float> noise = UniformTheta(Key(1).Fork(step), 4, 2);
  return {0.5 + static_cast<double>(noise[0]), static_cast<double>(noise[1]),
          -1e-3 * static_cast<double>(noise[2]), 0};
}

TEST(StepSize, FollowsItsSchedule) {  // Eq. 25
  StepOptions options;
  options.step = 0.5;
  options.exponent = 0.7;
  for (const int k : {1, 2, 10, 1000}) {
    EXPECT_DOUBLE_EQ(StepSize(options, k, 100), 0.5 / std::pow(k, 0.7));
  }
  options.schedule = StepOptions::Schedule::kConstant;
  for (const int k : {1, 2, 10, 1000}) EXPECT_EQ(StepSize(options, k, 100), 0.5);
  options.schedule = StepOptions::Schedule::kGeometric;
  options.last = 0.005;
  EXPECT_DOUBLE_EQ(StepSize(options, 1, 100), 0.5);
  EXPECT_NEAR(StepSize(options, 100, 100), 0.005, 1e-15);
  for (int k = 1; k < 100; ++k) {  // a constant factor, the 99th root of 1/100
    EXPECT_NEAR(StepSize(options, k + 1, 100) / StepSize(options, k, 100), std::pow(0.01, 1.0 / 99),
                1e-12);
  }
  EXPECT_EQ(StepSize(options, 1, 1), 0.5);
  // Over rounds of its own it does not depend on how many the run has.
  StepOptions own = options;
  own.rounds = 100;
  for (const int num_rounds : {50, 100, 300}) {
    for (const int k : {1, 7, 50}) {
      EXPECT_EQ(StepSize(own, k, num_rounds), StepSize(options, k, 100));
    }
  }
  EXPECT_NEAR(StepSize(own, 101, 300), 0.005, 1e-15);
  EXPECT_EQ(StepSize(own, 300, 300), StepSize(own, 100, 300));
}

TEST(StepSize, RefusesWhatIsNoStep) {
  for (const double wrong : {0.0, -1.0, std::nan(""), 2e6, HUGE_VAL}) {
    StepOptions step, last;
    step.step = last.last = wrong;
    ASSERT_TRUE(Validate(step) && Validate(last)) << wrong;
    EXPECT_EQ(Validate(step)->field, "step");
    EXPECT_EQ(Validate(last)->field, "last_step");
  }
  for (const double wrong : {-0.1, 1.1, std::nan("")}) {
    StepOptions options;
    options.exponent = wrong;
    ASSERT_TRUE(Validate(options)) << wrong;
    EXPECT_EQ(Validate(options)->field, "step_exponent");
  }
  EXPECT_FALSE(Validate(StepOptions{}));
}

TEST(Descend, BySgdSubtractsTheStep) {
  std::vector<float> mu = {1, 2, 3, 4};
  OptimizerState state;
  Descend({Kind::kSgd}, std::vector<double>{2, -4, 0, 0.5}, 0.25, state, mu);
  EXPECT_EQ(mu, (std::vector<float>{0.5F, 3, 3, 3.875F}));
  EXPECT_TRUE(state.first.empty() && state.second.empty());
}

TEST(Descend, ByAdamFollowsTheTextbook) {  // Eq. 26, spelled as a sum over the past
  std::vector<float> mu = {1, -1, 0.5F, 7};
  std::vector<double> expected = {1, -1, 0.5, 7};
  OptimizerState state;
  for (int t = 1; t <= 60; ++t) {
    const double step = 0.1 / t;
    Descend({Kind::kAdam}, Gradient(static_cast<std::uint64_t>(t)), step, state, mu);
    for (std::size_t index = 0; index < 4; ++index) {
      double m = 0, v = 0;
      for (int past = 1; past <= t; ++past) {
        const double z = Gradient(static_cast<std::uint64_t>(past))[index];
        m += 0.1 * std::pow(0.9, t - past) * z;
        v += 0.001 * std::pow(0.999, t - past) * z * z;
      }
      expected[index] -=
          step * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
      ASSERT_NEAR(mu[index], expected[index], 1e-5) << "step " << t << ", parameter " << index;
    }
  }
  EXPECT_EQ(mu[3], 7.0F);
  EXPECT_EQ(state.steps, 60);
}

TEST(Descend, ByAdamStepsByTheStepAtFirst) {
  std::vector<float> mu = {0, 0};
  OptimizerState state;
  Descend({Kind::kAdam}, std::vector<double>{1e-3, -1e3}, 0.25, state, mu);
  EXPECT_NEAR(mu[0], -0.25, 1e-5);
  EXPECT_NEAR(mu[1], 0.25, 1e-5);
}

TEST(Descend, ByClipUpKeepsToItsSpeedLimitAndIgnoresTheLengthOfZ) {  // Eq. 27
  std::vector<float> mu(4), scaled(4);
  OptimizerState state, scaled_state;
  std::vector<double> velocity(4);
  for (std::uint64_t t = 0; t < 60; ++t) {
    const double step = t < 30 ? 0.1 : 0.02;
    const std::vector<double> z = Gradient(t);
    std::vector<double> longer = z;
    for (double& value : longer) value *= 1024;  // exact
    const std::vector<float> before = mu;
    Descend({Kind::kClipUp}, z, step, state, mu);
    Descend({Kind::kClipUp}, longer, step, scaled_state, scaled);
    EXPECT_EQ(mu, scaled);
    double speed = 0;
    for (std::size_t index = 0; index < 4; ++index) {
      velocity[index] = 0.9 * velocity[index] + step * z[index] / Norm(z);
    }
    const double brake = std::min(1.0, 2 * step / Norm(velocity));
    for (std::size_t index = 0; index < 4; ++index) {
      velocity[index] *= brake;
      EXPECT_NEAR(state.first[index], velocity[index], 1e-12);
      const double moved = static_cast<double>(mu[index]) - static_cast<double>(before[index]);
      EXPECT_NEAR(moved, -velocity[index], 1e-6);
      speed += moved * moved;
    }
    EXPECT_LE(std::sqrt(speed), 2 * step * (1 + 1e-5));
  }
  EXPECT_EQ(mu[3], 0.0F);
}

TEST(Descend, ByClipUpCoastsWhereThereIsNoGradient) {
  std::vector<float> mu = {0};
  OptimizerState state;
  Descend({Kind::kClipUp}, std::vector<double>{0}, 0.5, state, mu);
  EXPECT_EQ(mu[0], 0.0F);
  Descend({Kind::kClipUp}, std::vector<double>{3}, 0.5, state, mu);
  Descend({Kind::kClipUp}, std::vector<double>{0}, 0.5, state, mu);
  EXPECT_FLOAT_EQ(mu[0], -0.95F);
}

}  // namespace
}  // namespace fedgen
