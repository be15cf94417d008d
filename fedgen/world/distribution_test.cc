// SPDX-License-Identifier: Apache-2.0
#include "fedgen/world/distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

namespace fedgen {
namespace {

// The paper's text: a 10 x 10 box, open at the top, with 15 to 30 discs.
WorldDistribution TextWorld() {
  WorldDistribution d;
  d.walls = {{-5, 0, -5, 10}, {5, 0, 5, 10}, {-5, 0, 5, 0}};
  d.random_discs = {{15, 30}, {-5, 5}, {2, 10}, {0.1, 0.25}};
  d.disturbance.kind = Disturbance::Kind::kVonKarman;
  return d;
}

World DrawOne(const WorldDistribution& distribution, Key key) {
  World world;
  DrawWorld(distribution, 0, key, BestKernel(), world);
  return world;
}

std::vector<World> DrawMany(const WorldDistribution& distribution, Key key, int num_worlds) {
  std::vector<World> worlds(static_cast<std::size_t>(num_worlds));
  for (std::size_t w = 0; w < worlds.size(); ++w) {
    DrawWorld(distribution, 0, key.Fork(w), BestKernel(), worlds[w]);
  }
  return worlds;
}

double ChiSquare(const std::vector<int>& counts) {
  double total = 0;
  for (const int count : counts) total += count;
  const double expected = total / static_cast<double>(counts.size());
  double sum = 0;
  for (const int count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

// What chi-square exceeds with probability 1e-6 (Wilson and Hilferty's cube root is normal).
double ChiSquareLimit(double degrees) {
  const double spread = 2 / (9 * degrees);
  return degrees * std::pow(1 - spread + 4.75 * std::sqrt(spread), 3);
}

// Kolmogorov and Smirnov's largest gap between the sample and the uniform law, times sqrt(n). It
// exceeds 2.7 with probability 2 exp(-2 2.7^2) = 1e-6.
double UniformGap(std::vector<double> sample, double low, double high) {
  std::sort(sample.begin(), sample.end());
  const auto n = static_cast<double>(sample.size());
  double gap = 0;
  for (std::size_t at = 0; at < sample.size(); ++at) {
    const double law = (sample[at] - low) / (high - low);
    gap = std::max({gap, law - static_cast<double>(at) / n, static_cast<double>(at + 1) / n - law});
  }
  return gap * std::sqrt(n);
}
constexpr double kGapLimit = 2.7;

// Sample correlation times sqrt(n): a standard normal if the pairs are independent.
double Correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto n = static_cast<double>(a.size());
  double mean_a = 0, mean_b = 0, var_a = 0, var_b = 0, cov = 0;
  for (std::size_t at = 0; at < a.size(); ++at) {
    mean_a += a[at] / n;
    mean_b += b[at] / n;
  }
  for (std::size_t at = 0; at < a.size(); ++at) {
    var_a += (a[at] - mean_a) * (a[at] - mean_a);
    var_b += (b[at] - mean_b) * (b[at] - mean_b);
    cov += (a[at] - mean_a) * (b[at] - mean_b);
  }
  return cov / std::sqrt(var_a * var_b) * std::sqrt(n);
}

// Does a robot of radius 0.27 that slides up the line x = 0 from y = 1 to the goal meet no disc?
bool StraightIsFree(const World& world) {
  for (std::size_t disc = 0; disc < static_cast<std::size_t>(world.discs.size()); ++disc) {
    if (std::fabs(world.discs.x[disc]) < world.discs.radius[disc] + 0.27F) return false;
  }
  return true;
}

constexpr int kNumWorlds = 20000;

class DrawnWorldsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    worlds_ = DrawMany(TextWorld(), Key(2024).Fork(Stream::kEvaluation), kNumWorlds);
  }
  static void TearDownTestSuite() { worlds_ = {}; }
  static std::vector<World> worlds_;
};
std::vector<World> DrawnWorldsTest::worlds_;

TEST_F(DrawnWorldsTest, HaveEveryNumberOfDiscsEquallyOften) {
  std::vector<int> counts(16);
  for (const World& world : worlds_) {
    ASSERT_GE(world.discs.size(), 15);
    ASSERT_LE(world.discs.size(), 30);
    ++counts[static_cast<std::size_t>(world.discs.size() - 15)];
  }
  EXPECT_LT(ChiSquare(counts), ChiSquareLimit(15));
}

TEST_F(DrawnWorldsTest, HaveUniformCentresAndRadii) {
  std::vector<double> x, y, radius;
  for (const World& world : worlds_) {
    for (std::size_t disc = 0; disc < static_cast<std::size_t>(world.discs.size()); ++disc) {
      x.push_back(world.discs.x[disc]);
      y.push_back(world.discs.y[disc]);
      radius.push_back(world.discs.radius[disc]);
      ASSERT_TRUE(x.back() >= -5 && x.back() <= 5) << x.back();
      ASSERT_TRUE(y.back() >= 2 && y.back() <= 10) << y.back();
      ASSERT_TRUE(radius.back() >= 0.0999999 && radius.back() <= 0.2500001) << radius.back();
    }
  }
  EXPECT_LT(UniformGap(x, -5, 5), kGapLimit);
  EXPECT_LT(UniformGap(y, 2, 10), kGapLimit);
  EXPECT_LT(UniformGap(radius, 0.1, 0.25), kGapLimit);
  EXPECT_LT(std::fabs(Correlation(x, y)), 5);
  EXPECT_LT(std::fabs(Correlation(x, radius)), 5);
  EXPECT_LT(std::fabs(Correlation(y, radius)), 5);
}

// Jointly uniform: cells of a 16 x 16 grid over the field of centres.
TEST_F(DrawnWorldsTest, CoverTheFieldEvenly) {
  std::vector<int> cells(256);
  for (const World& world : worlds_) {
    for (std::size_t disc = 0; disc < static_cast<std::size_t>(world.discs.size()); ++disc) {
      const auto column =
          std::min<std::size_t>(15, static_cast<std::size_t>((world.discs.x[disc] + 5) / 10 * 16));
      const auto row =
          std::min<std::size_t>(15, static_cast<std::size_t>((world.discs.y[disc] - 2) / 8 * 16));
      ++cells[16 * row + column];
    }
  }
  EXPECT_LT(ChiSquare(cells), ChiSquareLimit(255));
}

TEST_F(DrawnWorldsTest, HaveIndependentDiscs) {
  std::vector<double> x, next_x;
  for (const World& world : worlds_) {
    for (std::size_t disc = 0; disc < 14; disc += 2) {
      x.push_back(world.discs.x[disc]);
      next_x.push_back(world.discs.x[disc + 1]);
    }
  }
  EXPECT_LT(std::fabs(Correlation(x, next_x)), 5);
}

// A cheap generator seeded with consecutive integers made neighbouring worlds shifted copies of
// each other. Here disc k of world w knows nothing of disc k + shift of world w + distance.
TEST_F(DrawnWorldsTest, AreIndependentOfTheirNeighbours) {
  for (std::size_t distance = 1; distance <= 3; ++distance) {
    for (int shift = -2; shift <= 2; ++shift) {
      std::vector<double> here, there;
      for (std::size_t w = 0; w + distance < worlds_.size(); ++w) {
        for (std::size_t disc = 2; disc < 13; ++disc) {
          const auto other = static_cast<std::size_t>(static_cast<int>(disc) + shift);
          const DiscSet& a = worlds_[w].discs;
          const DiscSet& b = worlds_[w + distance].discs;
          ASSERT_FALSE(a.x[disc] == b.x[other] && a.y[disc] == b.y[other])
              << "disc " << disc << " of world " << w << " and " << other << " of its neighbour";
          here.push_back(a.x[disc]);
          there.push_back(b.x[other]);
        }
      }
      EXPECT_LT(std::fabs(Correlation(here, there)), 5)
          << "distance " << distance << ", shift " << shift;
    }
  }
}

TEST_F(DrawnWorldsTest, HaveIndependentCounts) {
  std::vector<double> here, there;
  for (std::size_t w = 0; w + 1 < worlds_.size(); ++w) {
    here.push_back(worlds_[w].discs.size());
    there.push_back(worlds_[w + 1].discs.size());
  }
  EXPECT_LT(std::fabs(Correlation(here, there)), 5);
}

// The same world index under neighbouring seeds.
TEST(DrawWorld, IsIndependentUnderNeighbouringSeeds) {
  std::vector<double> here, there, shifted;
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    const World a = DrawOne(TextWorld(), Key(seed).Fork(Stream::kTraining).Fork(0));
    const World b = DrawOne(TextWorld(), Key(seed + 1).Fork(Stream::kTraining).Fork(0));
    for (std::size_t disc = 0; disc < 14; ++disc) {
      here.push_back(a.discs.x[disc]);
      there.push_back(b.discs.x[disc]);
      shifted.push_back(b.discs.x[disc + 1]);
    }
  }
  EXPECT_LT(std::fabs(Correlation(here, there)), 5);
  EXPECT_LT(std::fabs(Correlation(here, shifted)), 5);
}

// A disc blocks the straight way with probability 2 (E r + 0.27) / 10, so n discs leave it free
// with (1 - that)^n: in the text's world 0.1344, with 15..25 discs of radius 0.1..0.2 0.1797. This
// is the number that dependent worlds moved by 0.03.
TEST(DrawWorld, LeavesTheStraightWayFreeAsOftenAsIndependentDiscsDo) {
  struct Case {
    int most;
    double largest_radius;
    double expected;
  };
  for (const Case& c : {Case{30, 0.25, 0.1344}, Case{25, 0.2, 0.1797}}) {
    WorldDistribution distribution = TextWorld();
    distribution.random_discs.count.high = c.most;
    distribution.random_discs.radius.high = c.largest_radius;
    distribution.disturbance.kind = Disturbance::Kind::kNone;
    const double clear = 1 - 2 * ((0.1 + c.largest_radius) / 2 + 0.27) / 10;
    double expected = 0;
    for (int n = 15; n <= c.most; ++n) expected += std::pow(clear, n) / (c.most - 14);
    ASSERT_NEAR(expected, c.expected, 5e-5);
    constexpr int kTrials = 50000;
    double free = 0;
    World world;
    for (std::uint64_t w = 0; w < kTrials; ++w) {
      DrawWorld(distribution, 0, Key(1).Fork(w), BestKernel(), world);
      free += StraightIsFree(world) ? 1 : 0;
    }
    EXPECT_NEAR(free / kTrials, expected, 5 * std::sqrt(expected * (1 - expected) / kTrials));
  }
}

void ExpectSameBits(const World& a, const World& b) {
  ASSERT_EQ(a.discs.size(), b.discs.size());
  ASSERT_EQ(a.discs.x, b.discs.x);  // with the padding
  ASSERT_EQ(a.discs.y, b.discs.y);
  ASSERT_EQ(a.discs.radius, b.discs.radius);
  ASSERT_EQ(a.walls.x, b.walls.x);
  ASSERT_EQ(a.boxes, b.boxes);
  ASSERT_EQ(a.box_edges.x, b.box_edges.x);
  ASSERT_EQ(a.box_edges.dy, b.box_edges.dy);
  ASSERT_EQ(a.goal, b.goal);
  ASSERT_EQ(a.starts, b.starts);
  ASSERT_EQ(a.disturbance.key, b.disturbance.key);
  ASSERT_EQ(a.disturbance.amplitude, b.disturbance.amplitude);
  ASSERT_EQ(a.disturbance.kx, b.disturbance.kx);
  ASSERT_EQ(a.disturbance.ky, b.disturbance.ky);
  ASSERT_EQ(a.disturbance.phase, b.disturbance.phase);
}

WorldDistribution EverythingRandom() {
  WorldDistribution d = TextWorld();
  d.discs = {{1, 2, 0.3}};
  d.boxes = {{-3, 3, 0.5, 0.25, 30}};
  d.random_boxes = {{0, 3}, {-4, 4}, {3, 9}, {0.1, 0.5}, {0.2, 0.4}, {0, 90}};
  d.goal.kind = Goal::Kind::kDisc;
  d.goal.x = {-3, 3};
  d.goal.y = {9, 11};
  d.goal.radius = {0.5, 1};
  d.start = {{-4, 4}, {0.5, 9}, {0, 180}, 3, 0.27};
  return d;
}

TEST(DrawWorld, GivesTheSameBitsInBothKernelsAndInAUsedWorld) {
  World used;
  for (std::uint64_t w = 0; w < 1000; ++w) {
    const WorldDistribution distribution = w % 2 == 0 ? EverythingRandom() : TextWorld();
    World scalar;
    DrawWorld(distribution, 0, Key(5).Fork(w), Kernel::kScalar, scalar);
    DrawWorld(distribution, 0, Key(5).Fork(w), BestKernel(), used);
    ExpectSameBits(scalar, used);
  }
}

TEST(DrawWorld, KeepsWhatIsFixed) {
  const World world = DrawOne(EverythingRandom(), Key(1));
  ASSERT_EQ(world.walls.size(), 3);
  EXPECT_EQ(world.walls.x[0], -5.0F);
  EXPECT_EQ(world.walls.dy[0], 10.0F);
  const auto last = static_cast<std::size_t>(world.discs.size() - 1);
  EXPECT_EQ(world.discs.x[last], 1.0F);
  EXPECT_EQ(world.discs.radius[last], 0.3F);
  EXPECT_EQ(world.boxes[0].half_x, 0.5F);
  EXPECT_FLOAT_EQ(world.boxes[0].heading, static_cast<float>(std::numbers::pi / 6));
}

TEST(DrawWorld, DrawsBoxesAndGoalsUniformly) {
  WorldDistribution distribution = EverythingRandom();
  distribution.start = {};
  std::vector<int> counts(4);
  std::vector<double> x, y, half_x, half_y, heading, goal_x, goal_y, goal_radius;
  for (const World& world : DrawMany(distribution, Key(6), 5000)) {
    ++counts[world.boxes.size() - 1];
    for (std::size_t box = 1; box < world.boxes.size(); ++box) {
      x.push_back(world.boxes[box].x);
      y.push_back(world.boxes[box].y);
      half_x.push_back(world.boxes[box].half_x);
      half_y.push_back(world.boxes[box].half_y);
      heading.push_back(world.boxes[box].heading);
    }
    goal_x.push_back(world.goal.x);
    goal_y.push_back(world.goal.y);
    goal_radius.push_back(world.goal.radius);
  }
  EXPECT_LT(ChiSquare(counts), ChiSquareLimit(3));
  EXPECT_LT(UniformGap(x, -4, 4), kGapLimit);
  EXPECT_LT(UniformGap(y, 3, 9), kGapLimit);
  EXPECT_LT(UniformGap(half_x, 0.1, 0.5), kGapLimit);
  EXPECT_LT(UniformGap(half_y, 0.2, 0.4), kGapLimit);
  EXPECT_LT(UniformGap(heading, 0, std::numbers::pi / 2), kGapLimit);
  EXPECT_LT(UniformGap(goal_x, -3, 3), kGapLimit);
  EXPECT_LT(UniformGap(goal_y, 9, 11), kGapLimit);
  EXPECT_LT(UniformGap(goal_radius, 0.5, 1), kGapLimit);
  EXPECT_LT(std::fabs(Correlation(x, heading)), 5);
}

// Discs, boxes, goal and starts have numbers of their own: no two of 41 variables of a world are
// correlated. 820 pairs exceed 5.5 standard deviations with probability 820 * 4e-8 = 3e-5.
TEST(DrawWorld, DrawsEverythingInAWorldIndependently) {
  constexpr Interval kUnit{1, 2};
  WorldDistribution distribution;
  distribution.random_discs = {{8, 9}, kUnit, kUnit, kUnit};
  distribution.random_boxes = {{1, 2}, kUnit, kUnit, kUnit, kUnit, kUnit};
  distribution.goal.offset = distribution.goal.x = distribution.goal.y = kUnit;
  distribution.goal.radius = kUnit;
  distribution.start = {{10, 11}, {10, 11}, kUnit, 2, 0};
  std::vector<std::vector<double>> variables(41);
  World world;
  for (std::uint64_t w = 0; w < 2000; ++w) {
    DrawWorld(distribution, 0, Key(12).Fork(w), BestKernel(), world);
    std::vector<float> values = {static_cast<float>(world.discs.size()),
                                 static_cast<float>(world.boxes.size())};
    for (std::size_t disc = 0; disc < 8; ++disc) {
      values.insert(values.end(),
                    {world.discs.x[disc], world.discs.y[disc], world.discs.radius[disc]});
    }
    const Box& box = world.boxes[0];
    const Goal& goal = world.goal;
    values.insert(values.end(), {box.x, box.y, box.half_x, box.half_y, box.heading});
    values.insert(values.end(), {goal.offset, goal.x, goal.y, goal.radius});
    for (const Pose& start : world.starts) {
      values.insert(values.end(), {start.x, start.y, start.heading});
    }
    ASSERT_EQ(values.size(), variables.size());
    for (std::size_t at = 0; at < values.size(); ++at) variables[at].push_back(values[at]);
  }
  for (std::size_t a = 0; a < variables.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      EXPECT_LT(std::fabs(Correlation(variables[a], variables[b])), 5.5) << a << " and " << b;
    }
  }
}

TEST(DrawWorld, MakesTheGoalsNormalAUnitVector) {
  WorldDistribution distribution = TextWorld();
  distribution.goal.normal = {3, -4};
  distribution.goal.offset = {2, 2};
  distribution.goal.depth = 0.125;
  const Goal goal = DrawOne(distribution, Key(1)).goal;
  EXPECT_FLOAT_EQ(goal.normal_x, 0.6F);
  EXPECT_FLOAT_EQ(goal.normal_y, -0.8F);
  EXPECT_EQ(goal.offset, 2.0F);
  EXPECT_EQ(goal.depth, 0.125F);
}

TEST(DrawWorld, PutsAConstantStartWhereItIs) {
  const World world = DrawOne(TextWorld(), Key(1));
  ASSERT_EQ(world.starts.size(), 1U);
  EXPECT_EQ(world.starts[0], (Pose{0, 1, static_cast<float>(std::numbers::pi / 2)}));
}

// Even into an obstacle: who fixes a start means it.
TEST(DrawWorld, DoesNotMoveAConstantStart) {
  WorldDistribution distribution = TextWorld();
  distribution.discs = {{0, 1, 0.5}};
  distribution.start.clearance = 0.27;
  EXPECT_EQ(DrawOne(distribution, Key(1)).starts[0].y, 1.0F);
}

TEST(DrawWorld, DrawsStartsFreeOfObstacles) {
  int near = 0;
  for (const World& world : DrawMany(EverythingRandom(), Key(7), 1000)) {
    ASSERT_EQ(world.starts.size(), 3U);
    for (const Pose& start : world.starts) {
      ASSERT_GT(Clearance(world, start.x, start.y), 0.27);
      near += Clearance(world, start.x, start.y) < 0.35 ? 1 : 0;
      ASSERT_TRUE(start.x >= -4 && start.x <= 4 && start.y >= 0.5F && start.y <= 9);
      ASSERT_TRUE(start.heading >= 0 && start.heading <= 3.1415928F);
    }
    EXPECT_NE(world.starts[0], world.starts[1]);
    EXPECT_NE(world.starts[1], world.starts[2]);
  }
  EXPECT_GT(near, 100) << "starts keep farther away than they must";
}

// The same bits whoever asks for the room: the distribution or the robot.
TEST(DrawWorld, DrawsStartsWhereTheRobotFits) {
  const auto starts = [](double clearance, double robot_radius) {
    WorldDistribution distribution = EverythingRandom();
    distribution.start.clearance = clearance;
    std::vector<Pose> all;
    World world;
    for (std::uint64_t w = 0; w < 100; ++w) {
      DrawWorld(distribution, robot_radius, Key(7).Fork(w), BestKernel(), world);
      all.insert(all.end(), world.starts.begin(), world.starts.end());
    }
    return all;
  };
  EXPECT_EQ(starts(0.1, 0.4), starts(0.4, 0));
  EXPECT_EQ(starts(0.4, 0.1), starts(0.4, 0));
  EXPECT_NE(starts(0.1, 0), starts(0.4, 0));
}

TEST(DrawWorld, DrawsStartsUniformlyInAnEmptyWorld) {
  WorldDistribution distribution;
  distribution.start = {{-2, 2}, {1, 3}, {45, 135}, 4, 0.27};
  std::vector<double> x, y, heading, first, second;
  for (const World& world : DrawMany(distribution, Key(8), 3000)) {
    for (const Pose& start : world.starts) {
      x.push_back(start.x);
      y.push_back(start.y);
      heading.push_back(start.heading);
    }
    first.push_back(world.starts[0].x);
    second.push_back(world.starts[1].x);
  }
  EXPECT_LT(UniformGap(x, -2, 2), kGapLimit);
  EXPECT_LT(UniformGap(y, 1, 3), kGapLimit);
  EXPECT_LT(UniformGap(heading, std::numbers::pi / 4, 3 * std::numbers::pi / 4), kGapLimit);
  EXPECT_LT(std::fabs(Correlation(first, second)), 5);
}

// A wall along the y axis, starts up to 1 m from it: of 64 attempts the farthest is at u = max of
// 64 uniform numbers, with mean 64 / 65 and standard deviation below 1 / 65. Any other choice, such
// as the last attempt, has mean 1 / 2.
TEST(DrawWorld, KeepsTheFreestAttemptWhereNoStartIsFree) {
  WorldDistribution distribution;
  distribution.walls = {{0, -10, 0, 10}};
  distribution.start = {{-1, 1}, {-1, 1}, {0, 0}, 2, 5};
  double sum = 0;
  constexpr int kWorlds = 200;
  for (const World& world : DrawMany(distribution, Key(9), kWorlds)) {
    ASSERT_EQ(world.starts.size(), 2U);
    EXPECT_NE(world.starts[0], world.starts[1]);
    for (const Pose& start : world.starts) {
      ASSERT_TRUE(std::fabs(start.x) <= 1 && std::fabs(start.y) <= 1);
      sum += std::fabs(static_cast<double>(start.x));
    }
  }
  EXPECT_NEAR(sum / (2 * kWorlds), 64.0 / 65, 5.0 / 65 / std::sqrt(2 * kWorlds));
}

TEST(WorldDistribution, IsEmptyWithoutObstacles) {
  EXPECT_TRUE(IsEmpty({}));
  using D = WorldDistribution;
  const std::vector<std::function<void(D&)>> additions = {
      [](D& d) { d.walls = {{0, 0, 1, 1}}; }, [](D& d) { d.boxes = {{0, 0, 1, 1, 0}}; },
      [](D& d) { d.discs = {{0, 0, 1}}; }, [](D& d) { d.random_discs.count = {0, 1}; },
      [](D& d) { d.random_boxes.count = {0, 1}; }};
  for (const auto& add : additions) {
    WorldDistribution distribution;
    add(distribution);
    EXPECT_FALSE(IsEmpty(distribution));
  }
}

// One start of many is the one that all would have.
TEST(DrawWorld, DrawsOneStartAsItDrawsAll) {
  WorldDistribution distribution = EverythingRandom();
  distribution.start.per_world = 7;
  for (std::uint64_t w = 0; w < 20; ++w) {
    World all, one;
    DrawWorld(distribution, 0.27, Key(7).Fork(w), BestKernel(), all);
    for (const int start : {6, 0, 3}) {
      DrawWorld(distribution, 0.27, Key(7).Fork(w), BestKernel(), one, start);
      ASSERT_EQ(one.starts.size(), 7U);
      EXPECT_EQ(one.starts[static_cast<std::size_t>(start)],
                all.starts[static_cast<std::size_t>(start)]);
      EXPECT_EQ(one.disturbance.key, all.disturbance.key);
      EXPECT_EQ(one.discs.x, all.discs.x);
    }
  }
}

// One start in 20 attempts is free: 64 attempts miss it with probability 0.95^64 = 0.04.
TEST(DrawWorld, TriesAStart64Times) {
  WorldDistribution distribution;
  distribution.boxes = {{-1, 0, 19, 1, 0}};  // covers x in [-20, 18] of [-20, 20]
  distribution.start = {{-20, 20}, {-0.5, 0.5}, {0, 0}, 1, 0};
  constexpr int kWorlds = 4000;
  double missed = 0;
  for (const World& world : DrawMany(distribution, Key(10), kWorlds)) {
    missed += world.starts[0].x <= 18 ? 1 : 0;
  }
  const double expected = std::pow(0.95, 64);
  EXPECT_NEAR(missed / kWorlds, expected, 5 * std::sqrt(expected * (1 - expected) / kWorlds));
}

TEST(DrawWorld, GivesEachWorldADisturbanceOfItsOwn) {
  const World a = DrawOne(TextWorld(), Key(1).Fork(0));
  const World b = DrawOne(TextWorld(), Key(1).Fork(1));
  EXPECT_NE(a.disturbance.key, b.disturbance.key);
  EXPECT_NE(a.disturbance.phase, b.disturbance.phase);
  EXPECT_EQ(a.disturbance.kx.size(), 32U);
  EXPECT_EQ(a.disturbance.gain, (std::array<float, 3>{1, 0, 0}));
}

TEST(DrawWorld, MakesNoWavesWithoutAField) {
  WorldDistribution distribution = TextWorld();
  World world;
  DrawWorld(distribution, 0, Key(1), BestKernel(), world);
  distribution.disturbance.kind = Disturbance::Kind::kUniformNoise;
  DrawWorld(distribution, 0, Key(1), BestKernel(), world);
  EXPECT_TRUE(world.disturbance.kx.empty());
  EXPECT_EQ(world.disturbance.half_width, 0.2F);
}

// A world file keeps only the key and the numbers: they must fix the waves.
TEST(SynthesizeField, IsAFunctionOfKeyAndNumbers) {
  const World world = DrawOne(TextWorld(), Key(3));
  Disturbance again;
  again.kind = world.disturbance.kind;
  again.key = world.disturbance.key;
  again.intensity = world.disturbance.intensity;
  again.length_scale = world.disturbance.length_scale;
  again.shortest_wavelength = world.disturbance.shortest_wavelength;
  SynthesizeField(32, BestKernel(), again);
  EXPECT_EQ(again.kx, world.disturbance.kx);
  EXPECT_EQ(again.ky, world.disturbance.ky);
  EXPECT_EQ(again.phase, world.disturbance.phase);
  EXPECT_EQ(again.amplitude, world.disturbance.amplitude);
}

// Eq. 5: M waves of amplitude A have the variance M A^2 / 2 = intensity^2.
TEST(SynthesizeField, SharesTheVarianceAmongItsWaves) {
  for (const int modes : {8, 32, 256}) {
    Disturbance field;
    field.intensity = 0.3F;
    SynthesizeField(modes, BestKernel(), field);
    EXPECT_NEAR(modes * std::pow(static_cast<double>(field.amplitude), 2) / 2, 0.09, 1e-7);
  }
}

// Eq. 5 in double, in rad/m: u_m = (m + U) / M F(2 pi / shortest), k_m = k0 sqrt((1 - u_m)^-3 - 1).
TEST(SynthesizeField, PlacesItsWavesByTheVonKarmanSpectrum) {
  for (const double length_scale : {0.3, 1.0, 4.0}) {
    Disturbance field;
    field.key = Key(13);
    field.intensity = 1;
    field.length_scale = static_cast<float>(length_scale);
    field.shortest_wavelength = 0.5F;
    SynthesizeField(64, BestKernel(), field);
    const double k0 = 1 / (1.339 * length_scale);
    const double cutoff = 2 * std::numbers::pi / 0.5 / k0;
    const double share = 1 - std::pow(1 + cutoff * cutoff, -1.0 / 3);
    for (std::size_t mode = 0; mode < 64; ++mode) {
      const double unit = UnitFloat(field.key.Block(mode)[0]);
      const double u = (static_cast<double>(mode) + unit) / 64 * share;
      const double k = k0 * std::sqrt(std::pow(1 - u, -3) - 1);
      const double cycles =
          std::hypot(static_cast<double>(field.kx[mode]), static_cast<double>(field.ky[mode]));
      EXPECT_NEAR(2 * std::numbers::pi * cycles, k, 1e-3 * k) << "mode " << mode;
    }
  }
}

TEST(SynthesizeField, HasNoWaveShorterThanTheShortest) {
  for (const float shortest : {0.05F, 0.25F, 2.0F}) {
    Disturbance field;
    field.intensity = 1;
    field.length_scale = 1.5F;
    field.shortest_wavelength = shortest;
    double largest = 0;
    for (std::uint64_t trial = 0; trial < 500; ++trial) {
      field.key = Key(trial);
      SynthesizeField(32, BestKernel(), field);
      for (std::size_t mode = 0; mode < 32; ++mode) {
        largest = std::max(largest, std::hypot(static_cast<double>(field.kx[mode]),
                                               static_cast<double>(field.ky[mode])));
      }
    }
    const double cutoff = 1 / static_cast<double>(shortest);  // cycles/m
    EXPECT_LT(largest, 1.001 * cutoff);
    EXPECT_GT(largest, 0.98 * cutoff);
  }
}

TEST(Validate, FindsNothingWrongWithTheWorldsOfThePaper) {
  EXPECT_FALSE(Validate(TextWorld()));
  EXPECT_FALSE(Validate(EverythingRandom()));
  EXPECT_FALSE(Validate(WorldDistribution{}));
}

TEST(Validate, NamesTheFieldItsValueAndTheRule) {
  const double nan = std::nan("");
  struct Case {
    std::function<void(WorldDistribution&)> spoil;
    std::string field;
    std::string problem;
  };
  using D = WorldDistribution;
  const std::vector<Case> cases = {
      {[](D& d) { d.random_discs.count = {-1, 3}; }, "random_discs.count",
       "[-1, 3]: must be in 0..1000"},
      {[](D& d) { d.random_discs.count = {5, 3}; }, "random_discs.count",
       "[5, 3]: low end above high end"},
      {[](D& d) { d.random_boxes.count = {0, 1001}; }, "random_boxes.count",
       "[0, 1001]: must be in 0..1000"},
      {[](D& d) { d.random_discs.x = {5, -5}; }, "random_discs.x",
       "[5, -5]: low end above high end"},
      {[](D& d) { d.random_discs.y = {0, 2e6}; }, "random_discs.y",
       "[0, 2000000]: must be in [-1e4, 1e4]"},
      {[&](D& d) { d.random_discs.y = {nan, 1}; }, "random_discs.y",
       "[nan, 1]: must be in [-1e4, 1e4]"},
      {[](D& d) { d.random_discs.radius = {0, 0.2}; }, "random_discs.radius",
       "[0, 0.2]: must be in [0.001, 1e4]"},
      {[](D& d) { d.random_discs.radius = {1e-4, 0.2}; }, "random_discs.radius",
       "[0.0001, 0.2]: must be in [0.001, 1e4]"},
      {[](D& d) { d.random_boxes.x = {2, 1}; }, "random_boxes.x", "[2, 1]: low end above high end"},
      {[](D& d) { d.random_boxes.y = {2, 1}; }, "random_boxes.y", "[2, 1]: low end above high end"},
      {[](D& d) { d.random_boxes.half_x = {-1, -1}; }, "random_boxes.half_x",
       "-1: must be in [0.001, 1e4]"},
      {[](D& d) { d.random_boxes.half_y = {0, 0}; }, "random_boxes.half_y",
       "0: must be in [0.001, 1e4]"},
      {[](D& d) { d.random_boxes.heading_degrees = {90, 0}; }, "random_boxes.heading_degrees",
       "[90, 0]: low end above high end"},
      {[](D& d) { d.goal.offset = {11, 10}; }, "goal.offset", "[11, 10]: low end above high end"},
      {[](D& d) { d.goal.x = {1, 0}; }, "goal.x", "[1, 0]: low end above high end"},
      {[](D& d) { d.goal.y = {1, 0}; }, "goal.y", "[1, 0]: low end above high end"},
      {[](D& d) { d.goal.radius = {0, 0}; }, "goal.radius", "0: must be in [0.001, 1e4]"},
      {[](D& d) {
         d.goal.kind = Goal::Kind::kDisc;
         d.goal.radius = {0.5, 0.75};
         d.goal.depth = 0.5;  // the least disc has no point that deep inside
       },
       "goal.depth", "0.5: must be below goal.radius, or nobody arrives"},
      {[](D& d) { d.goal.depth = -0.1; }, "goal.depth", "-0.1: must be in [0, 1e6]"},
      {[](D& d) { d.goal.normal = {0, 0}; }, "goal.normal", "[0, 0]: must have a direction"},
      {[&](D& d) { d.goal.normal = {nan, 1}; }, "goal.normal[0]", "nan: must be in [-1e6, 1e6]"},
      {[](D& d) { d.start.x = {1, 0}; }, "start.x", "[1, 0]: low end above high end"},
      {[](D& d) { d.start.y = {1, 0}; }, "start.y", "[1, 0]: low end above high end"},
      {[](D& d) { d.start.heading_degrees = {90, 0}; }, "start.heading_degrees",
       "[90, 0]: low end above high end"},
      {[](D& d) { d.start.per_world = 0; }, "start.per_world", "0: must be in 1..10000"},
      {[](D& d) { d.start.per_world = 10001; }, "start.per_world", "10001: must be in 1..10000"},
      {[](D& d) { d.start.clearance = -1; }, "start.clearance", "-1: must be in [0, 1e6]"},
      {[&](D& d) { d.disturbance.intensity = nan; }, "disturbance.intensity",
       "nan: must be in [0, 1e6]"},
      {[](D& d) { d.disturbance.length_scale = 0; }, "disturbance.length_scale",
       "0: must be in [0.001, 1e6]"},
      {[](D& d) { d.disturbance.length_scale = 1e7; }, "disturbance.length_scale",
       "10000000: must be in [0.001, 1e6]"},
      {[](D& d) { d.disturbance.shortest_wavelength = 0; }, "disturbance.shortest_wavelength",
       "0: must be in [0.001, 1e6]"},
      {[](D& d) { d.disturbance.modes = 12; }, "disturbance.modes",
       "12: must be a multiple of 8 in 8..4096"},
      {[](D& d) { d.disturbance.half_width = -0.2; }, "disturbance.half_width",
       "-0.2: must be in [0, 1e6]"},
      {[&](D& d) { d.disturbance.gain[1] = nan; }, "disturbance.gain[1]",
       "nan: must be in [-1e6, 1e6]"},
      {[](D& d) { d.walls = {{0, 0, 1, 1}, {2, 2, 2, 2}}; }, "walls[1]",
       "shorter than 1e-3 m: must have two ends"},
      {[](D& d) { d.walls = {{0, 0, -2e6, 1}}; }, "walls[0][2]",
       "-2000000: must be in [-1e4, 1e4]"},
      {[](D& d) { d.boxes = {{0, 0, 1, 0, 0}}; }, "boxes[0][3]", "0: must be in [0.001, 1e4]"},
      {[](D& d) { d.discs = {{0, 0, 1}, {0, 0, -1}}; }, "discs[1][2]",
       "-1: must be in [0.001, 1e4]"},
  };
  for (const Case& c : cases) {
    WorldDistribution distribution = TextWorld();
    c.spoil(distribution);
    const std::optional<FieldError> error = Validate(distribution);
    ASSERT_TRUE(error) << c.field << " = " << c.problem;
    EXPECT_EQ(error->field, c.field);
    EXPECT_EQ(error->problem, c.problem) << c.field;
  }
}

}  // namespace
}  // namespace fedgen
