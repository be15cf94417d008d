// SPDX-License-Identifier: Apache-2.0
#include "fedgen/base/text.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(NearestName("z", kFields), "x");
  EXPECT_EQ(NearestName("", kFields), "x");
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
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    const Key key = Key(1).Fork(trial);
    const std::string name = draw_word(key.Fork(0));
    std::vector<std::string> known;
    for (std::uint64_t at = 1; at <= 4; ++at) known.push_back(draw_word(key.Fork(at)));
    const auto nearest = std::min_element(known.begin(), known.end(),
                                          [&](const std::string& a, const std::string& b) {
                                            return NaiveDistance(name, a) < NaiveDistance(name, b);
                                          });
    EXPECT_EQ(NearestName(name, known), *nearest) << "name " << name;
  }
}

// A table of ten million rows would take seconds for each known name; 64 rows take none.
TEST(NearestName, ComparesTheHeadOfAHostileName) {
  const std::string hostile = "radius" + std::string(10'000'000, '_');
  EXPECT_EQ(NearestName(hostile, kFields), NearestName(hostile.substr(0, 64), kFields));
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

}  // namespace
}  // namespace fedgen
