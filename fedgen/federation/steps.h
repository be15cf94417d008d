// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "fedgen/base/result.h"
#include "fedgen/fuse/cloud.h"

namespace fedgen {

// A message to a Cloud, whichever step of a run it belongs to, and what the Cloud answers. All but
// the last kind are learners'; nobody answers the Cloud's own.

using StepMessage = std::variant<JoinMessage, RoundMessage, CloseMessage, FinalMessage, RaceMessage,
                                 LeaveMessage, ControlMessage>;

/// To who leaves.
struct Farewell {
  bool operator==(const Farewell&) const = default;
  friend void Fields(auto& /*archive*/, Is<Farewell> auto& /*farewell*/) {}
};

/// In the order of StepMessage.
using StepAnswer = std::variant<Welcome, RoundAnswer, Ending, Finalists, RaceAnswer, Farewell>;

/// What people call it: those of learners in the order of StepMessage, then the Cloud's own.
inline constexpr std::array<std::string_view, 9> kMessageKinds = {
    "join", "round", "close", "final", "race", "leave", "left-out", "revoked", "answered-again"};
std::string_view KindOf(const StepMessage& message);
/// Nothing if it is a learner's.
std::optional<ControlMessage::Kind> ControlKindOf(std::string_view kind);

/// Who says it.
LearnerId SpeakerOf(const StepMessage& message);

/// Which step of its speaker it belongs to (fuse/cloud.h); kNoStep if to none.
inline constexpr int kNoStep = std::numeric_limits<int>::max();
int StepOf(const Cloud& cloud, const StepMessage& message);

/// The same for the row in which a message is kept, before it is heard: what belongs to no step,
/// and a round that is closed once more, is known by its place in the sequence, below 0.
int RowStepOf(const Cloud& cloud, const StepMessage& message, std::int64_t sequence);

/// Hears it, as Cloud::Receive. Returns whether it is new: a repetition is not.
Result<bool> Hear(const StepMessage& message, Cloud& cloud);

/// What there is to answer; nothing while somebody is still to be heard.
std::optional<StepAnswer> AnswerOf(const Cloud& cloud, const StepMessage& message);

/// Which round was answered by hearing a message: to everybody, or to the one it is about.
struct AnsweredRound {
  int round = 0;            // 0 for none
  std::string incumbent{};  // its hash in that answer; empty for none

  bool operator==(const AnsweredRound&) const = default;
};
/// `before` is cloud.state().answer.round before it was heard.
AnsweredRound AnsweredBy(const StepMessage& message, int before, const Cloud& cloud);

/// As bytes and back: which of them it is, then its fields.
std::string StepToBytes(const StepMessage& message);
Result<StepMessage> StepFromBytes(std::string_view bytes);

}  // namespace fedgen
