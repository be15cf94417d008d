// SPDX-License-Identifier: Apache-2.0
#include "fedgen/federation/run_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedgen/base/file_testing.h"
#include "fedgen/federation/served_run.h"
#include "fedgen/store/store_testing.h"

namespace fedgen {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

RoundMessage Rests(std::uint32_t learner, int round) {
  return {LearnerId(learner), round, {}, {}, {}, {}, 7};
}

// Three learners; the last is silent in round 1, submits it late, and repeats it later still.
RunLog LogOfALateLearner(Store& store) {
  const ServedSettings settings{
      "run", {.rounds = 3, .patience = 1}, {LearnerId(0), LearnerId(1), LearnerId(2)}, 2};
  Result<ServedRun> run = ServedRun::Open(settings, store);
  EXPECT_TRUE(run);
  const auto hear = [&](const StepMessage& message) {
    const auto heard = run->Hear(message);
    EXPECT_TRUE(heard) << heard.error().message;
  };
  for (const std::uint32_t i : {0U, 1U, 2U}) hear(JoinMessage{LearnerId(i), {1, 2}});
  RoundMessage first = Rests(0, 1);
  first.submission = {LearnerId(0), 1, LearnerId(0), 0.5, 0.125, {1, 2}, HashOf({{1.0F, 2.0F}})};
  hear(first);
  hear(Rests(1, 1));
  EXPECT_TRUE(run->LeaveOut(LearnerId(2)));
  for (const std::uint32_t i : {0U, 1U}) {
    hear(CloseMessage{LearnerId(i), 1, LearnerId(0)});
  }
  for (const std::uint32_t i : {1U, 0U}) hear(Rests(i, 2));
  for (const std::uint32_t i : {0U, 1U}) {
    hear(CloseMessage{LearnerId(i), 2, LearnerId(0)});
  }
  hear(Rests(2, 1));  // goes on from round 2
  EXPECT_TRUE(run->Save());
  Result<RunLog> log = ReadRunLog(store, "run");
  EXPECT_TRUE(log) << log.error().message;
  return *log;
}

TEST(RunLog, SaysWhoTookPartAndWhatEverybodyReceived) {
  const TemporaryDirectory directory;
  const auto store = MustOpen(directory.Path("a.db"));
  const RunLog log = LogOfALateLearner(*store);
  ASSERT_EQ(log.events.size(), 13U);
  const std::string incumbent = HashOf({{1.0F, 2.0F}});
  EXPECT_EQ(log.events[5].kind, "left-out");
  EXPECT_EQ(log.events[5].learner, LearnerId(2));
  EXPECT_LT(log.events[5].step, 0);
  EXPECT_EQ(log.events[12].kind, "round");
  EXPECT_EQ(log.events[12].step, 1);
  EXPECT_EQ(log.events[12].answered, 2);
  EXPECT_EQ(log.events[12].incumbent, incumbent);
  EXPECT_EQ(log.events[3].answered, 0);
  EXPECT_THAT(RoundsOf(log),
              ElementsAre(LoggedRound{1, 6, {LearnerId(0), LearnerId(1)}, incumbent},
                          LoggedRound{2, 10, {LearnerId(0), LearnerId(1)}, incumbent}));
  ExpectError(ReadRunLog(*store, "other"), ErrorCode::kMismatch, "there is no run");
}

TEST(RunLog, ComesBackFromItsText) {
  const TemporaryDirectory directory;
  const auto store = MustOpen(directory.Path("a.db"));
  const RunLog log = LogOfALateLearner(*store);
  const std::string text = LogToText(log);
  EXPECT_THAT(text, HasSubstr("\"participants\":[1,2]"));
  const Result<RunLog> read = LogFromText(text, "log");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, log);

  const auto spoiled = [&](const std::string& what, const std::string& by) {
    std::string other = text;
    const std::size_t at = other.find(what);
    EXPECT_NE(at, std::string::npos) << what;
    return LogFromText(other.replace(at, what.size(), by), "log.jsonl");
  };
  const auto refused = [&](const std::string& what, const std::string& by, const char* why) {
    ExpectError(spoiled(what, by), ErrorCode::kData, why);
  };
  refused("fedgen-log", "other", "log.jsonl:1: format");
  refused("\"version\":1", "\"version\":9", "log.jsonl:1: version = 9");
  refused("\"run\":", "\"runs\":", "log.jsonl:1: runs: unknown key");
  refused("\"sequence\":3", "\"sequence\":4", "log.jsonl:4: sequence = 4: must be 3");
  refused("\"kind\":\"left-out\"", "\"kind\":\"lost\"", "kind = lost: is unknown");
  refused("\"learner\":1", "\"learner\":0", "learner = 0: must be an integer");
  refused("\"kind\":\"join\",\"learner\":1", "\"kind\":\"join\",\"learner\":4",
          "log.jsonl:5: learner = 1: has not joined");
  refused("\"step\":0", "\"step\":0.5", "step = 0.5");
  refused("\"hash\":\"", "\"hash\":\"x", "must be 64 hexadecimal digits");
  refused("\"answered\":1", "\"answered\":0", "answered = 0");
  refused("\"participants\":[1,2]", "\"participants\":[1]", "must be those who were heard");
  refused("\"participants\":[1,2]", "\"participants\":7", "must be an array");
  refused("{\"sequence\":2", "\n{\"sequence\":2", "log.jsonl:3: ");
  for (std::size_t length = 0; length < text.size(); length += 7) {
    const Result<RunLog> cut = LogFromText(std::string_view(text).substr(0, length), "log");
    if (!cut) {
      EXPECT_TRUE(IsOneLine(cut.error().message)) << cut.error().message;
    }
  }
}

// What an older program kept has no kinds.
TEST(RunLog, IsNotMadeUp) {
  const TemporaryDirectory directory;
  const auto store = MustOpen(directory.Path("a.db"));
  ExpectOk(store->Begin({"r", ""}));
  ExpectOk(store->Append("r", MessagesFrom(1, 2)));
  ExpectError(ReadRunLog(*store, "r"), ErrorCode::kData, "message 1 was kept by a program");
}

}  // namespace
}  // namespace fedgen
