// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace fedgen {

// How many worlds a certificate takes, asked before any is driven (Eq. 41).
//
// "Certified" means here: after c failures in n i.i.d. worlds, the one-sided Clopper-Pearson bound
// SuccessLowerBound(n - c, n, 1 - confidence) is at least `safe`. With q = 1 - safe that is
//   P(Binomial(n, q) <= c) <= 1 - confidence.
// The most failures allowed, c(n), grows with n in steps. Assumptions are those of bounds.h: n is
// fixed beforehand, one start per world, a policy fixed before the worlds are drawn.
//
// A certificate that also bounds the cost spends half its risk on each statement (Eq. 40): plan it
// with JointConfidence(confidence).

/// The confidence that each of two statements needs so that both hold at `confidence`.
double JointConfidence(double confidence);

/// The least n at which no failure at all certifies `safe`: safe^n <= 1 - confidence. 459 for 0.99
/// at 0.99. Requires 0 < safe < 1 and 0 < confidence < 1.
std::int64_t WorldsNeeded(double safe, double confidence);

struct Plan {
  std::int64_t worlds = 0;            // n
  std::int64_t allowed_failures = 0;  // c(n), the most that still certify
  double power = 0;                   // P(Binomial(n, 1 - assume) <= c(n))
};

/// The least n for which a policy whose true rate is `assume` is certified with probability at
/// least `power`.
///
/// Power is a sawtooth in n: where c(n) steps up it jumps up, between steps it falls, as each
/// further world is one more chance to fail. So the promise is for this very n: a slightly larger n
/// may have less power. The least n sits at the start of a tooth, and only those are looked at.
///
/// Nothing if more than 20,000 failures would have to be allowed: `assume` is too close to `safe`.
/// Requires 0 < safe < assume <= 1, 0 < confidence < 1 and 0 < power < 1.
std::optional<Plan> WorldsToSucceed(double safe, double confidence, double assume, double power);

}  // namespace fedgen
