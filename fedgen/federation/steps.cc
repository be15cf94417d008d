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

}  // namespace

LearnerId SpeakerOf(const StepMessage& message) {
  return std::visit(Overloaded{[](const FinalMessage& m) { return m.final.learner; },
                               [](const auto& m) { return m.learner; }},
                    message);
}

int StepOf(const Cloud& cloud, const StepMessage& message) {
  return std::visit(Overloaded{[](const JoinMessage&) { return 0; },
                               [](const RoundMessage& m) { return 2 * m.round - 1; },
                               [](const CloseMessage& m) { return 2 * m.round; },
                               [&](const FinalMessage&) { return cloud.finish_step(); },
                               [&](const RaceMessage&) { return cloud.race_step(); }},
                    message);
}

Result<bool> Hear(const StepMessage& message, Cloud& cloud) {
  // Whoever is heard for the first time in a step is no longer waited for, or completes it.
  const int step = cloud.state().step;
  const std::int64_t waiting = cloud.state().waiting;
  FEDGEN_TRY(std::visit([&](const auto& m) { return cloud.Receive(m); }, message));
  return cloud.state().step != step || cloud.state().waiting != waiting;
}

std::optional<StepAnswer> AnswerOf(const Cloud& cloud, const StepMessage& message) {
  const auto wrap = [](auto answer) -> std::optional<StepAnswer> {
    if (!answer) return std::nullopt;
    return *std::move(answer);
  };
  return std::visit(
      Overloaded{[&](const JoinMessage& m) { return wrap(cloud.WelcomeOf(m.learner)); },
                 [&](const RoundMessage& m) { return wrap(cloud.AnswerTo(m.round)); },
                 [&](const CloseMessage& m) { return wrap(cloud.EndingAfter(m.round)); },
                 [&](const FinalMessage&) { return wrap(cloud.FindFinalists()); },
                 [&](const RaceMessage&) { return wrap(cloud.FindRaceAnswer()); }},
      message);
}

bool HasAnswer(const Cloud& cloud, const StepMessage& message) {
  // Of a round it is a policy, of the others some words; the finals of all are asked for once.
  if (const auto* round = std::get_if<RoundMessage>(&message)) {
    return cloud.AnswerTo(round->round) != nullptr;
  }
  return AnswerOf(cloud, message).has_value();
}

std::string StepToBytes(const StepMessage& message) {
  std::string bytes(1, static_cast<char>(message.index()));
  return bytes + std::visit([](const auto& m) { return ToBytes(m); }, message);
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
