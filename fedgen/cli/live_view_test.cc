// SPDX-License-Identifier: Apache-2.0
#include "fedgen/cli/live_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace fedgen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Round 12 of 40: learner 1 runs, learner 2 has just adopted from 1, learner 3 has just stopped.
RoundReport Sample() {
  RoundReport report;
  report.round = 12;
  report.episodes = 1'230'000;
  report.learners.resize(3);
  for (std::uint32_t i = 0; i < 3; ++i) report.learners[i].learner = LearnerId(i);
  LearnerRound& runs = report.learners[0];
  runs.y = 0.351;
  runs.b = 0.23;
  runs.z_norm = 3.14159;
  runs.spread = 2.5;
  LearnerRound& adopts = report.learners[1];
  adopts.phase = LearnerPhase::kAdopted;
  adopts.adopted_from = LearnerId(0);
  adopts.y = 0.872;
  LearnerRound& stops = report.learners[2];
  stops.phase = LearnerPhase::kStopping;
  stops.y = 0.5;
  stops.b = 0.125;
  Submission incumbent;
  incumbent.round = 9;
  incumbent.y = 0.34;
  incumbent.b = 0.23;
  report.incumbent = incumbent;
  return report;
}

TEST(LiveView, TableSaysWhereEveryLearnerIs) {
  const std::string table = LiveTable(Sample(), 40, 6, 0, {});
  EXPECT_THAT(table, StartsWith("training: round 12/40  at most 14 s left, then race and "
                                "certificate\n1.23 M episodes  incumbent: learner 1, round 9, y "
                                "0.340 +- 0.230\n"));
  EXPECT_THAT(table, HasSubstr("      1  0.351 +- 0.230     3.14       2.5  running\n"));
  EXPECT_THAT(table, HasSubstr("adopted from 1\n"));
  EXPECT_THAT(table, HasSubstr("        -         -  stopping\n"));
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// A line that wraps, or a table taller than the terminal, would not be redrawn in place.
TEST(LiveView, TableFitsTheTerminal) {
  RoundReport report = Sample();
  report.learners.resize(50, report.learners[0]);
  for (std::uint32_t i = 0; i < 50; ++i) report.learners[i].learner = LearnerId(i);
  for (const TerminalSize size : {TerminalSize{24, 80}, {40, 120}, {54, 30}, {5, 40}, {1, 1}}) {
    const std::vector<std::string> lines = LinesOf(LiveTable(report, 40, 6, 0, size));
    EXPECT_LE(lines.size(), static_cast<std::size_t>(std::max(size.rows - 1, 4)));
    for (const std::string& line : lines) {
      EXPECT_LE(line.size(), static_cast<std::size_t>(std::max(size.columns - 1, 1))) << line;
    }
  }
  // 23 rows above the cursor's: 3 for the whole, 19 learners, and one that counts the others.
  const std::vector<std::string> lines = LinesOf(LiveTable(report, 40, 6, 0, {24, 80}));
  ASSERT_EQ(lines.size(), 23U);
  EXPECT_THAT(lines[21], StartsWith("       19  "));
  EXPECT_EQ(lines[22], "  and 31 more");
  // 50 learners and 3 lines above the cursor's fit just so.
  EXPECT_THAT(LiveTable(report, 40, 6, 0, {54, 80}), Not(HasSubstr("more")));
  EXPECT_THAT(LiveTable(report, 40, 6, 0, {53, 80}), HasSubstr("  and 2 more\n"));
}

// "0 s left" would be said before a race and a certificate of minutes.
TEST(LiveView, SaysWhatComesAfterTraining) {
  RoundReport last = Sample();
  last.round = 40;
  last.ending = Ending::kRounds;
  EXPECT_THAT(LiveLine(last, 40, 6, 0),
              StartsWith("training: round 40/40  done, then race and certificate  "));
}

TEST(LiveView, CountsTimeFromWhereARunWasResumed) {
  // Two rounds in 6 s leave 28 for 84 s.
  EXPECT_THAT(LiveLine(Sample(), 40, 6, 10), HasSubstr("at most 1 min 24 s left"));
  EXPECT_THAT(LiveLine(Sample(), 40, 6, 12), HasSubstr("at most ? left"));
}

TEST(LiveView, TellsEventsOnce) {
  EXPECT_EQ(LiveEvents(Sample()),
            "round   12  learner 2 adopts from 1: y 0.872 -> 0.340\n"
            "round   12  learner 3 stops at y 0.500 +- 0.125\n");
}

TEST(LiveView, NamesTheAverageOfTheCloud) {
  RoundReport report = Sample();
  report.incumbent->learner = LearnerId::Cloud();
  report.learners[1].adopted_from = LearnerId::Cloud();
  EXPECT_THAT(LiveTable(report, 40, 6, 0, {}), HasSubstr("incumbent: learner average"));
  EXPECT_THAT(LiveEvents(report), HasSubstr("learner 2 adopts from average"));
}

}  // namespace
}  // namespace fedgen
