// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fedgen/base/result.h"
#include "fedgen/federation/steps.h"
#include "fedgen/store/store.h"

namespace fedgen {

// A run as a Cloud serves it: the state machine, and the store that remembers what was
// acknowledged.
//
//   ServedRun run = FEDGEN_TRY(ServedRun::Open(settings, store));   // new, or where it was
//   auto answer = FEDGEN_TRY(run.Hear(message));   // for as many messages as have come
//   FEDGEN_TRY(run.Save());                        // one write for all of them
//   if (!answer) answer = run.AnswerTo(message);   // now or later
//   run.Tidy();                                    // when everybody was answered
//
// Nobody may be told anything before Save() has succeeded. An answer that is there when a message
// is heard is the one to give: where the order of messages matters, a later one would be another.
// What has come is written as messages, or, where the state that they lead to is smaller, as their
// rows and a snapshot: policies of very many learners, of which the state has few.
//
// If it fails (a full disk) what was heard stays unsaved, and a later Save() keeps it: nothing need
// be taken back, for nothing was answered.

/// What a Cloud must know of a run.
struct ServedSettings {
  std::string run;  // its name
  FederationOptions options;
  std::vector<LearnerId> learners;   // at least one
  std::uint64_t num_parameters = 0;  // of a policy
  std::uint64_t race_seed = 0;       // learners hear of it when the finalists are known

  std::string text{};  // what a store is to compare; empty: the following

  /// All of it as text, one line each: what a store compares.
  std::string Text() const;
};

/// Not thread-safe.
class ServedRun {
 public:
  /// A snapshot is taken when at least this many bytes of messages have come since the last, and
  /// as many as it had itself: with very many learners it is large.
  static constexpr std::size_t kSnapshotBytes = std::size_t{1} << 20;

  /// Begins a run, or goes on with the one of this name in the store, which must have the same
  /// settings. The store must outlive it.
  static Result<ServedRun> Open(const ServedSettings& settings, Store& store,
                                std::size_t snapshot_bytes = kSnapshotBytes);

  /// Hears a message. What is refused, and what is a repetition, changes nothing, but that a
  /// learner may be answered again and otherwise, which is kept too. Returns what there is to
  /// answer already.
  Result<std::optional<StepAnswer>> Hear(const StepMessage& message);
  /// Goes on without this learner, which is one of cloud().Silent().
  Result<void> LeaveOut(LearnerId learner);
  /// Refuses this learner from now on. Somebody who is not part of the run is no error.
  Result<void> Revoke(LearnerId learner);
  /// Puts everything that was heard onto the disk.
  Result<void> Save();
  /// Takes a snapshot if there is reason to: for when nobody waits for an answer.
  void Tidy();
  bool saved() const { return unsaved_.empty(); }
  std::size_t num_unsaved() const { return unsaved_.size(); }
  /// Whether to save what nobody is to be told of yet: twice the state, of which a part of what
  /// comes then is written, and never less than kMuch.
  bool has_much_to_save() const { return unsaved_bytes_ >= std::max(kMuch, 2 * snapshot_); }
  static constexpr std::size_t kMuch = std::size_t{1} << 20;  // bytes of messages
  /// What there is to answer. Requires saved().
  std::optional<StepAnswer> AnswerTo(const StepMessage& message) const;

  const Cloud& cloud() const { return cloud_; }
  const std::string& name() const { return name_; }
  /// Of the last message that was heard.
  std::int64_t sequence() const { return sequence_; }

 private:
  ServedRun(std::string name, std::string fingerprint, std::uint64_t num_parameters, Cloud cloud,
            Store& store, std::size_t snapshot_bytes)
      : name_(std::move(name)),
        fingerprint_(std::move(fingerprint)),
        num_parameters_(num_parameters),
        cloud_(std::move(cloud)),
        store_(&store),
        snapshot_bytes_(snapshot_bytes) {}
  Result<void> GoOn(const StoredRun& stored);
  void Keep(const StepMessage& message, int step, int answered_before);
  std::string TakeSnapshot();
  Result<void> Control(ControlMessage::Kind kind, LearnerId learner);

  std::string name_;
  std::string fingerprint_;
  std::uint64_t num_parameters_;
  Cloud cloud_;
  Store* store_;
  std::size_t snapshot_bytes_;
  std::int64_t sequence_ = 0;           // of the last message that was heard
  std::size_t since_snapshot_ = 0;      // bytes
  std::size_t snapshot_ = 0;            // bytes of the last
  std::vector<StoredMessage> unsaved_;  // in order
  std::size_t unsaved_bytes_ = 0;
};

}  // namespace fedgen
