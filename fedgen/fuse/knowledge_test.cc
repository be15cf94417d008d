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
Submission Named(int author, int round, int policy) {
  const RandomBlock words = Key(9)
                                .Fork(static_cast<std::uint64_t>(author))
                                .Fork(static_cast<std::uint64_t>(round))
                                .Block(static_cast<std::uint64_t>(policy));
  Submission s;
  s.learner = LearnerId(static_cast<std::uint32_t>(author));
  s.round = round;
  s.origin = LearnerId(words[0] % 4);
  s.y = UniformInt(words[1], 0, 4) / 8.0;
  s.b = UniformInt(words[2], 1, 3) / 8.0;
  s.theta = {static_cast<float>(policy), 1};
  s.hash = HashOf(s.theta);
  return s;
}

// More authors than records are kept.
constexpr int kAuthors = 12;

Submission Random(Key key, std::uint64_t index) {
  const RandomBlock words = key.Block(index);
  return Named(UniformInt(words[0], 0, kAuthors - 1), UniformInt(words[1], 1, 3),
               UniformInt(words[2], 0, 4));
}

// What a stranger told, in no particular form: any submissions, any verdicts on any records.
struct Told {
  std::vector<Submission> submissions;
  std::vector<Verdict> verdicts;
};

Told RandomlyTold(Key key) {
  Told told;
  const int count = UniformInt(key.Block(1000)[0], 0, 20);
  for (int index = 0; index < count; ++index) {
    told.submissions.push_back(Random(key, static_cast<std::uint64_t>(index)));
  }
  const int verdicts = UniformInt(key.Block(1000)[1], 0, 12);
  for (int index = 0; index < verdicts; ++index) {
    const auto at = static_cast<std::uint64_t>(index);
    told.verdicts.push_back(
        {LearnerId(key.Fork(8).Block(at)[0] % 3), RankOf(Random(key.Fork(7), at))});
  }
  return told;
}

Knowledge KnowledgeOf(const Told& told) {
  Knowledge knowledge;
  for (const Verdict& verdict : told.verdicts) {
    knowledge = Merge(knowledge, fedgen::KnowledgeOf(verdict));
  }
  for (const Submission& submission : told.submissions) {
    knowledge = Merge(knowledge, fedgen::KnowledgeOf(submission));
  }
  return knowledge;
}

Knowledge RandomKnowledge(Key key) { return KnowledgeOf(RandomlyTold(key)); }

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
  const auto make = [](double y, double b, std::uint32_t learner, int round) {
    Submission s;
    s.y = y;
    s.b = b;
    s.learner = LearnerId(learner);
    s.round = round;
    return s;
  };
  EXPECT_TRUE(IsBetter(make(0.5, 0.125, 9, 9), make(0.25, 0.5, 0, 1)));  // y + b, not y
  EXPECT_TRUE(IsBetter(make(0.5, 0.25, 0, 9), make(0.25, 0.5, 1, 1)));
  EXPECT_TRUE(IsBetter(make(0.5, 0.25, 0, 1), make(0.5, 0.25, 0, 2)));
}

// The order in which things are told, and how often, does not matter: records before the verdicts
// on them or after, one by one or in heaps.
TEST(Merge, ForgetsOnlyWhatCanNeverMatter) {
  for (std::uint64_t trial = 0; trial < 2000; ++trial) {
    Told told = RandomlyTold(Key(5).Fork(trial));
    const Knowledge known = KnowledgeOf(told);
    std::ranges::reverse(told.submissions);
    std::ranges::reverse(told.verdicts);
    Knowledge other;
    for (const Submission& s : told.submissions) other = Merge(fedgen::KnowledgeOf(s), other);
    for (const Verdict& v : told.verdicts) other = Merge(fedgen::KnowledgeOf(v), other);
    ASSERT_EQ(other, known) << trial;
  }
}

// A naive Cloud that keeps everything: the least of each author, the f + 1 least of those, and of
// them the least that nobody refuted.
TEST(Incumbent, IsTheLeastRecordThatIsNotRefuted) {
  EXPECT_EQ(Incumbent({}), nullptr);
  int refuted = 0, none = 0, crowded = 0;
  for (std::uint64_t trial = 0; trial < 3000; ++trial) {
    const Told told = RandomlyTold(Key(4).Fork(trial));
    std::map<LearnerId, Submission> least;
    for (const Submission& s : told.submissions) {
      const auto [at, is_new] = least.try_emplace(s.learner, s);
      if (!is_new && IsBetter(s, at->second)) at->second = s;
    }
    std::vector<Submission> records;
    for (const auto& [learner, s] : least) records.push_back(s);
    std::ranges::sort(records, IsBetter);
    crowded += records.size() > Knowledge::kMaxRecords ? 1 : 0;
    records.resize(std::min(records.size(), Knowledge::kMaxRecords));
    const std::size_t before = records.size();
    std::erase_if(records, [&](const Submission& s) {
      return std::ranges::any_of(told.verdicts,
                                 [&](const Verdict& v) { return v.record == RankOf(s); });
    });
    refuted += records.size() < before ? 1 : 0;
    none += before > 0 && records.empty() ? 1 : 0;
    const Knowledge knowledge = KnowledgeOf(told);
    const Submission* incumbent = Incumbent(knowledge);
    ASSERT_EQ(incumbent == nullptr, records.empty()) << trial;
    if (incumbent != nullptr) {
      ASSERT_EQ(*incumbent, records.front()) << trial;
    }
    ASSERT_LE(knowledge.records.size(), Knowledge::kMaxRecords);
  }
  EXPECT_GT(refuted, 500);
  EXPECT_GT(none, 5);
  EXPECT_GT(crowded, 500);
}

// Years of submissions and verdicts leave a few records, and only verdicts on those.
TEST(Knowledge, DoesNotGrowWithRounds) {
  Knowledge knowledge;
  for (int round = 1; round <= 3000; ++round) {
    Submission s = Named(round % kAuthors, 1, 1);
    s.round = round;
    s.y = 1 - 1e-4 * round;
    s.theta = {static_cast<float>(round)};
    s.hash = HashOf(s.theta);
    knowledge = Merge(std::move(knowledge), fedgen::KnowledgeOf(s));
    for (std::uint32_t verifier = 0; verifier < 3; ++verifier) {
      knowledge =
          Merge(std::move(knowledge), fedgen::KnowledgeOf(Verdict{LearnerId(verifier), RankOf(s)}));
    }
    ASSERT_LE(knowledge.records.size(), Knowledge::kMaxRecords);
    ASSERT_LE(knowledge.verdicts.size(), 3 * Knowledge::kMaxRecords);
  }
  EXPECT_EQ(knowledge.verdicts.size(), 3 * Knowledge::kMaxRecords);
}

// The least submission of an author stays its record even when refuted (math.md, below Eq. 30).
TEST(Merge, KeepsARefutedRecord) {
  Submission x, w;
  x.y = 0.25;
  w.y = 0.5;
  x.hash = "x";
  w.hash = "w";
  const Knowledge refute = fedgen::KnowledgeOf(Verdict{LearnerId(3), RankOf(x)});
  const Knowledge all = Merge(Merge(fedgen::KnowledgeOf(w), refute), fedgen::KnowledgeOf(x));
  EXPECT_EQ(all.records.at(LearnerId(0)), x);
  EXPECT_EQ(Incumbent(all), nullptr);
  x.y = 0.125;  // something better brings the author back
  EXPECT_EQ(*Incumbent(Merge(all, fedgen::KnowledgeOf(x))), x);
}

TEST(LearnerId, KnowsLearnersFromTheCloud) {
  EXPECT_EQ(LearnerId(0).name(), "1");
  EXPECT_EQ(LearnerId(6).number(), 7U);
  EXPECT_EQ(LearnerId::Cloud().name(), "average");
  EXPECT_TRUE(LearnerId::Cloud().is_cloud());
  EXPECT_FALSE(LearnerId(6).is_cloud());
  EXPECT_LT(LearnerId(1'000'000), LearnerId::Cloud());  // of equals, a learner comes first
}

TEST(HashOf, DependsOnEveryBit) {
  const auto hash = [](std::vector<float> theta) { return HashOf(theta); };
  EXPECT_EQ(hash({1, 2}), hash({1, 2}));
  EXPECT_NE(hash({1, 2}), hash({2, 1}));
  EXPECT_NE(hash({0.0F}), hash({-0.0F}));
  EXPECT_NE(hash({0.0F}), hash({}));
  EXPECT_EQ(hash({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace fedgen
