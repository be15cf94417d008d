// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "fedgen/base/kernel.h"
#include "fedgen/base/option.h"
#include "fedgen/learn/cost_source.h"
#include "fedgen/learn/objective.h"

namespace fedgen {

// From costs to a gradient. Both estimators look at the cost at pairs of points on opposite sides
// of mu, all on the same fresh worlds:
//
//   evolution strategies  mu +- sigma . e, e normal: the gradient of the cost smoothed by N(0,
//                         sigma^2), for mu and for sigma (Eq. 19, 20)
//   finite differences    mu +- h u, u from a random orthonormal set: the gradient itself, up to
//                         O(h^2), for mu only (Eq. 24)

struct EstimatorOptions {
  enum class Kind { kEvolution, kFiniteDifferences };
  enum class Shaping {
    kRaw,           // costs as they are
    kCentredRanks,  // their ranks, spread evenly over [-1/2, 1/2] (Eq. 21)
  };
  Kind kind = Kind::kEvolution;
  int pairs = 30;
  Shaping shaping = Shaping::kRaw;
};
template <>
inline constexpr auto kWords<EstimatorOptions::Kind> = Words("evolution", "finite-differences");
template <>
inline constexpr auto kWords<EstimatorOptions::Shaping> = Words("raw", "centred-ranks");

void Describe(OptionVisitor& visitor, EstimatorOptions& options);

/// An objective that estimates gradients from costs. Threads and kernel change no bit.
std::unique_ptr<Objective> MakeEstimator(const EstimatorOptions& options,
                                         std::shared_ptr<CostSource> costs, Kernel kernel,
                                         int num_threads);

/// Replaces costs by their ranks, spread evenly over [-1/2, 1/2]; equal costs share their mean rank
/// (Eq. 21).
void CentreRanks(std::vector<double>& costs);

}  // namespace fedgen
