// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "fedgen/certify/bounds.h"
#include "fedgen/report/chart.h"
#include "fedgen/run/run_tables.h"

namespace fedgen {

// Figures of a training run, from the tables of its directory (run_tables.h). Each function
// turns rows into a ChartFigure, which SaveChart writes; rows that are not there leave a chart
// empty, never an error.
//
// The actual values of a policy are drawn with a two-sided 99 % interval for its number of worlds:
// Clopper and Pearson's for the safe arrival rate, Hoeffding's for the mean cost (fedgen/certify/
// bounds.h, with its assumptions). A safe rate that is not a whole number of worlds must come from
// several starts per world; its interval is Hoeffding's too. Intervals hold one by one, not all at
// once.
//
// Between two measurements of a learner its line is flat while the learner is stopped, since it
// keeps its policy. Where it adopts another policy, the line ends, and a dotted line leads to the
// next.

inline constexpr double kTruthConfidence = 0.99;

/// Those intervals.
ProportionInterval SafeRateInterval(const TruthRow& row);
ProportionInterval MeanCostInterval(const TruthRow& row);

struct RunFigureOptions {
  std::string title = {};   // e.g. "quick, seed 1"; what the figure shows is put before it
  std::string config = {};  // the configuration's name; may be empty
};

/// The paper's figure of one learner over the rounds, two charts: its bound y + b of the cost (T1)
/// against the actual cost, and its bound 1 - gamma - (1 - gamma)(y + b) of the safe arrival rate
/// (T2) against the actual rate. Stops, adoptions and large measurements are marked. Bounds beyond
/// [0, 1] say nothing and are drawn at its ends. Requires learner >= 1 and 0 < gamma < 1.
ChartFigure MakeBoundsFigure(const std::vector<MetricsRow>& metrics,
                             const std::vector<TruthRow>& truth, int learner, double gamma,
                             const RunFigureOptions& options);

/// All learners over the rounds, two charts: y of each and of the incumbent, with stops and
/// adoptions; the actual safe arrival rate of each and of the incumbent, the latter with its
/// interval.
ChartFigure MakeLearningFigure(const std::vector<MetricsRow>& metrics,
                               const std::vector<TruthRow>& truth, const RunFigureOptions& options);

/// A safe arrival rate worth reaching.
struct SafetyLevel {
  double rate = 0;        // in (0, 1)
  std::string name = {};  // e.g. "paper"; may be empty
};

/// The paper's result and two levels beyond it.
inline const std::vector<SafetyLevel> kSafetyLevels = {{0.944, "paper"}, {0.985}, {0.99}};

/// The actual safe arrival rate over the training seconds, with a line for each level that names
/// the seconds after which a measurement first reached it. The rate is the incumbent's or, in a run
/// whose incumbent was never measured, that of the best learner of each round. The latter has no
/// interval, since it was selected in the same worlds.
ChartFigure MakeSecondsFigure(const std::vector<TruthRow>& truth,
                              const std::vector<TimingRow>& timing,
                              const std::vector<SafetyLevel>& levels,
                              const RunFigureOptions& options);

/// A mean over seeds and its lowest and highest, or an interval: the caller's subtitle says which.
struct MeanAndRange {
  double mean = 0;
  double low = 0, high = 0;
};

/// One setting of a sweep.
struct TradeoffPoint {
  double x = 0;
  MeanAndRange consensus_gap;  // max - min of eta over the learners at the end
  MeanAndRange adoptions;      // number per run, all learners
  MeanAndRange final_safety;   // safe arrival rate at the end
};

struct TradeoffOptions {
  std::string title = {};
  std::string subtitle = {};  // number of seeds, what the bars are
  std::string x_label = {};   // what was swept, with its unit
  bool log_x = false;
};

/// Three charts side by side: what a setting does to consensus, adoptions and final safety. Points
/// are sorted by x.
ChartFigure MakeTradeoffFigure(std::vector<TradeoffPoint> points, const TradeoffOptions& options);

/// Writes `stem`.svg and `stem`.png. On failure one of them may be there.
Result<void> SaveSvgAndPng(const std::string& stem, const ChartFigure& figure, IfExists if_exists);

}  // namespace fedgen
