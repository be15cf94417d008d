// SPDX-License-Identifier: Apache-2.0
#include "fedgen/base/archive.h"

#include <gtest/gtest.h>

#include <limits>

namespace fedgen {
namespace {

enum class Colour : std::uint8_t { kRed, kGreen };
constexpr int NumValues(Colour /*type*/) { return 2; }

struct Inner {
  int number = 0;
  std::string text;

  bool operator==(const Inner&) const = default;
  friend void Fields(auto& archive, Is<Inner> auto& i) { archive(i.number, i.text); }
};

struct Outer {
  std::vector<float> values;
  std::optional<Inner> maybe;
  std::map<int, Inner> by_number;
  std::set<std::string> names;
  std::array<std::int64_t, 2> pair = {};
  bool flag = false;
  Colour colour = Colour::kRed;
  double last = 0;

  bool operator==(const Outer&) const = default;
  friend void Fields(auto& archive, Is<Outer> auto& o) {
    archive(o.values, o.maybe, o.by_number, o.names, o.pair, o.flag, o.colour, o.last);
  }
};

Outer Sample() {
  return {{1.5F, -2},
          Inner{7, "x"},
          {{1, {1, "a"}}, {2, {2, ""}}},
          {"b", "c"},
          {-1, 5},
          true,
          Colour::kGreen,
          0.1};
}

std::string ProblemOf(const std::string& bytes, Outer& outer) {
  Reader reader(bytes);
  reader(outer);
  reader.Finish();
  return reader.problem();
}

TEST(Archive, ComesBack) {
  Outer back;
  EXPECT_EQ(ProblemOf(ToBytes(Sample()), back), "");
  EXPECT_EQ(back, Sample());
  Outer empty;
  EXPECT_EQ(ProblemOf(ToBytes(empty), back), "");  // what was there is gone
  EXPECT_EQ(back, empty);
}

TEST(Archive, IsLittleEndianWithLengthsInFront) {
  EXPECT_EQ(ToBytes(Inner{0x01020304, "ab"}),
            std::string("\x04\x03\x02\x01\x02\0\0\0\0\0\0\0ab", 14));
  EXPECT_EQ(ToBytes(std::optional<std::uint8_t>()), std::string("\0", 1));
  EXPECT_EQ(ToBytes(std::optional<std::uint8_t>(9)), "\x01\x09");
}

TEST(Archive, CutAnywhereIsTruncated) {
  const std::string bytes = ToBytes(Sample());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    Outer outer;
    EXPECT_EQ(ProblemOf(bytes.substr(0, size), outer), "truncated") << size;
  }
  Outer outer;
  EXPECT_EQ(ProblemOf(bytes + "x", outer), "there are bytes after the end");
}

TEST(Archive, RefusesWhatNoWriterWrites) {
  const auto problem = [](const auto& written, auto value) {
    const std::string bytes = ToBytes(written);
    Reader reader(bytes);
    reader(value);
    return reader.problem();
  };
  EXPECT_EQ(problem(std::uint8_t{2}, false), "a flag is neither 0 nor 1");
  EXPECT_EQ(problem(std::uint8_t{2}, Colour::kRed), "a word is unknown");
  EXPECT_EQ(problem(std::numeric_limits<double>::quiet_NaN(), 1.0), "a number is not finite");
  EXPECT_EQ(problem(std::numeric_limits<float>::infinity(), 1.0F), "a number is not finite");
  EXPECT_EQ(problem(std::vector<int>{3, 2}, std::set<int>()), "a list is out of order");
  EXPECT_EQ(problem(std::vector<int>{3, 3}, std::set<int>()), "a list is out of order");
  EXPECT_EQ(problem(std::vector<Inner>{{2, "a"}, {1, "b"}}, std::map<int, std::string>()),
            "a list is out of order");
}

TEST(Archive, DoesNotBelieveALength) {
  std::vector<std::vector<Outer>> values;
  const std::string bytes(8, '\xff');
  Reader reader(bytes);
  reader(values);
  EXPECT_EQ(reader.problem(), "truncated");
  EXPECT_TRUE(values.empty());
}

}  // namespace
}  // namespace fedgen
