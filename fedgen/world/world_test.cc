// SPDX-License-Identifier: Apache-2.0
#include "fedgen/world/world.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace fedgen {
namespace {

// Uniform on [low, high), addressed by (trial, variable).
double Draw(std::uint64_t trial, std::uint64_t variable, double low, double high) {
  return low +
         (high - low) * static_cast<double>(UnitFloat(Key(31).Fork(trial).Block(variable)[0]));
}

TEST(Clearance, IsInfiniteInAnEmptyWorld) {
  EXPECT_EQ(Clearance(World{}, 3, 4), std::numeric_limits<double>::infinity());
}

TEST(Clearance, OfADiscIsCentreDistanceMinusRadius) {
  World world;
  world.discs.Add(3, 4, 1.5F);
  EXPECT_DOUBLE_EQ(Clearance(world, 0, 0), 3.5);
  EXPECT_DOUBLE_EQ(Clearance(world, 3, 5.5), 0);
  EXPECT_DOUBLE_EQ(Clearance(world, 3, 4), -1.5);
}

TEST(Clearance, OfAWallIsTheDistanceToItsNearestPoint) {
  World world;
  world.walls.Add(-2, 1, 2, 1);
  EXPECT_DOUBLE_EQ(Clearance(world, 0.5, 3), 2);      // beside it
  EXPECT_DOUBLE_EQ(Clearance(world, -1, -0.5), 1.5);  // on the other side: never negative
  EXPECT_DOUBLE_EQ(Clearance(world, 5, 5), 5);        // beyond its end: 3, 4, 5
  EXPECT_DOUBLE_EQ(Clearance(world, -6, -2), 5);      // beyond the other
  EXPECT_DOUBLE_EQ(Clearance(world, 1, 1), 0);        // on it
}

TEST(Clearance, OfATurnedBoxIsThatOfTheUprightOneAtTheTurnedPoint) {
  constexpr double kTurn = 0.7;
  World upright;
  upright.AddBox({0, 0, 1.5F, 0.5F, 0});
  EXPECT_DOUBLE_EQ(Clearance(upright, 3.5, 0), 2);    // beyond a side
  EXPECT_DOUBLE_EQ(Clearance(upright, 0, -1), 0.5);   // beyond the other axis's
  EXPECT_DOUBLE_EQ(Clearance(upright, 4.5, 4.5), 5);  // beyond a corner: 3, 4, 5
  EXPECT_DOUBLE_EQ(Clearance(upright, 0, 0), -0.5);   // inside: the nearest side, negative
  EXPECT_DOUBLE_EQ(Clearance(upright, 1.25, 0.1), -0.25);
  World turned;
  turned.AddBox({2, -1, 1.5F, 0.5F, static_cast<float>(kTurn)});
  for (std::uint64_t trial = 0; trial < 1000; ++trial) {
    const double along = Draw(trial, 0, -4, 4);
    const double across = Draw(trial, 1, -4, 4);
    const double x = 2 + along * std::cos(kTurn) - across * std::sin(kTurn);
    const double y = -1 + along * std::sin(kTurn) + across * std::cos(kTurn);
    ASSERT_NEAR(Clearance(turned, x, y), Clearance(upright, along, across), 1e-6);
  }
}

TEST(Clearance, IsThatOfTheNearestObstacle) {
  World world;
  world.discs.Add(0, 5, 1);
  world.discs.Add(0, -5, 2);
  world.walls.Add(4, -1, 4, 1);
  world.AddBox({-6, 0, 1, 1, 0});
  EXPECT_DOUBLE_EQ(Clearance(world, 0, 0), 3);
  EXPECT_DOUBLE_EQ(Clearance(world, 0, 3), 1);
  EXPECT_DOUBLE_EQ(Clearance(world, 3, 0), 1);
  EXPECT_DOUBLE_EQ(Clearance(world, -4.5, 0), 0.5);
}

// Moving by s changes the distance to anything by at most s.
TEST(Clearance, ChangesNoFasterThanThePoint) {
  World world;
  world.discs.Add(1, 1, 0.4F);
  world.walls.Add(-2, -1, 2, -1.5F);
  world.AddBox({-1, 1, 0.5F, 0.3F, 0.4F});
  for (std::uint64_t trial = 0; trial < 2000; ++trial) {
    const double x = Draw(trial, 0, -3, 3);
    const double y = Draw(trial, 1, -3, 3);
    const double dx = Draw(trial, 2, -0.5, 0.5);
    const double dy = Draw(trial, 3, -0.5, 0.5);
    ASSERT_LE(std::fabs(Clearance(world, x + dx, y + dy) - Clearance(world, x, y)),
              std::hypot(dx, dy) + 1e-6);
  }
}

TEST(DistanceToGoal, OfAHalfPlaneIsMeasuredAlongItsNormal) {
  Goal goal;
  goal.offset = 10;
  EXPECT_DOUBLE_EQ(DistanceToGoal(goal, 3, 4), 6);
  EXPECT_DOUBLE_EQ(DistanceToGoal(goal, -100, 10), 0);
  EXPECT_DOUBLE_EQ(DistanceToGoal(goal, 0, 25), 0);
  goal.normal_x = 0.6F;
  goal.normal_y = -0.8F;
  goal.offset = 2;
  EXPECT_NEAR(DistanceToGoal(goal, 0, 1), 2.8, 1e-6);
}

TEST(DistanceToGoal, OfADiscIsMeasuredFromItsRim) {
  Goal goal;
  goal.kind = Goal::Kind::kDisc;
  goal.x = 3;
  goal.y = 4;
  goal.radius = 2;
  EXPECT_DOUBLE_EQ(DistanceToGoal(goal, 0, 0), 3);
  EXPECT_DOUBLE_EQ(DistanceToGoal(goal, 3, 6), 0);
  EXPECT_DOUBLE_EQ(DistanceToGoal(goal, 3, 4.5), 0);
}

// The depth says when the robot has arrived, not how far the region is.
TEST(DistanceToGoal, DoesNotCountTheDepth) {
  Goal goal;
  goal.depth = 0.5F;
  EXPECT_DOUBLE_EQ(DistanceToGoal(goal, 0, 9), 1);
  EXPECT_DOUBLE_EQ(DistanceToGoal(goal, 0, 10.1), 0);
}

TEST(DiscSet, PadsToGroupsOfEightFarAway) {
  DiscSet discs;
  EXPECT_EQ(discs.padded_size(), 0);
  for (int n = 1; n <= 20; ++n) {
    discs.Add(static_cast<float>(n), 2, 0.5F);
    ASSERT_EQ(discs.size(), n);
    ASSERT_EQ(discs.padded_size(), (n + 7) / 8 * 8);
    for (std::size_t disc = 0; disc < discs.x.size(); ++disc) {
      if (static_cast<int>(disc) < n) {
        ASSERT_EQ(discs.x[disc], static_cast<float>(disc + 1));
        ASSERT_EQ(discs.radius[disc], 0.5F);
      } else {
        ASSERT_GE(discs.x[disc], 1e8F);
        ASSERT_EQ(discs.radius[disc], 0.0F);
      }
    }
  }
  discs.Clear();
  EXPECT_EQ(discs.size(), 0);
  EXPECT_EQ(discs.padded_size(), 0);
}

TEST(DiscSet, ForgetsWhatLayBeyondItsNewSize) {
  DiscSet discs;
  for (int n = 0; n < 12; ++n) discs.Add(1, 1, 1);
  discs.Resize(9);
  for (std::size_t disc = 9; disc < 16; ++disc) EXPECT_GE(discs.x[disc], 1e8F);
}

TEST(WallSet, KnowsItsLengths) {
  WallSet walls;
  walls.Add(1, 2, 4, 6);
  ASSERT_EQ(walls.size(), 1);
  ASSERT_EQ(walls.padded_size(), 8);
  EXPECT_EQ(walls.dx[0], 3.0F);
  EXPECT_EQ(walls.dy[0], 4.0F);
  EXPECT_EQ(walls.length[0], 5.0F);
  EXPECT_FLOAT_EQ(walls.inverse_length2[0], 0.04F);
  for (std::size_t wall = 1; wall < 8; ++wall) {
    EXPECT_GE(walls.x[wall], 1e8F);
    EXPECT_GT(walls.length[wall], 0.0F);
  }
}

TEST(World, SeesABoxAsItsFourSidesCounterClockwise) {
  World world;
  world.AddBox({1, 2, 0.5F, 0.25F, 0.9F});
  ASSERT_EQ(world.box_edges.size(), 4);
  double area2 = 0;  // twice the area, positive if counter-clockwise
  for (std::size_t edge = 0; edge < 4; ++edge) {
    const std::size_t next = (edge + 1) % 4;
    const WallSet& edges = world.box_edges;
    EXPECT_NEAR(edges.length[edge], edge % 2 == 0 ? 1.0 : 0.5, 1e-6);
    EXPECT_NEAR(edges.x[edge] + edges.dx[edge], edges.x[next], 1e-6);
    EXPECT_NEAR(edges.y[edge] + edges.dy[edge], edges.y[next], 1e-6);
    EXPECT_NEAR(Clearance(world, edges.x[edge], edges.y[edge]), 0, 1e-6);
    area2 += static_cast<double>(edges.x[edge] * edges.y[next] - edges.x[next] * edges.y[edge]);
  }
  EXPECT_NEAR(area2 / 2, 0.5, 1e-5);
}

TEST(World, IsEmptyOfObstaclesWhenCleared) {
  World world;
  world.discs.Add(0, 0, 1);
  world.walls.Add(0, 0, 1, 1);
  world.AddBox({0, 0, 1, 1, 0});
  world.ClearObstacles();
  EXPECT_EQ(Clearance(world, 0, 0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(world.box_edges.size(), 0);
}

}  // namespace
}  // namespace fedgen
