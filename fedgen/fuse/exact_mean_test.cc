// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fuse/exact_mean.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "fedgen/base/random.h"

namespace fedgen {
namespace {

float MeanOf(const std::vector<float>& values) {
  ExactMean mean;
  for (const float value : values) mean.Add({&value, 1});
  return mean.Mean()[0];
}

// Any finite float, as likely tiny as huge.
float AnyFloat(Key key, std::uint64_t index) {
  for (std::uint64_t attempt = 0;; ++attempt) {
    const float value = std::bit_cast<float>(key.Fork(index).Block(attempt)[0]);
    if (std::isfinite(value)) return value;
  }
}

// Oracle: floats that are whole numbers below 2^40 add up exactly in 128 bits, and one division of
// whole numbers is rounded by comparing remainders.
float IntegerMean(const std::vector<float>& values) {
  __extension__ using Wide = __int128;
  Wide sum = 0;
  for (const float value : values) sum += static_cast<Wide>(value);
  const bool negative = sum < 0;
  if (negative) sum = -sum;
  const auto n = static_cast<Wide>(values.size());
  // Neighbours of the quotient in float: the nearest of them, ties to even.
  const auto guess = static_cast<float>(static_cast<double>(sum) / static_cast<double>(n));
  float best = guess;
  const auto distance = [&](float value) {  // |value - sum / n| n 2^40, exactly
    const auto scaled = static_cast<Wide>(std::ldexp(static_cast<double>(value), 40));
    const Wide difference = scaled * n - (sum << 40);
    return difference < 0 ? -difference : difference;
  };
  for (const float near : {std::nextafter(guess, 0.0F), std::nextafter(guess, 1e30F)}) {
    const bool even = (std::bit_cast<std::uint32_t>(near) & 1) == 0;
    if (distance(near) < distance(best) || (distance(near) == distance(best) && even)) best = near;
  }
  return negative ? -best : best;
}

TEST(ExactMean, AgreesWithWholeNumbersRoundedOnce) {
  for (std::uint64_t trial = 0; trial < 5000; ++trial) {
    const Key key = Key(3).Fork(trial);
    std::vector<float> values(1 + key.Block(0)[0] % 9);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const RandomBlock words = key.Block(i + 1);
      const int bits = UniformInt(words[0], 1, 40);
      values[i] = std::floor(std::ldexp(UnitFloat(words[1]), bits));
      if (words[2] % 2 == 0) values[i] = -values[i];
    }
    ASSERT_EQ(MeanOf(values), IntegerMean(values)) << trial;
  }
}

TEST(ExactMean, DoesNotCareAboutOrder) {
  for (std::uint64_t trial = 0; trial < 500; ++trial) {
    std::vector<float> values;
    for (std::uint64_t i = 0; i < 7; ++i) values.push_back(AnyFloat(Key(trial), i));
    const float mean = MeanOf(values);
    std::ranges::sort(values);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(MeanOf(values)), std::bit_cast<std::uint32_t>(mean));
    std::ranges::reverse(values);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(MeanOf(values)), std::bit_cast<std::uint32_t>(mean));
  }
}

TEST(ExactMean, OfEqualNumbersIsTheNumber) {
  for (std::uint64_t trial = 0; trial < 2000; ++trial) {
    const float value = AnyFloat(Key(17), trial);
    for (const std::size_t count : {1, 2, 3, 7, 1000}) {
      ASSERT_EQ(MeanOf(std::vector<float>(count, value)), value) << trial << ", " << count;
    }
  }
}

TEST(ExactMean, LosesNothingBetweenHugeAndTiny) {
  const float huge = std::numeric_limits<float>::max();
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(MeanOf({huge, tiny, -huge}), 0.0F);      // tiny / 3 is less than half of tiny
  EXPECT_EQ(MeanOf({huge, 3 * tiny, -huge}), tiny);  // doubles would have dropped it
  EXPECT_EQ(MeanOf({huge, 2 * tiny, -huge}), tiny);  // 2/3 is nearer to 1
  EXPECT_EQ(MeanOf({tiny, 0}), 0.0F);                // a tie goes to even
  EXPECT_EQ(MeanOf({3 * tiny, 0}), 2 * tiny);        // 1.5: to even
  EXPECT_EQ(MeanOf({huge, huge, huge}), huge);
  EXPECT_EQ(MeanOf({-huge, -tiny, huge, -tiny}), 0.0F);  // -2/4 of tiny: to even
  EXPECT_EQ(MeanOf({1, 1 + 0x1p-23F}), 1.0F);            // halfway: to even
  EXPECT_EQ(MeanOf({1 + 0x1p-23F, 1 + 0x1p-22F}), 1 + 0x1p-22F);
}

TEST(ExactMean, ComesBackFromBytes) {
  ExactMean mean;
  mean.Add(std::vector<float>{1.5F, -2e-40F});
  mean.Add(std::vector<float>{-3e30F, 7});
  ExactMean back;
  const std::string bytes = ToBytes(mean);
  Reader again(bytes);
  again(back);
  EXPECT_EQ(again.problem(), "");
  EXPECT_EQ(back, mean);
}

}  // namespace
}  // namespace fedgen
