// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/number_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace fedgen {
namespace {

TEST(Grouped, PutsACommaBeforeEveryThreeDigits) {
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(1000), "1,000");
  EXPECT_EQ(Grouped(1234567), "1,234,567");
  EXPECT_EQ(Grouped(-123), "-123");
  EXPECT_EQ(Grouped(-1234), "-1,234");
  EXPECT_EQ(Grouped(std::numeric_limits<std::int64_t>::max()), "9,223,372,036,854,775,807");
}

TEST(Counted, KnowsOneFromMany) {
  EXPECT_EQ(Counted(1, "world"), "1 world");
  EXPECT_EQ(Counted(0, "world"), "0 worlds");
  EXPECT_EQ(Counted(10000, "world"), "10,000 worlds");
}

}  // namespace
}  // namespace fedgen
