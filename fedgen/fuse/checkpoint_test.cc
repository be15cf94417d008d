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
  TestLearnerOptions learner;
  learner.bias = 0.05;
  learner.step.step = 0.2;
  learner.optimizer.kind = optimizer;
  learner.stop.rule = rule;
  learner.stop.threshold = 0.05;
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

Federation MakeSample() {
  return Make(3, OptimizerOptions::Kind::kAdam, StopOptions::Rule::kGradient);
}

HostCheckpoint SampleHost() {
  Federation federation = MakeSample();
  for (int k = 0; k < 12; ++k) EXPECT_TRUE(federation.Round());
  HostCheckpoint checkpoint = CheckpointOf(federation.host(), "print");
  checkpoint.beside = {{"metrics.csv", 1234, Sha256Hex("m")}, {"truth.csv", 0, Sha256Hex("")}};
  return checkpoint;
}

CloudCheckpoint SampleCloud() {
  Federation federation = MakeSample();
  for (int k = 0; k < 12; ++k) EXPECT_TRUE(federation.Round());
  CloudState state = federation.cloud().state();
  const Submission& record = state.knowledge.records.begin()->second;
  state.knowledge = Merge(state.knowledge, KnowledgeOf(Verdict{LearnerId(2), RankOf(record)}));
  return {"print", state};
}

TEST(HostCheckpoint, ComesBackBitForBit) {
  const std::string bytes = CheckpointToBytes(SampleHost());
  const Result<HostCheckpoint> back = HostFromBytes(bytes, "c");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(CheckpointToBytes(*back), bytes);
  EXPECT_EQ(back->host.round, 12);
  EXPECT_EQ(back->learners.size(), 4U);
  EXPECT_EQ(back->learners[3].id, LearnerId(3));
  EXPECT_EQ(back->beside[0].bytes, 1234U);
}

TEST(CloudCheckpoint, ComesBackBitForBit) {
  const CloudCheckpoint checkpoint = SampleCloud();
  const std::string bytes = CheckpointToBytes(checkpoint);
  const Result<CloudCheckpoint> back = CloudFromBytes(bytes, "c");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(CheckpointToBytes(*back), bytes);
  EXPECT_EQ(back->cloud.knowledge, checkpoint.cloud.knowledge);
  EXPECT_EQ(back->cloud.members, checkpoint.cloud.members);
  EXPECT_EQ(back->cloud.knowledge.verdicts.size(), 1U);
}

// A kill may come after any round, and between the Cloud's checkpoint and the host's: then the
// Cloud is a round ahead, hears that round again, and gives the same answers.
TEST(Checkpoint, GoesOnAsIfNeverInterrupted) {
  int adoptions = 0;
  for (const auto optimizer : {OptimizerOptions::Kind::kSgd, OptimizerOptions::Kind::kAdam,
                               OptimizerOptions::Kind::kClipUp}) {
    for (const auto rule :
         {StopOptions::Rule::kGradient, StopOptions::Rule::kAuto, StopOptions::Rule::kPlateau}) {
      Federation whole = Make(5, optimizer, rule);
      whole.Join();
      std::vector<std::string> hosts, clouds;  // [k] after round k
      for (int k = 0; whole.ending() == Ending::kNotYet; ++k) {
        hosts.push_back(CheckpointToBytes(CheckpointOf(whole.host(), "print")));
        clouds.push_back(CheckpointToBytes(CloudCheckpoint{"print", whole.cloud().state()}));
        ASSERT_TRUE(whole.Round()) << k;
      }
      hosts.push_back(CheckpointToBytes(CheckpointOf(whole.host(), "print")));
      clouds.push_back(CheckpointToBytes(CloudCheckpoint{"print", whole.cloud().state()}));
      for (const auto& learner : whole.learners()) adoptions += learner->state().adoptions;
      for (const std::size_t k : {0, 1, 2, 7, 11}) {
        for (const std::size_t ahead : {0, 1}) {
          if (k + ahead >= hosts.size()) continue;
          Federation rest = Make(5, optimizer, rule);
          const auto host = HostFromBytes(hosts[k], "h");
          const auto cloud = CloudFromBytes(clouds[k + ahead], "c");
          ASSERT_TRUE(host) << host.error().message;
          ASSERT_TRUE(cloud) << cloud.error().message;
          ASSERT_TRUE(Restore(*host, "print", "h", rest.host()));
          ASSERT_TRUE(Restore(*cloud, "print", "c", rest.cloud()));
          for (std::size_t round = k; rest.ending() == Ending::kNotYet; ++round) {
            ASSERT_EQ(CheckpointToBytes(CheckpointOf(rest.host(), "print")), hosts[round])
                << "from " << k << ", at " << round;
            ASSERT_TRUE(rest.Round());
          }
          ASSERT_EQ(CheckpointToBytes(CheckpointOf(rest.host(), "print")), hosts.back());
          ASSERT_EQ(CheckpointToBytes(CloudCheckpoint{"print", rest.cloud().state()}),
                    clouds.back());
        }
      }
    }
  }
  EXPECT_GT(adoptions, 3);
}

TEST(Checkpoint, IsRefusedByAnotherRun) {
  const HostCheckpoint host = SampleHost();
  const CloudCheckpoint cloud = SampleCloud();
  Federation same = MakeSample();
  const std::string before = CheckpointToBytes(CheckpointOf(same.host(), ""));
  const auto other = Restore(host, "another", "c.fgc", same.host());
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kMismatch);
  EXPECT_EQ(
      other.error().message,
      "c.fgc: belongs to another run: of another seed, configuration, initial policy or program");
  EXPECT_EQ(Restore(cloud, "another", "c", same.cloud()).error().code, ErrorCode::kMismatch);
  EXPECT_EQ(CheckpointToBytes(CheckpointOf(same.host(), "")), before);
  for (const int learners : {3, 5}) {
    Federation fewer = MakeAnalyticFederation({}, {}, ThreeWells(), 10, learners, 3, Key(1));
    EXPECT_EQ(Restore(host, "print", "c", fewer.host()).error().code, ErrorCode::kMismatch);
    EXPECT_EQ(Restore(cloud, "print", "c", fewer.cloud()).error().code, ErrorCode::kMismatch);
  }
  AnalyticFunction wider = ThreeWells();
  wider.wells.clear();
  wider.kappa = {1, 2, 3};
  Federation other_shape = MakeAnalyticFederation({}, {}, wider, 10, 4, 3, Key(1));
  EXPECT_EQ(Restore(host, "print", "c", other_shape.host()).error().code, ErrorCode::kMismatch);
}

TEST(Checkpoint, WithAnImproversStateThatDoesNotFitIsOneLine) {
  for (const std::string& spoiled : {std::string(), std::string("rubbish"), ToBytes(1.0)}) {
    HostCheckpoint checkpoint = SampleHost();
    checkpoint.learners[1].improver = spoiled;
    Federation federation = MakeSample();
    const auto restored = Restore(checkpoint, "print", "c.fgc", federation.host());
    ASSERT_FALSE(restored);
    EXPECT_EQ(restored.error().code, ErrorCode::kData);
    EXPECT_THAT(restored.error().message, HasSubstr("c.fgc: "));
  }
}

template <typename Checkpoint>
void ExpectOneLine(const Result<Checkpoint>& result, const std::string& what) {
  ASSERT_FALSE(result) << what;
  EXPECT_EQ(result.error().code, ErrorCode::kData) << what;
  EXPECT_TRUE(IsOneLine(result.error().message)) << result.error().message;
  EXPECT_THAT(result.error().message, HasSubstr("c.fgc: ")) << what;
}

constexpr std::size_t kMagicBytes = 8;
constexpr std::size_t kHashBytes = 64;

std::string BodyOf(const std::string& bytes) {
  return bytes.substr(kMagicBytes, bytes.size() - kMagicBytes - kHashBytes);
}

template <typename Checkpoint>
void CheckMalformed(const std::string& bytes,
                    Result<Checkpoint> (*from_bytes)(std::string_view, const std::string&),
                    Result<Checkpoint> (*from_body)(std::string_view, const std::string&)) {
  const std::string body = BodyOf(bytes);
  ASSERT_TRUE(from_body(body, "c.fgc"));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    ExpectOneLine(from_bytes(std::string_view(bytes).substr(0, size), "c.fgc"),
                  fmt::format("{} bytes", size));
  }
  for (std::size_t size = 0; size < body.size(); ++size) {
    ExpectOneLine(from_body(std::string_view(body).substr(0, size), "c.fgc"),
                  fmt::format("{} bytes of the body", size));
  }
  ExpectOneLine(from_bytes(bytes + "x", "c.fgc"), "one byte more");
  ExpectOneLine(from_body(body + "x", "c.fgc"), "one byte more");
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string altered = bytes;
    altered[at] = static_cast<char>(altered[at] ^ (1 << at % 8));
    ExpectOneLine(from_bytes(altered, "c.fgc"), fmt::format("byte {}", at));
  }
  // Without the checksum an altered body is one line or a checkpoint that comes back.
  int read = 0;
  for (std::size_t at = 0; at < body.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xFF}) {
      std::string altered = body;
      altered[at] = static_cast<char>(altered[at] ^ flip);
      const Result<Checkpoint> result = from_body(altered, "c.fgc");
      if (!result) {
        ExpectOneLine(result, fmt::format("byte {}", at));
      } else {
        ++read;
        EXPECT_TRUE(from_bytes(CheckpointToBytes(*result), "c"));
      }
    }
  }
  EXPECT_GT(read, 100);  // a number may have changed into another
}

TEST(HostCheckpoint, CutOrAlteredAnywhereIsOneLine) {
  CheckMalformed(CheckpointToBytes(SampleHost()), HostFromBytes, HostFromBody);
}

TEST(CloudCheckpoint, CutOrAlteredAnywhereIsOneLine) {
  CheckMalformed(CheckpointToBytes(SampleCloud()), CloudFromBytes, CloudFromBody);
}

TEST(HostCheckpoint, ThatContradictsItselfIsOneLine) {
  using Spoil = void (*)(HostCheckpoint&);
  const std::pair<const char*, Spoil> cases[] = {
      {"no learner", [](HostCheckpoint& c) { c.learners.clear(); }},
      {"finite", [](HostCheckpoint& c) { c.learners[1].state.y = std::nan(""); }},
      {"finite", [](HostCheckpoint& c) { c.learners[1].state.theta[0] = HUGE_VALF; }},
      {"number of parameters", [](HostCheckpoint& c) { c.learners[2].state.theta.push_back(0); }},
      {"number of parameters", [](HostCheckpoint& c) { c.learners[2].state.first_stopped = {1}; }},
      {"contradict", [](HostCheckpoint& c) { c.learners[0].state.episodes = -1; }},
      {"contradict", [](HostCheckpoint& c) { c.learners[0].state.adoptions = -1; }},
      {"contradict", [](HostCheckpoint& c) { c.learners[0].state.measured_round = -1; }},
      {"contradict", [](HostCheckpoint& c) { c.learners[0].state.measured_round = 13; }},
      {"contradict", [](HostCheckpoint& c) { c.learners[0].state.first_stop = 13; }},
      {"round", [](HostCheckpoint& c) { c.host.round = -1; }},
      {"candidate",
       [](HostCheckpoint& c) { c.host.candidates = {{LearnerId(0), LearnerId(0), {1}}}; }},
      {"SHA-256 of a table", [](HostCheckpoint& c) { c.beside[0].sha256.pop_back(); }},
      {"SHA-256 of a table", [](HostCheckpoint& c) { c.beside[1].sha256[5] = 'G'; }},
  };
  const HostCheckpoint sample = SampleHost();
  int number = 0;
  for (const auto& [message, spoil] : cases) {
    HostCheckpoint checkpoint = sample;
    spoil(checkpoint);
    const auto result = HostFromBytes(CheckpointToBytes(checkpoint), "c.fgc");
    ExpectOneLine(result, fmt::format("case {}: {}", number++, message));
    EXPECT_THAT(result ? "read" : result.error().message, HasSubstr(message));
  }
}

TEST(CloudCheckpoint, ThatContradictsItselfIsOneLine) {
  using Spoil = void (*)(CloudState&);
  const std::pair<const char*, Spoil> cases[] = {
      {"knows no learner", [](CloudState& s) { s.members.clear(); }},
      {"step", [](CloudState& s) { s.step = -1; }},
      {"step", [](CloudState& s) { s.waiting = 5; }},
      {"step", [](CloudState& s) { s.waiting = -1; }},
      {"step", [](CloudState& s) { s.round = s.step; }},
      {"out of order", [](CloudState& s) { std::swap(s.members[0], s.members[1]); }},
      {"out of order", [](CloudState& s) { s.members[1] = s.members[0]; }},
      {"contradict", [](CloudState& s) { s.members.front().origin = LearnerId(9); }},
      {"contradict", [](CloudState& s) { s.members.front().episodes = -3; }},
      {"contradict", [](CloudState& s) { s.members.front().step = -2; }},
      {"race", [](CloudState& s) { s.parts = {{LearnerId(9), {{1, 1, 0}}}}; }},
      {"race", [](CloudState& s) { s.parts = {{LearnerId(0), {}}}; }},
      {"record", [](CloudState& s) { s.knowledge.records.begin()->second.theta[0] += 1; }},
      {"record", [](CloudState& s) { s.knowledge.records.begin()->second.learner = LearnerId(2); }},
      {"record", [](CloudState& s) { s.knowledge.records.begin()->second.origin = LearnerId(9); }},
      {"incumbent", [](CloudState& s) { s.answer.incumbent->theta.clear(); }},
      {"candidate",
       [](CloudState& s) { s.answer.candidates = {{LearnerId(9), LearnerId(0), {1, 2}}}; }},
      {"means", [](CloudState& s) { s.start.push_back(1); }},
      {"means", [](CloudState& s) { s.average = {1}; }},
      {"final policy",
       [](CloudState& s) { s.finals.emplace(Rank{}, s.knowledge.records.begin()->second); }},
  };
  const CloudCheckpoint sample = SampleCloud();
  int number = 0;
  for (const auto& [message, spoil] : cases) {
    CloudCheckpoint checkpoint = sample;
    spoil(checkpoint.cloud);
    const auto result = CloudFromBytes(CheckpointToBytes(checkpoint), "c.fgc");
    ExpectOneLine(result, fmt::format("case {}: {}", number++, message));
    EXPECT_THAT(result ? "read" : result.error().message, HasSubstr(message));
  }
}

TEST(Checkpoint, OfAnotherVersionOrKindIsRefused) {
  const std::string host = CheckpointToBytes(SampleHost());
  const std::string cloud = CheckpointToBytes(SampleCloud());
  EXPECT_THAT(CloudFromBytes(host, "c.fgc").error().message, HasSubstr("of something else"));
  EXPECT_THAT(HostFromBytes(cloud, "c.fgc").error().message, HasSubstr("of something else"));
  std::string body = BodyOf(host);
  for (const char version : {'\1', '\3', '\5'}) {
    body[0] = version;
    EXPECT_THAT(HostFromBody(body, "c.fgc").error().message,
                HasSubstr(fmt::format("c.fgc: version = {}: must be 4", int{version})));
  }
  EXPECT_THAT(HostFromBytes("FGP", "c.fgc").error().message, HasSubstr("is not a checkpoint"));
  // A length that no file could hold costs no memory.
  std::string huge = BodyOf(host);
  for (std::size_t at = 5; at < 13; ++at) huge[at] = '\xff';
  EXPECT_THAT(HostFromBody(huge, "c.fgc").error().message, HasSubstr("truncated"));
}

// What the fuzzer begins with is what its names say.
TEST(Checkpoint, CorpusIsReadAsNamed) {
  const std::string corpus = FEDGEN_SOURCE_DIR "/fuzz/corpus/checkpoint/";
  const auto read = [&](const char* name) { return *ReadFile(corpus + name, 1 << 20); };
  const std::string host = read("host.bin");
  const auto host_read = HostFromBody(host, "host");
  ASSERT_TRUE(host_read) << host_read.error().message;
  EXPECT_EQ(BodyOf(CheckpointToBytes(*host_read)), host);
  const std::string cloud = read("cloud.bin");
  const auto cloud_read = CloudFromBody(cloud, "cloud");
  ASSERT_TRUE(cloud_read) << cloud_read.error().message;
  EXPECT_EQ(BodyOf(CheckpointToBytes(*cloud_read)), cloud);
  EXPECT_TRUE(HostFromBytes(read("file.fgc"), "file"));
  const std::pair<const char*, const char*> wrong[] = {{"truncated.bin", "truncated"},
                                                       {"trailing.bin", "bytes after the end"},
                                                       {"version-2.bin", "version = 2"},
                                                       {"huge-length.bin", "truncated"},
                                                       {"nan.bin", "not finite"}};
  for (const auto& [name, message] : wrong) {
    EXPECT_THAT(HostFromBody(read(name), name).error().message, HasSubstr(message)) << name;
  }
}

}  // namespace
}  // namespace fedgen
