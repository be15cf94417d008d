// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "fedgen/learn/estimator.h"
#include "fedgen/learn/objective.h"

namespace fedgen {

// Functions on paper: eta, its gradient, its minimum and its constants are known, so what learners
// do can be compared with what is true. A world is a phase u, uniform in [0, 1):
//
//   J_u(theta) = eta(theta) + amplitude sin(2 pi u + kappa . theta)
//
// Its mean over u is eta, and the mean of n worlds' gradients is unbiased for that of eta, with
//
//   E|z - grad eta|^2 = amplitude^2 |kappa|^2 / (2 n).

/// A Gaussian hole: - depth exp(-|theta - centre|^2 / (2 width^2)).
struct Well {
  std::vector<double> centre;  // [num_parameters]
  double depth = 0.5;
  double width = 1;  // > 0; the gradient points to the centre everywhere
};

/// eta(theta) = level + slope . theta + curvature / 2 |theta - centre|^2 - wells. An empty vector
/// counts as 0.
///
/// J is in [0, 1] everywhere if slope and curvature are 0 and
/// depths + amplitude <= level <= 1 - amplitude.
struct AnalyticFunction {
  double level = 0;
  std::vector<double> slope;   // [num_parameters]
  double curvature = 0;        // of the bowl
  std::vector<double> centre;  // [num_parameters] of the bowl
  std::vector<Well> wells;
  double amplitude = 0;       // what a world adds or takes away at most
  std::vector<double> kappa;  // [num_parameters] how that changes with theta

  double Eta(std::span<const float> theta) const;
  std::vector<double> Gradient(std::span<const float> theta) const;

  /// J in the world of phase u.
  double Cost(std::span<const float> theta, double u) const;

  /// A Lipschitz constant of eta for a function of wells alone: sum of depth / (width sqrt(e)).
  double Lambda0() const;
  /// A Lipschitz constant of the gradient: curvature + sum of depth / width^2.
  double Lambda1() const;
  /// The root of E|z - grad eta|^2 for the mean of n worlds' gradients.
  double GradientNoise(int num_worlds) const;
};

/// The phase of a sample's world.
double PhaseOf(Key key, int world);

/// Costs of parameters: the training cost is J.
std::shared_ptr<CostSource> MakeAnalyticCosts(AnalyticFunction function, int num_worlds);

/// y and the exact gradient of the sample mean; pairs counts worlds, and the spread is that of the
/// worlds' gradients.
std::unique_ptr<Objective> MakeAnalyticObjective(AnalyticFunction function, int num_worlds);

}  // namespace fedgen
