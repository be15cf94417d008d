// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fuse/cloud.h"

// What there is to answer.

namespace fedgen {

std::optional<Welcome> Cloud::WelcomeOf(LearnerId learner) const {
  const Member* member = FindMember(state_.members, learner);
  const bool is_known = member != nullptr && member->step >= kJoinStep && state_.step > kJoinStep &&
                        member->joined != kRoundToCome;
  if (!is_known) return std::nullopt;
  Welcome welcome;
  welcome.origin = member->initial_origin;
  welcome.round = member->joined;
  if (options_.async) {
    if (member->told == 0) welcome.ending = member->ending;
  } else if (member->joined == state_.round) {
    welcome.ending = state_.ending;
  }
  if (options_.algorithm == Algorithm::kFedAvg) welcome.start = state_.start;
  return welcome;
}

const RoundAnswer* Cloud::AnswerTo(int round) const {
  return round >= 1 && round == state_.answer.round ? &state_.answer : nullptr;
}

std::optional<RoundAnswer> Cloud::AnswerTo(LearnerId learner, int round) const {
  const Member* member = FindMember(state_.members, learner);
  if (member == nullptr) return std::nullopt;
  if (options_.async) return AnswerOfNow(learner, round);
  if (member->rests() && SubmitStep(round) > member->step) return AnswerToResting();
  if (const RoundAnswer* answer = AnswerTo(round)) return *answer;
  if (member->rests()) return AnswerToResting();  // it forgot that it does: it was killed
  const bool is_behind = is_tolerant() && round < state_.answer.round &&
                         member->told == state_.answer.round && state_.round == member->told;
  if (!is_behind) return std::nullopt;
  RoundAnswer answer = state_.answer;
  answer.ending = state_.ending;
  return answer;
}

// Who rests hears of the last round, and that it was: what it would have after each in between does
// not show in what it has then.
std::optional<RoundAnswer> Cloud::AnswerToResting() const {
  if (state_.ending == Ending::kNotYet) return std::nullopt;
  RoundAnswer answer = state_.answer;
  answer.ending = state_.ending;
  return answer;
}

bool Cloud::IsResting(LearnerId learner) const {
  const Member* member = FindMember(state_.members, learner);
  return !options_.async && member != nullptr && member->rests();
}

std::optional<Ending> Cloud::EndingAfter(int closed) const {
  if (closed > round()) return std::nullopt;
  return closed == round() ? state_.ending : Ending::kNotYet;
}

bool Cloud::NeedsAnotherAnswer(const RoundMessage& message) const {
  const Member* member = FindMember(state_.members, message.learner);
  if (member == nullptr || IsResting(message.learner)) return false;
  const int step = SubmitStep(message.round);
  const bool has_finished =
      options_.async && member->ending != Ending::kNotYet && member->told == message.round;
  const bool is_its_last =
      member->step >= step && member->step <= CloseStep(message.round) + (has_finished ? 1 : 0);
  if (!is_its_last || options_.async) return is_its_last;
  return is_tolerant() && message.round < state_.answer.round && member->told != kRoundToCome &&
         !AnswerTo(message.learner, message.round);
}

Result<bool> Cloud::AnswerAgain(Member& member) {
  if (member.step < SubmitStep(1)) return Refused(member.id, "has not submitted");
  ComeBack(member);
  if (options_.async) {
    AnswerAgainAsync(member);
  } else {
    member.told = RoundToGoOnFrom();
  }
  return true;
}

}  // namespace fedgen
