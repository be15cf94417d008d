// SPDX-License-Identifier: Apache-2.0
#include "fedgen/world/draw_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "fedgen/base/aligned.h"

namespace fedgen {
namespace {

constexpr int kMost = 104;  // entries, a multiple of eight

struct Columns {
  Columns() : a(kMost, -1), b(kMost, -1), c(kMost, -1) {}
  AlignedVector<float> a, b, c;
};

TEST(DrawTriples, ScalesTheWordsOfTheKeyForAnyCount) {
  const UniformTriple uniform{{-5, 2, 0.1F}, {10, 8, 0.15F}};
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    for (int count = 0; count <= 100; ++count) {
      const Key key = Key(17).Fork(static_cast<std::uint64_t>(count));
      const std::uint64_t first = std::uint64_t{2} << 48 | static_cast<std::uint64_t>(3 * count);
      Columns columns;
      DrawTriples(kernel, key, first, count, uniform, columns.a.data(), columns.b.data(),
                  columns.c.data());
      for (std::size_t entry = 0; entry < static_cast<std::size_t>(count); ++entry) {
        const RandomBlock words = key.Block(first + entry);
        ASSERT_EQ(columns.a[entry], std::fma(10.0F, UnitFloat(words[0]), -5.0F));
        ASSERT_EQ(columns.b[entry], std::fma(8.0F, UnitFloat(words[1]), 2.0F));
        ASSERT_EQ(columns.c[entry], std::fma(0.15F, UnitFloat(words[2]), 0.1F));
      }
      const auto padded = static_cast<std::size_t>(PadToLaneGroup(count));
      for (std::size_t entry = padded; entry < kMost; ++entry) {
        ASSERT_EQ(columns.a[entry], -1.0F) << "wrote past the last group of eight";
      }
    }
  }
}

TEST(DrawTriples, IsTheConstantWhereTheWidthIsZero) {
  Columns columns;
  DrawTriples(BestKernel(), Key(1), 0, 16, {{1, 2, 3}, {0, 0, 0}}, columns.a.data(),
              columns.b.data(), columns.c.data());
  for (std::size_t entry = 0; entry < 16; ++entry) {
    EXPECT_EQ(columns.a[entry], 1.0F);
    EXPECT_EQ(columns.b[entry], 2.0F);
    EXPECT_EQ(columns.c[entry], 3.0F);
  }
}

// Eq. 5 in double. The relative error of k grows where u comes near 1: du / (1 - u), three halves
// of it in k; share <= 0.99 keeps that below 1e-4.
TEST(DrawWaves, FollowTheSpectrumsQuantiles) {
  constexpr double k0 = 0.12;
  constexpr double kShare = 0.95;
  for (const int num_modes : {8, 32, 96}) {
    for (std::uint64_t trial = 0; trial < 200; ++trial) {
      const Key key = Key(18).Fork(trial);
      Columns waves;
      DrawWaves(BestKernel(), key, num_modes, static_cast<float>(k0), static_cast<float>(kShare),
                waves.a.data(), waves.b.data(), waves.c.data());
      for (std::size_t mode = 0; mode < static_cast<std::size_t>(num_modes); ++mode) {
        const RandomBlock words = key.Block(mode);
        const double u = kShare *
                         (static_cast<double>(mode) + static_cast<double>(UnitFloat(words[0]))) /
                         num_modes;
        const double k = k0 * std::sqrt(std::pow(1 - u, -3) - 1);
        const double angle = 2 * std::numbers::pi * static_cast<double>(UnitFloat(words[1]));
        // Near u = 0, k0 sqrt(3 u) hides a cancellation: an error e in (1 - u)^-3 moves k by k0
        // sqrt(e).
        const double tolerance = 1e-4 * k + k0 * 1e-3;
        ASSERT_NEAR(waves.a[mode], k * std::cos(angle), tolerance);
        ASSERT_NEAR(waves.b[mode], k * std::sin(angle), tolerance);
        ASSERT_EQ(waves.c[mode], UnitFloat(words[2]));
      }
    }
  }
}

// Strata: mode m's share of the variance below its wave number lies in [m, m + 1) / num_modes.
TEST(DrawWaves, GiveEachModeItsStratum) {
  constexpr int kModes = 32;
  constexpr double kShare = 0.9;
  Columns waves;
  for (std::uint64_t trial = 0; trial < 500; ++trial) {
    DrawWaves(BestKernel(), Key(19).Fork(trial), kModes, 1, static_cast<float>(kShare),
              waves.a.data(), waves.b.data(), waves.c.data());
    for (std::size_t mode = 0; mode < kModes; ++mode) {
      const double k2 = std::pow(static_cast<double>(waves.a[mode]), 2) +
                        std::pow(static_cast<double>(waves.b[mode]), 2);
      const double stratum = (1 - 1 / std::cbrt(1 + k2)) / kShare * kModes;
      ASSERT_GE(stratum, static_cast<double>(mode) - 1e-4);
      ASSERT_LE(stratum, static_cast<double>(mode) + 1 + 1e-4);
    }
  }
}

TEST(DrawWaves, GiveTheSameBitsInBothKernels) {
  for (std::uint64_t trial = 0; trial < 1000; ++trial) {
    const Key key = Key(20).Fork(trial);
    Columns scalar;
    Columns simd;
    const float share = 0.5F + 0.499F * UnitFloat(key.Block(0)[0]);
    DrawWaves(Kernel::kScalar, key, 64, 0.3F, share, scalar.a.data(), scalar.b.data(),
              scalar.c.data());
    DrawWaves(BestKernel(), key, 64, 0.3F, share, simd.a.data(), simd.b.data(), simd.c.data());
    ASSERT_EQ(scalar.a, simd.a);
    ASSERT_EQ(scalar.b, simd.b);
    ASSERT_EQ(scalar.c, simd.c);
  }
}

}  // namespace
}  // namespace fedgen
