// SPDX-License-Identifier: Apache-2.0
#include "fedgen/federation/replay_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fedgen/base/check.h"
#include "fedgen/base/hash.h"

namespace fedgen {
namespace {

// What the log itself says whole: no host need say it.
bool IsWhole(const LogEvent& event) {
  return ControlKindOf(event.kind).has_value() || event.kind == "leave";
}

}  // namespace

// The header is a line, and every event.
std::string ReplayExchange::PlaceOf(const LogEvent& event) const {
  const bool in_round = event.kind == "round" || event.kind == "close";
  return fmt::format("{}:{}: learner {}, {}", name_, event.sequence + 1, event.learner.name(),
                     in_round ? fmt::format("round {}", (event.step + 1) / 2) : event.kind);
}

// A learner that was killed repeats its round. If it had closed it, and hears another answer now,
// the first close stays in the log, but its host says only what came of the last answer.
ReplayExchange::ReplayExchange(RunLog log, std::string name, Cloud& cloud)
    : log_(std::move(log)), name_(std::move(name)), said_over_(log_.events.size()), cloud_(cloud) {
  for (std::size_t at = 0; at < log_.events.size(); ++at) {
    const LogEvent& event = log_.events[at];
    std::vector<std::size_t>& own = own_[event.learner];
    if (event.kind == "answered-again") {
      if (!own.empty() && log_.events[own.back()].kind == "close") {
        said_over_[own.back()] = true;
        own.pop_back();
      }
      if (!own.empty()) answered_at_[own.back()] = at;
    } else if (!IsWhole(event)) {
      own.push_back(at);
    }
  }
}

// There are few closes that it can be: of one of the origins, with one of the outlooks.
Result<StepMessage> ReplayExchange::FindClose(const LogEvent& event) const {
  const Member* speaker = FindMember(cloud_.state().members, event.learner);
  const int round = speaker == nullptr ? 0 : (speaker->step + 1) / 2;
  for (const Member& member : cloud_.state().members) {
    for (int outlook = 0; outlook < NumValues(Outlook()); ++outlook) {
      const StepMessage message =
          CloseMessage{event.learner, round, member.id, static_cast<Outlook>(outlook)};
      if (Sha256Hex(StepToBytes(message)) == event.hash) return message;
    }
  }
  return Error{ErrorCode::kData, "hash: no close that this learner can have said has it"};
}

Result<StepMessage> ReplayExchange::MessageAt(std::size_t index) {
  const LogEvent& event = log_.events[index];
  if (const auto kind = ControlKindOf(event.kind)) {
    return StepMessage(ControlMessage{*kind, event.learner});
  }
  if (event.kind == "leave") return StepMessage(LeaveMessage{event.learner});
  if (said_over_[index]) return FindClose(event);
  return calls_.at(event.learner).message;
}

// Hears whatever has its turn, and keeps answers as they become known.
void ReplayExchange::Advance() {
  for (; next_ < log_.events.size() && !failure_; ++next_) {
    const LogEvent& event = log_.events[next_];
    const auto call = calls_.find(event.learner);
    const bool is_said = call != calls_.end() && call->second.heard_at == next_;
    const bool is_known = IsWhole(event) || said_over_[next_];
    if (!is_said && !is_known) return;
    const Result<StepMessage> message = MessageAt(next_);
    const int before = cloud_.state().answer.round;
    const bool is_it = message && KindOf(*message) == event.kind &&
                       RowStepOf(cloud_, *message, event.sequence) == event.step;
    Result<bool> heard = false;
    if (!message) heard = message.error();
    if (is_it) heard = Hear(*message, cloud_);
    if (!heard || !*heard) {
      failure_ = Error{
          ErrorCode::kMismatch,
          fmt::format("{}: {}", PlaceOf(event),
                      heard ? "does not follow from those before it" : heard.error().message)};
      return;
    }
    if (AnsweredBy(*message, before, cloud_) != AnsweredRound{event.answered, event.incumbent}) {
      failure_ = Error{ErrorCode::kMismatch,
                       fmt::format("{}: the Cloud answers otherwise than the log says: the log was "
                                   "altered, or is of another program",
                                   PlaceOf(event))};
      return;
    }
    if (event.kind == "answered-again" && call != calls_.end()) call->second.answer.reset();
    for (auto& [learner, waiting] : calls_) {
      if (waiting.heard_at <= next_ && !waiting.answer) {
        waiting.answer = AnswerOf(cloud_, waiting.message);
      }
    }
  }
}

Result<StepAnswer> ReplayExchange::AskOne(const StepMessage& message) {
  const LearnerId learner = SpeakerOf(message);
  std::unique_lock lock(mutex_);
  // Who rests, or does not race, only asks.
  const auto* race = std::get_if<RaceMessage>(&message);
  const bool only_asks =
      race != nullptr ? race->tallies.empty()
                      : std::holds_alternative<RoundMessage>(message) && cloud_.IsResting(learner);
  const std::vector<std::size_t>& own = own_[learner];
  if (!only_asks) {
    const std::size_t said = num_said_[learner]++;
    if (said >= own.size()) {
      return NothingMore(learner);
    }
    const LogEvent& event = log_.events[own[said]];
    if (Sha256Hex(StepToBytes(message)) != event.hash && !failure_) {
      failure_ = Error{ErrorCode::kMismatch,
                       fmt::format("{}: it says something else now: the log is of another seed, "
                                   "configuration, policy or program",
                                   PlaceOf(event))};
    }
    const auto again = answered_at_.find(own[said]);
    const std::size_t answered_at = again == answered_at_.end() ? own[said] : again->second;
    calls_.insert_or_assign(learner, Call{message, own[said], answered_at, std::nullopt});
  } else {
    calls_.insert_or_assign(learner, Call{message, 0, 0, std::nullopt});
  }
  Advance();
  if (only_asks) calls_.at(learner).answer = AnswerOf(cloud_, message);
  changed_.notify_all();
  const Call& call = calls_.at(learner);
  const auto is_answered = [&] { return call.answer && next_ > call.answered_at; };
  changed_.wait(lock, [&] { return failure_ || next_ == log_.events.size() || is_answered(); });
  if (failure_) return *failure_;
  if (!is_answered()) return NothingMore(learner);
  return call.answer.value_or(StepAnswer());  // it has one
}

Error ReplayExchange::NothingMore(LearnerId learner) const {
  return {ErrorCode::kMissed,
          fmt::format("{}: has nothing more of learner {}", name_, learner.name())};
}

Result<void> ReplayExchange::CheckAllHeard() const {
  const std::lock_guard lock(mutex_);
  if (next_ == log_.events.size()) return {};
  return Error{ErrorCode::kMismatch,
               fmt::format("{}: nobody says this: the log was altered, or is of another program",
                           PlaceOf(log_.events[next_]))};
}

void ReplayExchange::GiveUp(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = error;
  changed_.notify_all();
}

template <typename Answer, typename Message>
Result<Answer> ReplayExchange::Ask(std::span<const Message> messages) {
  FEDGEN_CHECK(messages.size() == 1, "a host of {} learners", messages.size());
  return std::get<Answer>(FEDGEN_TRY(AskOne(messages.front())));
}

Result<std::vector<Welcome>> ReplayExchange::Join(std::span<const JoinMessage> messages) {
  return std::vector{FEDGEN_TRY(Ask<Welcome>(messages))};
}
Result<RoundAnswer> ReplayExchange::Submit(std::span<const RoundMessage> messages) {
  return Ask<RoundAnswer>(messages);
}
Result<Ending> ReplayExchange::Close(std::span<const CloseMessage> messages) {
  return Ask<Ending>(messages);
}
Result<Finalists> ReplayExchange::Finish(std::span<const FinalMessage> messages) {
  return Ask<Finalists>(messages);
}
Result<RaceAnswer> ReplayExchange::Race(std::span<const RaceMessage> messages) {
  return Ask<RaceAnswer>(messages);
}

}  // namespace fedgen
