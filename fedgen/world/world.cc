// SPDX-License-Identifier: Apache-2.0
#include "fedgen/world/world.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fedgen {
namespace {

// Padding obstacles sit here: farther than any sensor sees, small enough that squares stay finite.
constexpr float kNowhere = 1e9F;

double DistanceToSegment(double px, double py, double x, double y, double dx, double dy) {
  const double along = ((px - x) * dx + (py - y) * dy) / (dx * dx + dy * dy);
  const double t = std::clamp(along, 0.0, 1.0);
  return std::hypot(px - x - t * dx, py - y - t * dy);
}

double SignedDistanceToBox(double px, double py, const Box& box) {
  const double c = std::cos(static_cast<double>(box.heading));
  const double s = std::sin(static_cast<double>(box.heading));
  const double qx = std::fabs(c * (px - box.x) + s * (py - box.y)) - box.half_x;
  const double qy = std::fabs(c * (py - box.y) - s * (px - box.x)) - box.half_y;
  return std::hypot(std::max(qx, 0.0), std::max(qy, 0.0)) + std::min(std::max(qx, qy), 0.0);
}

}  // namespace

void DiscSet::Resize(int n) {
  const auto padded = static_cast<std::size_t>(PadToLaneGroup(n));
  x.resize(padded);
  y.resize(padded);
  radius.resize(padded);
  std::fill(x.begin() + n, x.end(), kNowhere);
  std::fill(y.begin() + n, y.end(), kNowhere);
  std::fill(radius.begin() + n, radius.end(), 0.0F);
  size_ = n;
}

void DiscSet::Add(float centre_x, float centre_y, float disc_radius) {
  const auto index = static_cast<std::size_t>(size_);
  Resize(size_ + 1);
  x[index] = centre_x;
  y[index] = centre_y;
  radius[index] = disc_radius;
}

void WallSet::Resize(int n) {
  const auto padded = static_cast<std::size_t>(PadToLaneGroup(n));
  for (AlignedVector<float>* column : {&x, &y, &dx, &dy, &length, &inverse_length2}) {
    column->resize(padded);
  }
  for (auto index = static_cast<std::size_t>(n); index < padded; ++index) {
    x[index] = y[index] = kNowhere;
    dx[index] = length[index] = inverse_length2[index] = 1.0F;
    dy[index] = 0.0F;
  }
  size_ = n;
}

void WallSet::Add(float x0, float y0, float x1, float y1) {
  const auto index = static_cast<std::size_t>(size_);
  Resize(size_ + 1);
  x[index] = x0;
  y[index] = y0;
  dx[index] = x1 - x0;
  dy[index] = y1 - y0;
  const double length2 =
      static_cast<double>(dx[index]) * dx[index] + static_cast<double>(dy[index]) * dy[index];
  length[index] = static_cast<float>(std::sqrt(length2));
  inverse_length2[index] = static_cast<float>(1.0 / length2);
}

void World::AddBox(const Box& box) {
  boxes.push_back(box);
  const double c = std::cos(static_cast<double>(box.heading));
  const double s = std::sin(static_cast<double>(box.heading));
  constexpr int kSignX[] = {1, -1, -1, 1};
  constexpr int kSignY[] = {1, 1, -1, -1};
  std::array<float, 4> corner_x{};
  std::array<float, 4> corner_y{};
  for (std::size_t corner = 0; corner < 4; ++corner) {
    const double along = kSignX[corner] * static_cast<double>(box.half_x);
    const double across = kSignY[corner] * static_cast<double>(box.half_y);
    corner_x[corner] = static_cast<float>(box.x + c * along - s * across);
    corner_y[corner] = static_cast<float>(box.y + s * along + c * across);
  }
  for (std::size_t corner = 0; corner < 4; ++corner) {
    const std::size_t next = (corner + 1) % 4;
    box_edges.Add(corner_x[corner], corner_y[corner], corner_x[next], corner_y[next]);
  }
}

void World::ClearObstacles() {
  discs.Clear();
  walls.Clear();
  boxes.clear();
  box_edges.Clear();
}

double Clearance(const World& world, double x, double y) {
  double nearest = std::numeric_limits<double>::infinity();
  for (int disc = 0; disc < world.discs.size(); ++disc) {
    const auto index = static_cast<std::size_t>(disc);
    nearest = std::min(nearest, std::hypot(x - world.discs.x[index], y - world.discs.y[index]) -
                                    world.discs.radius[index]);
  }
  for (int wall = 0; wall < world.walls.size(); ++wall) {
    const auto index = static_cast<std::size_t>(wall);
    nearest = std::min(nearest, DistanceToSegment(x, y, world.walls.x[index], world.walls.y[index],
                                                  world.walls.dx[index], world.walls.dy[index]));
  }
  for (const Box& box : world.boxes) nearest = std::min(nearest, SignedDistanceToBox(x, y, box));
  return nearest;
}

double DistanceToGoal(const Goal& goal, double x, double y) {
  if (goal.kind == Goal::Kind::kHalfPlane) {
    return std::max(0.0, goal.offset - (goal.normal_x * x + goal.normal_y * y));
  }
  return std::max(0.0, std::hypot(x - goal.x, y - goal.y) - goal.radius);
}

}  // namespace fedgen
