// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/race.h"

#include <fmt/format.h>

#include <algorithm>

#include "fedgen/learn/navigation.h"

namespace fedgen {

std::vector<Racer> Racers(const Federation& federation, const Mlp& shape) {
  std::vector<Racer> racers;
  const auto enter = [&](std::string name, std::span<const float> theta) {
    Mlp mlp = MlpOf(shape, theta);
    const std::vector<float> entered(theta.begin(), theta.end());
    const bool known = std::any_of(racers.begin(), racers.end(), [&](const Racer& racer) {
      return ThetaOf(racer.policy) == entered;
    });
    if (!known) racers.push_back({std::move(name), std::move(mlp), {}});
  };
  std::vector<Submission> finals;
  for (const auto& learner : federation.learners()) {
    finals.push_back(learner->Submit());
    enter(fmt::format("final-{}", learner->index() + 1), learner->state().search.mu);
  }
  if (const auto incumbent = federation.incumbent()) enter("incumbent", incumbent->theta);
  if (federation.fuses()) {
    if (const auto average = Average(finals)) enter("average", average->theta);
  }
  return racers;
}

std::size_t Race(const Task& task, const WorldSource& worlds, const EvaluateOptions& options,
                 Prize prize, std::vector<Racer>& racers,
                 const std::function<void(std::int64_t)>& on_progress) {
  std::int64_t done_before = 0;
  for (Racer& racer : racers) {
    const Policy policy = racer.policy;
    racer.tally = Evaluate(task, policy, worlds, options, [&](std::int64_t done) {
      if (on_progress) on_progress(done_before + done);
    });
    done_before += racer.tally.episodes;
  }
  const auto winner =
      std::min_element(racers.begin(), racers.end(), [prize](const Racer& a, const Racer& b) {
        if (prize == Prize::kSafety && a.tally.reached != b.tally.reached) {
          return a.tally.reached > b.tally.reached;
        }
        return a.tally.cost_sum < b.tally.cost_sum;
      });
  return static_cast<std::size_t>(winner - racers.begin());
}

}  // namespace fedgen
