// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "fedgen/base/result.h"
#include "fedgen/fuse/cloud.h"

namespace fedgen {

// A message of a learner, whichever step of a run it belongs to, and what a Cloud answers.

using StepMessage =
    std::variant<JoinMessage, RoundMessage, CloseMessage, FinalMessage, RaceMessage>;

/// In the order of StepMessage.
using StepAnswer = std::variant<Welcome, RoundAnswer, Ending, Finalists, RaceAnswer>;

/// Who says it.
LearnerId SpeakerOf(const StepMessage& message);

/// Which step of the Cloud it belongs to (fuse/cloud.h); the final one comes after the last round.
int StepOf(const Cloud& cloud, const StepMessage& message);

/// Hears it, as Cloud::Receive. Returns whether it is new: a repetition is not.
Result<bool> Hear(const StepMessage& message, Cloud& cloud);

/// What there is to answer; nothing while somebody is still to be heard.
std::optional<StepAnswer> AnswerOf(const Cloud& cloud, const StepMessage& message);

/// Whether there is something to answer, which AnswerOf() would copy.
bool HasAnswer(const Cloud& cloud, const StepMessage& message);

/// As bytes and back: which of them it is, then its fields.
std::string StepToBytes(const StepMessage& message);
Result<StepMessage> StepFromBytes(std::string_view bytes);

}  // namespace fedgen
