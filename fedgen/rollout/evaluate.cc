// SPDX-License-Identifier: Apache-2.0
#include "fedgen/rollout/evaluate.h"

#include <algorithm>
#include <bit>

#include "fedgen/base/parallel.h"

namespace fedgen {
namespace {

// A bijective scramble of 64 bits (xor-shift and odd multiplications), so that sums of it do not
// cancel by accident.
std::uint64_t Scramble(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9U;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBU;
  return bits ^ (bits >> 31);
}

}  // namespace

void Tally::Add(const EpisodeOptions& options, std::int64_t index, const Episode& episode) {
  ++episodes;
  steps += episode.steps;
  reached += episode.outcome == Outcome::kReachedGoal ? 1 : 0;
  collided += episode.outcome == Outcome::kCollided ? 1 : 0;
  timed_out += episode.outcome == Outcome::kTimedOut ? 1 : 0;
  cost_sum += Cost(options, episode);
  goal_distance_sum += static_cast<double>(episode.goal_distance);
  if (episode.outcome == Outcome::kReachedGoal) arrival_time_sum += ArrivalTime(options, episode);
  const std::uint64_t what = static_cast<std::uint64_t>(episode.outcome) << 62 |
                             static_cast<std::uint64_t>(episode.steps) << 32 |
                             std::bit_cast<std::uint32_t>(episode.goal_distance);
  outcome_hash += Scramble(what + Scramble(static_cast<std::uint64_t>(index) + 1));
}

double SafeRate(const Tally& tally) {
  return static_cast<double>(tally.reached) / static_cast<double>(tally.episodes);
}

double MeanCost(const Tally& tally) { return tally.cost_sum / static_cast<double>(tally.episodes); }

Tally Evaluate(const Task& task, const Policy& policy, const WorldSource& worlds,
               const EvaluateOptions& options,
               const std::function<void(std::int64_t done)>& on_progress,
               const std::function<void(std::int64_t index, const Episode& episode)>& on_episode) {
  const std::int64_t num_episodes = options.num_worlds * options.starts_per_world;
  // Few episodes are divided evenly.
  const std::int64_t share = (num_episodes + options.num_threads - 1) / options.num_threads;
  const std::int64_t chunk_size = std::clamp<std::int64_t>(share, 1, options.chunk);
  const std::int64_t num_chunks = (num_episodes + chunk_size - 1) / chunk_size;
  const int window = 2 * options.num_threads;
  std::vector<std::unique_ptr<Rollout>> rollouts(static_cast<std::size_t>(options.num_threads));
  std::vector<std::vector<Episode>> results(static_cast<std::size_t>(window));
  Tally tally;
  OrderedParallelFor(
      num_chunks, options.num_threads, window,
      [&](std::int64_t chunk, int worker) {
        auto& rollout = rollouts[static_cast<std::size_t>(worker)];
        if (!rollout) {
          rollout = std::make_unique<Rollout>(task, policy, options.kernel, options.num_slots);
        }
        const std::int64_t first = chunk * chunk_size;
        auto& episodes = results[static_cast<std::size_t>(chunk % window)];
        episodes.resize(
            static_cast<std::size_t>(std::min<std::int64_t>(chunk_size, num_episodes - first)));
        rollout->Run(worlds, options.starts_per_world, first, episodes);
      },
      [&](std::int64_t chunk) {
        std::int64_t index = chunk * chunk_size;
        for (const Episode& episode : results[static_cast<std::size_t>(chunk % window)]) {
          tally.Add(task.episode, index, episode);
          if (on_episode) on_episode(index, episode);
          ++index;
        }
        if (on_progress) on_progress(tally.episodes);
      });
  return tally;
}

}  // namespace fedgen
