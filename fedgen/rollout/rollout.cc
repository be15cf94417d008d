// SPDX-License-Identifier: Apache-2.0
#include "fedgen/rollout/rollout.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fedgen/sim/move_kernel.h"
#include "fedgen/sim/observe_kernel.h"

namespace fedgen {

std::string_view OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kReachedGoal:
      return "reached";
    case Outcome::kCollided:
      return "collided";
    case Outcome::kTimedOut:
      return "timed out";
  }
  return "unknown";
}

double ArrivalTime(const EpisodeOptions& options, const Episode& episode) {
  const bool index = options.clock == EpisodeOptions::Clock::kStepIndex && episode.steps > 0;
  return options.time_step * (episode.steps - (index ? 1 : 0));
}

double Cost(const EpisodeOptions& options, const Episode& episode) {
  if (episode.outcome != Outcome::kReachedGoal) return 1.0;
  return -std::expm1(-options.cost_rate * ArrivalTime(options, episode));
}

WorldSource DrawnWorlds(const Task& task, Key key, Kernel kernel) {
  return WorldSource([distribution = task.world, robot_radius = task.robot.radius, key, kernel](
                         std::int64_t index, int start, World& scratch) -> const World& {
    DrawWorld(distribution, robot_radius, key.Fork(static_cast<std::uint64_t>(index)), kernel,
              scratch, start);
    return scratch;
  });
}

namespace {

bool HasEnded(const Batch& batch, std::size_t slot, int horizon) {
  return batch.collided[slot] != 0 || batch.arrived[slot] != 0 || batch.step[slot] >= horizon;
}

// A collision outranks an arrival in the same step, and both outrank the clock.
Episode Summarize(const Batch& batch, std::size_t slot) {
  Episode episode;
  episode.steps = batch.step[slot];
  episode.goal_distance = batch.goal_distance[slot];
  episode.outcome = batch.collided[slot] != 0  ? Outcome::kCollided
                    : batch.arrived[slot] != 0 ? Outcome::kReachedGoal
                                               : Outcome::kTimedOut;
  return episode;
}

void Prefetch(const void* address, std::size_t bytes) {
  constexpr std::size_t kCacheLine = 64;
  for (std::size_t at = 0; at < bytes; at += kCacheLine) {
    __builtin_prefetch(static_cast<const char*>(address) + at);
  }
}

// What Batch::Place reads of a world, apart from the World itself.
void PrefetchArrays(const World& world) {
  for (const AlignedVector<float>* column :
       {&world.discs.x, &world.discs.y, &world.discs.radius, &world.walls.x, &world.walls.y,
        &world.walls.dx, &world.walls.dy, &world.walls.length, &world.walls.inverse_length2,
        &world.disturbance.kx, &world.disturbance.ky, &world.disturbance.phase}) {
    Prefetch(column->data(), std::min<std::size_t>(column->size() * sizeof(float), 256));
  }
  Prefetch(world.starts.data(), 1);
}

}  // namespace

// Worlds are asked for in order, and one is some twenty cache lines in several places: asking for
// the next ones early keeps the robots from waiting for memory.
WorldSource GivenWorlds(std::span<const World> worlds) {
  return WorldSource(
      [worlds](std::int64_t index, int /*start*/, World& /*scratch*/) -> const World& {
        constexpr std::size_t kAhead = 8;
        const auto at = static_cast<std::size_t>(index);
        if (at + 2 * kAhead < worlds.size()) Prefetch(&worlds[at + 2 * kAhead], sizeof(World));
        if (at + kAhead < worlds.size()) PrefetchArrays(worlds[at + kAhead]);
        return worlds[at];
      });
}

Episode Redrive(const Task& task, Kernel kernel, const World& world, int start,
                std::span<const float> controls) {
  const Lidar lidar(task.lidar);
  const auto robot_radius = static_cast<float>(task.robot.radius);
  const auto at = static_cast<std::size_t>(start);
  Batch batch(1, lidar);
  batch.Place(0, world, world.starts[at], world.disturbance.key.Fork(at));
  FaceHeading(kernel, 0, 1, batch);
  Observe(kernel, lidar, robot_radius, 0, 1, batch);
  while (!HasEnded(batch, 0, task.episode.horizon)) {
    const auto step = static_cast<std::size_t>(batch.step[0]);
    batch.control[0] = step < controls.size() ? controls[step] : 0.0F;
    Disturb(kernel, 1, batch);
    Advance(kernel, task.robot, static_cast<float>(task.episode.time_step), 1, batch);
    Observe(kernel, lidar, robot_radius, 0, 1, batch);
  }
  return Summarize(batch, 0);
}

struct Rollout::State {
  State(const Task& the_task, const Policy& policy, Kernel the_kernel, int num_slots,
        MlpTrace* trace)
      : task(the_task),
        kernel(the_kernel),
        lidar(the_task.lidar),
        batch(num_slots, lidar),
        driver(policy, BodyOf(the_task), trace),
        scratch(static_cast<std::size_t>(batch.capacity)),
        scratch_of(scratch.size()),
        episode_of(scratch.size()) {
    for (std::size_t slot = 0; slot < scratch.size(); ++slot) scratch_of[slot] = &scratch[slot];
  }

  const Task& task;
  Kernel kernel;
  Lidar lidar;
  Batch batch;
  Driver driver;
  std::vector<World> scratch;            // [capacity] where drawn worlds live
  std::vector<World*> scratch_of;        // [capacity] which of them a slot may draw into
  std::vector<std::int64_t> episode_of;  // [capacity] index into the output

  // Frees a slot by moving the last active one into it.
  void Remove(int slot, int last) {
    batch.Move(last, slot);
    std::swap(scratch_of[static_cast<std::size_t>(slot)],
              scratch_of[static_cast<std::size_t>(last)]);
    episode_of[static_cast<std::size_t>(slot)] = episode_of[static_cast<std::size_t>(last)];
  }
};

Rollout::Rollout(const Task& task, const Policy& policy, Kernel kernel, int num_slots,
                 MlpTrace* trace)
    : state_(std::make_unique<State>(task, policy, kernel, num_slots, trace)) {}
Rollout::~Rollout() = default;

std::int64_t Rollout::Run(const WorldSource& worlds, int starts_per_world, std::int64_t first,
                          std::span<Episode> episodes, std::span<Trajectory> trajectories,
                          RolloutWatcher* watcher) {
  State& s = *state_;
  Batch& batch = s.batch;
  const auto num_episodes = static_cast<std::int64_t>(episodes.size());
  const auto robot_radius = static_cast<float>(s.task.robot.radius);
  const auto time_step = static_cast<float>(s.task.episode.time_step);
  std::int64_t next = 0;
  std::int64_t steps = 0;
  int active = 0;

  const auto record_pose = [&](std::size_t slot) {
    trajectories[static_cast<std::size_t>(s.episode_of[slot])].poses.push_back(
        {batch.x[slot], batch.y[slot], batch.heading[slot]});
  };
  // Observes slots [from, active), then takes out those whose episode is over.
  const auto observe_and_retire = [&](int from) {
    Observe(s.kernel, s.lidar, robot_radius, from, active, batch);
    for (int index = active - 1; index >= from; --index) {
      const auto slot = static_cast<std::size_t>(index);
      if (!trajectories.empty()) record_pose(slot);
      if (!HasEnded(batch, slot, s.task.episode.horizon)) continue;
      Episode& episode = episodes[static_cast<std::size_t>(s.episode_of[slot])];
      episode = Summarize(batch, slot);
      if (watcher != nullptr) watcher->OnEnd(s.episode_of[slot], episode, batch, slot);
      steps += batch.step[slot];
      s.Remove(index, --active);
    }
  };

  while (true) {
    // Sense and check; refill free slots, which are the last ones, with new episodes: by eights,
    // since that is how many are observed at once.
    observe_and_retire(0);
    while (active <= batch.capacity - kLaneGroup && next < num_episodes) {
      const int first_new = active;
      while (active < batch.capacity && next < num_episodes) {
        const auto slot = static_cast<std::size_t>(active);
        const std::int64_t episode = first + next;
        const auto start = static_cast<int>(episode % starts_per_world);
        const World& world = worlds(episode / starts_per_world, start, *s.scratch_of[slot]);
        const auto at = static_cast<std::size_t>(start);
        batch.Place(active, world, world.starts[at], world.disturbance.key.Fork(at));
        s.episode_of[slot] = next++;
        if (watcher != nullptr) watcher->OnBegin(s.episode_of[slot]);
        ++active;
      }
      FaceHeading(s.kernel, first_new, active, batch);
      observe_and_retire(first_new);
    }
    if (active == 0) return steps;

    // Decide, then move.
    s.driver.Decide(s.kernel, s.lidar, active, batch);
    if (watcher != nullptr) {
      watcher->OnDecided(std::span(s.episode_of).first(static_cast<std::size_t>(active)), batch);
    }
    Disturb(s.kernel, active, batch);
    Advance(s.kernel, s.task.robot, time_step, active, batch);
    if (!trajectories.empty()) {
      for (std::size_t slot = 0; slot < static_cast<std::size_t>(active); ++slot) {
        trajectories[static_cast<std::size_t>(s.episode_of[slot])].controls.push_back(
            batch.control[slot]);
      }
    }
  }
}

}  // namespace fedgen
