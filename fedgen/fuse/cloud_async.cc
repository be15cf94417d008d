// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fedgen/base/check.h"
#include "fedgen/fuse/cloud.h"

// Runs without steps. Everybody has rounds of its own. A submission is answered at once with the
// incumbent of that moment, a close with whether the learner goes on. A learner that is settled
// would only spin: it waits at its close until the incumbent changes, or until everybody waits
// there: then nothing will ever change.
//
// Answers depend on when a message is heard, so they are those of its place among the messages. One
// who asks again, since its answer was lost, hears the incumbent of now, and that has a place too.

namespace fedgen {

std::optional<FieldError> Validate(const FederationOptions& options) {
  if (!(options.patience >= 0 && std::isfinite(options.patience))) {
    return FieldError{"patience", fmt::format("{}: must be >= 0", options.patience)};
  }
  if (!options.async) return std::nullopt;
  if (options.algorithm != Algorithm::kFedGen && options.algorithm != Algorithm::kLocal) {
    return FieldError{"async", fmt::format("true: must be false for algorithm = {}, which takes "
                                           "means of a round",
                                           NameOf(options.algorithm))};
  }
  if (options.average_every != 0) {
    return FieldError{"async", fmt::format("true: must be false for average_every = {}: there are "
                                           "no rounds of all",
                                           options.average_every)};
  }
  return std::nullopt;
}

Result<bool> Cloud::ReceiveAsync(const RoundMessage& message, Member& member) {
  const int step = 2 * message.round - 1;
  const bool is_new = step > member.step;
  if (is_new && (state_.step == 0 || member.ending != Ending::kNotYet)) {
    return Refused(member.id, state_.step == 0 ? kNotBegun : "goes on though the run is over");
  }
  if (FEDGEN_TRY(Hear(step, member, WordsOf(message))) == Hearing::kRepeated) return false;
  state_.episodes += message.episodes - member.episodes;
  member.episodes = message.episodes;
  if (!finals_are_known()) {
    const Submission* before = Incumbent(state_.knowledge);
    const std::optional<Rank> rank =
        before == nullptr ? std::nullopt : std::optional(RankOf(*before));
    Learn(message);
    const Submission* now = Incumbent(state_.knowledge);
    if (now != nullptr && RankOf(*now) != rank) Release();
  }
  member.seen = state_.incumbents;
  return true;
}

// There is another incumbent: whoever waited for one goes on.
void Cloud::Release() {
  ++state_.incumbents;
  if (closing_ == 0) return;
  for (Member& member : state_.members) member.closing = false;
  Count();
}

Result<bool> Cloud::ReceiveAsync(const CloseMessage& message, Member& member) {
  if (FEDGEN_TRY(Hear(2 * message.round, member, ToBytes(message))) == Hearing::kRepeated) {
    return false;
  }
  member.rewound = false;
  member.origin = message.origin;
  member.outlook = message.outlook;
  if (member.ending != Ending::kNotYet) return true;  // as it was told before
  if (finals_are_known()) {
    EndFor(member, state_.ending, message.round);
  } else if (message.round >= options_.rounds) {
    EndFor(member, Ending::kRounds, message.round);
  } else if (options_.episodes > 0 && state_.episodes >= options_.episodes) {
    EndFor(member, Ending::kEpisodes, message.round);
  } else if (message.outlook != Outlook::kSearches && member.seen == state_.incumbents) {
    running_ -= Runs(member) ? 1 : 0;
    member.closing = true;
    ++closing_;
  }
  CompleteIfAllAreHeard();
  return true;
}

void Cloud::EndFor(Member& member, Ending ending, int round) {
  running_ -= Runs(member) ? 1 : 0;
  member.ending = ending;
  member.told = round;
}

bool Cloud::Runs(const Member& member) const {
  return options_.async && member.awaited && member.ending == Ending::kNotYet && !member.closing;
}

void Cloud::SettleIfNobodyRuns() {
  if (running_ > 0 || closing_ == 0) return;
  for (Member& member : state_.members) {
    if (!member.closing) continue;
    member.closing = false;
    EndFor(member, Ending::kSettled, member.step / 2);
  }
  Count();
}

RoundAnswer Cloud::AnswerOfNow(LearnerId learner, int round) const {
  RoundAnswer answer;
  answer.round = round;
  answer.participants = {learner};
  if (const Submission* incumbent = Incumbent(state_.knowledge)) answer.incumbent = *incumbent;
  answer.episodes = state_.episodes;
  return answer;
}

// If it has closed the round already, it closes it again, for it may fuse otherwise now. Whether
// the run is over for it stays as it was.
void Cloud::AnswerAgainAsync(Member& member) {
  member.seen = state_.incumbents;
  if (member.step % 2 != 0 || member.step >= FinishStepOf(member.id)) return;
  std::shift_left(member.heard.begin(), member.heard.end(), 1);
  member.heard.back() = {};
  --member.step;
  member.rewound = true;
  member.closing = false;
  Count();
}

std::optional<Ending> Cloud::EndingAfter(LearnerId learner, int round) const {
  if (!options_.async) return EndingAfter(round);
  const Member* member = FindMember(state_.members, learner);
  if (member == nullptr) return std::nullopt;
  const bool is_over = member->ending != Ending::kNotYet;
  const int closed = is_over ? member->told : member->step / 2;
  if (round > closed || (round == closed && member->closing)) return std::nullopt;
  return round == closed ? member->ending : Ending::kNotYet;
}

}  // namespace fedgen
