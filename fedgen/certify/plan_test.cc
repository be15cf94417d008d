// SPDX-License-Identifier: Apache-2.0
#include "fedgen/certify/plan.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "fedgen/certify/bounds.h"
#include "fedgen/certify/ladder.h"

namespace fedgen {
namespace {

// P(Binomial(n, rate) <= k) term by term.
double Tail(std::int64_t k, std::int64_t n, double rate) {
  double sum = 0;
  for (std::int64_t j = 0; j <= k; ++j) {
    const auto x = static_cast<double>(j);
    const auto m = static_cast<double>(n);
    sum += std::exp(std::lgamma(m + 1) - std::lgamma(x + 1) - std::lgamma(m - x + 1) +
                    x * std::log(rate) + (m - x) * std::log1p(-rate));
  }
  return sum;
}

// Eq. 41 by its definition: failures are added one by one until the tail is too heavy.
TEST(PlanRungs, AgreesWithCountingUp) {
  for (const auto& [safe, confidence, assume] :
       {std::array{0.5, 0.9, 0.8}, std::array{0.9, 0.99, 0.98}, std::array{0.99, 0.99, 0.995},
        std::array{0.3, 0.8, 0.45}}) {
    const std::vector<PlanRow> rows = PlanRungs(safe, confidence, assume);
    std::size_t row = 0;
    for (const Rung& rung : kLadder) {
      if (rung.worlds > 10'000) break;
      const double risk = (1 - confidence) / 2 * rung.share / 64;
      std::int64_t allowed = -1;
      while (Tail(allowed + 1, rung.worlds, 1 - safe) <= risk) ++allowed;
      if (allowed < 0) continue;
      ASSERT_LT(row, rows.size());
      EXPECT_EQ(rows[row].worlds, rung.worlds);
      EXPECT_EQ(rows[row].allowed_failures, allowed) << safe << " " << rung.worlds;
      EXPECT_NEAR(rows[row].power, Tail(allowed, rung.worlds, 1 - assume), 1e-9);
      ++row;
    }
    EXPECT_GT(row, 0U);
  }
}

// What the plan allows the bound accepts, and no failure more.
TEST(PlanRungs, IsWhatACertificateWouldSay) {
  for (const PlanRow& row : PlanRungs(0.99, 0.99, 0.995)) {
    const double risk = StatementRisk(row.worlds, 0.99);
    const std::int64_t safe = row.worlds - row.allowed_failures;
    EXPECT_GE(SuccessLowerBound(safe, row.worlds, risk), 0.99 - 1e-12) << row.worlds;
    EXPECT_LT(SuccessLowerBound(safe - 1, row.worlds, risk), 0.99) << row.worlds;
  }
}

// No failure in n worlds: 0.99^n <= 0.005 / 16 from n = 803 on, so 1,000 is the least rung.
TEST(PlanRungs, StartsWithTheLeastRungThatIsEnoughWithoutAFailure) {
  const std::vector<PlanRow> rows = PlanRungs(0.99, 0.99, 1);
  ASSERT_EQ(rows.size(), 11U);
  EXPECT_EQ(rows.front().worlds, 1000);
  EXPECT_EQ(rows.front().allowed_failures, 0);
  EXPECT_EQ(rows.front().power, 1.0);
  EXPECT_TRUE(PlanRungs(1 - 1e-9, 0.99, 1).empty()) << "10^8 worlds are too few";
}

}  // namespace
}  // namespace fedgen
