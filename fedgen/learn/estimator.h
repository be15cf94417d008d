// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "fedgen/base/kernel.h"
#include "fedgen/base/option.h"
#include "fedgen/base/random.h"
#include "fedgen/learn/objective.h"

namespace fedgen {

// From costs to a gradient. Both estimators look at the cost at pairs of points on opposite sides
// of mu, all on the same fresh worlds:
//
//   evolution strategies  mu +- sigma . e, e normal: the gradient of the cost smoothed by N(0,
//                         sigma^2), for mu and for sigma (Eq. 19, 20)
//   finite differences    mu +- h u, u from a random orthonormal set: the gradient itself, up to
//                         O(h^2), for mu only (Eq. 24)

// What parameters cost on one sample of worlds. An estimator of the gradient asks for many
// parameter vectors at once, all on the same worlds, so that they differ by nothing but themselves.

class CostSource {
 public:
  CostSource() = default;
  virtual ~CostSource() = default;
  CostSource(const CostSource&) = delete;
  CostSource& operator=(const CostSource&) = delete;

  struct Costs {
    double y = 1;                 // mean of J of mu (Eq. 17)
    std::vector<double> members;  // [num_members] mean training cost of each (Eq. 23)
    std::int64_t episodes = 0;
    std::int64_t steps = 0;  // of all episodes, if they have any
  };

  /// Writes the parameters of a member. Must be safe to call from several threads.
  using MakeMember = std::function<void(std::int64_t member, std::span<float> parameters)>;

  /// Draws the worlds named by the key and measures mu and every member on them.
  virtual Costs Measure(std::span<const float> mu, std::int64_t num_members,
                        const MakeMember& make_member, Key key) = 0;

  /// The cost J of mu on `worlds` other worlds named by the key.
  virtual Value MeasureValue(std::span<const float> mu, std::int64_t worlds, Key key) = 0;
};

struct EstimatorOptions {
  enum class Kind {
    kEvolution,
    kFiniteDifferences,
    kPolicyGradient,  // looks at single steps, not at costs: learn/policy_gradient.h
  };
  enum class Shaping {
    kRaw,           // costs as they are
    kCentredRanks,  // their ranks, spread evenly over [-1/2, 1/2] (Eq. 21)
  };
  Kind kind = Kind::kEvolution;
  int pairs = 30;
  Shaping shaping = Shaping::kRaw;
};
template <>
inline constexpr auto kWords<EstimatorOptions::Kind> =
    Words("evolution", "finite-differences", "policy-gradient");
template <>
inline constexpr auto kWords<EstimatorOptions::Shaping> = Words("raw", "centred-ranks");

void Describe(OptionVisitor& visitor, EstimatorOptions& options);

/// An objective that estimates gradients from costs; of the kind that does not, one that measures
/// values only. Threads and kernel change no bit.
std::unique_ptr<Objective> MakeEstimator(const EstimatorOptions& options,
                                         std::shared_ptr<CostSource> costs, Kernel kernel,
                                         int num_threads);

/// Replaces costs by their ranks, spread evenly over [-1/2, 1/2]; equal costs share their mean rank
/// (Eq. 21).
void CentreRanks(std::vector<double>& costs);

}  // namespace fedgen
