// SPDX-License-Identifier: Apache-2.0
#include "fedgen/certify/challenge.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <vector>

#include "fedgen/base/check.h"
#include "fedgen/certify/bounds.h"

namespace fedgen {
namespace {

constexpr double kRisk = kChallengeRisk / 2;

// "The mean of these samples is at least `claimed`", tested by the betting bound.
struct MeanTest {
  bool contradicted;
  double noticed;  // a mean at or below it would have been noticed, about
};

// What is noticed: let the mean lie d below the claim, and so d + gap below that of the data,
// because some worlds went wrong entirely (x = 0), which adds (d + gap) mean to the variance V. The
// bound's margin and the scatter of the mean, together A on these data, grow with the deviation:
// d = A sqrt(1 + (d + gap) mean / V).
MeanTest TestMean(double claimed, std::span<const double> samples) {
  const auto n = static_cast<double>(samples.size());
  double mean = 0;
  for (const double sample : samples) mean += sample / n;
  double squares = 0.25;  // of one imagined sample, as in the bound
  for (const double sample : samples) squares += (sample - mean) * (sample - mean);
  const double variance = squares / (n + 1);
  const double upper = BettingUpperBound(samples, kRisk);
  const double quantile = boost::math::quantile(boost::math::normal(), kChallengePower);
  const double a = upper - mean + quantile * std::sqrt(variance / n);
  const double slope = a * a * mean / variance;
  const double gap = std::max(0.0, mean - claimed);
  const double square = slope * slope + 4 * (a * a + slope * gap);
  return {upper < claimed, claimed - (slope + std::sqrt(square)) / 2};
}

// One start per world: the number of safe arrivals is binomial. Contradicted is a count that a rate
// of `claimed` would undercut or equal with probability at most kRisk.
void TestSafeCount(double claimed, std::int64_t safe, std::int64_t n, ChallengeVerdict& verdict) {
  verdict.exact = true;
  verdict.safe_contradicted = BinomialAtMost(safe, n, claimed) <= kRisk;
  // The largest count that contradicts lies in [contradicts, survives).
  std::int64_t contradicts = -1, survives = n;
  while (survives - contradicts > 1) {
    const std::int64_t middle = contradicts + (survives - contradicts) / 2;
    (BinomialAtMost(middle, n, claimed) <= kRisk ? contradicts : survives) = middle;
  }
  // The rate p with P(Binomial(n, p) <= contradicts) = kChallengePower.
  if (contradicts >= 0) {
    verdict.noticed_safe_arrival = FailureUpperBound(contradicts, n, kChallengePower);
  }
}

}  // namespace

ChallengeVerdict JudgeClaim(const Claim& claim, const Sightings& seen) {
  FEDGEN_CHECK(!seen.costs.empty(), "no worlds");
  ChallengeVerdict verdict;
  if (seen.starts_per_world == 1) {
    TestSafeCount(claim.safe_arrival, seen.safe, std::ssize(seen.costs), verdict);
  } else {
    FEDGEN_CHECK(seen.costs.size() == seen.safe_shares.size(), "{} costs, {} shares",
                 seen.costs.size(), seen.safe_shares.size());
    const MeanTest test = TestMean(claim.safe_arrival, seen.safe_shares);
    verdict.safe_contradicted = test.contradicted;
    if (test.noticed > 0) verdict.noticed_safe_arrival = test.noticed;
  }
  // "The expected cost is at most c" says that the mean of 1 - J is at least 1 - c.
  std::vector<double> savings(seen.costs.begin(), seen.costs.end());
  for (double& cost : savings) cost = 1 - cost;
  const MeanTest test = TestMean(1 - claim.expected_cost, savings);
  verdict.cost_contradicted = test.contradicted;
  if (test.noticed > 0) verdict.noticed_expected_cost = 1 - test.noticed;
  return verdict;
}

}  // namespace fedgen
