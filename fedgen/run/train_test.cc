// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/train.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "fedgen/learn/navigation.h"

namespace fedgen {
namespace {

TEST(CheckMemory, RefusesInTheNameOfTheLargestPart) {
  const std::vector<MemoryPart> parts = {{"a = 1", "small", 1e9}, {"b = 2", "x", 3e9}};
  EXPECT_TRUE(CheckMemory(parts, 4e9));
  const Result<void> refused = CheckMemory(parts, 3.9e9);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConfig);
  EXPECT_EQ(refused.error().message,
            "b = 2: needs at least 4.0 GB of memory (x), 3.9 GB are available");
  EXPECT_EQ(CheckMemory({{"a = 1", "small", 6e8}}, 1e8).error().message,
            "a = 1: needs at least 600 MB of memory (small), 100 MB are available");
  EXPECT_TRUE(CheckMemory({}, 0));
}

TEST(MemoryLimit, IsTheMachinesOrLess) {
  const double machine = MemoryLimit();
  EXPECT_GT(machine, 1e8);
  struct rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  // As much as the machine has leaves this test all it needs, and is the least of both.
  struct rlimit limited = before;
  limited.rlim_cur = static_cast<rlim_t>(machine) - 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limited), 0);
  const double seen = MemoryLimit();
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(seen, machine - 4096);
}

// By hand: 20 beams and 2 x 20 numbers of normalisation; (20 + 1) x 4 + (4 + 1) parameters; 3
// learners with 3 directions each.
TEST(MemoryOf, CountsWhatEachOptionAsksFor) {
  Config config;
  config.training.policy.hidden = {4};
  config.training.policy.state_inputs = false;
  config.training.learners.resize(3);
  for (LearnerSettings& learner : config.training.learners) {
    learner.worlds = 4;
    learner.estimator.pairs = 3;
  }
  config.certificate_worlds = 1000;
  config.selection_worlds = 800;
  config.training.learners[1].optimizer.kind = OptimizerOptions::Kind::kAdam;
  config.training.learners[2].optimizer.kind = OptimizerOptions::Kind::kClipUp;
  const double theta = 4 * (2 * 20 + 21 * 4 + 5);
  const std::vector<MemoryPart> parts = MemoryOf(config, 2);
  ASSERT_EQ(parts.size(), 5U);
  EXPECT_EQ(parts[0].option, "policy.hidden = [4]");
  EXPECT_EQ(parts[0].bytes, (9 + 13 + 11 + 2 * 2) * theta);
  EXPECT_EQ(parts[1].option, "learner.worlds = 4");
  EXPECT_EQ(parts[1].bytes, 3 * 4 * (sizeof(World) + sizeof(Pose)) + 2 * 4 * sizeof(Episode));
  EXPECT_EQ(parts[2].option, "federation.certificate_worlds = 1000");
  EXPECT_EQ(parts[2].bytes, 8000);
  EXPECT_EQ(parts[3].option, "federation.selection_worlds = 800");
  EXPECT_EQ(parts[3].bytes, 300);
  EXPECT_EQ(parts[4].option, "learner.pairs = 3");
  EXPECT_EQ(parts[4].why, "3 learners x 3 directions x 129 parameters");
  EXPECT_EQ(parts[4].bytes, 3 * 3 * theta);
}

// By hand: 20 inputs and 4 of the critic fill rows of 24, and 11 numbers more; a critic of
// 25 x 5 + 6 parameters.
TEST(MemoryOf, CountsTheStepsThatPolicyGradientsKeep) {
  Config config;
  config.training.policy.state_inputs = false;
  config.training.task.episode.horizon = 100;
  config.training.learners.resize(3);
  for (LearnerSettings& learner : config.training.learners) {
    learner.estimator.kind = EstimatorOptions::Kind::kPolicyGradient;
    learner.policy_gradient.critic_hidden = {5};
  }
  config.training.learners[1].policy_gradient.episodes = 2000;  // the others have 1024
  const double critics = 3 * 131 * 4 * (9 + 2 * 2);
  std::vector<MemoryPart> parts = MemoryOf(config, 2);
  ASSERT_EQ(parts.size(), 6U);  // no directions
  EXPECT_EQ(parts[4].option, "learner.policy_gradient.episodes = 2000");
  EXPECT_EQ(parts[4].why, "2,000 episodes x 100 steps x 35 numbers");
  EXPECT_EQ(parts[4].bytes, 2000.0 * 100 * 35 * 4);
  EXPECT_EQ(parts[5].option, "learner.policy_gradient.critic_hidden = [5]");
  EXPECT_EQ(parts[5].why, "3 critics, each with several copies of its parameters");
  EXPECT_EQ(parts[5].bytes, critics);
  const Result<void> refused = CheckMemory(parts, 1e7, ErrorCode::kConfig);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message.substr(0, 66),
            "learner.policy_gradient.episodes = 2000: needs at least 29 MB of m");

  // One learner has everybody's episodes.
  config.training.federation.algorithm = Algorithm::kCentralized;
  EXPECT_EQ(MemoryOf(config, 2)[4].why, "4,048 episodes x 100 steps x 35 numbers");
  config.training.federation.algorithm = Algorithm::kFedGen;

  // One of each kind; and a teacher.
  config.training.learners[0].estimator.kind = EstimatorOptions::Kind::kEvolution;
  config.training.imitation.episodes = 500;
  config.imitate = "gap-follower";
  parts = MemoryOf(config, 2);
  ASSERT_EQ(parts.size(), 8U);
  EXPECT_THAT(parts[4].why, testing::StartsWith("1 learner x 30 directions x "));
  EXPECT_EQ(parts[5].bytes, 2000.0 * 100 * 35 * 4);
  EXPECT_EQ(parts[6].bytes, critics * 2 / 3);
  EXPECT_EQ(parts[7].option, "policy.imitation_episodes = 500");
  EXPECT_EQ(parts[7].bytes, 500.0 * 100 * 35 * 4);
}

// The same as driving each by itself, and equal ones only once.
TEST(UnseenWorlds, DrivesEqualPoliciesOnce) {
  const Experiment experiment;
  const Mlp shape = ShapeOf(experiment.training());
  const std::vector<float> still = ThetaOf(shape);
  std::vector<float> turning = still;
  turning.back() = 1;  // the bias of the output
  UnseenWorlds unseen(experiment, 20);
  for (const std::vector<float>& theta : {still, turning, still, turning, still}) {
    const Policy policy = MlpOf(shape, theta);
    const Tally alone = Evaluate(experiment.task(), policy, experiment.Worlds(Stream::kEvaluation),
                                 experiment.Evaluation(20));
    EXPECT_EQ(unseen.Measure(theta).outcome_hash, alone.outcome_hash);
  }
  EXPECT_NE(unseen.Measure(still).outcome_hash, unseen.Measure(turning).outcome_hash);
  EXPECT_EQ(unseen.num_driven(), 2U);
}

// What is said beforehand is what is allocated.
TEST(MemoryOf, KnowsTheSizeOfAnExperience) {
  const Experience::Shape shape{7, 30, 24};
  Experience experience;
  experience.Reset(shape);
  const std::size_t numbers = experience.rows.size() + experience.steps.capacity() +
                              experience.distances.size() + experience.values.size() +
                              4 * (experience.notes.size() + experience.stands.size());
  // But for one distance more in each episode.
  EXPECT_EQ(Experience::Bytes(shape), static_cast<double>(4 * (numbers - 7)));
}

}  // namespace
}  // namespace fedgen
