// SPDX-License-Identifier: Apache-2.0
#include "fedgen/base/text.h"

#include <gtest/gtest.h>

#include <cmath>

#include <algorithm>
#include <limits>
#include <vector>

#include "fedgen/base/random.h"

namespace fedgen {
namespace {

const std::vector<std::string> kFields = {"count", "x", "y", "radius", "heading_degrees"};

// Edit distance by its definition: try every last edit.
std::size_t NaiveDistance(std::string_view a, std::string_view b) {
  if (a.empty()) return b.size();
  if (b.empty()) return a.size();
  const std::size_t replaced = NaiveDistance(a.substr(1), b.substr(1)) + (a[0] == b[0] ? 0 : 1);
  return std::min({replaced, NaiveDistance(a.substr(1), b) + 1, NaiveDistance(a, b.substr(1)) + 1});
}

TEST(NearestName, FindsTheNameThatWasMeant) {
  EXPECT_EQ(NearestName("radus", kFields), "radius");
  EXPECT_EQ(NearestName("radius", kFields), "radius");
  EXPECT_EQ(NearestName("cuont", kFields), "count");
  EXPECT_EQ(NearestName("heading_degree", kFields), "heading_degrees");
}

TEST(NearestName, TakesTheFirstOfSeveral) {
  EXPECT_EQ(NearestName("tack", std::vector<std::string>{"back", "pack"}), "back");
}

// Within (n + 1) / 3 edits, n the letters of the longer name: a guess that shares next to nothing
// with what was written helps nobody.
TEST(NearestName, IsNear) {
  EXPECT_EQ(NearestName("a", kFields), "");
  EXPECT_EQ(NearestName("z", kFields), "");
  EXPECT_EQ(NearestName("", kFields), "");
  EXPECT_EQ(NearestName("radii", kFields), "radius");  // 2 of (6 + 1) / 3
  EXPECT_EQ(NearestName("babies", kFields), "");       // 3
  EXPECT_EQ(NearestName("speed", kFields), "");
  // The group is no likeness: learner.a is as far from learner.cost as a is from cost.
  const std::vector<std::string> keys = {"learner.cost", "learner.sigma"};
  EXPECT_EQ(NearestName("learner.a", keys), "");
  EXPECT_EQ(NearestName("learner.sgima", keys), "learner.sigma");
  EXPECT_EQ(NearestName("lerner.sigma", keys), "learner.sigma");
}

TEST(DidYouMean, EndsAMessageIfANameIsNear) {
  EXPECT_EQ(DidYouMean("radus", kFields, "robot."), ", did you mean robot.radius?");
  EXPECT_EQ(DidYouMean("a", kFields, "robot."), "");
}

TEST(NearestName, IsEmptyIfNothingIsKnown) { EXPECT_EQ(NearestName("radius", {}), ""); }

TEST(NearestName, HasTheSmallestEditDistance) {
  const auto draw_word = [](Key key) {
    std::string word;
    const int length = UniformInt(key.Block(0)[0], 0, 6);
    for (int at = 0; at < length; ++at) {
      word.push_back(static_cast<char>(UniformInt(key.Block(0)[1] << (4 * at), 'a', 'c')));
    }
    return word;
  };
  int near = 0;
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    const Key key = Key(1).Fork(trial);
    const std::string name = draw_word(key.Fork(0));
    std::vector<std::string> known;
    for (std::uint64_t at = 1; at <= 4; ++at) known.push_back(draw_word(key.Fork(at)));
    const std::vector<std::string> all = known;
    std::erase_if(known, [&](const std::string& candidate) {
      return NaiveDistance(name, candidate) > (std::max(name.size(), candidate.size()) + 1) / 3;
    });
    near += known.empty() ? 0 : 1;
    const auto nearest = std::min_element(known.begin(), known.end(),
                                          [&](const std::string& a, const std::string& b) {
                                            return NaiveDistance(name, a) < NaiveDistance(name, b);
                                          });
    EXPECT_EQ(NearestName(name, all), nearest == known.end() ? "" : *nearest) << "name " << name;
  }
  EXPECT_GT(near, 50);
  EXPECT_LT(near, 150);
}

// A table of ten million rows would take seconds for each known name; 64 rows take none.
TEST(NearestName, ComparesTheHeadOfAHostileName) {
  const std::string hostile(10'000'000, '_');
  EXPECT_EQ(NearestName(hostile, std::vector{hostile.substr(0, 64)}), hostile.substr(0, 64));
}

TEST(Grouped, PutsACommaBeforeEveryThreeDigits) {
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(1000), "1,000");
  EXPECT_EQ(Grouped(1234567), "1,234,567");
  EXPECT_EQ(Grouped(-123), "-123");
  EXPECT_EQ(Grouped(-1234), "-1,234");
  EXPECT_EQ(Grouped(std::numeric_limits<std::int64_t>::max()), "9,223,372,036,854,775,807");
}

TEST(Counted, KnowsOneFromMany) {
  EXPECT_EQ(Counted(1, "world"), "1 world");
  EXPECT_EQ(Counted(0, "world"), "0 worlds");
  EXPECT_EQ(Counted(10000, "world"), "10,000 worlds");
}

TEST(Printable, EscapesWhatATerminalCouldActOnAndCutsWhatIsLong) {
  EXPECT_EQ(Printable("a~ b"), "a~ b");
  EXPECT_EQ(Printable("\x1b[2J\n\x7f\xff"), "\\x1b[2J\\x0a\\x7f\\xff");
  EXPECT_EQ(Printable("12345", 5), "12345");
  EXPECT_EQ(Printable("123456", 5), "12345...");
}

TEST(Percent, NeverRoundsUpToCertainty) {
  EXPECT_EQ(Percent(0.99), "99 %");
  EXPECT_EQ(Percent(0.57), "57 %");
  EXPECT_EQ(Percent(0.999999999), "99.9999999 %");
  EXPECT_EQ(Percent(std::nextafter(1.0, 0.0)), "more than 99.99999999 %");
  EXPECT_EQ(Percent(1), "100 %");
}

TEST(Certainty, RoundsDownAndNeverReachesOne) {
  EXPECT_EQ(Certainty(0.01), "0.99");
  EXPECT_EQ(Certainty(1e-9), "0.999999999");
  EXPECT_EQ(Certainty(1e-17), "more than 0.9999999999");
  EXPECT_EQ(Certainty(0.01239, 4), "0.9876");
  EXPECT_EQ(Certainty(1e-5, 4), "0.9999");
  EXPECT_EQ(Certainty(1e-12, 4), "more than 0.9999");
  EXPECT_EQ(Certainty(0), "1");
}

}  // namespace
}  // namespace fedgen
