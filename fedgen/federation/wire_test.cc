// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>

#include "fedgen/base/random.h"
#include "fedgen/federation/wire-inl.h"

namespace fedgen {
namespace {

using ::testing::HasSubstr;

// Draws messages and answers with everything in them that there can be.
class Drawing {
 public:
  explicit Drawing(std::uint64_t seed) : key_(seed) {}

  int Below(int bound) { return UniformInt(key_.Block(draws_++)[0], 0, bound - 1); }
  LearnerId Learner() { return Below(9) == 0 ? LearnerId::Cloud() : LearnerId(Word()); }
  std::vector<float> Theta() {
    std::vector<float> theta(static_cast<std::size_t>(Below(5)));
    for (float& value : theta) value = UnitFloat(Word()) - 0.5F;
    return theta;
  }
  Submission Submitted() {
    Submission s{Learner(), Below(1000), Learner(), Number(), Number(), Theta(), ""};
    s.hash = HashOf(s.theta);
    return s;
  }
  std::vector<RaceTally> Tallies() {
    std::vector<RaceTally> tallies;
    for (int i = Below(4); i > 0; --i) {
      tallies.push_back({Below(1 << 30), Below(1 << 30), std::int64_t{Below(1 << 30)} << 32});
    }
    return tallies;
  }
  StepMessage Message() {
    switch (Below(6)) {
      case 0:
        return JoinMessage{Learner(), Theta(), Below(2) == 0 ? "" : std::string(64, 'a')};
      case 1: {
        RoundMessage m{Learner(), Below(1000), {}, {}, {}, Theta(), Below(1 << 30)};
        if (Below(2) == 0) m.submission = Submitted();
        for (int i = Below(3); i > 0; --i) m.judged.push_back(Submitted());
        for (int i = Below(3); i > 0; --i) m.verdicts.push_back({Learner(), RankOf(Submitted())});
        return m;
      }
      case 2:
        return CloseMessage{Learner(), Below(1000), Learner(), static_cast<Outlook>(Below(3))};
      case 3:
        return RaceMessage{Learner(), Tallies()};
      case 4:
        return LeaveMessage{Learner()};
      default:
        return FinalMessage{Submitted()};
    }
  }
  StepAnswer Answer() {
    switch (Below(6)) {
      case 0:
        return Welcome{Learner(), Theta(), Below(1000),
                       static_cast<Ending>(Below(NumValues(Ending{})))};
      case 1: {
        RoundAnswer a;
        a.round = Below(1000);
        a.ending = static_cast<Ending>(Below(NumValues(Ending{})));
        for (int i = Below(4); i > 0; --i) a.participants.push_back(Learner());
        if (Below(2) == 0) a.incumbent = Submitted();
        for (int i = Below(3); i > 0; --i) a.candidates.push_back({Learner(), Learner(), Theta()});
        a.mean = Theta();
        a.episodes = Below(1 << 30);
        return a;
      }
      case 2:
        return static_cast<Ending>(Below(NumValues(Ending{})));
      case 4:
        return Farewell{};
      case 3: {
        RaceAnswer a;
        for (int i = Below(4); i > 0; --i) a.parts.push_back({Learner(), Tallies()});
        return a;
      }
      default: {
        Finalists f;
        for (int i = Below(4); i > 0; --i) f.finals.push_back(Submitted());
        if (Below(2) == 0) f.incumbent = Submitted();
        f.average = Theta();
        f.seed = (std::uint64_t{Word()} << 32U) + Word();
        for (int i = Below(4); i > 0; --i) f.racers.push_back(Learner());
        return f;
      }
    }
  }

 private:
  std::uint32_t Word() { return key_.Block(draws_++)[0]; }
  double Number() { return static_cast<double>(UnitFloat(Word())); }
  Key key_;
  std::uint64_t draws_ = 0;
};

std::string BytesOf(const StepAnswer& answer) {
  return std::to_string(answer.index()) +
         std::visit([](const auto& a) { return ToBytes(a); }, answer);
}

TEST(Wire, BringsEveryMessageAsItWas) {
  Drawing drawing(1);
  for (int i = 0; i < 1000; ++i) {
    const StepMessage message = drawing.Message();
    v1::StepRequest arrived;
    ASSERT_TRUE(arrived.ParseFromString(ToWire("a run", message).SerializeAsString()));
    EXPECT_EQ(arrived.run(), "a run");
    const Result<StepMessage> read = FromWire(arrived);
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(StepToBytes(*read), StepToBytes(message));
    const Result<StepMessage> kept = StepFromBytes(StepToBytes(message));
    ASSERT_TRUE(kept) << kept.error().message;
    ASSERT_EQ(StepToBytes(*kept), StepToBytes(message));
  }
}

TEST(Wire, BringsEveryAnswerAsItWas) {
  Drawing drawing(2);
  for (int i = 0; i < 1000; ++i) {
    const StepAnswer answer = drawing.Answer();
    v1::StepReply arrived;
    ASSERT_TRUE(arrived.ParseFromString(ToWire(answer).SerializeAsString()));
    const Result<std::optional<StepAnswer>> read = FromWire(arrived);
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_TRUE(read->has_value());
    ASSERT_EQ(BytesOf(**read), BytesOf(answer));
  }
  const Result<std::optional<StepAnswer>> pending = FromWire(ToWire(std::nullopt));
  ASSERT_TRUE(pending);
  EXPECT_FALSE(pending->has_value());
}

TEST(Wire, SaysWhatIsWrong) {
  const auto problem = [](const std::function<void(v1::StepRequest&)>& change) {
    Submission s{LearnerId(1), 2, LearnerId(1), 0.5, 0.1, {1, 2}, ""};
    s.hash = HashOf(s.theta);
    RoundMessage m{LearnerId(1), 3, s, {}, {}, {}, 10};
    v1::StepRequest request = ToWire("run", m);
    change(request);
    const Result<StepMessage> read = FromWire(request);
    return read ? "" : read.error().message;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto submission = [](v1::StepRequest& r) {
    return r.mutable_round()->mutable_submission();
  };
  EXPECT_EQ(problem([](auto&) {}), "");
  EXPECT_EQ(problem([](auto& r) { r.clear_message(); }), "message: is missing");
  EXPECT_THAT(problem([&](auto& r) { submission(r)->set_y(nan); }), HasSubstr("submission.y"));
  EXPECT_THAT(problem([&](auto& r) { submission(r)->set_b(1 / 0.0); }), HasSubstr("submission.b"));
  EXPECT_THAT(problem([&](auto& r) { submission(r)->set_hash("x"); }), HasSubstr("hexadecimal"));
  EXPECT_THAT(problem([&](auto& r) { submission(r)->set_round(1U << 31); }), HasSubstr("round"));
  EXPECT_THAT(problem([&](auto& r) { submission(r)->add_theta(static_cast<float>(nan)); }),
              HasSubstr("submission.theta"));
  EXPECT_THAT(problem([](auto& r) { r.mutable_join()->set_task("secret"); }), HasSubstr("task"));
  EXPECT_THAT(problem([](auto& r) { r.mutable_final()->mutable_final()->set_learner(2); }),
              HasSubstr("hash"));
}

std::set<std::string> FieldsOf(const google::protobuf::Descriptor* type) {
  std::set<std::string> names;
  for (int i = 0; i < type->field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = type->field(i);
    names.insert(type->name() + "." + field->name());
    if (field->message_type() != nullptr) names.merge(FieldsOf(field->message_type()));
  }
  return names;
}

// The letter of docs/protocol.md: all that a learner can say, by name. A new field is a new thing
// that leaves a learner, so it must be argued there first.
TEST(Wire, HasNoPlaceForWorlds) {
  EXPECT_THAT(FieldsOf(v1::EnterRequest::descriptor()),
              ::testing::UnorderedElementsAre("EnterRequest.run", "EnterRequest.learner",
                                              "EnterRequest.version", "EnterRequest.settings"));
  EXPECT_THAT(FieldsOf(v1::StepRequest::descriptor()),
              ::testing::UnorderedElementsAre(
                  "StepRequest.run", "StepRequest.learner", "StepRequest.join", "StepRequest.round",
                  "StepRequest.close", "StepRequest.final", "StepRequest.race", "StepRequest.leave",
                  "StepRequest.holds", "StepRequest.signature", "Join.theta", "Join.task",
                  "Race.tallies", "Tally.episodes", "Tally.reached", "Tally.cost", "Round.round",
                  "Round.submission", "Round.judged", "Round.verdicts", "Round.moved",
                  "Round.episodes", "Close.round", "Close.origin", "Close.outlook", "Final.final",
                  "Submission.learner", "Submission.round", "Submission.origin", "Submission.y",
                  "Submission.b", "Submission.theta", "Submission.hash", "Verdict.verifier",
                  "Verdict.record", "Rank.bound", "Rank.learner", "Rank.round", "Rank.hash"));
}

// Anybody in the federation may see it: names, rounds, hashes and what an incumbent costs.
TEST(Wire, TellsNoPolicyByItsStatus) {
  EXPECT_THAT(FieldsOf(v1::StatusRequest::descriptor()),
              ::testing::ElementsAre("StatusRequest.run"));
  EXPECT_THAT(FieldsOf(v1::StatusReply::descriptor()),
              ::testing::UnorderedElementsAre(
                  "StatusReply.now", "StatusReply.version", "StatusReply.peer", "StatusReply.runs",
                  "RunStatus.run", "RunStatus.round", "RunStatus.phase", "RunStatus.ending",
                  "RunStatus.incumbent", "RunStatus.learners", "RunStatus.awaited",
                  "RunStatus.members", "IncumbentStatus.learner", "IncumbentStatus.round",
                  "IncumbentStatus.y", "IncumbentStatus.b", "IncumbentStatus.hash",
                  "MemberStatus.learner", "MemberStatus.step", "MemberStatus.settled",
                  "MemberStatus.awaited", "MemberStatus.silence", "MemberStatus.presence"));
}

TEST(Wire, BringsAStatusAsItWas) {
  CloudStatus status{12.5, "fedgen 1", "learner-2", {}};
  RunStatus run;
  run.progress = {"run", 3, "close", 2, 1};
  run.ending = "settled";
  run.incumbent = Submission{LearnerId(1), 2, {}, 0.25, 0.125, {}, "ab"};
  run.members = {{LearnerId(0), 5, true, true, 1.5}, {LearnerId(1), -1, false, false, {}, "left"}};
  status.runs = {run, RunStatus{}};
  const v1::StatusReply sent = ToWire(status);
  const CloudStatus read = FromWire(sent);
  EXPECT_EQ(ToWire(read).SerializeAsString(), sent.SerializeAsString());
  ASSERT_EQ(read.runs.size(), 2U);
  EXPECT_EQ(read.runs[0].progress, run.progress);
  EXPECT_EQ(read.runs[0].incumbent->hash, "ab");
  EXPECT_EQ(read.runs[0].members[0].silence, 1.5);
  EXPECT_EQ(read.runs[0].members[1].silence, std::nullopt);
  EXPECT_EQ(read.runs[0].members[1].presence, "left");
  EXPECT_EQ(read.runs[1].incumbent, std::nullopt);
}

}  // namespace
}  // namespace fedgen
