// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "fedgen/fuse/cloud.h"

namespace fedgen {

// Messages of learners on a policy of two numbers, for tests of the Cloud alone.

inline constexpr LearnerId kA(0), kB(1), kC(2);

inline std::vector<LearnerId> Ids(std::uint32_t count) {
  std::vector<LearnerId> ids;
  for (std::uint32_t i = 0; i < count; ++i) ids.emplace_back(i);
  return ids;
}

inline Submission Make(LearnerId learner, int round, LearnerId origin, double y,
                       std::vector<float> theta) {
  Submission s;
  s.learner = learner;
  s.round = round;
  s.origin = origin;
  s.y = y;
  s.b = 0.125;
  s.theta = std::move(theta);
  s.hash = HashOf(s.theta);
  return s;
}

inline RoundMessage Says(int round, const Submission& submission, std::int64_t episodes = 0) {
  RoundMessage message;
  message.learner = submission.learner;
  message.round = round;
  message.submission = submission;
  message.episodes = episodes;
  return message;
}

inline void ExpectRefused(const Result<bool>& result, const char* why) {
  ASSERT_FALSE(result) << why;
  EXPECT_EQ(result.error().code, ErrorCode::kMismatch);
  EXPECT_THAT(result.error().message, ::testing::HasSubstr(why));
}

// Everybody joins with a policy of two numbers.
inline void JoinAll(Cloud& cloud, std::uint32_t count) {
  for (const LearnerId id : Ids(count)) {
    ASSERT_TRUE(cloud.Receive(JoinMessage{id, {static_cast<float>(id.index()), 1}}));
  }
}

// A round in which everybody closes with this origin and outlook.
inline void CloseAll(Cloud& cloud, int round, std::uint32_t count, LearnerId origin,
                     Outlook outlook = Outlook::kSearches) {
  for (const LearnerId id : Ids(count)) {
    ASSERT_TRUE(cloud.Receive(CloseMessage{id, round, origin, outlook}));
  }
}

}  // namespace fedgen
