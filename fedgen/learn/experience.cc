// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/experience.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

#include "fedgen/base/parallel.h"
#include "fedgen/learn/normal_kernel.h"
#include "fedgen/policy/mlp_kernel.h"
#include "fedgen/world/way_map.h"

namespace fedgen {
namespace {

constexpr int kEpisodesAtOnce = 64;     // that a thread takes
constexpr std::size_t kStepsAhead = 4;  // whose lines are asked for

// Drives with noise and writes down what was seen and done: one for each thread.
class Explorer final : public RolloutWatcher {
 public:
  Explorer(const Practice& practice, Experience& experience)
      : practice_(practice),
        experience_(experience),
        policy_(*practice.policy),
        trace_(*practice.policy, Rollout::kDefaultSlots),
        rollout_(*practice.task, policy_, practice.kernel, Rollout::kDefaultSlots, &trace_),
        noise_stride_(PaddedNormals(static_cast<std::size_t>(experience.shape().horizon))),
        noise_(kEpisodesAtOnce * noise_stride_),
        noisy_(static_cast<std::size_t>(Rollout::kDefaultSlots)),
        way_(practice.kernel),
        num_inputs_(static_cast<std::size_t>(experience.shape().num_inputs)),
        time_scale_(1.0F / static_cast<float>(experience.shape().horizon)),
        distance_scale_(1.0F / static_cast<float>(practice.task->robot.speed *
                                                  practice.task->episode.time_step *
                                                  practice.task->episode.horizon)) {}

  std::int64_t Run(std::int64_t first, std::int64_t count) {
    first_ = practice_.first + static_cast<std::size_t>(first);
    return rollout_.Run(
        practice_.worlds, practice_.task->world.start.per_world, first,
        std::span(experience_.episodes).subspan(first_, static_cast<std::size_t>(count)), {}, this);
  }

  void OnBegin(std::int64_t episode) override {
    DrawNormals(practice_.kernel, practice_.noise_key.Fork(IndexOf(episode) - practice_.first),
                NoiseOf(episode));
  }

  void OnDecided(std::span<const std::int64_t> episode_of, Batch& batch) override {
    const auto spread = static_cast<float>(practice_.noise);
    for (std::size_t slot = 0; slot < episode_of.size(); ++slot) {
      const std::size_t index = IndexOf(episode_of[slot]);
      const auto time = static_cast<std::size_t>(batch.step[slot]);
      const std::size_t step = experience_.FirstStep(index) + time;
      const float* seen = trace_.inputs.data() + slot * static_cast<std::size_t>(trace_.stride);
      float* row = experience_.row(step);
      // Whole groups, which need no call: what is beyond the inputs is written over below, or is
      // padding in both.
      for (std::size_t at = 0; at < num_inputs_; at += kLaneGroup) {
        std::copy_n(seen + at, kLaneGroup, row + at);
      }
      const float distance = batch.goal_distance[slot];
      PutCriticInputs(time, distance, batch.goal_forward[slot], batch.goal_left[slot], row);
      DistanceAt(index, time) = distance;
      experience_.stands[step] = {batch.x[slot], batch.y[slot], batch.cos[slot], batch.sin[slot]};
      const float output = trace_.outputs[slot];
      const float noise = NoiseOf(episode_of[slot])[time];
      experience_.notes[step] = {output, noise, 0, 0};
      noisy_[slot] = output + spread * noise;
      // The next steps of other episodes lie far apart; their lines should be here when they come.
      PrefetchToWrite(experience_.row(step + kStepsAhead),
                      static_cast<std::size_t>(experience_.row_stride()) * sizeof(float));
      PrefetchToWrite(experience_.notes.data() + step + kStepsAhead, sizeof(Experience::Note));
      PrefetchToWrite(experience_.stands.data() + step + kStepsAhead, sizeof(Experience::Stand));
    }
    OutputsToControls(practice_.kernel, *practice_.policy, static_cast<int>(episode_of.size()),
                      noisy_, batch);
  }

  void OnEnd(std::int64_t episode, const Episode& outcome, const Batch& batch,
             std::size_t slot) override {
    const std::size_t index = IndexOf(episode);
    const auto end = static_cast<std::size_t>(outcome.steps);
    DistanceAt(index, end) = outcome.goal_distance;
    if (!practice_.way) return;
    way_.Make(*batch.world[slot], practice_.task->robot.radius);
    for (std::size_t time = 0; time < end; ++time) {
      const std::size_t step = experience_.FirstStep(index) + time;
      const auto& [x, y, cos, sin] = experience_.stands[step];
      const float distance = way_.Distance(x, y);
      const auto [way_x, way_y] = way_.Direction(x, y);
      DistanceAt(index, time) = distance;
      PutCriticInputs(time, distance, way_x * cos + way_y * sin, way_y * cos - way_x * sin,
                      experience_.row(step));
    }
    DistanceAt(index, end) = way_.Distance(batch.x[slot], batch.y[slot]);
  }

 private:
  std::size_t IndexOf(std::int64_t episode) const {
    return first_ + static_cast<std::size_t>(episode);
  }
  std::span<float> NoiseOf(std::int64_t episode) {
    return std::span(noise_).subspan(static_cast<std::size_t>(episode) * noise_stride_,
                                     noise_stride_);
  }
  float& DistanceAt(std::size_t index, std::size_t time) {
    return experience_
        .distances[index * static_cast<std::size_t>(experience_.shape().horizon + 1) + time];
  }
  // forward, left: towards the goal or along the way, in the robot's frame, of any length.
  void PutCriticInputs(std::size_t time, float distance, float forward, float left, float* row) {
    const float length = std::sqrt(forward * forward + left * left);
    const float scale = length > 0 ? 1.0F / length : 0.0F;
    float* extra = row + num_inputs_;
    extra[0] = 2.0F * static_cast<float>(time) * time_scale_;
    extra[1] = 2.0F * distance * distance_scale_;
    extra[2] = forward * scale;
    extra[3] = left * scale;
  }

  const Practice& practice_;
  Experience& experience_;
  Policy policy_;
  MlpTrace trace_;
  Rollout rollout_;
  std::size_t noise_stride_;
  AlignedVector<float> noise_;  // [kEpisodesAtOnce][noise_stride_] of the episodes of a run
  AlignedVector<float> noisy_;  // [slots] outputs with noise
  WayMap way_;
  std::size_t num_inputs_;
  float time_scale_, distance_scale_;
  std::size_t first_ = 0;  // index in the experience of the run's first episode
};

}  // namespace

void Experience::Reset(const Shape& shape) {
  shape_ = shape;
  const auto num_episodes = static_cast<std::size_t>(shape.episodes);
  const std::size_t num_steps = num_episodes * static_cast<std::size_t>(shape.horizon);
  const auto grow = [](auto& array, std::size_t size) {
    if (array.size() < size) array.resize(size);
  };
  episodes.resize(num_episodes);
  grow(rows, num_steps * static_cast<std::size_t>(row_stride()));
  grow(distances, num_steps + num_episodes);
  grow(notes, num_steps);
  grow(stands, num_steps);
  grow(values, num_steps);
  steps.reserve(num_steps);
}

double Experience::Bytes(const Shape& shape) {
  const double num_steps = static_cast<double>(shape.episodes) * shape.horizon;
  return num_steps * sizeof(float) * (PadToLaneGroup(shape.num_inputs + kCriticInputs) + 11);
}

void Experience::ListSteps() {
  steps.clear();
  for (std::size_t episode = 0; episode < episodes.size(); ++episode) {
    const auto first = static_cast<std::uint32_t>(FirstStep(episode));
    const auto count = static_cast<std::size_t>(episodes[episode].steps);
    steps.resize(steps.size() + count);
    std::iota(steps.end() - static_cast<std::ptrdiff_t>(count), steps.end(), first);
  }
}

InputRows Experience::Gather(Kernel kernel, std::span<const std::uint32_t> which,
                             AlignedVector<float>& room) const {
  room.resize(which.size() * static_cast<std::size_t>(row_stride()));
  for (const std::uint32_t step : which) __builtin_prefetch(&notes[step]);
  GatherRows(kernel, rows.data(), row_stride(), which, room.data());
  return {room.data(), row_stride(), static_cast<int>(which.size())};
}

std::int64_t Explore(const Practice& practice, Experience& experience) {
  std::vector<std::unique_ptr<Explorer>> explorers(static_cast<std::size_t>(practice.num_threads));
  std::vector<std::int64_t> steps(explorers.size());
  const std::int64_t chunks = (practice.episodes + kEpisodesAtOnce - 1) / kEpisodesAtOnce;
  ParallelFor(chunks, practice.num_threads, [&](std::int64_t chunk, int worker) {
    const auto at = static_cast<std::size_t>(worker);
    if (!explorers[at]) explorers[at] = std::make_unique<Explorer>(practice, experience);
    const std::int64_t first = chunk * kEpisodesAtOnce;
    const std::int64_t count = std::min<std::int64_t>(kEpisodesAtOnce, practice.episodes - first);
    steps[at] += explorers[at]->Run(first, count);
    if (practice.on_driven) {
      practice.on_driven(practice.first + static_cast<std::size_t>(first),
                         static_cast<std::size_t>(count), worker);
    }
  });
  return std::accumulate(steps.begin(), steps.end(), std::int64_t{0});
}

void GiveCredit(const RewardOptions& reward, const EpisodeOptions& episode, double discount,
                double trace, std::size_t first, std::size_t count, Experience& experience) {
  // What is left of 1 - J after t steps, if the robot still arrives then.
  const auto horizon = static_cast<std::size_t>(experience.shape().horizon);
  std::vector<double> left(horizon + 1);
  for (std::size_t time = 0; time <= horizon; ++time) {
    Episode arrived;
    arrived.outcome = Outcome::kReachedGoal;
    arrived.steps = static_cast<std::int32_t>(time);
    left[time] = 1 - Cost(episode, arrived);
  }
  for (std::size_t index = first; index < first + count; ++index) {
    const Episode& outcome = experience.episodes[index];
    const auto num_steps = static_cast<std::size_t>(outcome.steps);
    const std::size_t begin = experience.FirstStep(index);
    const float* distances = experience.distances.data() + index * (horizon + 1);
    double next_value = 0;  // nothing comes after the end
    double advantage = 0;
    for (std::size_t time = num_steps; time-- > 0;) {
      double gain =
          reward.distance_weight * static_cast<double>(distances[time] - distances[time + 1]) -
          reward.time_weight * (left[time] - left[time + 1]);
      if (time + 1 == num_steps && outcome.outcome != Outcome::kReachedGoal) {
        gain -= reward.failure_weight * left[num_steps];
      }
      const auto value = static_cast<double>(experience.values[begin + time]);
      advantage = gain + discount * next_value - value + discount * trace * advantage;
      experience.notes[begin + time].advantage = static_cast<float>(advantage);
      experience.notes[begin + time].target = static_cast<float>(advantage + value);
      next_value = value;
    }
  }
}

// Swap i has word i % 4 of block i / 4.
void Shuffle(Key key, std::vector<std::uint32_t>& values) {
  RandomBlock block{};
  for (std::size_t left = values.size(); left > 1; --left) {
    const std::size_t draw = values.size() - left;
    if (draw % 4 == 0) block = key.Block(draw / 4);
    const auto other = (std::uint64_t{block[draw % 4]} * left) >> 32;
    std::swap(values[left - 1], values[other]);
  }
}

}  // namespace fedgen
