// SPDX-License-Identifier: Apache-2.0
#include "fedgen/sim/batch.h"

#include <algorithm>

namespace fedgen {
namespace {

constexpr int kSlotMultiple = 4 * kLaneGroup;  // a tile of the network
constexpr float kNowhere = 1e9F;               // m, where discs and walls that are not there stand

}  // namespace

Batch::Batch(int num_slots, const Lidar& lidar)
    : capacity((num_slots + kSlotMultiple - 1) / kSlotMultiple * kSlotMultiple),
      beam_stride(lidar.beam_stride) {
  const auto n = static_cast<std::size_t>(capacity);
  world.resize(n);
  step.resize(n);
  noise_key.resize(n);
  num_discs.resize(n);
  push_kind.resize(n);
  collided.resize(n);
  arrived.resize(n);
  for (AlignedVector<float>* column : {&x,
                                       &y,
                                       &heading,
                                       &cos,
                                       &sin,
                                       &goal_is_disc,
                                       &goal_x,
                                       &goal_y,
                                       &goal_size,
                                       &goal_depth,
                                       &gain_x,
                                       &gain_y,
                                       &gain_heading,
                                       &goal_distance,
                                       &goal_forward,
                                       &goal_left,
                                       &control,
                                       &push,
                                       &push_x,
                                       &push_y,
                                       &push_heading}) {
    column->resize(n);
  }
  ranges.resize(n * static_cast<std::size_t>(beam_stride));
  noise.resize(n * kNoiseSteps);
}

void Batch::GrowDiscRows(int rows) {
  const auto size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(capacity);
  disc_x.resize(size, kNowhere);
  disc_y.resize(size, kNowhere);
  disc_radius.resize(size, 0.0F);
  num_disc_rows = rows;
}

void Batch::GrowWallRows(int rows) {
  const auto size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(capacity);
  wall_x.resize(size, kNowhere);
  wall_y.resize(size, kNowhere);
  wall_dx.resize(size, 1.0F);
  wall_dy.resize(size, 0.0F);
  wall_length.resize(size, 1.0F);
  wall_inverse_length2.resize(size, 1.0F);
  num_wall_rows = rows;
}

void Batch::Place(int slot_index, const World& in_world, const Pose& start,
                  Key noise_key_of_episode) {
  const auto slot = static_cast<std::size_t>(slot_index);
  world[slot] = &in_world;
  step[slot] = 0;
  noise_key[slot] = noise_key_of_episode;
  x[slot] = start.x;
  y[slot] = start.y;
  heading[slot] = start.heading;

  const DiscSet& discs = in_world.discs;
  if (discs.size() > num_disc_rows) GrowDiscRows(discs.size());
  num_discs[slot] = discs.size();
  const auto stride = static_cast<std::size_t>(capacity);
  std::size_t at = slot;
  for (std::size_t disc = 0; disc < static_cast<std::size_t>(discs.size()); ++disc, at += stride) {
    disc_x[at] = discs.x[disc];
    disc_y[at] = discs.y[disc];
    disc_radius[at] = discs.radius[disc];
  }
  for (; at < disc_x.size(); at += stride) disc_x[at] = kNowhere;

  const int num_walls = in_world.walls.size() + in_world.box_edges.size();
  if (num_walls > num_wall_rows) GrowWallRows(num_walls);
  at = slot;
  for (const WallSet* walls : {&in_world.walls, &in_world.box_edges}) {
    for (std::size_t wall = 0; wall < static_cast<std::size_t>(walls->size()); ++wall) {
      wall_x[at] = walls->x[wall];
      wall_y[at] = walls->y[wall];
      wall_dx[at] = walls->dx[wall];
      wall_dy[at] = walls->dy[wall];
      wall_length[at] = walls->length[wall];
      wall_inverse_length2[at] = walls->inverse_length2[wall];
      at += stride;
    }
  }
  for (; at < wall_x.size(); at += stride) wall_x[at] = kNowhere;

  const Goal& goal = in_world.goal;
  const bool is_disc = goal.kind == Goal::Kind::kDisc;
  goal_is_disc[slot] = is_disc ? 1.0F : 0.0F;
  goal_x[slot] = is_disc ? goal.x : goal.normal_x;
  goal_y[slot] = is_disc ? goal.y : goal.normal_y;
  goal_size[slot] = is_disc ? goal.radius : goal.offset;
  goal_depth[slot] = goal.depth;
  push_kind[slot] = in_world.disturbance.kind;
  gain_x[slot] = in_world.disturbance.gain[0];
  gain_y[slot] = in_world.disturbance.gain[1];
  gain_heading[slot] = in_world.disturbance.gain[2];
}

void Batch::Move(int from_index, int to_index) {
  if (from_index == to_index) return;
  const auto from = static_cast<std::size_t>(from_index);
  const auto to = static_cast<std::size_t>(to_index);
  world[to] = world[from];
  step[to] = step[from];
  noise_key[to] = noise_key[from];
  collided[to] = collided[from];
  arrived[to] = arrived[from];
  for (AlignedVector<float>* column :
       {&x, &y, &heading, &cos, &sin, &goal_is_disc, &goal_x, &goal_y, &goal_size, &goal_depth,
        &gain_x, &gain_y, &gain_heading, &goal_distance, &goal_forward, &goal_left}) {
    (*column)[to] = (*column)[from];
  }
  num_discs[to] = num_discs[from];
  push_kind[to] = push_kind[from];
  const auto stride = static_cast<std::size_t>(capacity);
  for (std::size_t row = 0; row < disc_x.size(); row += stride) {
    disc_x[row + to] = disc_x[row + from];
    disc_y[row + to] = disc_y[row + from];
    disc_radius[row + to] = disc_radius[row + from];
  }
  for (std::size_t row = 0; row < wall_x.size(); row += stride) {
    for (AlignedVector<float>* column :
         {&wall_x, &wall_y, &wall_dx, &wall_dy, &wall_length, &wall_inverse_length2}) {
      (*column)[row + to] = (*column)[row + from];
    }
  }
  const auto copy_row = [&](AlignedVector<float>& rows, std::size_t length) {
    std::copy_n(rows.data() + from * length, length, rows.data() + to * length);
  };
  copy_row(ranges, static_cast<std::size_t>(beam_stride));
  if (push_kind[to] == Disturbance::Kind::kUniformNoise) copy_row(noise, kNoiseSteps);
}

}  // namespace fedgen
