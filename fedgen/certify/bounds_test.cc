// SPDX-License-Identifier: Apache-2.0
#include "fedgen/certify/bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "fedgen/base/random.h"

namespace fedgen {
namespace {

// P(K = k) for k = 0..n of Binomial(n, p), each term from its logarithm.
std::vector<double> BinomialPmf(int n, double p) {
  std::vector<double> pmf;
  for (int k = 0; k <= n; ++k) {
    pmf.push_back(std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) +
                           k * std::log(p) + (n - k) * std::log1p(-p)));
  }
  return pmf;
}

// The distribution of a sum of n i.i.d. samples, by repeated convolution of one sample's.
std::vector<double> SumPmf(int n, const std::vector<double>& sample) {
  std::vector<double> pmf = {1.0};
  for (int count = 0; count < n; ++count) {
    std::vector<double> next(pmf.size() + sample.size() - 1, 0.0);
    for (std::size_t sum = 0; sum < pmf.size(); ++sum) {
      for (std::size_t value = 0; value < sample.size(); ++value) {
        next[sum + value] += pmf[sum] * sample[value];
      }
    }
    pmf = std::move(next);
  }
  return pmf;
}

bool Misses(const ProportionInterval& interval, double truth) {
  return truth < interval.low || truth > interval.high;
}

TEST(ClopperPearson, MatchesPublishedDigits) {
  const ProportionInterval interval = ClopperPearson(990, 1000, 0.95);
  EXPECT_NEAR(interval.low, 0.981686756945, 1e-12);
  EXPECT_NEAR(interval.high, 0.995194489309, 1e-12);
}

// With k = 0 the upper end solves (1 - p)^n = alpha / 2; with k = n the lower end solves p^n =
// alpha / 2.
TEST(ClopperPearson, HasClosedFormsAtTheEnds) {
  const ProportionInterval none = ClopperPearson(0, 20, 0.9);
  EXPECT_EQ(none.low, 0.0);
  EXPECT_NEAR(none.high, 1 - std::pow(0.05, 1.0 / 20), 1e-15);
  const ProportionInterval all = ClopperPearson(20, 20, 0.9);
  EXPECT_NEAR(all.low, std::pow(0.05, 1.0 / 20), 1e-15);
  EXPECT_EQ(all.high, 1.0);
  const ProportionInterval one_of_one = ClopperPearson(1, 1, 0.95);
  EXPECT_NEAR(one_of_one.low, 0.025, 1e-15);
  EXPECT_EQ(one_of_one.high, 1.0);
}

TEST(ClopperPearson, SaysNothingWithoutTrials) {
  const ProportionInterval interval = ClopperPearson(0, 0, 0.99);
  EXPECT_EQ(interval.low, 0.0);
  EXPECT_EQ(interval.high, 1.0);
}

TEST(ClopperPearson, StaysFiniteForTenMillionTrialsAndTinyRisk) {
  const ProportionInterval all = ClopperPearson(10'000'000, 10'000'000, 1 - 1e-9);
  EXPECT_GT(all.low, 0.99999);
  EXPECT_LT(all.low, 1.0);
  const ProportionInterval most = ClopperPearson(9'999'000, 10'000'000, 1 - 1e-9);
  EXPECT_GT(most.low, 0.9998);
  EXPECT_LT(most.low, 0.9999);
  EXPECT_GT(most.high, 0.9999);
  EXPECT_LT(most.high, 1.0);
}

// Each end puts exactly alpha / 2 into the tail beyond what was seen: the definition of the
// interval, by sums of the pmf instead of the beta quantile.
TEST(ClopperPearson, EndsSolveTheTailEquations) {
  constexpr int kTrials = 60;
  constexpr double kTail = 0.005;
  for (int k = 1; k < kTrials; ++k) {
    const ProportionInterval interval = ClopperPearson(k, kTrials, 1 - 2 * kTail);
    double at_least = 0;
    double at_most = 0;
    const std::vector<double> at_low = BinomialPmf(kTrials, interval.low);
    const std::vector<double> at_high = BinomialPmf(kTrials, interval.high);
    for (int j = k; j <= kTrials; ++j) at_least += at_low[static_cast<std::size_t>(j)];
    for (int j = 0; j <= k; ++j) at_most += at_high[static_cast<std::size_t>(j)];
    EXPECT_NEAR(at_least, kTail, 1e-11) << k;
    EXPECT_NEAR(at_most, kTail, 1e-11) << k;
  }
}

TEST(ClopperPearson, MirrorsWhenSuccessAndFailureSwap) {
  for (int k = 0; k <= 37; ++k) {
    const ProportionInterval successes = ClopperPearson(k, 37, 0.95);
    const ProportionInterval failures = ClopperPearson(37 - k, 37, 0.95);
    EXPECT_NEAR(successes.low, 1 - failures.high, 1e-14);
    EXPECT_NEAR(successes.high, 1 - failures.low, 1e-14);
  }
}

TEST(ClopperPearson, WidensWithConfidenceAndNarrowsWithTrials) {
  const ProportionInterval sure = ClopperPearson(180, 1000, 0.99);
  const ProportionInterval less_sure = ClopperPearson(180, 1000, 0.9);
  const ProportionInterval more_trials = ClopperPearson(1800, 10000, 0.99);
  EXPECT_LT(sure.low, less_sure.low);
  EXPECT_GT(sure.high, less_sure.high);
  EXPECT_LT(sure.low, more_trials.low);
  EXPECT_GT(sure.high, more_trials.high);
}

// Coverage, exactly: the probability that the interval misses p is a finite sum over k.
TEST(ClopperPearson, MissesAtMostAsOftenAsPromised) {
  for (const double confidence : {0.9, 0.95, 0.99}) {
    for (const int n : {1, 2, 5, 10, 50, 200}) {
      std::vector<ProportionInterval> intervals;
      for (int k = 0; k <= n; ++k) intervals.push_back(ClopperPearson(k, n, confidence));
      for (int step = 1; step < 500; ++step) {
        const double p = step / 500.0;
        const std::vector<double> pmf = BinomialPmf(n, p);
        double miss = 0;
        for (std::size_t k = 0; k < pmf.size(); ++k) miss += Misses(intervals[k], p) ? pmf[k] : 0;
        EXPECT_LE(miss, 1 - confidence + 1e-12) << "n = " << n << ", p = " << p;
      }
    }
  }
}

// sqrt(log(2 / 0.01) / 20000) = 0.016276236307187...
TEST(HoeffdingInterval, MatchesItsFormula) {
  const ProportionInterval interval = HoeffdingInterval(0.5, 10000, 0.99);
  EXPECT_NEAR(interval.low, 0.5 - 0.016276236307, 1e-12);
  EXPECT_NEAR(interval.high, 0.5 + 0.016276236307, 1e-12);
}

TEST(HoeffdingInterval, IsCutToTheUnitInterval) {
  EXPECT_EQ(HoeffdingInterval(0.001, 1000, 0.99).low, 0.0);
  EXPECT_EQ(HoeffdingInterval(0.999, 1000, 0.99).high, 1.0);
  const ProportionInterval nothing = HoeffdingInterval(0, 0, 0.99);
  EXPECT_EQ(nothing.low, 0.0);
  EXPECT_EQ(nothing.high, 1.0);
}

TEST(HoeffdingInterval, IsAQuarterAsWideWithSixteenTimesTheSamples) {
  const ProportionInterval few = HoeffdingInterval(0.5, 1000, 0.95);
  const ProportionInterval many = HoeffdingInterval(0.5, 16000, 0.95);
  EXPECT_NEAR((few.high - few.low) / (many.high - many.low), 4, 1e-12);
}

// Worlds of four starts whose outcomes hang together: half of the worlds are hard (no start
// arrives), the rest let 3 or 4 of 4 arrive. The sum over n worlds has a distribution we can
// convolve exactly. Hoeffding over worlds keeps its promise; Clopper-Pearson over starts, which
// takes them for independent, misses 14.85 % of the time instead of 1 %.
TEST(HoeffdingInterval, KeepsItsPromiseWhereStartsShareAWorld) {
  constexpr int kWorlds = 100;
  constexpr int kStarts = 4;
  constexpr double kConfidence = 0.99;
  const std::vector<double> arrivals = {0.5, 0, 0, 0.2, 0.3};
  const double truth = (3 * 0.2 + 4 * 0.3) / kStarts;
  const std::vector<double> pmf = SumPmf(kWorlds, arrivals);
  double hoeffding_miss = 0;
  double clopper_pearson_miss = 0;
  for (int sum = 0; sum <= kWorlds * kStarts; ++sum) {
    const double probability = pmf[static_cast<std::size_t>(sum)];
    const double mean = static_cast<double>(sum) / (kWorlds * kStarts);
    if (Misses(HoeffdingInterval(mean, kWorlds, kConfidence), truth)) hoeffding_miss += probability;
    if (Misses(ClopperPearson(sum, kWorlds * kStarts, kConfidence), truth)) {
      clopper_pearson_miss += probability;
    }
  }
  EXPECT_LE(hoeffding_miss, 1 - kConfidence);
  EXPECT_NEAR(clopper_pearson_miss, 0.1485, 1e-4);
}

TEST(HoeffdingInterval, MissesAtMostAsOftenAsPromised) {
  for (const double confidence : {0.9, 0.99}) {
    for (const int n : {1, 3, 10, 100}) {
      for (int step = 1; step < 200; ++step) {
        const double p = step / 200.0;
        const std::vector<double> pmf = BinomialPmf(n, p);
        double miss = 0;
        for (std::size_t k = 0; k < pmf.size(); ++k) {
          const double mean = static_cast<double>(k) / n;
          miss += Misses(HoeffdingInterval(mean, n, confidence), p) ? pmf[k] : 0;
        }
        EXPECT_LE(miss, 1 - confidence + 1e-12) << "n = " << n << ", p = " << p;
      }
    }
  }
}

TEST(BinomialAtMost, AddsUpThePmf) {
  for (const double p : {0.01, 0.3, 0.9}) {
    const std::vector<double> pmf = BinomialPmf(40, p);
    double sum = 0;
    for (int k = 0; k <= 40; ++k) {
      sum += pmf[static_cast<std::size_t>(k)];
      EXPECT_NEAR(BinomialAtMost(k, 40, p), sum, 1e-12) << k << " of 40 at " << p;
    }
  }
  EXPECT_EQ(BinomialAtMost(3, 3, 0.5), 1.0);
  EXPECT_EQ(BinomialAtMost(0, 0, 0.5), 1.0);
  EXPECT_EQ(BinomialAtMost(0, 10, 0), 1.0);
  EXPECT_EQ(BinomialAtMost(9, 10, 1), 0.0);
}

// The failure figures of the same data in docs: 4 of 200 and 200 of 10,000 at 99 %.
TEST(OneSidedBounds, MatchKnownFigures) {
  EXPECT_NEAR(FailureUpperBound(4, 200, 0.01), 0.05693, 5e-6);
  EXPECT_NEAR(FailureUpperBound(200, 10000, 0.01), 0.0235, 5e-5);
  EXPECT_NEAR(FailureUpperBound(0, 459, 0.01), 0.01, 2e-5);
  EXPECT_LE(FailureUpperBound(0, 459, 0.01), 0.01);
  EXPECT_GT(FailureUpperBound(0, 458, 0.01), 0.01);
}

TEST(OneSidedBounds, AreTheEndsOfTheTwoSidedIntervalAtHalfTheRisk) {
  for (int k = 0; k <= 25; ++k) {
    const ProportionInterval interval = ClopperPearson(k, 25, 0.96);
    EXPECT_NEAR(SuccessLowerBound(k, 25, 0.02), interval.low, 1e-13);
    EXPECT_NEAR(FailureUpperBound(k, 25, 0.02), interval.high, 1e-13);
    EXPECT_NEAR(SuccessLowerBound(k, 25, 0.02), 1 - FailureUpperBound(25 - k, 25, 0.02), 1e-13);
  }
}

TEST(OneSidedBounds, SayNothingWithoutTrials) {
  EXPECT_EQ(SuccessLowerBound(0, 0, 0.01), 0.0);
  EXPECT_EQ(FailureUpperBound(0, 0, 0.01), 1.0);
}

// Coverage, exactly: the probability that the bound lies below p is a finite sum over k.
TEST(OneSidedBounds, MissAtMostAsOftenAsPromised) {
  for (const double delta : {0.1, 0.01}) {
    for (const int n : {1, 2, 10, 200}) {
      std::vector<ProportionInterval> bounds;
      for (int k = 0; k <= n; ++k) {
        bounds.push_back({SuccessLowerBound(k, n, delta), FailureUpperBound(k, n, delta)});
      }
      for (int step = 1; step < 200; ++step) {
        const double p = step / 200.0;
        const std::vector<double> pmf = BinomialPmf(n, p);
        double above = 0;
        double below = 0;
        for (std::size_t k = 0; k < pmf.size(); ++k) {
          if (bounds[k].low > p) above += pmf[k];
          if (bounds[k].high < p) below += pmf[k];
        }
        EXPECT_LE(above, delta + 1e-12) << "n = " << n << ", p = " << p;
        EXPECT_LE(below, delta + 1e-12) << "n = " << n << ", p = " << p;
      }
    }
  }
}

// `failures` ones among n samples, spread evenly.
std::vector<double> Spread(std::size_t failures, std::size_t n) {
  std::vector<double> samples(n, 0.0);
  for (std::size_t at = 0; at < failures; ++at) samples[(2 * at + 1) * n / (2 * failures)] = 1;
  return samples;
}

// The mean bound over seeded orders of the same samples.
double MeanOverOrders(std::vector<double> samples, int num_orders, double delta) {
  double sum = 0;
  for (int order = 0; order < num_orders; ++order) {
    const Key key = Key(7).Fork(static_cast<std::uint64_t>(order));
    for (std::size_t at = samples.size() - 1; at > 0; --at) {
      const int other = UniformInt(key.Block(at)[0], 0, static_cast<int>(at));
      std::swap(samples[at], samples[static_cast<std::size_t>(other)]);
    }
    sum += BettingUpperBound(samples, delta);
  }
  return sum / num_orders;
}

// Clopper-Pearson says 0.057 and 0.0235, Hoeffding 0.127 and 0.035.
TEST(BettingUpperBound, IsNearClopperPearsonOnFailures) {
  EXPECT_NEAR(MeanOverOrders(Spread(4, 200), 400, 0.01), 0.061, 0.0015);
  EXPECT_NEAR(MeanOverOrders(Spread(200, 10000), 40, 0.01), 0.024, 0.0003);
  EXPECT_LT(BettingUpperBound(Spread(0, 1000), 0.01), 1.5 * FailureUpperBound(0, 1000, 0.01));
}

// Costs of a policy that takes 4.0 to 4.2 s and fails in 1 % of worlds: the variance is small, and
// the bound sees it. Hoeffding's half width is four times as large.
TEST(BettingUpperBound, SeesASmallVariance) {
  std::vector<double> costs;
  double sum = 0;
  for (int world = 0; world < 10000; ++world) {
    costs.push_back(world % 100 == 57 ? 1 : 0.33 + 0.0013 * (world % 10));
    sum += costs.back();
  }
  const double mean = sum / 10000;
  const double width = BettingUpperBound(costs, 0.01) - mean;
  EXPECT_GT(width, 0);
  EXPECT_LT(4 * width, LearnerBias(10000, 0.01));
  EXPECT_LT(width, EmpiricalBernsteinUpperBound(costs, 0.01) - mean);
}

// Constant samples x: every factor is 1 + lambda (m - x), so the bound solves sum log = log(1 /
// delta). Here by a plain loop over the documented bets, without the cap's help (m is near 0.5).
TEST(BettingUpperBound, SolvesItsEquationForConstantSamples) {
  constexpr double kDelta = 0.05;
  const std::vector<double> samples(60, 0.5);  // below 64 samples every bet is renewed
  const double bound = BettingUpperBound(samples, kDelta);
  double log_capital = 0;
  double squares = 0.25;
  for (int seen = 0; seen < 60; ++seen) {
    const double lambda = std::min(
        std::sqrt(2 * std::log(1 / kDelta) * (seen + 1) / (60 * squares)), 0.75 / (1 - bound));
    log_capital += std::log1p(lambda * (bound - 0.5));
    // The running mean is 1/2 throughout, so the squares stay at the imagined sample's.
  }
  EXPECT_NEAR(log_capital, std::log(1 / kDelta), 1e-6);
}

TEST(BettingUpperBound, FollowsTheLawsOfABound) {
  const std::vector<double> samples = Spread(30, 1000);
  const double bound = BettingUpperBound(samples, 0.01);
  EXPECT_GT(bound, 0.03);
  EXPECT_GT(BettingUpperBound(samples, 0.001), bound) << "less risk, larger bound";
  std::vector<double> worse = samples;
  for (double& sample : worse) sample = std::min(1.0, sample + 0.05);
  EXPECT_GT(BettingUpperBound(worse, 0.01), bound);
  EXPECT_EQ(BettingUpperBound(samples, 0.01), bound) << "same samples, same bits";
  EXPECT_EQ(BettingUpperBound({}, 0.01), 1.0);
  EXPECT_EQ(BettingUpperBound(std::vector<double>{1, 1, 1}, 0.01), 1.0);
  EXPECT_EQ(BettingUpperBound(std::vector<double>{0}, 0.01), 1.0) << "one sample says nothing here";
  EXPECT_LT(BettingUpperBound(std::vector<double>(1'000'000, 0.0), 0.01), 1e-5);
}

// 0.02 + sqrt(2 V log 200 / 200) + 7 log 200 / (3 * 199), V = 0.02 * 0.98 * 200 / 199.
TEST(EmpiricalBernsteinUpperBound, MatchesItsFormula) {
  const double variance = 0.02 * 0.98 * 200 / 199;
  EXPECT_NEAR(EmpiricalBernsteinUpperBound(Spread(4, 200), 0.01),
              0.02 + std::sqrt(2 * variance * std::log(200) / 200) + 7 * std::log(200) / (3 * 199),
              1e-12);
  EXPECT_NEAR(EmpiricalBernsteinUpperBound(Spread(4, 200), 0.01), 0.114, 5e-4);
  EXPECT_NEAR(EmpiricalBernsteinUpperBound(Spread(200, 10000), 0.01), 0.026, 1e-3);
  EXPECT_EQ(EmpiricalBernsteinUpperBound(std::vector<double>{0}, 0.01), 1.0);
}

// Eq. 18 at the published settings, 10 worlds at gamma = 0.01: adoption needs a gap of 2 b > 1.
TEST(LearnerBias, IsTooWideAtThePublishedSettings) {
  EXPECT_NEAR(LearnerBias(10, 0.01), 0.5147, 5e-5);
  EXPECT_NEAR(LearnerBias(50, 0.01), 0.230, 5e-4);
  EXPECT_NEAR(LearnerBias(40, 0.01), LearnerBias(10, 0.01) / 2, 1e-15);
}

// Eq. 32 and 33.
TEST(PaperBounds, MatchTheirFormulas) {
  EXPECT_DOUBLE_EQ(CostBoundT1(0.25, 0.125), 0.375);
  EXPECT_EQ(CostBoundT1(0.9, 0.2), 1.0);
  EXPECT_DOUBLE_EQ(SafeArrivalT2(0.25, 0.125, 0.01), 0.99 - 0.99 * 0.375);
  EXPECT_EQ(SafeArrivalT2(0.9, 0.2, 0.01), 0.0);
  // y = 0.3715, n = 10: what T2 guarantees for a policy that arrives in 0.944 of worlds.
  EXPECT_NEAR(SafeArrivalT2(0.3715, LearnerBias(10, 0.01), 0.01), 0.11, 0.005);
}

// ------------------------------------------------------------------------------- coverage
//
// Seeded data sets with a known mean; how often does a bound miss it? If it misses with probability
// delta, the misses are binomial, and more than MostMisses happen with probability below 1e-6.

constexpr int kDataSets = 4000;

int MostMisses(double delta) {
  int misses = 0;
  while (BinomialAtMost(misses, kDataSets, delta) < 1 - 1e-6) ++misses;
  return misses;
}

struct Law {
  const char* name;
  double mean;
  std::function<double(double)> quantile;  // of a uniform number
};

std::vector<Law> Laws() {
  return {
      {"rare failures", 0.02, [](double u) { return u < 0.02 ? 1.0 : 0.0; }},
      {"a fair coin", 0.5, [](double u) { return u < 0.5 ? 1.0 : 0.0; }},
      {"uniform", 0.5, [](double u) { return u; }},
      // 7 % failures, the rest arrive at costs spread evenly over 0.3 to 0.4.
      {"costs", 0.07 + 0.93 * 0.35,
       [](double u) { return u < 0.07 ? 1.0 : 0.3 + 0.1 * (u - 0.07) / 0.93; }},
  };
}

int CountMisses(const Law& law, int num_samples, const Key& key,
                const std::function<bool(const std::vector<double>&)>& misses) {
  int count = 0;
  std::vector<double> samples(static_cast<std::size_t>(num_samples));
  for (std::uint64_t set = 0; set < kDataSets; ++set) {
    const Key set_key = key.Fork(set);
    for (std::size_t at = 0; at < samples.size(); ++at) {
      const RandomBlock block = set_key.Block(at / 4);
      // 2^-25 makes the multiples of 2^-24 have mean 1/2 exactly.
      samples[at] = law.quantile(static_cast<double>(UnitFloat(block[at % 4])) + 0x1p-25);
    }
    count += misses(samples) ? 1 : 0;
  }
  return count;
}

double Mean(const std::vector<double>& samples) {
  double sum = 0;
  for (const double sample : samples) sum += sample;
  return std::clamp(sum / static_cast<double>(samples.size()), 0.0, 1.0);
}

// Into the report that --gtest_output writes.
void Record(const std::string& what, int misses) { ::testing::Test::RecordProperty(what, misses); }

TEST(Coverage, HoeffdingsBiasHoldsAndHalfOfItIsCaught) {
  constexpr double kGamma = 0.01;
  constexpr int kSamples = 100;
  for (const Law& law : Laws()) {
    const auto misses = [&](double share) {
      return CountMisses(law, kSamples, Key(18), [&](const std::vector<double>& samples) {
        return std::fabs(Mean(samples) - law.mean) > share * LearnerBias(kSamples, kGamma);
      });
    };
    const int right = misses(1);
    Record(std::string("hoeffding, ") + law.name, right);
    EXPECT_LE(right, MostMisses(kGamma)) << law.name;
  }
  // The coin has the largest variance: half of b, 1.63 standard deviations, misses 1 in 10.
  const Law coin = Laws()[1];
  const int wrong = CountMisses(coin, kSamples, Key(18), [&](const std::vector<double>& samples) {
    return std::fabs(Mean(samples) - coin.mean) > 0.5 * LearnerBias(kSamples, kGamma);
  });
  Record("half of hoeffding, a fair coin", wrong);
  EXPECT_GT(wrong, MostMisses(kGamma));
}

TEST(Coverage, ClopperPearsonHoldsAndTwiceItsRiskIsCaught) {
  constexpr double kDelta = 0.05;
  constexpr int kSamples = 400;
  for (const Law& law : {Laws()[0], Laws()[1]}) {
    const auto misses = [&](double delta) {
      return CountMisses(law, kSamples, Key(15), [&](const std::vector<double>& samples) {
        const auto ones = static_cast<std::int64_t>(std::lround(Mean(samples) * kSamples));
        return FailureUpperBound(ones, kSamples, delta) < law.mean;
      });
    };
    const int right = misses(kDelta);
    Record(std::string("clopper-pearson, ") + law.name, right);
    EXPECT_LE(right, MostMisses(kDelta)) << law.name;
    EXPECT_GT(misses(2 * kDelta), MostMisses(kDelta)) << law.name;
  }
}

TEST(Coverage, BettingHoldsAndHalfItsWidthIsCaught) {
  constexpr double kDelta = 0.05;
  constexpr int kSamples = 200;
  for (const Law& law : Laws()) {
    const auto misses = [&](double share) {
      return CountMisses(law, kSamples, Key(39), [&](const std::vector<double>& samples) {
        const double mean = Mean(samples);
        return mean + share * (BettingUpperBound(samples, kDelta) - mean) < law.mean;
      });
    };
    const int right = misses(1);
    Record(std::string("betting, ") + law.name, right);
    EXPECT_LE(right, MostMisses(kDelta)) << law.name;
    EXPECT_GT(misses(0.5), MostMisses(kDelta)) << law.name;
  }
}

TEST(EmpiricalBernsteinBias, IsBothSidesOfTheBoundAtHalfTheRisk) {  // Eq. 43
  const std::vector<double> samples = {0.1, 0.4, 0.2, 0.3, 0.25, 0.35, 0.15, 0.45, 0.05, 0.5};
  double squares = 0;
  for (const double x : samples) squares += (x - Mean(samples)) * (x - Mean(samples));
  const double variance = squares / 9;
  const double upper = std::sqrt(2 * variance * std::log(400.0) / 10) + 7 * std::log(400.0) / 27;
  EXPECT_NEAR(EmpiricalBernsteinBias(variance, 10, 0.01), upper, 1e-12);
  // A policy that nearly always arrives: five times tighter than Hoeffding's.
  EXPECT_NEAR(EmpiricalBernsteinBias(0.004, 20000, 0.01), 0.00225, 0.00005);
  EXPECT_NEAR(LearnerBias(20000, 0.01), 0.0115, 0.00005);
}

TEST(Coverage, EmpiricalBernsteinBiasHoldsAndAThirdOfItIsCaught) {
  constexpr double kGamma = 0.05;
  constexpr int kSamples = 400;
  int worst = 0;
  for (const Law& law : Laws()) {
    const auto misses = [&](double share) {
      return CountMisses(law, kSamples, Key(43), [&](const std::vector<double>& samples) {
        const double mean = Mean(samples);
        double squares = 0;
        for (const double x : samples) squares += (x - mean) * (x - mean);
        return std::fabs(mean - law.mean) >
               share * EmpiricalBernsteinBias(squares / (kSamples - 1), kSamples, kGamma);
      });
    };
    EXPECT_LE(misses(1), MostMisses(kGamma)) << law.name;
    worst = std::max(worst, misses(1.0 / 3));
  }
  EXPECT_GT(worst, MostMisses(kGamma));
}

TEST(Coverage, EmpiricalBernsteinHolds) {
  for (const Law& law : Laws()) {
    const int misses = CountMisses(law, 200, Key(40), [&](const std::vector<double>& samples) {
      return EmpiricalBernsteinUpperBound(samples, 0.05) < law.mean;
    });
    EXPECT_LE(misses, MostMisses(0.05)) << law.name;
  }
}

// Student's table: 2.776 for 4 degrees of freedom, 4.604 at 99 %, 12.706 for one degree.
TEST(StudentHalfWidth, IsThatOfTheTable) {
  const std::vector<double> five = {1, 2, 3, 4, 5};  // mean 3, standard error sqrt(2.5 / 5)
  EXPECT_NEAR(StudentHalfWidth(five, 0.95), 2.776 * std::sqrt(0.5), 1e-3);
  EXPECT_NEAR(StudentHalfWidth(five, 0.99), 4.604 * std::sqrt(0.5), 1e-3);
  EXPECT_NEAR(StudentHalfWidth(std::vector<double>{0, 2}, 0.95), 12.706, 1e-3);
  EXPECT_EQ(StudentHalfWidth(std::vector<double>{7, 7, 7}, 0.95), 0);
}

// Why certificates have a ladder: the bets are tuned to n, so the bound holds for one n fixed
// beforehand. Who computes it again every 10 samples and stops where it looks best misses more
// often than they may.
TEST(BettingUpperBound, MayNotBeLookedAtAsOftenAsOneLikes) {
  constexpr int kTrials = 1000, kSamples = 500;
  constexpr double kDelta = 0.05, kMean = 0.5;
  std::mt19937_64 engine(1);
  std::bernoulli_distribution coin(kMean);
  int misses_once = 0, misses_looking = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> samples(kSamples);
    for (double& sample : samples) sample = coin(engine) ? 1 : 0;
    misses_once += BettingUpperBound(samples, kDelta) < kMean ? 1 : 0;
    for (std::size_t n = 10; n <= samples.size(); n += 10) {
      if (BettingUpperBound(std::span(samples).first(n), kDelta) >= kMean) continue;
      ++misses_looking;
      break;
    }
  }
  EXPECT_LE(misses_once, 78) << "of 1,000 at 0.05: more has probability below 1e-4";
  EXPECT_GT(misses_looking, 78);
}

}  // namespace
}  // namespace fedgen
