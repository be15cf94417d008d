// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/actor_critic.h"

#include <algorithm>

#include "fedgen/base/check.h"
#include "fedgen/base/parallel.h"

namespace fedgen {
namespace {

constexpr std::size_t kRows = NetworkWorkspace::kRows;

std::int64_t NumBlocks(std::size_t num_samples) {
  return static_cast<std::int64_t>((num_samples + kRows - 1) / kRows);
}

std::span<const std::uint32_t> BlockOf(std::span<const std::uint32_t> samples, std::int64_t block) {
  const std::size_t begin = static_cast<std::size_t>(block) * kRows;
  return samples.subspan(begin, std::min(kRows, samples.size() - begin));
}

void Add(std::span<const float> part, std::span<double> sum) {
  for (std::size_t at = 0; at < sum.size(); ++at) sum[at] += static_cast<double>(part[at]);
}

}  // namespace

ActorCritic::Worker::Worker(const NetworkShape& policy, const NetworkShape& critic)
    : policy_pass(policy), critic_pass(critic), outputs(kRows), gradients(kRows) {
  for (auto* array :
       {&samples.outputs, &samples.old_outputs, &samples.noise, &samples.advantages}) {
    array->resize(kRows);
  }
}

ActorCritic::ActorCritic(const NetworkShape& policy, const NetworkShape& critic, Kernel kernel,
                         int num_threads)
    : kernel_(kernel),
      num_threads_(num_threads),
      policy_(policy),
      critic_(critic),
      workers_(static_cast<std::size_t>(num_threads), Worker(policy, critic)),
      blocks_(4 * static_cast<std::size_t>(num_threads)),
      policy_sum_(NumParameters(policy)),
      critic_sum_(NumParameters(critic)) {
  for (Block& block : blocks_) {
    block.policy.resize(policy_sum_.size());
    block.critic.resize(critic_sum_.size());
    block.world.resize(policy_sum_.size());
  }
}

void ActorCritic::Value(std::size_t first, std::size_t count, int worker, Experience& experience) {
  NetworkWorkspace& room = WorkerOf(worker).critic_pass;
  for (std::size_t episode = first; episode < first + count; ++episode) {
    const auto num_steps = static_cast<std::size_t>(experience.episodes[episode].steps);
    for (std::size_t time = 0; time < num_steps; time += kRows) {
      const std::size_t step = experience.FirstStep(episode) + time;
      const std::size_t rows = std::min(kRows, num_steps - time);
      Forward(kernel_, critic_, experience.RowsFrom(step, rows), room,
              std::span(experience.values).subspan(step, rows));
    }
  }
}

void ActorCritic::Differentiate(const Experience& experience,
                                std::span<const std::uint32_t> samples,
                                std::optional<Clipped> loss) {
  FEDGEN_CHECK(!samples.empty(), "there is nothing to learn from");
  std::ranges::fill(policy_sum_, 0.0);
  std::ranges::fill(critic_sum_, 0.0);
  OrderedParallelFor(
      NumBlocks(samples.size()), num_threads_, window(),
      [&](std::int64_t task, int index) {
        PassBlock(experience, BlockOf(samples, task), loss, WorkerOf(index), SlotOf(task));
      },
      [&](std::int64_t task) {
        const Block& block = SlotOf(task);
        if (loss) Add(block.policy, policy_sum_);
        Add(block.critic, critic_sum_);
      });
  const auto count = static_cast<double>(samples.size());
  for (double& value : policy_sum_) value /= count;
  for (double& value : critic_sum_) value /= count;
}

void ActorCritic::PassBlock(const Experience& experience, std::span<const std::uint32_t> samples,
                            const std::optional<Clipped>& loss, Worker& worker,
                            Block& block) const {
  const std::size_t count = samples.size();
  // Another thread may have worked in this slot, or summed it.
  if (loss) PrefetchToWrite(block.policy.data(), block.policy.size() * sizeof(float));
  PrefetchToWrite(block.critic.data(), block.critic.size() * sizeof(float));
  const InputRows rows = experience.Gather(kernel_, samples, worker.rows);
  const auto gradients = std::span(worker.gradients).first(count);
  if (loss) {
    SurrogateSamples& driven = worker.samples;
    for (std::size_t row = 0; row < count; ++row) {
      driven.old_outputs[row] = experience.notes[samples[row]].output;
      driven.noise[row] = experience.notes[samples[row]].noise;
      driven.advantages[row] = experience.notes[samples[row]].advantage;
    }
    Forward(kernel_, policy_, rows, worker.policy_pass, std::span(driven.outputs).first(count));
    SurrogateGradients(kernel_, driven, static_cast<int>(count), loss->spread, loss->clip,
                       worker.gradients);
    Backward(kernel_, policy_, rows, gradients, worker.policy_pass, block.policy);
  }
  Forward(kernel_, critic_, rows, worker.critic_pass, std::span(worker.outputs).first(count));
  for (std::size_t row = 0; row < count; ++row) {
    gradients[row] = worker.outputs[row] - experience.notes[samples[row]].target;
  }
  Backward(kernel_, critic_, rows, gradients, worker.critic_pass, block.critic);
}

void ActorCritic::AddWorlds(const Experience& experience, std::size_t first, std::size_t episodes,
                            std::size_t starts, float spread, WorldGradients& gradients) {
  gradients.sum.resize(policy_sum_.size());
  const std::size_t num_worlds = (episodes + starts - 1) / starts;
  OrderedParallelFor(
      static_cast<std::int64_t>(num_worlds), num_threads_, window(),
      [&](std::int64_t task, int index) {
        Block& block = SlotOf(task);
        std::ranges::fill(block.world, 0.0);
        const std::size_t begin = static_cast<std::size_t>(task) * starts;
        const std::size_t end = std::min(begin + starts, episodes);
        for (std::size_t episode = begin; episode < end; ++episode) {
          AddEpisode(experience, first + episode, spread, WorkerOf(index), block);
        }
        for (double& value : block.world) value /= static_cast<double>(end - begin);
      },
      [&](std::int64_t task) {
        const std::vector<double>& world = SlotOf(task).world;
        for (std::size_t at = 0; at < world.size(); ++at) {
          gradients.sum[at] += world[at];
          gradients.squares += world[at] * world[at];
        }
      });
  gradients.worlds += static_cast<std::int64_t>(num_worlds);
}

void ActorCritic::AddEpisode(const Experience& experience, std::size_t episode, float spread,
                             Worker& worker, Block& block) const {
  const auto num_steps = static_cast<std::size_t>(experience.episodes[episode].steps);
  for (std::size_t time = 0; time < num_steps; time += kRows) {
    const std::size_t step = experience.FirstStep(episode) + time;
    const std::size_t count = std::min(kRows, num_steps - time);
    for (std::size_t row = 0; row < count; ++row) {
      worker.gradients[row] =
          -experience.notes[step + row].advantage * experience.notes[step + row].noise / spread;
    }
    const InputRows rows = experience.RowsFrom(step, count);
    Forward(kernel_, policy_, rows, worker.policy_pass, std::span(worker.outputs).first(count));
    Backward(kernel_, policy_, rows, std::span(worker.gradients).first(count), worker.policy_pass,
             block.policy);
    Add(block.policy, block.world);
  }
}

}  // namespace fedgen
