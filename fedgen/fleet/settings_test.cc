// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fleet/settings.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "fedgen/run/experiment.h"

namespace fedgen {
namespace {

using ::testing::HasSubstr;

std::string MessageOf(const Result<Config>& config) {
  return config ? "(no error)" : config.error().message;
}

TEST(Settings, AKeyInTheWrongFileIsAnError) {
  EXPECT_EQ(
      MessageOf(ParseShared("[robot]\nspeed = 2\n[learner]\nworlds = 5\n", "run.toml")),
      "run.toml:4: learner.worlds: is a learner's own: it belongs into the learner's own file");
  EXPECT_EQ(MessageOf(ParseShared("[world.random_discs]\ncount = 5\n", "run.toml")),
            "run.toml:2: world.random_discs.count: is a learner's own: it belongs into the "
            "learner's own file");
  EXPECT_EQ(
      MessageOf(ParseShared("[[learners]]\nworlds = 5\n", "run.toml")),
      "run.toml:1: learners: is for learners in one process; here each has a file of its own");
  EXPECT_EQ(
      MessageOf(ParseOwn("", "[federation]\nrounds = 7\n", "mine.toml", LearnerId(0))),
      "mine.toml:2: federation.rounds: is shared by the run: it belongs into the Cloud's file");
  EXPECT_EQ(MessageOf(ParseOwn("", "[lidar]\nfan = \"symmetric\"\n", "mine.toml", LearnerId(0))),
            "mine.toml:2: lidar.fan: is shared by the run: it belongs into the Cloud's file");
  EXPECT_EQ(MessageOf(ParseShared("", "run.toml", std::vector<std::string>{"learner.worlds=5"})),
            "--set: learner.worlds: is a learner's own: it belongs into the learner's own file");
}

TEST(Settings, OtherMistakesAreThoseOfAnyConfiguration) {
  EXPECT_EQ(MessageOf(ParseOwn("", "[learner]\nworlds = 0\n", "mine.toml", LearnerId(2))),
            "mine.toml:2: learner.worlds = 0: must be in 1..1000000");
  EXPECT_THAT(MessageOf(ParseOwn("", "[learner]\nwrlds = 5\n", "mine.toml", LearnerId(2))),
              HasSubstr("mine.toml:2: learner.wrlds: unknown key"));
  EXPECT_THAT(MessageOf(ParseOwn("[robot]\nspeed = -1\n", "", "mine.toml", LearnerId(2))),
              HasSubstr("the run's settings: robot.speed = -1"));
  EXPECT_THAT(MessageOf(ParseShared("[federation]\nalgorithm = \"single\"\n", "run.toml")),
              HasSubstr("run.toml: federation.algorithm = 'single': has one learner and no Cloud"));
}

// What the Cloud says about what is the learner's own does not reach it.
TEST(Settings, TheCloudCannotSetALearnersOwn) {
  const Result<Config> config = ParseOwn("[learner]\nworlds = 5\n[robot]\nspeed = 2\n",
                                         "[learner]\npairs = 7\n", "mine.toml", LearnerId(1));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->learner.worlds, Config().learner.worlds);
  EXPECT_EQ(config->learner.estimator.pairs, 7);
  EXPECT_EQ(config->task().robot.speed, 2);
}

TEST(Settings, WhoJoinsLaterMayHaveAnyNumber) {
  const Result<Config> config =
      ParseOwn("[federation]\nlearners = 3\n", "", "mine.toml", LearnerId(6));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->num_learners, 7);
}

// Split and put together again, every preset says the same of each learner.
TEST(Settings, TwoFilesSayWhatOneSays) {
  const std::string own_worlds =
      "[world.random_discs]\ncount = 3\n[federation]\nlearners = 3\n[learner]\nworlds = 9\n"
      "[[learners]]\n[[learners]]\nworlds = 11\ninitial_half_width = 0.7\n"
      "[learners.world.random_discs]\ncount = 4\n";
  std::vector<Result<Config>> configs = {ParseConfig(own_worlds, "c.toml")};
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(FEDGEN_SOURCE_DIR) + "/configs")) {
    configs.push_back(LoadConfig(entry.path().string()));
  }
  ASSERT_GT(configs.size(), 5U);
  for (const Result<Config>& one : configs) {
    ASSERT_TRUE(one) << one.error().message;
    const std::string shared = SharedText(*one);
    const Result<Config> of_cloud = ParseShared(shared, "run.toml");
    ASSERT_TRUE(of_cloud) << of_cloud.error().message;
    EXPECT_EQ(SharedText(*of_cloud), shared);
    for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(one->num_learners); ++i) {
      const LearnerId id(i);
      const Result<Config> own = ParseOwn(shared, OwnText(*one, id), "mine.toml", id);
      ASSERT_TRUE(own) << own.error().message;
      EXPECT_EQ(SharedText(*own), shared);
      EXPECT_EQ(OwnText(*own, id), OwnText(*one, id));
      EXPECT_EQ(TaskName(TaskOf(own->training, own->training.learners[i])),
                TaskName(TaskOf(one->training, one->training.learners[i])));
      EXPECT_EQ(own->training.learners[i].worlds, one->training.learners[i].worlds);
      EXPECT_EQ(own->training.learners[i].initial_half_width,
                one->training.learners[i].initial_half_width);
    }
  }
}

}  // namespace
}  // namespace fedgen
