// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/race.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

Submission Final(std::uint32_t learner, const Mlp& mlp) {
  Submission s;
  s.learner = LearnerId(learner);
  s.theta = ThetaOf(mlp);
  return s;
}

TEST(Racers, AreTheFinalsTheIncumbentAndTheMean) {
  const Task task = TextTask();
  const Mlp a = Net(task, 1), b = Net(task, 2), c = Net(task, 3), d = Net(task, 4);
  Finalists finalists;
  finalists.finals = {Final(0, a), Final(1, b), Final(2, b), Final(3, c)};
  // The incumbent is learner 1's policy, which is still its final one; b enters once.
  finalists.incumbent = Final(0, a);
  const std::vector<Racer> racers = Racers(finalists, Shape(task));
  EXPECT_THAT(Names(racers), ElementsAre("final-1", "final-2", "final-4"));
  EXPECT_EQ(racers[2].policy.parameters, c.parameters);
  // Moved on from what it submitted: the incumbent runs under its own name.
  finalists.incumbent = Final(0, d);
  finalists.average = ThetaOf(Net(task, 5));
  EXPECT_THAT(Names(Racers(finalists, Shape(task))),
              ElementsAre("final-1", "final-2", "final-4", "incumbent", "average"));
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
