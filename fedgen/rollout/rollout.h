// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "fedgen/base/kernel.h"
#include "fedgen/policy/policy.h"
#include "fedgen/rollout/task.h"
#include "fedgen/world/distribution.h"
#include "fedgen/world/world.h"

namespace fedgen {

// Episodes: a policy drives the robot through worlds until it arrives, collides or runs out of
// time.
//
// Episode e is start e % starts_per_world of world e / starts_per_world. What happens in it depends
// on the task, the policy, the world and the start only: not on the kernel, on which other episodes
// are in flight, on threads or on the build. That is tested bit for bit.

enum class Outcome : std::uint8_t { kReachedGoal, kCollided, kTimedOut };
std::string_view OutcomeName(Outcome outcome);

struct Episode {
  Outcome outcome = Outcome::kTimedOut;
  std::int32_t steps = 0;   // taken until the end
  float goal_distance = 0;  // m, rho at the end (Eq. 10); 0 if reached
};

/// Arrival time in s of an episode that reached the goal (Eq. 3).
double ArrivalTime(const EpisodeOptions& options, const Episode& episode);

/// J in [0, 1] (Eq. 3): 1 - exp(-cost_rate * arrival time), 1 for a collision or a time-out.
double Cost(const EpisodeOptions& options, const Episode& episode);

/// One robot's way: its pose before each step and at the end, and the control of each step.
struct Trajectory {
  std::vector<Pose> poses;      // [steps + 1]
  std::vector<float> controls;  // [steps]
};

/// Drives the episode from one start of a world with given controls, one a step, and 0 when there
/// are no more: the controls of a Trajectory lead to its episode again, bit for bit.
Episode Redrive(const Task& task, Kernel kernel, const World& world, int start,
                std::span<const float> controls);

/// Worlds by their number: one is drawn into `scratch`, which is returned, or one that is kept
/// elsewhere is returned. Safe to call from several threads with different scratch.
class WorldSource {
 public:
  using Function = std::function<const World&(std::int64_t index, int start, World& scratch)>;
  WorldSource() = default;
  explicit WorldSource(Function function) : function_(std::move(function)) {}

  const World& operator()(std::int64_t index, World& scratch) const {
    return function_(index, kEveryStart, scratch);
  }
  /// The same for who needs only one of its starts, which the world is sure to have.
  const World& operator()(std::int64_t index, int start, World& scratch) const {
    return function_(index, start, scratch);
  }

 private:
  Function function_;
};

/// Worlds of a distribution, drawn as they are used: world w comes from key.Fork(w).
WorldSource DrawnWorlds(const Task& task, Key key, Kernel kernel);

/// Worlds that exist already. The span must outlive the source.
WorldSource GivenWorlds(std::span<const World> worlds);

/// Watches episodes while they are driven, and may meddle with the controls: who explores, or keeps
/// what was seen. Episodes are counted from 0 in each Run.
class RolloutWatcher {
 public:
  RolloutWatcher() = default;
  virtual ~RolloutWatcher() = default;
  RolloutWatcher(const RolloutWatcher&) = delete;
  RolloutWatcher& operator=(const RolloutWatcher&) = delete;

  /// An episode begins.
  virtual void OnBegin(std::int64_t episode) = 0;
  /// The policy has decided for the robots of these episodes, the first slots of the batch;
  /// batch.control may still be changed.
  virtual void OnDecided(std::span<const std::int64_t> episode_of, Batch& batch) = 0;
  /// An episode has ended with the robot as it stands in this slot.
  virtual void OnEnd(std::int64_t episode, const Episode& outcome, const Batch& batch,
                     std::size_t slot) = 0;
};

/// Drives episodes on one thread. The task and the policy must outlive it. Allocates when it is
/// made and while its first worlds are drawn; a step allocates nothing.
class Rollout {
 public:
  /// With a trace, which must outlive it, a network writes there what it sees and says: room for
  /// num_slots, rounded up to 32.
  Rollout(const Task& task, const Policy& policy, Kernel kernel, int num_slots = kDefaultSlots,
          MlpTrace* trace = nullptr);
  ~Rollout();
  Rollout(const Rollout&) = delete;
  Rollout& operator=(const Rollout&) = delete;

  static constexpr int kDefaultSlots = 64;

  /// Runs episodes [first, first + episodes.size()) and writes episodes[e - first]. If trajectories
  /// is not empty it has the same size and receives the ways. Returns the steps taken.
  std::int64_t Run(const WorldSource& worlds, int starts_per_world, std::int64_t first,
                   std::span<Episode> episodes, std::span<Trajectory> trajectories = {},
                   RolloutWatcher* watcher = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fedgen
