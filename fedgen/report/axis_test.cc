// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace fedgen {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;

TEST(Ticks, AreRoundAndFewEnough) {
  EXPECT_THAT(MakeTicks(0, 1, 6), ElementsAre(0, 0.2, DoubleNear(0.4, 1e-12),
                                              DoubleNear(0.6, 1e-12), DoubleNear(0.8, 1e-12), 1));
  EXPECT_THAT(MakeTicks(1, 220, 7), ElementsAre(50, 100, 150, 200));
  EXPECT_THAT(MakeTicks(-3, 4, 4), ElementsAre(-2, 0, 2, 4));
  for (int trial = 1; trial <= 2000; ++trial) {
    const double low = 100 * std::sin(trial);
    const double high = low + std::pow(10, 6 * std::sin(3.0 * trial));
    const int most = 2 + trial % 9;
    const std::vector<double> ticks = MakeTicks(low, high, most);
    EXPECT_LE(ticks.size(), static_cast<std::size_t>(most));
    const double slack = 1e-6 * (high - low);
    EXPECT_THAT(ticks, ::testing::Each(AllOf(Ge(low - slack), Le(high + slack))));
    EXPECT_FALSE(most >= 5 && ticks.size() < 2) << low << " " << high << " " << most;
  }
}

TEST(Ticks, ReadWell) {
  EXPECT_EQ(TickText(0, 0.2), "0.0");
  EXPECT_EQ(TickText(0.4000000001, 0.2), "0.4");
  EXPECT_EQ(TickText(0.25, 0.05), "0.25");
  EXPECT_EQ(TickText(1000, 500), "1,000");
  EXPECT_EQ(TickText(999, 1), "999");
  EXPECT_EQ(TickText(1234567, 1), "1,234,567");
  EXPECT_EQ(TickText(-20000, 5000), "\u221220,000");
  EXPECT_EQ(TickText(2e9, 1e9), "2e+09");
}

TEST(Ticks, AreMultiplesOfTheirStepWithBothEnds) {
  EXPECT_THAT(MultiplesOf(2, -4, 5), ElementsAre(-4, -2, 0, 2, 4));
  EXPECT_FALSE(std::signbit(MultiplesOf(2, -1, 1)[0]));
  // 0.3 / 0.1 is less than 3 in doubles.
  EXPECT_THAT(MultiplesOf(0.1, 0.2, 0.3), ElementsAre(0.2, DoubleNear(0.3, 1e-12)));
  EXPECT_THAT(MultiplesOf(5, 1, 4), IsEmpty());
}

TEST(AxisSpan, LeavesAirAroundTheData) {
  const AxisSpan span = MakeSpan({}, {2, 12}, 0.1, 5);
  EXPECT_DOUBLE_EQ(span.low, 1);
  EXPECT_DOUBLE_EQ(span.high, 13);
  EXPECT_DOUBLE_EQ(span.Share(1), 0);
  EXPECT_DOUBLE_EQ(span.Share(7), 0.5);
}

TEST(AxisSpan, OfRatesDoesNotGoBelowZero) {
  for (const Extent data : {Extent{0, 2}, Extent{0.1, 2}, Extent{0.1, 0.1}}) {
    EXPECT_EQ(MakeSpan({.scale = Scale::kNines}, data, 0.1, 5).low, 0) << data.low;
  }
  EXPECT_DOUBLE_EQ(MakeSpan({.scale = Scale::kNines}, {1, 2}, 0.1, 5).low, 0.9);
}

TEST(AxisSpan, EndsWhereTheAxisSays) {
  const AxisSpan span = MakeSpan({.scale = Scale::kLog, .low = 1, .high = 100}, {0.5, 0.7}, 0.1, 5);
  EXPECT_DOUBLE_EQ(span.Share(1), 0);
  EXPECT_DOUBLE_EQ(span.Share(10), 0.5);
  EXPECT_DOUBLE_EQ(span.Share(100), 1);
  EXPECT_TRUE(std::isnan(span.Share(0)));
}

}  // namespace
}  // namespace fedgen
