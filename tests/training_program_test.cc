// SPDX-License-Identifier: Apache-2.0

// `fedgen train` as its users meet it: the same bytes for any number of threads, after kill -9 at
// any moment, and after a disk that was full.

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "fedgen/base/random.h"
#include "tests/program_testing.h"
#include "tests/terminal_testing.h"

namespace fedgen {
namespace {

namespace fs = std::filesystem;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class Training : public ProgramTest {
 protected:
  // Runs the program and kills it -9, or by another signal, once it has said `lines` lines on
  // stderr. Returns whether it had to be killed; said_ is what it still said.
  bool RunAndKill(const std::vector<std::string>& arguments, int lines, int signal = SIGKILL) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(ends[1], STDERR_FILENO);
      const int null = ::open("/dev/null", O_WRONLY);
      ::dup2(null, STDOUT_FILENO);
      std::vector<char*> argv = {const_cast<char*>(FEDGEN_PROGRAM)};  // NOLINT(*const-cast)
      for (const std::string& argument : arguments) {
        argv.push_back(const_cast<char*>(argument.c_str()));  // NOLINT(*const-cast)
      }
      argv.push_back(nullptr);
      if (::chdir(directory_.c_str()) == 0) ::execv(FEDGEN_PROGRAM, argv.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    char c = 0;
    while (lines > 0 && ::read(ends[0], &c, 1) == 1) lines -= c == '\n' ? 1 : 0;
    if (lines == 0) ::kill(child, signal);
    said_.clear();
    while (::read(ends[0], &c, 1) == 1) said_ += c;
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == signal;
  }
  std::string said_;

  // The arguments that start a small run.
  std::vector<std::string> Start(const std::string& out, const std::string& options = "") const {
    std::vector<std::string> start = {"train", "--config", config_, "--out", out};
    std::istringstream words(small_ + options);
    start.insert(start.end(), std::istream_iterator<std::string>(words), {});
    return start;
  }

  // Every file of a run but what depends on the clock.
  std::map<std::string, std::string> Bytes(const std::string& run) const {
    std::map<std::string, std::string> bytes;
    for (const auto& entry : fs::recursive_directory_iterator(directory_ / run)) {
      const std::string name = fs::relative(entry.path(), directory_ / run).string();
      if (!entry.is_regular_file() || name == "timing.csv") continue;
      if (name.starts_with("figures/seconds")) continue;
      bytes[name] = Slurp(entry.path());
    }
    return bytes;
  }

  void ExpectSameRuns(const std::string& a, const std::string& b) const {
    const auto left = Bytes(a);
    const auto right = Bytes(b);
    std::vector<std::string> left_names, right_names;
    for (const auto& [name, bytes] : left) left_names.push_back(name);
    for (const auto& [name, bytes] : right) right_names.push_back(name);
    EXPECT_EQ(left_names, right_names);
    for (const auto& [name, bytes] : left) {
      EXPECT_TRUE(right.contains(name) && right.at(name) == bytes) << name << " differs";
    }
  }

  const std::string config_ = FEDGEN_SOURCE_DIR "/configs/quick.toml";
  // Relative paths are relative to the configuration.
  const std::string given_ =
      "learners=[{initial_policy=\"" + (directory_ / "given.fgp").string() + "\"}]";
#ifdef NDEBUG
  const std::string small_ =
      " --set federation.rounds=24 --set federation.selection_worlds=500 --set "
      "federation.certificate_worlds=300 --set federation.track_every=5 --set "
      "federation.track_worlds=100 --set learner.window=3 --set learner.stock_every=6 --set "
      "learner.stock_worlds=400 --set federation.average_every=7 ";
#else
  const std::string small_ =
      " --set federation.rounds=10 --set federation.selection_worlds=100 --set "
      "federation.certificate_worlds=100 --set federation.track_every=5 --set "
      "federation.track_worlds=50 --set learner.window=2 --set learner.stock_every=4 --set "
      "learner.stock_worlds=100 --set learner.worlds=16 --set learner.pairs=4 --set "
      "federation.average_every=3 ";
#endif
};

TEST_F(Training, LeavesEverythingThatIsPromised) {
  const Ran ran = Run("train --config '" + config_ + "'" + small_ + "--out run --seed 3");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("safe arrival >= "));
  const auto bytes = Bytes("run");
  for (const char* name :
       {"run.json", "config.toml", "host.fgc", "cloud.fgc", "metrics.csv", "truth.csv",
        "summary.json", "certificate.json", "policies/initial-1.fgp", "policies/final-4.fgp",
        "policies/best.fgp", "policies/incumbent.fgp", "figures/bounds.svg", "figures/learning.png",
        "figures/trajectories.svg", "figures/world.png"}) {
    EXPECT_TRUE(bytes.contains(name)) << name;
  }
  const nlohmann::json summary = nlohmann::json::parse(bytes.at("summary.json"));
  EXPECT_EQ(summary["seed"], 3);
  EXPECT_EQ(summary["learners"].size(), 4);
  // The certificate is that of best.fgp in this configuration.
  EXPECT_EQ(Run("verify run/certificate.json --policy run/policies/best.fgp --config "
                "run/config.toml")
                .exit_code,
            0);
  // Drawing again draws the same, and says where.
  const Ran plot = Run("plot run");
  EXPECT_EQ(plot.exit_code, 0);
  std::string figures;
  for (const char* name : {"bounds", "learning", "seconds", "world", "trajectories"}) {
    const std::string stem = std::string("run/figures/") + name;
    figures += stem + ".svg\n" + stem + ".png\n";
  }
  EXPECT_EQ(plot.out, figures);
  EXPECT_TRUE(Bytes("run") == bytes);
}

TEST_F(Training, GivesTheSameBytesForAnyThreadsAndKernel) {
  const std::string train = "train --config '" + config_ + "'" + small_;
  ASSERT_EQ(Run(train + "--out a -t 1").exit_code, 0);
  ASSERT_EQ(Run(train + "--out b -t 3").exit_code, 0);
  ExpectSameRuns("a", "b");
  // The scalar kernel takes its time.
  const std::string few = train + "--set federation.rounds=2 --set federation.track_every=0 ";
  ASSERT_EQ(Run(few + "--out simd").exit_code, 0);
  ASSERT_EQ(Run(few + "--out scalar --kernel scalar").exit_code, 0);
  ExpectSameRuns("simd", "scalar");
  EXPECT_EQ(Run(train + "--out never --kernel cuda").exit_code, 2);
  ASSERT_EQ(Run(train + "--out c -t 2 --seed 2").exit_code, 0);
  EXPECT_NE(Bytes("a").at("metrics.csv"), Bytes("c").at("metrics.csv"));
}

// A run keeps the policy it begins with: what becomes of the file does not matter.
TEST_F(Training, KeepsTheInitialPolicyItWasGiven) {
  ASSERT_EQ(Run("policy new --config '" + config_ + "' --seed 5 -o given.fgp").exit_code, 0);
  const std::string given = "--set '" + given_ + "' ";
  ASSERT_EQ(Run("train --config '" + config_ + "'" + small_ + given + "--out whole").exit_code, 0);
  EXPECT_EQ(Slurp(directory_ / "whole/policies/given-1.fgp"), Slurp(directory_ / "given.fgp"));
  EXPECT_EQ(Slurp(directory_ / "whole/policies/initial-1.fgp"), Slurp(directory_ / "given.fgp"));
  std::vector<std::string> start = Start("broken");
  start.insert(start.end(), {"--set", given_});
  ASSERT_TRUE(RunAndKill(start, 2));
  fs::remove(directory_ / "given.fgp");
  fs::remove(directory_ / "broken/policies/initial-2.fgp");  // drawn: made again
  ASSERT_EQ(Run("train --resume broken").exit_code, 0);
  ExpectSameRuns("whole", "broken");
}

// ... and what becomes of its own copy does: the run would not end with the bytes it began for.
TEST_F(Training, NoticesThatItsInitialPolicyWasChanged) {
  ASSERT_EQ(Run("policy new --config '" + config_ + "' --seed 5 -o given.fgp").exit_code, 0);
  ASSERT_EQ(Run("policy new --config '" + config_ + "' --seed 6 -o other.fgp").exit_code, 0);
  std::vector<std::string> start = Start("broken");
  start.insert(start.end(), {"--set", given_});
  ASSERT_TRUE(RunAndKill(start, 6));
  fs::copy_file(directory_ / "other.fgp", directory_ / "broken/policies/given-1.fgp",
                fs::copy_options::overwrite_existing);
  const auto before = Bytes("broken");
  ExpectMistake("train --resume broken", 5,
                "of another seed, configuration, initial policy or program");
  EXPECT_TRUE(Bytes("broken") == before);
}

// A policy made for another sensor or robot would mean something else here.
TEST_F(Training, RefusesAnInitialPolicyThatDoesNotFit) {
  ASSERT_EQ(Run("policy new --config '" + config_ + "' --seed 5 -o given.fgp").exit_code, 0);
  const std::string train =
      "train --config '" + config_ + "'" + small_ + "--set '" + given_ + "' --out run ";
  for (const char* other :
       {"lidar.range=8", "robot.kind=differential", "policy.range_offset=2", "lidar.beams=7",
        "robot.speed=2", "episode.time_step=0.04", "lidar.fan=one-sided"}) {
    ExpectMistake(train + "--set " + other, 5, "given.fgp: policy ");
  }
  EXPECT_FALSE(fs::exists(directory_ / "run"));
}

// Finished rounds are not thrown away because their checkpoint is gone.
TEST_F(Training, SaysThatACheckpointIsMissing) {
  ASSERT_TRUE(RunAndKill(Start("broken"), 6));
  const std::string cloud = Slurp(directory_ / "broken/cloud.fgc");
  fs::remove(directory_ / "broken/cloud.fgc");
  ExpectMistake("train --resume broken", 6, "broken/cloud.fgc: ");
  Write("broken/cloud.fgc", cloud);
  fs::remove(directory_ / "broken/host.fgc");
  const auto before = Bytes("broken");
  ExpectMistake("train --resume broken", 4, "broken/host.fgc: is missing, but ");
  EXPECT_TRUE(Bytes("broken") == before);
  fs::remove(directory_ / "broken/cloud.fgc");
  ExpectMistake("train --resume broken", 4, "broken/host.fgc: is missing, but ");
  // A run that a program before this one began.
  Write("broken/checkpoint.fgc", "FGC");
  ExpectMistake("train --resume broken", 4, "broken/checkpoint.fgc: is of an older version: ");
}

// The Cloud's checkpoint is written before the host's, so it may be a round ahead (then the host
// repeats that round: fuse/checkpoint_test.cc). Further apart they are not of one run.
TEST_F(Training, RefusesACloudThatIsFarAhead) {
  ASSERT_TRUE(RunAndKill(Start("broken"), 3));
  fs::copy(directory_ / "broken", directory_ / "later", fs::copy_options::recursive);
  ASSERT_EQ(Run("train --resume later --no-figures").exit_code, 0);
  fs::copy_file(directory_ / "later/cloud.fgc", directory_ / "broken/cloud.fgc",
                fs::copy_options::overwrite_existing);
  const auto before = Bytes("broken");
  ExpectMistake("train --resume broken", 4, "they are not of one run");
  EXPECT_TRUE(Bytes("broken") == before);
}

// What a run was resolved to reads as the same run.
TEST_F(Training, CanBeRepeatedFromItsOwnConfiguration) {
  ASSERT_EQ(Run("train --config '" + config_ + "'" + small_ + "--out a").exit_code, 0);
  ASSERT_EQ(Run("train --config a/config.toml --out b").exit_code, 0);
  auto a = Bytes("a");
  auto b = Bytes("b");
  EXPECT_EQ(a.at("config.toml"), b.at("config.toml"));
  EXPECT_EQ(a.at("metrics.csv"), b.at("metrics.csv"));
  EXPECT_EQ(a.at("policies/best.fgp"), b.at("policies/best.fgp"));
}

// More rounds for a run that is over, from another directory. (Every byte of it, and every moment
// of a kill: run/local_run_test.cc.)
TEST_F(Training, CanBeGivenMoreRounds) {
  const std::string train = "train --config '" + config_ + "'" + small_ + "--out run --no-figures ";
  ASSERT_EQ(Run(train).exit_code, 0);
  const std::string before = Slurp(directory_ / "run/metrics.csv");
  const Ran ran = Run("train --resume '" + (directory_ / "run").string() + "' --rounds 100",
                      "mkdir elsewhere; cd elsewhere; ");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(Slurp(directory_ / "run/config.toml"), HasSubstr("rounds = 100\n"));
  EXPECT_TRUE(Slurp(directory_ / "run/metrics.csv").starts_with(before));
  EXPECT_EQ(Run("verify run/certificate.json --policy run/policies/best.fgp --config "
                "run/config.toml")
                .exit_code,
            0)
      << "the certificate is that of the new best";
  ExpectMistake("train --resume run --rounds 1", 2, "--rounds = 1: must be at least ");
  ExpectMistake("train --config '" + config_ + "' --rounds 9", 2, "--rounds: goes with --resume");
}

TEST_F(Training, SurvivesKillsAtAnyMoment) {
  for (const std::string learner :
       {"", "--set learner.estimator=policy-gradient --set learner.policy_gradient.episodes=32"}) {
    fs::remove_all(directory_ / "whole");
    fs::remove_all(directory_ / "broken");
    ASSERT_EQ(Run("train --config '" + config_ + "'" + small_ + learner + " --out whole").exit_code,
              0);
    int kills = 0;
    bool killed = RunAndKill(Start("broken", learner), 2);
    for (std::uint64_t attempt = 0; killed && attempt < 60; ++attempt) {
      ++kills;
      // Between 2 and 7 lines: some starts get a few rounds far, some none.
      const int lines = UniformInt(Key(5).Block(attempt)[0], 2, 7);
      killed = RunAndKill({"train", "--resume", "broken", "-t", "1"}, lines);
    }
    ASSERT_EQ(Run("train --resume broken").exit_code, 0) << "again: it was over already";
    EXPECT_GE(kills, 2);
    ExpectSameRuns("whole", "broken");
  }
}

TEST_F(Training, SaysHowToGoOnWhenItIsInterrupted) {
  for (const int signal : {SIGINT, SIGTERM}) {
    fs::remove_all(directory_ / "run");
    ASSERT_TRUE(RunAndKill(Start("run"), 2, signal));
    EXPECT_THAT(said_, EndsWith("fedgen: interrupted: fedgen train --resume run goes on\n"));
  }
  EXPECT_EQ(Run("train --resume run --no-figures").exit_code, 0);
}

// Fifty learners on a terminal of 24 rows: one table, redrawn in place, and no line of it wraps.
TEST_F(Training, ShowsATableThatFitsTheTerminal) {
  const std::string command =
      "cd '" + directory_.string() + "' && '" FEDGEN_PROGRAM "' train --config '" + config_ +
      "' --learners 50 --set federation.rounds=6 --set federation.selection_worlds=100 --set "
      "federation.track_every=0 --set federation.certificate_worlds=100 --no-figures --out run";
  Screen screen(24, 80);
  const std::string bytes = RunOnTerminal(command, 24, 80);
  screen.Feed(bytes);
  const std::vector<std::string> lines = screen.Lines();
  ASSERT_GT(lines.size(), 23U);
  EXPECT_EQ(lines[1], "training: round 6/6  done, then race and certificate");
  EXPECT_THAT(lines[2], HasSubstr(" M episodes  incumbent: learner "));
  EXPECT_EQ(lines[3], "  learner      y +- b          |z|     noise  state");
  EXPECT_THAT(lines[4], ::testing::StartsWith("        1  "));
  EXPECT_EQ(lines[23], "  and 31 more");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), lines[3]), 1);
  EXPECT_THAT(bytes, HasSubstr("\033[23A")) << "never redrawn";
  EXPECT_THAT(bytes, ::testing::Not(HasSubstr(" 0 s left")));
}

// The checkpoint knows the tables: nobody's other rows are drawn in the run's name.
TEST_F(Training, DrawsNoTablesButItsOwn) {
  ASSERT_EQ(Run("train --config '" + config_ + "' --out run --no-figures " + small_).exit_code, 0);
  ASSERT_EQ(Run("plot run").exit_code, 0);
  for (const std::string name : {"run/metrics.csv", "run/truth.csv"}) {
    const std::string bytes = Slurp(directory_ / name);
    std::string changed = bytes;
    const std::size_t digit = changed.find_last_of("0123456789");
    changed[digit] = changed[digit] == '5' ? '6' : '5';
    Write(name, changed);
    ExpectMistake("plot run", 4, name + ": its rows up to round");
    const std::size_t last_row = bytes.rfind('\n', bytes.size() - 2) + 1;
    Write(name, bytes + bytes.substr(last_row));
    ExpectMistake("plot run", 4, name + ": has rows after round");
    Write(name, bytes);
    ASSERT_EQ(Run("plot run").exit_code, 0);
  }
  // Nor under another seed, nor with another configuration, nor with times beyond all times.
  for (const auto& [name, from, to, code] :
       {std::tuple{"run/run.json", "\"seed\": 1", "\"seed\": 2", 5},
        std::tuple{"run/config.toml", "gamma = 0.01", "gamma = 0.5", 5},
        std::tuple{"run/timing.csv", "\n1,", "\n1,1e308", 4}}) {
    const std::string bytes = Slurp(directory_ / name);
    std::string changed = bytes;
    const std::size_t at = changed.find(from);
    ASSERT_NE(at, std::string::npos) << name;
    Write(name, changed.replace(at, std::string_view(from).size(), to));
    ExpectMistake("plot run", code, code == 5 ? "run/host.fgc: belongs to another run" : name);
    Write(name, bytes);
  }
  fs::remove(directory_ / "run/host.fgc");
  ExpectMistake("plot run", 4, "run/host.fgc: is missing: nothing vouches for the run's tables");
}

// Who rests is not written down: it follows from the options and the adoptions.
TEST_F(Training, GoesOnWithLearnersThatRest) {
  // Stocks large enough to tell one learner from another.
  const std::vector<std::string> rest = {"learner.rest=true", "learner.stop=\"never\"",
                                         "learner.stock_worlds=1000", "federation.average_every=0"};
  std::string flags;
  std::vector<std::string> start = Start("broken");
  for (const std::string& setting : rest) {
    flags += "--set '" + setting + "' ";
    start.insert(start.end(), {"--set", setting});
  }
  ASSERT_EQ(Run("train --config '" + config_ + "'" + small_ + flags + "--out whole").exit_code, 0);
  EXPECT_THAT(Slurp(directory_ / "whole/metrics.csv"), HasSubstr(",resting,"));
  ASSERT_TRUE(RunAndKill(start, 9));
  ASSERT_EQ(Run("train --resume broken").exit_code, 0);
  ExpectSameRuns("whole", "broken");
}

// Rows that somebody changed between two parts of a run would stand in it to the end.
TEST_F(Training, NoticesRowsThatWereChanged) {
  ASSERT_TRUE(RunAndKill(Start("broken"), 6));
  for (const std::string name : {"metrics.csv", "truth.csv"}) {
    const fs::path path = directory_ / "broken" / name;
    const std::string good = Slurp(path);
    // One digit of the first row; the last digit of the round in it, so that it goes; a row twice;
    // rows in the front that no round wrote; none at all.
    const std::size_t row = good.find('\n') + 1;
    const std::string first = good.substr(row, good.find('\n', row) + 1 - row);
    std::string digit = good;
    char& last = digit[row + first.size() - 2];
    last = last == '7' ? '8' : '7';
    std::string number = good;
    number.insert(row, "99");
    for (const std::string& changed :
         {digit, number, good.substr(0, row) + first + good.substr(row), std::string(good, 0, row),
          std::string(), good.substr(1)}) {
      Write("broken/" + name, changed);
      const auto before = Bytes("broken");
      ExpectMistake("train --resume broken", 4, "broken/" + name + ": its rows up to round ");
      EXPECT_TRUE(Bytes("broken") == before) << "nothing is lost";
    }
    fs::remove(path);
    ExpectMistake("train --resume broken", 4, "broken/" + name + ": its rows up to round ");
    Write("broken/" + name, good);
  }
  ASSERT_EQ(Run("train --config '" + config_ + "'" + small_ + "--out whole").exit_code, 0);
  ASSERT_EQ(Run("train --resume broken").exit_code, 0);
  ExpectSameRuns("whole", "broken");
}

TEST_F(Training, SaysWhenItCannotWriteAndGoesOnLater) {
  ASSERT_EQ(Run("train --config '" + config_ + "'" + small_ + "--out whole").exit_code, 0);
  ASSERT_TRUE(RunAndKill(Start("broken"), 4));
  const std::string checkpoint = Slurp(directory_ / "broken/host.fgc");
  ASSERT_GT(checkpoint.size(), 8U * 1024);
  // No file may grow beyond 8 blocks (of 512 or 1024 bytes): the next checkpoint does.
  const Ran full = Run("train --resume broken", "trap '' XFSZ; ulimit -f 8; ");
  EXPECT_EQ(full.exit_code, 6) << full.err;
  EXPECT_THAT(full.err, HasSubstr("cannot write"));
  EXPECT_TRUE(Slurp(directory_ / "broken/host.fgc") == checkpoint) << "is still there";
  ASSERT_EQ(Run("train --resume broken").exit_code, 0);
  ExpectSameRuns("whole", "broken");
  // Where nothing can be made, nothing is.
  Write("file", "x");
  EXPECT_EQ(Run("train --config '" + config_ + "' --out file/run").exit_code, 6);
}

TEST_F(Training, RefusesWhatMakesNoSense) {
  const std::string config = "--config '" + config_ + "' ";
  fs::create_directories(directory_ / "there/something");
  ExpectMistake("train", 2, "--config or --resume");
  ExpectMistake("train " + config + "--out there", 7, "there: already exists");
  ExpectMistake("train " + config + "--resume there", 2, "--resume: only");
  ExpectMistake("train --resume there", 6, "holds no run");
  ExpectMistake("train --resume nowhere", 6, "holds no run");
  ExpectMistake("train " + config + "--algorithm fedgne --out x", 2, "--algorithm");
  ExpectMistake("train --resume there --seed 2", 2, "--resume: only");
  ExpectMistake("train " + config + "--set learner.pairs=1 --out x", 3, "must be in 2..100000");
  ExpectMistake("train " + config + "--set federation.gamma=1 --out x", 3, "must be in (0, 1)");
  ExpectMistake("train " + config + "--learners 2 --set federation.learners=3 --out x", 2,
                "--set federation.learners=3: this key is already set by a flag");
  ExpectMistake("train " + config + "--algorithm local --set 'federation.algorithm = 1' --out x", 2,
                "this key is already set by a flag");
  ExpectMistake("train " + config + "--set federation.confidence=1e-17 --out x", 3,
                "federation.confidence = 1e-17: must be in [1e-6, 1 - 1e-9]");
  ExpectMistake("train " + config + "--set learner.bias=some --out x", 3,
                "must be a number or worlds, paper");
  EXPECT_FALSE(fs::exists(directory_ / "x"));
  ExpectMistake("plot there", 6, "holds no run");

  // A table that was shortened.
  ASSERT_EQ(Run("train " + config + small_ + "--out run").exit_code, 0);
  const std::string metrics = Slurp(directory_ / "run/metrics.csv");
  Write("run/metrics.csv", metrics.substr(0, metrics.size() / 2));
  ExpectMistake("train --resume run", 4, "run/metrics.csv: its rows up to round ");
  Write("run/metrics.csv", metrics);
  ASSERT_EQ(Run("train --resume run").exit_code, 0);
  // A checkpoint that was cut or altered, and one of another run.
  ASSERT_EQ(Run("train " + config + small_ + "--out other --seed 9").exit_code, 0);
  for (const std::string name : {"host.fgc", "cloud.fgc"}) {
    const std::string bytes = Slurp(directory_ / "run" / name);
    Write("run/" + name, bytes.substr(0, bytes.size() / 2));
    ExpectMistake("train --resume run", 4, name + ": its SHA-256 does not match");
    fs::copy_file(directory_ / "other" / name, directory_ / "run" / name,
                  fs::copy_options::overwrite_existing);
    const auto before = Bytes("run");
    ExpectMistake("train --resume run", 5, "belongs to another run");
    EXPECT_TRUE(Bytes("run") == before);
    Write("run/" + name, bytes);
  }
  // A run that was given another seed would begin elsewhere, but nothing is written of it.
  fs::copy_file(directory_ / "run/run.json", directory_ / "other/run.json",
                fs::copy_options::overwrite_existing);
  const auto other = Bytes("other");
  ExpectMistake("train --resume other", 5, "belongs to another run");
  EXPECT_TRUE(Bytes("other") == other);
}

TEST_F(Training, WarnsThatThePrintedNumbersAllowNoAdoption) {
  const Ran ran =
      Run("train --config '" FEDGEN_SOURCE_DIR
          "/configs/paper-text.toml' --out run --set federation.rounds=2 --set "
          "federation.selection_worlds=50 --set federation.certificate_worlds=100 --no-figures");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("b = 0.5147: no adoption can happen"));
}

TEST_F(Training, RunsEveryAlgorithmAndOption) {
  for (const char* options :
       {"--algorithm local", "--algorithm fedavg", "--algorithm centralized", "--algorithm single",
        "--set learner.estimator=finite-differences", "--set learner.optimizer=clipup",
        "--set learner.estimator=policy-gradient --set learner.policy_gradient.episodes=32",
        "--set learner.stop=auto", "--set learner.cost=plain --set learner.sigma_rate=0.5",
        "--set policy.normalisation=measured", "--learners 2",
        "--set learner.bias=0.05 --set learner.starts=2",
        "--set 'learners=[{worlds=32,step=0.02},{world={random_discs={count=12}}}]'"}) {
    fs::remove_all(directory_ / "run");
    const Ran ran = Run("train --config '" + config_ + "'" + small_ +
                        "--set federation.rounds=4 --no-figures --out run " + options);
    EXPECT_EQ(ran.exit_code, 0) << options << "\n" << ran.err;
    const auto summary = nlohmann::json::parse(Slurp(directory_ / "run/summary.json"));
    EXPECT_GT(summary["episodes"].get<std::int64_t>(), 0) << options;
    // Only fedgen adopts.
    const bool adopts = summary["algorithm"] == "fedgen";
    EXPECT_EQ(ran.out.find(" adopted a better policy ") != std::string::npos, adopts) << options;
    EXPECT_THAT(ran.out, HasSubstr(" of " + summary["algorithm"].get<std::string>() + ", "));
  }
}

TEST_F(Training, EstimatesWhatTheTheoremsAskFor) {
  const Ran ran = Run("estimate --config '" + config_ + "'" + small_ + "--repeats 3");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  // The letters of docs/math.md, Eq. 34.
  EXPECT_THAT(ran.out, HasSubstr("noise of z, s-bar "));
  EXPECT_THAT(ran.out, HasSubstr("smoothness Lambda_1 "));
  EXPECT_THAT(ran.out, HasSubstr("r <= 1 / (2 Lambda_1) "));
  EXPECT_THAT(ran.out, HasSubstr("q >= 4 s-bar "));
}

// Its z is another: numbers of evolution strategies would be wrong ones.
TEST_F(Training, EstimatesNothingForPolicyGradients) {
  const Ran ran = Run("estimate --config '" + config_ + "'" + small_ +
                      "--repeats 3 --set learner.estimator=policy-gradient");
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err, "fedgen: " + config_ +
                         ": learner.estimator = policy-gradient: only what evolution and "
                         "finite-differences estimate is measured here\n");
}

// Before it learns anything, a student of the gap follower arrives more often than a policy that
// was drawn.
TEST_F(Training, BeginsWithWhatATeacherDoes) {
  const auto safe_rate = [&](const std::string& name, const std::string& options) {
    const Ran ran = Run("train --config '" + config_ + "'" + small_ + options +
                        " --set federation.rounds=1 --out '" + (directory_ / name).string() + "'");
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    std::istringstream rows(Slurp(directory_ / name / "truth.csv"));
    std::string row;
    std::getline(rows, row);
    std::getline(rows, row);  // of round 0, learner 1; the last number is the rate
    return std::stod(row.substr(row.rfind(',') + 1));
  };
  const std::string taught =
      "--set policy.imitate=gap-follower --set policy.imitation_episodes=300 ";
  EXPECT_GT(safe_rate("taught", taught), safe_rate("drawn", "") + 0.2);
}

}  // namespace
}  // namespace fedgen
