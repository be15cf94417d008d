// SPDX-License-Identifier: Apache-2.0

// Runs in which everybody has rounds of its own.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedgen/base/random.h"
#include "fedgen/fuse/checkpoint.h"
#include "fedgen/fuse/cloud_testing.h"

namespace fedgen {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using Kind = ControlMessage::Kind;

class AsyncCloud : public ::testing::Test {
 protected:
  AsyncCloud() { JoinAll(cloud_, 3); }
  // What a learner hears that measured y in this round.
  RoundAnswer Submit(LearnerId id, int round, double y) {
    const Result<bool> heard = cloud_.Receive(Said(id, round, y));
    EXPECT_TRUE(heard && *heard) << (heard ? "a repetition" : heard.error().message);
    return *cloud_.AnswerTo(id, round);
  }
  static RoundMessage Said(LearnerId id, int round, double y) {
    return Says(round, Make(id, round, id, y, {1, 2}), 10 * round);
  }
  std::optional<Ending> Close(LearnerId id, int round, Outlook outlook = Outlook::kSearches) {
    const Result<bool> heard = cloud_.Receive(CloseMessage{id, round, id, outlook});
    EXPECT_TRUE(heard) << heard.error().message;
    return cloud_.EndingAfter(id, round);
  }

  Cloud cloud_{{.rounds = 3, .async = true}, Ids(3)};
};

TEST_F(AsyncCloud, AnswersAtOnceWithTheIncumbentOfNow) {
  EXPECT_EQ(Submit(kA, 1, 0.5).incumbent->learner, kA);
  EXPECT_EQ(Submit(kB, 1, 0.25).incumbent->learner, kB);
  EXPECT_EQ(Close(kA, 1), Ending::kNotYet);
  const RoundAnswer answer = Submit(kA, 2, 0.5);
  EXPECT_EQ(answer.round, 2);
  EXPECT_EQ(answer.incumbent->learner, kB);
  EXPECT_EQ(answer.episodes, 30);
  EXPECT_EQ(Close(kA, 2), Ending::kNotYet);
  Submit(kA, 3, 0.5);
  EXPECT_EQ(Close(kA, 3), Ending::kRounds);
  ExpectRefused(cloud_.Receive(Said(kA, 4, 0.5)), "names no round");
  ExpectRefused(cloud_.Receive(Said(kB, 2, 0.5)), "has not begun");
  ExpectRefused(cloud_.Receive(CloseMessage{kC, 1, kC}), "has not begun");
  ExpectRefused(cloud_.Receive(FinalMessage{Make(kB, 1, kB, 0.5, {1, 2})}),
                "before the run is over");
}

TEST_F(AsyncCloud, LetsWhoIsSettledWaitUntilThereIsAnotherIncumbent) {
  Submit(kA, 1, 0.25);
  EXPECT_EQ(Close(kA, 1, Outlook::kSettled), std::nullopt);
  Submit(kB, 1, 0.5);
  EXPECT_EQ(cloud_.EndingAfter(kA, 1), std::nullopt) << "the incumbent is its own";
  Submit(kC, 1, 0.125);
  EXPECT_EQ(cloud_.EndingAfter(kA, 1), Ending::kNotYet);
  // What it does not know yet cannot settle it.
  EXPECT_EQ(Close(kB, 1, Outlook::kSettled), Ending::kNotYet);
  EXPECT_EQ(Close(kC, 1, Outlook::kSettled), std::nullopt);
}

TEST_F(AsyncCloud, IsOverWhenEverybodyWaits) {
  for (const LearnerId id : {kA, kB, kC}) Submit(id, 1, 0.5);
  EXPECT_EQ(Close(kB, 1, Outlook::kSettled), std::nullopt);
  EXPECT_EQ(Close(kC, 1, Outlook::kSettled), std::nullopt);
  EXPECT_EQ(Close(kA, 1, Outlook::kSettled), Ending::kSettled);
  EXPECT_EQ(cloud_.EndingAfter(kB, 1), Ending::kSettled);
  for (const LearnerId id : {kC, kA}) {
    ASSERT_TRUE(cloud_.Receive(FinalMessage{Make(id, 1, id, 0.5, {1, 2})}));
  }
  EXPECT_FALSE(cloud_.FindFinalists());
  ASSERT_TRUE(cloud_.Receive(FinalMessage{Make(kB, 1, kB, 0.5, {1, 2})}));
  EXPECT_THAT(cloud_.FindFinalists()->finals, SizeIs(3));
  EXPECT_EQ(cloud_.state().ending, Ending::kSettled);
}

TEST_F(AsyncCloud, DoesNotWaitForWhoIsGone) {
  for (const LearnerId id : {kA, kB}) Submit(id, 1, 0.5);
  EXPECT_EQ(Close(kA, 1, Outlook::kSettled), std::nullopt);
  EXPECT_EQ(Close(kB, 1, Outlook::kSettled), std::nullopt);
  EXPECT_THAT(cloud_.Silent(), ElementsAre(kC));
  ASSERT_TRUE(cloud_.Receive(ControlMessage{Kind::kLeftOut, kC}));
  EXPECT_EQ(cloud_.EndingAfter(kA, 1), Ending::kSettled);
  for (const LearnerId id : {kA, kB}) {
    ASSERT_TRUE(cloud_.Receive(FinalMessage{Make(id, 1, id, 0.5, {1, 2})}));
  }
  EXPECT_THAT(cloud_.FindFinalists()->finals, SizeIs(2));
  // It comes back when nobody learns any more, and ends with the others.
  Submit(kC, 1, 0.0625);
  EXPECT_EQ(Close(kC, 1), Ending::kSettled);
  ASSERT_TRUE(cloud_.Receive(FinalMessage{Make(kC, 1, kC, 0.0625, {1, 2})}));
  EXPECT_THAT(cloud_.FindFinalists()->finals, SizeIs(2));
  EXPECT_NE(cloud_.FindFinalists()->incumbent->learner, kC);
}

TEST_F(AsyncCloud, AnswersAgainWithTheIncumbentOfThen) {
  EXPECT_EQ(Submit(kA, 1, 0.5).incumbent->learner, kA);
  EXPECT_EQ(Close(kA, 1, Outlook::kSettled), std::nullopt);
  EXPECT_EQ(Submit(kB, 1, 0.75).incumbent->learner, kA);
  Submit(kC, 1, 0.25);
  EXPECT_FALSE(*cloud_.Receive(Said(kA, 1, 0.5)));
  EXPECT_TRUE(cloud_.NeedsAnotherAnswer(Said(kA, 1, 0.5)));
  ASSERT_TRUE(cloud_.Receive(ControlMessage{Kind::kAnsweredAgain, kA}));
  EXPECT_EQ(cloud_.AnswerTo(kA, 1)->incumbent->learner, kC);
  // It fuses with another incumbent now, so it may close the round otherwise.
  EXPECT_TRUE(*cloud_.Receive(CloseMessage{kA, 1, kC}));
  EXPECT_EQ(cloud_.EndingAfter(kA, 1), Ending::kNotYet);
  EXPECT_FALSE(*cloud_.Receive(CloseMessage{kA, 1, kC}));
  ExpectRefused(cloud_.Receive(CloseMessage{kA, 1, kA, Outlook::kSettled}), "else than before");
  Submit(kA, 2, 0.5);
  EXPECT_FALSE(cloud_.NeedsAnotherAnswer(Said(kA, 1, 0.5))) << "of long ago";
}

TEST_F(AsyncCloud, KeepsToTheBudgetOfAll) {
  Cloud cloud({.rounds = 9, .episodes = 25, .async = true}, Ids(2));
  JoinAll(cloud, 2);
  for (const int round : {1, 2}) {
    ASSERT_TRUE(cloud.Receive(Said(kA, round, 0.5)));
    ASSERT_TRUE(cloud.Receive(CloseMessage{kA, round, kA}));
    EXPECT_EQ(cloud.EndingAfter(kA, round), Ending::kNotYet);
  }
  ASSERT_TRUE(cloud.Receive(Said(kB, 1, 0.5)));
  ASSERT_TRUE(cloud.Receive(CloseMessage{kB, 1, kB}));
  EXPECT_EQ(cloud.EndingAfter(kB, 1), Ending::kEpisodes);
}

// Counts that follow from the state are found anew.
TEST_F(AsyncCloud, GoesOnFromItsState) {
  for (const LearnerId id : {kA, kB, kC}) Submit(id, 1, 0.5);
  EXPECT_EQ(Close(kB, 1, Outlook::kSettled), std::nullopt);
  Cloud again(cloud_.options(), Ids(3));
  again.set_state(cloud_.state());
  for (Cloud* cloud : {&cloud_, &again}) {
    ASSERT_TRUE(cloud->Receive(CloseMessage{kA, 1, kA, Outlook::kSettled}));
    EXPECT_EQ(cloud->EndingAfter(kB, 1), std::nullopt);
    ASSERT_TRUE(cloud->Receive(CloseMessage{kC, 1, kC, Outlook::kSettled}));
    EXPECT_EQ(cloud->EndingAfter(kB, 1), Ending::kSettled);
  }
  EXPECT_EQ(ToBytes(again.state()), ToBytes(cloud_.state()));
}

// Whatever is said in whatever order: what is refused or repeated changes nothing, and a Cloud that
// begins with the bytes of another goes on as that one does.
class AnyCloud : public ::testing::TestWithParam<FederationOptions> {
 protected:
  int Below(int bound) { return UniformInt(key_.Block(draws_++)[0], 0, bound - 1); }
  LearnerId Anybody() { return LearnerId(static_cast<std::uint32_t>(Below(4))); }

  // Of this Cloud, mostly something that makes sense now.
  Result<bool> Say(int what, LearnerId id, int number, Cloud& cloud) const {
    const Member* member = FindMember(cloud.state().members, id);
    const int step = member == nullptr ? 0 : member->step;
    const bool off = number == 0;
    const int next =
        (cloud.options().async ? step + 2 : cloud.state().step + 1) / 2 - (off ? 1 : 0);
    const Submission submission = Make(id, std::max(next, 1), id, 0.125 * (number % 4), {1, 2});
    switch (what) {
      case 0:
        return cloud.Receive(JoinMessage{id, {1, static_cast<float>(number % 2)}, task_});
      case 1:
        return cloud.Receive(Says(next, submission, next));
      case 2:
        return cloud.Receive(CloseMessage{id, (step + 1) / 2, id,
                                          static_cast<Outlook>(number > 4 ? 1 + number % 2 : 0)});
      case 3:
        return cloud.Receive(FinalMessage{Make(id, 1, id, 0.5, {1, 2})});
      case 4:
        return cloud.Receive(RaceMessage{id, {{1, 1, 0}}});
      case 5:
        return cloud.Receive(ControlMessage{static_cast<Kind>(number % 3), id});
      default:
        return cloud.Receive(LeaveMessage{id});
    }
  }
  // Seldom what ends a learner's part.
  int What() {
    const int drawn = Below(200);
    if (drawn < 2) return 6;
    return drawn < 12 ? 5 : drawn % 5;
  }

  const std::string task_ = std::string(64, 'a');
  Key key_{3};
  std::uint64_t draws_ = 0;
};

TEST_P(AnyCloud, StaysACloud) {
  int heard = 0, over = 0;
  for (int run = 0; run < 12; ++run) {
    Cloud cloud(GetParam(), Ids(3));
    for (int message = 0; message < 300; ++message) {
      const std::string before = CheckpointToBytes(CloudCheckpoint{"", cloud.state()});
      Cloud again(GetParam(), Ids(3));
      const Result<CloudCheckpoint> kept = CloudFromBytes(before, "kept");
      ASSERT_TRUE(kept) << kept.error().message;
      ASSERT_TRUE(Restore(*kept, "", "kept", again));
      const int what = What();
      const LearnerId id = Anybody();
      // Revoking is for ever, so it is seldom.
      const int number = what == 5 && Below(10) != 0 ? 2 * Below(2) : Below(7);
      const Result<bool> result = Say(what, id, number, cloud);
      const Result<bool> other = Say(what, id, number, again);
      const std::string after = CheckpointToBytes(CloudCheckpoint{"", cloud.state()});
      ASSERT_EQ(after, CheckpointToBytes(CloudCheckpoint{"", again.state()})) << what;
      ASSERT_EQ(result.has_value(), other.has_value());
      if (!result || !*result) {
        ASSERT_EQ(after, before) << what;
      }
      heard += result && *result ? 1 : 0;
    }
    over += cloud.FindFinalists() ? 1 : 0;
  }
  EXPECT_GT(heard, 120);
  EXPECT_GT(over, 1);
}

INSTANTIATE_TEST_SUITE_P(
    Options, AnyCloud,
    ::testing::Values(FederationOptions{.rounds = 3}, FederationOptions{.rounds = 3, .patience = 1},
                      FederationOptions{.rounds = 3, .patience = 1, .open = true},
                      FederationOptions{.rounds = 3, .async = true},
                      FederationOptions{.rounds = 3, .patience = 1, .async = true, .open = true}));

TEST(FederationOptions, OfAnAsynchronousRunHaveNoMeans) {
  EXPECT_FALSE(Validate(FederationOptions{.patience = 2, .async = true, .open = true}));
  EXPECT_FALSE(Validate(FederationOptions{.algorithm = Algorithm::kLocal, .async = true}));
  EXPECT_EQ(Validate(FederationOptions{.patience = -1})->field, "patience");
  EXPECT_EQ(Validate(FederationOptions{.average_every = 3, .async = true})->field, "async");
  for (const Algorithm algorithm :
       {Algorithm::kFedAvg, Algorithm::kCentralized, Algorithm::kSingle}) {
    EXPECT_EQ(Validate(FederationOptions{.algorithm = algorithm, .async = true})->field, "async");
  }
}

}  // namespace
}  // namespace fedgen
