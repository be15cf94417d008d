// SPDX-License-Identifier: Apache-2.0

// Same seed, same bits: for any number of threads, either kernel, any split into chunks and slots,
// in Debug and Release, and as they were when the golden values below were written down.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>

#include "fedgen/base/hash.h"
#include "fedgen/rollout/evaluate.h"
#include "fedgen/run/experiment_testing.h"
#include "tests/tasks.h"

namespace fedgen {
namespace {

struct Case {
  const char* name;
  Task (*task)();
  Policy (*policy)(const Task& task);
  // outcome_hash of the first kGoldenEpisodes episodes. Changes only when the numbers of the
  // simulation mean to change; a failing test prints the new value.
  std::uint64_t golden;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Policy Straight(const Task& /*task*/) { return StraightAhead{}; }
Policy Gap(const Task& /*task*/) { return GapFollower{}; }
Policy TextNet(const Task& task) {
  return RandomTextNet(task, Key(1).Fork(Stream::kInitialPolicy));
}
Policy TablesNet(const Task& task) {
  return RandomTablesNet(task, Key(2).Fork(Stream::kInitialPolicy));
}

constexpr std::int64_t kGoldenEpisodes = 300;
constexpr std::int64_t kSplitEpisodes = 48;

constexpr Case kGolden[] = {
    {"TextStraight", TextTask, Straight, 0x9638810674a2bb24},
    {"TextGapFollower", TextTask, Gap, 0x24dc89a51a6f77d0},
    {"TextTextNet", TextTask, TextNet, 0x4329a435dc05a045},
    {"TextTablesNet", TextTask, TablesNet, 0xb45891734708796b},
    {"TablesStraight", TablesTask, Straight, 0x9566bca215f931df},
    {"TablesGapFollower", TablesTask, Gap, 0xe0fc4baa4b538488},
    {"TablesTextNet", TablesTask, TextNet, 0x140c670a8ada3fa2},
    {"TablesTablesNet", TablesTask, TablesNet, 0x5a27dcfd300f6eeb},
    {"MixedGapFollower", MixedTask, Gap, 0xb3294459f0a2b3bf},
    {"MixedTextNet", MixedTask, TextNet, 0x651555adc1080d58},
};

struct Split {
  int num_threads;
  Kernel kernel;
  int chunk;
  int num_slots;
};

Tally EvaluateSplit(const Case& c, std::int64_t num_episodes, const Split& split) {
  const Task task = c.task();
  const Policy policy = c.policy(task);
  EvaluateOptions options;
  options.num_worlds = num_episodes / task.world.start.per_world;
  options.starts_per_world = task.world.start.per_world;
  options.num_threads = split.num_threads;
  options.kernel = split.kernel;
  options.chunk = split.chunk;
  options.num_slots = split.num_slots;
  const Key key = Key(2024).Fork(Stream::kEvaluation);
  return Evaluate(task, policy, DrawnWorlds(task, key, split.kernel), options);
}

class DeterminismTest : public ::testing::TestWithParam<Case> {};

TEST_P(DeterminismTest, GivesTheSameBitsForEverySplit) {
  const Tally alone = EvaluateSplit(GetParam(), kSplitEpisodes, {1, Kernel::kScalar, 512, 64});
  const Kernel simd = BestKernel();
  for (const Split& split : {
           Split{1, simd, 512, 64},
           Split{2, simd, 7, 16},
           Split{3, simd, 1, 128},
           Split{8, simd, 7, 64},
           Split{2, Kernel::kScalar, 7, 128},
           Split{3, Kernel::kScalar, 1, 16},
           Split{8, Kernel::kScalar, 7, 64},
       }) {
    SCOPED_TRACE(fmt::format("{} threads, {}, chunk {}, {} slots", split.num_threads,
                             KernelName(split.kernel), split.chunk, split.num_slots));
    const Tally tally = EvaluateSplit(GetParam(), kSplitEpisodes, split);
    EXPECT_EQ(tally.episodes, alone.episodes);
    EXPECT_EQ(tally.outcome_hash, alone.outcome_hash);
    EXPECT_EQ(tally.steps, alone.steps);
    EXPECT_EQ(tally.cost_sum, alone.cost_sum);  // sums in order of the episodes: equal bits
    EXPECT_EQ(tally.goal_distance_sum, alone.goal_distance_sum);
    EXPECT_EQ(tally.arrival_time_sum, alone.arrival_time_sum);
  }
}

TEST_P(DeterminismTest, GivesTheGoldenBits) {
  const Tally tally = EvaluateSplit(GetParam(), kGoldenEpisodes, {2, BestKernel(), 64, 64});
  EXPECT_EQ(tally.outcome_hash, GetParam().golden) << fmt::format(
      "{} of {} reached, {} collided, {} timed out, {} steps\nif the change is meant, kGolden's "
      "{} is now {:#018x}",
      tally.reached, tally.episodes, tally.collided, tally.timed_out, tally.steps, GetParam().name,
      tally.outcome_hash);
}

INSTANTIATE_TEST_SUITE_P(Worlds, DeterminismTest, ::testing::ValuesIn(kGolden),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(Determinism, DoesNotMakeDifferentSeedsAlike) {
  const Task task = TextTask();
  const Policy policy = StraightAhead{};
  EvaluateOptions options;
  options.num_worlds = 50;
  options.kernel = BestKernel();
  const auto hash = [&](std::uint64_t seed, Stream stream) {
    return Evaluate(task, policy, DrawnWorlds(task, Key(seed).Fork(stream), BestKernel()), options)
        .outcome_hash;
  };
  EXPECT_EQ(hash(1, Stream::kEvaluation), hash(1, Stream::kEvaluation));
  EXPECT_NE(hash(1, Stream::kEvaluation), hash(2, Stream::kEvaluation));
  EXPECT_NE(hash(1, Stream::kEvaluation), hash(1, Stream::kTraining));
}

// Training, as a hash of what learners came to after a few rounds.

struct TrainingCase {
  const char* name;
  TrainingSettings (*settings)();
  const char* golden;
};

void PrintTo(const TrainingCase& c, std::ostream* out) { *out << c.name; }

// Learners that differ in everything a learner can choose, two of them stopping early.
TrainingSettings SmallTraining(Algorithm algorithm) {
  TrainingSettings settings;
  settings.task = MixedTask();
  settings.task.lidar.beams = 9;
  settings.task.episode.horizon = 60;
  settings.policy.hidden = {6};
  settings.policy.goal_inputs = true;
  settings.normalisation = Normalisation::kMeasured;
  settings.normalisation_worlds = 2;
  settings.federation.algorithm = algorithm;
  settings.federation.rounds = 4;
  settings.federation.average_every = 2;
  settings.learners.resize(3);
  for (LearnerSettings& learner : settings.learners) {
    learner.worlds = 2;
    learner.estimator.pairs = 3;
    learner.bias = {BiasOptions::Kind::kGiven, 0.01};
    learner.sigma_rate = 0.5;
    learner.stop.threshold = 0;
  }
  settings.learners[0].stop = {StopOptions::Rule::kGradient, 1e6};
  settings.learners[1].optimizer.kind = OptimizerOptions::Kind::kAdam;
  settings.learners[1].estimator.shaping = EstimatorOptions::Shaping::kCentredRanks;
  settings.learners[1].step.schedule = StepOptions::Schedule::kGeometric;
  settings.learners[2].optimizer.kind = OptimizerOptions::Kind::kClipUp;
  settings.learners[2].estimator.kind = EstimatorOptions::Kind::kFiniteDifferences;
  settings.learners[2].stop.rule = StopOptions::Rule::kAuto;
  settings.learners[2].starts = 1;
  settings.learners[1].stock_every = 2;
  settings.learners[1].stock_worlds = 5;
  return settings;
}

// The same task for learners by policy gradient: ppo with everything it can be told, and plain.
TrainingSettings SmallPolicyGradient(Algorithm algorithm) {
  TrainingSettings settings = SmallTraining(algorithm);
  settings.task.world.goal = {.offset = {4, 4}};  // within reach, so that some adopt
  settings.task.robot.kind = RobotOptions::Kind::kDifferential;
  for (LearnerSettings& learner : settings.learners) {
    learner.estimator.kind = EstimatorOptions::Kind::kPolicyGradient;
    learner.starts = 0;
    learner.step.step = 0.01;
    learner.optimizer.kind = OptimizerOptions::Kind::kAdam;
    learner.stop.rule = StopOptions::Rule::kNever;
    learner.cost.margin = 0.05;
    learner.policy_gradient.episodes = 12;
    learner.policy_gradient.minibatch = 200;
    learner.policy_gradient.critic_hidden = {5};
    learner.policy_gradient.refit_epochs = 2;
  }
  settings.learners[0].policy_gradient.way = true;
  settings.learners[1].policy_gradient.hard_share = 0.5;
  settings.learners[1].policy_gradient.crowding = 1.5;
  settings.learners[0].stop = {StopOptions::Rule::kGradient, 1e6};
  settings.learners[2].policy_gradient.method = PolicyGradientOptions::Method::kPlain;
  settings.learners[2].optimizer.kind = OptimizerOptions::Kind::kSgd;
  return settings;
}

template <Algorithm kAlgorithm>
TrainingSettings Small() {
  return SmallTraining(kAlgorithm);
}
template <Algorithm kAlgorithm>
TrainingSettings SmallByPolicyGradient() {
  return SmallPolicyGradient(kAlgorithm);
}

constexpr TrainingCase kTraining[] = {
    {"FedGen", Small<Algorithm::kFedGen>, "0205df2bd4d9e994"},
    {"Local", Small<Algorithm::kLocal>, "be51bec5de2a5d9b"},
    {"FedAvg", Small<Algorithm::kFedAvg>, "c0c409b797b61eb9"},
    {"Centralized", Small<Algorithm::kCentralized>, "be61d7fd2567f21f"},
    {"Single", Small<Algorithm::kSingle>, "adfcd4eb69834c44"},
    {"PolicyGradientFedGen", SmallByPolicyGradient<Algorithm::kFedGen>, "9f8e66f80dde45e5"},
    {"PolicyGradientFedAvg", SmallByPolicyGradient<Algorithm::kFedAvg>, "6afeb8d661cb4c5d"},
    {"PolicyGradientCentralized", SmallByPolicyGradient<Algorithm::kCentralized>,
     "80c8516e4d1b39e8"},
};

// What a learner keeps in mind, as bytes.
std::string MemoryOf(const Learner& learner) {
  const auto* search = dynamic_cast<const GradientSearch*>(&learner.improver());
  if (search == nullptr) return learner.improver().SaveState();
  std::string bytes;
  const auto add = [&](const void* data, std::size_t size) {
    bytes.append(static_cast<const char*>(data), size);
  };
  const GradientSearchState& state = search->state();
  add(state.sigma.data(), 4 * state.sigma.size());
  for (const auto* values : {&state.optimizer.first, &state.optimizer.second}) {
    add(values->data(), 8 * values->size());
  }
  return bytes;
}

std::string TrainingHash(const TrainingSettings& settings, Kernel kernel, int num_threads) {
  Federation federation = MakeFederation(settings, Key(7), kernel, num_threads);
  for (int round = 0; round < 4; ++round) EXPECT_TRUE(federation.Round());
  std::string bytes;
  const auto add = [&](const void* data, std::size_t size) {
    bytes.append(static_cast<const char*>(data), size);
  };
  for (const auto& learner : federation.learners()) {
    const LearnerState& state = learner->state();
    add(state.theta.data(), 4 * state.theta.size());
    bytes += MemoryOf(*learner);
    for (const double value : {state.y, state.b, state.zeta}) add(&value, sizeof value);
    for (const std::int64_t value : {state.episodes, std::int64_t{state.adoptions}}) {
      add(&value, sizeof value);
    }
  }
  return Sha256Hex(bytes).substr(0, 16);
}

class TrainingDeterminismTest : public ::testing::TestWithParam<TrainingCase> {};

TEST_P(TrainingDeterminismTest, GivesTheGoldenBitsForAnyThreadsAndKernel) {
  for (const int num_threads : {1, 2, 3, 8}) {
    for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
      EXPECT_EQ(TrainingHash(GetParam().settings(), kernel, num_threads), GetParam().golden)
          << num_threads << " threads, " << KernelName(kernel);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, TrainingDeterminismTest, ::testing::ValuesIn(kTraining),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace fedgen
