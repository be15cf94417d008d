// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "fedgen/learn/analytic.h"
#include "fedgen/learn/fedgen.h"

namespace fedgen {

// Functions and federations that several tests share.

/// A plateau at 0.8 in two dimensions with wells of depth 0.6, 0.35 and 0.2, far apart: the best
/// minimum is near (-2, 0).
inline AnalyticFunction ThreeWells() {
  AnalyticFunction f;
  f.level = 0.8;
  f.wells = {{{-2, 0}, 0.6, 0.7}, {{2, 0.5}, 0.35, 0.7}, {{0, 2.5}, 0.2, 0.7}};
  f.amplitude = 0.05;
  f.kappa = {3, -2};
  return f;
}

/// Uniform in the cube of this half width.
inline std::vector<float> UniformTheta(Key key, std::size_t size, double half_width) {
  std::vector<float> theta(size);
  for (std::size_t index = 0; index < size; ++index) {
    theta[index] = static_cast<float>(
        half_width * (2 * static_cast<double>(UnitFloat(key.Block(index)[0])) - 1));
  }
  return theta;
}

/// A learner on its own objective; it draws from seed.Fork(Stream::kLearner).Fork(index) as those
/// of MakeFederation do.
inline std::unique_ptr<Learner> MakeTestLearner(int index, const LearnerOptions& options,
                                                std::unique_ptr<Objective> objective,
                                                std::vector<float> theta, Key seed) {
  std::vector<float> sigma(theta.size(), 0.1F);
  return std::make_unique<Learner>(
      index, options, std::move(objective), Search{std::move(theta), std::move(sigma)},
      seed.Fork(Stream::kLearner).Fork(static_cast<std::uint64_t>(index)));
}

/// Learners of one analytic function that begin uniformly in a cube.
inline Federation MakeAnalyticFederation(const FederationOptions& options,
                                         const LearnerOptions& learner, const AnalyticFunction& f,
                                         int num_worlds, int num_learners, double half_width,
                                         Key seed) {
  std::vector<std::unique_ptr<Learner>> learners;
  for (int index = 0; index < num_learners; ++index) {
    const Key key = seed.Fork(Stream::kInitialPolicy).Fork(static_cast<std::uint64_t>(index));
    learners.push_back(MakeTestLearner(index, learner, MakeAnalyticObjective(f, num_worlds),
                                       UniformTheta(key, f.kappa.size(), half_width), seed));
  }
  return {options, std::move(learners)};
}

}  // namespace fedgen
