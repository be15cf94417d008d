// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fedgen/report/paper_tables.h"
#include "fedgen/report/run_figures.h"
#include "fedgen/run/run_outcome.h"

namespace fedgen {

// Tables over many runs that the paper leaves open: what a setting does (a sweep), and how the
// algorithms compare for the same number of training episodes.

/// One run of a sweep, with the swept setting at `value`.
struct SweepRow {
  double value = 0;
  std::uint64_t seed = 0;
  FinalSummary finals;
  int adoptions = 0;
  int stuck = 0;  // learners whose final policy is stuck
  std::int64_t episodes = 0;

  double b() const { return finals.two_b / 2; }  // the largest of a learner
};
SweepRow MakeSweepRow(double value, std::uint64_t seed, const RunOutcome& run);

/// A point for each value: mean, lowest and highest over its seeds. Rows of one value follow each
/// other.
std::vector<TradeoffPoint> MakeTradeoffs(const std::vector<SweepRow>& rows);

/// A line for each value. `title` names the sweep.
std::string SweepText(const std::string& title, const std::vector<SweepRow>& rows);
std::string SweepCsv(const std::vector<SweepRow>& rows);

/// The runs of one algorithm: entry s of every field belongs to seed s.
struct Contestant {
  std::string name;
  std::vector<double> rounds, episodes;
  std::vector<double> mean_safe, mean_cost;  // mean over the learners' final policies
  std::vector<double> best_safe, best_cost;  // of the policy that won the race
};
Contestant MakeContestant(const std::string& name, const std::vector<RunOutcome>& runs);

/// Every algorithm by itself, then the first one's lead over each of the others, seed by seed.
/// Requires a contestant, and as many seeds for each.
std::string ComparisonText(const std::vector<Contestant>& all, const std::string& title);
std::string ComparisonCsv(const std::vector<Contestant>& all, std::uint64_t first_seed);

}  // namespace fedgen
