// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fedgen/base/aligned.h"
#include "fedgen/base/kernel.h"
#include "fedgen/learn/experience.h"
#include "fedgen/learn/network_kernel.h"

namespace fedgen {

// A policy and its critic as networks that learn from an experience: what the critic expects, and
// the gradients of their losses. Samples go through in blocks of fixed size, and what the blocks
// give is summed in their order: threads and kernel change no bit. Allocates when it is made.

class ActorCritic {
 public:
  ActorCritic(const NetworkShape& policy, const NetworkShape& critic, Kernel kernel,
              int num_threads);

  void SetPolicy(std::span<const float> parameters) { policy_.Pack(parameters); }
  void SetCritic(std::span<const float> parameters) { critic_.Pack(parameters); }

  /// Writes what the critic expects in every step of the episodes [first, first + count) into
  /// experience.values. `worker` in [0, num_threads) is whose room this uses: threads that call at
  /// the same time have one each.
  void Value(std::size_t first, std::size_t count, int worker, Experience& experience);

  /// The clipped loss of a policy that drove with noise of this spread (Eq. 49).
  struct Clipped {
    float spread = 1;
    float clip = 0.2F;  // infinity for none
  };
  /// The gradients of the critic's squared error (by 1/2) and, if the policy learns too, of its
  /// loss: means over the samples with these indices. Requires a sample.
  void Differentiate(const Experience& experience, std::span<const std::uint32_t> samples,
                     std::optional<Clipped> loss);
  std::span<double> policy_gradient() { return policy_sum_; }
  std::span<double> critic_gradient() { return critic_sum_; }

  /// What worlds say about the gradient of the noisy policy's cost, one vector each (Eq. 48).
  struct WorldGradients {
    std::vector<double> sum;
    double squares = 0;  // of all entries of all vectors
    std::int64_t worlds = 0;
  };
  /// Adds the worlds of episodes [first, first + episodes), each with so many starts; the episodes
  /// of a world count as their mean.
  void AddWorlds(const Experience& experience, std::size_t first, std::size_t episodes,
                 std::size_t starts, float spread, WorldGradients& gradients);

 private:
  /// What one thread works with.
  struct Worker {
    Worker(const NetworkShape& policy, const NetworkShape& critic);
    NetworkWorkspace policy_pass, critic_pass;
    AlignedVector<float> rows;  // [kRows][row_stride] gathered samples
    SurrogateSamples samples;
    AlignedVector<float> outputs;    // [kRows]
    AlignedVector<float> gradients;  // [kRows] for outputs
  };
  /// What a block of samples, or a world, gives.
  struct Block {
    std::vector<float> policy, critic;
    std::vector<double> world;
  };

  void PassBlock(const Experience& experience, std::span<const std::uint32_t> samples,
                 const std::optional<Clipped>& loss, Worker& worker, Block& block) const;
  void AddEpisode(const Experience& experience, std::size_t episode, float spread, Worker& worker,
                  Block& block) const;
  int window() const { return static_cast<int>(blocks_.size()); }
  Block& SlotOf(std::int64_t task) {
    return blocks_[static_cast<std::size_t>(task) % blocks_.size()];
  }
  Worker& WorkerOf(int index) { return workers_[static_cast<std::size_t>(index)]; }

  Kernel kernel_;
  int num_threads_;
  PackedNetwork policy_, critic_;
  std::vector<Worker> workers_;                  // [threads]
  std::vector<Block> blocks_;                    // [window]
  std::vector<double> policy_sum_, critic_sum_;  // of a minibatch
};

}  // namespace fedgen
