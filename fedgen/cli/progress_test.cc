// SPDX-License-Identifier: Apache-2.0
#include "fedgen/cli/progress.h"

#include <gtest/gtest.h>

namespace fedgen {
namespace {

TEST(Progress, LineShowsShareRateAndTimeLeft) {
  EXPECT_EQ(ProgressLine("evaluate", "episodes", 50, 100, 2.0),
            "evaluate [###############...............]  50 %  25 episodes/s  2 s left");
  EXPECT_EQ(
      ProgressLine("evaluate", "episodes", 1000000, 601000000, 2.0),
      "evaluate [..............................]   0 %  500.0 k episodes/s  20 min 00 s left");
  EXPECT_EQ(ProgressLine("generate", "worlds", 0, 10, 0.0),
            "generate [..............................]   0 %  0 worlds/s  ");
}

}  // namespace
}  // namespace fedgen
