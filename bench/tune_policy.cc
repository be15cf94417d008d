// SPDX-License-Identifier: Apache-2.0

// fedgen-tune-policy: makes the two policies that fedgen-bench drives with.
//
//   fedgen-tune-policy 24-20-20-20-1 bench/policies/24-20-20-20-1.fgp
//
// Evolution strategies in their plainest form. Each round draws directions e_p ~ N(0, I) and
// worlds, drives mean + sigma e_p and mean - sigma e_p through the same worlds, turns the costs of
// all members into centred ranks c in [-1/2, 1/2], and lets Adam follow the estimate
//   g = sum over p of (c_p+ - c_p-) e_p / (2 num_pairs sigma).
// The cost of an episode is 0.1 rho + [it did not arrive]. A seed and a round name every number, so
// the result depends on neither threads nor kernels.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/bench_task.h"
#include "fedgen/base/parallel.h"
#include "fedgen/policy/policy_file.h"
#include "fedgen/rollout/evaluate.h"

namespace fedgen {
namespace {

struct TuneOptions {
  std::uint64_t seed = 1;
  int num_rounds = 300;
  int num_pairs = 100;
  int num_worlds = 100;      // in each round
  double sigma = 0.05;       // of the perturbation, in units of the weights
  double first_step = 0.02;  // of Adam, falling geometrically
  double last_step = 0.001;
  int num_check_worlds = 10000;
  int num_threads = 1;
};

using Vector = std::vector<float>;

/// N(0, I), addressed by key (Box-Muller).
void DrawNormal(Key key, Vector& values) {
  for (std::size_t index = 0; index < values.size(); index += 2) {
    const RandomBlock block = key.Block(index / 2);
    const double radius = std::sqrt(-2 * std::log1p(-static_cast<double>(UnitFloat(block[0]))));
    const double angle = 2 * std::numbers::pi * static_cast<double>(UnitFloat(block[1]));
    values[index] = static_cast<float>(radius * std::cos(angle));
    if (index + 1 < values.size()) {
      values[index + 1] = static_cast<float>(radius * std::sin(angle));
    }
  }
}

/// Mean of 0.1 rho + [not arrived].
double TrainingCost(const Task& task, const Policy& policy, std::span<const World> worlds) {
  std::vector<Episode> episodes(worlds.size());
  Rollout(task, policy, BestKernel()).Run(GivenWorlds(worlds), 1, 0, episodes);
  double sum = 0;
  for (const Episode& episode : episodes) {
    sum += 0.1 * static_cast<double>(episode.goal_distance) +
           (episode.outcome == Outcome::kReachedGoal ? 0 : 1);
  }
  return sum / static_cast<double>(worlds.size());
}

/// Replaces the costs by their ranks, spread evenly over [-1/2, 1/2]; equal costs share their rank.
void RankCosts(std::vector<double>& costs) {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return costs[a] < costs[b]; });
  std::vector<double> ranks(costs.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last + 1 < order.size() && costs[order[last + 1]] == costs[order[first]]) ++last;
    for (std::size_t at = first; at <= last; ++at) {
      ranks[order[at]] =
          static_cast<double>(first + last) / 2 / static_cast<double>(order.size() - 1) - 0.5;
    }
    first = last + 1;
  }
  costs = ranks;
}

class Adam {
 public:
  explicit Adam(std::size_t size) : mean_(size), square_(size) {}

  void Step(const std::vector<double>& gradient, double step, Vector& parameters) {
    mean_decay_ *= kMeanDecay;
    square_decay_ *= kSquareDecay;
    for (std::size_t index = 0; index < parameters.size(); ++index) {
      const double g = gradient[index];
      mean_[index] = kMeanDecay * mean_[index] + (1 - kMeanDecay) * g;
      square_[index] = kSquareDecay * square_[index] + (1 - kSquareDecay) * g * g;
      const double m = mean_[index] / (1 - mean_decay_);
      const double v = square_[index] / (1 - square_decay_);
      parameters[index] -= static_cast<float>(step * m / (std::sqrt(v) + 1e-8));
    }
  }

 private:
  static constexpr double kMeanDecay = 0.9;
  static constexpr double kSquareDecay = 0.999;
  double mean_decay_ = 1, square_decay_ = 1;
  std::vector<double> mean_, square_;
};

/// Random weights behind inputs that are normalised to size 1 by hand: the state to about [-1, 1],
/// the inverse ranges, which are 0.2 far away and 2.7 at the robot's rim, to [-0.4, 4.6].
Mlp MakeStartingPolicy(const Task& task, std::string_view net, Key key) {
  Mlp mlp =
      MakeMlp(BenchMlpOptions(net), task.lidar.beams, task.lidar.range, ControlLimit(task.robot));
  std::fill(mlp.input_scale.begin(), mlp.input_scale.end(), 2.0F);
  std::fill(mlp.input_shift.begin(), mlp.input_shift.end(), -0.8F);
  if (mlp.state_inputs) {  // x, y, sin, cos
    std::copy_n(std::array{0.2F, 0.2F, 1.0F, 1.0F}.begin(), 4, mlp.input_scale.begin());
    std::copy_n(std::array{0.0F, -1.0F, 0.0F, 0.0F}.begin(), 4, mlp.input_shift.begin());
  }
  DrawParameters(key, 1.0, mlp);
  return mlp;
}

/// Moves the normalisation of the inputs into the first layer, which computes the same from raw
/// ones.
void FoldNormalisation(Mlp& mlp) {
  const auto num_inputs = static_cast<std::size_t>(mlp.num_inputs());
  const auto num_outputs = static_cast<std::size_t>(mlp.layer_outputs(0));
  for (std::size_t output = 0; output < num_outputs; ++output) {
    float& bias = mlp.parameters[num_inputs * num_outputs + output];
    for (std::size_t input = 0; input < num_inputs; ++input) {
      float& weight = mlp.parameters[output * num_inputs + input];
      bias += weight * mlp.input_shift[input];
      weight *= mlp.input_scale[input];
    }
  }
  std::fill(mlp.input_scale.begin(), mlp.input_scale.end(), 1.0F);
  std::fill(mlp.input_shift.begin(), mlp.input_shift.end(), 0.0F);
}

double SafeRate(const Task& task, const Mlp& mlp, const TuneOptions& options) {
  EvaluateOptions evaluate;
  evaluate.num_worlds = options.num_check_worlds;
  evaluate.num_threads = options.num_threads;
  evaluate.kernel = BestKernel();
  const Key key = Key(options.seed).Fork(Stream::kEvaluation);
  const Tally tally = Evaluate(task, mlp, DrawnWorlds(task, key, BestKernel()), evaluate);
  return static_cast<double>(tally.reached) / static_cast<double>(tally.episodes);
}

Mlp Tune(const Task& task, std::string_view net, const TuneOptions& options) {
  const Key seed(options.seed);
  Mlp mean = MakeStartingPolicy(task, net, seed.Fork(Stream::kInitialPolicy));
  const std::size_t num_parameters = mean.parameters.size();
  const auto num_pairs = static_cast<std::size_t>(options.num_pairs);
  Adam adam(num_parameters);
  std::vector<Vector> directions(num_pairs, Vector(num_parameters));
  std::vector<double> costs(2 * num_pairs);
  std::vector<World> worlds(static_cast<std::size_t>(options.num_worlds));
  std::vector<double> gradient(num_parameters);

  for (int round = 0; round < options.num_rounds; ++round) {
    const Key key = seed.Fork(Stream::kTraining).Fork(static_cast<std::uint64_t>(round));
    const WorldSource source = DrawnWorlds(task, key.Fork(0), BestKernel());
    for (std::size_t world = 0; world < worlds.size(); ++world) {
      source(static_cast<std::int64_t>(world), worlds[world]);
    }
    // Member 2p is mean + sigma e_p, member 2p + 1 is mean - sigma e_p.
    for (std::size_t pair = 0; pair < num_pairs; ++pair) {
      DrawNormal(key.Fork(1 + pair), directions[pair]);
    }
    OrderedParallelFor(
        options.num_pairs, options.num_threads, options.num_threads,
        [&](std::int64_t task_index, int /*worker*/) {
          const auto pair = static_cast<std::size_t>(task_index);
          for (std::size_t sign = 0; sign < 2; ++sign) {
            Mlp member = mean;
            const auto scale = static_cast<float>(sign == 0 ? options.sigma : -options.sigma);
            for (std::size_t index = 0; index < num_parameters; ++index) {
              member.parameters[index] += scale * directions[pair][index];
            }
            costs[2 * pair + sign] = TrainingCost(task, member, worlds);
          }
        },
        [](std::int64_t) {});
    const double mean_cost =
        std::accumulate(costs.begin(), costs.end(), 0.0) / static_cast<double>(costs.size());
    RankCosts(costs);
    std::fill(gradient.begin(), gradient.end(), 0.0);
    for (std::size_t pair = 0; pair < num_pairs; ++pair) {
      const double weight = (costs[2 * pair] - costs[2 * pair + 1]) /
                            (2 * static_cast<double>(num_pairs) * options.sigma);
      for (std::size_t index = 0; index < num_parameters; ++index) {
        gradient[index] += weight * static_cast<double>(directions[pair][index]);
      }
    }
    const double progress = static_cast<double>(round) / std::max(1, options.num_rounds - 1);
    const double step =
        options.first_step * std::pow(options.last_step / options.first_step, progress);
    adam.Step(gradient, step, mean.parameters);
    if ((round + 1) % 25 == 0 || round + 1 == options.num_rounds) {
      fmt::print("round {:4}  training cost {:.4f}  safe rate {:.4f}\n", round + 1, mean_cost,
                 SafeRate(task, mean, options));
      std::fflush(stdout);
    }
  }
  return mean;
}

int Main(int argc, char** argv) {
  const bool known_net =
      argc >= 3 && std::find(kBenchNets.begin(), kBenchNets.end(), argv[1]) != kBenchNets.end();
  if (!known_net || argc > 5) {
    fmt::print(stderr, "usage: fedgen-tune-policy {}|{} OUTPUT.fgp [ROUNDS [SEED]]\n",
               kBenchNets[0], kBenchNets[1]);
    return 2;
  }
  TuneOptions options;
  options.num_threads = DefaultNumThreads();
  if (argc > 3) options.num_rounds = std::max(1, std::atoi(argv[3]));
  if (argc > 4) options.seed = std::strtoull(argv[4], nullptr, 10);
  const std::string path = argv[2];
  const Task task = BenchTask(argv[1]);
  Mlp mlp = Tune(task, argv[1], options);
  FoldNormalisation(mlp);
  fmt::print("as written: safe rate {:.4f}\n", SafeRate(task, mlp, options));
  if (const auto saved = SavePolicy(mlp, path, IfExists::kReplace); !saved) {
    fmt::print(stderr, "{}\n", saved.error().message);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace fedgen

int main(int argc, char** argv) { return fedgen::Main(argc, argv); }
