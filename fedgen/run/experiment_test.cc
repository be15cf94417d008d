// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/experiment.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fedgen/certify/bounds.h"
#include "fedgen/fuse/checkpoint.h"
#include "fedgen/run/experiment_testing.h"
#include "tests/tasks.h"

namespace fedgen {
namespace {

TrainingSettings Small(Algorithm algorithm, int num_learners = 3) {
  TrainingSettings settings;
  settings.task = TablesTask();
  settings.task.episode.horizon = 60;
  settings.policy.hidden = {4};
  settings.policy.state_inputs = false;
  settings.federation.algorithm = algorithm;
  settings.federation.rounds = 3;
  LearnerSettings learner;
  learner.worlds = 4;
  learner.estimator.pairs = 3;
  learner.stop.rule = StopOptions::Rule::kNever;
  settings.learners.assign(static_cast<std::size_t>(num_learners), learner);
  return settings;
}

// The teacher of a drawn policy changes it; one that is given stays as it is.
TEST(InitialPolicy, ImitatesTheTeacherUnlessItIsGiven) {
  TrainingSettings settings = Small(Algorithm::kFedGen);
  settings.imitation = {.episodes = 60, .epochs = 3};
  LearnerSettings& learner = settings.learners[0];
  const auto initial = [&](Key key) {
    return InitialPolicy(settings, learner, key, BestKernel(), 2).parameters;
  };
  const std::vector<float> drawn = initial(Key(1));
  settings.teacher = GapFollower{};
  const std::vector<float> taught = initial(Key(1));
  EXPECT_NE(taught, drawn);
  EXPECT_EQ(initial(Key(1)), taught);
  EXPECT_NE(initial(Key(2)), taught);
  // Its own worlds: in others it would have learned something else.
  learner.own_world = TextTask().world;
  EXPECT_NE(initial(Key(1)), taught);
  learner.initial_policy = ShapeOf(settings);
  EXPECT_EQ(initial(Key(1)), ShapeOf(settings).parameters);
}

// Pooled worlds are learned from as the first learner does.
TEST(MakeHost, PoolsLearnersOfBothKinds) {
  for (const std::size_t by_steps : {std::size_t{0}, std::size_t{1}}) {
    TrainingSettings settings = Small(Algorithm::kCentralized);
    for (LearnerSettings& learner : settings.learners) learner.policy_gradient.episodes = 8;
    settings.learners[by_steps].estimator.kind = EstimatorOptions::Kind::kPolicyGradient;
    Federation federation = MakeFederation(settings, Key(1), BestKernel(), 1);
    EXPECT_TRUE(federation.Round());
    EXPECT_EQ(federation.episodes(), EpisodesPerRound(settings));
    EXPECT_EQ(federation.episodes(), by_steps == 0 ? 3 * (4 + 8) : 3 * (2 * 3 + 1) * 4);
  }
}

TEST(MakeHost, LetsLearnersTakeStockAsTheirSettingsSay) {
  TrainingSettings settings = Small(Algorithm::kFedGen);
  settings.learners[1].stock_every = 7;
  settings.learners[1].stock_growth = 1.5;
  settings.learners[1].stock_worlds = 300;
  const Host host = MakeHost(settings, SeatsOf(settings, Key(1)), BestKernel(), 1);
  const LearnerOptions& options = host.learners()[1]->options();
  EXPECT_EQ(options.stock_every, 7);
  EXPECT_EQ(options.stock_growth, 1.5);
  EXPECT_EQ(options.stock_worlds, 300);
}

TEST(BiasOf, KnowsThreeKinds) {  // Eq. 18
  TrainingSettings settings = Small(Algorithm::kFedGen);
  LearnerSettings& learner = settings.learners[0];
  learner.worlds = 50;
  learner.starts = 4;
  EXPECT_DOUBLE_EQ(BiasOf(settings, learner), std::sqrt(std::log(200.0) / 100));
  EXPECT_NEAR(BiasOf(settings, learner), 0.2302, 5e-5);
  learner.bias.kind = BiasOptions::Kind::kPaper;
  EXPECT_DOUBLE_EQ(BiasOf(settings, learner), std::sqrt(std::log(200.0) / 400));
  learner.starts = 0;
  settings.task.world.start.per_world = 9;
  EXPECT_DOUBLE_EQ(BiasOf(settings, learner), std::sqrt(std::log(200.0) / 900));
  settings.gamma = 0.05;
  EXPECT_DOUBLE_EQ(BiasOf(settings, learner), std::sqrt(std::log(40.0) / 900));
  learner.bias = {BiasOptions::Kind::kGiven, 0.037};
  EXPECT_EQ(BiasOf(settings, learner), 0.037);
}

TEST(TaskOf, TakesTheLearnersOwnWorldAndStarts) {
  TrainingSettings settings = Small(Algorithm::kFedGen);
  LearnerSettings learner;
  EXPECT_EQ(CanonicalTask(TaskOf(settings, learner)), CanonicalTask(settings.task));
  learner.starts = 5;
  EXPECT_EQ(TaskOf(settings, learner).world.start.per_world, 5);
  learner.own_world = MixedTask().world;
  Task mixed = settings.task;
  mixed.world = MixedTask().world;
  mixed.world.start.per_world = 5;
  EXPECT_EQ(CanonicalTask(TaskOf(settings, learner)), CanonicalTask(mixed));
}

std::int64_t EpisodesOfOneRound(const TrainingSettings& settings) {
  Federation federation = MakeFederation(settings, Key(1), BestKernel(), 1);
  EXPECT_TRUE(federation.Round());
  EXPECT_EQ(federation.episodes(), EpisodesPerRound(settings));
  return federation.episodes();
}

TEST(MakeHost, GivesEveryAlgorithmTheSameEpisodes) {
  const std::int64_t fedgen = EpisodesOfOneRound(Small(Algorithm::kFedGen));
  EXPECT_EQ(fedgen, 3 * (2 * 3 + 1) * 4);
  EXPECT_EQ(EpisodesOfOneRound(Small(Algorithm::kLocal)), fedgen);
  EXPECT_EQ(EpisodesOfOneRound(Small(Algorithm::kFedAvg)), fedgen);
  EXPECT_EQ(EpisodesOfOneRound(Small(Algorithm::kCentralized)), fedgen);
  // One learner with everybody's directions looks at mu once instead of three times.
  EXPECT_EQ(EpisodesOfOneRound(Small(Algorithm::kSingle)), fedgen - 2 * 4);
}

// Three learners with worlds of their own kinds, known by the cost of driving straight: a goal so
// near that everybody arrives in n steps, so far that nobody does, and in between.
TEST(MakeHost, PoolsTheWorldsOfAllLearnersIfCentralized) {
  TrainingSettings settings = Small(Algorithm::kCentralized);
  settings.task.world.random_discs.count = {0, 0};
  const double offsets[] = {2, 100, 3};
  const int worlds[] = {2, 3, 5};
  double expected = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    LearnerSettings& learner = settings.learners[i];
    learner.own_world = settings.task.world;
    learner.own_world->goal.offset = {offsets[i], offsets[i]};
    learner.worlds = worlds[i];
    learner.initial_half_width = 0;  // straight ahead
    // What the learner alone would measure.
    TrainingSettings alone = settings;
    alone.federation.algorithm = Algorithm::kLocal;
    alone.learners = {learner};
    Federation one = MakeFederation(alone, Key(1), BestKernel(), 1);
    const double y = one.Round()->learners[0].y;
    EXPECT_EQ(y == 1, i == 1);
    expected += worlds[i] * y / 10;
  }
  Federation pooled = MakeFederation(settings, Key(1), BestKernel(), 1);
  ASSERT_EQ(pooled.learners().size(), 1U);
  const Result<RoundReport> round = pooled.Round();
  EXPECT_NEAR(round->learners[0].y, expected, 1e-12);
  EXPECT_EQ(pooled.episodes(), (2 * 3 + 1) * 10);
  EXPECT_EQ(pooled.learners()[0]->options().bias, LearnerBias(10, settings.gamma));
  // Under its right name, what draws the worlds of the first learner only.
  settings.federation.algorithm = Algorithm::kSingle;
  Federation single = MakeFederation(settings, Key(1), BestKernel(), 1);
  EXPECT_LT(single.Round()->learners[0].y, 0.5 * expected);
  EXPECT_EQ(single.episodes(), (2 * 9 + 1) * 2);
}

TEST(MakeHost, BeginsAsTheAlgorithmAsks) {
  const Federation fedgen = MakeFederation(Small(Algorithm::kFedGen), Key(1), BestKernel(), 1);
  const Federation local = MakeFederation(Small(Algorithm::kLocal), Key(1), BestKernel(), 1);
  const Federation fedavg = MakeFederation(Small(Algorithm::kFedAvg), Key(1), BestKernel(), 1);
  const Federation one = MakeFederation(Small(Algorithm::kCentralized), Key(1), BestKernel(), 1);
  const auto mu = [](const Federation& f, std::size_t i) { return f.learners()[i]->state().theta; };
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(mu(local, i), mu(fedgen, i));
    EXPECT_EQ(mu(fedavg, i), mu(fedgen, 0));
  }
  EXPECT_NE(mu(fedgen, 0), mu(fedgen, 1));
  ASSERT_EQ(one.learners().size(), 1U);
  EXPECT_EQ(mu(one, 0), mu(fedgen, 0));
  EXPECT_EQ(mu(MakeFederation(Small(Algorithm::kSingle), Key(1), BestKernel(), 1), 0),
            mu(fedgen, 0));
  // A learner's beginning does not depend on how many others there are.
  const Federation two = MakeFederation(Small(Algorithm::kFedGen, 2), Key(1), BestKernel(), 1);
  EXPECT_EQ(mu(two, 1), mu(fedgen, 1));
  EXPECT_NE(mu(MakeFederation(Small(Algorithm::kFedGen), Key(2), BestKernel(), 1), 0),
            mu(fedgen, 0));
  TrainingSettings stopping = Small(Algorithm::kLocal);
  stopping.learners[0].stop = {StopOptions::Rule::kGradient, 1e9};
  Federation never = MakeFederation(stopping, Key(1), BestKernel(), 1);
  EXPECT_EQ(never.Round()->learners[0].phase, LearnerPhase::kRunning);
}

TEST(MakeHost, TakesAGivenInitialPolicy) {
  TrainingSettings settings = Small(Algorithm::kFedGen);
  Mlp mlp = ShapeOf(settings);
  DrawParameters(Key(9), 1, mlp);
  settings.learners[1].initial_policy = mlp;
  settings.normalisation = Normalisation::kMeasured;
  settings.normalisation_worlds = 2;
  const Federation federation = MakeFederation(settings, Key(1), BestKernel(), 1);
  EXPECT_EQ(federation.learners()[1]->state().theta, ThetaOf(mlp));
  const Mlp measured = MlpOf(mlp, federation.learners()[0]->state().theta);
  EXPECT_NE(measured.input_scale, mlp.input_scale);
}

TEST(MakeHost, GivesTheSameBitsForAnyThreadsAndKernel) {
  TrainingSettings settings = Small(Algorithm::kFedGen);
  settings.normalisation = Normalisation::kMeasured;
  settings.normalisation_worlds = 3;
  const auto run = [&](Kernel kernel, int threads) {
    Federation federation = MakeFederation(settings, Key(3), kernel, threads);
    for (int k = 0; k < 3; ++k) EXPECT_TRUE(federation.Round());
    return CheckpointToBytes(CheckpointOf(federation.host(), "f"));
  };
  const std::string alone = run(Kernel::kScalar, 1);
  for (const int threads : {1, 2, 3, 8}) {
    for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
      EXPECT_EQ(run(kernel, threads), alone) << threads << " threads, " << KernelName(kernel);
    }
  }
}

}  // namespace
}  // namespace fedgen
