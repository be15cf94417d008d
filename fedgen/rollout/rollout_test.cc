// SPDX-License-Identifier: Apache-2.0
#include "fedgen/rollout/rollout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numbers>

#include "fedgen/sim/move_kernel.h"

namespace fedgen {
namespace {

constexpr float kUp = static_cast<float>(std::numbers::pi / 2);
const Policy kStraight = StraightAhead{};

bool operator==(const Episode& a, const Episode& b) {
  return a.outcome == b.outcome && a.steps == b.steps &&
         std::bit_cast<std::uint32_t>(a.goal_distance) ==
             std::bit_cast<std::uint32_t>(b.goal_distance);
}

// Discs everywhere and a field: the text's world.
Task TextTask() {
  Task task;
  task.world.walls = {{-5, 0, -5, 10}, {5, 0, 5, 10}, {-5, 0, 5, 0}};
  task.world.random_discs = {{15, 30}, {-5, 5}, {2, 10}, {0.1, 0.25}};
  task.world.disturbance.kind = Disturbance::Kind::kVonKarman;
  return task;
}

// A network that always gives the same control.
Policy Constant(double control, double limit) {
  MlpOptions options;
  options.hidden = {};
  options.output_map = OutputMap::kClamp;
  Mlp mlp = MakeMlp(options, 20, 5, limit);
  mlp.parameters.back() = static_cast<float>(control);
  return mlp;
}

World EmptyWorld(const Pose& start = {0, 1, kUp}) {
  World world;
  world.starts = {start};
  return world;
}

struct Driven {
  Episode episode;
  Trajectory trajectory;
  std::int64_t steps = 0;
};

// One episode in one world; both kernels must tell the same story.
Driven Drive(const Task& task, const Policy& policy, const World& world) {
  std::vector<Driven> driven;
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    Rollout rollout(task, policy, kernel);
    Driven& one = driven.emplace_back();
    one.steps =
        rollout.Run(GivenWorlds({&world, 1}), 1, 0, {&one.episode, 1}, {&one.trajectory, 1});
  }
  EXPECT_TRUE(driven[0].episode == driven[1].episode);
  EXPECT_EQ(driven[0].trajectory.poses, driven[1].trajectory.poses);
  EXPECT_EQ(driven[0].trajectory.controls, driven[1].trajectory.controls);
  return driven[1];
}

// y = 1 + 0.125 n reaches 10 on the 72nd step, after 3.6 s.
TEST(Rollout, ArrivesStraightAheadOnStep72) {
  const Task task;
  const Driven driven = Drive(task, kStraight, EmptyWorld());
  EXPECT_EQ(driven.episode.outcome, Outcome::kReachedGoal);
  EXPECT_EQ(driven.episode.steps, 72);
  EXPECT_EQ(driven.steps, 72);
  EXPECT_EQ(driven.episode.goal_distance, 0.0F);
  EXPECT_DOUBLE_EQ(ArrivalTime(task.episode, driven.episode), 3.6);
  EXPECT_DOUBLE_EQ(Cost(task.episode, driven.episode), 1 - std::exp(-0.36));  // Eq. 3
}

// The published tables: the robot must be 0.1 past the line, which the 73rd step does; counting
// from step 0 that is 3.6 s again.
TEST(Rollout, ArrivesOnStep73WhereTheTablesDrawTheLine) {
  Task task;
  task.episode.clock = EpisodeOptions::Clock::kStepIndex;
  World world = EmptyWorld();
  world.goal.depth = 0.1F;
  const Driven driven = Drive(task, kStraight, world);
  EXPECT_EQ(driven.episode.outcome, Outcome::kReachedGoal);
  EXPECT_EQ(driven.episode.steps, 73);
  EXPECT_DOUBLE_EQ(ArrivalTime(task.episode, driven.episode), 3.6);
  EXPECT_DOUBLE_EQ(Cost(task.episode, driven.episode), 1 - std::exp(-0.36));
}

TEST(ArrivalTime, CountsStepsOrTheStepsBefore) {
  EpisodeOptions options;
  Episode episode{Outcome::kReachedGoal, 10, 0};
  EXPECT_DOUBLE_EQ(ArrivalTime(options, episode), 0.5);
  options.clock = EpisodeOptions::Clock::kStepIndex;
  EXPECT_DOUBLE_EQ(ArrivalTime(options, episode), 0.45);
  episode.steps = 0;  // started in the goal
  EXPECT_EQ(ArrivalTime(options, episode), 0.0);
}

TEST(Cost, IsOneUnlessTheGoalIsReached) {
  const EpisodeOptions options;
  EXPECT_EQ(Cost(options, {Outcome::kCollided, 3, 5}), 1.0);
  EXPECT_EQ(Cost(options, {Outcome::kTimedOut, 150, 5}), 1.0);
  EXPECT_EQ(Cost(options, {Outcome::kReachedGoal, 0, 0}), 0.0);
  EXPECT_DOUBLE_EQ(Cost(options, {Outcome::kReachedGoal, 150, 0}), 1 - std::exp(-0.75));
}

TEST(Rollout, CollidesWithADiscInTheWay) {
  World world = EmptyWorld();
  world.discs.Add(0, 5, 0.2F);
  const Driven driven = Drive(Task{}, kStraight, world);
  EXPECT_EQ(driven.episode.outcome, Outcome::kCollided);
  // Nearer than 0.47 to (0, 5): 1 + 0.125 n > 4.53, first at n = 29, y = 4.625.
  EXPECT_EQ(driven.episode.steps, 29);
  EXPECT_FLOAT_EQ(driven.episode.goal_distance, 10 - 4.625F);
}

// At y = 9.875 the disc at 10.3 is 0.425 away, farther than 0.1 + 0.27; at y = 10, in the goal, it
// is 0.3 away.
TEST(Rollout, CountsACollisionBeforeAnArrivalInTheSameStep) {
  World world = EmptyWorld();
  world.discs.Add(0, 10.3F, 0.1F);
  const Driven driven = Drive(Task{}, kStraight, world);
  EXPECT_EQ(driven.episode.outcome, Outcome::kCollided);
  EXPECT_EQ(driven.episode.steps, 72);
  EXPECT_EQ(driven.episode.goal_distance, 0.0F);
}

TEST(Rollout, CountsAnArrivalBeforeATimeOutInTheSameStep) {
  Task task;
  task.episode.horizon = 72;
  EXPECT_EQ(Drive(task, kStraight, EmptyWorld()).episode.outcome, Outcome::kReachedGoal);
  task.episode.horizon = 71;
  const Episode late = Drive(task, kStraight, EmptyWorld()).episode;
  EXPECT_EQ(late.outcome, Outcome::kTimedOut);
  EXPECT_EQ(late.steps, 71);
  EXPECT_FLOAT_EQ(late.goal_distance, 0.125F);
}

// A differential drive that turns at 1 rad/s runs in a circle of radius 2.5 m around (-2.5, 1).
TEST(Rollout, TimesOutInACircle) {
  Task task;
  task.robot.kind = RobotOptions::Kind::kDifferential;
  const Driven driven = Drive(task, Constant(1, 5), EmptyWorld());
  EXPECT_EQ(driven.episode.outcome, Outcome::kTimedOut);
  EXPECT_EQ(driven.episode.steps, 150);
  for (const Pose& pose : driven.trajectory.poses) {
    ASSERT_NEAR(std::hypot(pose.x + 2.5, pose.y - 1), 2.5, 0.15);
  }
}

TEST(Rollout, EndsAtStepZeroIfTheStartIsACollisionOrTheGoal) {
  World world = EmptyWorld();
  world.discs.Add(0.1F, 1, 0.2F);
  const Driven collided = Drive(Task{}, kStraight, world);
  EXPECT_EQ(collided.episode.outcome, Outcome::kCollided);
  EXPECT_EQ(collided.episode.steps, 0);
  EXPECT_FLOAT_EQ(collided.episode.goal_distance, 9.0F);
  EXPECT_EQ(collided.trajectory.poses.size(), 1U);
  EXPECT_TRUE(collided.trajectory.controls.empty());
  const Driven arrived = Drive(Task{}, kStraight, EmptyWorld({0, 11, kUp}));
  EXPECT_EQ(arrived.episode.outcome, Outcome::kReachedGoal);
  EXPECT_EQ(arrived.episode.steps, 0);
}

// Episode e is start e % n of world e / n. Starts 0.125 (e + 1) before the goal arrive on that
// step.
TEST(Rollout, DrivesEveryStartOfEveryWorld) {
  std::vector<World> worlds(3);
  for (std::size_t w = 0; w < 3; ++w) {
    for (std::size_t start = 0; start < 4; ++start) {
      const float steps = static_cast<float>(4 * w + start + 1);
      worlds[w].starts.push_back({0, 10 - 0.125F * steps, kUp});
    }
  }
  const Task task;
  Rollout rollout(task, kStraight, BestKernel());
  std::vector<Episode> episodes(12);
  EXPECT_EQ(rollout.Run(GivenWorlds(worlds), 4, 0, episodes), 12 * 13 / 2);
  for (int e = 0; e < 12; ++e) {
    EXPECT_EQ(episodes[static_cast<std::size_t>(e)].outcome, Outcome::kReachedGoal);
    EXPECT_EQ(episodes[static_cast<std::size_t>(e)].steps, e + 1);
  }
  // From the middle on.
  std::vector<Episode> some(5);
  rollout.Run(GivenWorlds(worlds), 4, 6, some);
  for (std::size_t e = 0; e < 5; ++e) EXPECT_TRUE(some[e] == episodes[e + 6]);
}

TEST(Rollout, GivesEachStartItsOwnNoise) {
  Task task;
  task.world.disturbance.kind = Disturbance::Kind::kUniformNoise;
  task.world.start.per_world = 2;  // the same pose twice
  std::vector<Episode> episodes(2);
  std::vector<Trajectory> ways(2);
  Rollout rollout(task, kStraight, BestKernel());
  rollout.Run(DrawnWorlds(task, Key(1), BestKernel()), 2, 0, episodes, ways);
  EXPECT_EQ(ways[0].poses.front(), ways[1].poses.front());
  EXPECT_NE(ways[0].poses.back(), ways[1].poses.back());
}

// The recorded controls, played back from the recorded start, lead through the recorded poses.
TEST(Rollout, RecordsWaysThatReplay) {
  for (const auto kind : {Disturbance::Kind::kVonKarman, Disturbance::Kind::kUniformNoise}) {
    Task task = TextTask();
    task.world.disturbance.kind = kind;
    task.world.start = {{-4, 4}, {0.5, 1.5}, {60, 120}, 2, 0};
    const Policy policy = GapFollower{};
    const WorldSource source = DrawnWorlds(task, Key(2), BestKernel());
    constexpr std::size_t kEpisodes = 200;
    std::vector<Episode> episodes(kEpisodes);
    std::vector<Trajectory> ways(kEpisodes);
    Rollout rollout(task, policy, BestKernel(), 48);
    rollout.Run(source, 2, 0, episodes, ways);
    int longest = 0;
    for (std::size_t e = 0; e < kEpisodes; ++e) {
      World scratch;
      const World& world = source(static_cast<std::int64_t>(e / 2), scratch);
      const Trajectory& way = ways[e];
      ASSERT_EQ(way.poses.size(), static_cast<std::size_t>(episodes[e].steps + 1));
      ASSERT_EQ(way.controls.size(), static_cast<std::size_t>(episodes[e].steps));
      ASSERT_EQ(way.poses[0], world.starts[e % 2]);
      Batch batch(1, Lidar(task.lidar));
      batch.Place(0, world, way.poses[0], world.disturbance.key.Fork(e % 2));
      FaceHeading(Kernel::kScalar, 0, 1, batch);
      for (std::size_t step = 0; step < way.controls.size(); ++step) {
        batch.control[0] = way.controls[step];
        Disturb(Kernel::kScalar, 1, batch);
        Advance(Kernel::kScalar, task.robot, 0.05F, 1, batch);
        ASSERT_EQ(way.poses[step + 1], (Pose{batch.x[0], batch.y[0], batch.heading[0]}))
            << "episode " << e << ", step " << step;
      }
      // It ends where the episode says, and not before.
      const Pose& end = way.poses.back();
      ASSERT_NEAR(DistanceToGoal(world.goal, end.x, end.y), episodes[e].goal_distance, 1e-5);
      for (std::size_t step = 0; step < way.poses.size(); ++step) {
        const bool touches =
            Clearance(world, way.poses[step].x, way.poses[step].y) < task.robot.radius - 1e-5;
        ASSERT_TRUE(!touches ||
                    (step + 1 == way.poses.size() && episodes[e].outcome == Outcome::kCollided));
      }
      longest = std::max(longest, episodes[e].steps);
    }
    EXPECT_GT(longest, 60);
  }
}

TEST(Rollout, TellsTheSameWithAndWithoutTrajectories) {
  const Task task = TextTask();
  const Policy policy = GapFollower{};
  const WorldSource source = DrawnWorlds(task, Key(3), BestKernel());
  std::vector<Episode> with(100);
  std::vector<Episode> without(100);
  std::vector<Trajectory> ways(100);
  Rollout rollout(task, policy, BestKernel());
  EXPECT_EQ(rollout.Run(source, 1, 0, with, ways), rollout.Run(source, 1, 0, without));
  for (std::size_t e = 0; e < 100; ++e) EXPECT_TRUE(with[e] == without[e]);
}

TEST(Rollout, DrivesGivenWorldsAsDrawnOnes) {
  const Task task = TextTask();
  const Policy policy = GapFollower{};
  constexpr std::size_t kWorlds = 150;
  const WorldSource source = DrawnWorlds(task, Key(4), BestKernel());
  std::vector<World> worlds(kWorlds);
  for (std::size_t w = 0; w < kWorlds; ++w) source(static_cast<std::int64_t>(w), worlds[w]);
  std::vector<Episode> drawn(kWorlds);
  std::vector<Episode> given(kWorlds);
  Rollout rollout(task, policy, BestKernel(), 32);
  rollout.Run(source, 1, 0, drawn);
  rollout.Run(GivenWorlds(worlds), 1, 0, given);
  for (std::size_t w = 0; w < kWorlds; ++w) EXPECT_TRUE(drawn[w] == given[w]) << "world " << w;
}

// Notes what it is told, and turns the wheel by `turn`.
class Notes final : public RolloutWatcher {
 public:
  Notes(std::size_t num_episodes, float turn)
      : began(num_episodes), ended(num_episodes), decided(num_episodes), turn_(turn) {}

  void OnBegin(std::int64_t episode) override {
    const auto at = static_cast<std::size_t>(episode);
    EXPECT_EQ(ended[at], 0);
    ++began[at];
  }
  void OnDecided(std::span<const std::int64_t> episode_of, Batch& batch) override {
    for (std::size_t slot = 0; slot < episode_of.size(); ++slot) {
      const auto at = static_cast<std::size_t>(episode_of[slot]);
      EXPECT_EQ(began[at], 1);
      EXPECT_EQ(ended[at], 0);
      EXPECT_EQ(batch.step[slot], decided[at]) << "steps are told in order";
      ++decided[at];
      batch.control[slot] += turn_;
    }
  }
  void OnEnd(std::int64_t episode, const Episode& outcome, const Batch& batch,
             std::size_t slot) override {
    const auto at = static_cast<std::size_t>(episode);
    EXPECT_EQ(began[at], 1);
    EXPECT_EQ(outcome.steps, decided[at]);
    EXPECT_EQ(batch.step[slot], outcome.steps);
    EXPECT_EQ(batch.goal_distance[slot], outcome.goal_distance);
    ++ended[at];
  }

  std::vector<int> began, ended, decided;  // [episodes] how often

 private:
  float turn_;
};

TEST(Rollout, TellsAWatcherOfEveryEpisodeAndStepOnceAndChangesNothing) {
  Task task = TextTask();
  task.world.start = {{-4, 4}, {0.5, 9}, {60, 120}, 2, 0};  // some end early
  const Policy policy = GapFollower{};
  const WorldSource source = DrawnWorlds(task, Key(7), BestKernel());
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    for (const std::int64_t first : {0, 35}) {
      std::vector<Episode> alone(150), watched(150);
      Rollout rollout(task, policy, kernel, 16);
      Notes notes(watched.size(), 0);
      EXPECT_EQ(rollout.Run(source, 2, first, alone),
                rollout.Run(source, 2, first, watched, {}, &notes));
      for (std::size_t e = 0; e < alone.size(); ++e) {
        ASSERT_TRUE(alone[e] == watched[e]) << "episode " << e;
        ASSERT_EQ(notes.began[e], 1);
        ASSERT_EQ(notes.ended[e], 1);
        ASSERT_EQ(notes.decided[e], alone[e].steps);
      }
    }
  }
}

// Straight ahead plus 1 rad/s is the circle of TimesOutInACircle, step by step.
TEST(Rollout, DrivesAsItsWatcherTurnsTheWheel) {
  Task task;
  task.robot.kind = RobotOptions::Kind::kDifferential;
  const World world = EmptyWorld();
  const Driven turning = Drive(task, Constant(1, 5), world);
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    Driven turned;
    Notes notes(1, 1);
    Rollout rollout(task, kStraight, kernel);
    rollout.Run(GivenWorlds({&world, 1}), 1, 0, {&turned.episode, 1}, {&turned.trajectory, 1},
                &notes);
    EXPECT_EQ(turned.trajectory.poses, turning.trajectory.poses);
    EXPECT_EQ(turned.trajectory.controls, turning.trajectory.controls) << "with what was changed";
  }
}

TEST(Rollout, RunsNoEpisodesIfAskedForNone) {
  const Task task;
  Rollout rollout(task, kStraight, BestKernel());
  EXPECT_EQ(rollout.Run(GivenWorlds({}), 1, 0, {}), 0);
}

// The distribution's clearance is for points; a start is free if the robot's disc fits.
TEST(DrawnWorlds, StartWhereTheRobotFits) {
  Task task = TextTask();
  task.world.start.x = {-4.9, 4.9};
  task.world.start.y = {0.1, 9.9};
  const WorldSource source = DrawnWorlds(task, Key(5), BestKernel());
  World scratch;
  for (std::int64_t w = 0; w < 500; ++w) {
    const World& world = source(w, scratch);
    EXPECT_EQ(&world, &scratch);
    ASSERT_GT(Clearance(world, world.starts[0].x, world.starts[0].y), 0.27);
  }
}

// Episode e asks for start e % starts of world e / starts and for no other, so that a world of many
// starts costs as much as many worlds of one.
TEST(Rollout, AsksForTheStartItDrives) {
  Task task = TextTask();
  task.world.start.per_world = 3;
  const WorldSource drawn = DrawnWorlds(task, Key(6), BestKernel());
  std::vector<std::pair<std::int64_t, int>> asked;
  const WorldSource watched([&](std::int64_t index, int start, World& scratch) -> const World& {
    asked.emplace_back(index, start);
    return drawn(index, start, scratch);
  });
  std::vector<Episode> episodes(5);
  Rollout(task, kStraight, BestKernel()).Run(watched, 3, 2, episodes);
  EXPECT_THAT(asked, ::testing::ElementsAre(std::pair(0, 2), std::pair(1, 0), std::pair(1, 1),
                                            std::pair(1, 2), std::pair(2, 0)));
}

TEST(OutcomeName, IsAWordForEach) {
  EXPECT_EQ(OutcomeName(Outcome::kReachedGoal), "reached");
  EXPECT_EQ(OutcomeName(Outcome::kCollided), "collided");
  EXPECT_EQ(OutcomeName(Outcome::kTimedOut), "timed out");
}

// What was recorded and what is driven again are one episode: in a field and in noise, from the
// second start, for arrivals and collisions.
TEST(Redrive, RepeatsAnEpisodeFromItsControls) {
  Task task = TextTask();
  task.world.start.x = {-3, 3};
  task.world.start.per_world = 2;
  int reached = 0;
  for (const Disturbance::Kind kind :
       {Disturbance::Kind::kVonKarman, Disturbance::Kind::kUniformNoise}) {
    task.world.disturbance.kind = kind;
    const WorldSource worlds = DrawnWorlds(task, Key(9), BestKernel());
    const Policy policy = GapFollower{0, 1, 0.1, 0, 1};
    std::vector<Episode> episodes(60);
    std::vector<Trajectory> trajectories(60);
    Rollout(task, policy, BestKernel()).Run(worlds, 2, 0, episodes, trajectories);
    for (std::size_t e = 0; e < episodes.size(); ++e) {
      World scratch;
      const World& world = worlds(static_cast<std::int64_t>(e / 2), scratch);
      for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
        const Episode again =
            Redrive(task, kernel, world, static_cast<int>(e % 2), trajectories[e].controls);
        EXPECT_TRUE(again == episodes[e]) << e;
      }
      reached += episodes[e].outcome == Outcome::kReachedGoal ? 1 : 0;
    }
  }
  EXPECT_GT(reached, 20);
  EXPECT_LT(reached, 100);
}

}  // namespace
}  // namespace fedgen
