// SPDX-License-Identifier: Apache-2.0
#include "fedgen/federation/entry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedgen/base/version.h"

namespace fedgen {
namespace {

const std::string kShared = "[federation]\nlearners = 8\nrounds = 200\n\n[robot]\nspeed = 2.5\n";

std::string Answer(const SharedSettings& served, const Entry& entry) {
  const Result<Entered> entered = Enter(served, entry);
  return entered ? fmt::format("{}: {}", entered->run, entered->settings) : entered.error().message;
}

TEST(Entry, TellsWhatIsShared) {
  const SharedSettings one = {{"a", kShared}};
  EXPECT_EQ(Answer(one, {"a", kVersion, ""}), "a: " + kShared);
  EXPECT_EQ(Answer(one, {"", kVersion, kShared}), "a: " + kShared);
  const SharedSettings two = {{"a", kShared}, {"b", "[robot]\nspeed = 1\n"}};
  EXPECT_EQ(Answer(two, {"b", kVersion, ""}), "b: [robot]\nspeed = 1\n");
}

TEST(Entry, RefusesWithTheFieldThatDiffers) {
  const SharedSettings two = {{"a", kShared}, {"b", ""}};
  EXPECT_EQ(Answer(two, {"", kVersion, ""}), "--run is needed: several are served: a, b");
  EXPECT_EQ(Answer(two, {"c\n", kVersion, ""}),
            "--run = c\\x0a: must be one of those that are served: a, b");
  EXPECT_EQ(Answer(two, {"a", "0.0.1", ""}),
            fmt::format("version = 0.0.1: must be {}, the Cloud's", kVersion));
  EXPECT_EQ(Answer(two, {"a", kVersion, "[federation]\nlearners = 8\nrounds = 300\n"}),
            "run a: federation.rounds = 300: must be 200, as the Cloud has it");
  EXPECT_EQ(Answer(two, {"a", kVersion, "[federation]\nrounds = 200\n"}),
            "run a: federation.learners: is missing, must be 8, as the Cloud has it");
  EXPECT_EQ(Answer(two, {"a", kVersion, kShared + "wheels = 4\n"}),
            "run a: robot.wheels = 4: must not be there, as the Cloud has it");
}

TEST(FindDifference, IsNothingOnlyForEqualTexts) {
  EXPECT_EQ(FindDifference(kShared, kShared), std::nullopt);
  EXPECT_EQ(FindDifference(kShared + "\n", kShared), "is written in another way");
}

}  // namespace
}  // namespace fedgen
