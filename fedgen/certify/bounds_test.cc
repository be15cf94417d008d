// SPDX-License-Identifier: Apache-2.0
#include "fedgen/certify/bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

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

}  // namespace
}  // namespace fedgen
