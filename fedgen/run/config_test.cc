// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "fedgen/base/random.h"
#include "fedgen/certify/bounds.h"
#include "fedgen/certify/ladder.h"
#include "fedgen/run/config_options.h"

namespace fedgen {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const std::string& text, std::vector<std::string> overrides = {}) {
  const Result<Config> config = ParseConfig(text, "c.toml", overrides);
  if (config) return "(no error)";
  return config.error().message;
}

TEST(Config, EmptyTextGivesTheDefaults) {
  const Result<Config> config = ParseConfig("", "c.toml");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->task().lidar.beams, 20);
  EXPECT_EQ(config->task().robot.speed, 2.5);
}

TEST(Config, ReadsEveryKindOfValue) {
  const Result<Config> config = ParseConfig(R"(
    [world]
    walls = [[-1, 0, -1, 4.5]]
    boxes = [[0, 3, 0.5, 0.25, 30]]
    [world.random_discs]
    count = [3, 7]
    x = 1.5
    radius = [0.1, 0.2]
    [world.goal]
    kind = "disc"
    x = [-1, 1]
    [world.start]
    per_world = 4
    [world.disturbance]
    kind = "uniform-noise"
    gain = [0.5, 0, 1]
    [robot]
    kind = "differential"
    [lidar]
    fan = "one-sided"
    beams = 40
    [episode]
    clock = "step-index"
    [policy]
    hidden = [8, 9]
    goal_inputs = true
    range_code = "inverse"
  )",
                                            "c.toml");
  ASSERT_TRUE(config) << config.error().message;
  const WorldDistribution& world = config->task().world;
  EXPECT_EQ(world.walls.at(0), (std::array<double, 4>{-1, 0, -1, 4.5}));
  EXPECT_EQ(world.boxes.at(0)[4], 30);
  EXPECT_EQ(world.random_discs.count, (CountInterval{3, 7}));
  EXPECT_EQ(world.random_discs.x, (Interval{1.5, 1.5}));
  EXPECT_EQ(world.random_discs.radius, (Interval{0.1, 0.2}));
  EXPECT_EQ(world.goal.kind, Goal::Kind::kDisc);
  EXPECT_EQ(world.start.per_world, 4);
  EXPECT_EQ(world.disturbance.kind, Disturbance::Kind::kUniformNoise);
  EXPECT_EQ(world.disturbance.gain[2], 1);
  EXPECT_EQ(config->task().robot.kind, RobotOptions::Kind::kDifferential);
  EXPECT_EQ(config->task().lidar.to_degrees, -3);
  EXPECT_EQ(config->task().lidar.beams, 40);
  EXPECT_EQ(config->task().episode.clock, EpisodeOptions::Clock::kStepIndex);
  EXPECT_EQ(config->training.policy.hidden, (std::vector<int>{8, 9}));
  EXPECT_TRUE(config->training.policy.goal_inputs);
}

TEST(Config, NamesFileLineKeyAndNearestKnownKey) {
  EXPECT_EQ(ErrorOf("[robot]\nspeed = 2\nradus = 0.3\n"),
            "c.toml:3: robot.radus: unknown key, did you mean robot.radius?");
  EXPECT_EQ(ErrorOf("[wrold]\n"), "c.toml:1: wrold: unknown key, did you mean world?");
}

TEST(Config, RefusesWrongTypes) {
  EXPECT_EQ(ErrorOf("[robot]\nspeed = \"fast\"\n"),
            "c.toml:2: robot.speed = 'fast': must be a number");
  EXPECT_EQ(ErrorOf("[lidar]\nbeams = 2.5\n"),
            "c.toml:2: lidar.beams = 2.5: must be an integer in 1..1024");
  EXPECT_EQ(ErrorOf("[policy]\nstate_inputs = 1\n"),
            "c.toml:2: policy.state_inputs = 1: must be true or false");
  EXPECT_EQ(ErrorOf("robot = 3\n"), "c.toml:1: robot = 3: must be a table");
  EXPECT_EQ(ErrorOf("[world]\nwalls = [[1, 2, 3]]\n"),
            "c.toml:2: world.walls[0] = [1, 2, 3]: must be [x0, y0, x1, y1]");
  EXPECT_EQ(ErrorOf("[robot]\nkind = \"boat\"\n"),
            "c.toml:2: robot.kind = 'boat': must be one of car, differential");
  EXPECT_EQ(ErrorOf("[lidar]\nbeams = 99999999999\n"),
            "c.toml:2: lidar.beams = 99999999999: must be an integer in 1..1024");
}

TEST(Config, RefusesValuesOutOfRange) {
  EXPECT_EQ(ErrorOf("[robot]\n\nspeed = -1\n"),
            "c.toml:3: robot.speed = -1: must be in [0.001, 1e4]");
  EXPECT_EQ(ErrorOf("[world.random_discs]\nradius = [-0.1, 0.2]\n"),
            "c.toml:2: world.random_discs.radius = [-0.1, 0.2]: must be in [0.001, 1e4]");
  EXPECT_EQ(ErrorOf("[world.random_discs]\nx = [3, 1]\n"),
            "c.toml:2: world.random_discs.x = [3, 1]: low end above high end");
  EXPECT_EQ(ErrorOf("[world.start]\ny = nan\n"),
            "c.toml:2: world.start.y = [nan, nan]: must be in [-1e4, 1e4]");
  EXPECT_EQ(ErrorOf("[world]\nwalls = [\n [0, 0, 1, 0],\n [1, 1, 1, 1]]\n"),
            "c.toml:4: world.walls[1] = shorter than 1e-3 m: must have two ends");
  EXPECT_EQ(ErrorOf("[lidar]\nfan = \"symmetric\"\nfrom_degrees = 1\n"),
            "c.toml:3: lidar.from_degrees = 1: lidar.fan sets it already");
}

TEST(Config, RefusesBrokenToml) {
  EXPECT_EQ(ErrorOf("[robot\n").substr(0, 9), "c.toml:1:");
  EXPECT_EQ(ErrorOf("[robot]\nspeed = 1\nspeed = 2\n").substr(0, 9), "c.toml:3:");
}

TEST(Config, OverridesReplaceWhatTheFileSays) {
  const std::vector<std::string> overrides = {"robot.speed=1.5", "robot.kind=differential",
                                              "world.random_discs.count=[2, 3]"};
  const Result<Config> config = ParseConfig("[robot]\nspeed = 9\nradius = 0.5\n", "c", overrides);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->task().robot.speed, 1.5);
  EXPECT_EQ(config->task().robot.radius, 0.5);
  EXPECT_EQ(config->task().robot.kind, RobotOptions::Kind::kDifferential);
  EXPECT_EQ(config->task().world.random_discs.count, (CountInterval{2, 3}));
}

TEST(Config, OverridesAreCheckedToo) {
  EXPECT_EQ(ErrorOf("", {"robot.speed=-1"}), "--set: robot.speed = -1: must be in [0.001, 1e4]");
  EXPECT_EQ(ErrorOf("", {"robot.sped=1"}),
            "--set: robot.sped: unknown key, did you mean robot.speed?");
  EXPECT_EQ(ErrorOf("\n", {"world.walls=[[0, 0, 1, nan]]"}),
            "--set: world.walls[0][3] = nan: must be in [-1e4, 1e4]");
  EXPECT_EQ(ErrorOf("", {"learner.pairs=9223372036854775807"}),
            "--set: learner.pairs = 9223372036854775807: must be an integer in 2..100000");
  EXPECT_EQ(ErrorOf("", {"a=1"}), "--set: a: unknown key");
  EXPECT_EQ(ErrorOf("", {"robot"}), "--set = robot: must be key=value");
  EXPECT_EQ(ErrorOf("", {"robot.kind='a"}),
            "--set = robot.kind='a: must be one key and its value in TOML");
}

TEST(Config, AnOverrideIsOneKey) {
  EXPECT_EQ(ErrorOf("", {"robot.radius=0.3\nrobot.speed=3"}).substr(0, 6), "--set ");
  EXPECT_EQ(ErrorOf("", {"robot={}"}), "--set = robot={}: must be one key and its value in TOML");
}

TEST(Config, AnOverriddenAngleReplacesANamedFan) {
  const std::vector<std::string> overrides = {"lidar.from_degrees=-90", "lidar.to_degrees=90"};
  const Result<Config> config = ParseConfig("[lidar]\nfan = \"symmetric\"\n", "c", overrides);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->task().lidar.from_degrees, -90);
  EXPECT_EQ(config->task().lidar.to_degrees, 90);
}

// And a fan by --set replaces the angles of the file, such as those of a run's config.toml.
TEST(Config, AnOverriddenFanReplacesAngles) {
  const std::vector<std::string> overrides = {"lidar.fan=one-sided"};
  const Result<Config> config =
      ParseConfig("[lidar]\nfrom_degrees = -90\nto_degrees = 90\n", "c", overrides);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->task().lidar.from_degrees, -60);
  EXPECT_EQ(config->task().lidar.to_degrees, -3);
  EXPECT_EQ(ErrorOf("", {"lidar.fan=symmetric", "lidar.to_degrees=9"}),
            "--set: lidar.to_degrees = 9: lidar.fan sets it already");
}

// A certificate holds at most 10^8 worlds: a run that asked for more trained to its end and then
// failed.
TEST(Config, RefusesMoreWorldsThanACertificateHolds) {
  EXPECT_EQ(ErrorOf("[federation]\ncertificate_worlds = 100000001\n"),
            "c.toml:2: federation.certificate_worlds = 100000001: must be in 100..100000000");
  const std::string most =
      fmt::format("[federation]\ncertificate_worlds = {}\n", kMaxCertificateWorlds);
  EXPECT_EQ(ErrorOf(most), "(no error)");
  EXPECT_EQ(ErrorOf("[federation]\ncertificate_worlds = 20000\n"),
            "c.toml:2: federation.certificate_worlds = 20000: must be 1 or 3 times a power of ten, "
            "from 100 to 100000000 (so that nobody can choose a lucky size)");
  EXPECT_EQ(ErrorOf("", {"federation.certificate_worlds=0"}),
            "--set: federation.certificate_worlds = 0: must be in 100..100000000");
}

TEST(ParseConfig, RefusesMoreStepsThanCanBeNumbered) {  // 2^32 = 4294967296
  const std::vector<std::string> base = {"learner.estimator=policy-gradient",
                                         "episode.horizon=10000"};
  const auto with = [&](const std::string& more, const std::string& yet_more = "world.walls=[]") {
    std::vector<std::string> all = base;
    all.push_back(more);
    all.push_back(yet_more);
    return all;
  };
  EXPECT_EQ(ErrorOf("", with("learner.policy_gradient.episodes=429496")), "(no error)");
  EXPECT_EQ(ErrorOf("", with("learner.policy_gradient.episodes=429497")),
            "--set: learner.policy_gradient.episodes = 429497: with episode.horizon = 10000 that "
            "is 4294970000 steps, must be less than 2^32");
  // One learner has everybody's episodes.
  EXPECT_EQ(ErrorOf("", with("learner.policy_gradient.episodes=60000",
                             "federation.algorithm=centralized")),
            "--set: learner.policy_gradient.episodes = 480000: with episode.horizon = 10000 that "
            "is 4800000000 steps, must be less than 2^32");
  EXPECT_EQ(ErrorOf("", with("policy.imitation_episodes=429497", "policy.imitate=straight")),
            "--set: policy.imitation_episodes = 429497: with episode.horizon = 10000 that is "
            "4294970000 steps, must be less than 2^32");
  // Nobody keeps steps.
  EXPECT_EQ(ErrorOf("", with("policy.imitation_episodes=429497")), "(no error)");
  EXPECT_EQ(
      ErrorOf("", with("learner.policy_gradient.episodes=429497", "learner.estimator=evolution")),
      "(no error)");
}

TEST(Config, AllowsTheConfidencesThatACertificateDoes) {
  EXPECT_EQ(ErrorOf("", {"federation.confidence=0"}),
            fmt::format("--set: federation.confidence = 0: {}", kConfidenceRule));
}

// One rule that joins fields of each room, at the line of the key that broke it.
TEST(Config, NamesTheLineOfARuleBetweenKeys) {
  EXPECT_EQ(ErrorOf("[lidar]\nfrom_degrees = 70\n"),
            "c.toml:1: lidar.to_degrees = 60: must be in [from_degrees, 180]");
  EXPECT_EQ(ErrorOf("[lidar]\nfrom_degrees = 0\nto_degrees = -1\n"),
            "c.toml:3: lidar.to_degrees = -1: must be in [from_degrees, 180]");
  EXPECT_EQ(ErrorOf("[world.goal]\nkind = 'disc'\nradius = 0.5\ndepth = 0.5\n"),
            "c.toml:4: world.goal.depth = 0.5: must be below goal.radius, or nobody arrives");
  EXPECT_EQ(ErrorOf("[[learners]]\n[learners.world]\nwalls = [\n[1, 1, 1, 1]]\n"),
            "c.toml:4: learners[1].world.walls[0] = shorter than 1e-3 m: must have two ends");
  EXPECT_EQ(ErrorOf("[[learners]]\ninitial_half_width = 11\n"),
            "c.toml:2: learners[1].initial_half_width = 11: must be in [0, 10]");
  for (const char* every : {"1", "3"}) {
    EXPECT_EQ(
        ErrorOf(fmt::format("[federation]\naverage_every = {}\n[learner]\nrest = true\n", every)),
        "c.toml:4: learner.rest = true: needs federation.average_every = 0");
  }
  EXPECT_EQ(ErrorOf("[world.disturbance]\nmodes = 12\n"),
            "c.toml:2: world.disturbance.modes = 12: must be a multiple of 8 in 8..4096");
  EXPECT_EQ(ErrorOf("[[learners]]\nworld = 3\n"),
            "c.toml:2: learners[1].world = 3: must be a table");
  EXPECT_EQ(ErrorOf("learners = [3]\n"), "c.toml:1: learners[1] = 3: must be a table");
}

TEST(LearnerSettings, AreValidated) {
  EXPECT_FALSE(Validate(LearnerSettings{}));
  const auto field = [](void (*spoil)(LearnerSettings&)) {
    LearnerSettings settings;
    spoil(settings);
    const auto error = Validate(settings);
    return error ? error->field : "none";
  };
  EXPECT_EQ(field([](LearnerSettings& s) { s.worlds = 0; }), "worlds");
  EXPECT_EQ(field([](LearnerSettings& s) { s.starts = -1; }), "starts");
  EXPECT_EQ(field([](LearnerSettings& s) { s.sigma = 0; }), "sigma");
  EXPECT_EQ(field([](LearnerSettings& s) { s.sigma = 1e-38; }), "sigma");  // mu + sigma == mu
  EXPECT_EQ(field([](LearnerSettings& s) { s.sigma = std::nan(""); }), "sigma");
  EXPECT_EQ(field([](LearnerSettings& s) { s.sigma_rate = -1; }), "sigma_rate");
  EXPECT_EQ(field([](LearnerSettings& s) { s.bias.given = 0; }), "bias");
  EXPECT_EQ(field([](LearnerSettings& s) { s.cost.distance_weight = -1; }), "distance_weight");
  EXPECT_EQ(field([](LearnerSettings& s) { s.cost.margin = -1; }), "margin");
  EXPECT_EQ(field([](LearnerSettings& s) { s.estimator.pairs = 1; }), "pairs");
  EXPECT_EQ(field([](LearnerSettings& s) { s.step.step = 0; }), "step");
  EXPECT_EQ(field([](LearnerSettings& s) { s.stop.window = 0; }), "window");
}

TEST(Config, EveryFileInConfigsIsValid) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FEDGEN_SOURCE_DIR "/configs")) {
    const Result<Config> config = LoadConfig(entry.path().string());
    EXPECT_TRUE(config) << config.error().message;
    ++count;
  }
  EXPECT_GE(count, 5);
}

// default.toml shows every key with its default: what it spells out must be what an empty file
// means.
TEST(Config, DefaultFileMatchesTheDefaultsItDocuments) {
  const Result<Config> file = LoadConfig(FEDGEN_SOURCE_DIR "/configs/default.toml");
  ASSERT_TRUE(file) << file.error().message;
  const Config none;
  EXPECT_EQ(file->task().robot.speed, none.task().robot.speed);
  EXPECT_EQ(file->task().robot.radius, none.task().robot.radius);
  EXPECT_EQ(file->task().robot.length, none.task().robot.length);
  EXPECT_EQ(file->task().lidar.beams, none.task().lidar.beams);
  EXPECT_EQ(file->task().lidar.range, none.task().lidar.range);
  EXPECT_EQ(file->task().lidar.from_degrees, none.task().lidar.from_degrees);
  EXPECT_EQ(file->task().episode.time_step, none.task().episode.time_step);
  EXPECT_EQ(file->task().episode.horizon, none.task().episode.horizon);
  EXPECT_EQ(file->task().world.start.y, none.task().world.start.y);
  EXPECT_EQ(file->task().world.disturbance.intensity, none.task().world.disturbance.intensity);
  EXPECT_EQ(file->training.policy.hidden, none.training.policy.hidden);
}

TEST(Config, ReadsFederationsAndLearners) {
  const Result<Config> config = ParseConfig(R"(
    [federation]
    learners = 3
    algorithm = "fedavg"
    gamma = 0.05
    [learner]
    worlds = 64
    bias = "paper"
    stop = "plateau"
    [[learners]]
    bias = 0.125
    [[learners]]
    worlds = 200
    initial_half_width = 0.5
    [learners.world.random_discs]
    count = 7
  )",
                                            "c.toml");
  ASSERT_TRUE(config) << config.error().message;
  const TrainingSettings& training = config->training;
  ASSERT_EQ(training.learners.size(), 3U);
  EXPECT_EQ(training.federation.algorithm, Algorithm::kFedAvg);
  EXPECT_EQ(training.gamma, 0.05);
  EXPECT_EQ(training.learners[0].bias.kind, BiasOptions::Kind::kGiven);
  EXPECT_EQ(training.learners[0].bias.given, 0.125);
  EXPECT_EQ(training.learners[0].worlds, 64);
  EXPECT_FALSE(training.learners[0].own_world.has_value());
  EXPECT_EQ(training.learners[1].worlds, 200);
  EXPECT_EQ(training.learners[1].bias.kind, BiasOptions::Kind::kPaper);
  EXPECT_EQ(training.learners[1].initial_half_width, 0.5);
  ASSERT_TRUE(training.learners[1].own_world.has_value());
  EXPECT_EQ(training.learners[1].own_world->random_discs.count, (CountInterval{7, 7}));
  EXPECT_EQ(training.learners[2].stop.rule, StopOptions::Rule::kPlateau);
}

TEST(Config, NamesWhatIsWrongInALearner) {
  EXPECT_EQ(ErrorOf("[learner]\npairs = 1\n"), "c.toml:2: learner.pairs = 1: must be in 2..100000");
  EXPECT_EQ(ErrorOf("[learner]\nstop = 3\n"),
            "c.toml:2: learner.stop = 3: must be one of gradient, auto, plateau, never");
  EXPECT_EQ(ErrorOf("[learner]\nbias = \"none\"\n"),
            "c.toml:2: learner.bias = 'none': must be a number or worlds, paper");
  EXPECT_EQ(ErrorOf("[federation]\nlearners = 0\n"),
            "c.toml:2: federation.learners = 0: must be in 1..1000");
  EXPECT_EQ(ErrorOf("[federation]\nlearners = 1\n[[learners]]\n[[learners]]\n").substr(0, 19),
            "c.toml:3: learners ");
  EXPECT_EQ(ErrorOf("[[learners]]\nworlds = 0\n"),
            "c.toml:2: learners[1].worlds = 0: must be in 1..1000000");
  // Learners count from 1, as everywhere.
  EXPECT_EQ(ErrorOf("[[learners]]\n[[learners]]\n\nworlds = 0\n"),
            "c.toml:4: learners[2].worlds = 0: must be in 1..1000000");
  EXPECT_EQ(ErrorOf("[[learners]]\n[[learners]]\n[learners.world.goal]\nkind = 'disc'\n"
                    "radius = 0.1\ndepth = 0.2\n"),
            "c.toml:6: learners[2].world.goal.depth = 0.2: must be below goal.radius, or nobody "
            "arrives");
  EXPECT_EQ(ErrorOf("[[learners]]\nwrolds = 5\n"),
            "c.toml:2: learners[1].wrolds: unknown key, did you mean learners[1].worlds?");
  EXPECT_EQ(ErrorOf("", {"federation.gamma=0"}), "--set: federation.gamma = 0: must be in (0, 1)");
}

// What a run directory keeps: reading it back gives the same, whatever was in the file.
TEST(Config, ResolvedTextReadsBackAsItself) {
  for (const auto& entry : std::filesystem::directory_iterator(FEDGEN_SOURCE_DIR "/configs")) {
    const Result<Config> config = LoadConfig(entry.path().string());
    ASSERT_TRUE(config) << config.error().message;
    const Result<Config> again = ParseConfig(config->resolved, "resolved.toml");
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->resolved, config->resolved) << entry.path();
  }
  const Result<Config> odd = ParseConfig(
      "[learner]\nstep = 0.1\nbias = 0.3333333333333333\n[[learners]]\nsigma = 1e-6\n[[learners]]\n"
      "[learners.world.goal]\noffset = [8, 9]\n",
      "c.toml");
  ASSERT_TRUE(odd) << odd.error().message;
  const Result<Config> again = ParseConfig(odd->resolved, "resolved.toml");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->training.learners[0].bias.given, 0.3333333333333333);
  EXPECT_EQ(again->training.learners[0].sigma, 1e-6);
  EXPECT_EQ(again->training.learners[1].own_world->goal.offset.high, 9);
  EXPECT_EQ(again->resolved, odd->resolved);
}

// Numbers as a person would write them, down to the last bit.
TEST(Config, ResolvedTextHasTheFewestDigits) {
  const Result<Config> config = ParseConfig(
      "[learner]\nstep = 0.1\nsigma = 0.30000000000000004\ntolerance = 3\n"
      "[world.goal]\nnormal = [0.6, 0.8]\n[[learners]]\ninitial_policy = 'a \"b\" = 0.10'\n",
      "c.toml");
  ASSERT_TRUE(config) << config.error().message;
  const std::string& text = config->resolved;
  EXPECT_THAT(text, HasSubstr("\nstep = 0.1\n"));
  EXPECT_THAT(text, HasSubstr("\nsigma = 0.30000000000000004\n"));
  EXPECT_THAT(text, HasSubstr("\ntolerance = 3.0\n"));
  EXPECT_THAT(text, HasSubstr("\nnormal = [0.6, 0.8]\n"));
  // The same bits: random ones, near the ends of the range as well.
  for (std::uint64_t draw = 0; draw < 300; ++draw) {
    const double scale = std::pow(10.0, UniformInt(Key(1).Block(draw)[0], -3, 3));
    const double x = scale * (1 + UniformInt(Key(2).Block(draw)[0], 0, 1 << 30) / 3e9);
    const std::vector<std::string> overrides = {fmt::format("world.start.x={:.17g}", x),
                                                fmt::format("robot.speed={:.17g}", x)};
    const Result<Config> first = ParseConfig("", "c.toml", overrides);
    ASSERT_TRUE(first) << first.error().message;
    const Result<Config> again = ParseConfig(first->resolved, "resolved.toml");
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->task().robot.speed, x);
    EXPECT_EQ(again->task().world.start.x.low, x);
    EXPECT_EQ(again->resolved, first->resolved);
  }
}

// A parser that follows a key into the depth of its stack would end the program.
TEST(Config, RefusesKeysOfAbsurdDepth) {
  std::string key = "a";
  for (int part = 0; part < 50000; ++part) key += ".a";
  const std::string deep = "\n" + key + " = 1\n";
  EXPECT_EQ(ParseConfig(deep, "c.toml").error().message, "c.toml:2: a key has more than 64 parts");
  EXPECT_FALSE(ParseConfig("[" + key + "]\n", "c.toml"));
  const std::vector<std::string> overrides = {key + "=1"};
  EXPECT_FALSE(ParseConfig("", "c.toml", overrides));
}

TEST(Config, RefusesNetworksThatNoMemoryHolds) {
  const std::vector<std::string> overrides = {"policy.hidden=[4096,4096,4096,4096,4096]"};
  EXPECT_THAT(ParseConfig("", "c.toml", overrides).error().message,
              HasSubstr("policy.hidden = 67"));
  const std::vector<std::string> fits = {"policy.hidden=[2000,2000]"};
  EXPECT_TRUE(ParseConfig("", "c.toml", fits));
}

TEST(Sets, KnowsAKeyHoweverItIsSpelled) {
  for (const char* text : {"federation.rounds=3", " federation.rounds = 3", "federation . rounds=3",
                           "\"federation\".rounds=3", "federation={rounds=3}", "federation=3"}) {
    EXPECT_TRUE(Sets(text, "federation.rounds")) << text;
  }
  for (const char* text :
       {"federation.learners=3", "federation={learners=3}", "rounds=3", "=", ""}) {
    EXPECT_FALSE(Sets(text, "federation.rounds")) << text;
  }
}

}  // namespace
}  // namespace fedgen
