// SPDX-License-Identifier: Apache-2.0
#include "fedgen/rollout/evaluate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <numbers>
#include <vector>

namespace fedgen {
namespace {

const Policy kStraight = StraightAhead{};

Task TextTask() {
  Task task;
  task.world.walls = {{-5, 0, -5, 10}, {5, 0, 5, 10}, {-5, 0, 5, 0}};
  task.world.random_discs = {{15, 30}, {-5, 5}, {2, 10}, {0.1, 0.25}};
  task.world.disturbance.kind = Disturbance::Kind::kVonKarman;
  return task;
}

Task TablesTask() {
  Task task;
  task.world.walls = {{-4.9, 0, -4.9, 10}, {4.9, 0, 4.9, 10}, {-5, 0.1, 5, 0.1}};
  task.world.random_discs = {{15, 25}, {-5, 5}, {2, 10}, {0.1, 0.2}};
  task.world.goal.depth = 0.1;
  task.world.disturbance.kind = Disturbance::Kind::kUniformNoise;
  task.robot.kind = RobotOptions::Kind::kDifferential;
  task.episode.clock = EpisodeOptions::Clock::kStepIndex;
  return task;
}

TEST(Tally, AddsUpEpisodes) {
  const EpisodeOptions options;
  Tally tally;
  tally.Add(options, 0, {Outcome::kReachedGoal, 72, 0});
  tally.Add(options, 1, {Outcome::kCollided, 30, 5.5F});
  tally.Add(options, 2, {Outcome::kTimedOut, 150, 2.25F});
  tally.Add(options, 3, {Outcome::kReachedGoal, 80, 0});
  EXPECT_EQ(tally.episodes, 4);
  EXPECT_EQ(tally.reached, 2);
  EXPECT_EQ(tally.collided, 1);
  EXPECT_EQ(tally.timed_out, 1);
  EXPECT_EQ(tally.steps, 332);
  EXPECT_DOUBLE_EQ(tally.cost_sum, 2 + (1 - std::exp(-0.36)) + (1 - std::exp(-0.4)));
  EXPECT_DOUBLE_EQ(tally.goal_distance_sum, 7.75);
  EXPECT_DOUBLE_EQ(tally.arrival_time_sum, 3.6 + 4.0);
}

TEST(Tally, HasAFingerprintOfEveryEpisode) {
  const EpisodeOptions options;
  const std::vector<Episode> episodes = {{Outcome::kReachedGoal, 72, 0},
                                         {Outcome::kCollided, 30, 5.5F},
                                         {Outcome::kCollided, 30, 5.5F}};
  const auto hash = [&](const std::vector<std::size_t>& order, const std::vector<Episode>& of) {
    Tally tally;
    for (const std::size_t at : order) tally.Add(options, static_cast<std::int64_t>(at), of[at]);
    return tally.outcome_hash;
  };
  const std::uint64_t whole = hash({0, 1, 2}, episodes);
  EXPECT_EQ(hash({2, 0, 1}, episodes), whole) << "the order does not count";
  std::vector<Episode> changed = episodes;
  changed[1].outcome = Outcome::kTimedOut;
  EXPECT_NE(hash({0, 1, 2}, changed), whole);
  changed = episodes;
  changed[1].steps = 31;
  EXPECT_NE(hash({0, 1, 2}, changed), whole);
  changed = episodes;
  changed[1].goal_distance = std::nextafter(5.5F, 6.0F);
  EXPECT_NE(hash({0, 1, 2}, changed), whole);
  changed = {episodes[1], episodes[0], episodes[2]};  // who did what counts
  EXPECT_NE(hash({0, 1, 2}, changed), whole);
}

TEST(Evaluate, AddsUpWhatRolloutTells) {
  const Task task = TextTask();
  const WorldSource source = DrawnWorlds(task, Key(1), BestKernel());
  std::vector<Episode> episodes(300);
  Rollout(task, kStraight, BestKernel()).Run(source, 1, 0, episodes);
  Tally expected;
  for (std::size_t e = 0; e < episodes.size(); ++e) {
    expected.Add(task.episode, static_cast<std::int64_t>(e), episodes[e]);
  }
  EvaluateOptions options;
  options.num_worlds = 300;
  options.num_threads = 2;
  options.kernel = BestKernel();
  options.chunk = 64;
  const Tally tally = Evaluate(task, kStraight, source, options);
  EXPECT_EQ(tally.episodes, 300);
  EXPECT_EQ(tally.reached, expected.reached);
  EXPECT_EQ(tally.collided, expected.collided);
  EXPECT_EQ(tally.timed_out, expected.timed_out);
  EXPECT_EQ(tally.steps, expected.steps);
  EXPECT_EQ(tally.cost_sum, expected.cost_sum);
  EXPECT_EQ(tally.goal_distance_sum, expected.goal_distance_sum);
  EXPECT_EQ(tally.arrival_time_sum, expected.arrival_time_sum);
  EXPECT_EQ(tally.outcome_hash, expected.outcome_hash);
}

TEST(Evaluate, RunsEveryStartOfEveryWorld) {
  Task task = TextTask();
  task.world.start = {{-4, 4}, {0.5, 1.5}, {80, 100}, 5, 0};
  EvaluateOptions options;
  options.num_worlds = 40;
  options.starts_per_world = 5;
  options.kernel = BestKernel();
  options.chunk = 7;
  const Tally tally = Evaluate(task, kStraight, DrawnWorlds(task, Key(2), BestKernel()), options);
  EXPECT_EQ(tally.episodes, 200);
  EXPECT_EQ(tally.reached + tally.collided + tally.timed_out, 200);
}

TEST(Evaluate, ReportsItsProgressInOrder) {
  const Task task = TextTask();
  EvaluateOptions options;
  options.num_worlds = 100;
  options.num_threads = 3;
  options.kernel = BestKernel();
  options.chunk = 30;
  std::vector<std::int64_t> done;
  Evaluate(task, kStraight, DrawnWorlds(task, Key(3), BestKernel()), options,
           [&](std::int64_t episodes) { done.push_back(episodes); });
  EXPECT_EQ(done, (std::vector<std::int64_t>{30, 60, 90, 100}));
}

// A learner measures a hundred worlds a round: less than a thread takes at a time where there are
// many. The first episode begins when another thread has begun one, too.
TEST(Evaluate, DividesFewEpisodesAmongThreads) {
  const Task task = TextTask();
  const WorldSource source = DrawnWorlds(task, Key(4), BestKernel());
  EvaluateOptions options;
  options.num_worlds = 100;
  options.num_threads = 2;
  options.kernel = BestKernel();
  ASSERT_GT(options.chunk, options.num_worlds);
  std::atomic<bool> second{false};
  const auto with_another = [&](std::int64_t world, int start, World& scratch) -> const World& {
    if (world == 0) second.wait(false);
    if (world == 50) {
      second = true;
      second.notify_all();
    }
    return source(world, start, scratch);
  };
  const Tally tally = Evaluate(task, kStraight, WorldSource(with_another), options);
  options.num_threads = 1;
  EXPECT_EQ(tally.outcome_hash, Evaluate(task, kStraight, source, options).outcome_hash);
}

TEST(Evaluate, TellsEveryEpisodeInOrder) {
  const Task task = TextTask();
  const WorldSource source = DrawnWorlds(task, Key(1), BestKernel());
  std::vector<Episode> expected(300);
  Rollout(task, kStraight, BestKernel()).Run(source, 1, 0, expected);
  EvaluateOptions options;
  options.num_worlds = 300;
  options.num_threads = 3;
  options.kernel = BestKernel();
  options.chunk = 7;
  std::vector<Episode> told;
  Evaluate(task, kStraight, source, options, {}, [&](std::int64_t index, const Episode& episode) {
    EXPECT_EQ(index, static_cast<std::int64_t>(told.size()));
    told.push_back(episode);
  });
  ASSERT_EQ(told.size(), expected.size());
  for (std::size_t e = 0; e < told.size(); ++e) {
    EXPECT_EQ(told[e].outcome, expected[e].outcome);
    EXPECT_EQ(told[e].steps, expected[e].steps);
    EXPECT_EQ(told[e].goal_distance, expected[e].goal_distance);
  }
}

// A disc of radius r blocks the line x = 0 over a width of 2 R with R = r + 0.27; seen every 0.125
// m, of 2 (R - 0.0625^2 / (6 R)) on average. Discs are independent, so n of them leave the way free
// with (1 - E width / 10)^n.
double StraightSafeRate(const DiscDistribution& discs) {
  const double low = discs.radius.low + 0.27;
  const double high = discs.radius.high + 0.27;
  const double mean_inverse = std::log(high / low) / (high - low);
  const double width = low + high - 0.0625 * 0.0625 / 3 * mean_inverse;
  double sum = 0;
  for (int n = discs.count.low; n <= discs.count.high; ++n) sum += std::pow(1 - width / 10, n);
  return sum / (discs.count.high - discs.count.low + 1);
}

// One beam suffices to drive without looking. The disturbance sways the robot by some cm, which
// sweeps a little more: 0.001 of the rate, and five standard deviations. (Debug builds drive fewer
// worlds.)
#ifdef NDEBUG
constexpr std::int64_t kStraightWorlds = 100000;
#else
constexpr std::int64_t kStraightWorlds = 15000;
#endif

void ExpectStraightSafeRate(Task task, Key key) {
  task.lidar = {1, 0.1, 0, 0};
  EvaluateOptions options;
  options.num_worlds = kStraightWorlds;
  options.num_threads = 2;
  options.kernel = BestKernel();
  const Tally tally = Evaluate(task, kStraight, DrawnWorlds(task, key, BestKernel()), options);
  const double expected = StraightSafeRate(task.world.random_discs);
  EXPECT_EQ(tally.timed_out, 0);
  EXPECT_NEAR(static_cast<double>(tally.reached) / kStraightWorlds, expected,
              0.001 + 5 * std::sqrt(expected * (1 - expected) / kStraightWorlds));
}

TEST(Evaluate, FindsTheStraightDriveSafeAsOftenAsIndependentDiscsAllowInTheTextsWorld) {
  EXPECT_NEAR(StraightSafeRate(TextTask().world.random_discs), 0.135, 0.0005);
  ExpectStraightSafeRate(TextTask(), Key(4));
}

// The Init rows of the published tables: 0.172 to 0.188, of 10^4 worlds each.
TEST(Evaluate, FindsTheStraightDriveSafeAsOftenAsThePublishedTables) {
  EXPECT_NEAR(StraightSafeRate(TablesTask().world.random_discs), 0.181, 0.0005);
  ExpectStraightSafeRate(TablesTask(), Key(5));
}

}  // namespace
}  // namespace fedgen
