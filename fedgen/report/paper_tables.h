// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "fedgen/run/run_outcome.h"

namespace fedgen {

// The paper's two tables, with its numbers and ours side by side.
//
// Rates and means are over worlds that were used neither for training nor for selection. There are
// two ways to count: in ours a time-out is a failure and the distance is 0.1 E[rho]; in the
// authors' public code a time-out counts as safe and a collision adds 0.1 to the distance. E[J] is
// the same in both.

enum class Counting { kOurs, kAuthors };

/// The numbers of a policy in the tables.
struct Score {
  double distance = 0;  // 0.1 E[rho], in 10 m
  double cost = 0;      // E[J]
  double safe = 0;      // rate of safe arrival
};

/// Requires episodes >= 1.
Score ScoreOf(const Tally& tally, Counting counting);

/// Mean and population standard deviation. Of nothing, both are 0.
struct MeanAndDeviation {
  Score mean, deviation;
};
MeanAndDeviation Summarise(const std::vector<Score>& scores);

enum class Stage { kInit, kLocal, kFinal };

/// Table 1 as published, of learners 1 to 8.
inline constexpr int kPaperLearners = 8;
const std::array<Score, kPaperLearners>& PaperTable1(Stage stage);

/// Table 2 as published: its numbers of learners, and a column of it.
inline constexpr std::array<int, 5> kPaperTable2Learners = {1, 2, 4, 6, 8};
MeanAndDeviation PaperTable2(std::size_t column);

/// What is wanted of the final policies of a run.
struct Bars {
  double every_final = 0.90;  // least safe rate of a final
  double mean_final = 0.92;   // least mean over the learners
};
struct FinalSummary {
  double least = 1, mean = 0, most = 0;  // safe rate over the learners' finals
  double cost_gap = 0;                   // max - min of E[J]
  double safe_gap = 0;                   // max - min of the safe rate
  double two_b = 0;                      // twice the largest b (T4)

  bool Meets(const Bars& bars) const {
    return least >= bars.every_final && mean >= bars.mean_final && cost_gap <= two_b;
  }
};
/// In our counting. Requires a learner.
FinalSummary SummariseFinals(const RunOutcome& run);

/// Something that a run should show.
struct Check {
  std::string what;      // "Final, lowest safe rate"
  std::string expected;  // "at least 0.90"
  std::string measured;  // "0.9129"
  bool met = false;
};
int NumMissed(const std::vector<Check>& checks);

/// What the paper claims of Table 1 and we want of our run: Init is its Init, in all three numbers;
/// from Local to Final nobody's cost rises and somebody's falls (a Pareto improvement); finals are
/// good and alike. Requires stages.
std::vector<Check> Table1Checks(const RunOutcome& run);

/// What is to be expected of the paper's text, taken by the letter: b > 1/2, so nobody adopts; q
/// far below the noise of z, so nobody stops; and an Init that is not Table 1's. Requires stages.
std::vector<Check> TextChecks(const RunOutcome& run);

/// The table, how wide its intervals are, and the checks. `title` says where the run comes from.
/// Learners beyond the paper's eight stand alone.
std::string Table1Text(const RunOutcome& run, const std::string& title,
                       const std::vector<Check>& checks);
/// A row for each learner and stage.
std::string Table1Csv(const RunOutcome& run);

/// Runs of Table 1 with one setting changed, a run for each seed.
struct Table1Variant {
  std::string name;
  std::vector<RunOutcome> runs;  // [seeds]
};

/// A line for each run, and how often each variant meets the checks of Table 1.
std::string VariantsText(const std::vector<Table1Variant>& variants, const std::string& title,
                         std::uint64_t first_seed);
std::string VariantsCsv(const std::vector<Table1Variant>& variants, std::uint64_t first_seed);

/// Runs with one number of learners, a run for each seed.
struct Table2Column {
  int learners = 1;
  bool local = false;            // take where each learner first stopped instead of its final
  std::vector<RunOutcome> runs;  // [seeds]
};

/// Mean over seeds and learners; spread over the learners of a run (population, mean over the
/// seeds) and over the runs' means (population).
std::string Table2Text(const std::vector<Table2Column>& columns, const std::string& title);
std::string Table2Csv(const std::vector<Table2Column>& columns, std::uint64_t first_seed);

}  // namespace fedgen
