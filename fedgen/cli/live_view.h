// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "fedgen/cli/progress.h"
#include "fedgen/fuse/host.h"
#include "fedgen/run/local_run.h"

namespace fedgen {

// Training as it happens, on stderr. On a terminal one table is redrawn in place; in a log, events
// (a learner stops, adopts) are lines of their own and the table is summed up in a line now and
// then.

/// The table: two lines for the whole, one for each learner that fits above the cursor's own row;
/// the last line says how many do not. No line is wrapped.
std::string LiveTable(const RoundReport& report, int num_rounds, double seconds, int first_round,
                      TerminalSize size);

/// What happened in this round, a line each: stops, adoptions, a new incumbent's first arrival.
std::string LiveEvents(const RoundReport& report);

/// The whole round in one line.
std::string LiveLine(const RoundReport& report, int num_rounds, double seconds, int first_round);

class LiveView {
 public:
  /// first_round is the round a resumed run begins after, for the rate and the time left.
  LiveView(int num_rounds, int first_round);

  /// Shows a round; redraws at most ten times a second.
  void Show(const RoundReport& report);
  /// Says something in a line of its own, above the table.
  void Say(const std::string& line);
  /// Shows the last round for good. Call once at the end.
  void Finish();

 private:
  void Draw();
  void Wipe();
  double seconds() const;

  int num_rounds_, first_round_;
  bool terminal_;
  int lines_drawn_ = 0;
  int next_line_round_ = 1;  // in a log
  int last_line_round_ = 0;
  RoundReport last_;
  std::chrono::steady_clock::time_point begin_, last_drawn_;
};

/// Shows on stderr how a run goes: warnings, rounds, the race, the certification. It outlives
/// neither the run nor this view.
std::unique_ptr<RunListener> MakeTerminalView(const LocalRun& run, bool resumed);

/// Executes a run and shows on stderr how it goes: warnings, rounds, the race, the certification.
Result<RunSummary> ExecuteWithView(const LocalRun& run, bool resumed);

}  // namespace fedgen
