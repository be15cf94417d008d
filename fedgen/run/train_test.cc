// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/train.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

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
  config.training.learners[1].optimizer.kind = OptimizerOptions::Kind::kAdam;
  config.training.learners[2].optimizer.kind = OptimizerOptions::Kind::kClipUp;
  const double theta = 4 * (2 * 20 + 21 * 4 + 5);
  const std::vector<MemoryPart> parts = MemoryOf(config, 2);
  ASSERT_EQ(parts.size(), 4U);
  EXPECT_EQ(parts[0].option, "policy.hidden = [4]");
  EXPECT_EQ(parts[0].bytes, (9 + 13 + 11 + 2 * 2) * theta);
  EXPECT_EQ(parts[1].option, "learner.pairs = 3");
  EXPECT_EQ(parts[1].why, "3 learners x 3 directions x 129 parameters");
  EXPECT_EQ(parts[1].bytes, 3 * 3 * theta);
  EXPECT_EQ(parts[2].option, "learner.worlds = 4");
  EXPECT_EQ(parts[2].bytes, 3 * 4 * (sizeof(World) + sizeof(Pose)) + 2 * 4 * sizeof(Episode));
  EXPECT_EQ(parts[3].option, "federation.certificate_worlds = 1000");
  EXPECT_EQ(parts[3].bytes, 8000);
}

}  // namespace
}  // namespace fedgen
