// SPDX-License-Identifier: Apache-2.0

// Runs whose answers depend on what came when, by real loops and threads, and the same bytes once
// more from their logs.

#include "fedgen/federation/replay_exchange.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <mutex>
#include <thread>

#include "fedgen/base/file_testing.h"
#include "fedgen/federation/cloud_loop.h"
#include "fedgen/fuse/checkpoint.h"
#include "fedgen/fuse/federation_testing.h"
#include "fedgen/store/store_testing.h"

namespace fedgen {
namespace {

using ::testing::HasSubstr;

// The exchange of one learner that posts to a loop at hand.
class LoopExchange final : public Exchange {
 public:
  explicit LoopExchange(CloudLoop& loop) : loop_(loop) {}

  Result<std::vector<Welcome>> Join(std::span<const JoinMessage> m) override {
    return std::vector{FEDGEN_TRY(Ask<Welcome>(m.front()))};
  }
  Result<RoundAnswer> Submit(std::span<const RoundMessage> m) override {
    if (before_submit) before_submit(m.front().round);
    return Ask<RoundAnswer>(m.front());
  }
  Result<Ending> Close(std::span<const CloseMessage> m) override { return Ask<Ending>(m.front()); }
  Result<Finalists> Finish(std::span<const FinalMessage> m) override {
    return Ask<Finalists>(m.front());
  }
  Result<RaceAnswer> Race(std::span<const RaceMessage> m) override {
    return Ask<RaceAnswer>(m.front());
  }

  std::function<void(int round)> before_submit{};

 private:
  template <typename Answer>
  Result<Answer> Ask(const StepMessage& message) {
    while (true) {
      using Answered = Result<std::optional<StepAnswer>>;
      auto promise = std::make_shared<std::promise<Answered>>();
      loop_.Post({"run", message, [promise](Answered a) { promise->set_value(std::move(a)); }});
      std::optional<StepAnswer> answer = FEDGEN_TRY(promise->get_future().get());
      if (answer) return std::get<Answer>(*answer);
    }
  }
  CloudLoop& loop_;
};

// One host, all the way; what it knows at the end.
Result<std::string> RunToEnd(Host& host, Exchange& exchange) {
  if (host.round() == 0) FEDGEN_TRY(host.Join(exchange));
  while (host.ending() == Ending::kNotYet) FEDGEN_TRY(host.Round(exchange));
  const Finalists finalists = FEDGEN_TRY(host.Finish(exchange));
  const RaceAnswer raced = FEDGEN_TRY(exchange.Race(PartsOfRace(host, finalists)));
  return ToBytes(finalists) + ToBytes(raced);
}

class ReplayTest : public ::testing::Test {
 protected:
  std::unique_ptr<Host> MakeHost(std::uint32_t index) const {
    std::vector<std::unique_ptr<Learner>> one;
    one.push_back(MakeSpreadLearner(case_, static_cast<int>(index)));
    return std::make_unique<Host>(case_.options, std::move(one));
  }
  ServedSettings Settings() const {
    std::vector<LearnerId> ids;
    for (std::uint32_t i = 0; i < kSpreadLearners; ++i) ids.emplace_back(i);
    return {"run", case_.options, ids, 2, 7};
  }
  void Serve() {
    store_ = MustOpen(directory_.Path("cloud.db"));
    std::vector<ServedRun> runs;
    runs.push_back(*ServedRun::Open(Settings(), *store_));
    loop_ = std::make_unique<CloudLoop>(std::move(runs), std::chrono::milliseconds(50));
  }
  // Everybody in a thread of its own; `body` runs a host.
  void RunAll(const std::function<Result<std::string>(std::uint32_t, std::unique_ptr<Host>&)>& body,
              std::vector<std::unique_ptr<Host>>& hosts, std::vector<std::string>& ends) {
    hosts.clear();
    ends.assign(kSpreadLearners, "");
    for (std::uint32_t i = 0; i < kSpreadLearners; ++i) hosts.push_back(MakeHost(i));
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < kSpreadLearners; ++i) {
      threads.emplace_back([&, i] {
        const Result<std::string> end = body(i, hosts[i]);
        EXPECT_TRUE(end) << end.error().message;
        if (end) ends[i] = *end;
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  void RunServed() {
    RunAll(
        [&](std::uint32_t, std::unique_ptr<Host>& host) {
          LoopExchange exchange(*loop_);
          return RunToEnd(*host, exchange);
        },
        hosts_, ends_);
  }
  static std::string BytesOf(const std::vector<std::unique_ptr<Host>>& hosts) {
    std::vector<const Host*> all;
    std::string states;
    for (const auto& host : hosts) {
      all.push_back(host.get());
      states += ToBytes(host->state());
    }
    return BytesOfLearners(all) + states;
  }
  // Stops the Cloud and runs everything once more from the log.
  void ExpectSameFromLog() {
    loop_.reset();
    const Result<RunLog> read = ReadRunLog(*store_, "run");
    ASSERT_TRUE(read) << read.error().message;
    log_ = *LogFromText(LogToText(*read), "log");
    const ServedSettings settings = Settings();
    Cloud cloud(settings.options, settings.learners, settings.race_seed);
    ReplayExchange exchange(log_, "log.jsonl", cloud);
    std::vector<std::unique_ptr<Host>> hosts;
    std::vector<std::string> ends;
    RunAll([&](std::uint32_t, std::unique_ptr<Host>& host) { return RunToEnd(*host, exchange); },
           hosts, ends);
    EXPECT_TRUE(exchange.CheckAllHeard());
    EXPECT_EQ(BytesOf(hosts), BytesOf(hosts_));
    EXPECT_EQ(ends, ends_);
    const ServedRun served = *ServedRun::Open(settings, *store_);
    EXPECT_EQ(ToBytes(cloud.state()), ToBytes(served.cloud().state()));
  }
  // How everybody's run from a log ends, and whether all of the log was heard.
  struct Replayed {
    std::vector<Result<std::string>> ends;
    Result<void> heard;
  };
  Replayed RunFromLog(const RunLog& log) const {
    const ServedSettings settings = Settings();
    Cloud cloud(settings.options, settings.learners, settings.race_seed);
    ReplayExchange exchange(log, "log.jsonl", cloud);
    std::vector<Result<std::string>> ends(kSpreadLearners, std::string());
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < kSpreadLearners; ++i) {
      threads.emplace_back([&, i] { ends[i] = RunToEnd(*MakeHost(i), exchange); });
    }
    for (std::thread& thread : threads) thread.join();
    return {std::move(ends), exchange.CheckAllHeard()};
  }
  std::ptrdiff_t NumEvents(std::string_view kind) const {
    return std::ranges::count(log_.events, kind, &LogEvent::kind);
  }

  SpreadCase case_{"async", {.rounds = 40, .async = true}, true};
  const TemporaryDirectory directory_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<CloudLoop> loop_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::string> ends_;
  RunLog log_;
};

TEST_F(ReplayTest, OfAnAsynchronousRunGivesItsBytes) {
  Serve();
  RunServed();
  ExpectSameFromLog();
  EXPECT_GT(NumEvents("round"), 8);
  for (const LogEvent& event : log_.events) {
    EXPECT_EQ(event.kind == "round", !event.incumbent.empty()) << event.sequence;
  }
}

// A learner that is killed after it submitted, and after it closed, and begins again from what it
// had on disk after the round before.
TEST_F(ReplayTest, OfALearnerThatWasKilledGivesWhatItHeardLast) {
  Serve();
  RunAll(
      [&](std::uint32_t index, std::unique_ptr<Host>& host) -> Result<std::string> {
        LoopExchange exchange(*loop_);
        if (index != 3) return RunToEnd(*host, exchange);
        FEDGEN_TRY(host->Join(exchange));
        for (int kill = 1; kill <= 6 && host->ending() == Ending::kNotYet; ++kill) {
          const HostCheckpoint disk = CheckpointOf(*host, "");
          FEDGEN_TRY(host->Round(exchange));
          if (kill % 2 == 0) continue;
          host = MakeHost(index);
          FEDGEN_TRY(Restore(disk, "", "disk", *host));
        }
        return RunToEnd(*host, exchange);
      },
      hosts_, ends_);
  ExpectSameFromLog();
  EXPECT_GE(NumEvents("answered-again"), 1);
}

// One learner does not speak until the others have left it out; then it comes back.
TEST_F(ReplayTest, OfARunThatWentOnWithoutSomebodyGivesItsBytes) {
  case_ = {"patience", {.rounds = 30, .patience = 0.02}, true};
  Serve();
  std::promise<void> gone_on;
  std::once_flag once;
  const auto go_on = [&] { std::call_once(once, [&] { gone_on.set_value(); }); };
  RunAll(
      [&](std::uint32_t index, std::unique_ptr<Host>& host) {
        LoopExchange exchange(*loop_);
        exchange.before_submit = [&](int round) {
          if (index == 0 && round >= 6) go_on();
          if (index == 5 && round == 2) gone_on.get_future().wait();
        };
        Result<std::string> end = RunToEnd(*host, exchange);
        if (index == 0) go_on();
        return end;
      },
      hosts_, ends_);
  ExpectSameFromLog();
  EXPECT_GE(NumEvents("left-out"), 1);
  const std::vector<LoggedRound> rounds = RoundsOf(log_);
  ASSERT_GT(rounds.size(), 2U);
  EXPECT_EQ(std::ranges::count(rounds[2].participants, LearnerId(5)), 0);
}

TEST_F(ReplayTest, OfAnotherLearnerIsOneError) {
  case_.options.rounds = 3;
  Serve();
  RunServed();
  loop_.reset();
  RunLog log = *ReadRunLog(*store_, "run");
  for (LogEvent& event : log.events) {
    if (event.kind == "round" && event.learner == LearnerId(2) && event.step == 3) {
      event.hash = Sha256Hex("other");
    }
  }
  for (const Result<std::string>& end : RunFromLog(log).ends) {
    ASSERT_FALSE(end);
    EXPECT_THAT(end.error().message, HasSubstr("learner 3, round 2: it says something else"));
  }
}

// Everybody has come to an end, and the log has more.
TEST_F(ReplayTest, OfALogWithAnEventThatNobodySaysIsAnError) {
  case_ = {"rounds", {.rounds = 4}, true};
  Serve();
  RunServed();
  loop_.reset();
  RunLog log = *ReadRunLog(*store_, "run");
  EXPECT_TRUE(RunFromLog(log).heard);
  const auto sequence = static_cast<std::int64_t>(log.events.size()) + 1;
  log.events.push_back({sequence, "race", LearnerId(2), 11, Sha256Hex("made up"), 0, ""});
  const Replayed replayed = RunFromLog(log);
  for (const Result<std::string>& end : replayed.ends) EXPECT_TRUE(end);
  ASSERT_FALSE(replayed.heard);
  EXPECT_EQ(replayed.heard.error().message,
            fmt::format("log.jsonl:{}: learner 3, race: nobody says this: the log was altered, or "
                        "is of another program",
                        sequence + 1));
}

// What learners heard is part of the log: another round or incumbent there is not believed.
TEST_F(ReplayTest, OfAnAlteredAnswerIsOneError) {
  case_ = {"rounds", {.rounds = 4}, true};
  Serve();
  RunServed();
  loop_.reset();
  const RunLog whole = *ReadRunLog(*store_, "run");
  const auto ends_with = [&](const std::function<void(LogEvent&)>& alter, const std::string& says) {
    RunLog log = whole;
    const auto answer = std::ranges::find(log.events, 2, &LogEvent::answered);
    EXPECT_NE(answer, log.events.end());
    alter(*answer);
    for (const Result<std::string>& end : RunFromLog(log).ends) {
      ASSERT_FALSE(end);
      EXPECT_THAT(end.error().message, HasSubstr(says));
    }
  };
  const std::string answers = "round 2: the Cloud answers otherwise";
  ends_with([](LogEvent& event) { event.incumbent = Sha256Hex("other"); }, answers);
  ends_with([](LogEvent& event) { event.incumbent.clear(); }, answers);
  ends_with([](LogEvent& event) { event.answered = 3; }, answers);
  ends_with([](LogEvent& event) { event.answered = 0, event.incumbent.clear(); }, answers);
  const std::string follows = "does not follow from those before it";
  ends_with([](LogEvent& event) { event.kind = "close"; }, follows);
  ends_with([](LogEvent& event) { event.step += 2; }, follows);
}

// However much of it there is: nobody waits for what will not come.
TEST_F(ReplayTest, OfARunThatWasNotOverEndsWhereTheLogDoes) {
  case_ = {"rounds", {.rounds = 4}, true};
  Serve();
  RunServed();
  loop_.reset();
  const RunLog whole = *ReadRunLog(*store_, "run");
  for (std::size_t events = 1; events < whole.events.size(); ++events) {
    RunLog log = whole;
    log.events.resize(events);
    int missed = 0;
    for (const Result<std::string>& end : RunFromLog(log).ends) {
      if (end) continue;
      ++missed;
      EXPECT_EQ(end.error().code, ErrorCode::kMissed) << end.error().message;
    }
    EXPECT_GE(missed, 1) << events;
  }
}

TEST_F(ReplayTest, OfAHostThatGivesUpTellsTheOthersWhy) {
  case_ = {"rounds", {.rounds = 4}, true};
  Serve();
  RunServed();
  loop_.reset();
  const ServedSettings settings = Settings();
  Cloud cloud(settings.options, settings.learners, settings.race_seed);
  ReplayExchange exchange(*ReadRunLog(*store_, "run"), "log.jsonl", cloud);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 1; i < kSpreadLearners; ++i) {
    threads.emplace_back([&, i] {
      const Result<std::string> end = RunToEnd(*MakeHost(i), exchange);
      ASSERT_FALSE(end);
      EXPECT_EQ(end.error().message, "learner-1: disk full");
    });
  }
  exchange.GiveUp({ErrorCode::kIo, "learner-1: disk full"});
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace fedgen
