// SPDX-License-Identifier: Apache-2.0
#include "fedgen/base/random.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>
#include <vector>

namespace fedgen {
namespace {

// Philox4x32-10 as its paper writes it (Eq. 1), with the whole counter, so that the published
// answers can be asked of it.
RandomBlock NaivePhilox(RandomBlock counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

std::uint32_t Low(std::uint64_t bits) { return static_cast<std::uint32_t>(bits); }
std::uint32_t High(std::uint64_t bits) { return static_cast<std::uint32_t>(bits >> 32); }

// Sum of (observed - expected)^2 / expected over the counts of equally likely cells.
double ChiSquare(const std::vector<int>& counts, double total) {
  const double expected = total / static_cast<double>(counts.size());
  double sum = 0;
  for (const int count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

// What chi-square exceeds with probability 1e-6 (Wilson and Hilferty's cube root is normal).
double ChiSquareLimit(double degrees) {
  const double spread = 2 / (9 * degrees);
  return degrees * std::pow(1 - spread + 4.75 * std::sqrt(spread), 3);
}

// The published answers of the Random123 library for philox4x32-10.
TEST(NaivePhilox, GivesThePublishedAnswers) {
  EXPECT_EQ(NaivePhilox({0, 0, 0, 0}, {0, 0}),
            (RandomBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(NaivePhilox({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}),
            (RandomBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(NaivePhilox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (RandomBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Key, GivesThePublishedAnswerAtZero) {
  EXPECT_EQ(Key(0).Block(0), (RandomBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

TEST(Key, DrawsPhiloxBlocksOfDomainZero) {
  for (std::uint64_t trial = 0; trial < 1000; ++trial) {
    const RandomBlock words = Key(7).Block(trial);
    const std::uint64_t bits = words[0] | std::uint64_t{words[1]} << 32;
    const std::uint64_t index = words[2] | std::uint64_t{words[3]} << 32;
    EXPECT_EQ(Key(bits).Block(index),
              NaivePhilox({Low(index), High(index), 0, 0}, {Low(bits), High(bits)}));
  }
}

TEST(Key, ForksToPhiloxBlocksOfDomainOne) {
  for (std::uint64_t trial = 0; trial < 1000; ++trial) {
    const RandomBlock words = Key(8).Block(trial);
    const std::uint64_t bits = words[0] | std::uint64_t{words[1]} << 32;
    const std::uint64_t index = words[2] | std::uint64_t{words[3]} << 32;
    const RandomBlock block = NaivePhilox({Low(index), High(index), 1, 0}, {Low(bits), High(bits)});
    EXPECT_EQ(Key(bits).Fork(index).bits(), block[0] | std::uint64_t{block[1]} << 32);
  }
}

TEST(Key, ForksToNamesThatAreNeverItsDraws) {
  const Key key(2024);
  std::set<std::uint64_t> draws;
  for (std::uint64_t index = 0; index < 20000; ++index) {
    const RandomBlock block = key.Block(index);
    draws.insert(block[0] | std::uint64_t{block[1]} << 32);
    draws.insert(block[2] | std::uint64_t{block[3]} << 32);
  }
  for (std::uint64_t index = 0; index < 20000; ++index) {
    EXPECT_EQ(draws.count(key.Fork(index).bits()), 0U) << "fork " << index;
  }
}

// 2e5 children of neighbouring parents share a name with probability 2e5^2 / 2^65 = 1e-9.
TEST(Key, NamesEveryChildOfNeighbouringParentsDifferently) {
  std::set<std::uint64_t> names;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    for (std::uint64_t child = 0; child < 1000; ++child) names.insert(Key(seed).Fork(child).bits());
  }
  EXPECT_EQ(names.size(), 200000U);
}

TEST(Key, ForksAStreamByItsNumber) {
  const Key key(5);
  EXPECT_EQ(key.Fork(Stream::kEvaluation), key.Fork(5));
  EXPECT_NE(key.Fork(Stream::kTraining), key.Fork(Stream::kCertification));
}

// Each of the 128 bits is set in half of the blocks: five standard deviations, sqrt(n) / 2 each.
void ExpectBalancedBits(const std::vector<RandomBlock>& blocks) {
  std::array<int, 128> set_count{};
  for (const RandomBlock& block : blocks) {
    for (std::size_t bit = 0; bit < 128; ++bit) set_count[bit] += block[bit / 32] >> (bit % 32) & 1;
  }
  const double n = static_cast<double>(blocks.size());
  for (std::size_t bit = 0; bit < 128; ++bit) {
    EXPECT_NEAR(set_count[bit], n / 2, 5 * std::sqrt(n) / 2) << "bit " << bit;
  }
}

RandomBlock Xor(const RandomBlock& a, const RandomBlock& b) {
  return {a[0] ^ b[0], a[1] ^ b[1], a[2] ^ b[2], a[3] ^ b[3]};
}

TEST(Key, HasBalancedBitsOverNeighbouringSeedsAndIndices) {
  std::vector<RandomBlock> over_seeds;
  std::vector<RandomBlock> over_indices;
  std::vector<RandomBlock> over_forks;
  for (std::uint64_t n = 0; n < 20000; ++n) {
    over_seeds.push_back(Key(n).Block(0));
    over_indices.push_back(Key(1).Block(n));
    over_forks.push_back(Key(1).Fork(n).Block(0));
  }
  ExpectBalancedBits(over_seeds);
  ExpectBalancedBits(over_indices);
  ExpectBalancedBits(over_forks);
}

// If neighbours were related, the bits in which they differ would not be fair coins.
TEST(Key, DiffersFromItsNeighboursInFairCoins) {
  std::vector<RandomBlock> seeds;
  std::vector<RandomBlock> indices;
  std::vector<RandomBlock> forks;
  std::vector<RandomBlock> shifted;  // block i of seed n against block i + 1 of seed n + 1
  for (std::uint64_t n = 0; n < 20000; ++n) {
    seeds.push_back(Xor(Key(n).Block(0), Key(n + 1).Block(0)));
    indices.push_back(Xor(Key(1).Block(n), Key(1).Block(n + 1)));
    forks.push_back(Xor(Key(1).Fork(n).Block(3), Key(1).Fork(n + 1).Block(3)));
    shifted.push_back(Xor(Key(n).Block(3), Key(n + 1).Block(4)));
  }
  ExpectBalancedBits(seeds);
  ExpectBalancedBits(indices);
  ExpectBalancedBits(forks);
  ExpectBalancedBits(shifted);
}

// The sample correlation of n independent pairs has standard deviation 1 / sqrt(n).
TEST(Key, IsUncorrelatedBetweenNeighbouringSeeds) {
  constexpr int kPairs = 20000;
  for (std::uint64_t distance = 1; distance <= 3; ++distance) {
    double sum = 0;
    for (std::uint64_t n = 0; n < kPairs; ++n) {
      const double a = UnitFloat(Key(n).Block(0)[0]) - 0.5;
      const double b = UnitFloat(Key(n + distance).Block(0)[0]) - 0.5;
      sum += 12 * a * b;
    }
    EXPECT_LT(std::fabs(sum / kPairs), 5 / std::sqrt(kPairs)) << "distance " << distance;
  }
}

TEST(UnitFloat, RunsFromZeroToJustBelowOne) {
  EXPECT_EQ(UnitFloat(0), 0.0F);
  EXPECT_EQ(UnitFloat(0xFF), 0.0F);
  EXPECT_EQ(UnitFloat(0x100), 0x1p-24F);
  EXPECT_EQ(UnitFloat(0x80000000), 0.5F);
  EXPECT_EQ(UnitFloat(0xFFFFFFFF), 1.0F - 0x1p-24F);
}

TEST(UniformInt, ReachesBothEndsAndNothingElse) {
  EXPECT_EQ(UniformInt(0, 15, 30), 15);
  EXPECT_EQ(UniformInt(0xFFFFFFFF, 15, 30), 30);
  EXPECT_EQ(UniformInt(0, -3, 3), -3);
  EXPECT_EQ(UniformInt(0xFFFFFFFF, -3, 3), 3);
  EXPECT_EQ(UniformInt(0xDEADBEEF, 4, 4), 4);
  // Word w is in cell floor(w n / 2^32): the boundaries of n = 3 are at 2^32 / 3.
  EXPECT_EQ(UniformInt(0x55555555, 0, 2), 0);
  EXPECT_EQ(UniformInt(0x55555556, 0, 2), 1);
  EXPECT_EQ(UniformInt(0xAAAAAAAA, 0, 2), 1);
  EXPECT_EQ(UniformInt(0xAAAAAAAB, 0, 2), 2);
}

TEST(UniformInt, DrawsEachValueEquallyOften) {
  std::vector<int> counts(16);
  for (std::uint64_t n = 0; n < 50000; ++n) {
    ++counts[static_cast<std::size_t>(UniformInt(Key(3).Block(n)[1], 15, 30) - 15)];
  }
  EXPECT_LT(ChiSquare(counts, 50000), ChiSquareLimit(15));
}

TEST(UnitFloat, FillsTheUnitIntervalEvenly) {
  std::vector<int> counts(64);
  for (std::uint64_t n = 0; n < 50000; ++n) {
    ++counts[static_cast<std::size_t>(UnitFloat(Key(4).Block(n)[2]) * 64)];
  }
  EXPECT_LT(ChiSquare(counts, 50000), ChiSquareLimit(63));
}

}  // namespace
}  // namespace fedgen
