// SPDX-License-Identifier: Apache-2.0

// The functions of lanes-inl.h and philox-inl.h, compiled for both widths as a kernel would:
// against the C++ library in double, against Key, and against each other bit for bit.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

#include "fedgen/base/aligned.h"
#include "fedgen/base/kernel.h"
#include "fedgen/base/random.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fedgen/base/lanes_test.cc"
#include <hwy/foreach_target.h>
//
#include "fedgen/base/lanes-inl.h"
#include "fedgen/base/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fedgen {
namespace HWY_NAMESPACE {

// Each writes f(in[i]) for i < count, a multiple of eight.
void SinLanes(const float* in, int count, float* out) {
  for (int at = 0; at < count; at += kLanes) Store(SinCos(Load(in + at)).sin, out + at);
}
void CosLanes(const float* in, int count, float* out) {
  for (int at = 0; at < count; at += kLanes) Store(SinCos(Load(in + at)).cos, out + at);
}
void ExpLanes(const float* in, int count, float* out) {
  for (int at = 0; at < count; at += kLanes) Store(Exp(Load(in + at)), out + at);
}
void LogLanes(const float* in, int count, float* out) {
  for (int at = 0; at < count; at += kLanes) Store(Log(Load(in + at)), out + at);
}
void TanhLanes(const float* in, int count, float* out) {
  for (int at = 0; at < count; at += kLanes) Store(Tanh(Load(in + at)), out + at);
}
void ReciprocalLanes(const float* in, int count, float* out) {
  for (int at = 0; at < count; at += kLanes) Store(Reciprocal(Load(in + at)), out + at);
}
// Operations whose corner cases (ties, signed zeros) could differ between the widths.
void RoundLanes(const float* in, int count, float* out) {
  for (int at = 0; at < count; at += kLanes) Store(Round(Load(in + at)), out + at);
}
void ClampLanes(const float* in, int count, float* out) {
  for (int at = 0; at < count; at += kLanes) {
    Store(Clamp(Load(in + at), Set(-0.0f), Set(1.0f)), out + at);
  }
}
void NegFmaLanes(const float* in, int count, float* out) {
  for (int at = 0; at < count; at += kLanes) {
    const F x = Load(in + at);
    Store(NegFma(x, x, Fma(x, Set(1.7f), Set(0.3f))), out + at);
  }
}

#if HWY_TARGET == HWY_AVX2
HWY_INLINE void StoreWords(Words words, std::uint32_t* out) { hn::StoreU(words, WordTag(), out); }
#else
inline void StoreWords(Words words, std::uint32_t* out) { *out = words; }
#endif

// out[w][i]: word w of block first + i; floats: UnitFloat of word 0. For i < count.
void BlocksLanes(std::uint64_t key, std::uint64_t first, int count, std::uint32_t* const out[4],
                 float* floats) {
  for (int at = 0; at < count; at += kLanes) {
    const WordBlock block = PhiloxBlocks(key, first + static_cast<std::uint64_t>(at));
    StoreWords(block.w0, out[0] + at);
    StoreWords(block.w1, out[1] + at);
    StoreWords(block.w2, out[2] + at);
    StoreWords(block.w3, out[3] + at);
    Store(UnitFloats(block.w0), floats + at);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fedgen
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fedgen {
namespace {

using Floats = AlignedVector<float>;
using Function = void (*)(const float*, int, float*);

Floats Apply(Function function, const Floats& in) {
  Floats out(in.size());
  function(in.data(), static_cast<int>(in.size()), out.data());
  return out;
}

// Evenly spaced from low to high, and for each multiple of pi / 2 on the way the floats around it,
// where the reduction cancels; padded to groups of eight.
Floats Grid(double low, double high, int num_points) {
  Floats grid;
  for (int point = 0; point < num_points; ++point) {
    grid.push_back(static_cast<float>(low + (high - low) * point / (num_points - 1)));
  }
  constexpr double kQuarter = std::numbers::pi / 2;
  for (double quarter = std::ceil(low / kQuarter); quarter * kQuarter <= high; ++quarter) {
    const auto at = static_cast<float>(quarter * kQuarter);
    for (const float x : {std::nextafter(at, -2e4F), at, std::nextafter(at, 2e4F)}) {
      if (x >= low && x <= high) grid.push_back(x);
    }
  }
  for (const float x : {0.0F, -0.0F, 1e-30F, -1e-30F, 1e-42F, 1e-8F, -1e-4F}) {
    if (x >= low && x <= high) grid.push_back(x);
  }
  grid.resize(static_cast<std::size_t>(PadToLaneGroup(static_cast<int>(grid.size()))));
  return grid;
}

struct Worst {
  double error = 0;
  float at = 0;
};

template <typename Error>
Worst FindWorst(const Floats& in, const Floats& out, const Error& error) {
  Worst worst;
  for (std::size_t index = 0; index < in.size(); ++index) {
    const double e = error(static_cast<double>(in[index]), static_cast<double>(out[index]));
    if (!(e <= worst.error)) worst = {e, in[index]};
  }
  return worst;
}

void ExpectSameBits(const Floats& in, const Floats& scalar, const Floats& simd) {
  int different = 0;
  for (std::size_t index = 0; index < in.size(); ++index) {
    if (std::bit_cast<std::uint32_t>(scalar[index]) == std::bit_cast<std::uint32_t>(simd[index])) {
      continue;
    }
    if (++different <= 3) {
      ADD_FAILURE() << "at " << in[index] << ": scalar " << scalar[index] << ", simd "
                    << simd[index];
    }
  }
  EXPECT_EQ(different, 0);
}

// The form of a function that each kernel would run.
#define FEDGEN_BOTH(function) \
  {FEDGEN_LANES_DISPATCH(Kernel::kScalar, function), FEDGEN_LANES_DISPATCH(BestKernel(), function)}

struct Both {
  Function scalar;
  Function simd;
};
const Both kSin = FEDGEN_BOTH(SinLanes);
const Both kCos = FEDGEN_BOTH(CosLanes);
const Both kExp = FEDGEN_BOTH(ExpLanes);
const Both kLog = FEDGEN_BOTH(LogLanes);
const Both kTanh = FEDGEN_BOTH(TanhLanes);
const Both kReciprocal = FEDGEN_BOTH(ReciprocalLanes);
const Both kRound = FEDGEN_BOTH(RoundLanes);
const Both kClamp = FEDGEN_BOTH(ClampLanes);
const Both kNegFma = FEDGEN_BOTH(NegFmaLanes);

TEST(SinCos, IsWithin2e7OfTheTruthUpTo100) {
  const Floats grid = Grid(-100, 100, 200001);
  const Worst sin = FindWorst(grid, Apply(kSin.simd, grid),
                              [](double x, double s) { return std::fabs(s - std::sin(x)); });
  EXPECT_LT(sin.error, 2e-7) << "sin at " << sin.at;
  const Worst cos = FindWorst(grid, Apply(kCos.simd, grid),
                              [](double x, double c) { return std::fabs(c - std::cos(x)); });
  EXPECT_LT(cos.error, 2e-7) << "cos at " << cos.at;
}

TEST(SinCos, StaysOnTheUnitCircleUpTo1e4) {
  const Floats grid = Grid(-1e4, 1e4, 200001);
  const Floats sin = Apply(kSin.simd, grid);
  const Floats cos = Apply(kCos.simd, grid);
  for (std::size_t index = 0; index < grid.size(); ++index) {
    const double s = sin[index];
    const double c = cos[index];
    ASSERT_NEAR(s * s + c * c, 1, 5e-7) << "at " << grid[index];
  }
}

TEST(SinCos, KnowsTheQuadrants) {
  const Floats in = {0,          1.57079633F, 3.14159265F, 4.71238898F, -1.57079633F, -3.14159265F,
                     6.2831853F, 7.85398163F};
  const Floats sin = Apply(kSin.scalar, in);
  const Floats cos = Apply(kCos.scalar, in);
  const double expected_sin[] = {0, 1, 0, -1, -1, 0, 0, 1};
  const double expected_cos[] = {1, 0, -1, 0, 0, -1, 1, 0};
  for (std::size_t index = 0; index < in.size(); ++index) {
    EXPECT_NEAR(sin[index], expected_sin[index], 1e-6) << "at " << in[index];
    EXPECT_NEAR(cos[index], expected_cos[index], 1e-6) << "at " << in[index];
  }
  EXPECT_EQ(sin[0], 0.0F);
  EXPECT_EQ(cos[0], 1.0F);
}

TEST(Exp, IsWithin3e7OfTheTruth) {
  const Floats grid = Grid(-87, 87, 200001);
  const Worst worst = FindWorst(grid, Apply(kExp.simd, grid), [](double x, double e) {
    return std::fabs(e - std::exp(x)) / std::exp(x);
  });
  EXPECT_LT(worst.error, 3e-7) << "at " << worst.at;
}

TEST(Exp, ClampsItsArgument) {
  const Floats in = {-87, -88, -1e30F, -std::numeric_limits<float>::infinity(),
                     87,  88,  1e30F,  std::numeric_limits<float>::infinity()};
  for (const Function function : {kExp.scalar, kExp.simd}) {
    const Floats out = Apply(function, in);
    for (std::size_t index = 0; index < 4; ++index) {
      EXPECT_EQ(out[index], out[0]);
      EXPECT_EQ(out[4 + index], out[4]);
    }
  }
}

TEST(Tanh, IsWithin3e7OfTheTruth) {
  const Floats grid = Grid(-25, 25, 200001);
  const Worst worst = FindWorst(grid, Apply(kTanh.simd, grid),
                                [](double x, double t) { return std::fabs(t - std::tanh(x)); });
  EXPECT_LT(worst.error, 3e-7) << "at " << worst.at;
}

TEST(Tanh, SaturatesAtOne) {
  const Floats out = Apply(kTanh.simd, {20, 1e10F, -20, -1e10F, 0, 0, 0, 0});
  EXPECT_EQ(out[0], 1.0F);
  EXPECT_EQ(out[1], 1.0F);
  EXPECT_EQ(out[2], -1.0F);
  EXPECT_EQ(out[3], -1.0F);
  EXPECT_EQ(out[4], 0.0F);
}

// From 1e-30 to 1e30, evenly in the exponent.
Floats Magnitudes() {
  Floats grid;
  for (int point = 0; point < 200000; ++point) {
    grid.push_back(static_cast<float>(std::pow(10.0, -30 + 60 * point / 199999.0)));
  }
  return grid;
}

TEST(Reciprocal, IsWithin3e7OfTheTruth) {
  const Floats grid = Magnitudes();
  const Worst worst = FindWorst(grid, Apply(kReciprocal.simd, grid),
                                [](double x, double r) { return std::fabs(r * x - 1); });
  EXPECT_LT(worst.error, 3e-7) << "at " << worst.at;
}

TEST(Log, IsWithin3e7OfTheTruth) {
  Floats grid = Magnitudes();
  for (const float x : {1.0F, std::nextafter(1.0F, 2.0F), std::nextafter(1.0F, 0.0F), 0x1p-24F,
                        1.41421354F, 1.41421366F, 0.70710677F, 0.70710683F,
                        std::numeric_limits<float>::min(), std::numeric_limits<float>::max()}) {
    grid.push_back(x);
  }
  for (const float x : Grid(0.4, 3, 200001)) {
    if (x > 0) grid.push_back(x);
  }
  grid.resize(grid.size() / 8 * 8);
  const Worst worst = FindWorst(grid, Apply(kLog.simd, grid), [](double x, double l) {
    return std::fabs(l - std::log(x)) / std::max(1.0, std::fabs(std::log(x)));
  });
  EXPECT_LT(worst.error, 3e-7) << "at " << worst.at;
  // Near 1 the error is small against the logarithm itself.
  const Floats near_one = Grid(0.9, 1.1, 100001);
  const Worst relative = FindWorst(near_one, Apply(kLog.simd, near_one), [](double x, double l) {
    return x <= 0.5 || x == 1 ? 0 : std::fabs(l / std::log(x) - 1);
  });
  EXPECT_LT(relative.error, 3e-7) << "at " << relative.at;
  EXPECT_EQ(Apply(kLog.simd, Floats(8, 1.0F))[0], 0.0F);
  ExpectSameBits(grid, Apply(kLog.scalar, grid), Apply(kLog.simd, grid));
}

TEST(Lanes, GiveTheSameBitsInBothWidths) {
  ExpectSameBits(Magnitudes(), Apply(kReciprocal.scalar, Magnitudes()),
                 Apply(kReciprocal.simd, Magnitudes()));
  for (const Both& both : {kSin, kCos}) {
    for (const Floats& grid : {Grid(-100, 100, 100001), Grid(-1e4, 1e4, 100001)}) {
      ExpectSameBits(grid, Apply(both.scalar, grid), Apply(both.simd, grid));
    }
  }
  for (const Both& both : {kExp, kTanh}) {
    const Floats grid = Grid(-100, 100, 100001);
    ExpectSameBits(grid, Apply(both.scalar, grid), Apply(both.simd, grid));
  }
  // Halves, so that Round meets its ties.
  Floats halves;
  for (int half = -64; half < 64; ++half) halves.push_back(static_cast<float>(half) / 2);
  for (const Both& both : {kRound, kClamp, kNegFma}) {
    const Floats grid = Grid(-3, 3, 50001);
    ExpectSameBits(grid, Apply(both.scalar, grid), Apply(both.simd, grid));
    ExpectSameBits(halves, Apply(both.scalar, halves), Apply(both.simd, halves));
  }
}

TEST(Round, SendsTiesToTheEvenNeighbour) {
  const Floats in = {0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -2.5F, 1e7F, 0.49999997F};
  const Floats expected = {0, 2, 2, 0, -2, -2, 1e7F, 0};
  EXPECT_EQ(Apply(kRound.scalar, in), expected);
  EXPECT_EQ(Apply(kRound.simd, in), expected);
}

TEST(PhiloxLanes, GiveTheWordsOfKeyBlock) {
  constexpr int kCount = 24;
  std::vector<std::uint32_t> words[4];
  for (auto& row : words) row.resize(kCount);
  std::uint32_t* const rows[4] = {words[0].data(), words[1].data(), words[2].data(),
                                  words[3].data()};
  Floats floats(kCount);
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    for (std::uint64_t trial = 0; trial < 500; ++trial) {
      const RandomBlock draw = Key(11).Block(trial);
      const Key key(draw[0] | std::uint64_t{draw[1]} << 32);
      // A first index as the worlds use it: the address of a kind of draw, and small numbers.
      const std::uint64_t first = (trial % 7) << 48 | draw[2] >> (trial % 32) >> 1;
      FEDGEN_LANES_DISPATCH(kernel, BlocksLanes)(key.bits(), first, kCount, rows, floats.data());
      for (std::size_t index = 0; index < kCount; ++index) {
        const RandomBlock block = key.Block(first + index);
        for (std::size_t word = 0; word < 4; ++word) {
          ASSERT_EQ(words[word][index], block[word])
              << KernelName(kernel) << ", block " << first + index << ", word " << word;
        }
        ASSERT_EQ(floats[index], UnitFloat(block[0]));
      }
    }
  }
}

}  // namespace
}  // namespace fedgen
#endif
