// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fedgen/report/chart.h"
#include "fedgen/report/run_figures.h"
#include "fedgen/run/run_tables.h"

namespace fedgen {

// Runs side by side: how good each one's incumbent was after so much training time. From truth.csv
// and timing.csv (run_tables.h): seconds are of training alone, looks at the truth cost none.
//
//   const RunCurve curve = MakeRunCurve("evolution", truth, timing);
//   FirstReached(curve, 0.99)->at.seconds
//
// A level is reached when a measurement first shows it. That was somewhere between the look before
// and this one, and is one measurement: a rate just below the level may show it by luck.

/// The incumbent in fresh worlds, and what the run had taken until then.
struct TimedLook {
  TruthRow truth;
  double seconds = 0;
  std::int64_t episodes = 0;
};

struct RunCurve {
  std::string name;
  std::vector<TimedLook> looks = {};  // in order
  double seconds = 0;                 // of the whole run
  std::int64_t episodes = 0;          // likewise
};

/// Rounds of the truth without a time are left out.
RunCurve MakeRunCurve(std::string name, const std::vector<TruthRow>& truth,
                      const std::vector<TimingRow>& timing);

/// The first look with at least this safe rate, and the seconds of the look before; 0 if it was the
/// first.
struct Reached {
  TimedLook at;
  double seconds_before = 0;
};
std::optional<Reached> FirstReached(const RunCurve& curve, double safe_rate);

/// When each run reached each level, how much longer each takes than the first one, and where all
/// of them ended.
std::string CurvesText(const std::vector<RunCurve>& curves, const std::vector<SafetyLevel>& levels,
                       const std::string& title);
/// A row for each look.
std::string CurvesCsv(const std::vector<RunCurve>& curves);

/// Two charts over training time: safe arrival rates, with a mark where a level was first reached,
/// and mean costs. `source` says where the runs come from.
ChartFigure MakeCurvesFigure(const std::vector<RunCurve>& curves,
                             const std::vector<SafetyLevel>& levels, const std::string& title,
                             const std::string& source);

}  // namespace fedgen
