// SPDX-License-Identifier: Apache-2.0
#include "fedgen/cli/progress.h"

#include <gtest/gtest.h>

namespace fedgen {
namespace {

TEST(Progress, LineShowsShareRateAndTimeLeft) {
  EXPECT_EQ(ProgressLine("evaluate", "episodes", 50, 100, 2.0),
            "evaluate [###############...............]  50 %  25 episodes/s  2 s left");
  EXPECT_EQ(
      ProgressLine("evaluate", "episodes", 1000000, 601000000, 2.0, 90),
      "evaluate [..............................]   0 %  500.0 k episodes/s  20 min 00 s left");
  EXPECT_EQ(ProgressLine("generate", "worlds", 0, 10, 0.0),
            "generate [..............................]   0 %  0 worlds/s  ");
  EXPECT_EQ(ProgressLine("generate", "worlds", 10, 10, 2.0),
            "generate [##############################] 100 %  5 worlds/s  ");
}

// The bar gives way, then the end of the line: a line that wraps is not wiped.
TEST(Progress, LineFitsTheTerminal) {
  EXPECT_EQ(ProgressLine("evaluate", "episodes", 50, 100, 2.0, 60),
            "evaluate [########.........]  50 %  25 episodes/s  2 s left");
  EXPECT_EQ(ProgressLine("evaluate", "episodes", 50, 100, 2.0, 44),
            "evaluate [.]  50 %  25 episodes/s  2 s left");
  for (int columns = 1; columns < 200; ++columns) {
    EXPECT_LE(ProgressLine("estimate", "measurements", 999, 1'000'000'000, 3.0, columns).size(),
              static_cast<std::size_t>(std::max(columns - 1, 1)));
  }
}

}  // namespace
}  // namespace fedgen
