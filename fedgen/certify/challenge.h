// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace fedgen {

// Does what a verifier saw contradict a certificate? (Eq. 44)
//
// The verifier drives the policy through n worlds that the maker could not foresee, n fixed
// beforehand. If both of the certificate's statements are true, at least one of them is called
// contradicted with probability at most kChallengeRisk; each is tested at half of it.

inline constexpr double kChallengeRisk = 0.01;
/// With this probability the shortfall that is reported beside the verdict would have been noticed.
inline constexpr double kChallengePower = 0.9;

struct Claim {
  double safe_arrival = 0;   // at least
  double expected_cost = 1;  // at most
};

/// What was seen: the safe arrivals, and for each world in order of its index the mean cost over
/// its starts and the share of its starts that arrived safely. The shares are read only if there
/// are several starts per world; with one the count says it all.
struct Sightings {
  std::int64_t safe = 0;
  std::span<const double> costs;
  std::span<const double> safe_shares;
  int starts_per_world = 1;
};

struct ChallengeVerdict {
  bool safe_contradicted = false;
  bool cost_contradicted = false;
  /// A true rate of safe arrival at or below this would have been called contradicted with
  /// probability kChallengePower or more. Nothing if there are too few worlds to contradict.
  std::optional<double> noticed_safe_arrival;
  /// The same of an expected cost at or above this.
  std::optional<double> noticed_expected_cost;
  /// Whether noticed_safe_arrival is exact (one start per world: binomial). What a betting bound
  /// notices is estimated from the margin it needed on these data: "about".
  bool exact = false;

  bool contradicted() const { return safe_contradicted || cost_contradicted; }
};

ChallengeVerdict JudgeClaim(const Claim& claim, const Sightings& seen);

}  // namespace fedgen
