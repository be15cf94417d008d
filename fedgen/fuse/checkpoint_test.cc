// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fuse/checkpoint.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fedgen/base/file.h"
#include "fedgen/base/hash.h"
#include "fedgen/fuse/federation_testing.h"
#include "fedgen/learn/estimator.h"
#include "fuzz/one_line.h"

namespace fedgen {
namespace {

using ::testing::HasSubstr;

constexpr int kRounds = 40;

// Everything a state can hold: moving sigmas, an optimiser's memory, adoptions, averaged
// candidates, automatic thresholds and plateaus.
Federation Make(std::uint64_t seed, OptimizerOptions::Kind optimizer, StopOptions::Rule rule) {
  FederationOptions options;
  options.rounds = kRounds;
  options.average_every = 3;
  LearnerOptions learner;
  learner.bias = 0.05;
  learner.step.step = 0.2;
  learner.optimizer.kind = optimizer;
  learner.stop.rule = rule;
  learner.stop.threshold = 0.2;
  learner.stop.window = 3;
  learner.sigma_rate = 1;
  std::vector<std::unique_ptr<Learner>> learners;
  for (int i = 0; i < 4; ++i) {
    EstimatorOptions estimator;
    estimator.pairs = 8;
    learners.push_back(MakeTestLearner(
        i, learner,
        MakeEstimator(estimator, MakeAnalyticCosts(ThreeWells(), 10), Kernel::kScalar, 1),
        UniformTheta(Key(seed).Fork(static_cast<std::uint64_t>(i)), 2, 3), Key(seed)));
  }
  return {options, std::move(learners)};
}

std::string BytesOf(const Federation& federation) {
  return CheckpointToBytes(CheckpointOf(federation, "print"));
}

Checkpoint Sample() {
  Federation federation = Make(3, OptimizerOptions::Kind::kAdam, StopOptions::Rule::kGradient);
  for (int k = 0; k < 12; ++k) EXPECT_TRUE(federation.Round());
  Checkpoint checkpoint = CheckpointOf(federation, "print");
  checkpoint.federation.knowledge.refuted = {"abc", "def"};
  checkpoint.beside = {{"metrics.csv", 1234, Sha256Hex("m")}, {"truth.csv", 0, Sha256Hex("")}};
  return checkpoint;
}

TEST(Checkpoint, ComesBackBitForBit) {
  const Checkpoint checkpoint = Sample();
  const std::string bytes = CheckpointToBytes(checkpoint);
  const Result<Checkpoint> back = CheckpointFromBytes(bytes, "c");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(CheckpointToBytes(*back), bytes);
  EXPECT_EQ(*back, checkpoint);
  EXPECT_EQ(back->federation.round, 12);
  EXPECT_EQ(back->learners.size(), 4U);
}

TEST(Checkpoint, GoesOnAsIfNeverInterrupted) {
  int adoptions = 0;
  for (const auto optimizer : {OptimizerOptions::Kind::kSgd, OptimizerOptions::Kind::kAdam,
                               OptimizerOptions::Kind::kClipUp}) {
    for (const auto rule :
         {StopOptions::Rule::kGradient, StopOptions::Rule::kAuto, StopOptions::Rule::kPlateau}) {
      Federation whole = Make(5, optimizer, rule);
      std::vector<std::string> after;  // [k]
      for (int k = 0; k <= kRounds; ++k) {
        after.push_back(BytesOf(whole));
        ASSERT_TRUE(k == kRounds || whole.Round()) << k;
      }
      for (const auto& learner : whole.learners()) adoptions += learner->state().adoptions;
      for (const std::size_t k : {0, 1, 2, 7, 20, 39}) {
        const Result<Checkpoint> checkpoint = CheckpointFromBytes(after[k], "c");
        ASSERT_TRUE(checkpoint) << checkpoint.error().message;
        Federation rest = Make(5, optimizer, rule);
        ASSERT_TRUE(Restore(*checkpoint, "print", "c", rest));
        for (std::size_t round = k; round < kRounds; ++round) {
          ASSERT_EQ(BytesOf(rest), after[round]) << "from " << k << ", at " << round;
          ASSERT_TRUE(rest.Round());
        }
        ASSERT_EQ(BytesOf(rest), after.back()) << "from " << k;
      }
    }
  }
  EXPECT_GT(adoptions, 3);
}

TEST(Checkpoint, IsRefusedByAnotherRun) {
  const Checkpoint checkpoint = Sample();
  Federation same = Make(3, OptimizerOptions::Kind::kAdam, StopOptions::Rule::kGradient);
  const std::string before = BytesOf(same);
  const auto other = Restore(checkpoint, "another", "c.fgc", same);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kMismatch);
  EXPECT_EQ(other.error().message,
            "c.fgc: belongs to another run: of another seed, configuration or initial policy");
  EXPECT_EQ(BytesOf(same), before);
  for (const int learners : {3, 5}) {
    Federation fewer = MakeAnalyticFederation({}, {}, ThreeWells(), 10, learners, 3, Key(1));
    EXPECT_EQ(Restore(checkpoint, "print", "c", fewer).error().code, ErrorCode::kMismatch);
  }
  AnalyticFunction wider = ThreeWells();
  wider.wells.clear();
  wider.kappa = {1, 2, 3};
  Federation other_shape = MakeAnalyticFederation({}, {}, wider, 10, 4, 3, Key(1));
  EXPECT_EQ(Restore(checkpoint, "print", "c", other_shape).error().code, ErrorCode::kMismatch);
}

void ExpectOneLine(const Result<Checkpoint>& result, const std::string& what) {
  ASSERT_FALSE(result) << what;
  EXPECT_EQ(result.error().code, ErrorCode::kData) << what;
  EXPECT_TRUE(IsOneLine(result.error().message)) << result.error().message;
  EXPECT_THAT(result.error().message, HasSubstr("c.fgc: ")) << what;
}

constexpr std::size_t kMagicBytes = 8;
constexpr std::size_t kHashBytes = 64;

TEST(Checkpoint, CutAnywhereIsOneLine) {
  const std::string bytes = CheckpointToBytes(Sample());
  const std::string_view body =
      std::string_view(bytes).substr(kMagicBytes, bytes.size() - kMagicBytes - kHashBytes);
  ASSERT_TRUE(CheckpointFromBody(body, "c.fgc"));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ExpectOneLine(CheckpointFromBytes(std::string_view(bytes).substr(0, size), "c.fgc"),
                  fmt::format("{} bytes", size));
  }
  for (std::size_t size = 0; size < body.size(); ++size) {
    ExpectOneLine(CheckpointFromBody(body.substr(0, size), "c.fgc"),
                  fmt::format("{} bytes of the body", size));
  }
  ExpectOneLine(CheckpointFromBytes(bytes + "x", "c.fgc"), "one byte more");
  ExpectOneLine(CheckpointFromBody(std::string(body) + "x", "c.fgc"), "one byte more");
}

TEST(Checkpoint, WithAnyByteAlteredIsOneLine) {
  const std::string bytes = CheckpointToBytes(Sample());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string altered = bytes;
    altered[at] = static_cast<char>(altered[at] ^ (1 << at % 8));
    ExpectOneLine(CheckpointFromBytes(altered, "c.fgc"), fmt::format("byte {}", at));
  }
  // Without the checksum an altered body is one line or a checkpoint that comes back.
  const std::string body = bytes.substr(kMagicBytes, bytes.size() - kMagicBytes - kHashBytes);
  int read = 0;
  for (std::size_t at = 0; at < body.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xFF}) {
      std::string altered = body;
      altered[at] = static_cast<char>(altered[at] ^ flip);
      const Result<Checkpoint> result = CheckpointFromBody(altered, "c.fgc");
      if (!result) {
        ExpectOneLine(result, fmt::format("byte {}", at));
      } else {
        ++read;
        EXPECT_TRUE(CheckpointFromBytes(CheckpointToBytes(*result), "c"));
      }
    }
  }
  EXPECT_GT(read, 100);  // a number may have changed into another
}

TEST(Checkpoint, ThatMakesNoSenseIsOneLine) {
  using Spoil = void (*)(Checkpoint&);
  const std::pair<const char*, Spoil> cases[] = {
      {"no learner", [](Checkpoint& c) { c.learners.clear(); }},
      {"finite", [](Checkpoint& c) { c.learners[1].y = std::nan(""); }},
      {"finite", [](Checkpoint& c) { c.learners[1].search.mu[0] = HUGE_VALF; }},
      {"finite", [](Checkpoint& c) { c.learners[1].optimizer.second = {1, -HUGE_VAL}; }},
      {"finite", [](Checkpoint& c) { c.learners[0].stop.threshold = std::nan(""); }},
      {"number of parameters", [](Checkpoint& c) { c.learners[2].search.mu.push_back(0); }},
      {"number of parameters", [](Checkpoint& c) { c.learners[2].search.sigma.clear(); }},
      {"number of parameters", [](Checkpoint& c) { c.learners[2].optimizer.first = {1}; }},
      {"number of parameters", [](Checkpoint& c) { c.learners[2].optimizer.second = {1}; }},
      {"number of parameters", [](Checkpoint& c) { c.learners[2].first_stopped = {1}; }},
      {"no sense", [](Checkpoint& c) { c.learners[0].origin = 4; }},
      {"no sense", [](Checkpoint& c) { c.learners[0].origin = -1; }},
      {"no sense", [](Checkpoint& c) { c.learners[0].episodes = -1; }},
      {"no sense", [](Checkpoint& c) { c.learners[0].adoptions = -1; }},
      {"no sense", [](Checkpoint& c) { c.learners[0].measured_round = -1; }},
      {"no sense", [](Checkpoint& c) { c.learners[0].measured_round = 13; }},
      {"no sense", [](Checkpoint& c) { c.learners[0].first_stop = 13; }},
      {"no sense", [](Checkpoint& c) { c.learners[0].optimizer.steps = -1; }},
      {"no sense", [](Checkpoint& c) { c.learners[0].search.sigma[1] = -0.1F; }},
      {"round", [](Checkpoint& c) { c.federation.round = -1; }},
      {"hash", [](Checkpoint& c) { c.federation.knowledge.best.at(0).theta[0] += 1; }},
      {"submission", [](Checkpoint& c) { c.federation.knowledge.best.at(0).learner = 5; }},
      {"submission", [](Checkpoint& c) { c.federation.knowledge.best.at(0).learner = -1; }},
      {"submission", [](Checkpoint& c) { c.federation.knowledge.best.at(0).round = 13; }},
      {"submission", [](Checkpoint& c) { c.federation.knowledge.best.at(0).origin = 4; }},
      {"submission", [](Checkpoint& c) { c.federation.knowledge.best.at(0).learner = 1; }},
      {"candidate", [](Checkpoint& c) { c.federation.candidates = {{4, 0, {1, 2}}}; }},
      {"candidate", [](Checkpoint& c) { c.federation.candidates = {{0, 9, {1, 2}}}; }},
      {"candidate", [](Checkpoint& c) { c.federation.candidates = {{0, 0, {1}}}; }},
      {"beside", [](Checkpoint& c) { c.beside[0].sha256.pop_back(); }},
      {"beside", [](Checkpoint& c) { c.beside[1].sha256[5] = 'G'; }},
  };
  const Checkpoint sample = Sample();
  ASSERT_TRUE(CheckpointFromBytes(CheckpointToBytes(sample), "c.fgc"));
  int number = 0;
  for (const auto& [message, spoil] : cases) {
    Checkpoint checkpoint = sample;
    spoil(checkpoint);
    const auto result = CheckpointFromBytes(CheckpointToBytes(checkpoint), "c.fgc");
    ExpectOneLine(result, fmt::format("case {}: {}", number++, message));
    EXPECT_THAT(result ? "read" : result.error().message, HasSubstr(message));
  }
}

TEST(Checkpoint, OfAnotherVersionIsRefused) {
  const std::string bytes = CheckpointToBytes(Sample());
  std::string body = bytes.substr(kMagicBytes, bytes.size() - kMagicBytes - kHashBytes);
  for (const char version : {'\1', '\3'}) {
    body[0] = version;
    EXPECT_THAT(CheckpointFromBody(body, "c.fgc").error().message,
                HasSubstr(fmt::format("c.fgc: version = {}: must be 2", int{version})));
  }
  EXPECT_THAT(CheckpointFromBytes("FGP", "c.fgc").error().message,
              HasSubstr("is not a checkpoint"));
  // A length that no file could hold costs no memory.
  std::string huge = body;
  huge[0] = 2;
  for (std::size_t at = 4; at < 12; ++at) huge[at] = '\xff';
  EXPECT_THAT(CheckpointFromBody(huge, "c.fgc").error().message, HasSubstr("truncated"));
}

// What the fuzzer begins with is what its names say.
TEST(Checkpoint, CorpusIsReadAsNamed) {
  const std::string corpus = FEDGEN_SOURCE_DIR "/fuzz/corpus/checkpoint/";
  const auto read = [&](const char* name) { return *ReadFile(corpus + name, 1 << 20); };
  for (const char* name : {"one-learner.bin", "everything.bin", "marks.bin"}) {
    const std::string body = read(name);
    const auto result = CheckpointFromBody(body, name);
    ASSERT_TRUE(result) << result.error().message;
    const std::string bytes = CheckpointToBytes(*result);
    EXPECT_EQ(bytes.substr(kMagicBytes, bytes.size() - kMagicBytes - kHashBytes), body);
  }
  EXPECT_TRUE(CheckpointFromBytes(read("file.fgc"), "file"));
  const std::pair<const char*, const char*> wrong[] = {
      {"truncated.bin", "truncated"},   {"trailing.bin", "something follows"},
      {"newer.bin", "version = 3"},     {"version-1.bin", "version = 1"},
      {"huge-length.bin", "truncated"}, {"nan.bin", "not finite"},
      {"wrong-hash.bin", "hash"}};
  for (const auto& [name, message] : wrong) {
    EXPECT_THAT(CheckpointFromBody(read(name), name).error().message, HasSubstr(message)) << name;
  }
}

}  // namespace
}  // namespace fedgen
