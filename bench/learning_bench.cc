// SPDX-License-Identifier: Apache-2.0
#include "bench/learning_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/bench_task.h"
#include "bench/learning_floor.h"
#include "bench/stopwatch.h"
#include "fedgen/learn/network_kernel.h"
#include "fedgen/learn/policy_gradient.h"
#include "fedgen/policy/policy_file.h"
#include "fedgen/run/config.h"

namespace fedgen {
namespace {

/// Minibatches of samples that lie scattered, as shuffled ones do.
class Pass {
 public:
  explicit Pass(const NetworkShape& shape)
      : network_(shape),
        workspace_(shape),
        parameters_(NumParameters(shape)),
        gradient_(parameters_.size()),
        outputs_(NetworkWorkspace::kRows) {
    samples_.Reset({1, kSamples, shape.sizes[0] - Experience::kCriticInputs});
    const auto draw = [](Key key, std::span<float> values) {
      for (std::size_t at = 0; at < values.size(); ++at) {
        values[at] = UnitFloat(key.Block(at)[0]) - 0.5F;
      }
    };
    draw(Key(1), parameters_);
    draw(Key(2), samples_.rows);
    samples_.episodes.front().steps = kSamples;
    samples_.ListSteps();
    Shuffle(Key(3), samples_.steps);
  }

  /// Passes for about `seconds`. Returns samples per second.
  double Run(double seconds) {
    const Stopwatch stopwatch(Stopwatch::Kind::kThread);
    double elapsed = 0;
    double samples = 0;
    while (elapsed < seconds) {
      network_.Pack(parameters_);
      for (std::size_t block = 0; block < kMinibatch; block += NetworkWorkspace::kRows) {
        const InputRows rows = samples_.Gather(
            BestKernel(), std::span(samples_.steps).subspan(next_ + block, NetworkWorkspace::kRows),
            rows_);
        Forward(BestKernel(), network_, rows, workspace_, outputs_);
        Backward(BestKernel(), network_, rows, outputs_, workspace_, gradient_);
      }
      next_ = (next_ + kMinibatch) % kSamples;
      samples += kMinibatch;
      elapsed = stopwatch.Seconds();
    }
    return samples / elapsed;
  }

 private:
  static constexpr int kSamples = 8192;
  static constexpr std::size_t kMinibatch = 1024;  // samples between changes of the parameters
  static_assert(kMinibatch % NetworkWorkspace::kRows == 0);

  PackedNetwork network_;
  NetworkWorkspace workspace_;
  std::vector<float> parameters_, gradient_;
  Experience samples_;
  AlignedVector<float> rows_;
  std::vector<float> outputs_;
  std::size_t next_ = 0;
};

constexpr int kNumRounds = 20;

std::vector<LearningBenchRow> RunNets(double seconds) {
  std::vector<LearningBenchRow> rows;
  for (const std::string_view net : kLearningNets) {
    const Floor floor = MakeLearningFloor(net);
    for (const Activation activation : {Activation::kRelu, Activation::kTanh}) {
      Pass pass({SizesOf(net), activation});
      LearningBenchRow row;
      row.net = net;
      row.activation = activation == Activation::kRelu ? "relu" : "tanh";
      row.floor_choice = floor.choice();
      for (int round = 0; round < kNumRounds; ++round) {
        row.samples_per_second = std::max(row.samples_per_second, pass.Run(seconds / kNumRounds));
        row.floor_samples_per_second =
            std::max(row.floor_samples_per_second, floor.Run(seconds / kNumRounds));
      }
      rows.push_back(row);
    }
  }
  return rows;
}

/// A learner that begins with a policy that survives, as most of the training has: its episodes are
/// as long.
class RoundOfLearning {
 public:
  RoundOfLearning(const Config& config, const Mlp& policy, int num_threads)
      : shape_(policy), theta_(ThetaOf(policy)) {
    const LearnerSettings& learner = config.training.learners.front();
    settings_ = {learner.policy_gradient,
                 learner.cost,
                 learner.step,
                 learner.optimizer,
                 learner.stop,
                 {{config.task(), learner.worlds, learner.policy_gradient.episodes}},
                 BestKernel(),
                 num_threads};
    LearnerSettings measuring = learner;
    measuring.estimator.kind = EstimatorOptions::Kind::kEvolution;
    improver_ = std::make_unique<PolicyGradient>(
        settings_, policy, MakeObjective(config.training, measuring, BestKernel(), num_threads),
        experience_, Key(3));
    Run(Stopwatch::Kind::kWall);  // the critic fits, memory is there
  }

  /// One more round, in seconds.
  double Run(Stopwatch::Kind kind) {
    const Stopwatch stopwatch(kind);
    // The last round of many: little noise, small steps, so that the policy stays what it is.
    improver_->Measure(kLast, kLast, theta_, Key(++turn_));
    improver_->Improve(kLast, kLast, Key(turn_), theta_);
    return stopwatch.Seconds();
  }

  /// The steps of the last round driven bare, in seconds.
  double Drive() const {
    const Task practised =
        PracticeTask(settings_.grounds.front().task, settings_.cost, settings_.options);
    const Policy policy = MlpOf(shape_, theta_);
    const auto drive = [&](const Task& task, int episodes, std::uint64_t key, std::int64_t& steps) {
      std::vector<Episode> ends(static_cast<std::size_t>(episodes));
      steps += Rollout(task, policy, BestKernel())
                   .Run(DrawnWorlds(task, Key(key), BestKernel()), 1, 0, ends);
    };
    const Stopwatch stopwatch(Stopwatch::Kind::kThread);
    std::int64_t practice_steps = 0, measured_steps = 0;
    drive(practised, settings_.options.episodes, turn_, practice_steps);
    const double practice = stopwatch.Seconds();
    drive(settings_.grounds.front().task, settings_.grounds.front().worlds, turn_, measured_steps);
    // Noise may end episodes earlier or later: by the step.
    return practice * samples() / static_cast<double>(practice_steps) + stopwatch.Seconds() -
           practice;
  }

  double samples() const { return static_cast<double>(experience_->steps.size()); }
  const PolicyGradientSettings& settings() const { return settings_; }

 private:
  static constexpr int kLast = 1000000;

  Mlp shape_;
  std::vector<float> theta_;
  PolicyGradientSettings settings_;
  std::shared_ptr<Experience> experience_ = std::make_shared<Experience>();
  std::unique_ptr<PolicyGradient> improver_;
  std::uint64_t turn_ = 0;
};

Result<LearningRoundRow> RunRounds(double seconds) {
  const Result<Config> config = LoadConfig(FEDGEN_CONFIG_DIR "/default.toml");
  if (!config) return config.error();
  const Result<Mlp> policy = LoadPolicy(BenchPolicyPath(kBenchNets[0]));
  if (!policy) return policy.error();
  LearningRoundRow row;
  row.policy = kLearningNets[0];
  row.critic = kLearningNets[1];
  const Floor policy_floor = MakeLearningFloor(row.policy);
  const Floor critic_floor = MakeLearningFloor(row.critic);
  RoundOfLearning alone(*config, *policy, 1);
  RoundOfLearning together(*config, *policy, 2);
  row.epochs = alone.settings().options.epochs;
  double policy_speed = 0, critic_speed = 0;
  const auto keep_least = [](double value, double& least) {
    least = least == 0 ? value : std::min(least, value);
  };
  for (int turn = 0; turn < kNumRounds; ++turn) {
    keep_least(alone.Run(Stopwatch::Kind::kThread), row.round);
    keep_least(alone.Drive(), row.rollout);
    keep_least(alone.Run(Stopwatch::Kind::kWall), row.one_thread);
    keep_least(together.Run(Stopwatch::Kind::kWall), row.two_threads);
    policy_speed = std::max(policy_speed, policy_floor.Run(seconds / kNumRounds));
    critic_speed = std::max(critic_speed, critic_floor.Run(seconds / kNumRounds));
  }
  row.samples = alone.samples();
  // A third of a pass is its forward part: the critic's values before the first pass.
  row.floor = row.samples * (row.epochs / policy_speed + (row.epochs + 1.0 / 3) / critic_speed);
  return row;
}

}  // namespace

Result<LearningBench> RunLearningBench(double seconds) {
  if (BestKernel() != Kernel::kSimd) {
    return Error{ErrorCode::kUsage, "this processor has no AVX2 and FMA: nothing to compare"};
  }
  Result<LearningRoundRow> round = RunRounds(seconds);
  if (!round) return round.error();
  return LearningBench{RunNets(seconds), *round};
}

std::string LearningBenchToJson(const LearningBench& bench) {
  auto nets = nlohmann::ordered_json::array();
  for (const LearningBenchRow& row : bench.nets) {
    nets.push_back({{"net", row.net},
                    {"activation", row.activation},
                    {"samples_per_second", row.samples_per_second},
                    {"floor_samples_per_second", row.floor_samples_per_second},
                    {"floor_choice", row.floor_choice},
                    {"ratio_floor", row.ratio()}});
  }
  const LearningRoundRow& round = bench.round;
  const nlohmann::ordered_json whole = {{"policy", round.policy},
                                        {"critic", round.critic},
                                        {"samples", round.samples},
                                        {"epochs", round.epochs},
                                        {"round_seconds", round.round},
                                        {"rollout_seconds", round.rollout},
                                        {"floor_seconds", round.floor},
                                        {"learning_over_floor", round.ratio()},
                                        {"one_thread_wall_seconds", round.one_thread},
                                        {"two_threads_wall_seconds", round.two_threads}};
  return nlohmann::ordered_json{{"nets", nets}, {"round", whole}}.dump(2) + "\n";
}

std::string LearningBenchToTable(const LearningBench& bench) {
  std::string table = fmt::format("{:<20}{:>14}{:>14}{:>14}   {}\n", "forward, backward", "FedGen",
                                  "floor", "time / floor", "the floor's way");
  for (const LearningBenchRow& row : bench.nets) {
    table += fmt::format("{:<20}{:>10.3f} M/s{:>10.3f} M/s{:>12.2f} x   {}\n",
                         row.net + " " + row.activation, row.samples_per_second / 1e6,
                         row.floor_samples_per_second / 1e6, row.ratio(), row.floor_choice);
  }
  const LearningRoundRow& round = bench.round;
  return table +
         fmt::format(
             "\na round of configs/default.toml, {:.0f} samples, {} passes through {} and {}, "
             "one thread\n"
             "  whole round {:>8.2f} ms\n"
             "  driven bare {:>8.2f} ms\n"
             "  the rest    {:>8.2f} ms, {:.2f} x its floor of {:.2f} ms\n"
             "  two threads take {:.2f} ms, one {:.2f} ms: {:.2f} times as fast\n",
             round.samples, round.epochs, round.policy, round.critic, 1e3 * round.round,
             1e3 * round.rollout, 1e3 * (round.round - round.rollout), round.ratio(),
             1e3 * round.floor, 1e3 * round.two_threads, 1e3 * round.one_thread,
             round.one_thread / round.two_threads);
}

}  // namespace fedgen
