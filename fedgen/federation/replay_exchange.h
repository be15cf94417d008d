// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fedgen/federation/run_log.h"
#include "fedgen/federation/steps.h"

namespace fedgen {

// A run once more, in one process, from its log: the Cloud hears the same messages in the same
// order, with what it decided itself between them, and every learner receives the answers that it
// acted upon then, which must be those of the log. So learners and finalists have the bytes of that
// run, whatever came when.
//
//   ReplayExchange exchange(log, "log.jsonl", cloud);  // one, for all hosts
//   host.Join(exchange), host.Round(exchange), ...     // of one learner each, in their own threads
//
// Every learner that the log names must have its host, or the others wait for it. A message that is
// not the one of the log is an error to everybody: another seed, configuration or program. Where
// the log has nothing more of a learner, its host alone hears so (kMissed).

/// Thread-safe.
class ReplayExchange final : public Exchange {
 public:
  /// `name` stands for the log's file in messages. A new Cloud of the run's settings, which nobody
  /// else may use meanwhile.
  ReplayExchange(RunLog log, std::string name, Cloud& cloud);

  Result<std::vector<Welcome>> Join(std::span<const JoinMessage> messages) override;
  Result<RoundAnswer> Submit(std::span<const RoundMessage> messages) override;
  Result<Ending> Close(std::span<const CloseMessage> messages) override;
  Result<Finalists> Finish(std::span<const FinalMessage> messages) override;
  Result<RaceAnswer> Race(std::span<const RaceMessage> messages) override;

  /// When every host has come to its end: an error that names the first event of the log, if there
  /// is one, that nobody says.
  Result<void> CheckAllHeard() const;
  /// A host came to an end of its own: the others hear why instead of waiting for it.
  void GiveUp(const Error& error);

 private:
  // What a learner says now, and what it hears.
  struct Call {
    StepMessage message;
    std::size_t heard_at;     // index of its event
    std::size_t answered_at;  // of the last event that answers it again, or the same
    std::optional<StepAnswer> answer;
  };

  template <typename Answer, typename Message>
  Result<Answer> Ask(std::span<const Message> messages);
  Result<StepAnswer> AskOne(const StepMessage& message);
  void Advance();
  std::string PlaceOf(const LogEvent& event) const;
  Error NothingMore(LearnerId learner) const;
  Result<StepMessage> MessageAt(std::size_t index);
  Result<StepMessage> FindClose(const LogEvent& event) const;

  const RunLog log_;
  const std::string name_;
  std::map<LearnerId, std::vector<std::size_t>> own_;  // events that its host says once more
  std::map<std::size_t, std::size_t> answered_at_;     // of such an event, if it is answered again
  std::vector<bool> said_over_;                        // closes that a later one replaced

  mutable std::mutex mutex_;  // guards: everything below
  std::condition_variable changed_;
  Cloud& cloud_;
  std::size_t next_ = 0;                       // event to be heard
  std::map<LearnerId, std::size_t> num_said_;  // of own_
  std::map<LearnerId, Call> calls_;
  std::optional<Error> failure_;
};

}  // namespace fedgen
