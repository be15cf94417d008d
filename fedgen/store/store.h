// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fedgen/base/result.h"
#include "fedgen/fuse/knowledge.h"

namespace fedgen {

// What a Cloud must not forget: the messages that it has acknowledged, and now and then a snapshot
// of its state, from which later messages lead on.
//
//   auto store = FEDGEN_TRY(OpenStore("sqlite:cloud.db"));
//   FEDGEN_TRY(store->Begin({"run-1", shared settings}));
//   FEDGEN_TRY(store->Append("run-1", messages));             // on disk when it returns
//   FEDGEN_TRY(store->Compact("run-1", 1000, state bytes));   // instead of messages 1..1000
//   FEDGEN_TRY(store->AppendInto("run-1", messages, state bytes));   // both, in one write
//   const StoredRun run = *FEDGEN_TRY(store->Load("run-1"));  // snapshot and messages after it
//
// A message stays as a row for ever (who, which step, its hash, y and b, what was answered): the
// log of the run (federation/run_log.h). Its bytes, which hold a policy, go with the snapshot that
// has swallowed them, or never get there if the snapshot is written with it.

/// A message of a learner as it is kept.
struct StoredMessage {
  std::int64_t sequence = 0;  // 1, 2, 3, ... within its run, in the order of acknowledgement
  LearnerId learner;          // who speaks, or whom a decision of the Cloud is about
  int step = 0;               // of the learner (fuse/cloud.h); below 0 if it belongs to none
  std::string hash{};  // SHA-256 of the bytes, 64 hexadecimal digits: what a repetition has too;
                       // Append() makes it if it is empty
  std::optional<double> y;  // for people: what it claims, if it submits
  std::optional<double> b;
  std::string verdicts{};   // for later: verdicts that it carries, as bytes
  std::string signature{};  // for later: the learner's
  std::string bytes{};      // the message itself; empty once a snapshot has it
  std::string kind{};       // KindOf() (federation/steps.h); empty in rows of old
  int answered = 0;         // the round that was answered at this place; 0 for none
  std::string incumbent{};  // its hash in that answer; empty for none

  bool operator==(const StoredMessage&) const = default;
};

/// Whether a run may be called so: 1 to 64 letters, digits, '-', '_' and '.'.
bool IsRunName(std::string_view name);

/// A run as it was begun.
struct RunHeader {
  std::string run;       // its name
  std::string settings;  // what all share, as text; another text is another run

  bool operator==(const RunHeader&) const = default;
};

struct StoredRun {
  RunHeader header;
  std::string snapshot;                 // the Cloud's state; empty before the first
  std::int64_t snapshot_sequence = 0;   // the last message in it
  std::vector<StoredMessage> messages;  // those after it, in order, with their bytes
};

/// Not thread-safe: one thread at a time.
class Store {
 public:
  Store() = default;
  virtual ~Store() = default;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Keeps a new run. One of this name with the same settings is left as it is; with others it is
  /// kExists.
  virtual Result<void> Begin(const RunHeader& header) = 0;
  /// The runs that there are, by name.
  virtual Result<std::vector<RunHeader>> Runs() = 0;
  /// What is known of a run; nothing if there is none of this name.
  virtual Result<std::optional<StoredRun>> Load(const std::string& run) = 0;
  /// Keeps messages, all or none of them; they are on disk when it returns. Their sequence numbers
  /// follow those that are there without a gap, they have bytes and the hash of these or none, and
  /// y and b are not NaN: else kMismatch. A second message of a learner in one step is kExists. A
  /// full disk is kIo, changes nothing, and the same call succeeds when there is space again.
  virtual Result<void> Append(const std::string& run, std::span<const StoredMessage> messages) = 0;
  /// Keeps a snapshot of the state after message `sequence`, and lets go of the bytes of the
  /// messages up to it. It may not be empty, nor before the last snapshot or after the last message
  /// (kMismatch).
  virtual Result<void> Compact(const std::string& run, std::int64_t sequence,
                               const std::string& snapshot) = 0;
  /// Append(), and Compact() after the last of these messages, all or nothing. There must be one.
  virtual Result<void> AppendInto(const std::string& run, std::span<const StoredMessage> messages,
                                  const std::string& snapshot) = 0;
  /// The rows of a learner, oldest first, with their bytes if they are still there. kMismatch if
  /// there is no such run, as for Append and Compact.
  virtual Result<std::vector<StoredMessage>> MessagesOf(const std::string& run,
                                                        LearnerId learner) = 0;
  /// All rows of a run in order, without bytes.
  virtual Result<std::vector<StoredMessage>> RowsOf(const std::string& run) = 0;
  /// A copy of everything, taken while others go on; refuses a path that exists.
  virtual Result<void> Backup(const std::string& path) = 0;

  /// For tests: told before a write, before its commit, and after it.
  std::function<void(std::string_view place)> failpoint{};

 protected:
  void Reach(std::string_view place) const {
    if (failpoint) failpoint(place);
  }
};

/// `sqlite:PATH`. The file is made if it is not there; one of an older schema is moved up, one of a
/// newer schema is refused, and so is one that another process has open as its own. Only its owner
/// may read it. Not for network file systems, whose locks cannot be trusted.
Result<std::unique_ptr<Store>> OpenStore(const std::string& url);

/// The same for looking at it and for Backup(), also while another process has it as its own; calls
/// that would change it are kUsage.
Result<std::unique_ptr<Store>> OpenStoreForReading(const std::string& url);

}  // namespace fedgen
