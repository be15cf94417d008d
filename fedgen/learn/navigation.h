// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "fedgen/base/kernel.h"
#include "fedgen/base/option.h"
#include "fedgen/learn/estimator.h"
#include "fedgen/policy/mlp.h"
#include "fedgen/rollout/rollout.h"

namespace fedgen {

// The navigation task as a source of costs: parameters are a network, a sample is n_E fresh worlds
// with n_int starts each, a cost is the mean over the episodes.

struct TrainingCost {
  enum class Kind {
    kPaper,    // weight rho + J
    kFailure,  // weight rho + [did not arrive]
    kPlain,    // J
  };
  Kind kind = Kind::kPaper;
  double distance_weight = 0.1;  // 1/m; not for kPlain
  double margin = 0;             // m: the perturbed policies drive a robot wider by this much
};
template <>
inline constexpr auto kWords<TrainingCost::Kind> = Words("paper", "failure", "plain");

void Describe(OptionVisitor& visitor, TrainingCost& cost);

/// What an episode costs in training (Eq. 23). y is always the mean of J of the true robot, never
/// of this.
double CostOf(const TrainingCost& cost, const EpisodeOptions& options, const Episode& episode);

struct NavigationOptions {
  int worlds = 50;  // n_E, fresh in every round
  TrainingCost cost;
  Kernel kernel = Kernel::kScalar;
  int num_threads = 1;
};

/// Costs of networks shaped like `shape` on the task's worlds, world.start.per_world starts in
/// each.
std::shared_ptr<CostSource> MakeNavigationCosts(const Task& task, const Mlp& shape,
                                                const NavigationOptions& options);

// A policy as one vector, theta: the frozen normalisation of its inputs (scale, shift), then the
// network's parameters. What a learner shares is this vector, so an adopted policy brings its
// normalisation along.

std::vector<float> ThetaOf(const Mlp& mlp);

/// The network of this shape with these parameters. Requires as many as ThetaOf(shape) has.
Mlp MlpOf(const Mlp& shape, std::span<const float> theta);

/// sigma for every parameter that is learned, 0 for the normalisation.
std::vector<float> InitialSigma(const Mlp& shape, double sigma);

/// Sets the normalisation so that every input has mean 0 and standard deviation 1 over the steps
/// that the built-in gap follower takes in `worlds` fresh worlds named by the key. An input that
/// does not vary is only shifted.
void MeasureNormalisation(const Task& task, int worlds, Key key, Kernel kernel, Mlp& mlp);

}  // namespace fedgen
