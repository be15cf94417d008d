// SPDX-License-Identifier: Apache-2.0
#include "fedgen/world/way_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "fedgen/world/distribution.h"

namespace fedgen {
namespace {

constexpr double kRadius = 0.3;      // m, of the robot
constexpr double kCell = 0.2;        // m
constexpr double kClearance = 0.25;  // m, that ways keep: a quarter of a cell less than the radius

double Draw(std::uint64_t trial, std::uint64_t variable, double low, double high) {
  return low +
         (high - low) * static_cast<double>(UnitFloat(Key(77).Fork(trial).Block(variable)[0]));
}

Goal DiscGoal(float x, float y, float radius) {
  Goal goal;
  goal.kind = Goal::Kind::kDisc;
  goal.x = x;
  goal.y = y;
  goal.radius = radius;
  return goal;
}

/// A square of 12 m without obstacles.
World EmptyWorld(const Goal& goal) {
  World world;
  world.goal = goal;
  world.starts = {{-6, 0, 0}, {6, 12, 0}, {-6, 12, 0}, {6, 0, 0}};
  return world;
}

/// The rooms of configs/rooms.toml, with discs as well.
WorldDistribution Rooms() {
  WorldDistribution rooms;
  rooms.walls = {{-6, 0, -6, 12}, {6, 0, 6, 12},  {-6, 0, 6, 0},
                 {-6, 12, 6, 12}, {-6, 6, -1, 6}, {1.5, 6, 6, 6}};
  rooms.random_boxes = {{4, 10}, {-5.5, 5.5}, {2, 11.5}, {0.2, 0.6}, {0.2, 0.6}, {0, 180}};
  rooms.random_discs = {{0, 4}, {-5.5, 5.5}, {2, 11.5}, {0.1, 0.25}};
  rooms.goal.kind = Goal::Kind::kDisc;
  rooms.goal.x = {-4.5, 4.5};
  rooms.goal.y = {8, 11};
  rooms.start.x = {-4.5, 4.5};
  rooms.start.y = {0.7, 4};
  rooms.start.clearance = 0.5;
  return rooms;
}

World DrawRooms(std::uint64_t index) {
  World world;
  DrawWorld(Rooms(), kRadius, Key(5).Fork(index), Kernel::kSimd, world);
  return world;
}

/// The shortest way from p to the disc of this radius around q, the long way around a post at the
/// origin, from which it keeps the clearance: two tangents and an arc.
double WayAroundPost(double px, double py, double qx, double qy, double radius) {
  const double p = std::hypot(px, py);
  const double q = std::hypot(qx, qy);
  const double turn = 2 * std::numbers::pi - std::acos((px * qx + py * qy) / (p * q));
  const double arc = turn - std::acos(kClearance / p) - std::acos(kClearance / q);
  return std::sqrt(p * p - kClearance * kClearance) + std::sqrt(q * q - kClearance * kClearance) +
         kClearance * arc - radius;
}

TEST(WayMap, IsTheStraightDistanceInAnEmptyWorld) {  // Eq. 45
  WayMap map(Kernel::kSimd, kCell);
  double largest = 0, smallest = 0;
  for (std::uint64_t trial = 0; trial < 40; ++trial) {
    const auto radius = static_cast<float>(Draw(trial, 2, 0.02, 1));
    const World world = EmptyWorld(DiscGoal(static_cast<float>(Draw(trial, 0, -5, 5)),
                                            static_cast<float>(Draw(trial, 1, 1, 11)), radius));
    map.Make(world, kRadius);
    for (std::uint64_t at = 10; at < 110; at += 2) {
      const double x = Draw(trial, at, -6, 6), y = Draw(trial, at + 1, 0, 12);
      const double truth = DistanceToGoal(world.goal, x, y);
      const double error = map.Distance(static_cast<float>(x), static_cast<float>(y)) - truth;
      largest = std::max(largest, error);
      smallest = std::min(smallest, error);
    }
  }
  EXPECT_LT(largest, 0.25);  // 0.20 was measured, of up to 15 m
  EXPECT_GT(smallest, -0.01);
}

TEST(WayMap, IsTheStraightDistanceToAHalfPlane) {  // Eq. 45
  WayMap map(Kernel::kSimd, kCell);
  double largest = 0;
  for (std::uint64_t trial = 0; trial < 20; ++trial) {
    const double angle = Draw(trial, 0, 0, 2 * std::numbers::pi);
    Goal goal;
    goal.normal_x = static_cast<float>(std::cos(angle));
    goal.normal_y = static_cast<float>(std::sin(angle));
    goal.offset = static_cast<float>(6 * std::sin(angle) + Draw(trial, 1, 0, 8));
    goal.depth = static_cast<float>(Draw(trial, 2, 0, 0.2));
    const World world = EmptyWorld(goal);
    map.Make(world, kRadius);
    for (std::uint64_t at = 10; at < 110; at += 2) {
      const double x = Draw(trial, at, -6, 6), y = Draw(trial, at + 1, 0, 12);
      const double truth =
          std::max(0.0, goal.offset + goal.depth - (goal.normal_x * x + goal.normal_y * y));
      const double error = map.Distance(static_cast<float>(x), static_cast<float>(y)) - truth;
      largest = std::max(largest, std::fabs(error));
    }
  }
  EXPECT_LT(largest, 0.01);
}

TEST(WayMap, GoesAroundTheEndOfAWall) {  // Eq. 45
  World world = EmptyWorld(DiscGoal(-3, 3, 0.5F));
  world.starts = {{-6, -6, 0}, {6, 6, 0}};
  world.walls.Add(-20, 0, 0, 0);
  WayMap map(Kernel::kSimd, kCell);
  map.Make(world, kRadius);
  double largest = 0, smallest = 0;
  for (std::uint64_t trial = 0; trial < 300; ++trial) {
    const double x = Draw(trial, 0, -6, -0.5), y = Draw(trial, 1, -6, -0.5);
    ASSERT_TRUE(map.HasWay(static_cast<float>(x), static_cast<float>(y)));
    const double error = map.Distance(static_cast<float>(x), static_cast<float>(y)) -
                         WayAroundPost(x, y, -3, 3, 0.5);
    largest = std::max(largest, error);
    smallest = std::min(smallest, error);
  }
  EXPECT_LT(largest, 0.75);  // 0.68 was measured, of up to 13 m
  EXPECT_GT(smallest, -0.02);
}

TEST(WayMap, GoesThroughADoorway) {  // Eq. 45
  World world = EmptyWorld(DiscGoal(3, 10, 0.5F));
  for (const auto& [x0, y0, x1, y1] : Rooms().walls) {
    world.walls.Add(static_cast<float>(x0), static_cast<float>(y0), static_cast<float>(x1),
                    static_cast<float>(y1));
  }
  WayMap map(Kernel::kSimd, kCell);
  map.Make(world, kRadius);
  double largest = 0, smallest = 0;
  for (std::uint64_t trial = 0; trial < 300; ++trial) {
    // From where the goal is hidden by the right jamb at (1.5, 6).
    const double x = Draw(trial, 0, 2.5, 5.5), y = Draw(trial, 1, 0.5, 5.5);
    const double error = map.Distance(static_cast<float>(x), static_cast<float>(y)) -
                         WayAroundPost(x - 1.5, y - 6, 1.5, 4, 0.5);
    largest = std::max(largest, error);
    smallest = std::min(smallest, error);
  }
  EXPECT_LT(largest, 0.6);  // 0.53 was measured, of up to 11 m
  EXPECT_GT(smallest, -0.02);
  // Straight through the middle.
  EXPECT_NEAR(map.Distance(-2.5F, 2), std::hypot(5.5, 8) - 0.5, 0.2);
}

TEST(WayMap, FollowingItsDirectionArrivesAfterItsDistance) {
  WayMap map(Kernel::kSimd, kCell);
  int ways = 0;
  for (std::uint64_t index = 0; index < 100; ++index) {
    const World world = DrawRooms(index);
    map.Make(world, kRadius);
    float x = world.starts[0].x, y = world.starts[0].y;
    if (!map.HasWay(x, y)) continue;
    ++ways;
    const float promised = map.Distance(x, y);
    EXPECT_GE(promised, DistanceToGoal(world.goal, x, y) - 0.01);
    constexpr float kStep = 0.02F;
    double went = 0;
    while (map.Distance(x, y) > kCell && went < 60) {
      const auto [dx, dy] = map.Direction(x, y);
      ASSERT_NEAR(dx * dx + dy * dy, 1, 1e-5);
      x += kStep * dx;
      y += kStep * dy;
      went += kStep;
      ASSERT_GT(Clearance(world, x, y), kClearance - kCell) << index;
    }
    EXPECT_LT(went, 1.1 * promised) << index;
  }
  EXPECT_GT(ways, 80);
}

// The rasteriser against the plain reading of the geometry: near obstacles there is no way, and in
// a world whose free space hangs together there is one everywhere else.
TEST(WayMap, KeepsItsClearanceFromEveryKindOfObstacle) {
  WayMap map(Kernel::kSimd, kCell);
  int blocked = 0, open = 0;
  for (std::uint64_t trial = 0; trial < 60; ++trial) {
    World world = EmptyWorld(DiscGoal(5, 11, 0.5F));
    const auto f = [&](std::uint64_t variable, double low, double high) {
      return static_cast<float>(Draw(trial, variable, low, high));
    };
    const float x = f(0, -3, 3), y = f(1, 3, 8);
    if (trial % 3 == 0) world.discs.Add(x, y, f(2, 0.05, 2));
    if (trial % 3 == 1) world.walls.Add(x, y, x + f(2, -3, 3), y + f(3, -2, 2));
    if (trial % 3 == 2) world.AddBox({x, y, f(2, 0.1, 1.5), f(3, 0.1, 1.5), f(4, 0, 7)});
    map.Make(world, kRadius);
    for (std::uint64_t at = 10; at < 1000; at += 2) {
      const float px = f(at, -6, 6), py = f(at + 1, 0, 12);
      const double room = Clearance(world, px, py);
      const double nearest_centre = kCell * std::numbers::sqrt2 / 2;
      if (std::fabs(room - kClearance) < nearest_centre) continue;
      const bool is_open = room > kClearance;
      EXPECT_EQ(map.HasWay(px, py), is_open) << trial;
      ++(is_open ? open : blocked);
    }
  }
  EXPECT_GT(blocked, 400);
  EXPECT_GT(open, 5000);
}

TEST(WayMap, LeadsThroughNoWallHoweverThinAndHoweverCoarseTheGrid) {
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    WayMap map(Kernel::kSimd, Draw(trial, 0, 0.05, 0.6));
    World world = EmptyWorld(DiscGoal(0, 6, 0.4F));
    const double turn = Draw(trial, 1, 0, 7);
    constexpr int kSides = 5;
    for (int side = 0; side < kSides; ++side) {
      const auto corner = [&](int k) {
        const double angle = turn + 2 * std::numbers::pi * k / kSides;
        return std::pair(static_cast<float>(1.2 * std::cos(angle)),
                         static_cast<float>(6 + 1.2 * std::sin(angle)));
      };
      const auto [x0, y0] = corner(side);
      const auto [x1, y1] = corner(side + 1);
      world.walls.Add(x0, y0, x1, y1);
    }
    map.Make(world, Draw(trial, 2, 0.01, 0.3));
    for (const Pose& start : world.starts) EXPECT_FALSE(map.HasWay(start.x, start.y));
    // There the straight distance stands in, far above every way.
    const float near = map.Distance(3, 6), far = map.Distance(4, 6);
    EXPECT_NEAR(far - near, 1, 0.01);
    EXPECT_GT(near, 12);
    EXPECT_NEAR(map.Direction(3, 6)[0], -1, 1e-2);
  }
}

// Neighbours differ by a cell at most, so D is nowhere steeper than sqrt(2). Beside blocked cells
// it rises faster; where these close a gap, one of its sides may be much farther from the goal than
// the other.
TEST(WayMap, IsSteepOnlyBesideObstacles) {
  WayMap map(Kernel::kSimd, kCell);
  int near_obstacles = 0, steep = 0;
  for (std::uint64_t index = 0; index < 100; ++index) {
    const World world = DrawRooms(index);
    map.Make(world, kRadius);
    const auto f = [&](std::uint64_t variable, double low, double high) {
      return static_cast<float>(Draw(index, variable, low, high));
    };
    for (std::uint64_t at = 0; at < 300; at += 3) {
      const float x = f(at, -5.9, 5.9), y = f(at + 1, 0.1, 11.9), angle = f(at + 2, 0, 7);
      const double room = Clearance(world, x, y);
      if (room < kRadius || !map.HasWay(x, y)) continue;
      const float x1 = x + 0.01F * std::cos(angle), y1 = y + 0.01F * std::sin(angle);
      const float slope = std::fabs(map.Distance(x, y) - map.Distance(x1, y1)) / 0.01F;
      if (room > kClearance + std::numbers::sqrt2 * kCell + 0.01) {
        EXPECT_LT(slope, 1.42) << index;
      } else {
        ++near_obstacles;
        steep += slope > 3 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(near_obstacles, 500);
  EXPECT_LT(steep, 0.01 * near_obstacles);
}

TEST(WayMap, GoesOnOutsideItsGrid) {
  WayMap map(Kernel::kSimd, kCell);
  map.Make(EmptyWorld(DiscGoal(0, 6, 0.5F)), kRadius);
  EXPECT_NEAR(map.Distance(100, 6), 99.5, 0.05);
  EXPECT_NEAR(map.Direction(100, 6)[0], -1, 1e-3);
  EXPECT_NEAR(map.Direction(100, 6)[1], 0, 0.05);
  EXPECT_EQ(map.Distance(0.1F, 6.1F), 0);
  EXPECT_EQ(map.Direction(0.1F, 6.1F), (std::array<float, 2>{0, 0}));
}

TEST(WayMap, BothKernelsAndUsedMemoryGiveTheSameBits) {
  WayMap used(Kernel::kSimd, kCell);
  for (std::uint64_t index = 0; index < 50; ++index) {
    const World world = DrawRooms(index);
    WayMap fresh(Kernel::kScalar, kCell);
    used.Make(EmptyWorld(DiscGoal(0, static_cast<float>(index), 0.5F)), kRadius);
    used.Make(world, kRadius);
    fresh.Make(world, kRadius);
    for (std::uint64_t at = 0; at < 2000; at += 2) {
      const auto x = static_cast<float>(Draw(index, at, -7, 7));
      const auto y = static_cast<float>(Draw(index, at + 1, -1, 13));
      ASSERT_EQ(used.Distance(x, y), fresh.Distance(x, y)) << index;
      ASSERT_EQ(used.HasWay(x, y), fresh.HasWay(x, y)) << index;
    }
  }
}

}  // namespace
}  // namespace fedgen
