// SPDX-License-Identifier: Apache-2.0
#include "bench/peer_scalar.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fedgen {
namespace {

bool TouchesWalls(const WallSet& walls, float x, float y, float robot_radius) {
  for (std::size_t wall = 0; wall < static_cast<std::size_t>(walls.size()); ++wall) {
    const float px = x - walls.x[wall];
    const float py = y - walls.y[wall];
    const float along = (px * walls.dx[wall] + py * walls.dy[wall]) * walls.inverse_length2[wall];
    const float t = std::clamp(along, 0.0F, 1.0F);
    const float rx = px - t * walls.dx[wall];
    const float ry = py - t * walls.dy[wall];
    if (rx * rx + ry * ry < robot_radius * robot_radius) return true;
  }
  return false;
}

bool InsideBox(const Box& box, float x, float y) {
  const float c = std::cos(box.heading);
  const float s = std::sin(box.heading);
  const float dx = x - box.x;
  const float dy = y - box.y;
  return std::fabs(c * dx + s * dy) < box.half_x && std::fabs(c * dy - s * dx) < box.half_y;
}

}  // namespace

ScalarPeer::ScalarPeer(const Task& task, const Mlp& mlp) : task_(task), network_(mlp) {
  const LidarOptions& lidar = task.lidar;
  const auto num_beams = static_cast<std::size_t>(lidar.beams);
  const double spacing =
      lidar.beams > 1 ? (lidar.to_degrees - lidar.from_degrees) / (lidar.beams - 1) : 0;
  for (int beam = 0; beam < lidar.beams; ++beam) {
    const double angle = (lidar.from_degrees + spacing * beam) * (std::numbers::pi / 180);
    beam_cos_.push_back(static_cast<float>(std::cos(angle)));
    beam_sin_.push_back(static_cast<float>(std::sin(angle)));
  }
  direction_x_.resize(num_beams);
  direction_y_.resize(num_beams);
  ranges_.resize(num_beams);
}

// Eq. 4.
bool ScalarPeer::Touches(const World& world, const PlainRobot& robot) const {
  const auto robot_radius = static_cast<float>(task_.robot.radius);
  const DiscSet& discs = world.discs;
  for (std::size_t disc = 0; disc < static_cast<std::size_t>(discs.size()); ++disc) {
    const float dx = discs.x[disc] - robot.x;
    const float dy = discs.y[disc] - robot.y;
    const float reach = discs.radius[disc] + robot_radius;
    if (dx * dx + dy * dy < reach * reach) return true;
  }
  if (TouchesWalls(world.walls, robot.x, robot.y, robot_radius)) return true;
  if (TouchesWalls(world.box_edges, robot.x, robot.y, robot_radius)) return true;
  for (const Box& box : world.boxes) {
    if (InsideBox(box, robot.x, robot.y)) return true;
  }
  return false;
}

// Eq. 8 and 9.
void ScalarPeer::CastRays(const World& world, const PlainRobot& robot) {
  const int num_beams = task_.lidar.beams;
  const auto range = static_cast<float>(task_.lidar.range);
  float* ranges = ranges_.data();
  float* direction_x = direction_x_.data();
  float* direction_y = direction_y_.data();
  for (int beam = 0; beam < num_beams; ++beam) {
    const auto b = static_cast<std::size_t>(beam);
    direction_x[beam] = robot.cos * beam_cos_[b] - robot.sin * beam_sin_[b];
    direction_y[beam] = robot.sin * beam_cos_[b] + robot.cos * beam_sin_[b];
    ranges[beam] = range;
  }
  for (std::size_t disc = 0; disc < static_cast<std::size_t>(world.discs.size()); ++disc) {
    const float dx = world.discs.x[disc] - robot.x;
    const float dy = world.discs.y[disc] - robot.y;
    const float radius2 = world.discs.radius[disc] * world.discs.radius[disc];
    for (int beam = 0; beam < num_beams; ++beam) {
      const float along = dx * direction_x[beam] + dy * direction_y[beam];
      const float across = dy * direction_x[beam] - dx * direction_y[beam];
      const float inside = radius2 - across * across;
      const float hit = along - std::sqrt(std::max(inside, 0.0F));
      const float distance = inside >= 0 && along > 0 ? std::max(hit, 0.0F) : range;
      ranges[beam] = std::min(ranges[beam], distance);
    }
  }
  for (const WallSet* walls : {&world.walls, &world.box_edges}) {
    for (std::size_t wall = 0; wall < static_cast<std::size_t>(walls->size()); ++wall) {
      const float px = walls->x[wall] - robot.x;
      const float py = walls->y[wall] - robot.y;
      const float dx = walls->dx[wall];
      const float dy = walls->dy[wall];
      const float area = px * dy - py * dx;
      for (int beam = 0; beam < num_beams; ++beam) {
        const float cross = direction_x[beam] * dy - direction_y[beam] * dx;
        const float share = (px * direction_y[beam] - py * direction_x[beam]) / cross;
        const float distance = area / cross;
        const bool hit = distance >= 0 && share >= 0 && share <= 1;  // false if parallel (NaN)
        ranges[beam] = std::min(ranges[beam], hit ? distance : range);
      }
    }
  }
}

Episode ScalarPeer::Run(const World& world, int start_index) {
  const auto start = static_cast<std::size_t>(start_index);
  const Key noise_key = world.disturbance.key.Fork(start);
  PlainRobot robot(world.starts[start]);
  Episode episode;
  while (!PlainHasEnded(task_, world.goal, robot, Touches(world, robot), episode)) {
    CastRays(world, robot);
    const float control = network_.Decide(robot, ranges_);
    PlainAdvance(task_, control, world.disturbance, noise_key, robot);
  }
  return episode;
}

}  // namespace fedgen
