// SPDX-License-Identifier: Apache-2.0

// `fedgen reproduce` as its users meet it, in its quick form: every experiment runs, writes what it
// promises, can be killed and taken up again, and never touches a directory that is not its own.

#include <algorithm>
#include <map>
#include <sstream>
#include <vector>

#include "tests/program_testing.h"

namespace fedgen {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Reproduce : public ProgramTest {
 protected:
  // The quick form.
  Ran Run(const std::string& arguments, const std::string& out = "results") const {
    return ProgramTest::Run("reproduce --quick " + kTables + "--out " + out + " " + arguments);
  }
  std::string Result(const std::string& name) const { return Slurp(directory_ / "results" / name); }

  inline static const std::string kTables =
      "--config '" FEDGEN_SOURCE_DIR "/configs/paper-tables.toml' ";
};

TEST_F(Reproduce, TableOneShowsEightLearnersInAllStages) {
  const Ran ran = Run("table1");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("8 learners, "));
  EXPECT_THAT(ran.out, HasSubstr("Checks"));
  EXPECT_EQ(Result("table1/table1.txt"), ran.out);
  const std::string csv = Result("table1/table1.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 8 * 3);
}

// What is missed is printed, written and told by the exit code; the results stay and are made again
// from the cache. One learner that does not learn misses three checks.
TEST_F(Reproduce, SaysWithItsExitCodeThatACheckWasMissed) {
  const std::string run = "reproduce table1 --out results " + kTables +
                          "--set federation.learners=1 --set federation.rounds=1 ";
  for (const char* before : {"0 of 1 runs", "1 of 1 runs"}) {
    const Ran ran = ProgramTest::Run(run);
    EXPECT_EQ(ran.exit_code, 8) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr(before));
    EXPECT_THAT(ran.err, EndsWith("fedgen: table1: 3 of 8 checks were missed\n"));
    EXPECT_THAT(ran.out, ContainsRegex("Final, mean safe rate +at least 0.92 +0.[0-9]+ +MISSED\n"));
    EXPECT_THAT(ran.out, ContainsRegex("Init, mean safe rate +0.1792 .- 0.0140 +0.[0-9]+ +met\n"));
    EXPECT_EQ(Result("table1/table1.txt"), ran.out);
  }
}

TEST_F(Reproduce, ShowsTheTextByTheLetterAndTableOneWithSigmaMoving) {
  const Ran text = Run("text");
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, StartsWith("The text's numbers beside Table 1: paper-tables"));
  EXPECT_THAT(text.out, HasSubstr("Learners that ever stop"));
  EXPECT_EQ(Result("text/text.txt"), text.out);
  const Ran sigma = Run("sigma");
  ASSERT_EQ(sigma.exit_code, 0) << sigma.err;
  EXPECT_THAT(sigma.err, HasSubstr("0 of 8 runs were done before"));
  const std::string csv = Result("sigma/sigma.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 4 * 2);
  const Ran again = Run("sigma");
  EXPECT_THAT(again.err, HasSubstr("8 of 8 runs were done before"));
  EXPECT_EQ(again.out, sigma.out);
}

// Why Table 2's first column may come from runs of eight: until it first stops, a learner among
// eight is, to the last bit, a learner alone.
TEST_F(Reproduce, ALearnerAloneEndsWhereItWouldFirstStopAmongEight) {
  const auto row = [&](const std::string& arguments, const std::string& start) {
    const std::string out = arguments.empty() ? "eight" : "one";
    EXPECT_EQ(Run("table1 --set learner.threshold=7 " + arguments, out).exit_code, 0);
    const std::string csv = Slurp(directory_ / out / "table1/table1.csv");
    const std::size_t begin = csv.find("\n" + start) + 1 + start.size();
    return csv.substr(begin, csv.find(',', begin) - begin);  // the distance, all digits
  };
  const std::string alone = row("--set federation.learners=1", "1,Final,200,");
  EXPECT_EQ(row("", "1,Local,200,"), alone);
  EXPECT_NE(row("", "2,Local,200,"), alone);
}

TEST_F(Reproduce, GoesOnWhereItWasAndTrustsNoBrokenFile) {
  const Ran first = Run("table2 --threads 1");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("0 of 17 runs were done before"));
  const std::string csv = Result("table2/table2.csv");
  // Sixteen learners in each column, or eighteen in three runs of six.
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 16 + 16 + 16 + 18 + 16);

  // As if the program had been killed: one run is missing, another is half written.
  auto cached = fs::directory_iterator(directory_ / "results/cache");
  fs::remove(cached->path());
  cached = fs::directory_iterator(directory_ / "results/cache");
  fs::resize_file(cached->path(), fs::file_size(cached->path()) / 2);
  const Ran second = Run("table2 --threads 3");
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("15 of 17 runs were done before"));
  EXPECT_EQ(second.out, first.out);
  EXPECT_EQ(Result("table2/table2.csv"), csv);
}

// What took hours is not lost to a look at whether it works.
TEST_F(Reproduce, LeavesResultsOfOtherSettingsAsTheyAre) {
  ASSERT_EQ(Run("table1").exit_code, 0);
  ASSERT_EQ(Run("figures").exit_code, 0);
  EXPECT_EQ(Run("table1 --threads 2 --seeds 7").exit_code, 2) << "it has one seed";
  const auto files = [&] {
    std::map<std::string, std::string> bytes;
    for (const auto& entry : fs::recursive_directory_iterator(directory_ / "results")) {
      if (entry.is_regular_file()) bytes[entry.path().string()] = Slurp(entry.path());
    }
    return bytes;
  };
  const auto before = files();
  const std::string quick = "reproduce --quick " + kTables + "--out results ";
  const std::string left = "and was left as it is; choose another directory with --out";
  ExpectMistake(quick + "table1 --seed 2", 7,
                "results/table1: holds results with seed = 1, now 2, " + left);
  ExpectMistake(quick + "figures --seed 2", 7,
                "results/figures: holds results with seed = 1, now 2, " + left);
  ExpectMistake(quick + "table1 --set learner.step=0.3", 7,
                "results/table1: holds results with settings = (none), now learner.step=0.3, ");
  ExpectMistake("reproduce " + kTables + "--out results table1", 7,
                "results/table1: holds results with quick = yes, now no, ");
  ExpectMistake("reproduce " + kTables + "--out results figures", 7, "results/figures: holds ");
  // The same name for other contents.
  fs::copy_file(FEDGEN_SOURCE_DIR "/configs/default.toml", directory_ / "paper-tables.toml");
  ExpectMistake("reproduce --quick --config paper-tables.toml --out results table1", 7,
                "results/table1: holds results with sha256 = ");
  // All experiments are looked at before the first is run.
  fs::remove_all(directory_ / "results/table1");
  fs::create_directory_symlink(FEDGEN_SOURCE_DIR "/configs", directory_ / "configs");
  ExpectMistake("reproduce --quick --out results all --seed 2", 7,
                "results/figures: holds results with seed = 1, now 2");
  ASSERT_EQ(Run("table1").exit_code, 0) << "from the cache";
  EXPECT_TRUE(files() == before);
}

// What has lost its settings.txt may be anything.
TEST_F(Reproduce, LeavesResultsOfUnknownSettings) {
  ASSERT_EQ(Run("table1").exit_code, 0);
  const std::string csv = Result("table1/table1.csv");
  fs::remove(directory_ / "results/table1/settings.txt");
  ExpectMistake("reproduce --quick " + kTables + "--out results table1", 7,
                "results/table1: holds results of unknown settings");
  EXPECT_EQ(Result("table1/table1.csv"), csv);
}

// Outside the repository there are no configs/.
TEST_F(Reproduce, SaysThatItNeedsAConfiguration) {
  for (const char* what : {"table1", "comparison", "estimators", "all"}) {
    ExpectMistake(std::string("reproduce ") + what, 6,
                  "No such file or directory (run fedgen where configs/ is, ");
  }
  // One file cannot stand for two.
  ExpectMistake("reproduce estimators " + kTables, 2,
                "estimators reads configs/default.toml and configs/evolution.toml");
  ExpectMistake("reproduce comparison " + kTables, 2,
                "comparison reads configs/default.toml and configs/rooms.toml");
  EXPECT_FALSE(fs::exists(directory_ / "out"));
}

TEST_F(Reproduce, DrawsTheFiguresOfARun) {
  for (int time = 0; time < 2; ++time) {  // the second only draws again
    const Ran ran = Run("figures");
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("figures of learner "));
    for (const char* name : {"bounds", "learning", "world", "trajectories"}) {
      const std::string stem = std::string("figures/run/figures/") + name;
      EXPECT_THAT(Result(stem + ".png"), StartsWith("\x89PNG"));
      EXPECT_THAT(Result(stem + ".svg"), HasSubstr("<svg"));
    }
  }
}

TEST_F(Reproduce, DrawsEveryTradeoff) {
  const Ran ran = Run("tradeoffs");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(Result("tradeoffs/tradeoffs.txt").empty(), false);
  for (const char* name : {"gamma", "b", "worlds", "q", "step", "learners"}) {
    const std::string stem = std::string("tradeoffs/") + name;
    EXPECT_THAT(Result(stem + ".png"), StartsWith("\x89PNG"));
    EXPECT_THAT(Result(stem + ".svg"), HasSubstr("<svg"));
    const std::string csv = Result(stem + ".csv");
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 2 * 2);
  }
}

TEST_F(Reproduce, ComparesAtEqualNumbersOfEpisodes) {
  const Ran ran = Run("comparison-tenth");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("seeds 1001 to 1002"));
  EXPECT_THAT(ran.out, HasSubstr("\n  over "));
  std::istringstream csv(Result("comparison-tenth/comparison-tenth.csv"));
  std::string line;
  std::getline(csv, line);
  std::vector<double> budget;
  int rows = 0;
  while (std::getline(csv, line)) {
    std::istringstream fields(line);
    std::vector<std::string> row;
    for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
    ASSERT_EQ(row.size(), 8u);
    const double episodes = std::stod(row[3]);
    if (row[0] == "fedgen") {
      budget.push_back(episodes);
    } else {
      // Whole rounds that fit into the budget; one more would not.
      const double allowed = budget[static_cast<std::size_t>(rows % 2)];
      EXPECT_LE(episodes, allowed) << line;
      EXPECT_GT(episodes * (1 + 1 / std::stod(row[2])), allowed) << line;
    }
    ++rows;
  }
  EXPECT_EQ(rows, 4 * 2);
}

// A part that was run alone is part of the whole, which goes on to the statements.
TEST_F(Reproduce, JudgesStatementsAfterEverySetting) {
  fs::create_directory_symlink(FEDGEN_SOURCE_DIR "/configs", directory_ / "configs");
  const std::string quick =
      "reproduce --quick --out results --set federation.learners=2 --set episode.horizon=60 ";
  const Ran rooms = ProgramTest::Run(quick + "comparison-rooms --seed 3");
  ASSERT_EQ(rooms.exit_code, 0) << rooms.err;
  EXPECT_THAT(rooms.out, StartsWith("Comparison, a fifth of the rounds: rooms "));
  const Ran ran = ProgramTest::Run(quick + "comparison --seed 3");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("comparison-tenth: 0 of 2 runs were done before"));
  EXPECT_THAT(ran.err, HasSubstr("comparison-rooms: 6 of 6 runs were done before"));
  EXPECT_THAT(ran.out, HasSubstr("\n" + rooms.out));
  EXPECT_THAT(ran.out, ContainsRegex("S1 tenth: .*\n.* 2 seeds: [a-z ]+\n"));
  EXPECT_THAT(ran.out, HasSubstr(Result("comparison/comparison.txt")));
  const std::string csv = Result("comparison/comparison.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 3);
  for (const char* setting : {"comparison-tenth", "comparison-rooms", "comparison-full"}) {
    EXPECT_NE(Result(std::string(setting) + "/" + setting + ".csv"), "") << setting;
  }
}

TEST_F(Reproduce, DrawsBothEstimatorsAndGoesOnWhereItWas) {
  fs::create_directory_symlink(FEDGEN_SOURCE_DIR "/configs", directory_ / "configs");
  const std::string quick = "reproduce --quick --out results --set federation.learners=2 ";
  const Ran first = ProgramTest::Run(quick + "estimators");
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, ContainsRegex("\\(default.toml\\) .*0.944 "));
  EXPECT_THAT(first.out, HasSubstr("evolution strategies (evolution.toml), against "));
  const std::string csv = Result("estimators/estimators.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 2 * 12);  // every round
  EXPECT_THAT(Result("estimators/estimators.png"), StartsWith("\x89PNG"));
  EXPECT_THAT(Result("estimators/estimators.svg"), HasSubstr("<svg"));

  // As if the program had been killed before the second run had ended: its times stay.
  fs::remove(directory_ / "results/estimators/evolution/summary.json");
  fs::remove(directory_ / "results/estimators/estimators.txt");
  const Ran second = ProgramTest::Run(quick + "estimators");
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(second.out, first.out);
  EXPECT_EQ(Result("estimators/estimators.csv"), csv);
}

TEST_F(Reproduce, RefusesWhatItDidNotMakeAndWhatItDoesNotKnow) {
  fs::create_directory(directory_ / "results");
  Write("results/thesis.txt", "precious");
  const Ran foreign = Run("table1");
  EXPECT_EQ(foreign.exit_code, 7);
  EXPECT_THAT(foreign.err, HasSubstr("results: is not empty and was not made by fedgen reproduce"));
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_ / "results"), {}), 1);

  fs::remove_all(directory_ / "results");
  const Ran unknown = Run("tabel1");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean table1?"));
  EXPECT_EQ(Run("table1 --set robot.radus=1").exit_code, 3);
  // The experiment would win, silently.
  const Ran settled = Run("comparison-tenth --quick --set federation.algorithm=local");
  EXPECT_EQ(settled.exit_code, 2);
  EXPECT_THAT(settled.err, HasSubstr("federation.algorithm=local: comparison-tenth sets this key"));
  const Ran last = Run("table1 --seed 18446744073709551615");
  EXPECT_EQ(last.exit_code, 2);
  EXPECT_THAT(last.err, HasSubstr("--seed = 18446744073709551615: must leave room"));
  EXPECT_FALSE(fs::exists(directory_ / "results"));
}

}  // namespace
}  // namespace fedgen
