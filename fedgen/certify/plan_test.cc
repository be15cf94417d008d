// SPDX-License-Identifier: Apache-2.0
#include "fedgen/certify/plan.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fedgen/certify/bounds.h"

namespace fedgen {
namespace {

// Eq. 41 with no failure: 0.99^459 = 0.00992, 0.99^458 = 0.01002.
TEST(WorldsNeeded, MatchesKnownFigures) {
  EXPECT_EQ(WorldsNeeded(0.99, 0.99), 459);
  EXPECT_EQ(WorldsNeeded(0.99, JointConfidence(0.99)), 528);
  EXPECT_EQ(WorldsNeeded(0.95, 0.95), 59);
  EXPECT_EQ(WorldsNeeded(0.999, 0.99), 4603);
  EXPECT_EQ(WorldsNeeded(0.5, 0.75), 2);
  EXPECT_EQ(WorldsNeeded(0.01, 0.5), 1);
}

TEST(WorldsNeeded, IsTheLeastThatTheBoundAcceptsWithoutAFailure) {
  for (const double safe : {0.3, 0.9, 0.97, 0.999}) {
    for (const double confidence : {0.6, 0.9, 0.99, 0.9999}) {
      const std::int64_t n = WorldsNeeded(safe, confidence);
      EXPECT_GE(SuccessLowerBound(n, n, 1 - confidence), safe);
      if (n > 1) {
        EXPECT_LT(SuccessLowerBound(n - 1, n - 1, 1 - confidence), safe);
      }
    }
  }
}

TEST(JointConfidence, HalvesTheRisk) { EXPECT_DOUBLE_EQ(JointConfidence(0.98), 0.99); }

// P(Binomial(n, rate) <= k) term by term.
double Tail(int k, int n, double rate) {
  double sum = 0;
  for (int j = 0; j <= k; ++j) {
    sum += std::exp(std::lgamma(n + 1) - std::lgamma(j + 1) - std::lgamma(n - j + 1) +
                    j * std::log(rate) + (n - j) * std::log1p(-rate));
  }
  return sum;
}

// The power of every n by its definition: the most failures that certify, then the probability of
// no more than those.
double PowerOf(int n, double safe, double confidence, double assume, int& allowed) {
  allowed = -1;
  while (allowed + 1 < n && Tail(allowed + 1, n, 1 - safe) <= 1 - confidence) ++allowed;
  return allowed < 0 ? 0 : Tail(allowed, n, 1 - assume);
}

TEST(WorldsToSucceed, AgreesWithTryingEveryNumber) {
  struct Case {
    double safe, confidence, assume, power;
  };
  for (const Case& c :
       {Case{0.5, 0.9, 0.8, 0.8}, Case{0.8, 0.95, 0.9, 0.9}, Case{0.9, 0.9, 0.97, 0.5},
        Case{0.9, 0.99, 0.98, 0.95}, Case{0.95, 0.9, 0.99, 0.9}, Case{0.3, 0.8, 0.45, 0.7}}) {
    const std::optional<Plan> plan = WorldsToSucceed(c.safe, c.confidence, c.assume, c.power);
    ASSERT_TRUE(plan);
    int n = 1;
    int allowed = -1;
    double power = PowerOf(n, c.safe, c.confidence, c.assume, allowed);
    while (power < c.power) power = PowerOf(++n, c.safe, c.confidence, c.assume, allowed);
    EXPECT_EQ(plan->worlds, n) << c.safe << " " << c.assume;
    EXPECT_EQ(plan->allowed_failures, allowed);
    EXPECT_NEAR(plan->power, power, 1e-11);
  }
}

// The sawtooth: the n that is found has the power, the next one has not.
TEST(WorldsToSucceed, PromisesForThisVeryNumber) {
  const std::optional<Plan> plan = WorldsToSucceed(0.9, 0.9, 0.97, 0.83);
  ASSERT_TRUE(plan);
  const auto n = static_cast<int>(plan->worlds);
  int allowed = 0;
  EXPECT_GE(PowerOf(n, 0.9, 0.9, 0.97, allowed), 0.83);
  EXPECT_LT(PowerOf(n + 1, 0.9, 0.9, 0.97, allowed), PowerOf(n, 0.9, 0.9, 0.97, allowed));
}

TEST(WorldsToSucceed, IsConsistentWithTheBound) {
  const std::optional<Plan> plan = WorldsToSucceed(0.99, 0.99, 0.995, 0.9);
  ASSERT_TRUE(plan);
  const std::int64_t n = plan->worlds;
  const std::int64_t c = plan->allowed_failures;
  EXPECT_GE(SuccessLowerBound(n - c, n, 0.01), 0.99 - 1e-12);
  EXPECT_LT(SuccessLowerBound(n - c - 1, n, 0.01), 0.99);
  EXPECT_GE(BinomialAtMost(c, n, 0.005), 0.9);
}

TEST(WorldsToSucceed, NeedsNoFailureFromAPolicyThatNeverFails) {
  const std::optional<Plan> plan = WorldsToSucceed(0.99, 0.99, 1, 0.999);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->worlds, WorldsNeeded(0.99, 0.99));
  EXPECT_EQ(plan->allowed_failures, 0);
  EXPECT_EQ(plan->power, 1.0);
}

TEST(WorldsToSucceed, GivesUpOnRatesTooCloseToTell) {
  EXPECT_FALSE(WorldsToSucceed(0.5, 0.9, 0.5001, 0.9));
}

}  // namespace
}  // namespace fedgen
