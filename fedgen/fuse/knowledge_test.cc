// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fuse/knowledge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "fedgen/base/random.h"

namespace fedgen {
namespace {

// A submission named by (learner, round, policy): whoever tells of it tells the same. Costs are
// coarse, so that ties are common.
Submission Named(int learner, int round, int policy) {
  const RandomBlock words = Key(9)
                                .Fork(static_cast<std::uint64_t>(learner))
                                .Fork(static_cast<std::uint64_t>(round))
                                .Block(static_cast<std::uint64_t>(policy));
  Submission s;
  s.learner = learner;
  s.round = round;
  s.origin = UniformInt(words[0], 0, 3);
  s.y = UniformInt(words[1], 0, 4) / 8.0;
  s.b = UniformInt(words[2], 1, 3) / 8.0;
  s.theta = {static_cast<float>(policy), 1};
  s.hash = HashOf(s.theta);
  return s;
}

Submission Random(Key key, std::uint64_t index) {
  const RandomBlock words = key.Block(index);
  return Named(UniformInt(words[0], 0, 3), UniformInt(words[1], 1, 3), UniformInt(words[2], 0, 4));
}

Knowledge RandomKnowledge(Key key) {
  Knowledge knowledge;
  const int count = UniformInt(key.Block(1000)[0], 0, 6);
  for (int index = 0; index < count; ++index) {
    knowledge = Merge(knowledge, KnowledgeOf(Random(key, static_cast<std::uint64_t>(index))));
  }
  const int refuted = UniformInt(key.Block(1000)[1], 0, 2);
  for (int index = 0; index < refuted; ++index) {
    knowledge.refuted.insert(Random(key.Fork(7), static_cast<std::uint64_t>(index)).hash);
  }
  return knowledge;
}

TEST(Merge, IsAJoin) {  // Eq. 30
  for (std::uint64_t trial = 0; trial < 5000; ++trial) {
    const Knowledge a = RandomKnowledge(Key(1).Fork(trial));
    const Knowledge b = RandomKnowledge(Key(2).Fork(trial));
    const Knowledge c = RandomKnowledge(Key(3).Fork(trial));
    ASSERT_EQ(Merge(Merge(a, b), c), Merge(a, Merge(b, c))) << trial;
    ASSERT_EQ(Merge(a, b), Merge(b, a)) << trial;
    ASSERT_EQ(Merge(a, a), a) << trial;
    ASSERT_EQ(Merge(a, {}), a) << trial;
    ASSERT_EQ(Merge(Merge(a, b), b), Merge(a, b)) << trial;
  }
}

TEST(IsBetter, IsATotalOrder) {
  std::vector<Submission> all;
  for (int learner = 0; learner < 4; ++learner) {
    for (int round = 1; round < 4; ++round) {
      for (int policy = 0; policy < 5; ++policy) all.push_back(Named(learner, round, policy));
    }
  }
  for (const Submission& a : all) {
    EXPECT_FALSE(IsBetter(a, a));
    for (const Submission& b : all) {
      ASSERT_EQ(a == b, !IsBetter(a, b) && !IsBetter(b, a));
      ASSERT_FALSE(IsBetter(a, b) && IsBetter(b, a));
      for (const Submission& c : all) {
        ASSERT_TRUE(!(IsBetter(a, b) && IsBetter(b, c)) || IsBetter(a, c));
      }
    }
  }
}

TEST(IsBetter, LooksAtTheBoundThenAtNames) {
  const auto make = [](double y, double b, int learner, int round) {
    Submission s;
    s.y = y;
    s.b = b;
    s.learner = learner;
    s.round = round;
    return s;
  };
  EXPECT_TRUE(IsBetter(make(0.5, 0.125, 9, 9), make(0.25, 0.5, 0, 1)));  // y + b, not y
  EXPECT_TRUE(IsBetter(make(0.5, 0.25, 0, 9), make(0.25, 0.5, 1, 1)));
  EXPECT_TRUE(IsBetter(make(0.5, 0.25, 0, 1), make(0.5, 0.25, 0, 2)));
}

TEST(Incumbent, IsTheLeastThatIsNotRefuted) {
  EXPECT_EQ(Incumbent({}), nullptr);
  int skipped = 0;
  for (std::uint64_t trial = 0; trial < 3000; ++trial) {
    const Knowledge knowledge = RandomKnowledge(Key(4).Fork(trial));
    std::vector<Submission> left;
    for (const auto& [learner, s] : knowledge.best) {
      EXPECT_EQ(learner, s.learner);
      if (!knowledge.refuted.contains(s.hash)) left.push_back(s);
    }
    skipped += left.size() < knowledge.best.size() ? 1 : 0;
    const Submission* incumbent = Incumbent(knowledge);
    ASSERT_EQ(incumbent == nullptr, left.empty());
    if (incumbent != nullptr) {
      ASSERT_EQ(*incumbent, *std::min_element(left.begin(), left.end(), IsBetter));
    }
  }
  EXPECT_GT(skipped, 500);
}

// The least submission of a learner stays its entry even when refuted (math.md, below Eq. 30).
TEST(Merge, KeepsARefutedEntry) {
  Submission x, w;
  x.y = 0.25;
  w.y = 0.5;
  x.hash = "x";
  w.hash = "w";
  Knowledge refute;
  refute.refuted.insert("x");
  const Knowledge all = Merge(Merge(KnowledgeOf(w), KnowledgeOf(x)), refute);
  EXPECT_EQ(all.best.at(0), x);
  EXPECT_EQ(Incumbent(all), nullptr);
}

TEST(HashOf, DependsOnEveryBit) {
  EXPECT_EQ(HashOf({1, 2}), HashOf({1, 2}));
  EXPECT_NE(HashOf({1, 2}), HashOf({2, 1}));
  EXPECT_NE(HashOf({0.0F}), HashOf({-0.0F}));
  EXPECT_NE(HashOf({0.0F}), HashOf({}));
  EXPECT_EQ(HashOf({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace fedgen
