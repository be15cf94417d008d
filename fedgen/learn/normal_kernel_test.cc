// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/normal_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

namespace fedgen {
namespace {

AlignedVector<float> Draw(Kernel kernel, Key key, std::size_t size) {
  AlignedVector<float> values(size);
  DrawNormals(kernel, key, values);
  return values;
}

TEST(DrawNormals, GivesTheSameBitsInBothKernels) {
  for (const std::size_t size : {32, 64, 1376, 4096}) {
    for (std::uint64_t trial = 0; trial < 50; ++trial) {
      const auto scalar = Draw(Kernel::kScalar, Key(1).Fork(trial), size);
      const auto simd = Draw(BestKernel(), Key(1).Fork(trial), size);
      for (std::size_t index = 0; index < size; ++index) {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(scalar[index]),
                  std::bit_cast<std::uint32_t>(simd[index]))
            << "size " << size << ", entry " << index;
      }
    }
  }
}

// Box and Muller in double, from the words that the entry is documented to use.
TEST(DrawNormals, IsBoxAndMullerOfTheKeysWords) {
  constexpr std::size_t kSize = 96;
  const Key key(77);
  const auto values = Draw(BestKernel(), key, kSize);
  for (std::size_t block = 0; block < kSize / 4; ++block) {
    const RandomBlock words = key.Block(block);
    for (std::size_t pair = 0; pair < 2; ++pair) {
      const double u = static_cast<double>(UnitFloat(words[2 * pair]));
      const double v = static_cast<double>(UnitFloat(words[2 * pair + 1]));
      const double radius = std::sqrt(-2 * std::log(1 - u));
      const double angle = 2 * std::numbers::pi * v;
      const std::size_t at = block + 2 * pair * (kSize / 4);
      EXPECT_NEAR(values[at], radius * std::cos(angle), 3e-6);
      EXPECT_NEAR(values[at + kSize / 4], radius * std::sin(angle), 3e-6);
    }
  }
}

TEST(DrawNormals, HasTheMomentsAndTailsOfTheNormalDistribution) {
  constexpr double kCount = 1 << 20;
  const auto values = Draw(BestKernel(), Key(2), std::size_t{1} << 20);
  double moment[5] = {};
  double beyond[4] = {};
  for (const float value : values) {
    const double x = static_cast<double>(value);
    for (int power = 1; power <= 4; ++power) moment[power] += std::pow(x, power) / kCount;
    for (int sigma = 1; sigma <= 3; ++sigma) beyond[sigma] += std::fabs(x) > sigma ? 1 / kCount : 0;
  }
  const double root = std::sqrt(kCount);  // variances of x^p: 1, 2, 15, 96
  EXPECT_NEAR(moment[1], 0, 5 / root);
  EXPECT_NEAR(moment[2], 1, 5 * std::sqrt(2) / root);
  EXPECT_NEAR(moment[3], 0, 5 * std::sqrt(15) / root);
  EXPECT_NEAR(moment[4], 3, 5 * std::sqrt(96) / root);
  for (int sigma = 1; sigma <= 3; ++sigma) {
    const double share = std::erfc(sigma / std::numbers::sqrt2);
    EXPECT_NEAR(beyond[sigma], share, 5 * std::sqrt(share * (1 - share)) / root);
  }
}

// Correlations of x and of x^2 between entries of a key, above all those of one block, and between
// keys: each is a mean of `kKeys` products of variance 1.
TEST(DrawNormals, IsUncorrelatedBetweenEntriesAndKeys) {
  constexpr int kKeys = 4000;
  constexpr std::size_t kSize = 32;
  std::vector<AlignedVector<float>> draws;
  for (std::uint64_t k = 0; k < kKeys; ++k)
    draws.push_back(Draw(BestKernel(), Key(3).Fork(k), kSize));
  const auto correlation = [&](std::size_t a, std::size_t b, std::size_t lag, bool squares) {
    double sum = 0;
    for (std::size_t k = 0; k < kKeys; ++k) {
      const double x = static_cast<double>(draws[k][a]);
      const double y = static_cast<double>(draws[(k + lag) % kKeys][b]);
      sum += squares ? (x * x - 1) * (y * y - 1) / 2 : x * y;
    }
    return sum / kKeys;
  };
  const double limit = 5.5 / std::sqrt(kKeys);
  for (std::size_t a = 0; a < kSize; ++a) {
    for (std::size_t b = 0; b < kSize; ++b) {
      if (a < b) {
        EXPECT_LT(std::fabs(correlation(a, b, 0, false)), limit) << a << ", " << b;
        EXPECT_LT(std::fabs(correlation(a, b, 0, true)), 2 * limit) << a << ", " << b;
      }
    }
    EXPECT_LT(std::fabs(correlation(a, a, 1, false)), limit) << a;
  }
}

TEST(PaddedNormals, IsTheNextMultipleOf32) {
  EXPECT_EQ(PaddedNormals(0), 0U);
  EXPECT_EQ(PaddedNormals(1), 32U);
  EXPECT_EQ(PaddedNormals(32), 32U);
  EXPECT_EQ(PaddedNormals(33), 64U);
}

}  // namespace
}  // namespace fedgen
