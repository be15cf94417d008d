// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/local_run.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "fedgen/base/file.h"
#include "fedgen/base/file_testing.h"
#include "fedgen/policy/policy_file.h"
#include "fedgen/run/run_tables.h"

namespace fedgen {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Ends a run before the first round of it, or after a round, as a kill would.
class StopAfter final : public RunListener {
 public:
  explicit StopAfter(int round) : round_(round) {}
  Result<void> OnBegin(const Host& /*host*/) override { return StopAt(0); }
  Result<void> OnRound(const Host& /*host*/, const RoundReport& report,
                       double /*seconds*/) override {
    return StopAt(report.round);
  }

 private:
  Result<void> StopAt(int round) const {
    if (round == round_) return Error{ErrorCode::kIo, "stopped"};
    return {};
  }
  int round_;
};

// The names that files of a directory get while it is watched, in order.
class Watch {
 public:
  explicit Watch(const std::string& directory) : descriptor_(::inotify_init1(IN_NONBLOCK)) {
    EXPECT_GE(::inotify_add_watch(descriptor_, directory.c_str(), IN_MOVED_TO), 0);
  }
  ~Watch() { ::close(descriptor_); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  std::vector<std::string> Names() const {
    alignas(inotify_event) std::array<char, 1 << 16> events{};
    const ssize_t size = ::read(descriptor_, events.data(), events.size());
    std::vector<std::string> names;
    for (ssize_t at = 0; at < size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(events.data() + at);
      names.emplace_back(event->name);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
    return names;
  }

 private:
  int descriptor_;
};

class LocalRunTest : public ::testing::Test {
 protected:
  static constexpr int kRounds = 4;  // looked at in rounds 3, 6, ..., and at the end

  Config SmallConfig(int rounds, std::vector<std::string> overrides = {}) const {
    for (const char* small :
         {"federation.learners=2", "federation.selection_worlds=20", "learner.worlds=4",
          "federation.certificate_worlds=100", "federation.track_every=3", "learner.pairs=2",
          "federation.track_worlds=10", "federation.average_every=2"}) {
      overrides.emplace_back(small);
    }
    overrides.push_back(fmt::format("federation.rounds={}", rounds));
    const auto config = LoadConfig(FEDGEN_SOURCE_DIR "/configs/quick.toml", overrides);
    EXPECT_TRUE(config) << config.error().message;
    return *config;
  }

  std::string Path(const std::string& name) const { return directory_.Path(name); }

  // A run from its first to its last round.
  void RunWhole(const Config& config, const std::string& name) const {
    const auto run = StartRun(config, 1, "quick", Path(name));
    ASSERT_TRUE(run) << run.error().message;
    const auto done = Execute(*run, {});
    ASSERT_TRUE(done) << done.error().message;
  }

  // What a user hears who continues a run; stopped before the first round, or after one.
  std::string Continue(const std::string& name, int rounds = 0, int stop_after = -1) const {
    const auto run = ReopenRun(Path(name), rounds);
    if (!run) return run.error().message;
    StopAfter stop(stop_after);
    RunListener* const listeners[] = {&stop};
    const auto done = Execute(*run, listeners);
    return done ? "done" : done.error().message;
  }

  void Copy(const std::string& from, const std::string& to) const {
    fs::copy(Path(from), Path(to), fs::copy_options::recursive);
  }

  // Every file but what depends on the clock.
  std::map<std::string, std::string> Bytes(const std::string& name) const {
    std::map<std::string, std::string> bytes;
    for (const auto& entry : fs::recursive_directory_iterator(Path(name))) {
      const std::string file = fs::relative(entry.path(), Path(name)).string();
      if (!entry.is_regular_file() || file == "timing.csv") continue;
      bytes[file] = *ReadFile(entry.path().string(), std::size_t{1} << 30);
    }
    return bytes;
  }

  void ExpectSame(const std::string& name, const std::string& other) const {
    const auto left = Bytes(name);
    const auto right = Bytes(other);
    for (const auto& [file, bytes] : left) {
      EXPECT_TRUE(right.contains(file) && right.at(file) == bytes) << name << ": " << file;
    }
    EXPECT_EQ(left.size(), right.size()) << name;
  }

  const TemporaryDirectory directory_;
};

TEST_F(LocalRunTest, IsExtendedToTheBytesOfALongerRun) {
  // Steps that do not depend on the number of rounds.
  const std::vector<std::string> power = {"learner.schedule=power"};
  RunWhole(SmallConfig(kRounds, power), "short");
  RunWhole(SmallConfig(9, power), "long");
  Copy("short", "finished");
  // The shorter run may have had an average to race, the longer one need not.
  ASSERT_TRUE(
      WriteFileAtomically(Path("finished/policies/average.fgp"), "old", IfExists::kReplace));
  EXPECT_EQ(Continue("finished", 9), "done");
  ExpectSame("finished", "long");
  // Again: there is nothing left to do.
  EXPECT_EQ(Continue("finished", 9), "done");
  EXPECT_EQ(Continue("finished"), "done");
  ExpectSame("finished", "long");
  // Killed before and after it was extended, and given more or fewer rounds than it began with.
  for (const int rounds : {9, 7}) {
    const std::string name = fmt::format("killed-{}", rounds);
    const auto started = StartRun(SmallConfig(8, power), 1, "quick", Path(name));
    ASSERT_TRUE(started);
    StopAfter stop(2);
    RunListener* const listeners[] = {&stop};
    ASSERT_FALSE(Execute(*started, listeners));
    EXPECT_EQ(Continue(name, rounds, 5), "stopped");
    EXPECT_EQ(Continue(name), "done");
    if (rounds != 9) RunWhole(SmallConfig(rounds, power), "other");
    ExpectSame(name, rounds == 9 ? "long" : "other");
  }
}

// The truth is looked at in rounds 3 and 9; in round 6 only if it is the last.
TEST_F(LocalRunTest, IsExtendedWithLooksThatGrowApart) {
  const std::vector<std::string> settings = {"learner.schedule=power", "federation.track_growth=3"};
  RunWhole(SmallConfig(6, settings), "short");
  RunWhole(SmallConfig(10, settings), "long");
  const auto rounds = [&](const std::string& name) {
    std::set<int> looked;
    const auto truth = LoadTruth(RunFiles(Path(name)).Truth());
    for (const TruthRow& row : *truth) looked.insert(row.round);
    return looked;
  };
  EXPECT_EQ(rounds("short"), (std::set{0, 3, 6}));
  EXPECT_EQ(rounds("long"), (std::set{0, 3, 9, 10}));
  EXPECT_EQ(Continue("short", 10), "done");
  ExpectSame("short", "long");
}

// A geometric schedule ends where it did: steps that were taken were of that schedule.
TEST_F(LocalRunTest, KeepsTheScheduleItBeganWith) {
  RunWhole(SmallConfig(kRounds), "run");
  EXPECT_EQ(Continue("run", 7), "done");
  RunWhole(SmallConfig(7, {"learner.schedule_rounds=4"}), "long");
  ExpectSame("run", "long");
  EXPECT_EQ(Continue("run", 9), "done");
  RunWhole(SmallConfig(9, {"learner.schedule_rounds=4"}), "longer");
  ExpectSame("run", "longer");
  // With other steps it would be another run.
  RunWhole(SmallConfig(9), "other");
  EXPECT_NE(Bytes("run").at("metrics.csv"), Bytes("other").at("metrics.csv"));
}

// A run that would have ended in the same round for another reason ends there, for that reason.
TEST_F(LocalRunTest, EndsAsTheLongerRunWould) {
  const Config once = SmallConfig(kRounds);
  const std::string budget =
      fmt::format("federation.episodes={}", kRounds * EpisodesPerRound(once.training));
  const std::string schedule = "learner.schedule_rounds=4";
  RunWhole(SmallConfig(kRounds, {budget}), "run");
  EXPECT_THAT(Bytes("run").at("summary.json"), HasSubstr("all rounds were run"));
  EXPECT_EQ(Continue("run", 9), "done");
  RunWhole(SmallConfig(9, {budget, schedule}), "long");
  EXPECT_THAT(Bytes("long").at("summary.json"), HasSubstr("\"rounds\": 4"));
  ExpectSame("run", "long");
  // Learners that stop as soon as they can have all stopped in round 4.
  const std::string hasty = "learner.window=2";
  RunWhole(SmallConfig(kRounds, {hasty}), "settled");
  EXPECT_EQ(Continue("settled", 9), "done");
  RunWhole(SmallConfig(9, {hasty, schedule}), "settled-long");
  EXPECT_THAT(Bytes("settled").at("summary.json"), HasSubstr("every learner has stopped"));
  ExpectSame("settled", "settled-long");
}

// Every state in which a kill can leave the directory, from the order in which its files were
// replaced.
TEST_F(LocalRunTest, SurvivesAKillBetweenAnyTwoWrites) {
  RunWhole(SmallConfig(kRounds), "before");
  RunWhole(SmallConfig(7, {"learner.schedule_rounds=4"}), "long");
  Copy("before", "after");
  const Watch watch(Path("after"));
  EXPECT_EQ(Continue("after", 7, 0), "stopped");
  const std::vector<std::string> written = watch.Names();
  EXPECT_THAT(written, ElementsAre("config.toml", "cloud.fgc", "host.fgc", "metrics.csv",
                                   "truth.csv", "timing.csv"));
  EXPECT_NE(Bytes("before").at("truth.csv"), Bytes("after").at("truth.csv")) << "round 4 went";
  for (std::size_t last = 0; last <= written.size(); ++last) {
    const std::string state = fmt::format("state-{}", last);
    Copy("before", state);
    for (std::size_t write = 0; write < last; ++write) {
      fs::copy_file(Path("after/" + written[write]), Path(state + "/" + written[write]),
                    fs::copy_options::overwrite_existing);
    }
    // Whether or not the user says it again.
    Copy(state, state + "-again");
    EXPECT_EQ(Continue(state + "-again", 7), "done");
    ExpectSame(state + "-again", "long");
    EXPECT_EQ(Continue(state), "done");
    ExpectSame(state, last == 0 ? "before" : "long");
  }
}

// Critic, average and hard worlds are in the checkpoint too. Stopped after every round and gone on
// in another process, so to speak, it is the run that nobody stopped.
TEST_F(LocalRunTest, GoesOnByPolicyGradientAfterAnyRound) {
  for (const std::string method : {"ppo", "plain"}) {
    const Config config = SmallConfig(
        kRounds, {"learner.estimator=policy-gradient", "learner.policy_gradient.method=" + method,
                  "learner.policy_gradient.episodes=12", "learner.policy_gradient.minibatch=300",
                  "learner.policy_gradient.hard_share=0.5", "learner.policy_gradient.way=true",
                  "learner.optimizer=adam", "learner.step=0.003", "learner.stop=never"});
    RunWhole(config, method);
    const std::string broken = "broken-" + method;
    const auto run = StartRun(config, 1, "quick", Path(broken));
    ASSERT_TRUE(run) << run.error().message;
    StopAfter stop(1);
    RunListener* const listeners[] = {&stop};
    ASSERT_FALSE(Execute(*run, listeners));
    for (int round = 2; round < kRounds; ++round) EXPECT_EQ(Continue(broken, 0, round), "stopped");
    EXPECT_EQ(Continue(broken), "done");
    ExpectSame(broken, method);
  }
  EXPECT_NE(Bytes("ppo").at("metrics.csv"), Bytes("plain").at("metrics.csv"));
}

// The noise falls over the rounds also where the steps do not: in a run that is given more, it goes
// on as if they had been there from the start.
TEST_F(LocalRunTest, KeepsTheNoiseOfARunThatIsExtended) {
  const std::vector<std::string> by_gradient = {"learner.estimator=policy-gradient",
                                                "learner.policy_gradient.episodes=12",
                                                "learner.schedule=constant", "learner.stop=never"};
  std::vector<std::string> pinned = by_gradient;
  pinned.emplace_back("learner.schedule_rounds=4");
  RunWhole(SmallConfig(7, pinned), "long");
  RunWhole(SmallConfig(kRounds, by_gradient), "run");
  EXPECT_EQ(Continue("run", 7), "done");
  ExpectSame("run", "long");
}

// The Cloud heard of the last round, its host did not.
TEST_F(LocalRunTest, IsExtendedWithACloudThatIsAhead) {
  RunWhole(SmallConfig(7, {"learner.schedule_rounds=4"}), "long");
  const auto started = StartRun(SmallConfig(kRounds), 1, "quick", Path("run"));
  ASSERT_TRUE(started);
  StopAfter stop(kRounds - 1);
  RunListener* const listeners[] = {&stop};
  ASSERT_FALSE(Execute(*started, listeners));
  const std::string host = *ReadFile(Path("run/host.fgc"), 1 << 20);
  EXPECT_EQ(Continue("run"), "done");
  ASSERT_TRUE(WriteFileAtomically(Path("run/host.fgc"), host, IfExists::kReplace));
  EXPECT_EQ(Continue("run", 7), "done");
  ExpectSame("run", "long");
}

TEST_F(LocalRunTest, RefusesRoundsThatCannotBeAndTouchesNothing) {
  RunWhole(SmallConfig(kRounds), "run");
  const auto before = Bytes("run");
  EXPECT_EQ(Continue("run", 3), "--rounds = 3: must be at least 4, the run has done 4 rounds");
  EXPECT_TRUE(Bytes("run") == before);
  // A run that goes on cannot end now: it would have looked at its policies.
  const auto started = StartRun(SmallConfig(kRounds), 1, "quick", Path("going"));
  ASSERT_TRUE(started);
  StopAfter stop(2);
  RunListener* const listeners[] = {&stop};
  ASSERT_FALSE(Execute(*started, listeners));
  EXPECT_EQ(Continue("going", 2), "--rounds = 2: must be at least 3, the run has done 2 rounds");
  // By hand it is no better.
  Config config = *LoadConfig(Path("going/config.toml"));
  SetRounds(1, config);
  ASSERT_TRUE(WriteFileAtomically(Path("going/config.toml"), config.resolved, IfExists::kReplace));
  EXPECT_EQ(Continue("going"), Path("going/config.toml") +
                                   ": federation.rounds = 1: must be at least 3, the run has done "
                                   "2 rounds");
  // Neither is a run whose tables were changed.
  ASSERT_TRUE(WriteFileAtomically(Path("run/metrics.csv"), "x", IfExists::kReplace));
  const auto altered = Bytes("run");
  EXPECT_THAT(Continue("run", 7), HasSubstr("metrics.csv: its rows up to round 4 must be"));
  EXPECT_TRUE(Bytes("run") == altered);
}

// Given policies are found beside the configuration, and then in the run: wherever either is.
TEST_F(LocalRunTest, FindsInitialPoliciesRelativeToTheConfiguration) {
  const Config drawn = SmallConfig(2);
  fs::create_directories(Path("configs/policies"));
  Mlp given = ShapeOf(drawn.training);
  for (const std::uint64_t seed : {1, 2}) {
    DrawParameters(Key(seed), 0.3, given);
    ASSERT_TRUE(
        SavePolicy(given, Path(fmt::format("configs/policies/{}.fgp", seed)), IfExists::kRefuse));
  }
  const std::string text = drawn.resolved +
                           "[[learners]]\ninitial_policy = 'policies/1.fgp'\n"
                           "[[learners]]\ninitial_policy = 'policies/2.fgp'\n";
  ASSERT_TRUE(WriteFileAtomically(Path("configs/c.toml"), text, IfExists::kRefuse));
  // Of fedavg everybody begins with one policy, which is not the one that was given.
  const std::vector<std::string> fedavg = {"federation.algorithm=fedavg"};
  const Config config = *LoadConfig(Path("configs/c.toml"), fedavg);
  RunWhole(config, "run");
  fs::remove(Path("configs/policies/1.fgp"));
  EXPECT_THAT(Bytes("run").at("config.toml"), HasSubstr("'policies/given-2.fgp'"));
  EXPECT_EQ(Bytes("run").at("policies/given-2.fgp"), PolicyToBinary(given));
  const auto again = StartRun(config, 1, "quick", Path("absent"));
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("configs/policies/1.fgp: cannot open"));
  // The run moves, goes on, and is the configuration of another.
  fs::rename(Path("run"), Path("moved"));
  EXPECT_EQ(Continue("moved", 3), "done");
  RunWhole(*LoadConfig(Path("moved/config.toml")), "repeated");
  ExpectSame("repeated", "moved");
}

// A teacher may have any shape. The run keeps it, and goes on without the file.
TEST_F(LocalRunTest, KeepsTheTeacherThatItsPoliciesImitate) {
  const std::vector<std::string> imitating = {
      "policy.imitate=teacher.fgp", "policy.imitation_episodes=30", "policy.imitation_epochs=2"};
  Config config = SmallConfig(2, imitating);
  config.directory = directory_.path();
  MlpOptions wider = config.training.policy;
  wider.hidden = {9, 5};
  Mlp teacher = MakeMlp(wider, BodyOf(config.task()));
  DrawParameters(Key(4), 1, teacher);
  ASSERT_TRUE(SavePolicy(teacher, Path("teacher.fgp"), IfExists::kRefuse));
  RunWhole(config, "run");
  RunWhole(SmallConfig(2), "drawn");
  EXPECT_NE(Bytes("run").at("policies/initial-1.fgp"), Bytes("drawn").at("policies/initial-1.fgp"));
  EXPECT_EQ(Bytes("run").at("policies/teacher.fgp"), PolicyToBinary(teacher));
  EXPECT_THAT(Bytes("run").at("config.toml"), HasSubstr("'policies/teacher.fgp'"));

  fs::remove(Path("teacher.fgp"));
  EXPECT_EQ(Continue("run", 3), "done");
  RunWhole(*LoadConfig(Path("run/config.toml")), "repeated");
  ExpectSame("repeated", "run");

  // With another teacher in its place it is another run.
  teacher.parameters[0] += 1;
  ASSERT_TRUE(SavePolicy(teacher, Path("run/policies/teacher.fgp"), IfExists::kReplace));
  EXPECT_THAT(Continue("run", 4), HasSubstr("of another"));
}

TEST_F(LocalRunTest, RefusesATeacherThatItDoesNotKnowOrThatHasAnotherBody) {
  const auto refusal = [&](const std::string& imitate) {
    Config config = SmallConfig(1, {"policy.imitate=" + imitate});
    config.directory = directory_.path();
    const auto started = StartRun(config, 1, "quick", Path("run"));
    EXPECT_FALSE(started);
    EXPECT_FALSE(fs::exists(Path("run")));
    return started ? Error{ErrorCode::kUsage, ""} : started.error();
  };
  const Error unknown = refusal("gap-folower");
  EXPECT_EQ(unknown.code, ErrorCode::kIo);
  EXPECT_EQ(unknown.message,
            Path("gap-folower") +
                ": cannot open: No such file or directory (policy.imitate names no built-in "
                "policy: straight, gap-follower)");
  Body other = BodyOf(SmallConfig(1).task());
  other.time_step = 0.1;
  ASSERT_TRUE(SavePolicy(MakeMlp({}, other), Path("other.fgp"), IfExists::kRefuse));
  const Error mismatch = refusal("other.fgp");
  EXPECT_EQ(mismatch.code, ErrorCode::kMismatch);
  EXPECT_EQ(mismatch.message, Path("other.fgp") +
                                  ": policy was made for episode.time_step = 0.1, configured 0.05 "
                                  "(--anyway allows it)");
  ASSERT_TRUE(WriteFileAtomically(Path("broken.fgp"), "no policy", IfExists::kRefuse));
  EXPECT_EQ(refusal("broken.fgp").code, ErrorCode::kData);
}

TEST_F(LocalRunTest, BeginsWithPoliciesOfAnotherBodyOnlyIfAllowed) {
  Config config = SmallConfig(1, {"learners=[{initial_policy=\"given.fgp\"}]"});
  config.directory = directory_.path();
  Body other = BodyOf(config.task());
  other.time_step = 0.1;
  ASSERT_TRUE(
      SavePolicy(MakeMlp(config.training.policy, other), Path("given.fgp"), IfExists::kRefuse));
  const auto refused = StartRun(config, 1, "quick", Path("run"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kMismatch);
  const std::string differs =
      Path("given.fgp") + ": policy was made for episode.time_step = 0.1, configured 0.05";
  EXPECT_EQ(refused.error().message, differs + " (--anyway allows it)");
  const auto allowed = StartRun(config, 1, "quick", Path("run"), OtherBodies::kAllow);
  ASSERT_TRUE(allowed) << allowed.error().message;
  EXPECT_THAT(allowed->warnings, ElementsAre(differs));
  // The copy claims no body; what the run makes of it is a policy of the run's.
  EXPECT_FALSE(LoadPolicy(Path("run/policies/given-1.fgp"))->made_for);
  EXPECT_EQ(Continue("run"), "done");
  EXPECT_EQ(LoadPolicy(Path("run/policies/final-1.fgp"))->made_for->time_step, 0.05);
}

}  // namespace
}  // namespace fedgen
