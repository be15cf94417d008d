// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "fedgen/learn/estimator.h"
#include "fedgen/learn/policy_gradient.h"

namespace fedgen {

/// A learner by policy gradient and what it works with.
struct Given {
  PolicyGradientSettings settings;
  Mlp net;
  std::shared_ptr<Experience> experience = std::make_shared<Experience>();

  std::unique_ptr<Objective> MakeObjective() const {
    const PracticeGround& ground = settings.grounds.front();
    return MakeEstimator(
        {},
        MakeNavigationCosts(ground.task, net,
                            {.worlds = ground.worlds, .cost = {}, .kernel = settings.kernel}),
        settings.kernel, 1);
  }
  PolicyGradient Make() const { return {settings, net, MakeObjective(), experience, Key(11)}; }
};

/// One whole round: measures theta and moves it.
inline Look Round(PolicyGradient& learner, int k, Key key, std::vector<float>& theta) {
  const Key round = key.Fork(static_cast<std::uint64_t>(k));
  const Look look = learner.Measure(k, 10, theta, round.Fork(0));
  EXPECT_TRUE(learner.Improve(k, 10, round.Fork(1), theta).moved);
  return look;
}

}  // namespace fedgen
