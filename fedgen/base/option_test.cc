// SPDX-License-Identifier: Apache-2.0
#include "fedgen/base/option.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fedgen {
namespace {

enum class Fruit { kApple, kPear };
enum class Count { kFew, kMany, kGiven };

}  // namespace

template <>
inline constexpr auto kWords<Fruit> = Words("apple", "pear");
template <>
inline constexpr auto kWords<Count> = Words("few", "many");

namespace {

// One field of every kind.
struct Basket {
  double weight = 1.5;
  int size = 3;
  std::int64_t money = 7;
  int legs = 4;
  bool closed = false;
  std::string label;
  Interval price{2, 2};
  CountInterval seeds{1, 9};
  std::array<double, 2> at = {0, 1};
  std::vector<int> layers = {2, 3};
  Fruit fruit = Fruit::kApple;
  Count kind = Count::kFew;
  double given = 0.25;
  std::vector<std::array<double, 2>> spots;
};

void Describe(OptionVisitor& visitor, Basket& basket) {
  visitor.Number({"weight", "kg", "w"}, basket.weight, Above(0, 1e4));
  visitor.Integer({"size", "", "s"}, basket.size, {1, 1000});
  visitor.Integer({"money", "", "m"}, basket.money, {0, 1'000'000'000'000});
  visitor.Integer({"legs", "", "l"}, basket.legs, {2, 8, 2});
  visitor.Flag({"closed", "", "c"}, basket.closed);
  visitor.Text({"label", "", "l"}, basket.label);
  visitor.Enter("inside");
  visitor.Drawn({"price", "", "p"}, basket.price, Closed(-1e4, 1e4));
  visitor.Drawn({"seeds", "", "s"}, basket.seeds, {0, 100});
  visitor.Numbers({"at", "m", "a"}, basket.at, Closed(-5, 5));
  visitor.Integers({"layers", "", "l"}, basket.layers, {1, 9}, 3);
  visitor.Choice({"fruit", "", "f"}, basket.fruit);
  visitor.NumberOrChoice({"kind", "", "k"}, basket.given, Open(0, 1), basket.kind);
  visitor.Preset({"default", "", "d"}, kWords<Fruit>, {"fruit"},
                 [&basket](std::size_t index) { basket.size = static_cast<int>(index) + 10; });
  visitor.Rows<2>({"spots", "m", "s"}, basket.spots,
                  {{{"x", Closed(-5, 5)}, {"radius", Above(0, 5)}}});
  visitor.Leave();
}

// Gives one option a value.
class Set : public PathVisitor {
 public:
  Set(std::string key, OptionValue value) : key_(std::move(key)), value_(std::move(value)) {}
  void Visit(const Option& option, const OptionField& field) override {
    if (PathOf(option.name) != key_) return;
    const auto error = field.take(value_);
    said = error ? error->field + " " + error->problem : "taken";
  }
  std::string said = "not found";

 private:
  std::string key_;
  OptionValue value_;
};

std::string Take(Basket& basket, const std::string& key, const OptionValue& value) {
  Set set(key, value);
  Describe(set, basket);
  return set.said;
}

OptionValue List(std::vector<OptionValue> values) { return {std::move(values)}; }
OptionValue Int(std::int64_t value) { return {value}; }
OptionValue Word(const char* word) { return {std::string(word)}; }

TEST(NumberRange, PrintsItselfAndKnowsItsEnds) {
  EXPECT_EQ(Closed(0.001, 1e4).Text(), "in [0.001, 1e4]");
  EXPECT_EQ(Above(0, 85).Text(), "in (0, 85]");
  EXPECT_EQ(Open(0, 1).Text(), "in (0, 1)");
  EXPECT_EQ(Closed(-1e4, 1e12).Text(), "in [-1e4, 1e12]");
  EXPECT_EQ(Closed(1e-6, 1 - 1e-9).Text(), "in [1e-6, 1 - 1e-9]");
  EXPECT_EQ(Closed(-10, 100).Text(), "in [-10, 100]");
  EXPECT_TRUE(Closed(0, 1).Contains(0) && Closed(0, 1).Contains(1));
  EXPECT_FALSE(Open(0, 1).Contains(0) || Open(0, 1).Contains(1));
  EXPECT_FALSE(Above(0, 1).Contains(0));
  EXPECT_TRUE(Above(0, 1).Contains(1));
  EXPECT_FALSE(Closed(0, 1).Contains(std::nan("")));
  EXPECT_FALSE(Closed(0, 1).Contains(std::numeric_limits<double>::infinity()));
}

TEST(CountRange, PrintsItself) {
  EXPECT_EQ((CountRange{1, 1000}.Text()), "in 1..1000");
  EXPECT_EQ((CountRange{8, 4096, 8}.Text()), "a multiple of 8 in 8..4096");
}

TEST(ValueText, IsToml) {
  EXPECT_EQ(ValueText({true}), "true");
  EXPECT_EQ(ValueText(Int(-3)), "-3");
  EXPECT_EQ(ValueText({3.0}), "3.0");  // an integer would be another type
  EXPECT_EQ(ValueText({0.1}), "0.1");
  EXPECT_EQ(ValueText({1e-7}), "1e-07");
  EXPECT_EQ(ValueText(Word("a \"b\"")), "'a \"b\"'");
  EXPECT_EQ(ValueText(Word("it's \\\n")), "\"it's \\\\\\u000A\"");
  EXPECT_EQ(ValueText(List({Int(1), List({{0.5}})})), "[1, [0.5]]");
  EXPECT_EQ(ValueText({OptionValue::Table{}}), "{}");
}

TEST(OptionVisitor, TakesEveryKindOfValue) {
  Basket b;
  EXPECT_EQ(Take(b, "weight", Int(2)), "taken");
  EXPECT_EQ(b.weight, 2);
  EXPECT_EQ(Take(b, "size", Int(5)), "taken");
  EXPECT_EQ(Take(b, "money", Int(5'000'000'000)), "taken");
  EXPECT_EQ(b.money, 5'000'000'000);
  EXPECT_EQ(Take(b, "closed", {true}), "taken");
  EXPECT_TRUE(b.closed);
  EXPECT_EQ(Take(b, "label", Word("x")), "taken");
  EXPECT_EQ(b.label, "x");
  EXPECT_EQ(Take(b, "inside.price", {3.5}), "taken");
  EXPECT_EQ(b.price, (Interval{3.5, 3.5}));
  EXPECT_EQ(Take(b, "inside.price", List({Int(1), {2.5}})), "taken");
  EXPECT_EQ(b.price, (Interval{1, 2.5}));
  EXPECT_EQ(Take(b, "inside.seeds", Int(4)), "taken");
  EXPECT_EQ(b.seeds, (CountInterval{4, 4}));
  EXPECT_EQ(Take(b, "inside.at", List({{2.0}, {3.0}})), "taken");
  EXPECT_EQ(b.at[1], 3);
  EXPECT_EQ(Take(b, "inside.layers", List({Int(8)})), "taken");
  EXPECT_EQ(b.layers, std::vector<int>{8});
  EXPECT_EQ(Take(b, "inside.fruit", Word("pear")), "taken");
  EXPECT_EQ(NameOf(b.fruit), "pear");
  EXPECT_EQ(Take(b, "inside.kind", {0.75}), "taken");
  EXPECT_EQ(b.kind, Count::kGiven);
  EXPECT_EQ(b.given, 0.75);
  EXPECT_EQ(Take(b, "inside.kind", Word("many")), "taken");
  EXPECT_EQ(b.kind, Count::kMany);
  EXPECT_EQ(Take(b, "inside.default", Word("pear")), "taken");
  EXPECT_EQ(b.size, 11);
  EXPECT_EQ(Take(b, "inside.spots", List({List({Int(1), {0.5}}), List({Int(2), Int(3)})})),
            "taken");
  EXPECT_EQ(b.spots[1], (std::array<double, 2>{2, 3}));
}

TEST(OptionVisitor, RefusesOtherTypesAndLeavesTheField) {
  Basket b;
  EXPECT_EQ(Take(b, "weight", Word("much")), " 'much': must be a number");
  EXPECT_EQ(Take(b, "size", {2.0}), " 2.0: must be an integer in 1..1000");
  EXPECT_EQ(Take(b, "size", Int(1LL << 40)), " 1099511627776: must be an integer in 1..1000");
  EXPECT_EQ(Take(b, "closed", Int(1)), " 1: must be true or false");
  EXPECT_EQ(Take(b, "label", Int(1)), " 1: must be a text");
  EXPECT_EQ(Take(b, "inside.price", List({Int(1)})), " [1]: must be a number or [low, high]");
  EXPECT_EQ(Take(b, "inside.seeds", {0.5}), " 0.5: must be an integer in 0..100, or [low, high]");
  EXPECT_EQ(Take(b, "inside.at", List({Int(1)})), " [1]: must be 2 numbers");
  EXPECT_EQ(Take(b, "inside.layers", Int(1)), " 1: must be a list of up to 3 integers in 1..9");
  EXPECT_EQ(Take(b, "inside.fruit", Word("fig")), " 'fig': must be one of apple, pear");
  EXPECT_EQ(Take(b, "inside.kind", Word("none")), " 'none': must be a number or few, many");
  EXPECT_EQ(Take(b, "inside.spots", Int(1)), " 1: must be a list of [x, radius]");
  EXPECT_EQ(Take(b, "inside.spots", List({List({})})), "[0] []: must be [x, radius]");
  EXPECT_EQ(Take(b, "inside.spots", List(std::vector<OptionValue>(1001, Int(1)))).substr(64),
            ": must have at most 1000 rows");
  const Basket untouched;
  EXPECT_EQ(b.weight, untouched.weight);
  EXPECT_EQ(b.price, untouched.price);
  EXPECT_EQ(b.kind, untouched.kind);
  EXPECT_TRUE(b.spots.empty());
}

TEST(Validate, NamesTheFirstFieldOutOfRange) {
  EXPECT_FALSE(Validate(Basket{}));
  const auto said = [](auto spoil) {
    Basket basket;
    spoil(basket);
    const auto error = Validate(basket);
    return error ? error->field + " = " + error->problem : "nothing";
  };
  EXPECT_EQ(said([](Basket& b) { b.weight = std::nan(""); }), "weight = nan: must be in (0, 1e4]");
  EXPECT_EQ(said([](Basket& b) { b.size = 0; }), "size = 0: must be in 1..1000");
  EXPECT_EQ(said([](Basket& b) { b.legs = 3; }), "legs = 3: must be a multiple of 2 in 2..8");
  EXPECT_EQ(said([](Basket& b) { b.price = {3, 1}; }),
            "inside.price = [3, 1]: low end above high end");
  EXPECT_EQ(said([](Basket& b) { b.price = {2e4, 2e4}; }),
            "inside.price = 20000: must be in [-1e4, 1e4]");
  EXPECT_EQ(said([](Basket& b) { b.seeds = {0, 101}; }),
            "inside.seeds = [0, 101]: must be in 0..100");
  EXPECT_EQ(said([](Basket& b) { b.at[1] = 6; }), "inside.at[1] = 6: must be in [-5, 5]");
  EXPECT_EQ(said([](Basket& b) { b.layers = {1, 10}; }), "inside.layers = 10: must be in 1..9");
  EXPECT_EQ(said([](Basket& b) { b.layers = {1, 1, 1, 1}; }),
            "inside.layers = 4 integers: must be at most 3");
  EXPECT_EQ(said([](Basket& b) { b.given = 1; }), "inside.kind = 1: must be in (0, 1)");
  EXPECT_EQ(said([](Basket& b) { b.spots = {{0, 1}, {0, 0}}; }),
            "inside.spots[1][1] = 0: must be in (0, 5]");
}

TEST(CanonicalText, HasALineForEachNumber) {
  Basket basket;
  basket.spots = {{0, 1}, {0.1, 2}};
  basket.fruit = Fruit::kPear;
  CanonicalText canonical(CanonicalText::What::kAll);
  Describe(canonical, basket);
  EXPECT_EQ(canonical.text,
            "weight=1.5\nsize=3\nmoney=7\nlegs=4\nclosed=false\ninside.price=2,2\n"
            "inside.seeds=1,9\ninside.at=0,1\ninside.layers=2,3\ninside.fruit=1\n"
            "inside.kind='few'\ninside.spots.size=2\ninside.spots[0]=0,1\ninside.spots[1]=0.1,2\n");
}

}  // namespace
}  // namespace fedgen
