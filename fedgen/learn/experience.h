// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "fedgen/base/aligned.h"
#include "fedgen/base/kernel.h"
#include "fedgen/base/option.h"
#include "fedgen/base/random.h"
#include "fedgen/learn/network_kernel.h"
#include "fedgen/policy/mlp.h"
#include "fedgen/rollout/rollout.h"

namespace fedgen {

// What a learner lives through in a round: episodes that its policy drives with noise on the
// control, what was seen and done in every step, and what came of it.
//
//   experience.Reset(shape);
//   Explore(...);                  // drives; fills rows, notes, distances
//   ... values by a critic ...
//   GiveCredit(reward, task.episode, discount, trace, experience);   // fills advantages, targets

/// What a step is worth (Eq. 46): the weights of getting closer, of time, and of failing. With
/// weights 0, 1 and 1 the rewards of an episode add up to -J.
struct RewardOptions {
  double distance_weight = 0.1;  // 1/m, of progress towards the goal
  double time_weight = 1;        // of what time costs in J
  double failure_weight = 1;     // of what a collision or a time-out adds to J
  bool way = false;              // progress is along the way around obstacles, not straight
};

/// The samples of a round, one for each step of each episode. Step t of episode e has the index
/// e * horizon + t in every array; an episode has room for the whole horizon, so nothing moves and
/// nothing is allocated while robots drive. Learners of one host use one after the other.
class Experience {
 public:
  struct Shape {
    int episodes = 0;
    int horizon = 0;     // steps
    int num_inputs = 0;  // of the policy
    bool operator==(const Shape&) const = default;
  };
  /// A critic sees what the policy sees, and these: the time that has passed, the distance left,
  /// and where the way goes (forward, left), each about 1 in size.
  static constexpr int kCriticInputs = 4;

  /// What is learned from a step besides what was seen. One place in memory: steps are learned from
  /// in random order.
  struct Note {
    float output = 0;     // o of the policy that drove, without the noise
    float noise = 0;      // N(0, 1), what was added to the output, in its spread
    float advantage = 0;  // how much better it went than the critic expected (Eq. 47)
    float target = 0;     // what the critic should have expected
  };
  /// Where the robot stood.
  struct Stand {
    float x = 0, y = 0;      // m
    float cos = 1, sin = 0;  // of its heading
  };

  /// Makes room. Keeps what it has if that is enough.
  void Reset(const Shape& shape);
  /// What Reset allocates, in bytes.
  static double Bytes(const Shape& shape);

  const Shape& shape() const { return shape_; }
  int row_stride() const { return PadToLaneGroup(shape_.num_inputs + kCriticInputs); }
  std::size_t FirstStep(std::size_t episode) const {
    return episode * static_cast<std::size_t>(shape_.horizon);
  }
  float* row(std::size_t step) {
    return rows.data() + step * static_cast<std::size_t>(row_stride());
  }
  const float* row(std::size_t step) const {
    return rows.data() + step * static_cast<std::size_t>(row_stride());
  }
  /// `count` steps of an episode from step on, where they lie.
  InputRows RowsFrom(std::size_t step, std::size_t count) const {
    return {row(step), row_stride(), static_cast<int>(count)};
  }
  /// The rows of these steps side by side in `room`, [steps][row_stride].
  InputRows Gather(Kernel kernel, std::span<const std::uint32_t> which,
                   AlignedVector<float>& room) const;
  /// Lists the steps that were taken, in order of episode and time, in `steps`.
  void ListSteps();

  std::vector<Episode> episodes;     // [episodes] how each ended
  AlignedVector<float> rows;         // [steps][row_stride] inputs of policy and critic
  AlignedVector<Note> notes;         // [steps]
  AlignedVector<Stand> stands;       // [steps]
  AlignedVector<float> distances;    // [episodes][horizon + 1] m, to the goal before each step and
                                     // at the end
  AlignedVector<float> values;       // [steps] what the critic expects from there on
  std::vector<std::uint32_t> steps;  // indices of the steps that were taken

 private:
  Shape shape_;
};

/// Where and how episodes are practised.
struct Practice {
  const Task* task = nullptr;  // with a wider robot or denser worlds than the true one
  const Mlp* policy = nullptr;
  WorldSource worlds;
  std::size_t first = 0;  // index of the first episode in the experience
  int episodes = 0;       // a multiple of the starts in a world
  double noise = 0.1;     // standard deviation of what is added to the policy's output
  Key noise_key;          // of the noise of episode e: Fork(e)
  bool way = false;       // distances are along the way around obstacles
  Kernel kernel = Kernel::kScalar;
  int num_threads = 1;
  /// Called when episodes [first, first + count) of the experience have been driven, on the thread
  /// that drove them, whose caches still hold them. `worker` is in [0, num_threads) and used by one
  /// thread at a time.
  std::function<void(std::size_t first, std::size_t count, int worker)> on_driven;
};

/// Drives the practice's episodes with noise and writes them down. Threads and kernel change no
/// bit. Returns the steps taken.
std::int64_t Explore(const Practice& practice, Experience& experience);

/// Rewards (Eq. 46) and, from the values, advantages and targets (Eq. 47) of the episodes [first,
/// first + count): generalised advantage estimation with this discount per step and this decay of
/// the trace. With both 1 an advantage is what the episode still gave, less the value.
void GiveCredit(const RewardOptions& reward, const EpisodeOptions& episode, double discount,
                double trace, std::size_t first, std::size_t count, Experience& experience);

/// Brings values into a random order (Fisher and Yates); the key decides which.
void Shuffle(Key key, std::vector<std::uint32_t>& values);

}  // namespace fedgen
