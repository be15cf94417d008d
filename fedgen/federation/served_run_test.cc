// SPDX-License-Identifier: Apache-2.0
#include "fedgen/federation/served_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedgen/base/file_testing.h"
#include "fedgen/fuse/checkpoint.h"

namespace fedgen {
namespace {

std::string BytesOf(const ServedRun& run) {
  return CheckpointToBytes(CloudCheckpoint{"", run.cloud().state()});
}

// Policies so large that two make a snapshot: what comes after it leads on from there.
TEST(ServedRun, GoesOnFromASnapshotAndWhatCameAfterIt) {
  const TemporaryDirectory directory;
  const std::string url = "sqlite:" + directory.Path("cloud.db");
  constexpr std::uint64_t kParameters = ServedRun::kSnapshotBytes / sizeof(float) * 3 / 4;
  const ServedSettings settings{"run", {.rounds = 2}, {LearnerId(0), LearnerId(1)}, kParameters};
  std::string expected;
  {
    const std::unique_ptr<Store> store = *OpenStore(url);
    Result<ServedRun> run = ServedRun::Open(settings, *store);
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
