// SPDX-License-Identifier: Apache-2.0
#include "fedgen/federation/steps.h"

#include "fedgen/base/archive.h"

namespace fedgen {
namespace {

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

template <std::size_t kIndex = 0>
void ReadFields(std::size_t index, Reader& reader, StepMessage& message) {
  if constexpr (kIndex < std::variant_size_v<StepMessage>) {
    if (index != kIndex) return ReadFields<kIndex + 1>(index, reader, message);
    reader(message.emplace<kIndex>());
  } else {
    reader.Fail("is no message");
  }
}

std::optional<Farewell> FarewellTo(const Cloud& cloud, LearnerId learner) {
  const Member* member = FindMember(cloud.state().members, learner);
  if (member == nullptr || member->presence != Presence::kLeft) return std::nullopt;
  return Farewell{};
}

std::optional<RoundAnswer> RoundAnsweredBy(const StepMessage& message, int before,
                                           const Cloud& cloud) {
  const CloudState& state = cloud.state();
  if (state.answer.round != before) return state.answer;
  if (const auto* round = std::get_if<RoundMessage>(&message)) {
    return cloud.AnswerTo(round->learner, round->round);
  }
  const auto* control = std::get_if<ControlMessage>(&message);
  if (control == nullptr || control->kind != ControlMessage::Kind::kAnsweredAgain) {
    return std::nullopt;
  }
  const Member* member = FindMember(state.members, control->learner);
  return cloud.AnswerTo(control->learner, (member->step + 1) / 2);
}

constexpr std::size_t kFirstControl = std::variant_size_v<StepMessage> - 1;

}  // namespace

std::string_view KindOf(const StepMessage& message) {
  const auto* control = std::get_if<ControlMessage>(&message);
  if (control == nullptr) return kMessageKinds[message.index()];
  return kMessageKinds[kFirstControl + static_cast<std::size_t>(control->kind)];
}

std::optional<ControlMessage::Kind> ControlKindOf(std::string_view kind) {
  for (std::size_t at = kFirstControl; at < kMessageKinds.size(); ++at) {
    if (kMessageKinds[at] == kind) return static_cast<ControlMessage::Kind>(at - kFirstControl);
  }
  return std::nullopt;
}

LearnerId SpeakerOf(const StepMessage& message) {
  return std::visit(Overloaded{[](const FinalMessage& m) { return m.final.learner; },
                               [](const ControlMessage&) { return LearnerId::Cloud(); },
                               [](const auto& m) { return m.learner; }},
                    message);
}

int StepOf(const Cloud& cloud, const StepMessage& message) {
  return std::visit(
      Overloaded{[](const JoinMessage&) { return 0; },
                 [](const RoundMessage& m) { return 2 * m.round - 1; },
                 [](const CloseMessage& m) { return 2 * m.round; },
                 [&](const FinalMessage& m) { return cloud.FinishStepOf(m.final.learner); },
                 [&](const RaceMessage& m) { return cloud.FinishStepOf(m.learner) + 1; },
                 [](const auto&) { return kNoStep; }},
      message);
}

int RowStepOf(const Cloud& cloud, const StepMessage& message, std::int64_t sequence) {
  const Member* member = FindMember(cloud.state().members, SpeakerOf(message));
  const bool is_once_more =
      std::holds_alternative<CloseMessage>(message) && member != nullptr && member->rewound;
  const int step = is_once_more ? kNoStep : StepOf(cloud, message);
  return step == kNoStep ? static_cast<int>(-sequence) : step;
}

Result<bool> Hear(const StepMessage& message, Cloud& cloud) {
  return std::visit([&](const auto& m) { return cloud.Receive(m); }, message);
}

std::optional<StepAnswer> AnswerOf(const Cloud& cloud, const StepMessage& message) {
  const auto wrap = [](auto answer) -> std::optional<StepAnswer> {
    if (!answer) return std::nullopt;
    return *std::move(answer);
  };
  return std::visit(
      Overloaded{[&](const JoinMessage& m) { return wrap(cloud.WelcomeOf(m.learner)); },
                 [&](const RoundMessage& m) { return wrap(cloud.AnswerTo(m.learner, m.round)); },
                 [&](const CloseMessage& m) { return wrap(cloud.EndingAfter(m.learner, m.round)); },
                 [&](const FinalMessage&) { return wrap(cloud.FindFinalists()); },
                 [&](const RaceMessage&) { return wrap(cloud.FindRaceAnswer()); },
                 [&](const LeaveMessage& m) { return wrap(FarewellTo(cloud, m.learner)); },
                 [](const ControlMessage&) { return std::optional<StepAnswer>(); }},
      message);
}

AnsweredRound AnsweredBy(const StepMessage& message, int before, const Cloud& cloud) {
  const std::optional<RoundAnswer> answer = RoundAnsweredBy(message, before, cloud);
  if (!answer) return {};
  return {answer->round, answer->incumbent ? answer->incumbent->hash : ""};
}

std::string StepToBytes(const StepMessage& message) {
  Writer writer;
  writer(static_cast<std::uint8_t>(message.index()));
  std::visit([&](const auto& m) { writer(m); }, message);
  return writer.Take();
}

Result<StepMessage> StepFromBytes(std::string_view bytes) {
  StepMessage message;
  Reader reader(bytes);
  std::uint8_t index = 0;
  reader(index);
  ReadFields(index, reader, message);
  reader.Finish();
  if (!reader.problem().empty()) return Error{ErrorCode::kData, reader.problem()};
  return message;
}

}  // namespace fedgen
