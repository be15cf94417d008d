// SPDX-License-Identifier: Apache-2.0
#include "fedgen/certify/bounds.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/policies/policy.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "fedgen/base/check.h"

namespace fedgen {
namespace {

// Boost reports trouble by throwing unless told otherwise; our arguments are checked before the
// call.
using NoThrow = boost::math::policies::policy<
    boost::math::policies::domain_error<boost::math::policies::ignore_error>,
    boost::math::policies::pole_error<boost::math::policies::ignore_error>,
    boost::math::policies::overflow_error<boost::math::policies::ignore_error>,
    boost::math::policies::evaluation_error<boost::math::policies::ignore_error>>;

void CheckDelta(double delta) { FEDGEN_CHECK(0 < delta && delta < 1, "delta = {}", delta); }

// How much a bet may lose of the capital.
constexpr double kLargestLoss = 0.75;

// Samples [first, last) are bet on with the same lambda, before the cap that depends on m.
struct BetRound {
  std::size_t first, last;
  double lambda;
};

// The bets of Eq. 39. Mean and variance start from one imagined sample with mean 1/2 and variance
// 1/4. A bet is renewed when the samples seen have grown by 1/64: still made before its samples are
// seen, and the list stays short.
std::vector<BetRound> PlaceBets(std::span<const double> samples, double delta) {
  const double scale = 2 * std::log(1 / delta) / static_cast<double>(samples.size());
  std::vector<BetRound> rounds;
  double sum = 0.5;
  double squares = 0.25;
  for (std::size_t first = 0; first < samples.size();) {
    const std::size_t last = std::min(samples.size(), first + std::max<std::size_t>(1, first / 64));
    const double variance = squares / static_cast<double>(first + 1);
    rounds.push_back({first, last, std::sqrt(scale / variance)});
    for (std::size_t at = first; at < last; ++at) {
      sum += samples[at];
      const double mean = sum / static_cast<double>(at + 2);
      squares += (samples[at] - mean) * (samples[at] - mean);
    }
    first = last;
  }
  return rounds;
}

// Whether the capital against "the mean is at least m" ever reaches `goal`. Capital that is as good
// as lost is given up: fewer m are rejected, never more.
bool Reaches(double goal, double m, std::span<const double> samples,
             std::span<const BetRound> rounds) {
  constexpr double kLost = 1e-250;
  const double largest = kLargestLoss / (1 - m);
  double capital = 1;
  for (const BetRound& round : rounds) {
    const double lambda = std::min(round.lambda, largest);
    for (std::size_t at = round.first; at < round.last; ++at) {
      capital *= 1 + lambda * (m - samples[at]);
      if (capital >= goal) return true;
    }
    if (capital < kLost) return false;
  }
  return false;
}

}  // namespace

double BinomialAtMost(std::int64_t k, std::int64_t n, double p) {
  FEDGEN_CHECK(k >= 0 && n >= 0 && 0 <= p && p <= 1, "k = {}, n = {}, p = {}", k, n, p);
  if (k >= n) return 1;
  return boost::math::ibetac(static_cast<double>(k + 1), static_cast<double>(n - k), p, NoThrow());
}

double SuccessLowerBound(std::int64_t successes, std::int64_t trials, double delta) {
  FEDGEN_CHECK(0 <= successes && successes <= trials, "{} successes in {} trials", successes,
               trials);
  CheckDelta(delta);
  if (successes == 0) return 0;
  const auto k = static_cast<double>(successes);
  const auto n = static_cast<double>(trials);
  // If all succeeded the quantile has a closed form: p^n = delta.
  if (successes == trials) return std::exp(std::log(delta) / n);
  return boost::math::ibeta_inv(k, n - k + 1, delta, NoThrow());
}

double FailureUpperBound(std::int64_t failures, std::int64_t trials, double delta) {
  FEDGEN_CHECK(0 <= failures && failures <= trials, "{} failures in {} trials", failures, trials);
  CheckDelta(delta);
  if (failures == trials) return 1;
  const auto k = static_cast<double>(failures);
  const auto n = static_cast<double>(trials);
  // If none failed it has one too: (1 - p)^n = delta.
  if (failures == 0) return -std::expm1(std::log(delta) / n);
  return boost::math::ibetac_inv(k + 1, n - k, delta, NoThrow());
}

ProportionInterval ClopperPearson(std::int64_t successes, std::int64_t trials, double confidence) {
  FEDGEN_CHECK(0 < confidence && confidence < 1, "confidence = {}", confidence);
  const double tail = (1 - confidence) / 2;
  return {SuccessLowerBound(successes, trials, tail), FailureUpperBound(successes, trials, tail)};
}

ProportionInterval HoeffdingInterval(double mean, std::int64_t samples, double confidence) {
  FEDGEN_CHECK(0 <= mean && mean <= 1, "mean = {}", mean);
  FEDGEN_CHECK(samples >= 0, "{} samples", samples);
  FEDGEN_CHECK(0 < confidence && confidence < 1, "confidence = {}", confidence);
  if (samples == 0) return {};
  const double half_width =
      std::sqrt(std::log(2 / (1 - confidence)) / (2 * static_cast<double>(samples)));
  return {std::max(0.0, mean - half_width), std::min(1.0, mean + half_width)};
}

double BettingUpperBound(std::span<const double> samples, double delta) {
  CheckDelta(delta);
  for (const double sample : samples) FEDGEN_CHECK(0 <= sample && sample <= 1, "sample {}", sample);
  const std::vector<BetRound> rounds = PlaceBets(samples, delta);
  // A factor is at least 1/4 and rounded a few times: the goal is raised by more than what all
  // roundings together can add to the capital.
  const double goal =
      (1 + 16 * static_cast<double>(samples.size() + 1) * std::numeric_limits<double>::epsilon()) /
      delta;
  double survives = 0;
  double rejected = 1;  // no mean lies above 1
  for (int halving = 0; halving < 40; ++halving) {
    const double m = (survives + rejected) / 2;
    (Reaches(goal, m, samples, rounds) ? rejected : survives) = m;
  }
  return rejected;
}

double EmpiricalBernsteinUpperBound(std::span<const double> samples, double delta) {
  CheckDelta(delta);
  for (const double sample : samples) FEDGEN_CHECK(0 <= sample && sample <= 1, "sample {}", sample);
  if (samples.size() < 2) return 1;
  const auto n = static_cast<double>(samples.size());
  double mean = 0;
  for (const double sample : samples) mean += sample / n;
  double variance = 0;
  for (const double sample : samples) variance += (sample - mean) * (sample - mean) / (n - 1);
  const double log_term = std::log(2 / delta);
  return std::min(1.0,
                  mean + std::sqrt(2 * variance * log_term / n) + 7 * log_term / (3 * (n - 1)));
}

double EmpiricalBernsteinBias(double variance, std::int64_t n, double gamma) {
  CheckDelta(gamma);
  FEDGEN_CHECK(variance >= 0 && n >= 2, "variance {}, {} samples", variance, n);
  const double log_term = std::log(4 / gamma);
  const auto count = static_cast<double>(n);
  return std::sqrt(2 * variance * log_term / count) + 7 * log_term / (3 * (count - 1));
}

double LearnerBias(std::int64_t n, double gamma) {
  FEDGEN_CHECK(n >= 1, "n = {}", n);
  FEDGEN_CHECK(0 < gamma && gamma < 1, "gamma = {}", gamma);
  return std::sqrt(std::log(2 / gamma) / (2 * static_cast<double>(n)));
}

double CostBoundT1(double mean_cost, double bias) {
  FEDGEN_CHECK(0 <= mean_cost && mean_cost <= 1 && bias >= 0, "y = {}, b = {}", mean_cost, bias);
  return std::min(1.0, mean_cost + bias);
}

double SafeArrivalT2(double mean_cost, double bias, double gamma) {
  FEDGEN_CHECK(0 <= mean_cost && mean_cost <= 1 && bias >= 0, "y = {}, b = {}", mean_cost, bias);
  FEDGEN_CHECK(0 < gamma && gamma < 1, "gamma = {}", gamma);
  return std::max(0.0, 1 - gamma - (1 - gamma) * (mean_cost + bias));
}

double StudentHalfWidth(std::span<const double> samples, double confidence) {
  FEDGEN_CHECK(samples.size() >= 2, "{} samples", samples.size());
  FEDGEN_CHECK(confidence > 0 && confidence < 1, "confidence {}", confidence);
  const auto n = static_cast<double>(samples.size());
  const double mean = std::accumulate(samples.begin(), samples.end(), 0.0) / n;
  double squares = 0;
  for (const double sample : samples) squares += (sample - mean) * (sample - mean);
  const boost::math::students_t_distribution<double, NoThrow> student(n - 1);
  return boost::math::quantile(student, (1 + confidence) / 2) * std::sqrt(squares / (n - 1) / n);
}

}  // namespace fedgen
