// SPDX-License-Identifier: Apache-2.0

// Can a certificate be shopped? A maker who may choose everything that the program lets a maker
// choose certifies 2,000 policies whose true rate is known, and shows for each the file with the
// best claim. Worlds are synthetic: outcome and cost follow from the key that a real world would be
// drawn from.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "fedgen/base/hash.h"
#include "fedgen/base/random.h"
#include "fedgen/certify/bounds.h"
#include "fedgen/certify/certificate.h"
#include "fedgen/certify/ladder.h"

namespace fedgen {
namespace {

constexpr int kPolicies = 2000;

struct Synthetic {
  double rate;  // of safe arrival
  // An arrival costs 0.3 to 0.5, a failure 1.
  double expected_cost() const { return 0.4 * rate + 1 - rate; }
};

Synthetic PolicyNumber(int index) { return {0.93 + 0.065 * index / kPolicies}; }

Certificate QuestionOf(int index, int version) {
  Certificate c;
  c.version = version;
  c.policy_sha256 = Sha256Hex("policy " + std::to_string(index));
  c.task_sha256 = Sha256Hex("task");
  return c;
}

// Drives the first `worlds` of the certificate's stream.
std::vector<double> Drive(const Synthetic& policy, std::uint64_t seed, std::int64_t worlds) {
  const Key key = Key(seed).Fork(Stream::kCertification);
  std::vector<double> costs(static_cast<std::size_t>(worlds));
  for (std::size_t world = 0; world < costs.size(); world += 2) {
    const RandomBlock block = key.Block(world / 2);
    for (std::size_t half = 0; half < 2 && world + half < costs.size(); ++half) {
      const bool safe = static_cast<double>(UnitFloat(block[2 * half])) < policy.rate;
      costs[world + half] =
          safe ? 0.3 + 0.2 * static_cast<double>(UnitFloat(block[2 * half + 1])) : 1;
    }
  }
  return costs;
}

void Fill(std::span<const double> costs, Certificate& c) {
  c.safe = std::count_if(costs.begin(), costs.end(), [](double cost) { return cost < 1; });
  c.mean_cost = 0;
  for (const double cost : costs) c.mean_cost += cost / static_cast<double>(costs.size());
  c.mean_cost = std::min(1.0, c.mean_cost);
  ComputeBounds(costs, {}, c);
}

// More than this many of all policies have probability below 1e-6 if each misses with `risk`.
int MostMisses(double risk) {
  int misses = 0;
  while (BinomialAtMost(misses, kPolicies, risk) < 1 - 1e-6) ++misses;
  return misses;
}

// Version 2: the maker looks at every rung up to 10,000 worlds and adds a line at any confidence.
// However they choose, the 99 % lines of all rungs together are wrong for at most 1 % of policies
// (lines above 99 % promise less), and lines at 90 % for at most 10 %. Choosing the confidence
// after the counts are known is why such a line is marked as the maker's choice.
TEST(Shopping, GainsNothingOnTheLadder) {
  int wrong = 0, wrong_at_90 = 0;
  for (int index = 0; index < kPolicies; ++index) {
    const Synthetic policy = PolicyNumber(index);
    const std::uint64_t stream = CertificationSeed(QuestionOf(index, 2));
    const std::vector<double> costs = Drive(policy, stream, 10'000);
    bool is_wrong = false, is_wrong_at_90 = false;
    for (const Rung& rung : kLadder) {
      if (rung.worlds > 10'000) break;
      Certificate c = QuestionOf(index, 2);
      c.worlds = rung.worlds;
      for (const double confidence : {0.99 + 1e-12, 0.999, 0.9}) {
        c.makers_choice = Promise{confidence, 0, 0};
        ASSERT_EQ(CertificationSeed(c), stream) << "size or confidence chose the worlds";
      }
      Fill(std::span(costs).first(static_cast<std::size_t>(rung.worlds)), c);
      const auto misses = [&](double safe_arrival, double expected_cost) {
        return safe_arrival > policy.rate || expected_cost < policy.expected_cost();
      };
      is_wrong |= misses(c.safe_arrival, c.expected_cost);
      const Promise choice = c.makers_choice.value_or(Promise{});
      is_wrong_at_90 |= misses(choice.safe_arrival, choice.expected_cost);
    }
    wrong += is_wrong ? 1 : 0;
    wrong_at_90 += is_wrong_at_90 ? 1 : 0;
  }
  RecordProperty("wrong", wrong);
  RecordProperty("wrong_at_90", wrong_at_90);
  EXPECT_LE(wrong, MostMisses(0.01));
  EXPECT_LE(wrong_at_90, MostMisses(0.1));
}

// All thirteen rungs, by their counts alone: between two rungs the count grows by a binomial.
TEST(Shopping, GainsNothingOnAnyRungOfSafeArrival) {
  int wrong = 0, wrong_at_80 = 0;
  for (int index = 0; index < kPolicies; ++index) {
    const Synthetic policy = PolicyNumber(index);
    std::mt19937_64 engine(CertificationSeed(QuestionOf(index, 2)));
    std::int64_t worlds = 0, safe = 0;
    bool is_wrong = false, is_wrong_at_80 = false;
    for (const Rung& rung : kLadder) {
      safe += std::binomial_distribution<std::int64_t>(rung.worlds - worlds, policy.rate)(engine);
      worlds = rung.worlds;
      is_wrong |= SuccessLowerBound(safe, worlds, StatementRisk(worlds, 0.99)) > policy.rate;
      is_wrong_at_80 |= SuccessLowerBound(safe, worlds, StatementRisk(worlds, 0.8)) > policy.rate;
    }
    wrong += is_wrong ? 1 : 0;
    wrong_at_80 += is_wrong_at_80 ? 1 : 0;
  }
  RecordProperty("wrong", wrong);
  RecordProperty("wrong_at_80", wrong_at_80);
  EXPECT_LE(wrong, MostMisses(0.005));
  EXPECT_LE(wrong_at_80, MostMisses(0.1));
  EXPECT_GT(wrong_at_80, 20) << "the bounds are not so wide that nothing could be wrong";
}

// Version 1: 200 confidences that differ in the twelfth digit, each with worlds of its own. The
// shopper's best claim is false for nearly every policy.
TEST(Shopping, BeatsVersionOne) {
  int wrong = 0;
  for (int index = 0; index < kPolicies; ++index) {
    const Synthetic policy = PolicyNumber(index);
    bool is_wrong = false;
    for (int attempt = 0; attempt < 200 && !is_wrong; ++attempt) {
      Certificate c = QuestionOf(index, 1);
      c.worlds = 528;
      c.confidence = 0.99 + attempt * 1e-12;
      const std::vector<double> costs = Drive(policy, CertificationSeed(c), c.worlds);
      c.safe = std::count_if(costs.begin(), costs.end(), [](double cost) { return cost < 1; });
      is_wrong = SuccessLowerBound(c.safe, c.worlds, (1 - c.confidence) / 2) > policy.rate;
    }
    wrong += is_wrong ? 1 : 0;
  }
  RecordProperty("wrong", wrong);
  EXPECT_GT(wrong, kPolicies / 4);
}

}  // namespace
}  // namespace fedgen
