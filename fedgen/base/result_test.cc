// SPDX-License-Identifier: Apache-2.0
#include "fedgen/base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace fedgen {
namespace {

Result<std::unique_ptr<int>> MakeInt(int value) {
  if (value < 0) return Error{ErrorCode::kData, fmt::format("value = {}: must be >= 0", value)};
  return std::make_unique<int>(value);
}

TEST(Result, HoldsAValue) {
  Result<std::unique_ptr<int>> result = MakeInt(3);
  ASSERT_TRUE(result);
  EXPECT_TRUE(result.has_value());
  EXPECT_EQ(**result, 3);
  const std::unique_ptr<int> moved = *std::move(result);
  EXPECT_EQ(*moved, 3);
}

TEST(Result, HoldsAnError) {
  const Result<std::unique_ptr<int>> result = MakeInt(-1);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kData);
  EXPECT_EQ(result.error().message, "value = -1: must be >= 0");
}

TEST(Result, OfNothingIsGoodOrAnError) {
  const Result<void> good;
  EXPECT_TRUE(good);
  const Result<void> bad = Error{ErrorCode::kIo, "disk is full"};
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "disk is full");
}

TEST(ResultDeathTest, AbortsWhenTheWrongSideIsAsked) {
  EXPECT_DEATH(static_cast<void>(MakeInt(-1).value()), "value\\(\\) of an error: value = -1");
  EXPECT_DEATH(static_cast<void>(MakeInt(1).error()), "error\\(\\) of a value");
}

TEST(CheckDeathTest, PrintsWhereWhatAndWhy) {
  const int population = 3;
  EXPECT_DEATH(FEDGEN_CHECK(population % 2 == 0, "population = {}", population),
               "result_test.cc:[0-9]+: check failed: population % 2 == 0: population = 3");
}

}  // namespace
}  // namespace fedgen
