// SPDX-License-Identifier: Apache-2.0

// Do real certificates keep their promise? One policy is certified many times on worlds of
// different seeds; how often its true rate and cost lie outside is compared with the risk taken.

#include <gtest/gtest.h>

#include <string>

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
constexpr std::int64_t kWorlds = 200;
#endif

// A risk of 1 in 10 shared by the two statements: rare enough to be a promise, common enough to be
// seen.
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
    const bool safe_miss = certificate->safe_arrival > safe_rate;
    const bool cost_miss = certificate->expected_cost < cost;
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

}  // namespace
}  // namespace fedgen
