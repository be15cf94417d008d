// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "fedgen/fuse/knowledge.h"

namespace fedgen {

/// Where a run is.
struct RunProgress {
  std::string run;
  int round = 0;      // the last that was closed
  std::string phase;  // what is being heard: join, submit, close, final, race; or over
  std::int64_t learners = 0;
  std::int64_t awaited = 0;  // of them, in this phase

  bool operator==(const RunProgress&) const = default;
};

/// Somebody who is told what a Cloud does: a log, counters. Its functions are called from any
/// thread, several at once, and must not wait.
class CloudWatcher {
 public:
  CloudWatcher() = default;
  virtual ~CloudWatcher() = default;
  CloudWatcher(const CloudWatcher&) = delete;
  CloudWatcher& operator=(const CloudWatcher&) = delete;

  /// A message came in, with so many bytes.
  virtual void OnCall(std::size_t /*bytes*/) {}
  /// It was answered, with so many bytes; every call is answered or refused.
  virtual void OnAnswered(std::size_t /*bytes*/) {}
  /// `code` is one of the few of gRPC, such as PERMISSION_DENIED; `peer` is its certificate's name.
  virtual void OnRefused(const std::string& /*peer*/, const std::string& /*code*/,
                         const std::string& /*reason*/) {}
  /// So many messages are on the disk, by one write; or the write failed.
  virtual void OnSaved(const std::string& /*run*/, std::size_t /*messages*/, double /*seconds*/) {}
  virtual void OnNotSaved(const std::string& /*run*/, const std::string& /*problem*/) {}
  /// Somebody was heard, or a step is complete.
  virtual void OnProgress(const RunProgress& /*progress*/) {}
  /// A learner was silent for longer than the run has patience; it may come back.
  virtual void OnLeftOut(const std::string& /*run*/, LearnerId /*learner*/, int /*round*/) {}
  /// A revocation list says that a learner has left.
  virtual void OnRevoked(LearnerId /*learner*/) {}
  /// gRPC has something to complain of, such as a handshake with a stranger.
  virtual void OnTransport(const std::string& /*problem*/) {}
  /// A certificate or a list was replaced by a file that is not good.
  virtual void OnTrouble(const std::string& /*trouble*/) {}
};

}  // namespace fedgen
