// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

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
// Intervals for several quantities hold one by one, not all at once.

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

}  // namespace fedgen
