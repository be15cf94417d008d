// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <vector>

#include "fedgen/base/aligned.h"
#include "fedgen/base/kernel.h"
#include "fedgen/world/way_kernel.h"
#include "fedgen/world/world.h"

namespace fedgen {

// How far it is to the goal around obstacles, from anywhere in one world: the distance D of Eq. 45
// for the robot's centre, on a grid. It knows the whole world, which a robot does not: a measure of
// progress for training, no part of any cost or certificate.
//
// The grid covers obstacles, starts and the goal. Ways keep a clearance from obstacles that is a
// quarter of a cell less than the robot's radius, so a gap must be about half a cell wider than the
// robot to be sure to be seen; but at least half a cell, so no way leads through a wall. Where the
// world is wider than 512 cells, cells are larger.
//
// D is larger than the true distance by little: docs/math.md says how much was measured.
class WayMap {
 public:
  explicit WayMap(Kernel kernel, double cell = 0.2 /* m */) : kernel_(kernel), cell_(cell) {}

  /// Makes the map of a world for a robot of this radius (m). Allocates only if no map before was
  /// as large.
  void Make(const World& world, double robot_radius);

  /// Whether a way to the goal was found from here.
  bool HasWay(float x, float y) const;

  /// m, continuous along every way, 0 where the robot has arrived. Near obstacles, closer than ways
  /// pass, it goes on as if one could stand there. Where there is no way: the straight distance
  /// plus the grid's diagonal. Outside the grid: D at the nearest point of the grid plus the
  /// distance to it.
  float Distance(float x, float y) const;

  /// Where the way goes from here: the unit vector down D; (0, 0) where the robot has arrived.
  std::array<float, 2> Direction(float x, float y) const;

 private:
  struct Point {
    double x, y;  // m
  };
  /// Four cells around a point, and where between them it is.
  struct Patch {
    float d00, d10, d01, d11;  // m, D at lower left, lower right, upper left, upper right
    float u, v;                // in [0, 1], from left to right and from lower to upper
    float beyond_x, beyond_y;  // m, from the nearest point of the grid
  };

  void LayGrid(const World& world, double robot_radius);
  void BlockObstacles(const World& world);
  void BlockHull(std::span<const Point> corners, double radius);
  void PlaceGoal();
  bool IsJoined(int i, int j, int to_i, int to_j) const;
  void FindWays();
  void FinishMap();
  float OutsideGoal(double x, double y) const;
  Point TowardsGoal(double x, double y) const;  // a unit vector
  Patch PatchAt(float x, float y) const;
  Point Centre(int i, int j) const { return {left_ + cell_now_ * i, bottom_ + cell_now_ * j}; }
  int Column(double x) const;
  int Row(double y) const;

  Kernel kernel_;
  double cell_;                   // m, as wanted
  double cell_now_ = 0;           // m, of this grid
  double clearance_ = 0;          // m, from the way to obstacles
  double left_ = 0, bottom_ = 0;  // m, centre of cell (0, 0)
  Goal goal_;
  WayGrid grid_;
  AlignedVector<float> field_;   // by diagonals: D where a way is, kUnreached, kBlocked
  AlignedVector<float> mirror_;  // the same, upside down
  AlignedVector<float> map_;     // by rows: D everywhere
  AlignedVector<float> spare_;   // by rows
  std::vector<std::array<double, 2>> spans_;  // [rows] m, from and to which x the hull blocks
};

}  // namespace fedgen
