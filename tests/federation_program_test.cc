// SPDX-License-Identifier: Apache-2.0

// A federation of processes, as its users meet it: the bytes of a run in one process, and what is
// said to whoever makes a mistake.

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "tests/program_testing.h"

namespace fedgen {
namespace {

using ::testing::HasSubstr;

class FederationProgram : public ProgramTest {
 protected:
  static constexpr const char* kConfig = FEDGEN_SOURCE_DIR "/configs/quick.toml";

  /// Names and bytes of the policies of a directory.
  std::map<std::string, std::string> Policies(const std::string& directory) const {
    std::map<std::string, std::string> policies;
    for (const auto& entry :
         std::filesystem::directory_iterator(directory_ / directory / "policies")) {
      policies[entry.path().filename().string()] = Slurp(entry.path());
    }
    return policies;
  }

  void ExpectTheBytesOfOneProcess(const std::string& flags, int num_learners) const {
    const std::string common = fmt::format("--config '{}' --seed 5 {} ", kConfig, flags);
    const Ran train = Run("train --no-figures --out one " + common);
    ASSERT_EQ(train.exit_code, 0) << train.err;
    const Ran up = Run("up --out many " + common);
    ASSERT_EQ(up.exit_code, 0) << up.err << Slurp(directory_ / "many/cloud.log")
                               << Slurp(directory_ / "many/learner-1.log");
    const std::map<std::string, std::string> expected = Policies("one");
    std::set<std::string> seen;
    for (int learner = 1; learner <= num_learners; ++learner) {
      for (const auto& [name, bytes] : Policies(fmt::format("many/learner-{}", learner))) {
        ASSERT_TRUE(expected.contains(name)) << name;
        EXPECT_EQ(bytes, expected.at(name)) << name << " of learner " << learner;
        seen.insert(name);
      }
    }
    EXPECT_EQ(seen.size(), expected.size());
    EXPECT_EQ(Policies("many").at("best.fgp"), expected.at("best.fgp"));
    EXPECT_EQ(Slurp(directory_ / "many/certificate.json"),
              Slurp(directory_ / "one/certificate.json"));
  }
};

constexpr const char* kShort =
    "--set federation.rounds=12 --set federation.selection_worlds=1000 "
    "--set federation.certificate_worlds=1000 ";

TEST_F(FederationProgram, HasTheBytesOfOneProcess) {
  ExpectTheBytesOfOneProcess(kShort + std::string("--set learner.stock_every=4 "
                                                  "--set learner.stock_worlds=200"),
                             4);
}

TEST_F(FederationProgram, HasTheBytesOfOneProcessByPolicyGradients) {
  ExpectTheBytesOfOneProcess(
      kShort + std::string("--set learner.estimator=policy-gradient --set "
                           "learner.policy_gradient.episodes=32 --learners 3"),
      3);
}

TEST_F(FederationProgram, HasTheBytesOfOneProcessWithFederatedAveraging) {
  ExpectTheBytesOfOneProcess(kShort + std::string("--algorithm fedavg --learners 3"), 3);
}

TEST_F(FederationProgram, HasTheBytesOfOneProcessWithFederatedAveragingByPolicyGradients) {
  ExpectTheBytesOfOneProcess(
      kShort + std::string("--algorithm fedavg --set learner.estimator=policy-gradient --set "
                           "learner.policy_gradient.episodes=32 --learners 3"),
      3);
}

// What came when is in the log: one process gives every learner the bytes that it had.
TEST_F(FederationProgram, IsRunOnceMoreFromItsLog) {
  const std::string common =
      fmt::format("--config '{}' --seed 5 {} --learners 3 ", kConfig, kShort);
  const Ran up = Run("up --async --no-certificate --out then " + common);
  ASSERT_EQ(up.exit_code, 0) << up.err;
  const Ran replay = Run("train --replay then/cloud/log.jsonl --out again " + common);
  ASSERT_EQ(replay.exit_code, 0) << replay.err;
  for (int learner = 1; learner <= 3; ++learner) {
    const std::string home = fmt::format("learner-{}", learner);
    EXPECT_EQ(Policies("again/" + home), Policies("then/" + home)) << learner;
    const std::string checkpoint = Slurp(directory_ / "then" / home / "host.fgc");
    EXPECT_FALSE(checkpoint.empty());
    EXPECT_EQ(Slurp(directory_ / "again" / home / "host.fgc"), checkpoint) << learner;
  }
  // Written down too early, it says so.
  const std::string log = Slurp(directory_ / "then/cloud/log.jsonl");
  std::size_t end = 0;
  for (int line = 0; line < 40; ++line) end = log.find('\n', end) + 1;
  std::ofstream(directory_ / "early.jsonl") << log.substr(0, end);
  ExpectMistake("train --replay early.jsonl --out early " + common, 4,
                "early.jsonl: ends after 39 events");
  std::ofstream(directory_ / "empty.jsonl") << log.substr(0, log.find('\n') + 1);
  ExpectMistake("train --replay empty.jsonl --out empty " + common, 4,
                "empty.jsonl: ends after 0 events");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "early"));
  // A learner's directory is no run of its own.
  ExpectMistake("train --resume then/learner-1", 5, "then/learner-1: is a learner's");
  ExpectMistake("train --resume then", 6, "fedgen up --resume goes on");
  // Of other learners it is not the log.
  const Ran other = Run("train --replay then/cloud/log.jsonl --out other --seed 6 " +
                        fmt::format("--config '{}' {} --learners 3 ", kConfig, kShort));
  EXPECT_EQ(other.exit_code, 5) << other.err;
  EXPECT_THAT(other.err, ::testing::ContainsRegex(
                             "then/cloud/log.jsonl:[0-9]+: learner [1-3], join: it says"));
}

TEST_F(FederationProgram, SaysWhatIsWrongInOneLine) {
  ASSERT_EQ(Run(fmt::format("up --config '{}' --out f --prepare-only", kConfig)).exit_code, 0);
  ExpectMistake("cloud --tls f/tls/cloud --run f/run.toml --store sqlite:f/cloud.db", 2,
                "--listen is required");
  ExpectMistake(
      "cloud --listen 127.0.0.1:0 --tls f/tls/cloud --run f/mine/learner-1.toml --store "
      "sqlite:f/cloud.db",
      3, "f/mine/learner-1.toml:");
  ExpectMistake("cloud --listen 127.0.0.1:0 --tls f --run f/run.toml --store sqlite:f/cloud.db", 6,
                "node.");
  ExpectMistake(fmt::format("up --config '{}' --out f", kConfig), 7, "f: already exists");
  ExpectMistake(fmt::format("up --config '{}' --out g --algorithm single", kConfig), 3,
                "has one learner and no Cloud");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "g"));
}

// What keeps a learner from beginning is found before a Cloud is asked: none is there.
TEST_F(FederationProgram, LooksAtItsDirectoryFirst) {
  ASSERT_EQ(Run(fmt::format("up --config '{}' --out f --prepare-only", kConfig)).exit_code, 0);
  const std::string learner =
      "learner --cloud 127.0.0.1:1 --tls f/tls/learner-1 --id 1 --config f/mine/learner-1.toml ";
  std::filesystem::create_directory(directory_ / "train");
  std::ofstream(directory_ / "train/run.json") << "{}";
  ExpectMistake(learner + "--out train", 7, "--out: train holds a run of fedgen train");
  std::filesystem::create_directory(directory_ / "home");
  std::ofstream(directory_ / "home/run.json") << "{}";
  std::ofstream(directory_ / "home/shared.toml") << "";
  ExpectMistake(learner + "--out home", 2, "--secret is required: the run in home");
  ExpectMistake(learner + "--secret f", 6, "f: is a directory, not a file");
  // Who leaves is told when nobody hears it.
  const Ran left = Run(learner + "--leave --deadline 0.2");
  EXPECT_EQ(left.exit_code, 6) << left.err;
  EXPECT_THAT(left.err, HasSubstr("fedgen: 127.0.0.1:1: nobody listens there"));
}

// The mistake of one of its processes is told as that process told it, with its exit code.
TEST_F(FederationProgram, RepeatsWhatAProcessSaid) {
  ASSERT_EQ(Run(fmt::format("up --config '{}' --out f --prepare-only", kConfig)).exit_code, 0);
  std::ofstream(directory_ / "f/mine/learner-2.toml") << "[learner]\nwrlds = 5\n";
  const Ran up = Run("up --resume f");
  EXPECT_EQ(up.exit_code, 3) << up.err;
  EXPECT_THAT(up.err, HasSubstr("\nfedgen: learner-2: f/mine/learner-2.toml:2: learner.wrlds: "
                                "unknown key"));
  EXPECT_THAT(up.err, HasSubstr("(exit code 3; all of it in f/learner-2.log)\n"));
}

// Keys are called as in the file that has them.
TEST_F(FederationProgram, NamesKeysAsTheLearnersFileDoes) {
  ASSERT_EQ(Run(fmt::format("up --config '{}' --out f --prepare-only", kConfig)).exit_code, 0);
  std::ofstream(directory_ / "f/mine/learner-2.toml") << "[learner]\ninitial_half_width = -1\n";
  const Ran up = Run("up --resume f");
  EXPECT_EQ(up.exit_code, 3) << up.err;
  EXPECT_THAT(up.err, HasSubstr("f/mine/learner-2.toml:2: learner.initial_half_width = -1"));
}

// While a federation runs, another process does not begin to run it too.
TEST_F(FederationProgram, IsRunByOneProcess) {
  ASSERT_EQ(Run(fmt::format("up --config '{}' --out f --prepare-only", kConfig)).exit_code, 0);
  const int held = ::open((directory_ / "f/federation.json").c_str(), O_RDONLY);
  ASSERT_EQ(::flock(held, LOCK_EX | LOCK_NB), 0);
  ExpectMistake("up --resume f", 6, "f: another process is training here");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "f/cloud.log"));
  ::close(held);
}

// A port that is taken, and nothing made.
TEST_F(FederationProgram, LooksAtItsPortFirst) {
  ASSERT_EQ(Run(fmt::format("up --config '{}' --out f --prepare-only", kConfig)).exit_code, 0);
  const int taken = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(taken, generic, size), 0);
  ASSERT_EQ(::listen(taken, 1), 0);
  ASSERT_EQ(::getsockname(taken, generic, &size), 0);
  const std::string listen = fmt::format("127.0.0.1:{}", ntohs(address.sin_port));
  ExpectMistake(
      "cloud --tls f/tls/cloud --run f/run.toml --store sqlite:f/new.db --listen " + listen, 6,
      fmt::format("--listen {}: Address already in use", listen));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "f/new.db"));
  ::close(taken);
}

}  // namespace
}  // namespace fedgen
