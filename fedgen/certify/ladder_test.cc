// SPDX-License-Identifier: Apache-2.0
#include "fedgen/certify/ladder.h"

#include <gtest/gtest.h>

#include "fedgen/certify/bounds.h"

namespace fedgen {
namespace {

// Eq. 41: all rungs together risk what one of them states, no more.
TEST(Ladder, SharesSumToOne) {
  int shares = 0;
  double risk = 0;
  for (const Rung& rung : kLadder) {
    shares += rung.share;
    risk += 2 * StatementRisk(rung.worlds, 0.75);
    EXPECT_EQ(StatementRisk(rung.worlds, 0.75), 0.125 * rung.share / 64);
  }
  EXPECT_EQ(shares, kShares);
  EXPECT_EQ(risk, 0.25) << "both statements on all rungs";
}

TEST(Ladder, HasOneAndThreeTimesPowersOfTen) {
  std::int64_t power = 100;
  for (std::size_t index = 0; index < kLadder.size(); ++index) {
    EXPECT_EQ(kLadder[index].worlds, index % 2 == 0 ? power : 3 * power);
    if (index % 2 == 1) power *= 10;
  }
  EXPECT_EQ(kMaxCertificateWorlds, 100'000'000);
  EXPECT_TRUE(IsRung(30'000));
  for (const std::int64_t other : {-1, 0, 1, 99, 101, 20'000, 100'001}) EXPECT_FALSE(IsRung(other));
}

// What the ladder costs, against the whole risk for one size: at 100,000 worlds less than 0.0002,
// for a policy that fails in 418 and one that fails in 1,291.
TEST(Ladder, CostsLittleAtAHundredThousandWorlds) {
  for (const std::int64_t failures : {418, 1291}) {
    const double alone = SuccessLowerBound(100'000 - failures, 100'000, 0.005);
    const double shared =
        SuccessLowerBound(100'000 - failures, 100'000, StatementRisk(100'000, 0.99));
    EXPECT_LT(shared, alone);
    EXPECT_GT(shared, alone - 0.0002) << failures;
  }
}

}  // namespace
}  // namespace fedgen
