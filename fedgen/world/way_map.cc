// SPDX-License-Identifier: Apache-2.0
#include "fedgen/world/way_map.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fedgen {
namespace {

constexpr double kMostCells = 500;  // along a side, before margins
constexpr double kGoalRing = 2.5;   // cells around the goal that get their straight distance
constexpr int kExtendedCells = 2;   // into what is blocked: deeper than a robot gets in one step
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double Length(double x, double y) { return std::sqrt(x * x + y * y); }

/// The smallest upright rectangle around what was added.
struct Bounds {
  double left = kInfinity, right = -kInfinity, bottom = kInfinity, top = -kInfinity;  // m

  void Add(double x, double y, double radius = 0) {
    left = std::min(left, x - radius);
    right = std::max(right, x + radius);
    bottom = std::min(bottom, y - radius);
    top = std::max(top, y + radius);
  }
  void Add(const WallSet& walls) {
    for (std::size_t wall = 0; wall < static_cast<std::size_t>(walls.size()); ++wall) {
      Add(walls.x[wall], walls.y[wall]);
      Add(walls.x[wall] + walls.dx[wall], walls.y[wall] + walls.dy[wall]);
    }
  }
};

Bounds BoundsOf(const World& world) {
  Bounds bounds;
  for (std::size_t disc = 0; disc < static_cast<std::size_t>(world.discs.size()); ++disc) {
    bounds.Add(world.discs.x[disc], world.discs.y[disc], world.discs.radius[disc]);
  }
  bounds.Add(world.walls);
  bounds.Add(world.box_edges);
  const Goal& goal = world.goal;
  for (const Pose& start : world.starts) {
    bounds.Add(start.x, start.y);
    if (goal.kind == Goal::Kind::kHalfPlane) {  // where the straight way arrives
      const double way = DistanceToGoal(goal, start.x, start.y) + goal.depth;
      bounds.Add(start.x + way * goal.normal_x, start.y + way * goal.normal_y);
    }
  }
  if (goal.kind == Goal::Kind::kDisc) bounds.Add(goal.x, goal.y, goal.radius);
  return bounds;
}

}  // namespace

void WayMap::Make(const World& world, double robot_radius) {
  goal_ = world.goal;
  LayGrid(world, robot_radius);
  BlockObstacles(world);
  PlaceGoal();
  FindWays();
  FinishMap();
}

void WayMap::LayGrid(const World& world, double robot_radius) {
  const Bounds bounds = BoundsOf(world);
  const double width = bounds.right - bounds.left;
  const double height = bounds.top - bounds.bottom;
  cell_now_ = std::max(cell_, (std::max(width, height) + 2 * robot_radius) / kMostCells);
  // Of two neighbours on both sides of a wall one is within half a cell of it.
  clearance_ = std::max(robot_radius - cell_now_ / 4, 0.501 * cell_now_);
  const double margin = clearance_ + 2 * cell_now_;  // a way around everything, and the border
  left_ = bounds.left - margin;
  bottom_ = bounds.bottom - margin;
  grid_.columns = static_cast<int>(std::ceil((width + 2 * margin) / cell_now_)) + 1;
  grid_.rows = static_cast<int>(std::ceil((height + 2 * margin) / cell_now_)) + 1;
  grid_.cell = static_cast<float>(cell_now_);

  field_.assign(grid_.size_by_diagonals(), kBlocked);
  for (int diagonal = 2; diagonal <= grid_.columns + grid_.rows - 4; ++diagonal) {
    const int first = std::max(1, diagonal - (grid_.rows - 2));
    const int last = std::min(grid_.columns - 2, diagonal - 1);
    std::fill_n(field_.data() + grid_.ByDiagonals(first, diagonal - first), last - first + 1,
                kUnreached);
  }
  mirror_.assign(field_.size(), kBlocked);
  map_.assign(grid_.size_by_rows(), kBlocked);
  spare_.assign(map_.size(), kBlocked);
  spans_.resize(static_cast<std::size_t>(grid_.rows));
}

// Every obstacle, grown by the clearance, is the hull of a few discs of one size: around a disc's
// centre, a wall's ends, a box's corners.
void WayMap::BlockObstacles(const World& world) {
  for (std::size_t disc = 0; disc < static_cast<std::size_t>(world.discs.size()); ++disc) {
    const Point centre = {world.discs.x[disc], world.discs.y[disc]};
    BlockHull({&centre, 1}, world.discs.radius[disc] + clearance_);
  }
  const WallSet& walls = world.walls;
  for (std::size_t wall = 0; wall < static_cast<std::size_t>(walls.size()); ++wall) {
    const Point ends[] = {{walls.x[wall], walls.y[wall]},
                          {walls.x[wall] + walls.dx[wall], walls.y[wall] + walls.dy[wall]}};
    BlockHull(ends, clearance_);
  }
  const WallSet& sides = world.box_edges;
  for (std::size_t box = 0; box < 4 * world.boxes.size(); box += 4) {
    std::array<Point, 4> corners{};  // counter-clockwise
    for (std::size_t k = 0; k < 4; ++k) corners[k] = {sides.x[box + k], sides.y[box + k]};
    BlockHull(corners, clearance_);
  }
}

void WayMap::BlockHull(std::span<const Point> corners, double radius) {
  Bounds bounds;
  for (const Point& corner : corners) bounds.Add(corner.x, corner.y, radius);
  const auto first_row = [&](double y) {
    return static_cast<int>(std::ceil((y - bottom_) / cell_now_));
  };
  const auto last_row = [&](double y) {
    return static_cast<int>(std::floor((y - bottom_) / cell_now_));
  };
  const int first = first_row(bounds.bottom);
  const int last = last_row(bounds.top);
  for (int j = first; j <= last; ++j) spans_[static_cast<std::size_t>(j)] = {kInfinity, -kInfinity};
  const auto widen = [&](int j, double x) {
    auto& [from, to] = spans_[static_cast<std::size_t>(j)];
    from = std::min(from, x);
    to = std::max(to, x);
  };
  // The hull's outline: arcs around corners, and edges moved outwards.
  for (std::size_t k = 0; k < corners.size(); ++k) {
    const Point& a = corners[k];
    for (int j = first_row(a.y - radius); j <= last_row(a.y + radius); ++j) {
      const double dy = bottom_ + cell_now_ * j - a.y;
      const double half = std::sqrt(std::max(0.0, radius * radius - dy * dy));
      widen(j, a.x - half);
      widen(j, a.x + half);
    }
    const Point& b = corners[(k + 1) % corners.size()];
    const double rise = b.y - a.y;
    if (rise == 0) continue;  // a level edge ends in two arcs, which reach as far
    const double outwards = radius / Length(b.x - a.x, rise);
    const Point from = {a.x + outwards * rise, a.y - outwards * (b.x - a.x)};
    const double slope = (b.x - a.x) / rise;
    const double low = std::min(from.y, from.y + rise);
    for (int j = first_row(low); j <= last_row(low + std::fabs(rise)); ++j) {
      widen(j, from.x + slope * (bottom_ + cell_now_ * j - from.y));
    }
  }
  for (int j = std::max(first, 1); j <= std::min(last, grid_.rows - 2); ++j) {
    const auto [from, to] = spans_[static_cast<std::size_t>(j)];
    if (from > to) continue;
    const int from_i = std::max(1, static_cast<int>(std::floor((from - left_) / cell_now_)) + 1);
    const int to_i =
        std::min(grid_.columns - 2, static_cast<int>(std::ceil((to - left_) / cell_now_)) - 1);
    for (int i = from_i; i <= to_i; ++i) field_[grid_.ByDiagonals(i, j)] = kBlocked;
  }
}

/// m, negative where the robot has arrived.
float WayMap::OutsideGoal(double x, double y) const {
  const double outside = goal_.kind == Goal::Kind::kDisc
                             ? Length(x - goal_.x, y - goal_.y) - goal_.radius
                             : goal_.offset - (goal_.normal_x * x + goal_.normal_y * y);
  return static_cast<float>(outside + goal_.depth);
}

WayMap::Point WayMap::TowardsGoal(double x, double y) const {
  if (goal_.kind == Goal::Kind::kHalfPlane) return {goal_.normal_x, goal_.normal_y};
  const double length = Length(goal_.x - x, goal_.y - y);
  if (length == 0) return {0, 0};
  return {(goal_.x - x) / length, (goal_.y - y) / length};
}

// Free cells in the goal, and around it those with a free way there, begin with their distance.
// Inside it is negative, which makes it exact between cells and, being of slope 1, shortens no way.
void WayMap::PlaceGoal() {
  const auto ring = static_cast<float>(kGoalRing * cell_now_);
  int first_i = 1, last_i = grid_.columns - 2, first_j = 1, last_j = grid_.rows - 2;
  if (goal_.kind == Goal::Kind::kDisc) {
    const double reach = goal_.radius + kGoalRing * cell_now_;
    first_i = Column(goal_.x - reach);
    last_i = Column(goal_.x + reach);
    first_j = Row(goal_.y - reach);
    last_j = Row(goal_.y + reach);
  }
  for (int j = first_j; j <= last_j; ++j) {
    for (int i = first_i; i <= last_i; ++i) {
      float& here = field_[grid_.ByDiagonals(i, j)];
      if (here == kBlocked) continue;
      const Point centre = Centre(i, j);
      const float outside = OutsideGoal(centre.x, centre.y);
      if (outside > ring) continue;
      const Point way = TowardsGoal(centre.x, centre.y);
      if (outside <= 0 ||
          IsJoined(i, j, Column(centre.x + outside * way.x), Row(centre.y + outside * way.y))) {
        here = outside;
      }
    }
  }
}

/// Whether one can go from cell to cell, first along one side of their rectangle, then the other.
bool WayMap::IsJoined(int i, int j, int to_i, int to_j) const {
  const auto is_free = [&](int from_i, int from_j, int last_i, int last_j) {
    for (int row = std::min(from_j, last_j); row <= std::max(from_j, last_j); ++row) {
      for (int column = std::min(from_i, last_i); column <= std::max(from_i, last_i); ++column) {
        if (field_[grid_.ByDiagonals(column, row)] == kBlocked) return false;
      }
    }
    return true;
  };
  return (is_free(i, j, to_i, j) && is_free(to_i, j, to_i, to_j)) ||
         (is_free(i, j, i, to_j) && is_free(i, to_j, to_i, to_j));
}

// Fast sweeping: from all four corners in turn, until a sweep finds nothing shorter.
void WayMap::FindWays() {
  const auto turn_over = [&](const AlignedVector<float>& from, AlignedVector<float>& to) {
    for (int j = 1; j < grid_.rows - 1; ++j) {
      for (int i = 1; i < grid_.columns - 1; ++i) {
        to[grid_.ByDiagonals(i, grid_.rows - 1 - j)] = from[grid_.ByDiagonals(i, j)];
      }
    }
  };
  const auto sweep_twice = [&](AlignedVector<float>& field) {
    return SweepDiagonals(kernel_, grid_, SweepOrder::kFalling, field.data()) &&
           SweepDiagonals(kernel_, grid_, SweepOrder::kRising, field.data());
  };
  while (sweep_twice(field_)) {
    turn_over(field_, mirror_);
    const bool is_shorter = sweep_twice(mirror_);
    turn_over(mirror_, field_);
    if (!is_shorter) return;
  }
}

void WayMap::FinishMap() {
  const double width = cell_now_ * grid_.columns;
  const double height = cell_now_ * grid_.rows;
  const auto diagonal = static_cast<float>(Length(width, height));
  const auto without_way = [&](int i, int j) {
    const Point centre = Centre(i, j);
    return std::max(OutsideGoal(centre.x, centre.y), 0.0F) + diagonal;
  };
  for (int j = 1; j < grid_.rows - 1; ++j) {
    for (int i = 1; i < grid_.columns - 1; ++i) {
      float& here = map_[grid_.ByRows(i, j)];
      here = field_[grid_.ByDiagonals(i, j)];
      if (here != kBlocked) continue;
      // Whoever comes so near to an obstacle in the goal has arrived.
      const float outside = OutsideGoal(Centre(i, j).x, Centre(i, j).y);
      if (outside <= 0) here = outside;
    }
  }
  for (int count = 0; count < kExtendedCells; ++count) {
    ExtendByOneCell(kernel_, grid_, map_.data(), spare_.data());
    std::swap(map_, spare_);
  }
  for (int j = 1; j < grid_.rows - 1; ++j) {
    for (int i = 1; i < grid_.columns - 1; ++i) {
      float& here = map_[grid_.ByRows(i, j)];
      if (here >= kUnreached) here = without_way(i, j);
    }
  }
}

int WayMap::Column(double x) const {
  return static_cast<int>(
      std::clamp(std::floor((x - left_) / cell_now_ + 0.5), 1.0, grid_.columns - 2.0));
}

int WayMap::Row(double y) const {
  return static_cast<int>(
      std::clamp(std::floor((y - bottom_) / cell_now_ + 0.5), 1.0, grid_.rows - 2.0));
}

bool WayMap::HasWay(float x, float y) const {
  return field_[grid_.ByDiagonals(Column(x), Row(y))] < kUnreached;
}

WayMap::Patch WayMap::PatchAt(float x, float y) const {
  const double across = (x - left_) / cell_now_;
  const double up = (y - bottom_) / cell_now_;
  const double nearest_across = std::clamp(across, 1.0, grid_.columns - 2.0);
  const double nearest_up = std::clamp(up, 1.0, grid_.rows - 2.0);
  const int i = std::min(static_cast<int>(nearest_across), grid_.columns - 3);
  const int j = std::min(static_cast<int>(nearest_up), grid_.rows - 3);
  const float* lower = map_.data() + grid_.ByRows(i, j);
  const float* upper = lower + grid_.stride();
  return {lower[0],
          lower[1],
          upper[0],
          upper[1],
          static_cast<float>(nearest_across - i),
          static_cast<float>(nearest_up - j),
          static_cast<float>((across - nearest_across) * cell_now_),
          static_cast<float>((up - nearest_up) * cell_now_)};
}

float WayMap::Distance(float x, float y) const {
  if (OutsideGoal(x, y) <= 0) return 0;
  const Patch p = PatchAt(x, y);
  const float lower = p.d00 + p.u * (p.d10 - p.d00);
  const float upper = p.d01 + p.u * (p.d11 - p.d01);
  return std::max(lower + p.v * (upper - lower), 0.0F) +
         std::sqrt(p.beyond_x * p.beyond_x + p.beyond_y * p.beyond_y);
}

std::array<float, 2> WayMap::Direction(float x, float y) const {
  if (OutsideGoal(x, y) <= 0) return {0, 0};
  const Patch p = PatchAt(x, y);
  const float beyond = std::sqrt(p.beyond_x * p.beyond_x + p.beyond_y * p.beyond_y);
  float down_x = ((1 - p.v) * (p.d00 - p.d10) + p.v * (p.d01 - p.d11)) / grid_.cell;
  float down_y = ((1 - p.u) * (p.d00 - p.d01) + p.u * (p.d10 - p.d11)) / grid_.cell;
  if (p.beyond_x != 0) down_x = -p.beyond_x / beyond;
  if (p.beyond_y != 0) down_y = -p.beyond_y / beyond;
  const float length = std::sqrt(down_x * down_x + down_y * down_y);
  if (length > 1e-3F) return {down_x / length, down_y / length};
  const Point way = TowardsGoal(x, y);  // a ridge: both sides are as good
  return {static_cast<float>(way.x), static_cast<float>(way.y)};
}

}  // namespace fedgen
