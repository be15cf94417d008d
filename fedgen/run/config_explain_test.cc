// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/config_explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "fedgen/base/option.h"
#include "fedgen/run/config.h"
#include "fedgen/run/config_options.h"

namespace fedgen {
namespace {

using ::testing::HasSubstr;

// Every option with its default as one TOML text, `key = value` a line.
class Defaults : public PathVisitor {
 public:
  void Visit(const Option& option, const OptionField& field) override {
    EXPECT_FALSE(option.help.empty()) << option.name;
    EXPECT_FALSE(field.allowed.empty()) << option.name;
    keys.push_back(PathOf(option.name));
    if (field.value) text += keys.back() + " = " + ValueText(*field.value) + "\n";
  }
  std::vector<std::string> keys;
  std::string text;
};

TEST(ConfigExplain, SaysWhatAnOptionIs) {
  const Result<std::string> sigma = ExplainOption("learner.sigma");
  ASSERT_TRUE(sigma) << sigma.error().message;
  for (const char* part : {"learner.sigma\n", "standard deviation", "default   0.1\n",
                           "allowed   a number in [1e-6, 1e3]\n", "whose     a learner's own"}) {
    EXPECT_THAT(*sigma, HasSubstr(part));
  }
  EXPECT_THAT(*ExplainOption("robot.speed"), HasSubstr("unit      m/s\n"));
  EXPECT_THAT(*ExplainOption("robot.speed"), HasSubstr("whose     the run's"));
  EXPECT_THAT(*ExplainOption("federation.track_every"), HasSubstr("whose     the host's"));
  EXPECT_THAT(*ExplainOption("federation.rounds"), HasSubstr("whose     the run's"));
  EXPECT_THAT(*ExplainOption("learners.world"),
              HasSubstr("whose     a learner's own: its entry of [[learners]] sets it\n"));
  EXPECT_THAT(*ExplainOption("world.goal"), HasSubstr("world.goal.depth"));
}

TEST(ConfigExplain, NamesTheNearestOption) {
  const Result<std::string> wrong = ExplainOption("learner.sgima");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kUsage);
  EXPECT_EQ(wrong.error().message, "learner.sgima: no such option, did you mean learner.sigma?");
  EXPECT_EQ(ExplainOption("a").error().message, "a: no such option");
  EXPECT_FALSE(ExplainOption(""));
  EXPECT_FALSE(ExplainOption("world.goa"));
}

// What the description calls the default is what an empty file means, and every key explained is a
// key that is read.
TEST(ConfigExplain, KnowsEveryKeyAndItsDefault) {
  Config config;
  Defaults defaults;
  Describe(defaults, config);
  const Result<Config> spelled = ParseConfig(defaults.text, "c.toml");
  ASSERT_TRUE(spelled) << spelled.error().message;
  EXPECT_EQ(spelled->resolved, ParseConfig("", "c.toml")->resolved);
  for (const std::string& key : defaults.keys) {
    EXPECT_TRUE(ExplainOption(key)) << key;
    EXPECT_THAT(ExplainOptions(), HasSubstr(key));
    EXPECT_THAT(OptionsMarkdown(), HasSubstr("| `" + key + "` |"));
  }
  EXPECT_GT(defaults.keys.size(), 80U);
}

TEST(ConfigExplain, TheDocumentIsUpToDate) {
  std::ifstream file(FEDGEN_SOURCE_DIR "/docs/configuration.md");
  const std::string document{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(document.find("-->\n" + OptionsMarkdown() + "<!--") != std::string::npos)
      << "docs/configuration.md is out of date; run: tools/document build/release/fedgen";
}

}  // namespace
}  // namespace fedgen
