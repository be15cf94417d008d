// SPDX-License-Identifier: Apache-2.0

// The program as its users meet it: exit codes, one line per mistake, nothing overwritten, nothing
// half written, and results that depend on nothing but the question.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/program_testing.h"
#include "tests/terminal_testing.h"

namespace fedgen {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Cli : public ProgramTest {
 protected:
  // Everything in the directory but the captured output, with its bytes.
  std::vector<std::pair<std::string, std::string>> Files() const {
    std::vector<std::pair<std::string, std::string>> files;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      const std::string name = entry.path().filename().string();
      if (name != ".out" && name != ".err") files.emplace_back(name, Slurp(entry.path()));
    }
    std::sort(files.begin(), files.end());
    return files;
  }

  nlohmann::json Evaluate(const std::string& arguments) {
    const Ran ran = Run("evaluate --json " + arguments);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return nlohmann::json::parse(ran.out);
  }

  const std::string tables_ = "--config '" FEDGEN_SOURCE_DIR "/configs/paper-tables.toml' ";
  const std::string text_ = "--config '" FEDGEN_SOURCE_DIR "/configs/paper-text.toml' ";
  const std::string default_ = "--config '" FEDGEN_SOURCE_DIR "/configs/default.toml' ";
  const std::string evolution_ = "--config '" FEDGEN_SOURCE_DIR "/configs/evolution.toml' ";
};

constexpr char kHeader[] = "{\"format\":\"fedgen-worlds\",\"version\":1}\n";

TEST_F(Cli, SaysWhatItIs) {
  EXPECT_EQ(Run("--version").exit_code, 0);
  EXPECT_THAT(Run("--help").out, HasSubstr("evaluate"));
  EXPECT_THAT(Run("evaluate --help").out, HasSubstr("--world-file"));
}

TEST_F(Cli, RefusesFlagsThatMakeNoSense) {
  ExpectMistake("", 2, "subcommand");
  ExpectMistake("evaluat", 2, "evaluat: no such verb, did you mean evaluate?");
  ExpectMistake("worlds shw", 2, "shw: no such verb, did you mean show?");
  ExpectMistake("frobnicate", 2, "fedgen: frobnicate: no such verb\n");
  ExpectMistake("evaluate", 2, "--config");
  ExpectMistake("evaluate " + tables_ + "--policy straight --wrlds 3", 2, "--wrlds");
  ExpectMistake("evaluate " + tables_ + "--policy straight --worlds 0", 2,
                "fedgen: --worlds = 0: must be an integer in 1..1000000000000");
  ExpectMistake("evaluate " + tables_ + "--policy straight --worlds 1e3", 2,
                "fedgen: --worlds = 1e3: must be an integer in 1..1000000000000");
  ExpectMistake("evaluate " + tables_ + "--policy straight --threads 0", 2,
                "fedgen: --threads = 0: must be an integer in 1..1024");
  ExpectMistake("evaluate " + tables_ + "--policy straight --kernel gpu", 2,
                "--kernel = gpu: must be auto, scalar or simd");
  ExpectMistake("evaluate " + tables_ + "--policy straight --seed -1", 2,
                "fedgen: --seed = -1: must be an integer in 0..2^64 - 1");
  ExpectMistake("evaluate " + tables_ + "--policy straight --seed 18446744073709551616", 2,
                "must be an integer in 0..2^64 - 1");
  ExpectMistake("policy new " + tables_ + "-o p.txt", 2, "p.txt: a policy file must end in");
  for (const std::string& empty : std::vector<std::string>{
           "train " + tables_ + "--out ''", "train --resume ''", "reproduce table1 --out ''",
           "policy new " + tables_ + "-o ''", "worlds generate " + tables_ + "--output ''",
           "evaluate --config '' -p straight", "evaluate " + tables_ + "-p ''"}) {
    ExpectMistake(empty, 2, "must not be empty");
  }
  EXPECT_TRUE(Files().empty());
}

TEST_F(Cli, TakesThreadsFromTheEnvironmentOrSaysWhyNot) {
  const std::string evaluate = "evaluate " + tables_ + "-p straight -n 10 ";
  for (const char* wrong : {"abc", "0", "-3", "1e9", "3 ", "1025", "99999999999999999999"}) {
    const std::string variable = std::string("FEDGEN_NUM_THREADS='") + wrong + "' ";
    ExpectMistake(evaluate, 2,
                  std::string("FEDGEN_NUM_THREADS = ") + wrong + ": must be an integer in 1..1024",
                  variable);
    EXPECT_EQ(Run(evaluate + "--threads 2", variable).exit_code, 0) << "a flag goes before it";
  }
  ExpectMistake("train " + tables_ + "--out run", 2, "FEDGEN_NUM_THREADS",
                "FEDGEN_NUM_THREADS=abc ");
  EXPECT_FALSE(fs::exists(directory_ / "run"));
  EXPECT_EQ(Run(evaluate, "FEDGEN_NUM_THREADS=3 ").exit_code, 0);
  EXPECT_EQ(Run(evaluate, "FEDGEN_NUM_THREADS= ").exit_code, 0);
}

TEST_F(Cli, RefusesBadConfigurations) {
  Write("a.toml", "[robot]\nradus = 0.3\n");
  ExpectMistake("evaluate -c a.toml -p straight", 3,
                "a.toml:2: robot.radus: unknown key, did you mean robot.radius?");
  Write("a.toml", "[robot]\nradius = \"big\"\n");
  ExpectMistake("evaluate -c a.toml -p straight", 3,
                "a.toml:2: robot.radius = 'big': must be a number");
  Write("a.toml", "[robot]\nradius = -0.3\n");
  ExpectMistake("evaluate -c a.toml -p straight", 3,
                "a.toml:2: robot.radius = -0.3: must be in [0.001, 1e4]");
  Write("a.toml", "[robot\n");
  ExpectMistake("evaluate -c a.toml -p straight", 3, "a.toml:1: ");
  ExpectMistake("evaluate -c missing.toml -p straight", 6, "missing.toml: cannot open");
  ExpectMistake("evaluate -c . -p straight", 6, ".: is a directory, not a file");
}

TEST_F(Cli, ExplainsItsOptions) {
  const Ran sigma = Run("config explain learner.sigma");
  EXPECT_EQ(sigma.exit_code, 0) << sigma.err;
  EXPECT_THAT(sigma.out, StartsWith("learner.sigma\n"));
  EXPECT_THAT(sigma.out, HasSubstr("a number in [1e-6, 1e3]"));
  EXPECT_THAT(Run("config explain").out, HasSubstr("\nworld.goal.depth "));
  EXPECT_THAT(Run("config explain --markdown").out, HasSubstr("| `robot.speed` | `2.5` | m/s |"));
  ExpectMistake("config explain learner.sgima", 2,
                "learner.sgima: no such option, did you mean learner.sigma?");
  ExpectMistake("config explain robot --markdown", 2, "--markdown: ");
  ExpectMistake("config explian", 2, "explian: no such verb, did you mean explain?");
}

TEST_F(Cli, RefusesBadPolicies) {
  ExpectMistake("evaluate " + tables_ + "-p gap-folower", 6,
                "--policy = gap-folower: no such file, and the built-in policies are straight and "
                "gap-follower");
  ASSERT_EQ(Run("policy new " + tables_ + "-o p.fgp").exit_code, 0);
  const std::string good = Slurp(directory_ / "p.fgp");

  Write("bad.fgp", good.substr(0, good.size() - 7));
  ExpectMistake("evaluate " + tables_ + "-p bad.fgp", 4, "bad.fgp: ");
  std::string flipped = good;
  flipped[good.size() / 2] = static_cast<char>(flipped[good.size() / 2] ^ 0x10);
  Write("bad.fgp", flipped);
  ExpectMistake("evaluate " + tables_ + "-p bad.fgp", 4, "checksum");
  Write("bad.fgp", "");
  ExpectMistake("evaluate " + tables_ + "-p bad.fgp", 4, "bad.fgp: ");

  // NaN cannot be written in JSON, so a huge number stands for what overflows a float.
  ASSERT_EQ(Run("policy convert p.fgp p.json").exit_code, 0);
  nlohmann::json json = nlohmann::json::parse(Slurp(directory_ / "p.json"));
  json["parameters"][3] = 1e300;
  Write("bad.json", json.dump());
  ExpectMistake("evaluate " + tables_ + "-p bad.json", 4, "parameters[3]");
  ExpectMistake("evaluate " + tables_ + "-p p.fgp --set lidar.beams=32", 5,
                "p.fgp: policy was made for lidar.beams = 20, configured 32");
  ExpectMistake("evaluate " + default_ + "-p p.fgp", 5,
                "p.fgp: policy was made for robot.kind = differential, configured car");
}

// A policy drove with another sensor, robot or time step without a word.
TEST_F(Cli, RefusesToDriveWhatAPolicyWasNotMadeFor) {
  ASSERT_EQ(Run("policy new " + tables_ + "-o p.fgp").exit_code, 0);
  const std::string evaluate = "evaluate " + tables_ + "-n 20 -p p.fgp --set ";
  const std::pair<const char*, const char*> differences[] = {
      {"episode.time_step=0.1", "episode.time_step = 0.05, configured 0.1"},
      {"lidar.fan=one-sided", "lidar.to_degrees = 60, configured -3"},
      {"lidar.from_degrees=-50", "lidar.from_degrees = -60, configured -50"},
      {"robot.speed=2", "robot.speed = 2.5, configured 2"},
      {"robot.radius=0.2", "robot.radius = 0.27, configured 0.2"},
  };
  for (const auto& [setting, differs] : differences) {
    ExpectMistake(evaluate + setting, 5,
                  std::string("p.fgp: policy was made for ") + differs + " (--anyway allows it)\n");
    const Ran ran = Run(evaluate + setting + " --anyway");
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("safe arrival"));
    EXPECT_EQ(ran.err, std::string("warning: p.fgp: policy was made for ") + differs +
                           "; it drives anyway\n");
  }
  // Every other verb that drives.
  ASSERT_EQ(Run("worlds generate " + tables_ + "-n 2 -o w.jsonl").exit_code, 0);
  const std::string other = tables_ + "--set episode.time_step=0.1 -p p.fgp ";
  for (const std::string& verb :
       {"certify " + other + "-n 100 -o c.json", "verify c.json " + other,
        "estimate " + other + "--repeats 2", "worlds show w.jsonl " + other}) {
    ExpectMistake(verb, 5, "p.fgp: policy was made for episode.time_step");
    const Ran ran = Run(verb + " --anyway");
    EXPECT_EQ(ran.exit_code, 0) << verb << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("warning: p.fgp: policy was made for episode.time_step"))
        << verb;
  }
  // Its form does not matter, and conversion keeps it.
  ASSERT_EQ(Run("policy convert p.fgp p.json").exit_code, 0);
  ExpectMistake("evaluate " + tables_ + "-p p.json --set robot.speed=2", 5,
                "p.json: policy was made");
  EXPECT_THAT(
      Run("policy show p.json").out,
      HasSubstr("  made for       lidar: 20 beams, range 5, from_degrees -60, to_degrees 60\n"
                "                 robot: differential, speed 2.5, radius 0.27, "
                "turn_rate_limit 5\n"
                "                 episode: time_step 0.05\n"));
  // A number that this robot does not read is no difference, and neither are the worlds.
  EXPECT_EQ(Run(evaluate + "robot.length=9 --set episode.horizon=20").exit_code, 0);
  // --anyway cannot give a network other inputs.
  ExpectMistake(evaluate + "lidar.beams=21 --anyway", 5, "p.fgp: policy reads 20 beams");
  ExpectMistake("estimate " + other + "--set policy.range_code=raw --anyway", 5,
                "p.fgp: policy was made with range_code");
  // Of a file of version 1 nothing is known, so it drives as it did.
  const Ran old = Run("evaluate " + tables_ + "-n 20 --set episode.time_step=0.1 -p '" +
                      FEDGEN_SOURCE_DIR "/bench/policies/20-20-1.fgp'");
  EXPECT_EQ(old.exit_code, 0) << old.err;
  EXPECT_EQ(old.err, "");
}

// Networks of one shape may read the same sensors in different ways.
TEST_F(Cli, EstimatesOnlyForPoliciesThatTheConfigurationAsksFor) {
  ASSERT_EQ(Run("policy new " + tables_ + "--set policy.range_code=raw -o raw.fgp").exit_code, 0);
  ExpectMistake("estimate " + tables_ + "--policy raw.fgp", 5,
                "raw.fgp: policy was made with range_code = raw, policy.range_code = inverse");
}

TEST_F(Cli, RefusesBadWorlds) {
  const std::string evaluate = "evaluate " + tables_ + "-p straight --world-file w.jsonl";
  const std::string rest =
      R"("goal":{"half_plane":{"normal":[0,1],"offset":10}},"starts":[[0,1,1.57]]})";
  ExpectMistake(evaluate, 6, "w.jsonl: cannot open");
  Write("w.jsonl", std::string(kHeader) + R"({"discs":[[0,5,0.2],[1,5,-0.2]],)" + rest + "\n");
  ExpectMistake(evaluate, 4, "w.jsonl:2: discs[1][2] = -0.2: must be > 0");
  Write("w.jsonl", std::string(kHeader) + R"({"discs":[[0,1.1,0.2]],)" + rest + "\n");
  ExpectMistake(evaluate, 4, "w.jsonl:2: starts[0]");
  Write("w.jsonl", std::string(kHeader) + R"({"discs":[[0,5,0.2]],)" + rest + "\n{\"disks\":[]}\n");
  ExpectMistake(evaluate, 4, "w.jsonl:3: disks");
  Write("w.jsonl", "{}\n");
  ExpectMistake(evaluate, 4, "w.jsonl:1: ");
  Write("w.jsonl", std::string(kHeader) + R"({"discs":[[0,5,0.2]],)" + rest + "\n");
  ExpectMistake(evaluate + " --worlds 2", 2,
                "--worlds = 2: must be at most 1, the worlds of w.jsonl");
  EXPECT_EQ(Run(evaluate).exit_code, 0);
}

TEST_F(Cli, NeverOverwritesAndNeverLeavesHalfAFile) {
  Write("there.fgp", "precious");
  ExpectMistake("policy new " + tables_ + "-o there.fgp", 7, "there.fgp: already exists");
  ExpectMistake("worlds generate " + tables_ + "-o there.fgp", 7, "there.fgp: already exists");
  ExpectMistake("policy new " + tables_ + "-o there.fgp/place.fgp", 6,
                "there.fgp/place.fgp: cannot");
  ExpectMistake("worlds generate " + tables_ + "-o there.fgp/place", 6, "there.fgp/place: cannot");
  fs::create_directory(directory_ / "folder.fgp");
  ExpectMistake("policy new " + tables_ + "-o folder.fgp", 6, "folder.fgp: is a directory");
  fs::remove(directory_ / "folder.fgp");
  EXPECT_EQ(Files(), (std::vector<std::pair<std::string, std::string>>{{"there.fgp", "precious"}}));

  EXPECT_EQ(Run("policy new " + tables_ + "-o there.fgp --force").exit_code, 0);
  EXPECT_NE(Slurp(directory_ / "there.fgp"), "precious");

  ASSERT_EQ(Run("worlds generate " + tables_ + "-n 3 -o w.jsonl").exit_code, 0);
  ExpectMistake("worlds show w.jsonl --first 3", 2, "--first = 3");
  const Ran wrong_ending = Run("worlds show w.jsonl -o picture.gif");
  EXPECT_EQ(wrong_ending.exit_code, 2);
  EXPECT_FALSE(fs::exists(directory_ / "picture.gif"));
}

// A name of more than 255 bytes, and a path of more than 4096.
TEST_F(Cli, SaysWhatTheSystemSaysOfTooLongNames) {
  const std::string name(300, 'n');
  std::string path;
  while (path.size() < 5000) path += "deep/";
  for (const std::string& where : {name, path + "end"}) {
    for (const std::string& command :
         {"train " + tables_ + "--out " + where, "reproduce table1 " + tables_ + "--out " + where,
          "policy new " + tables_ + "-o " + where + ".fgp",
          "policy new " + tables_ + "--force -o " + where + ".fgp",
          "worlds generate " + tables_ + "-o " + where,
          "certify " + tables_ + "-p straight -o " + where}) {
      ExpectMistake(command, 6, "File name too long");
    }
  }
  // Long enough that only the temporary name is too long.
  ExpectMistake("policy new " + tables_ + "--force -o " + std::string(250, 'n') + ".fgp", 6,
                "File name too long");
  EXPECT_TRUE(Files().empty());
}

// Whoever closes a stream does not want to read it; only what was asked for may not be lost.
TEST_F(Cli, KeepsItsExitCodeWhenStreamsAreClosed) {
  ASSERT_EQ(Run("policy new " + text_ + "-o a.fgp").exit_code, 0);
  const auto exit_code = [&](const std::string& arguments, const std::string& streams) {
    return Shell("'" FEDGEN_PROGRAM "' " + arguments + " " + streams);
  };
  for (const char* streams : {">&- 2>&-", "<&- >&- 2>&-", ">/dev/full 2>/dev/full"}) {
    EXPECT_EQ(exit_code("evaluat", streams), 2) << streams;
    EXPECT_EQ(exit_code("evaluate -c missing.toml -p straight", streams), 6) << streams;
    EXPECT_EQ(exit_code("policy new " + text_ + "-o a.fgp", streams), 7) << streams;
    EXPECT_EQ(exit_code("policy show a.fgp", streams), 6) << streams;
    EXPECT_EQ(exit_code("--help", streams), 6) << streams;
  }
  EXPECT_EQ(exit_code("policy show a.fgp", ">.out 2>&- <&-"), 0);
  EXPECT_EQ(exit_code("evaluat", ">.out 2>&-"), 2);
  // What is written to a closed stream ends in no file that happened to be opened in its place.
  ASSERT_EQ(Run("policy convert a.fgp a.json").exit_code, 0);
  EXPECT_EQ(exit_code("policy convert a.fgp b.json", "<&- >&- 2>&-"), 6);
  EXPECT_EQ(Slurp(directory_ / "b.json"), Slurp(directory_ / "a.json"));
}

TEST_F(Cli, NoticesWhenStdoutCannotBeWritten) {
  ASSERT_EQ(Run("policy new " + text_ + "-o a.fgp").exit_code, 0);
  for (const std::string& command : {std::string("--help"), std::string("policy show --json a.fgp"),
                                     "evaluate " + tables_ + "-p straight -n 10"}) {
    EXPECT_EQ(Shell("'" FEDGEN_PROGRAM "' " + command + " >/dev/full 2>.err </dev/null"), 6)
        << command;
    EXPECT_EQ(Slurp(directory_ / ".err"), "fedgen: stdout: cannot write\n") << command;
  }
}

TEST_F(Cli, MakesTheDirectoriesOfItsOutputs) {
  EXPECT_EQ(Run("worlds generate " + tables_ + "-n 1 -o a/b/w.jsonl").exit_code, 0);
  EXPECT_EQ(Run("policy new " + tables_ + "-o c/d/p.fgp").exit_code, 0);
  EXPECT_EQ(Run("policy convert c/d/p.fgp e/p.json").exit_code, 0);
  EXPECT_EQ(Run("worlds show a/b/w.jsonl -o f/w.svg").exit_code, 0);
  EXPECT_EQ(Run("certify " + tables_ + "-p straight -n 100 -o g/h/c.json").exit_code, 0);
  for (const char* made : {"a/b/w.jsonl", "c/d/p.fgp", "e/p.json", "f/w.svg", "g/h/c.json"}) {
    EXPECT_TRUE(fs::is_regular_file(directory_ / made)) << made;
  }
}

TEST_F(Cli, WarnsOfWorldsWithoutObstacles) {
  Write("empty.toml", "");
  const std::string warning = "warning: [world] has no obstacle";
  EXPECT_THAT(Run("evaluate -c empty.toml -p straight -n 10").err, StartsWith(warning));
  EXPECT_THAT(Run("certify -c empty.toml -p straight -n 100 -o c.json").err, StartsWith(warning));
  EXPECT_EQ(Run("evaluate " + tables_ + "-p straight -n 10").err, "");
  ASSERT_EQ(Run("worlds generate " + tables_ + "-n 3 -o w.jsonl").exit_code, 0);
  EXPECT_EQ(Run("evaluate -c empty.toml -p straight --world-file w.jsonl").err, "");
}

// However little memory there is: done, refused with the numbers, or out of memory in one line.
// Never a hang (the program is killed after a minute), never an abort.
TEST_F(Cli, RunsOutOfMemoryInOneLine) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs terabytes of address space for itself";
#endif
  const std::string train = "train " + evolution_ +
                            "--learners 2 --set federation.rounds=1 --set learner.worlds=2 --set "
                            "federation.selection_worlds=2 --set federation.track_every=0 --set "
                            "federation.certificate_worlds=100 --no-figures -t 4 --set "
                            "'policy.hidden=[1000,1000]' --set learner.stock_every=0 "
                            "--set policy.normalisation_worlds=1 --set episode.horizon=5 ";
  int refused = 0;
  int ran_out = 0;
  for (const int megabytes : {60, 120, 160, 180, 200, 220, 240, 260, 300, 400}) {
    const Ran ran = Run(train + "--set learner.pairs=4 --out run" + std::to_string(megabytes),
                        "ulimit -v " + std::to_string(1000 * megabytes) + "; timeout -s KILL 60 ");
    EXPECT_TRUE(ran.exit_code == 0 || ran.exit_code == 3 || ran.exit_code == 70)
        << megabytes << " MB: " << ran.exit_code << "\n"
        << ran.err;
    if (ran.exit_code == 0) continue;
    EXPECT_EQ(ran.out, "");
    const std::size_t last = ran.err.rfind("fedgen: ");
    ASSERT_NE(last, std::string::npos) << ran.err;
    EXPECT_EQ(std::count(ran.err.begin() + static_cast<long>(last), ran.err.end(), '\n'), 1);
    refused += ran.err.find("needs at least") != std::string::npos ? 1 : 0;
    ran_out += ran.exit_code == 70 ? 1 : 0;
  }
  EXPECT_GE(refused, 1);
  EXPECT_GE(ran_out, 1);
  // What is refused leaves nothing behind.
  ExpectMistake(train + "--set learner.pairs=400 --out large", 3,
                "learner.pairs = 400: needs at least 3.4 GB of memory (2 learners x 400 directions "
                "x 1,0",
                "ulimit -v 2000000; ");
  EXPECT_FALSE(fs::exists(directory_ / "large"));
}

// A bar stands behind no result: it is wiped before, and no line of it wraps.
TEST_F(Cli, WipesItsBarBeforeTheResult) {
  const std::string straight = "-p straight -t 1 ";
  const std::string program = "cd '" + directory_.string() + "' && '" FEDGEN_PROGRAM "' ";
  ASSERT_EQ(Run("policy new " + default_ + "-o p.fgp").exit_code, 0);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"evaluate " + default_ + straight + "-n 1500", "policy        straight"},
      {"certify " + default_ + straight + "-n 1000 -o c.json", "safe arrival >= "},
      {"verify c.json " + default_ + straight, "c.json: verified"},
      {"worlds generate " + default_ + "-n 100 -o w.jsonl", "w.jsonl: 100 worlds"},
      {"estimate " + evolution_ + "-p p.fgp --repeats 2 -t 1", "at p.fgp"}};
  for (const auto& [arguments, first_line] : cases) {
    for (const int columns : {80, 40}) {
      if (columns == 40 && !arguments.starts_with("evaluate")) continue;
      const std::string bytes = RunOnTerminal(program + arguments, 24, columns);
      EXPECT_THAT(bytes, HasSubstr(" %  ")) << "no bar";
      Screen screen(24, columns);
      screen.Feed(bytes);
      ASSERT_FALSE(screen.Lines().empty()) << arguments;
      EXPECT_THAT(screen.Lines().front(), StartsWith(first_line)) << arguments;
    }
  }
}

// A terminal that cannot move its cursor gets no sequences that would.
TEST_F(Cli, ShowsNoBarOnADumbTerminal) {
  const std::string program = "cd '" + directory_.string() + "' && TERM=dumb '" FEDGEN_PROGRAM "' ";
  const std::string bytes =
      RunOnTerminal(program + "evaluate " + default_ + "-p straight -t 1 -n 1500", 24, 80);
  EXPECT_THAT(bytes, HasSubstr("safe arrival"));
  EXPECT_EQ(bytes.find('\033'), std::string::npos);
}

TEST_F(Cli, PoliciesSurviveConversionBitForBit) {
  ASSERT_EQ(Run("policy new " + text_ + "--seed 5 -o a.fgp").exit_code, 0);
  ASSERT_EQ(Run("policy convert a.fgp b.json").exit_code, 0);
  ASSERT_EQ(Run("policy convert b.json c.fgp").exit_code, 0);
  EXPECT_EQ(Slurp(directory_ / "a.fgp"), Slurp(directory_ / "c.fgp"));
  EXPECT_THAT(Run("policy show a.fgp").out, HasSubstr("24-20-20-20-1"));
}

TEST_F(Cli, ReportsExactlyTheDocumentedNumbers) {
  const nlohmann::json report = Evaluate(tables_ + "-p straight -n 2000");
  EXPECT_EQ(report["worlds"], 2000);
  const double safe = report["safe_rate"];
  EXPECT_NEAR(safe + report["collision_rate"].get<double>() + report["timeout_rate"].get<double>(),
              1.0, 1e-12);
  EXPECT_LT(report["safe_rate_interval"][0].get<double>(), safe);
  EXPECT_GT(report["safe_rate_interval"][1].get<double>(), safe);
  for (const char* key : {"mean_cost", "mean_distance", "mean_arrival_time", "steps",
                          "steps_per_second", "outcome_hash"}) {
    EXPECT_TRUE(report.contains(key)) << key;
  }
  // Nothing arrives within one step, so there is no mean arrival time.
  EXPECT_TRUE(Evaluate(tables_ + "-p straight -n 10 --set episode.horizon=1")["mean_arrival_time"]
                  .is_null());
}

TEST_F(Cli, HashDependsOnTheQuestionOnly) {
  ASSERT_EQ(
      Run("policy new " + default_ + "--set policy.initial_half_width=0.5 -o p.fgp").exit_code, 0);
  const std::string question = default_ + "-p p.fgp -n 700 --seed 11 ";
  const std::string hash = Evaluate(question + "--threads 1")["outcome_hash"];
  for (const char* how : {"--threads 2", "--threads 3", "--threads 8", "--kernel scalar",
                          "--kernel scalar --threads 3"}) {
    EXPECT_EQ(Evaluate(question + how)["outcome_hash"], hash) << how;
  }
  EXPECT_NE(Evaluate(default_ + "-p p.fgp -n 700 --seed 12")["outcome_hash"], hash);
}

TEST_F(Cli, AWorldFileDrivesAsTheDrawnWorldsDo) {
  const std::string random_start = "--config '" FEDGEN_SOURCE_DIR "/configs/random-start.toml' ";
  for (const std::string& config : {tables_, default_, random_start}) {
    ASSERT_EQ(Run("worlds generate --force " + config + "-n 200 --seed 4 -o w.jsonl").exit_code, 0);
    EXPECT_EQ(Evaluate(config + "-p gap-follower --world-file w.jsonl")["outcome_hash"],
              Evaluate(config + "-p gap-follower -n 200 --seed 4")["outcome_hash"])
        << config;
  }
}

TEST_F(Cli, CountsInTheSingularToo) {
  const Ran one = Run("worlds generate " + tables_ + "-n 1 -o w.jsonl");
  EXPECT_EQ(one.out, "w.jsonl: 1 world\n");
  EXPECT_THAT(Run("worlds show w.jsonl").out, StartsWith("w.jsonl: 1 world, 1 start in each"));
}

TEST_F(Cli, ShowsAndDrawsWorlds) {
  ASSERT_EQ(Run("worlds generate " + default_ + "-n 4 -o w.jsonl").exit_code, 0);
  const Ran shown = Run("worlds show w.jsonl " + default_ + "-p straight -p gap-follower -o w.png");
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("gap-follower"));
  EXPECT_THAT(Slurp(directory_ / "w.png"), StartsWith("\x89PNG"));
  ASSERT_EQ(Run("worlds show w.jsonl -o w.svg").exit_code, 0);
  EXPECT_THAT(Slurp(directory_ / "w.svg"), HasSubstr("<svg"));
}

// Certificates: what they say, who may change them (nobody), and what they cost to check.
class CertificateCli : public Cli {
 protected:
  void SetUp() override {
    const Ran ran = Run("certify " + question_ + "-n 300 -o c.json");
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    summary_ = ran.out;
    text_of_ = Slurp(directory_ / "c.json");
  }

  // The certificate with one field changed, as t.json.
  void Tamper(const std::string& field, const nlohmann::ordered_json& value) {
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(text_of_);
    ASSERT_TRUE(json.contains(field)) << field;
    json[field] = value;
    Write("t.json", json.dump());
  }

  nlohmann::json ReadJson(const char* name) const {
    return nlohmann::json::parse(Slurp(directory_ / name));
  }

  const std::string question_ =
      tables_ + "--policy '" FEDGEN_SOURCE_DIR "/bench/policies/20-20-1.fgp' ";
  std::string summary_, text_of_;
};

TEST_F(CertificateCli, SayWhatIsPromisedAndVerify) {
  EXPECT_THAT(summary_, StartsWith("safe arrival >= 0."));
  EXPECT_THAT(summary_, HasSubstr("jointly with 99 % confidence (300 unseen worlds, "));
  EXPECT_THAT(summary_, HasSubstr("(T1)"));
  const nlohmann::json json = nlohmann::json::parse(text_of_);
  EXPECT_EQ(json["format"], "fedgen-certificate");
  EXPECT_EQ(json["worlds"], 300);
  EXPECT_EQ(json["safe"].get<int>() + json["collided"].get<int>() + json["timed_out"].get<int>(),
            300);
  EXPECT_EQ(json["safe_arrival_method"], "clopper-pearson");
  EXPECT_LT(json["safe_arrival"].get<double>(), json["safe"].get<double>() / 300);
  EXPECT_GT(json["expected_cost"].get<double>(), json["mean_cost"].get<double>());
  EXPECT_THAT(json["note"].get<std::string>(), HasSubstr("--challenge"));
  const Ran verified = Run("verify c.json " + question_);
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_THAT(verified.out, StartsWith("c.json: verified"));
  EXPECT_THAT(verified.out, HasSubstr(summary_.substr(0, summary_.find('\n'))));
}

TEST_F(CertificateCli, HaveTheSameBytesForAnyNumberOfThreads) {
  for (const char* threads : {"1", "2", "3"}) {
    const std::string flag = std::string("--threads ") + threads;
    ASSERT_EQ(Run("certify " + question_ + "-n 300 --force -o d.json " + flag).exit_code, 0);
    EXPECT_EQ(Slurp(directory_ / "d.json"), text_of_) << threads;
    EXPECT_EQ(Run("verify c.json " + question_ + flag).exit_code, 0);
  }
}

// Neither size nor confidence, nor a number that nothing reads, draws other worlds; the policy
// does.
TEST_F(CertificateCli, LeaveTheMakerNothingToChoose) {
  const nlohmann::json original = nlohmann::json::parse(text_of_);
  for (const char* choice :
       {"-n 100", "-n 1000", "-n 300 --confidence 0.990000000001", "-n 300 --confidence 0.5",
        "-n 300 --set robot.length=0.3", "-n 300 --set robot.steering_limit_degrees=10",
        "-n 300 --set world.goal.normal=[0,7]", "-n 300 --set world.goal.radius=3",
        "-n 300 --set world.disturbance.modes=64", "-n 300 --set world.start.clearance=0.1"}) {
    ASSERT_EQ(Run("certify " + question_ + "--force -o d.json " + choice).exit_code, 0) << choice;
    const nlohmann::json json = ReadJson("d.json");
    EXPECT_EQ(json["seed"], original["seed"]) << choice;
    EXPECT_EQ(json["confidence"], 0.99) << "this line always stands";
    if (json["worlds"] == 300) {
      EXPECT_EQ(json["outcome_hash"], original["outcome_hash"]) << choice;
      EXPECT_EQ(json["safe_arrival"], original["safe_arrival"]) << choice;
    }
  }
  const Ran more = Run("certify " + question_ + "-n 300 --confidence 0.9 --force -o d.json");
  EXPECT_THAT(more.out, HasSubstr("the maker's choice of 90 % confidence, from the same worlds: "));
  EXPECT_EQ(ReadJson("d.json")["makers_choice"]["confidence"], 0.9);
  EXPECT_EQ(Run("verify d.json " + question_).exit_code, 0);
  for (const char* worlds : {"1", "99", "2000", "100001"}) {
    ExpectMistake("certify " + question_ + "-o e.json -n " + worlds, 2,
                  "must be 1 or 3 times a power of ten");
  }
}

// The verifier's own word: a certificate made for it is recomputed, any other is tested on worlds
// that the word draws; the file's own word never counts.
TEST_F(CertificateCli, AnswerAChallenge) {
  const std::string certify = "certify " + question_ + "-n 300 -o d.json --challenge 'my word'";
  const Ran made = Run(certify);
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const nlohmann::json json = ReadJson("d.json");
  EXPECT_NE(json["seed"], nlohmann::json::parse(text_of_)["seed"]);
  EXPECT_EQ(Slurp(directory_ / "d.json").find("my word"), std::string::npos);
  ExpectMistake("verify d.json " + question_, 2, "d.json: made for a challenge");
  const Ran verified = Run("verify d.json " + question_ + "--challenge 'my word'");
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_THAT(verified.out, StartsWith("d.json: verified, every number recomputed on the worlds"));
  const Ran tested = Run("verify d.json " + question_ + "--challenge 'another word' -n 1234");
  EXPECT_EQ(tested.exit_code, 0) << tested.err;
  EXPECT_THAT(tested.out, StartsWith("d.json: not contradicted at 1 %: of 1,234 worlds "));
  EXPECT_THAT(tested.out, HasSubstr("with probability 0.9 or more"));
  EXPECT_THAT(tested.out, HasSubstr("it was made for another word than yours\n"));
  const Ran plain = Run("verify c.json " + question_ + "--challenge w -n 1");
  EXPECT_THAT(plain.out, HasSubstr("fedgen verify without --challenge does that\n"));
  // What the verifier needs before choosing the word: which policy, which task.
  const Ran hashes = Run("certify " + question_ + "--hashes");
  EXPECT_EQ(hashes.out, fmt::format("policy_sha256 = {}\ntask_sha256 = {}\n",
                                    json["policy_sha256"].get<std::string>(),
                                    json["task_sha256"].get<std::string>()));
  ExpectMistake("certify " + question_, 2, "--output is required");
  // A file of 300 worlds does not choose to be tested on 300.
  EXPECT_THAT(Run("verify c.json " + question_ + "--challenge w").out,
              HasSubstr("of 10,000 worlds that your word drew"));
  // An honest file is not contradicted, a bold one is; without driving nothing is known.
  EXPECT_EQ(Run("verify c.json " + question_ + "--challenge w -n 3000").exit_code, 0);
  Tamper("safe_arrival", 0.9999);
  ExpectMistake("verify t.json " + question_ + "--challenge w -n 3000", 5,
                "t.json: contradicted at 1 %: ");
  Tamper("expected_cost", 0.32);
  ExpectMistake("verify t.json " + question_ + "--challenge w -n 3000", 5,
                "t.json: contradicted at 1 %: ");
  ExpectMistake("verify c.json " + tables_ + "-p straight --challenge w", 5, "c.json: policy = ");
  ExpectMistake("verify c.json " + question_ + "--challenge ''", 2, "--challenge = ");
  ExpectMistake("certify " + question_ + "-n 300 -o e.json --challenge ''", 2, "--challenge = ");
  ExpectMistake("verify d.json " + question_ + "--challenge 'my word' -n 5", 2, "--worlds = 5: ");
  ExpectMistake("verify c.json " + question_ + "-n 5", 2, "--challenge");
}

// Made by the program as it was: read, recomputed by its own rules, and said to be weaker.
TEST_F(CertificateCli, OfVersionOneAreVerifiedAndSaidToBeWeaker) {
  Write("v1.json", R"({
  "format": "fedgen-certificate",
  "version": 1,
  "program": "fedgen 0.1.0",
  "policy": "20-20-1 network, 441 parameters",
  "robot": "differential drive, radius 0.27 m, 2.5 m/s, turning within 5 rad/s",
  "sensor": "20 beams from -60 to 60 degrees, range 5 m",
  "policy_sha256": "bdbe04d2b8882f8c63e3143d172d86e6a44e365c4fdd74ec3c05569becf0d6d0",
  "task_sha256": "07242bcb556dce5adfbf899b95985aa28a1c35f4508fdb9bfe3abfa01cea2095",
  "worlds": 401,
  "starts_per_world": 1,
  "confidence": 0.98,
  "seed": "0x8b9e1454d6702580",
  "safe": 396,
  "collided": 3,
  "timed_out": 2,
  "mean_cost": 0.3348500310484284,
  "outcome_hash": "0xc33d730eb088988b",
  "safe_arrival": 0.9676397388849033,
  "safe_arrival_method": "clopper-pearson",
  "expected_cost": 0.35266563448840316,
  "expected_cost_method": "betting",
  "t1_cost_bound": 0.41062672577593384,
  "t2_safe_arrival": 0.5775858087395849
})");
  const Ran verified = Run("verify v1.json " + question_);
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("jointly with 98 % confidence (401 unseen worlds"));
  EXPECT_THAT(verified.out, HasSubstr("a certificate of version 1 is weaker than it looks"));
  EXPECT_EQ(Run("verify v1.json " + question_ + "--challenge w").exit_code, 0);
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(Slurp(directory_ / "v1.json"));
  json["safe"] = json["safe"].get<int>() + 1;
  json["collided"] = json["collided"].get<int>() - 1;
  Write("t.json", json.dump());
  ExpectMistake("verify t.json " + question_, 5, "t.json: safe = ");
}

TEST_F(CertificateCli, RefuseAnotherPolicyOrConfiguration) {
  const std::string verify = "verify c.json ";
  ASSERT_EQ(Run("policy new " + tables_ + "-o other.fgp").exit_code, 0);
  ExpectMistake(verify + tables_ + "-p other.fgp", 5, "c.json: policy_sha256 = \"");
  ExpectMistake(verify + tables_ + "-p straight", 5, "c.json: policy = \"20-20-1 network");
  ExpectMistake(verify + question_ + "--set episode.horizon=151", 5, "c.json: task_sha256 = \"");
  ExpectMistake(verify + question_ + "--set world.random_discs.radius=[0.1,0.2000001]", 5,
                "for the configuration given");
  ExpectMistake(verify + question_ + "--set robot.radius=0.2", 5, "c.json: robot = \"");
  ExpectMistake(verify + default_ + "-p straight", 5, "c.json: policy = ");
  // One weight moved by the least amount is another policy.
  ASSERT_EQ(
      Run("policy convert '" FEDGEN_SOURCE_DIR "/bench/policies/20-20-1.fgp' p.json").exit_code, 0);
  EXPECT_EQ(Run(verify + tables_ + "-p p.json").exit_code, 0) << "the JSON form is the same policy";
  nlohmann::ordered_json policy = nlohmann::ordered_json::parse(Slurp(directory_ / "p.json"));
  policy["parameters"][0] = std::nextafter(policy["parameters"][0].get<float>(), 10.0F);
  Write("p.json", policy.dump());
  ExpectMistake(verify + tables_ + "-p p.json", 5, "c.json: policy_sha256 = \"");
}

TEST_F(CertificateCli, RefuseAnyChangedNumber) {
  const nlohmann::ordered_json json = nlohmann::ordered_json::parse(text_of_);
  for (const auto& [field, value] : json.items()) {
    if (field == "format" || field == "version" || field == "program") continue;
    nlohmann::ordered_json changed;
    if (field == "worlds") {
      changed = 1000;
    } else if (field == "challenge_sha256") {
      changed = std::string(64, 'a');
    } else if (field == "makers_choice") {
      changed = {{"confidence", 0.9}, {"safe_arrival", 0.5}, {"expected_cost", 0.5}};
    } else if (value.is_number_integer()) {
      changed = value.get<int>() + (value.get<int>() == 300 ? -1 : 1);
    } else if (value.is_number()) {
      changed = std::nextafter(value.get<double>(), 0.5);
    } else if (field.ends_with("_method")) {
      changed = value == "betting" ? "clopper-pearson" : "betting";
    } else {
      std::string text = value;
      text.back() = text.back() == '0' ? '1' : '0';
      changed = text;
    }
    Tamper(field, changed);
    if (field == "safe" || field == "collided" || field == "timed_out" ||
        field == "starts_per_world" || field == "worlds") {
      // The counts must add up; where they do the next test looks.
      ExpectMistake("verify t.json " + question_, 4, "with collided and timed_out must be");
    } else if (field == "confidence" || field == "note") {  // have one value only
      ExpectMistake("verify t.json " + question_, 4, "t.json: " + field + " = ");
    } else if (field == "challenge_sha256") {
      ExpectMistake("verify t.json " + question_, 2, "t.json: made for a challenge");
    } else if (field == "makers_choice") {
      // What was asked; the answer to it is another.
      ExpectMistake("verify t.json " + question_, 5, "t.json: ");
    } else {
      ExpectMistake("verify t.json " + question_, 5,
                    "t.json: " + field + " = " + changed.dump() + ": recomputed " + value.dump());
    }
  }
  // Counts that add up, moved from one outcome to another; and a size that others were asked for.
  nlohmann::ordered_json moved = json;
  moved["safe"] = json["safe"].get<int>() + 1;
  moved["collided"] = json["collided"].get<int>() - 1;
  Write("t.json", moved.dump());
  ExpectMistake("verify t.json " + question_, 5,
                fmt::format("t.json: safe = {}: recomputed {}", moved["safe"].get<int>(),
                            json["safe"].get<int>()));
  moved = json;
  moved["worlds"] = 1000;
  moved["safe"] = json["safe"].get<int>() + 700;
  Write("t.json", moved.dump());
  ExpectMistake("verify t.json " + question_, 5, "t.json: safe = ");
  Tamper("program", "fedgen 0.0.1");
  EXPECT_EQ(Run("verify t.json " + question_).exit_code, 0) << "who wrote it promises nothing";
}

TEST_F(CertificateCli, RefuseWhatIsNoCertificate) {
  ExpectMistake("verify missing.json " + question_, 6, "missing.json: cannot open");
  Write("t.json", text_of_.substr(0, text_of_.size() / 2));
  ExpectMistake("verify t.json " + question_, 4, "t.json: line ");
  Write("t.json", "");
  ExpectMistake("verify t.json " + question_, 4, "t.json: ");
  Tamper("safe", 301);
  ExpectMistake("verify t.json " + question_, 4,
                "t.json: safe = 301: must be an integer in 0..300");
  Tamper("confidence", "very");
  ExpectMistake("verify t.json " + question_, 4, "t.json: confidence = \"very\"");
}

TEST_F(CertificateCli, AreMadeWithCare) {
  ExpectMistake("certify " + question_ + "-n 300 -o c.json", 7, "c.json: already exists");
  ExpectMistake("certify " + question_ + "-n 0 -o d.json", 2, "--worlds");
  ExpectMistake("certify " + question_ + "--confidence 1 -o d.json", 2,
                "--confidence = 1: must be in [1e-6, 1 - 1e-9]");
  ExpectMistake("certify " + question_ + "--confidence 1e-17 -o d.json", 2,
                "--confidence = 1e-17: must be in [1e-6, 1 - 1e-9]");
  ExpectMistake("certify " + question_ + "--set lidar.beams=32 -o d.json", 5, "20 beams");
  EXPECT_FALSE(fs::exists(directory_ / "d.json"));
}

TEST_F(CertificateCli, CountWorldsWhereThereAreSeveralStarts) {
  const std::string question =
      "--config '" FEDGEN_SOURCE_DIR "/configs/random-start.toml' -p gap-follower ";
  const Ran ran = Run("certify " + question + "-n 300 --confidence 0.9 -o d.json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("with 99 % confidence (300 unseen worlds with 4 starts each, "));
  const nlohmann::json json = nlohmann::json::parse(Slurp(directory_ / "d.json"));
  EXPECT_EQ(json["starts_per_world"], 4);
  EXPECT_EQ(json["safe_arrival_method"], "betting");
  EXPECT_EQ(json["policy"], "gap-follower");
  EXPECT_EQ(Run("verify d.json " + question + "-t 3").exit_code, 0);
}

TEST_F(Cli, PlansCertificates) {
  EXPECT_THAT(Run("plan --safe 0.99").out, HasSubstr("1,000 worlds are enough with at most 0"));
  const Ran ran = Run("plan --safe 0.99 --assume 0.995 --power 0.9 --json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const nlohmann::json json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["worlds"], 10000);
  EXPECT_EQ(json["sizes"][0]["worlds"], 1000);
  EXPECT_EQ(json["sizes"][2]["allowed_failures"], 68);
  EXPECT_GE(json["sizes"][2]["power"].get<double>(), 0.9);
  // Certainty is never rounded up.
  EXPECT_THAT(Run("plan --confidence 0.999999999").out, HasSubstr("with 99.9999999 % confidence"));
  EXPECT_THAT(Run("plan --assume 0.999").out, Not(HasSubstr("1.0000")));
  // Half of 1 - confidence is lost next to 1.
  ExpectMistake("plan --confidence 0.9999999999999999 --assume 1", 2,
                "must be in [1e-6, 1 - 1e-9]");
  ExpectMistake("plan --safe 1", 2, "--safe = 1: must be in (0, 1)");
  ExpectMistake("plan --safe nan", 2, "--safe = nan: must be in (0, 1)");
  ExpectMistake("plan --confidence 0", 2, "--confidence = 0: must be in [1e-6, 1 - 1e-9]");
  ExpectMistake("plan --assume 0.9", 2, "--assume = 0.9: must be above --safe = 0.99");
  ExpectMistake("plan --assume 0.99001", 2, "too close to --safe = 0.99");
  ExpectMistake("plan --power 0.9", 2, "--assume");
}

TEST_F(Cli, HasADoctor) {
  ASSERT_EQ(Run("pki init ca --name Fleet").exit_code, 0);
  ASSERT_EQ(Run("pki request node --learner 3").exit_code, 0);
  ASSERT_EQ(Run("pki sign ca node/node.csr --learner 3 -o node/node.pem").exit_code, 0);
  fs::copy(directory_ / "ca/ca.pem", directory_ / "node");
  const Ran well = Run("doctor --tls node --id 3 --store sqlite:new.db");
  EXPECT_EQ(well.exit_code, 0) << well.out;
  EXPECT_THAT(well.out, StartsWith("ok       certificate  node/node.pem: learner-3, until "));
  const Ran other = Run("doctor --tls node --id 4");
  EXPECT_EQ(other.exit_code, 8);
  EXPECT_EQ(other.out,
            "bad      certificate  node/node.pem: subject = learner-3: must be learner-4\n"
            "                      -> choose the directory, or the --id, that belong together\n");
  EXPECT_EQ(other.err, "fedgen: 1 of 1 check was missed\n");
  EXPECT_EQ(Run("doctor --listen 127.0.0.1:0 --tls node").exit_code, 8);  // it is no Cloud's
  ExpectMistake("doctor", 2, "nothing to look at");
  ExpectMistake("doctor --cloud localhost:1", 2, "--cloud: needs --tls");
  ExpectMistake("doctor --id 0", 2, "--id");
}

}  // namespace
}  // namespace fedgen
