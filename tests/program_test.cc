// SPDX-License-Identifier: Apache-2.0

// The program as its users meet it: exit codes, one line per mistake, nothing overwritten, nothing
// half written, and results that depend on nothing but the question.

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/program_testing.h"

namespace fedgen {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
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
                "p.fgp: policy reads 20 beams, lidar.beams = 32");
  ExpectMistake("evaluate " + default_ + "-p p.fgp", 5, "p.fgp: policy steers within +-5");
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
  ExpectMistake("policy new " + tables_ + "-o no/such/place.fgp", 6, "no/such/place.fgp: cannot");
  ExpectMistake("worlds generate " + tables_ + "-o no/such/place", 6, "no/such/place: cannot");
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
    const Ran ran = Run("certify " + question_ + "-n 400 -o c.json");
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

  const std::string question_ =
      tables_ + "--policy '" FEDGEN_SOURCE_DIR "/bench/policies/20-20-1.fgp' ";
  std::string summary_, text_of_;
};

TEST_F(CertificateCli, SayWhatIsPromisedAndVerify) {
  EXPECT_THAT(summary_, StartsWith("safe arrival >= 0."));
  EXPECT_THAT(summary_, HasSubstr("jointly with 99 % confidence (400 unseen worlds, "));
  EXPECT_THAT(summary_, HasSubstr("(T1)"));
  const nlohmann::json json = nlohmann::json::parse(text_of_);
  EXPECT_EQ(json["format"], "fedgen-certificate");
  EXPECT_EQ(json["worlds"], 400);
  EXPECT_EQ(json["safe"].get<int>() + json["collided"].get<int>() + json["timed_out"].get<int>(),
            400);
  EXPECT_EQ(json["safe_arrival_method"], "clopper-pearson");
  EXPECT_LT(json["safe_arrival"].get<double>(), json["safe"].get<double>() / 400);
  EXPECT_GT(json["expected_cost"].get<double>(), json["mean_cost"].get<double>());
  const Ran verified = Run("verify c.json " + question_);
  EXPECT_EQ(verified.exit_code, 0) << verified.err;
  EXPECT_THAT(verified.out, StartsWith("c.json: verified"));
  EXPECT_THAT(verified.out, HasSubstr(summary_.substr(0, summary_.find('\n'))));
}

TEST_F(CertificateCli, HaveTheSameBytesForAnyNumberOfThreads) {
  for (const char* threads : {"1", "2", "3"}) {
    const std::string flag = std::string("--threads ") + threads;
    ASSERT_EQ(Run("certify " + question_ + "-n 400 --force -o d.json " + flag).exit_code, 0);
    EXPECT_EQ(Slurp(directory_ / "d.json"), text_of_) << threads;
    EXPECT_EQ(Run("verify c.json " + question_ + flag).exit_code, 0);
  }
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
    if (value.is_number_integer()) {
      changed = value.get<int>() + (value.get<int>() == 400 ? -1 : 1);
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
    // Worlds and confidence are part of what the seed follows from, and the seed is what shows it.
    const bool asked = field == "worlds" || field == "confidence";
    const std::string named =
        asked ? "t.json: seed = "
              : "t.json: " + field + " = " + changed.dump() + ": recomputed " + value.dump();
    ExpectMistake("verify t.json " + question_, 5, named);
  }
  Tamper("program", "fedgen 0.0.1");
  EXPECT_EQ(Run("verify t.json " + question_).exit_code, 0) << "who wrote it promises nothing";
}

TEST_F(CertificateCli, RefuseWhatIsNoCertificate) {
  ExpectMistake("verify missing.json " + question_, 6, "missing.json: cannot open");
  Write("t.json", text_of_.substr(0, text_of_.size() / 2));
  ExpectMistake("verify t.json " + question_, 4, "t.json: line ");
  Write("t.json", "");
  ExpectMistake("verify t.json " + question_, 4, "t.json: ");
  Tamper("safe", 401);
  ExpectMistake("verify t.json " + question_, 4,
                "t.json: safe = 401: must be an integer in 0..400");
  Tamper("confidence", "very");
  ExpectMistake("verify t.json " + question_, 4, "t.json: confidence = \"very\"");
}

TEST_F(CertificateCli, AreMadeWithCare) {
  ExpectMistake("certify " + question_ + "-n 400 -o c.json", 7, "c.json: already exists");
  ExpectMistake("certify " + question_ + "-n 0 -o d.json", 2, "--worlds");
  ExpectMistake("certify " + question_ + "--confidence 1 -o d.json", 2,
                "--confidence = 1: must be in [1e-6, 1 - 1e-9]");
  ExpectMistake("certify " + question_ + "--confidence 1e-17 -o d.json", 2,
                "--confidence = 1e-17: must be in [1e-6, 1 - 1e-9]");
  ExpectMistake("certify " + question_ + "--set lidar.beams=32 -o d.json", 5, "20 beams");
  EXPECT_FALSE(fs::exists(directory_ / "d.json"));
  // Other questions are answered on other worlds.
  ASSERT_EQ(Run("certify " + question_ + "-n 401 -o d.json").exit_code, 0);
  EXPECT_NE(nlohmann::json::parse(Slurp(directory_ / "d.json"))["seed"],
            nlohmann::json::parse(text_of_)["seed"]);
}

TEST_F(CertificateCli, CountWorldsWhereThereAreSeveralStarts) {
  const std::string question =
      "--config '" FEDGEN_SOURCE_DIR "/configs/random-start.toml' -p gap-follower ";
  const Ran ran = Run("certify " + question + "-n 200 --confidence 0.9 -o d.json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("with 90 % confidence (200 unseen worlds with 4 starts each, "));
  const nlohmann::json json = nlohmann::json::parse(Slurp(directory_ / "d.json"));
  EXPECT_EQ(json["starts_per_world"], 4);
  EXPECT_EQ(json["safe_arrival_method"], "betting");
  EXPECT_EQ(json["policy"], "gap-follower");
  EXPECT_EQ(Run("verify d.json " + question + "-t 3").exit_code, 0);
}

TEST_F(Cli, PlansCertificates) {
  EXPECT_THAT(Run("plan --safe 0.99 --confidence 0.99").out, HasSubstr("459 worlds without"));
  const Ran ran = Run("plan --safe 0.99 --confidence 0.99 --assume 0.995 --power 0.9 --json");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const nlohmann::json json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["alone"]["worlds_without_failure"], 459);
  EXPECT_EQ(json["alone"]["worlds"], 3924);
  EXPECT_EQ(json["alone"]["allowed_failures"], 25);
  EXPECT_GE(json["alone"]["power"].get<double>(), 0.9);
  EXPECT_EQ(json["certificate"]["worlds_without_failure"], 528);
  // Half of 1 - confidence is lost next to 1.
  ExpectMistake("plan --confidence 0.9999999999999999 --assume 1", 2,
                "must be in [1e-6, 1 - 1e-9]");
  ExpectMistake("plan --safe 1", 2, "--safe = 1: must be in (0, 1)");
  ExpectMistake("plan --safe nan", 2, "--safe = nan: must be in (0, 1)");
  ExpectMistake("plan --confidence 0", 2, "--confidence = 0: must be in [1e-6, 1 - 1e-9]");
  ExpectMistake("plan --assume 0.9", 2, "--assume = 0.9: must be above --safe = 0.99");
  ExpectMistake("plan --assume 0.9901", 2, "too close to --safe = 0.99");
  ExpectMistake("plan --power 0.9", 2, "--assume");
}

}  // namespace
}  // namespace fedgen
