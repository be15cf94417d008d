// SPDX-License-Identifier: Apache-2.0
#include "fedgen/federation/served_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "fedgen/base/hash.h"
#include "fedgen/base/option.h"
#include "fedgen/fuse/checkpoint.h"

namespace fedgen {
namespace {

// The policy that a message brings besides those of submissions, which the Cloud checks itself.
Result<void> CheckSize(const StepMessage& message, std::uint64_t num_parameters) {
  const auto* join = std::get_if<JoinMessage>(&message);
  if (join == nullptr || join->theta.size() == num_parameters) return {};
  return Error{ErrorCode::kMismatch,
               fmt::format("learner {}: begins with a policy of {} parameters, the run has {}",
                           join->learner.name(), join->theta.size(), num_parameters)};
}

// Bytes of messages. How large a snapshot is, is known when there was one.
constexpr std::size_t kWorthASnapshot = std::size_t{1} << 16;

}  // namespace

std::string ServedSettings::Text() const {
  if (!text.empty()) return text;
  std::vector<std::uint32_t> numbers;
  numbers.reserve(learners.size());
  for (const LearnerId learner : learners) numbers.push_back(learner.number());
  return fmt::format(
      "algorithm = {}\nrounds = {}\nepisodes = {}\naverage_every = {}\npatience = {}\nasync = {}\n"
      "open = {}\nparameters = {}\nrace_seed = {}\nlearners = {}\n",
      NameOf(options.algorithm), options.rounds, options.episodes, options.average_every,
      options.patience, options.async, options.open, num_parameters, race_seed,
      fmt::join(numbers, " "));
}

Result<ServedRun> ServedRun::Open(const ServedSettings& settings, Store& store,
                                  std::size_t snapshot_bytes) {
  if (const std::optional<FieldError> wrong = Validate(settings.options)) {
    return Error{ErrorCode::kConfig,
                 fmt::format("run {}: {} = {}", settings.run, wrong->field, wrong->problem)};
  }
  const std::string text = settings.Text();
  FEDGEN_TRY(store.Begin({settings.run, text}));
  ServedRun run(settings.run, Sha256Hex(text), settings.num_parameters,
                Cloud(settings.options, settings.learners, settings.race_seed), store,
                snapshot_bytes);
  const std::optional<StoredRun> stored = FEDGEN_TRY(store.Load(settings.run));
  if (stored) FEDGEN_TRY(run.GoOn(*stored));
  return run;
}

// The snapshot, then what came after it. The order of messages within a step does not matter, but
// it is the one in which they were acknowledged.
Result<void> ServedRun::GoOn(const StoredRun& stored) {
  const std::string name = fmt::format("run {}", name_);
  if (!stored.snapshot.empty()) {
    const CloudCheckpoint checkpoint = FEDGEN_TRY(CloudFromBytes(stored.snapshot, name));
    FEDGEN_TRY(Restore(checkpoint, fingerprint_, name, cloud_));
  }
  sequence_ = stored.snapshot_sequence;
  snapshot_ = stored.snapshot.size();
  for (const StoredMessage& kept : stored.messages) {
    const Result<StepMessage> message = StepFromBytes(kept.bytes);
    const Result<bool> heard = message ? fedgen::Hear(*message, cloud_) : message.error();
    if (!heard || !*heard || kept.sequence != sequence_ + 1) {
      return Error{
          ErrorCode::kData,
          fmt::format("{}: message {} of the store does not follow from those before it{}", name,
                      kept.sequence, heard ? "" : fmt::format(" ({})", heard.error().message))};
    }
    sequence_ = kept.sequence;
    since_snapshot_ += kept.bytes.size();
  }
  return {};
}

Result<std::optional<StepAnswer>> ServedRun::Hear(const StepMessage& message) {
  FEDGEN_TRY(CheckSize(message, num_parameters_));
  const int step = RowStepOf(cloud_, message, sequence_ + 1);
  const int answered = cloud_.state().answer.round;
  if (FEDGEN_TRY(fedgen::Hear(message, cloud_))) {
    Keep(message, step, answered);
    return AnswerOf(cloud_, message);
  }
  // A repetition. What was answered rounds ago is not kept.
  if (const auto* round = std::get_if<RoundMessage>(&message);
      round != nullptr && cloud_.NeedsAnotherAnswer(*round)) {
    FEDGEN_TRY(Control(ControlMessage::Kind::kAnsweredAgain, round->learner));
  }
  std::optional<StepAnswer> answer = AnswerOf(cloud_, message);
  const bool is_old = !cloud_.options().async && StepOf(cloud_, message) < cloud_.state().step;
  if (answer || !is_old || !std::holds_alternative<RoundMessage>(message) ||
      cloud_.options().patience > 0 || cloud_.options().open ||
      cloud_.IsResting(SpeakerOf(message))) {
    return answer;
  }
  // Whoever repeats it has lost more than its last round.
  return Error{ErrorCode::kMismatch,
               fmt::format("learner {}: repeats round {}, the run is in round {}: its directory is "
                           "not the one in which it began (--out), or an older copy of it",
                           SpeakerOf(message).name(), std::get<RoundMessage>(message).round,
                           cloud_.round() + 1)};
}

Result<void> ServedRun::Control(ControlMessage::Kind kind, LearnerId learner) {
  const ControlMessage message{kind, learner};
  const int step = RowStepOf(cloud_, message, sequence_ + 1);
  const int answered = cloud_.state().answer.round;
  FEDGEN_TRY(cloud_.Receive(message));
  Keep(message, step, answered);
  return {};
}

Result<void> ServedRun::LeaveOut(LearnerId learner) {
  return Control(ControlMessage::Kind::kLeftOut, learner);
}

Result<void> ServedRun::Revoke(LearnerId learner) {
  const Member* member = FindMember(cloud_.state().members, learner);
  if (member == nullptr || member->presence == Presence::kRevoked) return {};
  return Control(ControlMessage::Kind::kRevoked, learner);
}

void ServedRun::Keep(const StepMessage& message, int step, int answered_before) {
  StoredMessage kept;
  kept.sequence = ++sequence_;
  const auto* control = std::get_if<ControlMessage>(&message);
  kept.learner = control != nullptr ? control->learner : SpeakerOf(message);
  kept.step = step;
  kept.bytes = StepToBytes(message);
  kept.kind = KindOf(message);
  AnsweredRound answered = AnsweredBy(message, answered_before, cloud_);
  kept.answered = answered.round;
  kept.incumbent = std::move(answered.incumbent);
  if (const auto* round = std::get_if<RoundMessage>(&message); round && round->submission) {
    kept.y = round->submission->y;
    kept.b = round->submission->b;
  }
  unsaved_bytes_ += kept.bytes.size();
  unsaved_.push_back(std::move(kept));
}

Result<void> ServedRun::Save() {
  if (unsaved_.empty()) return {};
  if (unsaved_bytes_ < std::max(snapshot_, std::min(kWorthASnapshot, snapshot_bytes_))) {
    FEDGEN_TRY(store_->Append(name_, unsaved_));
    since_snapshot_ += unsaved_bytes_;
  } else {
    const std::string snapshot = TakeSnapshot();
    FEDGEN_TRY(store_->AppendInto(name_, unsaved_, snapshot));
    since_snapshot_ = 0;
  }
  unsaved_bytes_ = 0;
  unsaved_.clear();
  return {};
}

std::string ServedRun::TakeSnapshot() {
  std::string snapshot = CheckpointToBytes(CloudCheckpoint{fingerprint_, cloud_.state()});
  snapshot_ = snapshot.size();
  return snapshot;
}

// The messages are safe whether or not this succeeds; the next time it would be tried again.
void ServedRun::Tidy() {
  if (!saved() || since_snapshot_ < std::max(snapshot_bytes_, snapshot_)) return;
  const std::string snapshot = TakeSnapshot();
  if (store_->Compact(name_, sequence_, snapshot)) since_snapshot_ = 0;
}

std::optional<StepAnswer> ServedRun::AnswerTo(const StepMessage& message) const {
  FEDGEN_CHECK(saved(), "{} messages are not on the disk", unsaved_.size());
  return AnswerOf(cloud_, message);
}

}  // namespace fedgen
