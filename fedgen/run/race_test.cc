// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/race.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedgen/fuse/federation_testing.h"
#include "fedgen/learn/navigation.h"
#include "tests/tasks.h"

namespace fedgen {
namespace {

using ::testing::ElementsAre;

Mlp Shape(const Task& task) {
  MlpOptions options;
  options.hidden = {4};
  return MakeMlp(options, task.lidar.beams, task.lidar.range, ControlLimit(task.robot));
}

Mlp Net(const Task& task, std::uint64_t seed) {
  Mlp mlp = Shape(task);
  DrawParameters(Key(seed), 2, mlp);
  return mlp;
}

std::vector<std::string> Names(const std::vector<Racer>& racers) {
  std::vector<std::string> names;
  for (const Racer& racer : racers) names.push_back(racer.name);
  return names;
}

// Learners that sit where they are put.
Federation Sitting(Algorithm algorithm, const std::vector<Mlp>& policies,
                   const std::vector<int>& origins) {
  std::vector<std::unique_ptr<Learner>> learners;
  for (std::size_t i = 0; i < policies.size(); ++i) {
    AnalyticFunction flat;
    flat.level = 0.5 + 0.1 * static_cast<double>(i);
    LearnerOptions options;
    options.bias = 0.4;
    learners.push_back(MakeTestLearner(static_cast<int>(i), options, MakeAnalyticObjective(flat, 3),
                                       ThetaOf(policies[i]), Key(1)));
    LearnerState state = learners.back()->state();
    state.origin = origins[i];
    learners.back()->set_state(state);
  }
  FederationOptions options;
  options.algorithm = algorithm;
  return {options, std::move(learners)};
}

TEST(Racers, AreTheFinalsTheIncumbentAndTheMean) {
  const Task task = TextTask();
  const Mlp a = Net(task, 1), b = Net(task, 2), c = Net(task, 3);
  Federation federation = Sitting(Algorithm::kFedGen, {a, b, b, c}, {0, 1, 1, 1});
  ASSERT_TRUE(federation.Round());
  // The incumbent is learner 1's policy, which is still its final one; b enters once.
  const std::vector<Racer> racers = Racers(federation, Shape(task));
  EXPECT_THAT(Names(racers), ElementsAre("final-1", "final-2", "final-4", "average"));
  const Mlp& mean = racers[3].policy;
  for (std::size_t at = 0; at < mean.parameters.size(); ++at) {
    EXPECT_FLOAT_EQ(mean.parameters[at], (2 * b.parameters[at] + c.parameters[at]) / 3);
  }
  // Moved on from what it submitted: the incumbent runs under its own name.
  federation.learners()[0]->ContinueFrom(ThetaOf(Net(task, 4)));
  EXPECT_THAT(Names(Racers(federation, Shape(task))),
              ElementsAre("final-1", "final-2", "final-4", "incumbent", "average"));
  Federation local = Sitting(Algorithm::kLocal, {a, b, b, c}, {0, 1, 1, 1});
  EXPECT_THAT(Names(Racers(local, Shape(task))), ElementsAre("final-1", "final-2", "final-4"));
}

TEST(Race, IsWonByTheLeastCostOnTheSameWorlds) {
  const Task task = TextTask();
  std::vector<Racer> racers;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) racers.push_back({"r", Net(task, seed), {}});
  racers.push_back(racers[0]);
  EvaluateOptions options;
  options.num_worlds = 60;
  options.kernel = BestKernel();
  const WorldSource worlds = DrawnWorlds(task, Key(5), BestKernel());
  std::int64_t last = 0;
  const std::size_t winner =
      Race(task, worlds, options, Prize::kCost, racers, [&](std::int64_t done) {
        EXPECT_GE(done, last);
        last = done;
      });
  EXPECT_EQ(last, 300);
  std::size_t expected = 0;
  for (std::size_t i = 0; i < racers.size(); ++i) {
    const Tally tally = Evaluate(task, racers[i].policy, worlds, options);
    EXPECT_EQ(racers[i].tally.cost_sum, tally.cost_sum);
    EXPECT_EQ(racers[i].tally.outcome_hash, tally.outcome_hash);
    if (tally.cost_sum < racers[expected].tally.cost_sum) expected = i;
  }
  EXPECT_EQ(winner, expected);
  // For safety: the most arrivals, of equals the least cost.
  const std::size_t safest = Race(task, worlds, options, Prize::kSafety, racers, {});
  for (const Racer& racer : racers) {
    EXPECT_LE(racer.tally.reached, racers[safest].tally.reached);
    if (racer.tally.reached < racers[safest].tally.reached) continue;
    EXPECT_GE(racer.tally.cost_sum, racers[safest].tally.cost_sum);
  }
  // Equal costs: the first wins.
  std::vector<Racer> equal = {racers[2], racers[2]};
  EXPECT_EQ(Race(task, worlds, options, Prize::kCost, equal, {}), 0U);
}

}  // namespace
}  // namespace fedgen
