// SPDX-License-Identifier: Apache-2.0
#include "fedgen/federation/cloud_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <thread>

#include "fedgen/base/file_testing.h"

namespace fedgen {
namespace {

using ::testing::HasSubstr;
using Answered = Result<std::optional<StepAnswer>>;

// A store that refuses to write when it is told to, and counts its writes.
class MoodyStore final : public Store {
 public:
  Result<void> Begin(const RunHeader&) override { return {}; }
  Result<std::vector<RunHeader>> Runs() override { return std::vector<RunHeader>(); }
  Result<std::optional<StoredRun>> Load(const std::string&) override {
    return std::optional<StoredRun>();
  }
  Result<void> Append(const std::string&, std::span<const StoredMessage> messages) override {
    if (full) return Error{ErrorCode::kIo, "cloud.db: the disk is full"};
    for (const StoredMessage& message : messages) kept.push_back(message.sequence);
    num_kept += static_cast<int>(messages.size());
    return {};
  }
  Result<void> Compact(const std::string&, std::int64_t, const std::string&) override { return {}; }
  Result<void> AppendInto(const std::string& run, std::span<const StoredMessage> messages,
                          const std::string&) override {
    return Append(run, messages);
  }
  Result<std::vector<StoredMessage>> MessagesOf(const std::string&, LearnerId) override {
    return std::vector<StoredMessage>();
  }
  Result<std::vector<StoredMessage>> RowsOf(const std::string&) override {
    return std::vector<StoredMessage>();
  }
  Result<void> Backup(const std::string&) override { return {}; }

  std::atomic<bool> full = false;
  std::vector<std::int64_t> kept;  // sequence numbers
  std::atomic<int> num_kept = 0;
};

class CloudLoopTest : public ::testing::Test {
 protected:
  void Start(std::chrono::milliseconds patience, const FederationOptions& options = {.rounds = 2}) {
    std::vector<ServedRun> runs;
    runs.push_back(*ServedRun::Open({"run", options, {LearnerId(0), LearnerId(1)}, 1}, store_));
    loop_ = std::make_unique<CloudLoop>(std::move(runs), patience);
  }
  std::future<Answered> Say(const StepMessage& message, const std::string& run = "run") {
    auto promise = std::make_shared<std::promise<Answered>>();
    loop_->Post({run, message, [promise](Answered answer) { promise->set_value(answer); }});
    return promise->get_future();
  }
  static JoinMessage Join(std::uint32_t learner) { return {LearnerId(learner), {1}}; }

  MoodyStore store_;
  std::unique_ptr<CloudLoop> loop_;
};

TEST_F(CloudLoopTest, AnswersEverybodyWhenTheLastIsHeard) {
  Start(std::chrono::hours(1));
  std::future<Answered> first = Say(Join(0));
  std::future<Answered> second = Say(Join(1));
  for (std::future<Answered>* each : {&first, &second}) {
    const Answered answer = each->get();
    ASSERT_TRUE(answer) << answer.error().message;
    ASSERT_TRUE(answer->has_value());
    EXPECT_EQ(std::get<Welcome>(**answer).origin, LearnerId(0));
  }
  loop_->Stop();
  EXPECT_THAT(store_.kept, ::testing::ElementsAre(1, 2));
}

// Who brings a message may be the one who answers all: from within an answer the next is said.
TEST_F(CloudLoopTest, IsPostedToFromItsOwnAnswers) {
  Start(std::chrono::hours(1));
  std::promise<void> done;
  std::atomic<int> heard = 0;
  const auto submit = [&](LearnerId learner) {
    loop_->Post({"run", RoundMessage{learner, 1, {}, {}, {}, {}, 7}, [&](const Answered& answer) {
                   EXPECT_TRUE(answer && answer->has_value());
                   if (++heard == 2) done.set_value();
                 }});
  };
  std::vector<std::thread> threads;
  for (const LearnerId learner : {LearnerId(0), LearnerId(1)}) {
    threads.emplace_back([&, learner] {
      loop_->Post({"run", JoinMessage{learner, {1}}, [&, learner](const Answered& answer) {
                     EXPECT_TRUE(answer && answer->has_value());
                     submit(learner);
                   }});
    });
  }
  done.get_future().wait();
  for (std::thread& thread : threads) thread.join();
  loop_->Stop();
  EXPECT_THAT(store_.kept, ::testing::ElementsAre(1, 2, 3, 4));
}

// However much more has come: its own answer is sent when it returns.
TEST_F(CloudLoopTest, LetsGoWhoWasAnswered) {
  Start(std::chrono::hours(1), {.rounds = 100, .async = true});
  std::future<Answered> first = Say(Join(0));
  ASSERT_TRUE(Say(Join(1)).get());
  ASSERT_TRUE(first.get());
  const std::thread::id own = std::this_thread::get_id();
  std::vector<bool> by_own;  // each answer
  std::promise<void> done;
  std::function<void(int)> go_on = [&](int said) {
    const int round = 1 + said / 2;
    const StepMessage message =
        said % 2 == 0 ? StepMessage(RoundMessage{LearnerId(0), round, {}, {}, {}, {}, 7})
                      : StepMessage(CloseMessage{LearnerId(0), round, LearnerId(0)});
    loop_->Post({"run", message, [&, said](const Answered& answer) {
                   EXPECT_TRUE(answer && answer->has_value());
                   by_own.push_back(std::this_thread::get_id() == own);
                   said == 9 ? done.set_value() : go_on(said + 1);
                 }});
  };
  go_on(0);
  done.get_future().wait();
  EXPECT_THAT(by_own, ::testing::SizeIs(10));
  EXPECT_TRUE(by_own.front());
  EXPECT_EQ(std::ranges::count(by_own, true), 1);
}

// Stopped while somebody works and leaves the rest: who was let in is answered all the same.
TEST_F(CloudLoopTest, AnswersWhatWasLeftWhenItStops) {
  Start(std::chrono::hours(1), {.rounds = 2, .async = true});
  std::future<Answered> first = Say(Join(0));
  ASSERT_TRUE(Say(Join(1)).get());
  ASSERT_TRUE(first.get());
  const StepMessage message = RoundMessage{LearnerId(0), 1, {}, {}, {}, {}, 7};
  std::thread stopper;
  std::atomic<bool> is_shut = false;
  int let_in = 0;
  std::atomic<int> answered = 0;
  loop_->Post({"run", message, [&](const Answered& answer) {
                 EXPECT_TRUE(answer && answer->has_value());
                 stopper = std::thread([&] { loop_->Stop(); });
                 while (!is_shut) {
                   ++let_in;
                   loop_->Post({"run", message, [&](const Answered& again) {
                                  again ? void(++answered) : is_shut.store(true);
                                }});
                   std::this_thread::yield();
                 }
               }});
  stopper.join();
  EXPECT_EQ(answered, let_in - 1);  // the last one was refused
}

TEST_F(CloudLoopTest, TellsWhoWaitsTooLongToAskAgain) {
  Start(std::chrono::milliseconds(1));
  const Answered answer = Say(Join(0)).get();
  ASSERT_TRUE(answer);
  EXPECT_FALSE(answer->has_value());
  const Answered again = Say(Join(0)).get();  // a repetition: nothing more is kept
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->has_value());
  loop_->Stop();
  EXPECT_THAT(store_.kept, ::testing::ElementsAre(1));
}

TEST_F(CloudLoopTest, AcknowledgesNothingThatIsNotOnTheDisk) {
  Start(std::chrono::milliseconds(1));
  store_.full = true;
  const Answered refused = Say(Join(0)).get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
  EXPECT_THAT(refused.error().message, HasSubstr("the disk is full"));
  EXPECT_FALSE(Say(Join(1)).get());  // the step is complete, and still nobody hears so
  store_.full = false;
  for (const std::uint32_t learner : {0U, 1U}) {
    const Answered answer = Say(Join(learner)).get();
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_TRUE(answer->has_value());
  }
  loop_->Stop();
  EXPECT_THAT(store_.kept, ::testing::ElementsAre(1, 2));
}

// Who cannot be answered yet need not be on the disk yet; but not everything is left to the end.
TEST_F(CloudLoopTest, WritesWhenSomebodyIsToBeToldSomethingOrItIsMuch) {
  const std::size_t numbers = ServedRun::kMuch / sizeof(float) / 3;
  std::vector<LearnerId> learners;
  for (std::uint32_t index = 0; index < 5; ++index) learners.emplace_back(index);
  std::vector<ServedRun> runs;
  runs.push_back(*ServedRun::Open({"run", {.rounds = 2}, learners, numbers}, store_));
  loop_ = std::make_unique<CloudLoop>(std::move(runs), std::chrono::hours(1));
  const std::vector<float> theta(numbers, 1.0F);
  std::vector<std::future<Answered>> waiting;
  // A refusal is answered when everything before it was heard.
  const auto heard = [&] { return !Say(Join(7)).get().has_value(); };
  for (const LearnerId learner : {LearnerId(0), LearnerId(1)}) {
    waiting.push_back(Say(JoinMessage{learner, theta}));
    ASSERT_TRUE(heard());
  }
  EXPECT_EQ(store_.num_kept, 0);
  waiting.push_back(Say(JoinMessage{LearnerId(2), theta}));
  ASSERT_TRUE(heard());
  ASSERT_TRUE(heard());  // what was heard together with the first refusal is written by now
  EXPECT_EQ(store_.num_kept, 3);
  waiting.push_back(Say(JoinMessage{LearnerId(3), theta}));
  waiting.push_back(Say(JoinMessage{LearnerId(4), theta}));
  for (std::future<Answered>& each : waiting) {
    const Answered answer = each.get();
    EXPECT_TRUE(answer && answer->has_value());
  }
  EXPECT_EQ(store_.num_kept, 5);
}

TEST_F(CloudLoopTest, RefusesEquivocationStrangersAndUnknownRuns) {
  Start(std::chrono::milliseconds(1));
  ASSERT_TRUE(Say(Join(0)).get());
  const Answered other = Say(JoinMessage{LearnerId(0), {2}}).get();
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("says something else than before"));
  EXPECT_FALSE(Say(Join(7)).get());
  EXPECT_FALSE(Say(Join(1), "elsewhere").get());
  EXPECT_FALSE(Say(CloseMessage{LearnerId(1), 1, LearnerId(1)}).get());
  loop_->Stop();
  EXPECT_THAT(store_.kept, ::testing::ElementsAre(1));
}

TEST_F(CloudLoopTest, GoesOnWithoutWhoIsSilentWhenPatienceIsOver) {
  Start(std::chrono::hours(1), {.rounds = 2, .patience = 0.01});
  const Answered welcome = Say(Join(0)).get();
  ASSERT_TRUE(welcome) << welcome.error().message;
  ASSERT_TRUE(welcome->has_value());
  const Answered later = Say(Join(1)).get();  // it was left out, and comes back
  ASSERT_TRUE(later) << later.error().message;
  EXPECT_EQ(std::get<Welcome>(**later).round, 0);
  std::future<Answered> first = Say(RoundMessage{LearnerId(0), 1, {}, {}, {}, {}, 7});
  const Answered answer = first.get();  // the first step in which nobody waits for the other
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(std::get<RoundAnswer>(**answer).round, 1);
  loop_->Stop();
  EXPECT_THAT(store_.kept, ::testing::ElementsAre(1, 2, 3, 4));  // with one that leaves out
}

// It waits for the end: the one who searches may take longer than the run has patience.
TEST_F(CloudLoopTest, IsNotMadeImpatientByWhoRests) {
  Start(std::chrono::milliseconds(500), {.rounds = 9, .patience = 0.2});
  const auto both_say = [&](const auto& of) {
    std::future<Answered> first = Say(of(LearnerId(0)));
    std::future<Answered> second = Say(of(LearnerId(1)));
    for (std::future<Answered>* each : {&first, &second}) {
      const Answered answer = each->get();
      ASSERT_TRUE(answer) << answer.error().message;
      ASSERT_TRUE(answer->has_value());
    }
  };
  both_say([](LearnerId id) { return JoinMessage{id, {1}}; });
  both_say([](LearnerId id) { return RoundMessage{id, 1, {}, {}, {}, {}, 7}; });
  both_say([](LearnerId id) {
    return CloseMessage{id, 1, id, id == LearnerId(1) ? Outlook::kRests : Outlook::kSearches};
  });
  const Answered pending = Say(RoundMessage{LearnerId(1), 2, {}, {}, {}, {}, 7}).get();
  ASSERT_TRUE(pending) << pending.error().message;
  EXPECT_FALSE(pending->has_value());
  loop_->Stop();
  EXPECT_THAT(store_.kept, ::testing::ElementsAre(1, 2, 3, 4, 5, 6)) << "nobody was left out";
}

TEST_F(CloudLoopTest, RefusesWhoIsRevokedAndDoesNotWaitForIt) {
  Start(std::chrono::hours(1));
  std::future<Answered> first = Say(Join(0));
  loop_->Revoke(LearnerId(1));
  const Answered welcome = first.get();
  ASSERT_TRUE(welcome) << welcome.error().message;
  EXPECT_TRUE(welcome->has_value());
  const Answered refused = Say(Join(1)).get();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("its certificate is revoked"));
  loop_->Revoke(LearnerId(7));  // of another run
  loop_->Stop();
}

TEST_F(CloudLoopTest, AnswersAnAsynchronousRunAtOnce) {
  Start(std::chrono::hours(1), {.rounds = 2, .async = true});
  std::future<Answered> first = Say(Join(0));
  ASSERT_TRUE(Say(Join(1)).get());
  ASSERT_TRUE(first.get());
  const RoundMessage round{LearnerId(0), 1, {}, {}, {}, {}, 7};
  for (int tries = 0; tries < 2; ++tries) {  // its answer was lost: it is told again, and that kept
    const Answered answer = Say(round).get();
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(std::get<RoundAnswer>(**answer).episodes, 7);
  }
  std::promise<std::string> phase;
  loop_->PostStatus([&](const auto& runs) { phase.set_value(runs->front().progress.phase); });
  EXPECT_EQ(phase.get_future().get(), "submit");  // not "final": nobody is at its end
  loop_->Stop();
  EXPECT_THAT(store_.kept, ::testing::ElementsAre(1, 2, 3, 4));
}

TEST_F(CloudLoopTest, LeavesNobodyWaitingWhenItStops) {
  Start(std::chrono::hours(1));
  std::future<Answered> waiting = Say(Join(0));
  loop_->Stop();
  const Answered answer = waiting.get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kIo);  // it may be tried again, elsewhere or later
  EXPECT_THAT(store_.kept, ::testing::ElementsAre(1));
  EXPECT_FALSE(Say(Join(1)).get());
  EXPECT_THAT(store_.kept, ::testing::ElementsAre(1));
}

}  // namespace
}  // namespace fedgen
