// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "fedgen/fuse/federation.h"
#include "fedgen/learn/analytic_testing.h"

namespace fedgen {

// Federations that several tests share.

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
