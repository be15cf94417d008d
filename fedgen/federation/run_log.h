// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fedgen/base/result.h"
#include "fedgen/store/store.h"

namespace fedgen {

// What happened in a run, in the order in which the Cloud heard it: who spoke in which step, who
// was left out, joined later, left or was revoked, who took part in each round, and which incumbent
// each learner received. No policy is in it, so it can be shown; together with what every learner
// has on its own machine it reproduces the run (federation/replay_exchange.h).
//
// The form is JSON Lines (docs/formats.md): a header, then one event a line.

struct LogEvent {
  std::int64_t sequence = 0;  // 1, 2, 3, ...
  std::string kind;           // KindOf() of its message (federation/steps.h)
  LearnerId learner;          // who speaks, or whom a decision of the Cloud is about
  int step = 0;               // of the learner (fuse/cloud.h); below 0 if it belongs to none
  std::string hash;           // SHA-256 of the message
  // The round that was answered at this place, to everybody who took part in it, or to this learner
  // alone if it came late, asked again, or the run is asynchronous; and the incumbent's hash in
  // that answer, if there was one. 0 if nothing was answered here.
  int answered = 0;
  std::string incumbent;

  bool operator==(const LogEvent&) const = default;
};

struct RunLog {
  RunHeader header;
  std::vector<LogEvent> events;

  bool operator==(const RunLog&) const = default;
};

/// Who took part in a round that everybody was answered in together.
struct LoggedRound {
  int round = 0;
  std::int64_t sequence = 0;  // of the event that completed it
  std::vector<LearnerId> participants;
  std::string incumbent;  // that they received

  bool operator==(const LoggedRound&) const = default;
};

/// The log of a run of a store, which may be open for reading only. kMismatch if there is no such
/// run, kData if rows are from a program that kept no log.
Result<RunLog> ReadRunLog(Store& store, const std::string& run);

/// The rounds that were completed, in order; none of an asynchronous run.
std::vector<LoggedRound> RoundsOf(const RunLog& log);

std::string LogToText(const RunLog& log);
/// `name` stands for the file in messages.
Result<RunLog> LogFromText(std::string_view text, const std::string& name);

}  // namespace fedgen
