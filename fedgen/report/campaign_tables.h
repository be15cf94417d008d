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

/// Every algorithm by itself, then the first one's lead over each of the others, seed by seed, with
/// intervals that hold one by one. Requires a contestant, and as many seeds for each.
std::string ComparisonText(const std::vector<Contestant>& all, const std::string& title);
std::string ComparisonCsv(const std::vector<Contestant>& all, std::uint64_t first_seed);

/// What was claimed before anything was measured: over all seeds, the mean of first - other is
/// above `least`. Entries s of both are of seed s, so leads are compared in pairs: what makes a
/// seed easy or hard for both cancels.
struct Statement {
  std::string claim;
  std::vector<double> first, other;  // [seeds]
  double least = 0;
};

/// The mean lead over the seeds with its interval, and what follows for the statement.
struct Judgement {
  enum class Verdict {
    kHolds,        // the whole interval is above what was claimed
    kDoesNotHold,  // below
    kUndecided,
  };
  double mean = 0, low = 0, high = 0;
  Verdict verdict = Verdict::kUndecided;
};

/// The confidence with which all intervals of Judge() hold at once.
inline constexpr double kJointConfidence = 0.95;

/// Student's intervals at 1 - (1 - kJointConfidence) / statements each (Bonferroni; Eq. 40), exact
/// if the leads of a statement are independent and normal. With a single seed nothing is decided.
/// Requires seeds, as many on both sides.
std::vector<Judgement> Judge(const std::vector<Statement>& statements);

/// The statements one by one, with their verdicts.
std::string StatementsText(const std::vector<Statement>& statements, const std::string& title);
std::string StatementsCsv(const std::vector<Statement>& statements);

}  // namespace fedgen
