// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/race.h"

#include <algorithm>
#include <set>

#include "fedgen/learn/navigation.h"

namespace fedgen {

std::vector<Racer> Racers(const Finalists& finalists, const Mlp& shape) {
  std::vector<Racer> racers;
  std::set<std::string> entered;  // hashes
  const auto enter = [&](std::string name, std::span<const float> theta) {
    if (!entered.insert(HashOf(theta)).second) return;
    racers.push_back({std::move(name), MlpOf(shape, theta), {}});
  };
  for (const Submission& final : finalists.finals) {
    enter("final-" + final.learner.name(), final.theta);
  }
  if (finalists.incumbent) enter("incumbent", finalists.incumbent->theta);
  if (!finalists.average.empty()) enter("average", finalists.average);
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
