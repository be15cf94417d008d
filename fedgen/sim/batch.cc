// SPDX-License-Identifier: Apache-2.0
#include "fedgen/sim/batch.h"

#include <algorithm>
#include <initializer_list>
#include <tuple>

namespace fedgen {
namespace {

constexpr int kSlotMultiple = 4 * kLaneGroup;  // a tile of the network
constexpr float kFarAway = 1e9F;               // m, where padding obstacles stand

// Every column is named once, in one of the lists below. What happens to a batch as a whole -
// making it, growing it, moving an episode - goes through the lists.

// One entry a slot; belongs to the episode, so it moves with it.
constexpr auto kEpisodeColumns = std::tuple(
    &Batch::world, &Batch::step, &Batch::noise_key, &Batch::x, &Batch::y, &Batch::heading,
    &Batch::cos, &Batch::sin, &Batch::num_discs, &Batch::num_boxes, &Batch::goal_is_disc,
    &Batch::goal_x, &Batch::goal_y, &Batch::goal_size, &Batch::goal_depth, &Batch::push_kind,
    &Batch::gain_x, &Batch::gain_y, &Batch::gain_heading, &Batch::goal_distance,
    &Batch::goal_forward, &Batch::goal_left, &Batch::collided, &Batch::arrived);

// One entry a slot; written and read within one step, between which no episode moves.
constexpr auto kStepColumns =
    std::tuple(&Batch::control, &Batch::push, &Batch::push_x, &Batch::push_y, &Batch::push_heading);

// One row per obstacle of a world, one entry a slot in each.
template <typename Obstacles>
struct ObstacleColumn {
  AlignedVector<float> Batch::* rows;        // [rows][capacity]
  AlignedVector<float> Obstacles::* values;  // [obstacles] where they come from
  float padding;                             // in unused rows
};

constexpr ObstacleColumn<DiscSet> kDiscColumns[] = {
    {&Batch::disc_x, &DiscSet::x, kFarAway},
    {&Batch::disc_y, &DiscSet::y, kFarAway},
    {&Batch::disc_radius, &DiscSet::radius, 0},
};

constexpr ObstacleColumn<WallSet> kWallColumns[] = {
    {&Batch::wall_x, &WallSet::x, kFarAway},
    {&Batch::wall_y, &WallSet::y, kFarAway},
    {&Batch::wall_dx, &WallSet::dx, 1},
    {&Batch::wall_dy, &WallSet::dy, 0},
    {&Batch::wall_length, &WallSet::length, 1},
    {&Batch::wall_inverse_length2, &WallSet::inverse_length2, 1},
};

template <typename Columns, typename Visit>
void ForEach(const Columns& columns, const Visit& visit) {
  std::apply([&](auto... column) { (visit(column), ...); }, columns);
}

// Writes the obstacles of some sets, one after the other, into a slot and padding below them; makes
// rows if there are not enough.
template <std::size_t kColumns, typename Obstacles>
void PlaceObstacles(const ObstacleColumn<Obstacles> (&columns)[kColumns],
                    std::initializer_list<const Obstacles*> sets, std::size_t slot, int& num_rows,
                    Batch& batch) {
  int count = 0;
  for (const Obstacles* set : sets) count += set->size();
  const auto stride = static_cast<std::size_t>(batch.capacity);
  if (count > num_rows) {
    num_rows = count;
    for (const auto& column : columns) {
      (batch.*column.rows).resize(static_cast<std::size_t>(num_rows) * stride, column.padding);
    }
  }
  const std::size_t end = static_cast<std::size_t>(num_rows) * stride;
  for (const auto& column : columns) {
    float* rows = (batch.*column.rows).data();
    std::size_t at = slot;
    for (const Obstacles* set : sets) {
      const float* values = (set->*column.values).data();
      for (int index = 0; index < set->size(); ++index, at += stride) rows[at] = values[index];
    }
    for (; at < end; at += stride) rows[at] = column.padding;
  }
}

template <std::size_t kColumns, typename Obstacles>
void MoveObstacles(const ObstacleColumn<Obstacles> (&columns)[kColumns], std::size_t from,
                   std::size_t to, Batch& batch) {
  const auto stride = static_cast<std::size_t>(batch.capacity);
  for (const auto& column : columns) {
    const std::size_t size = (batch.*column.rows).size();
    float* rows = (batch.*column.rows).data();
    for (std::size_t row = 0; row < size; row += stride) rows[row + to] = rows[row + from];
  }
}

}  // namespace

Batch::Batch(int num_slots, const Lidar& lidar)
    : capacity((num_slots + kSlotMultiple - 1) / kSlotMultiple * kSlotMultiple),
      beam_stride(lidar.beam_stride) {
  const auto n = static_cast<std::size_t>(capacity);
  const auto make = [&](auto column) { (this->*column).resize(n); };
  ForEach(kEpisodeColumns, make);
  ForEach(kStepColumns, make);
  ranges.resize(n * static_cast<std::size_t>(beam_stride));
  noise.resize(n * kNoiseSteps);
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

  num_discs[slot] = in_world.discs.size();
  num_boxes[slot] = static_cast<float>(in_world.boxes.size());
  PlaceObstacles(kDiscColumns, {&in_world.discs}, slot, num_disc_rows, *this);
  PlaceObstacles(kWallColumns, {&in_world.box_edges, &in_world.walls}, slot, num_wall_rows, *this);

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
  ForEach(kEpisodeColumns, [&](auto column) { (this->*column)[to] = (this->*column)[from]; });
  MoveObstacles(kDiscColumns, from, to, *this);
  MoveObstacles(kWallColumns, from, to, *this);
  const auto copy_row = [&](AlignedVector<float>& rows, std::size_t length) {
    std::copy_n(rows.data() + from * length, length, rows.data() + to * length);
  };
  copy_row(ranges, static_cast<std::size_t>(beam_stride));
  if (push_kind[to] == Disturbance::Kind::kUniformNoise) copy_row(noise, kNoiseSteps);
}

}  // namespace fedgen
