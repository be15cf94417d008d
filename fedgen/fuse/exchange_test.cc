// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fuse/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "fedgen/base/random.h"

namespace fedgen {
namespace {

using ::testing::ElementsAre;

Submission Make(int learner, int round, int origin, double y, std::vector<float> theta) {
  Submission s;
  s.learner = learner;
  s.round = round;
  s.origin = origin;
  s.y = y;
  s.b = 0.1;
  s.theta = std::move(theta);
  s.hash = HashOf(s.theta);
  return s;
}

std::vector<Submission> RandomRound(Key key, int num_learners, int round) {
  std::vector<Submission> submissions;
  for (int learner = 0; learner < num_learners; ++learner) {
    const RandomBlock words =
        key.Fork(static_cast<std::uint64_t>(round)).Block(static_cast<std::uint64_t>(learner));
    submissions.push_back(Make(learner, round, UniformInt(words[0], 0, 2),
                               UniformInt(words[1], 0, 9) / 10.0,
                               {UnitFloat(words[2]), UnitFloat(words[3])}));
  }
  return submissions;
}

// Deterministic shuffle.
void Shuffle(Key key, std::vector<Submission>& submissions) {
  for (std::size_t at = submissions.size(); at > 1; --at) {
    std::swap(submissions[at - 1], submissions[static_cast<std::size_t>(
                                       UniformInt(key.Block(at)[0], 0, static_cast<int>(at) - 1))]);
  }
}

TEST(InProcessExchange, DoesNotCareAboutOrderOrRepetition) {
  constexpr int kLearners = 5;
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    InProcessExchange plain(kLearners, 2), shuffled(kLearners, 2);
    for (int round = 1; round <= 4; ++round) {
      std::vector<Submission> submissions = RandomRound(Key(trial), kLearners, round);
      submissions.push_back(Make(kLearners, round, 0, 0.05 * round, {9, 9}));  // the Cloud's own
      const auto expected = plain.Submit(round, submissions);
      std::vector<Submission> mixed = submissions;
      Shuffle(Key(trial).Fork(77).Fork(static_cast<std::uint64_t>(round)), mixed);
      const auto got = shuffled.Submit(round, mixed);
      ASSERT_EQ(got->incumbent, expected->incumbent);
      ASSERT_EQ(shuffled.knowledge(), plain.knowledge());
      ASSERT_EQ(got->candidates.size(), expected->candidates.size());
      for (std::size_t at = 0; at < got->candidates.size(); ++at) {
        EXPECT_EQ(got->candidates[at].theta, expected->candidates[at].theta);
        EXPECT_EQ(got->candidates[at].origin, expected->candidates[at].origin);
        EXPECT_EQ(got->candidates[at].measurer, expected->candidates[at].measurer);
      }
      const Knowledge before = shuffled.knowledge();
      ASSERT_TRUE(shuffled.Submit(round, mixed));
      EXPECT_EQ(shuffled.knowledge(), before);
    }
  }
}

TEST(InProcessExchange, RemembersTheBestOfAllRounds) {
  InProcessExchange exchange(2, 0);
  auto round = exchange.Submit(1, std::vector{Make(0, 1, 0, 0.3, {1}), Make(1, 1, 1, 0.5, {2})});
  EXPECT_EQ(round->incumbent->learner, 0);
  EXPECT_THAT(round->participants, ElementsAre(0, 1));
  round = exchange.Submit(2, std::vector{Make(0, 2, 0, 0.9, {3}), Make(1, 2, 1, 0.4, {4})});
  EXPECT_EQ(round->incumbent->round, 1);
  EXPECT_EQ(round->incumbent->theta, std::vector<float>{1});
  EXPECT_TRUE(round->candidates.empty());
}

TEST(InProcessExchange, NominatesAMeanWhenAskedTo) {
  InProcessExchange exchange(3, 2);
  const auto measured = [](int round) {
    return std::vector{Make(0, round, 1, 0.3, {1, 4}), Make(1, 1, 1, 0.5, {2, 0}),
                       Make(2, 1, 2, 0.5, {9, 9}), Make(3, round, 1, 0.5, {50, 50})};
  };
  EXPECT_TRUE(exchange.Submit(1, measured(1))->candidates.empty());
  const auto second = exchange.Submit(2, measured(2));
  ASSERT_EQ(second->candidates.size(), 1U);
  EXPECT_THAT(second->candidates[0].theta, ElementsAre(1.5F, 2.0F));  // not the Cloud's own
  EXPECT_EQ(second->candidates[0].measurer, 1);
  const auto fourth = exchange.Submit(4, measured(3));
  ASSERT_EQ(fourth->candidates.size(), 1U);
  EXPECT_EQ(fourth->candidates[0].measurer, 2);
  const auto sixth = exchange.Submit(6, measured(5));
  ASSERT_EQ(sixth->candidates.size(), 1U);
  EXPECT_EQ(sixth->candidates[0].measurer, 0);
  EXPECT_TRUE(exchange.Submit(8, measured(6))->candidates.empty()) << "nobody measured since";
}

TEST(Average, IsTheMeanOfTheCommonestOrigin) {
  const Submission a = Make(0, 1, 5, 0.3, {1, 2}), b = Make(1, 1, 3, 0.3, {3, 4}),
                   c = Make(2, 1, 3, 0.3, {5, 8}), d = Make(3, 1, 5, 0.3, {2, 0}),
                   e = Make(4, 1, 5, 0.3, {6, 1});
  EXPECT_FALSE(Average({}));
  EXPECT_FALSE(Average(std::vector{a, b}));
  const auto pair = Average(std::vector{a, b, c, d});  // a tie goes to the smaller origin
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->origin, 3);
  EXPECT_THAT(pair->theta, ElementsAre(4.0F, 6.0F));
  const auto three = Average(std::vector{a, b, c, d, e});
  EXPECT_EQ(three->origin, 5);
  EXPECT_THAT(three->theta, ElementsAre(3.0F, 1.0F));
}

}  // namespace
}  // namespace fedgen
