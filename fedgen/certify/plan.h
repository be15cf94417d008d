// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace fedgen {

// How many worlds a certificate takes, asked before any is driven (Eq. 41).
//
// A certificate's size is a rung of the ladder (fedgen/certify/ladder.h). After c failures in the n
// worlds of a rung it promises `safe` if the one-sided Clopper-Pearson bound
// SuccessLowerBound(n - c, n, StatementRisk(n, confidence)) is at least that. With q = 1 - safe:
//   P(Binomial(n, q) <= c) <= StatementRisk(n, confidence).
// Assumptions are those of bounds.h: one start per world, a policy fixed before the worlds are
// drawn.

struct PlanRow {
  std::int64_t worlds = 0;            // n
  std::int64_t allowed_failures = 0;  // the most that still certify
  double power = 0;                   // P(Binomial(n, 1 - assume) <= allowed_failures)
};

/// The rungs on which `safe` can be certified at all, from the least on: how many failures each
/// allows, and how likely a policy whose true rate is `assume` has no more. Empty if even 10^8
/// worlds without a failure say too little.
/// Requires 0 < safe < 1, 0 < confidence < 1 and safe < assume <= 1.
std::vector<PlanRow> PlanRungs(double safe, double confidence, double assume);

}  // namespace fedgen
