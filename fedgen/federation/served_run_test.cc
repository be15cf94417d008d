// SPDX-License-Identifier: Apache-2.0
#include "fedgen/federation/served_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedgen/base/file_testing.h"
#include "fedgen/base/hash.h"
#include "fedgen/fuse/checkpoint.h"

namespace fedgen {
namespace {

std::string BytesOf(const ServedRun& run) {
  return CheckpointToBytes(CloudCheckpoint{"", run.cloud().state()});
}

// Two policies make a snapshot: what comes after it leads on from there.
TEST(ServedRun, GoesOnFromASnapshotAndWhatCameAfterIt) {
  const TemporaryDirectory directory;
  const std::string url = "sqlite:" + directory.Path("cloud.db");
  constexpr std::size_t kSnapshotBytes = 4000;
  constexpr std::uint64_t kParameters = kSnapshotBytes / sizeof(float) * 3 / 4;
  const ServedSettings settings{"run", {.rounds = 2}, {LearnerId(0), LearnerId(1)}, kParameters};
  std::string expected;
  {
    const std::unique_ptr<Store> store = *OpenStore(url);
    Result<ServedRun> run = ServedRun::Open(settings, *store, kSnapshotBytes);
    ASSERT_TRUE(run) << run.error().message;
    for (const std::uint32_t learner : {0U, 1U}) {
      ASSERT_TRUE(run->Hear(JoinMessage{LearnerId(learner), std::vector<float>(kParameters, 1)}));
      ASSERT_TRUE(run->Save());
      run->Tidy();
    }
    EXPECT_EQ((*store->Load("run"))->snapshot_sequence, 2);
    ASSERT_TRUE(run->Hear(RoundMessage{LearnerId(1), 1, {}, {}, {}, {}, 7}));
    ASSERT_TRUE(run->Save());
    expected = BytesOf(*run);
  }
  const std::unique_ptr<Store> store = *OpenStore(url);
  const std::optional<StoredRun> stored = *store->Load("run");
  ASSERT_TRUE(stored);
  EXPECT_FALSE(stored->snapshot.empty());
  EXPECT_EQ(stored->messages.size(), 1U);
  const Result<ServedRun> again = ServedRun::Open(settings, *store);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(BytesOf(*again), expected);
}

// Of very many policies the state has few: it is written instead of them.
TEST(ServedRun, WritesWhatIsLessMessagesOrTheStateThatTheyLeadTo) {
  const TemporaryDirectory directory;
  const std::string url = "sqlite:" + directory.Path("cloud.db");
  constexpr std::uint64_t kParameters = 1000;
  ServedSettings settings{"run", {.rounds = 2}, {}, kParameters};
  for (std::uint32_t index = 0; index < 40; ++index) settings.learners.emplace_back(index);
  std::string expected;
  std::vector<std::string> hashes;
  {
    const std::unique_ptr<Store> store = *OpenStore(url);
    Result<ServedRun> run = ServedRun::Open(settings, *store);
    ASSERT_TRUE(run) << run.error().message;
    const auto everybody_says = [&](const auto& message_of) {
      for (const LearnerId learner : settings.learners) {
        const StepMessage message = message_of(learner);
        ASSERT_TRUE(run->Hear(message));
        hashes.push_back(Sha256Hex(StepToBytes(message)));
      }
      ASSERT_TRUE(run->Save());
      EXPECT_TRUE(run->saved());
    };
    const std::vector<float> theta(kParameters, 0.5F);
    everybody_says([&](LearnerId id) { return JoinMessage{id, theta}; });
    EXPECT_EQ((*store->Load("run"))->snapshot_sequence, 40);
    everybody_says([&](LearnerId id) {
      const Submission submission{id, 1, id, 0.5, 0.1, theta, HashOf(theta)};
      return RoundMessage{id, 1, submission, {}, {}, {}, 7};
    });
    EXPECT_EQ((*store->Load("run"))->snapshot_sequence, 80);
    EXPECT_TRUE((*store->Load("run"))->messages.empty());
    everybody_says([&](LearnerId id) { return CloseMessage{id, 1, id}; });
    EXPECT_EQ((*store->Load("run"))->snapshot_sequence, 80);
    EXPECT_EQ((*store->Load("run"))->messages.size(), 40U);
    expected = BytesOf(*run);
  }
  const std::unique_ptr<Store> store = *OpenStore(url);
  const std::vector<StoredMessage> rows = *store->RowsOf("run");
  ASSERT_EQ(rows.size(), hashes.size());
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].hash, hashes[i]) << i;
  const Result<ServedRun> again = ServedRun::Open(settings, *store);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(BytesOf(*again), expected);
}

TEST(ServedRun, RefusesOptionsThatContradictEachOther) {
  const TemporaryDirectory directory;
  const std::unique_ptr<Store> store = *OpenStore("sqlite:" + directory.Path("cloud.db"));
  const ServedSettings settings{
      "run", {.algorithm = Algorithm::kFedAvg, .async = true}, {LearnerId(0)}, 1};
  const Result<ServedRun> run = ServedRun::Open(settings, *store);
  ASSERT_FALSE(run);
  EXPECT_THAT(run.error().message, ::testing::HasSubstr("run run: async = true: must be false"));
  EXPECT_TRUE(store->Runs()->empty());
}

// A decision of the Cloud is as durable as a message, and so is what followed from it.
TEST(ServedRun, RemembersWhomItDecidedAbout) {
  const TemporaryDirectory directory;
  const std::string url = "sqlite:" + directory.Path("cloud.db");
  const ServedSettings settings{
      "run", {.rounds = 2, .patience = 1}, {LearnerId(0), LearnerId(1), LearnerId(2)}, 1};
  std::string expected;
  {
    const std::unique_ptr<Store> store = *OpenStore(url);
    Result<ServedRun> run = ServedRun::Open(settings, *store);
    ASSERT_TRUE(run->Hear(JoinMessage{LearnerId(0), {1}}));
    ASSERT_TRUE(run->LeaveOut(LearnerId(1)));
    EXPECT_FALSE(run->LeaveOut(LearnerId(0))) << "it was heard";
    ASSERT_TRUE(run->Revoke(LearnerId(2)));
    ASSERT_TRUE(run->Revoke(LearnerId(2)));
    ASSERT_TRUE(run->Revoke(LearnerId(7)));
    ASSERT_TRUE(run->Save());
    EXPECT_EQ(run->sequence(), 3);
    EXPECT_EQ(run->cloud().state().step, 1);
    expected = BytesOf(*run);
  }
  const std::unique_ptr<Store> store = *OpenStore(url);
  const Result<ServedRun> again = ServedRun::Open(settings, *store);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(BytesOf(*again), expected);
}

}  // namespace
}  // namespace fedgen
