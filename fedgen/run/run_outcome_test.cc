// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/run_outcome.h"

#include <gtest/gtest.h>

namespace fedgen {
namespace {

RunOutcome Example() {
  RunOutcome outcome;
  outcome.rounds = 220;
  outcome.episodes = 5'368'000;
  outcome.seconds = 1.0 / 3;
  LearnerOutcome learner;
  learner.bias = 0.23018074130013652;
  learner.first_stop = 7;
  learner.adoptions = 2;
  learner.final = {10000, 9400, 550, 50, 812345, 3701.25, 331.5, 41234.5, 0xfedcba9876543210u};
  outcome.learners = {learner, learner};
  outcome.learners[1].adoptions = 1;
  outcome.winner = learner.final;
  return outcome;
}

TEST(RunOutcome, SumsAdoptionsAndKnowsWhoIsStuck) {
  EXPECT_EQ(Example().adoptions(), 3);
  Tally tally;
  tally.episodes = 10;
  tally.reached = 5;
  tally.timed_out = 5;
  tally.cost_sum = 7.5;
  EXPECT_FALSE(IsStuck(tally));
  EXPECT_EQ(SafeRate(tally), 0.5);
  EXPECT_EQ(MeanCost(tally), 0.75);
  tally.reached = 4;
  EXPECT_TRUE(IsStuck(tally));
}

TEST(RunOutcome, SurvivesItsTextToTheLastBit) {
  const std::string text = RunOutcomeToText(Example());
  const auto read = RunOutcomeFromText(text);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->learners.size(), 2u);
  EXPECT_EQ(read->seconds, 1.0 / 3);
  EXPECT_EQ(read->winner.outcome_hash, 0xfedcba9876543210u);
  EXPECT_EQ(RunOutcomeToText(*read), text);
}

TEST(RunOutcome, RefusesEveryTruncationAndEveryFlippedBit) {
  const std::string text = RunOutcomeToText(Example());
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(RunOutcomeFromText(text.substr(0, size)).has_value()) << size;
  }
  EXPECT_FALSE(RunOutcomeFromText(text + "\n").has_value());
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string altered = text;
      altered[at] = static_cast<char>(altered[at] ^ (1 << bit));
      EXPECT_FALSE(RunOutcomeFromText(altered).has_value()) << at << " bit " << bit;
    }
  }
  EXPECT_FALSE(RunOutcomeFromText("fedgen-outcome 1\n1 1 1 1 999999999\n").has_value());
}

}  // namespace
}  // namespace fedgen
