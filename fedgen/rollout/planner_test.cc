// SPDX-License-Identifier: Apache-2.0
#include "fedgen/rollout/planner.h"

#include <gtest/gtest.h>

#include <numbers>

#include "tests/tasks.h"

namespace fedgen {
namespace {

constexpr float kUp = static_cast<float>(std::numbers::pi / 2);

World RoomWithGoalAbove(const Pose& start) {
  World world;
  // Closed on all sides, so that nobody drives around a wall.
  world.walls.Add(-3, 0, -3, 8);
  world.walls.Add(3, 0, 3, 8);
  world.walls.Add(-3, 0, 3, 0);
  world.walls.Add(-3, 8, 3, 8);
  world.goal.offset = 6;
  world.starts = {start};
  return world;
}

// A wall across the room with a gap of this width (m) whose middle is at x.
World WallWithGap(double x, double width) {
  World world = RoomWithGoalAbove({0, 1, kUp});
  world.walls.Add(-3, 4, static_cast<float>(x - width / 2), 4);
  world.walls.Add(static_cast<float>(x + width / 2), 4, 3, 4);
  return world;
}

std::optional<std::vector<float>> FindWay(const Task& task, const World& world,
                                          int expansions = kMostExpansions) {
  return Planner(task, BestKernel(), expansions).FindWay(world, 0);
}

Episode Judge(const Task& task, const World& world, const std::vector<float>& controls) {
  return Redrive(task, Kernel::kScalar, world, 0, controls);
}

// 5 m at 0.125 m a step.
TEST(Planner, DrivesStraightThroughAnEmptyWorld) {
  EXPECT_EQ(FindWay(Task(), RoomWithGoalAbove({0, 1, kUp})), std::vector<float>(40, 0.0F));
}

TEST(Planner, NeedsNoControlInTheGoalAndNoneHelpsInAnObstacle) {
  World world = RoomWithGoalAbove({0, 7, kUp});
  EXPECT_EQ(FindWay(Task(), world), std::vector<float>());
  world.discs.Add(0, 7, 0.2F);
  EXPECT_FALSE(FindWay(Task(), world));
}

TEST(Planner, TurnsAround) {
  for (const Task& task : {TextTask(), TablesTask()}) {  // car and differential drive
    const World world = RoomWithGoalAbove({0.3F, 3, -kUp});
    const auto controls = FindWay(task, world);
    ASSERT_TRUE(controls.has_value());
    if (!controls) return;
    EXPECT_EQ(Judge(task, world, *controls).outcome, Outcome::kReachedGoal);
    EXPECT_EQ(Judge(task, world, {}).outcome, Outcome::kCollided);
  }
}

// The robot is 0.54 m wide.
TEST(Planner, FindsTheGapIfTheRobotFits) {
  const Task task;
  EXPECT_FALSE(FindWay(task, WallWithGap(1, 0)));
  EXPECT_FALSE(FindWay(task, WallWithGap(1.37, 0.53)));
  for (const double x : {-2.1, -0.43, 1.37, 2.2}) {
    const World world = WallWithGap(x, 0.6);
    const auto controls = FindWay(task, world);
    ASSERT_TRUE(controls.has_value()) << x;
    if (!controls) return;
    EXPECT_EQ(Judge(task, world, *controls).outcome, Outcome::kReachedGoal);
    // The way is for this robot: a wider one touches the wall on it.
    Task wider = task;
    wider.robot.radius = 0.31;
    EXPECT_EQ(Judge(wider, world, *controls).outcome, Outcome::kCollided) << x;
    EXPECT_FALSE(FindWay(wider, world)) << x;
  }
}

// The goal is 5 m ahead, 40 steps; around the disc it is some more.
TEST(Planner, KeepsTheTimeLimit) {
  Task task;
  World world = RoomWithGoalAbove({0, 1, kUp});
  world.discs.Add(0, 3, 0.3F);
  task.episode.horizon = 40;
  EXPECT_FALSE(FindWay(task, world));
  task.episode.horizon = 55;
  const auto controls = FindWay(task, world);
  ASSERT_TRUE(controls.has_value());
  if (!controls) return;
  EXPECT_GT(controls->size(), 40U);
  EXPECT_LE(controls->size(), 55U);
}

TEST(Planner, GivesUpAfterItsExpansions) {
  const World world = WallWithGap(-2.1, 0.6);
  EXPECT_TRUE(FindWay(Task(), world));
  EXPECT_FALSE(FindWay(Task(), world, 30));
}

// Every way that is found arrives when it is driven as an episode, also by the scalar kernel: in a
// field, in noise that is drawn 32 steps at a time, and from the third start of a world.
TEST(Planner, FindsWaysThatArrive) {
  for (const Task& task : {TextTask(), TablesTask(), MixedTask()}) {
    const WorldSource worlds = DrawnWorlds(task, Key(7), BestKernel());
    Planner planner(task, BestKernel(), 3000);
    int found = 0, steered = 0;
    for (int index = 0; index < 40; ++index) {
      World scratch;
      const World& world = worlds(index, scratch);
      const int start = task.world.start.per_world - 1;
      const auto controls = planner.FindWay(world, start);
      if (!controls) continue;
      ++found;
      const Episode episode = Redrive(task, Kernel::kScalar, world, start, *controls);
      EXPECT_EQ(episode.outcome, Outcome::kReachedGoal) << index;
      EXPECT_EQ(episode.steps, static_cast<int>(controls->size())) << index;
      steered += *controls == std::vector<float>(controls->size()) ? 0 : 1;
    }
    EXPECT_GE(found, 20);
    EXPECT_GE(steered, 10);
  }
}

// A push of up to 1 m/s, drawn anew at every step: whoever mistakes it misses a gap with 2 cm to
// spare.
TEST(Planner, KnowsTheNoiseOfTheEpisode) {
  World world = WallWithGap(1.37, 0.56);
  world.starts.push_back(world.starts[0]);
  world.disturbance.kind = Disturbance::Kind::kUniformNoise;
  world.disturbance.half_width = 1;
  const Task task;
  Planner planner(task, BestKernel(), 3000);
  int found = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    world.disturbance.key = Key(seed);
    found += planner.FindWay(world, 1) ? 1 : 0;
  }
  EXPECT_EQ(found, 100);  // with the noise of another block of 32 steps 98
}

std::vector<bool> ArrivalsOf(const Task& task, const Policy& policy, const WorldSource& worlds,
                             const EvaluateOptions& options) {
  std::vector<bool> arrived;
  Evaluate(task, policy, worlds, options, {}, [&](std::int64_t /*index*/, const Episode& episode) {
    arrived.push_back(episode.outcome == Outcome::kReachedGoal);
  });
  return arrived;
}

// Only failures are searched, each by itself, and any number of threads counts the same.
TEST(FindCrossable, CountsArrivalsAndWays) {
  const Task task = MixedTask();
  EvaluateOptions options;
  options.num_worlds = 30;
  options.starts_per_world = 3;
  options.kernel = BestKernel();
  const WorldSource worlds = DrawnWorlds(task, Key(3), BestKernel());
  const std::vector<bool> arrived = ArrivalsOf(task, GapFollower{}, worlds, options);
  std::int64_t failures = 0, crossed = 0;
  Planner planner(task, BestKernel(), kMostExpansions);
  for (int episode = 0; episode < 90; ++episode) {
    World scratch;
    const bool here = arrived[static_cast<std::size_t>(episode)];
    failures += here ? 0 : 1;
    crossed += here || planner.FindWay(worlds(episode / 3, scratch), episode % 3) ? 1 : 0;
  }
  EXPECT_GT(failures, 5);
  EXPECT_GT(crossed, 90 - failures);
  for (const int threads : {1, 2, 5}) {
    options.num_threads = threads;
    std::int64_t last = 0;
    const Crossable crossable =
        FindCrossable(task, worlds, options, arrived, [&](std::int64_t done, std::int64_t total) {
          EXPECT_EQ(done, ++last);
          EXPECT_EQ(total, failures);
        });
    EXPECT_EQ(last, failures);
    EXPECT_EQ(crossable.episodes, 90);
    EXPECT_EQ(crossable.searched, failures);
    EXPECT_EQ(crossable.crossed, crossed);
    EXPECT_EQ(crossable.expansions, kMostExpansions);
  }
}

// The text's worlds can be crossed, also where straight on fails: 200 of 200.
TEST(FindCrossable, CrossesTheTextsWorlds) {
  const Task task = TextTask();
  EvaluateOptions options;
  options.num_worlds = 200;
  options.kernel = BestKernel();
  const WorldSource worlds = DrawnWorlds(task, Key(11), BestKernel());
  const std::vector<bool> arrived = ArrivalsOf(task, StraightAhead{}, worlds, options);
  const Crossable crossable = FindCrossable(task, worlds, options, arrived);
  EXPECT_GT(crossable.searched, 100);
  EXPECT_EQ(crossable.crossed, 200);
}

// All searches together are bounded.
TEST(ExpansionsEach, AreFewerWhereThereIsMuchToSearch) {
  EXPECT_EQ(ExpansionsEach(0), kMostExpansions);
  EXPECT_EQ(ExpansionsEach(1000), kMostExpansions);
  EXPECT_EQ(ExpansionsEach(10'000), kMostExpansions / 10);
  EXPECT_EQ(ExpansionsEach(std::int64_t{1} << 40), 1);
}

}  // namespace
}  // namespace fedgen
