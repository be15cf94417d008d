// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/race.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fedgen/certify/bounds.h"
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
  EXPECT_THAT(racers[0].also, ElementsAre("incumbent"));
  EXPECT_THAT(racers[1].also, ElementsAre("final-3"));
  // Moved on from what it submitted: the incumbent runs under its own name.
  finalists.incumbent = Final(0, d);
  finalists.average = ThetaOf(Net(task, 5));
  EXPECT_THAT(Names(Racers(finalists, Shape(task))),
              ElementsAre("final-1", "final-2", "final-4", "incumbent", "average"));
}

// However many drive, the sums are those of one, and the winner is Race()'s.
TEST(Race, CanBeDivided) {
  Task task = TextTask();
  task.world.start.per_world = 2;
  std::vector<Racer> racers;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) racers.push_back({"r", Net(task, seed), {}});
  racers.push_back({"straight", Shape(task), {}});  // arrives in some worlds and not in others
  EvaluateOptions options;
  options.num_worlds = 50;
  options.starts_per_world = 2;
  options.kernel = BestKernel();
  const RaceCourse course{task, DrawnWorlds(task, Key(5), BestKernel()), options};
  const std::vector<RaceTally> whole = DrivePart(course, racers, 0, 1, {});
  ASSERT_GT(whole.back().reached, 0);
  ASSERT_LT(whole.back().reached, 100);
  for (const std::size_t num_parts : {std::size_t{3}, std::size_t{7}, std::size_t{60}}) {
    std::vector<RaceTally> sums(racers.size());
    for (std::size_t part = 0; part < num_parts; ++part) {
      const std::vector<RaceTally> some = DrivePart(course, racers, part, num_parts, {});
      for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i].episodes += some[i].episodes;
        sums[i].reached += some[i].reached;
        sums[i].cost += some[i].cost;
      }
    }
    EXPECT_EQ(sums, whole) << num_parts;
  }
  for (const Prize prize : {Prize::kCost, Prize::kSafety}) {
    const RaceResult race = Race(task, course.worlds, options, prize, racers, {});
    EXPECT_EQ(FindWinner(prize, whole), race.winner);
  }
  for (std::size_t i = 0; i < racers.size(); ++i) {
    EXPECT_EQ(whole[i].episodes, 100);
    EXPECT_EQ(TallyOf(whole[i]).reached, racers[i].tally.reached);
    EXPECT_NEAR(TallyOf(whole[i]).cost_sum, racers[i].tally.cost_sum, 1e-7);
  }
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
  const RaceResult race = Race(task, worlds, options, Prize::kCost, racers, [&](std::int64_t done) {
    EXPECT_GE(done, last);
    last = done;
  });
  EXPECT_EQ(last, 300);
  std::size_t expected = 0;
  std::vector<std::vector<bool>> arrived(racers.size());
  for (std::size_t i = 0; i < racers.size(); ++i) {
    const Tally tally = Evaluate(task, racers[i].policy, worlds, options, {},
                                 [&](std::int64_t /*index*/, const Episode& episode) {
                                   arrived[i].push_back(episode.outcome == Outcome::kReachedGoal);
                                 });
    EXPECT_EQ(racers[i].tally.cost_sum, tally.cost_sum);
    EXPECT_EQ(racers[i].tally.outcome_hash, tally.outcome_hash);
    if (tally.cost_sum < racers[expected].tally.cost_sum) expected = i;
  }
  EXPECT_EQ(race.winner, expected);
  EXPECT_EQ(race.winner_arrived, arrived[expected]);
  for (std::size_t e = 0; e < 60; ++e) {
    EXPECT_EQ(race.somebody_arrived[e],
              std::ranges::any_of(arrived, [e](const auto& of) { return of[e]; }));
  }
  // For safety: the most arrivals, of equals the least cost.
  const std::size_t safest = Race(task, worlds, options, Prize::kSafety, racers, {}).winner;
  for (const Racer& racer : racers) {
    EXPECT_LE(racer.tally.reached, racers[safest].tally.reached);
    if (racer.tally.reached < racers[safest].tally.reached) continue;
    EXPECT_GE(racer.tally.cost_sum, racers[safest].tally.cost_sum);
  }
  // Equal costs: the first wins.
  std::vector<Racer> equal = {racers[2], racers[2]};
  EXPECT_EQ(Race(task, worlds, options, Prize::kCost, equal, {}).winner, 0U);
}

// Arrivals of two drivers of which one arrives alone in so many episodes.
std::pair<std::vector<bool>, std::vector<bool>> Pairs(int both, int only_first, int only_second) {
  std::pair<std::vector<bool>, std::vector<bool>> pairs;
  const auto add = [&](int count, bool first, bool second) {
    pairs.first.insert(pairs.first.end(), static_cast<std::size_t>(count), first);
    pairs.second.insert(pairs.second.end(), static_cast<std::size_t>(count), second);
  };
  add(both, true, true);
  add(only_first, true, false);
  add(only_second, false, true);
  return pairs;
}

// Of 8 worlds that tell, all for one side happen with probability 2 / 2^8 = 0.0078 between equals,
// of 7 with 0.0156. The worlds that do not tell do not count.
TEST(Compare, IsTheExactTestOfMcNemar) {
  using Verdict = Comparison::Verdict;
  for (const int both : {0, 1000}) {
    const auto verdict = [both](int only_first, int only_second) {
      const auto [first, second] = Pairs(both, only_first, only_second);
      const Comparison comparison = Compare(first, second, 1, 0.99);
      EXPECT_EQ(comparison.only_first, only_first);
      EXPECT_EQ(comparison.only_second, only_second);
      return comparison.verdict;
    };
    EXPECT_EQ(verdict(7, 0), Verdict::kOpen);
    EXPECT_EQ(verdict(8, 0), Verdict::kBetter);
    EXPECT_EQ(verdict(0, 7), Verdict::kOpen);
    EXPECT_EQ(verdict(0, 8), Verdict::kWorse);
    EXPECT_EQ(verdict(0, 0), Verdict::kOpen);
    EXPECT_EQ(verdict(40, 40), Verdict::kOpen);
  }
}

// Four starts of a world are one sample: what tells as 80 worlds does not as 20.
TEST(Compare, CountsWorldsNotStarts) {
  const auto [first, second] = Pairs(0, 80, 40);
  EXPECT_EQ(Compare(first, second, 1, 0.99).verdict, Comparison::Verdict::kBetter);
  EXPECT_EQ(Compare(first, second, 4, 0.99).verdict, Comparison::Verdict::kOpen);
  const auto [all, none] = Pairs(0, 4000, 0);
  EXPECT_EQ(Compare(all, none, 4, 0.99).verdict, Comparison::Verdict::kBetter);
  EXPECT_EQ(Compare(none, all, 4, 0.99).verdict, Comparison::Verdict::kWorse);
}

// Eq. 43's bound on the mean of (1 + difference of a world's shares) / 2, written down from a list
// of these.
TEST(Compare, TellsByTheMeanOfWorldsWithSeveralStarts) {
  constexpr int kStarts = 4;
  int told = 0, open = 0;
  for (int num_worlds = 2; num_worlds < 400; ++num_worlds) {
    for (const int leads : {1, 2, 4}) {  // starts of every other world in which one arrives alone
      std::vector<bool> first, second;
      std::vector<double> values;
      for (int world = 0; world < num_worlds; ++world) {
        const int lead = world % 2 == 0 ? leads : 0;
        for (int start = 0; start < kStarts; ++start) {
          first.push_back(start < lead);
          second.push_back(false);
        }
        values.push_back((1 + static_cast<double>(lead) / kStarts) / 2);
      }
      double mean = 0, variance = 0;
      for (const double value : values) mean += value / num_worlds;
      for (const double value : values) variance += (value - mean) * (value - mean);
      variance /= num_worlds - 1;
      const bool expected = mean - 0.5 > EmpiricalBernsteinBias(variance, num_worlds, 0.01);
      using Verdict = Comparison::Verdict;
      ASSERT_EQ(Compare(first, second, kStarts, 0.99).verdict,
                expected ? Verdict::kBetter : Verdict::kOpen)
          << num_worlds << " worlds, " << leads;
      ASSERT_EQ(Compare(second, first, kStarts, 0.99).verdict,
                expected ? Verdict::kWorse : Verdict::kOpen)
          << num_worlds << " worlds, " << leads;
      ++(expected ? told : open);
    }
  }
  EXPECT_GT(told, 100);
  EXPECT_GT(open, 100);
}

// 8 worlds that all tell against the winner have probability 0.0078 between equals, too much at
// 0.01 / 2 for one that is compared with two drivers. 9 have 0.0039: enough, but not at 0.01 / 4
// for the better of two; 10 have 0.0020, too much for the best of three. Of worlds with two starts
// so few episodes never tell.
TEST(MeasureBaselines, PayForTheChoiceOfTheWinner) {
  using Verdict = Comparison::Verdict;
  const auto verdict = [](int lost, std::size_t num_racers, int starts) {
    Task task = TextTask();
    task.world.start.per_world = starts;
    EvaluateOptions options;
    options.num_worlds = 60;
    options.starts_per_world = starts;
    options.kernel = BestKernel();
    const WorldSource worlds = DrawnWorlds(task, Key(6), BestKernel());
    RaceResult race;  // of one that does as the gap follower, except where it fails
    Evaluate(task, GapFollower{}, worlds, options, {},
             [&](std::int64_t /*index*/, const Episode& episode) {
               const bool arrived = episode.outcome == Outcome::kReachedGoal;
               race.winner_arrived.push_back(arrived && lost <= 0);
               if (arrived) --lost;
             });
    race.somebody_arrived.assign(race.winner_arrived.size(), true);  // another racer
    const Baselines baselines = MeasureBaselines(task, worlds, options, race, num_racers, {}, {});
    EXPECT_EQ(baselines.with_gap_follower.only_first, 0);
    return baselines.with_gap_follower.verdict;
  };
  EXPECT_EQ(verdict(8, 1, 1), Verdict::kOpen);
  EXPECT_EQ(verdict(9, 1, 1), Verdict::kWorse);
  EXPECT_EQ(verdict(9, 2, 1), Verdict::kOpen);
  EXPECT_EQ(verdict(10, 2, 1), Verdict::kWorse);
  EXPECT_EQ(verdict(10, 3, 1), Verdict::kOpen);
  EXPECT_EQ(verdict(9, 1, 2), Verdict::kOpen);
}

TEST(MeasureBaselines, DriveTheWorldsOfTheRace) {
  const Task task = TextTask();
  std::vector<Racer> racers = {{"a", Net(task, 1), {}}, {"b", Net(task, 2), {}}};
  EvaluateOptions options;
  options.num_worlds = 60;
  options.kernel = BestKernel();
  const WorldSource worlds = DrawnWorlds(task, Key(5), BestKernel());
  const RaceResult race = Race(task, worlds, options, Prize::kSafety, racers, {});
  std::int64_t driven = 0, searched = 0;
  const Baselines baselines = MeasureBaselines(
      task, worlds, options, race, racers.size(), [&](std::int64_t done) { driven = done; },
      [&](std::int64_t done, std::int64_t /*total*/) { searched = done; });
  EXPECT_EQ(driven, 120);
  ASSERT_EQ(baselines.drivers.size(), 2U);
  EXPECT_EQ(baselines.drivers[0].name, "straight");
  EXPECT_EQ(baselines.drivers[0].tally.outcome_hash,
            Evaluate(task, StraightAhead{}, worlds, options).outcome_hash);
  EXPECT_EQ(baselines.drivers[1].name, "gap-follower");
  const Tally gap = Evaluate(task, GapFollower{}, worlds, options);
  EXPECT_EQ(baselines.drivers[1].tally.outcome_hash, gap.outcome_hash);
  // Networks that nobody trained lose against it.
  const Comparison& comparison = baselines.with_gap_follower;
  EXPECT_EQ(comparison.only_second - comparison.only_first,
            gap.reached - racers[race.winner].tally.reached);
  EXPECT_EQ(comparison.verdict, Comparison::Verdict::kWorse);
  EXPECT_EQ(baselines.with_straight.only_second - baselines.with_straight.only_first,
            baselines.drivers[0].tally.reached - racers[race.winner].tally.reached);
  // Nobody crosses what cannot be crossed.
  EXPECT_EQ(baselines.crossable.episodes, 60);
  EXPECT_EQ(baselines.crossable.searched, searched);
  EXPECT_GE(baselines.crossable.crossed, gap.reached);
}

}  // namespace
}  // namespace fedgen
