// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/run_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fedgen/base/file.h"
#include "fedgen/base/file_testing.h"

namespace fedgen {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kMetrics = std::string(kMetricsHeader) + "\n";
const std::string kTruth = std::string(kTruthHeader) + "\n";
const std::string kTiming = std::string(kTimingHeader) + "\n";

MetricsRow Running() {
  return {.round = 3,
          .learner = 2,
          .y = 0.1 + 0.2,
          .b = 0.0814,
          .z_norm = 1.0 / 3,
          .q = 0.04,
          .spread = 2.5,
          .step = 0.01,
          .incumbent_learner = LearnerId(0),
          .incumbent_round = 2,
          .incumbent_y = 5e-324,
          .incumbent_b = 1e-7,
          .episodes = 18'000'000'000};
}

MetricsRow Adopted() {
  return {.round = 4,
          .learner = 2,
          .state = LearnerPhase::kAdopted,
          .took_stock = true,
          .y = 0.85,
          .b = 0.08,
          .adopted_from = LearnerId::Cloud(),
          .zeta = 0.25,
          .incumbent_learner = LearnerId::Cloud(),
          .incumbent_round = 4,
          .incumbent_y = 0.25,
          .incumbent_b = 0.08,
          .episodes = 600};
}

template <typename Row>
std::string Problem(const Result<std::vector<Row>>& rows) {
  if (rows) return "no problem";
  EXPECT_EQ(rows.error().code, ErrorCode::kData);
  return rows.error().message;
}

// What is wrong with a second line.
std::string MetricsProblem(const std::string& line) {
  return Problem(ParseMetrics(kMetrics + line + "\n", "m"));
}
std::string TruthProblem(const std::string& lines) {
  return Problem(ParseTruth(kTruth + lines + "\n", "t"));
}
std::string TimingProblem(const std::string& lines) {
  return Problem(ParseTiming(kTiming + lines + "\n", "s"));
}

TEST(Metrics, AreWrittenInShortestForm) {
  EXPECT_EQ(
      FormatRow(Running()),
      "3,2,running,0,0,0.30000000000000004,0.0814,0.3333333333333333,0.04,2.5,0.01,,1,1,2,5e-324,"
      "1e-07,18000000000");
  EXPECT_EQ(FormatRow(Adopted()),
            "4,2,adopted,1,0,0.85,0.08,,,,0,average,0.25,average,4,0.25,0.08,600");
}

TEST(Metrics, ComeBackBitForBit) {
  std::vector<MetricsRow> rows;
  for (int round = 1; round <= 200; ++round) {
    MetricsRow row = round % 3 == 0 ? Adopted() : Running();
    row.round = round;
    row.incumbent_round = (round + 1) / 2;
    row.y = std::fabs(std::sin(round));
    if (row.z_norm) row.z_norm = std::exp(20 * std::sin(2.0 * round));
    rows.push_back(row);
  }
  std::string text = kMetrics;
  for (const MetricsRow& row : rows) text += FormatRow(row) + "\n";
  const Result<std::vector<MetricsRow>> again = ParseMetrics(text, "m");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, rows);
}

TEST(Metrics, MayHaveNoRows) { EXPECT_THAT(*ParseMetrics(kMetrics, "m"), IsEmpty()); }

TEST(Metrics, NeedTheHeader) {
  EXPECT_THAT(Problem(ParseMetrics("", "m")), HasSubstr("m:1: header = (empty): must be round,"));
  EXPECT_THAT(Problem(ParseMetrics("round,learner\n", "m")),
              HasSubstr("m:1: header = round,learner: must be round,learner,state,"));
  EXPECT_THAT(Problem(ParseMetrics(kTruth, "m")), HasSubstr("m:1: header = round,learner,worlds,"));
  EXPECT_THAT(Problem(ParseMetrics(kMetricsHeader, "m")),
              HasSubstr("m:1: the last line has no newline"));
}

TEST(Metrics, NameFileLineColumnValueAndRule) {
  const auto with = [](const std::string& round, const std::string& state, const std::string& y,
                       const std::string& rest) {
    return MetricsProblem(round + ",2," + state + ",0,0," + y + "," + rest);
  };
  const std::string rest = "0.1,1,0.04,2,0.01,,1,1,1,0.5,0.1,600";
  EXPECT_EQ(with("1", "running", "0.5", rest), "no problem");
  EXPECT_EQ(with("0", "running", "0.5", rest),
            "m:2: round = 0: must be a whole number in 1..2147483647");
  EXPECT_THAT(with("1.5", "running", "0.5", rest), HasSubstr("m:2: round = 1.5: "));
  EXPECT_THAT(with("99999999999", "running", "0.5", rest), HasSubstr("round = 99999999999: "));
  EXPECT_THAT(with("+1", "running", "0.5", rest), HasSubstr("round = +1: "));
  EXPECT_THAT(with(" 1", "running", "0.5", rest), HasSubstr("round =  1: "));
  EXPECT_EQ(with("1", "waiting", "0.5", rest),
            "m:2: state = waiting: must be running, stopping, stopped, adopted or resting");
  EXPECT_EQ(with("1", "", "0.5", rest),
            "m:2: state = (empty): must be running, stopping, stopped, adopted or resting");
  EXPECT_EQ(with("1", "running", "", rest), "m:2: y = (empty): must be a number");
  EXPECT_EQ(with("1", "running", "0.5x", rest), "m:2: y = 0.5x: must be a number");
  EXPECT_EQ(with("1", "running", "nan", rest), "m:2: y = nan: must be a number");
  EXPECT_EQ(with("1", "running", "inf", rest), "m:2: y = inf: must be a number");
  EXPECT_EQ(with("1", "running", "1e999", rest), "m:2: y = 1e999: must be a number");
  EXPECT_EQ(with("1", "running", "1.5", rest), "m:2: y = 1.5: must be in [0, 1]");
  EXPECT_EQ(with("1", "running", "0.5", "-0.1,1,0.04,2,0.01,,1,1,1,0.5,0.1,600"),
            "m:2: b = -0.1: must be >= 0");
  EXPECT_EQ(with("1", "running", "0.5", "0.1,-1,0.04,2,0.01,,1,1,1,0.5,0.1,600"),
            "m:2: z_norm = -1: must be >= 0");
  EXPECT_EQ(with("1", "running", "0.5", "0.1,1,no,2,0.01,,1,1,1,0.5,0.1,600"),
            "m:2: q = no: must be a number");
  EXPECT_EQ(with("1", "running", "0.5", "0.1,1,0.04,2,,,1,1,1,0.5,0.1,600"),
            "m:2: step = (empty): must be a number");
  EXPECT_EQ(with("1", "running", "0.5", "0.1,1,0.04,2,0.01,3,1,1,1,0.5,0.1,600"),
            "m:2: adopted_from = 3: must be given if and only if the state is adopted");
  EXPECT_EQ(with("1", "adopted", "0.5", rest),
            "m:2: adopted_from = (empty): must be given if and only if the state is adopted");
  EXPECT_EQ(with("1", "adopted", "0.5", "0.1,1,0.04,2,0.01,2,1,1,1,0.5,0.1,600"),
            "m:2: adopted_from = 2: must be another learner");
  EXPECT_EQ(with("1", "running", "0.5", "0.1,1,0.04,2,0.01,,1.1,1,1,0.5,0.1,600"),
            "m:2: zeta = 1.1: must be in [0, 1]");
  EXPECT_EQ(with("1", "running", "0.5", "0.1,1,0.04,2,0.01,,1,1,2,0.5,0.1,600"),
            "m:2: incumbent_round = 2: must be a whole number in 1..1");
  EXPECT_EQ(with("1", "running", "0.5", "0.1,1,0.04,2,0.01,,1,nobody,1,0.5,0.1,600"),
            "m:2: incumbent_learner = nobody: must be a learner's number from 1 on, or average");
  EXPECT_THAT(MetricsProblem("1,2,running,2,0,0.5," + rest), HasSubstr("m:2: took_stock = 2: "));
  EXPECT_THAT(MetricsProblem("1,2,running,0,x,0.5," + rest), HasSubstr("m:2: kept_policy = x: "));
  EXPECT_THAT(with("1", "running", "0.5", "0.1,1,0.04,2,0.01,,1,1,1,0.5,0.1,-6"),
              HasSubstr("m:2: episodes = -6: "));
}

TEST(Metrics, NeedEveryColumnAndNoMore) {
  const std::string line = FormatRow(Running());
  EXPECT_EQ(MetricsProblem(line), "no problem");
  EXPECT_EQ(MetricsProblem(line.substr(0, line.rfind(','))), "m:2: episodes: column missing");
  EXPECT_EQ(MetricsProblem(line + ",7"), "m:2: 7: more columns than the header");
  EXPECT_EQ(MetricsProblem(line + "\r"),
            "m:2: episodes = 18000000000\\x0d: must be a whole number "
            "in 0..9223372036854775807");
  EXPECT_THAT(MetricsProblem(""), HasSubstr("m:2: round = (empty): "));
  EXPECT_THAT(MetricsProblem(std::string(5000, '1')), HasSubstr("line of 5000 bytes"));
}

TEST(Metrics, AreSortedByRoundAndLearner) {
  const std::string line = FormatRow(Running());  // round 3, learner 2
  EXPECT_EQ(MetricsProblem(line + "\n" + line),
            "m:3: learner = 2: must be higher than in the row before");
  MetricsRow earlier = Running();
  earlier.round = 2;
  EXPECT_EQ(MetricsProblem(line + "\n" + FormatRow(earlier)),
            "m:3: round = 2: must not be lower than in the row before");
}

// A writer that was killed leaves half a line; no prefix of a file is taken for a whole one unless
// it ends with a row.
TEST(Metrics, CutOffAnywhereAreNotedUnlessAtALine) {
  const std::string text = kMetrics + FormatRow(Running()) + "\n" + FormatRow(Adopted()) + "\n";
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const bool at_line = size > 0 && text[size - 1] == '\n';
    EXPECT_EQ(ParseMetrics(text.substr(0, size), "m").has_value(), at_line) << size;
  }
}

TEST(Metrics, QuoteHostileTextShortAndPrintable) {
  const std::string hostile = "\x1b[2J" + std::string(1000, 'a');
  const std::string problem = MetricsProblem(hostile + ",1");
  EXPECT_THAT(problem, HasSubstr("round = \\x1b[2Ja"));
  EXPECT_LT(problem.size(), 200U);
}

TEST(Truth, ComesBackBitForBit) {
  const std::vector<TruthRow> rows = {{0, 1, 2000, 1, 0.8743, 0.1802},
                                      {0, std::nullopt, 2000, 4, 1.0 / 3, 0.944},
                                      {20, 2, 10'000, 1, 0, 1},
                                      {20, 11, 10'000, 1, 1, 0}};
  std::string text = kTruth;
  for (const TruthRow& row : rows) text += FormatRow(row) + "\n";
  EXPECT_THAT(text, HasSubstr("\n0,incumbent,2000,4,0.3333333333333333,0.944\n"));
  const Result<std::vector<TruthRow>> again = ParseTruth(text, "t");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, rows);
}

TEST(Truth, RefusesWhatIsMalformed) {
  EXPECT_EQ(TruthProblem("1,incumbent,2000,1,0.5,0.9"), "no problem");
  EXPECT_THAT(TruthProblem("-1,incumbent,2000,1,0.5,0.9"), HasSubstr("t:2: round = -1: "));
  EXPECT_EQ(TruthProblem("1,nobody,2000,1,0.5,0.9"),
            "t:2: learner = nobody: must be a learner's number from 1 on, or incumbent");
  EXPECT_THAT(TruthProblem("1,0,2000,1,0.5,0.9"), HasSubstr("t:2: learner = 0: "));
  EXPECT_THAT(TruthProblem("1,1,0,1,0.5,0.9"), HasSubstr("t:2: worlds = 0: "));
  EXPECT_THAT(TruthProblem("1,1,2000,0,0.5,0.9"), HasSubstr("t:2: starts = 0: "));
  EXPECT_EQ(TruthProblem("1,1,2000,1,-0.5,0.9"), "t:2: cost = -0.5: must be in [0, 1]");
  EXPECT_EQ(TruthProblem("1,1,2000,1,0.5,90"), "t:2: safe_rate = 90: must be in [0, 1]");
  EXPECT_EQ(TruthProblem("1,1,2000,1,0.5"), "t:2: safe_rate: column missing");
  EXPECT_THAT(Problem(ParseTruth(kMetrics, "t")), HasSubstr("t:1: header = "));
}

TEST(Truth, IsSortedWithTheIncumbentLast) {
  EXPECT_EQ(
      TruthProblem("1,2,9,1,0.5,0.9\n1,10,9,1,0.5,0.9\n1,incumbent,9,1,0.5,0.9\n2,1,9,1,0.5,0.9"),
      "no problem");
  const auto order = HasSubstr("must come after the row before");
  EXPECT_THAT(TruthProblem("1,2,9,1,0.5,0.9\n1,2,9,1,0.5,0.9"), order);
  EXPECT_THAT(TruthProblem("1,incumbent,9,1,0.5,0.9\n1,2,9,1,0.5,0.9"), order);
  EXPECT_THAT(TruthProblem("1,incumbent,9,1,0.5,0.9\n1,incumbent,9,1,0.5,0.9"), order);
  EXPECT_THAT(TruthProblem("2,2,9,1,0.5,0.9\n1,2,9,1,0.5,0.9"),
              HasSubstr("t:3: round = 1: must not"));
}

TEST(Timing, ComesBackBitForBit) {
  const std::vector<TimingRow> rows = {{0, 0, 0}, {1, 0.1 + 0.2, 4800}, {7, 1e3, 33'600}};
  std::string text = kTiming;
  for (const TimingRow& row : rows) text += FormatRow(row) + "\n";
  EXPECT_EQ(text, kTiming + "0,0,0\n1,0.30000000000000004,4800\n7,1000,33600\n");
  EXPECT_EQ(*ParseTiming(text, "s"), rows);
}

TEST(Timing, RefusesWhatIsMalformed) {
  EXPECT_THAT(TimingProblem("x,1,1"), HasSubstr("s:2: round = x: "));
  EXPECT_EQ(TimingProblem("1,-1,1"), "s:2: seconds = -1: must be in [0, 1000000000000]");
  EXPECT_THAT(TimingProblem("1,1,1.5"), HasSubstr("s:2: episodes = 1.5: "));
  EXPECT_EQ(TimingProblem("1,1"), "s:2: episodes: column missing");
  EXPECT_EQ(TimingProblem("1,1,1,"), "s:2: : more columns than the header");
  EXPECT_EQ(TimingProblem("1,1,1\n1,2,2"), "s:3: round = 1: must be higher than in the row before");
  EXPECT_EQ(TimingProblem("1,1,1\n2,0.5,2"),
            "s:3: seconds = 0.5: must not be lower than in the row before");
  EXPECT_EQ(TimingProblem("1,1,5\n2,1,4"),
            "s:3: episodes = 4: must not be lower than in the row before");
  EXPECT_THAT(Problem(ParseTiming("", "s")), HasSubstr("s:1: header = (empty)"));
}

TEST(RunDirectory, LoadsFilesAndNamesThem) {
  const TemporaryDirectory directory;
  const auto write = [&](const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(directory.Path(name), text, IfExists::kReplace));
  };
  write("metrics.csv", kMetrics + FormatRow(Adopted()) + "\n");
  write("truth.csv", kTruth + "1,1,9,1,0.5,1\n");
  write("timing.csv", kTiming + "1,0.5,9\n1,0.5,9\n");
  EXPECT_THAT(*LoadMetrics(directory.Path("metrics.csv")), ElementsAre(Adopted()));
  EXPECT_EQ(LoadTruth(directory.Path("truth.csv"))->size(), 1U);
  EXPECT_THAT(LoadTiming(directory.Path("timing.csv")).error().message,
              HasSubstr(directory.Path("timing.csv") + ":3: round = 1: "));
  EXPECT_EQ(LoadMetrics(directory.Path("none.csv")).error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace fedgen
