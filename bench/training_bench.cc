// SPDX-License-Identifier: Apache-2.0
#include "bench/training_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/bench_task.h"
#include "bench/stopwatch.h"
#include "fedgen/policy/policy_file.h"
#include "fedgen/rollout/rollout.h"
#include "fedgen/run/config.h"

namespace fedgen {

Result<TrainingBenchRow> RunTrainingBench(double seconds) {
  Result<Config> config = LoadConfig(FEDGEN_CONFIG_DIR "/evolution.toml");
  if (!config) return config.error();
  TrainingSettings& settings = config->training;
  const LearnerSettings& learner = settings.learners.front();
  // A policy that survives: its episodes are as long as those of most of the training.
  const Result<Mlp> mlp = LoadPolicy(BenchPolicyPath(kBenchNets[0]));
  if (!mlp) return mlp.error();
  const Search search{ThetaOf(*mlp), InitialSigma(*mlp, learner.sigma)};
  const auto objective = MakeObjective(settings, learner, BestKernel(), 1);

  constexpr std::int64_t kWorlds = 4000;
  std::vector<World> worlds(kWorlds);
  const WorldSource drawn = DrawnWorlds(settings.task, Key(1), BestKernel());
  for (std::int64_t w = 0; w < kWorlds; ++w) drawn(w, worlds[static_cast<std::size_t>(w)]);
  const Policy policy = *mlp;
  Rollout rollout(settings.task, policy, BestKernel());
  std::vector<Episode> episodes(kWorlds);

  TrainingBenchRow row;
  row.worlds = learner.worlds;
  row.pairs = learner.estimator.pairs;
  double spent = 0;
  for (std::uint64_t turn = 0; spent < 2 * seconds; ++turn) {
    Stopwatch bare(Stopwatch::Kind::kThread);
    const auto steps = static_cast<double>(rollout.Run(GivenWorlds(worlds), 1, 0, episodes));
    const double bare_seconds = bare.Seconds();
    Stopwatch whole(Stopwatch::Kind::kThread);
    const Measurement m = objective->Measure(search, Key(turn));
    const double whole_seconds = whole.Seconds();
    row.rollout_steps_per_second = std::max(row.rollout_steps_per_second, steps / bare_seconds);
    const double training = static_cast<double>(m.steps) / whole_seconds;
    if (training > row.training_steps_per_second) {
      row.training_steps_per_second = training;
      row.training_episodes_per_second = static_cast<double>(m.episodes) / whole_seconds;
    }
    spent += bare_seconds + whole_seconds;
  }
  return row;
}

std::string TrainingBenchToJson(const TrainingBenchRow& row) {
  const nlohmann::ordered_json json = {
      {"worlds", row.worlds},
      {"pairs", row.pairs},
      {"rollout_steps_per_second", row.rollout_steps_per_second},
      {"training_steps_per_second", row.training_steps_per_second},
      {"training_episodes_per_second", row.training_episodes_per_second},
      {"share", row.share()}};
  return json.dump();
}

std::string TrainingBenchToLine(const TrainingBenchRow& row) {
  return fmt::format(
      "training, {} pairs x {} worlds, one thread: {:.2f} M steps/s, {:.0f} k episodes/s; {:.0f} % "
      "of "
      "bare rollout ({:.2f} M steps/s)",
      row.pairs, row.worlds, row.training_steps_per_second / 1e6,
      row.training_episodes_per_second / 1e3, 100 * row.share(),
      row.rollout_steps_per_second / 1e6);
}

}  // namespace fedgen
