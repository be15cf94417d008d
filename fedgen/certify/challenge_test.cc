// SPDX-License-Identifier: Apache-2.0
#include "fedgen/certify/challenge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fedgen/base/random.h"

namespace fedgen {
namespace {

// Worlds of a policy that arrives with probability `rate`, at cost 0.3, and costs 1 elsewhere.
struct Drawn {
  std::vector<double> costs, shares;
  Sightings seen(int starts = 1) const {
    return {std::count(shares.begin(), shares.end(), 1.0), costs, shares, starts};
  }
};

Drawn Draw(double rate, int worlds, std::uint64_t seed) {
  Drawn drawn;
  for (int world = 0; world < worlds; ++world) {
    const RandomBlock block = Key(seed).Block(static_cast<std::uint64_t>(world));
    const bool safe = static_cast<double>(UnitFloat(block[0])) < rate;
    drawn.costs.push_back(safe ? 0.3 : 1);
    drawn.shares.push_back(safe ? 1 : 0);
  }
  return drawn;
}

// The least true rate, to which P(Binomial(n, p) <= k) = 0.9 belongs, term by term.
double Tail(int k, int n, double rate) {
  double sum = 0;
  for (int j = 0; j <= k; ++j) {
    sum += std::exp(std::lgamma(n + 1) - std::lgamma(j + 1) - std::lgamma(n - j + 1) +
                    j * std::log(rate) + (n - j) * std::log1p(-rate));
  }
  return sum;
}

// Eq. 44: the exact test, by counting down.
TEST(JudgeClaim, ContradictsACountThatTheClaimMakesUnlikely) {
  constexpr int kWorlds = 500;
  int most = -1;  // contradicting count
  while (Tail(most + 1, kWorlds, 0.9) <= 0.005) ++most;
  for (const int safe : {most - 3, most, most + 1, kWorlds}) {
    Drawn drawn;
    drawn.costs.assign(kWorlds, 0.3);
    drawn.shares.assign(kWorlds, 0);
    for (int world = 0; world < safe; ++world) drawn.shares[static_cast<std::size_t>(world)] = 1;
    const ChallengeVerdict verdict = JudgeClaim({0.9, 0.5}, drawn.seen());
    EXPECT_EQ(verdict.safe_contradicted, safe <= most) << safe;
    EXPECT_FALSE(verdict.cost_contradicted);
    EXPECT_TRUE(verdict.exact);
    ASSERT_TRUE(verdict.noticed_safe_arrival);
    EXPECT_NEAR(Tail(most, kWorlds, verdict.noticed_safe_arrival.value_or(0)), 0.9, 1e-9);
  }
}

// The verdict keeps its word over many draws: true claims are contradicted at most 1 time in 100,
// and a shortfall as large as the one reported is noticed about 9 times in 10.
TEST(JudgeClaim, SeldomErrsAndNoticesWhatItSaysItWould) {
  constexpr int kTrials = 400;
  constexpr int kWorlds = 1000;
  const Claim claim{0.98, 0.3 * 0.98 + 0.02};
  const ChallengeVerdict any = JudgeClaim(claim, Draw(0.98, kWorlds, 1).seen());
  ASSERT_TRUE(any.noticed_safe_arrival);
  const double noticed = any.noticed_safe_arrival.value_or(0);
  EXPECT_GT(noticed, 0.94);
  int wrong = 0, safe_noticed = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const auto seed = static_cast<std::uint64_t>(100 + trial);
    wrong += JudgeClaim(claim, Draw(0.98, kWorlds, seed).seen()).contradicted() ? 1 : 0;
    safe_noticed += JudgeClaim(claim, Draw(noticed, kWorlds, seed).seen()).safe_contradicted;
  }
  EXPECT_LE(wrong, 11) << "of 400 at 1 %: more has probability 0.002";
  EXPECT_NEAR(safe_noticed, 0.9 * kTrials, 4 * std::sqrt(kTrials * 0.09));
}

// Several starts per world, and the cost: the margin is measured, so "about".
TEST(JudgeClaim, NoticesAboutTheReportedCost) {
  constexpr int kTrials = 200;
  constexpr int kWorlds = 1000;
  // Also where the claim is far from what was seen, as in every small certificate.
  for (const double claimed : {0.31, 0.33, 0.37}) {
    const Claim claim{0.5, claimed};
    const ChallengeVerdict any = JudgeClaim(claim, Draw(0.99, kWorlds, 1).seen(2));
    EXPECT_FALSE(any.exact);
    EXPECT_FALSE(any.contradicted());
    ASSERT_TRUE(any.noticed_expected_cost);
    const double cost = any.noticed_expected_cost.value_or(0);
    EXPECT_GT(cost, claimed);
    EXPECT_LT(cost, claimed + 0.05);
    const double rate = (1 - cost) / 0.7;  // 0.3 rate + (1 - rate) = cost
    int noticed = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const Drawn drawn = Draw(rate, kWorlds, static_cast<std::uint64_t>(1000 + trial));
      noticed += JudgeClaim(claim, drawn.seen(2)).cost_contradicted ? 1 : 0;
    }
    EXPECT_GT(noticed, 0.75 * kTrials) << claimed << " " << cost;
  }
}

TEST(JudgeClaim, SaysSoWhenThereAreTooFewWorldsToContradict) {
  const ChallengeVerdict verdict = JudgeClaim({0.3, 1}, Draw(0, 3, 1).seen());
  EXPECT_FALSE(verdict.contradicted()) << "0.7^3 = 0.34";
  EXPECT_FALSE(verdict.noticed_safe_arrival);
}

}  // namespace
}  // namespace fedgen
