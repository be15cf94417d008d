// SPDX-License-Identifier: Apache-2.0
#include "fedgen/sim/batch.h"

#include <algorithm>
#include <cmath>

namespace fedgen {

Batch::Batch(int num_slots, const Lidar& lidar)
    : capacity((num_slots + 2 * kLaneGroup - 1) / (2 * kLaneGroup) * (2 * kLaneGroup)), beam_stride(lidar.beam_stride) {
  const auto n = static_cast<std::size_t>(capacity);
  world.resize(n);
  step.resize(n);
  noise_key.resize(n);
  collided.resize(n);
  arrived.resize(n);
  for (AlignedVector<float>* column :
       {&x, &y, &heading, &cos, &sin, &goal_distance, &goal_forward, &goal_left, &control, &push_x,
        &push_y, &push_heading}) {
    column->resize(n);
  }
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
       {&x, &y, &heading, &cos, &sin, &goal_distance, &goal_forward, &goal_left}) {
    (*column)[to] = (*column)[from];
  }
  const auto copy_row = [&](AlignedVector<float>& rows, std::size_t stride) {
    std::copy_n(rows.data() + from * stride, stride, rows.data() + to * stride);
  };
  copy_row(ranges, static_cast<std::size_t>(beam_stride));
  if (world[to]->disturbance.kind == Disturbance::Kind::kUniformNoise) copy_row(noise, kNoiseSteps);
}

}  // namespace fedgen
