// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace fedgen {

// How sure we are of a rate or a mean that was measured on finitely many samples.
//
// An interval here is random, the truth is not: over repeated experiments of n samples each, the
// interval contains the truth in at least a share `confidence` of them. That holds for every n, not
// only for large ones, and it rests on these assumptions:
//   - the samples are drawn independently from one distribution (i.i.d.);
//   - what is measured was fixed before they were drawn: a policy that was trained or chosen on the
//     same worlds has no interval from them;
//   - n was fixed beforehand: adding samples until the interval looks good voids it.
//
// Several starts in one world share that world and are not independent: the samples are then the
// worlds, each with the share of its starts that arrived, and HoeffdingInterval is the one to use.
//
// Intervals for several quantities hold one by one, not all at once. Split the risk: two bounds at
// delta / 2 each hold together with probability at least 1 - delta (Eq. 40).

/// Whether somebody may ask for this confidence. Nearer to 0 or 1 the digits of 1 - confidence, and
/// of its half that each of two statements gets (Eq. 40), are lost.
constexpr bool IsConfidence(double confidence) {
  return confidence >= 1e-6 && confidence <= 1 - 1e-9;
}
inline constexpr std::string_view kConfidenceRule = "must be in [1e-6, 1 - 1e-9]";

/// An interval for a number in [0, 1]: 0 <= low <= high <= 1.
struct ProportionInterval {
  double low = 0;
  double high = 1;
};

/// The exact two-sided interval of Clopper and Pearson (1934) for the success probability p of n
/// i.i.d. trials with k successes. With alpha = 1 - confidence and B(q; a, b) the q-quantile of the
/// beta distribution,
///   low = B(alpha / 2; k, n - k + 1), 0 if k = 0;  high = B(1 - alpha / 2; k + 1, n - k), 1 if k =
///   n.
/// Each end alone is a one-sided bound at 1 - alpha / 2. Without trials it is [0, 1].
/// Requires 0 <= successes <= trials and 0 < confidence < 1.
ProportionInterval ClopperPearson(std::int64_t successes, std::int64_t trials, double confidence);

/// The two-sided interval of Hoeffding (1963) for the mean of n i.i.d. samples that lie in [0, 1]
/// and have any distribution there:
///   mean -+ sqrt(log(2 / alpha) / (2 n)), cut to [0, 1].
/// Wider than ClopperPearson, and right where that one is not. Without samples it is [0, 1].
/// Requires 0 <= mean <= 1, samples >= 0 and 0 < confidence < 1.
ProportionInterval HoeffdingInterval(double mean, std::int64_t samples, double confidence);

/// P(K <= k) for the number K of successes in n i.i.d. trials of probability p.
/// Requires k >= 0, n >= 0 and 0 <= p <= 1.
double BinomialAtMost(std::int64_t k, std::int64_t n, double p);

// One-sided bounds: the risk delta is spent on one side only. Same assumptions as above.

/// Lower bound at 1 - delta for the success probability after k successes in n i.i.d. trials
/// (Clopper and Pearson, one-sided): B(delta; k, n - k + 1), 0 if k = 0. Any rate below it would
/// have shown k or more successes with probability at most delta.
/// Requires 0 <= successes <= trials and 0 < delta < 1.
double SuccessLowerBound(std::int64_t successes, std::int64_t trials, double delta);

/// Upper bound at 1 - delta for the failure probability after k failures in n i.i.d. trials:
/// B(1 - delta; k + 1, n - k), 1 if k = n. It is 1 - SuccessLowerBound(n - k, n, delta).
/// Requires 0 <= failures <= trials and 0 < delta < 1.
double FailureUpperBound(std::int64_t failures, std::int64_t trials, double delta);

/// Upper bound at 1 - delta for the mean of i.i.d. samples in [0, 1] of any distribution (Eq. 39),
/// by betting (Waudby-Smith and Ramdas 2024). For every candidate m a gambler who starts with
/// capital 1 bets against "the mean is at least m":
///   K_t(m) = product over s <= t of (1 + lambda_s(m) (m - x_s)),
///   lambda_s(m) = min(sqrt(2 log(1 / delta) / (n v_{s-1})), 3 / (4 (1 - m))),
/// where v_{s-1} is a variance estimated from samples before s alone. The result is the smallest m
/// at which the capital ever reached 1 / delta, found by bisection to 2^-40 and rounded up.
///
/// Why it is valid: a bet never loses more than 3/4 of the capital, and if the mean is at least m
/// no bet gains on average, since lambda_s was fixed before x_s was seen. So K(m) is a non-negative
/// supermartingale, and by Ville's inequality it reaches 1 / delta with probability at most delta.
/// Each factor grows with m, so the candidates that survive are an interval: the true mean lies
/// above the result only if the capital against the true mean reached 1 / delta.
///
/// It holds for one n, fixed beforehand: the bets are tuned to it, so computing the bound for many
/// n and keeping the best voids it. The order of the samples counts too and must be fixed before
/// they are drawn (ours is the index of the world); trying several orders and keeping the best
/// voids the bound.
///
/// Tight where the variance is small, without being told: 0.061 for 4 failures in 200 at 99 % on
/// average over orders, where Clopper-Pearson says 0.057 and Hoeffding 0.127 (0.135 with log(2 /
/// delta)). Without samples it is 1. Takes about 0.1 s for 10^6 samples.
/// Requires every sample in [0, 1] and 0 < delta < 1.
double BettingUpperBound(std::span<const double> samples, double delta);

/// Upper bound at 1 - delta for the mean of i.i.d. samples in [0, 1] (Maurer and Pontil 2009), to
/// compare with: with the sample variance V,
///   mean + sqrt(2 V log(2 / delta) / n) + 7 log(2 / delta) / (3 (n - 1)), cut at 1.
/// Fewer than two samples say 1. The order does not count.
/// Requires every sample in [0, 1] and 0 < delta < 1.
double EmpiricalBernsteinUpperBound(std::span<const double> samples, double delta);

// The bounds the paper prints.

/// b = sqrt(log(2 / gamma) / (2 n)) (Eq. 18): the mean cost y of n i.i.d. worlds is within b of the
/// expected cost eta with probability at least 1 - gamma (Hoeffding, both sides).
/// Assumes fresh i.i.d. worlds, costs in [0, 1], and a policy fixed before the worlds were drawn;
/// with several starts per world n counts worlds. Requires n >= 1 and 0 < gamma < 1.
double LearnerBias(std::int64_t n, double gamma);

/// A b that knows the scatter (Eq. 43): the mean of n i.i.d. samples in [0, 1] with the unbiased
/// sample variance V is within
///   sqrt(2 V log(4 / gamma) / n) + 7 log(4 / gamma) / (3 (n - 1))
/// of its expectation with probability at least 1 - gamma (Maurer and Pontil 2009, both sides).
/// Costs of a good policy scatter little, so this is several times smaller than LearnerBias for
/// large n. Assumptions of LearnerBias. Requires variance >= 0, n >= 2 and 0 < gamma < 1.
double EmpiricalBernsteinBias(double variance, std::int64_t n, double gamma);

/// T1 (Eq. 32): eta <= y + b with probability at least 1 - gamma, cut at 1.
/// Assumptions of LearnerBias. Requires 0 <= mean_cost <= 1 and bias >= 0.
double CostBoundT1(double mean_cost, double bias);

/// T2 (Eq. 33): safe arrival in a new world with probability at least
///   1 - gamma - (1 - gamma) (y + b), cut at 0.
/// Assumptions of LearnerBias. It counts every cost as a failure, so a policy that takes time to
/// arrive has a low bound however safe it is. Requires 0 <= mean_cost <= 1, bias >= 0 and
/// 0 < gamma < 1.
double SafeArrivalT2(double mean_cost, double bias, double gamma);

/// Half the width of Student's interval around the mean of two or more samples: exact if they are
/// normal and independent, so a description of a few runs, not a certificate.
double StudentHalfWidth(std::span<const double> samples, double confidence);

}  // namespace fedgen
