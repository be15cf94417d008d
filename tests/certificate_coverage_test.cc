// SPDX-License-Identifier: Apache-2.0

// Do real certificates keep their promise? One policy is certified many times on worlds of
// different seeds; how often its true rate and cost lie outside is compared with the risk taken.

#include <gtest/gtest.h>

#include <string>

#include "fedgen/base/hash.h"
#include "fedgen/certify/bounds.h"
#include "fedgen/policy/policy_file.h"
#include "fedgen/rollout/evaluate.h"
#include "fedgen/run/certify.h"
#include "fedgen/run/config.h"

namespace fedgen {
namespace {

// Debug builds take fewer and smaller samples.
#ifdef NDEBUG
constexpr std::int64_t kTruthWorlds = 1'000'000;
constexpr int kCertificates = 200;
constexpr std::int64_t kWorlds = 1000;
#else
constexpr std::int64_t kTruthWorlds = 20'000;
constexpr int kCertificates = 40;
constexpr std::int64_t kWorlds = 300;
#endif

// A risk of 1 in 10 shared by the two statements and all sizes: rare enough to be a promise.
constexpr double kConfidence = 0.9;

// More misses than this happen with probability below 1e-6 if each certificate misses with `risk`.
int MostMisses(double risk) {
  int misses = 0;
  while (BinomialAtMost(misses, kCertificates, risk) < 1 - 1e-6) ++misses;
  return misses;
}

TEST(CertificateCoverage, RealCertificatesMissNoMoreOftenThanTheyMay) {
  const std::string root = FEDGEN_SOURCE_DIR;
  const Result<Config> config = LoadConfig(root + "/configs/paper-tables.toml");
  ASSERT_TRUE(config) << config.error().message;
  const Result<Mlp> mlp = LoadPolicy(root + "/bench/policies/20-20-1.fgp");
  ASSERT_TRUE(mlp) << mlp.error().message;
  const Policy policy = *mlp;
  const Task& task = config->task();

  EvaluateOptions evaluate;
  evaluate.num_worlds = kTruthWorlds;
  evaluate.kernel = BestKernel();
  const Key key = Key(1).Fork(Stream::kEvaluation);
  const Tally tally = Evaluate(task, policy, DrawnWorlds(task, key, BestKernel()), evaluate);
  const double episodes = static_cast<double>(tally.episodes);
  const double safe_rate = static_cast<double>(tally.reached) / episodes;
  const double cost = tally.cost_sum / episodes;

  int safe_misses = 0;
  int cost_misses = 0;
  int joint_misses = 0;
  int rate_misses = 0;
  for (int index = 0; index < kCertificates; ++index) {
    CertifyOptions options;
    options.num_worlds = kWorlds;
    options.confidence = kConfidence;
    options.seed = 1000 + static_cast<std::uint64_t>(index);
    const Result<Certificate> certificate = Certify(task, policy, options);
    ASSERT_TRUE(certificate) << certificate.error().message;
    const Promise promise = certificate->makers_choice.value_or(Promise{});
    ASSERT_EQ(promise.confidence, kConfidence);
    const bool safe_miss = promise.safe_arrival > safe_rate;
    const bool cost_miss = promise.expected_cost < cost;
    safe_misses += safe_miss ? 1 : 0;
    cost_misses += cost_miss ? 1 : 0;
    joint_misses += safe_miss || cost_miss ? 1 : 0;
    rate_misses += static_cast<double>(certificate->safe) / kWorlds > safe_rate ? 1 : 0;
  }
  RecordProperty("safe_misses", safe_misses);
  RecordProperty("cost_misses", cost_misses);
  RecordProperty("joint_misses", joint_misses);
  RecordProperty("rate_misses", rate_misses);
  EXPECT_LE(safe_misses, MostMisses((1 - kConfidence) / 2));
  EXPECT_LE(cost_misses, MostMisses((1 - kConfidence) / 2));
  EXPECT_LE(joint_misses, MostMisses(1 - kConfidence));
  // The check can fail: the rate that was seen, taken for a bound, misses about every other time.
  EXPECT_GT(rate_misses, MostMisses(1 - kConfidence));
}

// Every number of a certificate, from the text of the question to the bounds, by another way: the
// worlds drawn one by one from the stream of certificates, each driven alone by the scalar kernel.
TEST(CertificateCoverage, EveryNumberComesFromTheEpisodesOfItsOwnStream) {
  const std::string root = FEDGEN_SOURCE_DIR;
  const Result<Config> config = LoadConfig(root + "/configs/paper-tables.toml");
  const Result<Mlp> mlp = LoadPolicy(root + "/bench/policies/20-20-1.fgp");
  ASSERT_TRUE(config && mlp);
  const Task& task = config->task();
  CertifyOptions options;
  options.num_worlds = 300;
  options.challenge = "a word";
  const Result<Certificate> c = Certify(task, *mlp, options);
  ASSERT_TRUE(c) << c.error().message;

  EXPECT_EQ(c->policy_sha256, Sha256Hex(NetworkBytes(*mlp)));
  EXPECT_EQ(c->task_sha256, Sha256Hex(CanonicalTask(task)));
  const std::uint64_t seed =
      Sha256Word("fedgen-certification 2\npolicy_sha256=" + c->policy_sha256 + "\ntask_sha256=" +
                 c->task_sha256 + "\nchallenge_sha256=" + Sha256Hex("a word") + "\n");
  EXPECT_EQ(c->seed, seed);
  std::int64_t safe = 0, collided = 0, timed_out = 0;
  double cost_sum = 0;
  for (std::uint64_t index = 0; index < 300; ++index) {
    // A source that holds this world only.
    const Key world_key = Key(seed).Fork(Stream::kCertification).Fork(index);
    const WorldSource alone([&](std::int64_t, int, World& world) -> const World& {
      DrawWorld(task.world, task.robot.radius, world_key, Kernel::kScalar, world);
      return world;
    });
    EvaluateOptions one;
    one.num_worlds = 1;
    const Tally tally = Evaluate(task, *mlp, alone, one);
    safe += tally.reached;
    collided += tally.collided;
    timed_out += tally.timed_out;
    cost_sum += tally.cost_sum;
  }
  EXPECT_EQ(c->safe, safe);
  EXPECT_EQ(c->collided, collided);
  EXPECT_EQ(c->timed_out, timed_out);
  EXPECT_GT(collided + timed_out, 0) << "nothing to count";
  EXPECT_NEAR(c->mean_cost, cost_sum / 300, 1e-12);
  // 300 worlds own one of 64 shares. (The bounds themselves: fedgen/certify/certificate_test.cc.)
  EXPECT_NEAR(c->safe_arrival, SuccessLowerBound(safe, 300, 0.01 / 2 / 64), 1e-12);
}

// The race chooses the winner on worlds of one stream, the certificate judges it on another.
TEST(CertificateCoverage, DrivesNoWorldOfTheRaceThatChoseThePolicy) {
  const Task task;
  for (const std::uint64_t seed : {1U, 2U}) {
    World raced, certified;
    DrawWorld(task.world, 0.1, Key(seed).Fork(Stream::kSelection).Fork(0), Kernel::kScalar, raced);
    DrawWorld(task.world, 0.1, Key(seed).Fork(Stream::kCertification).Fork(0), Kernel::kScalar,
              certified);
    EXPECT_NE(raced.disturbance.key.Block(0), certified.disturbance.key.Block(0));
  }
}

}  // namespace
}  // namespace fedgen
