// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fedgen/base/result.h"

namespace fedgen {

// An option, described once.
//
// Beside each struct of options stands one function that visits its fields:
//
//   void Describe(OptionVisitor& visitor, RobotOptions& options) {
//     auto& [kind, speed] = options;
//     visitor.Choice({"kind", "", "How it turns."}, kind);
//     visitor.Number({"speed", "m/s", "How fast it drives."}, speed, Closed(0.001, 1e4));
//   }
//
// Everything else follows from it: what a file may say, which values are refused, the text that a
// certificate hashes, the help. The default is what the struct's initialiser says. The structured
// binding stops compiling when the struct gets another field, so that none is forgotten.

/// A closed interval to draw from uniformly; low == high is a constant.
struct Interval {
  double low = 0, high = 0;
  bool operator==(const Interval&) const = default;
};

struct CountInterval {
  int low = 0, high = 0;  // both ends are drawn
  bool operator==(const CountInterval&) const = default;
};

/// The words for an enum's values, in order. Specialised beside each enum that a person may name:
///   template <>
///   inline constexpr auto kWords<Kind> = Words("car", "differential");
template <typename Enum>
inline constexpr auto kWords = nullptr;

template <typename... Text>
constexpr std::array<std::string_view, sizeof...(Text)> Words(const Text&... words) {
  return {words...};
}

template <typename Enum>
constexpr std::string_view NameOf(Enum value) {
  return kWords<Enum>[static_cast<std::size_t>(value)];
}

/// The numbers that are allowed. Not a number is in no range.
struct NumberRange {
  double low = 0, high = 0;
  bool open_low = false, open_high = false;  // whether the end itself is outside

  constexpr bool Contains(double x) const {
    return (open_low ? x > low : x >= low) && (open_high ? x < high : x <= high);
  }
  std::string Text() const;  // "in (0, 1e4]"
};
constexpr NumberRange Closed(double low, double high) { return {low, high, false, false}; }
constexpr NumberRange Open(double low, double high) { return {low, high, true, true}; }
constexpr NumberRange Above(double low, double high) { return {low, high, true, false}; }

struct CountRange {
  std::int64_t low = 0, high = 0;
  std::int64_t multiple_of = 1;

  constexpr bool Contains(std::int64_t x) const {
    return x >= low && x <= high && x % multiple_of == 0;
  }
  std::string Text() const;  // "in 1..1000", "a multiple of 8 in 8..4096"
};

/// A value as a configuration file has it.
struct OptionValue {
  using List = std::vector<OptionValue>;
  using Table = std::map<std::string, OptionValue>;
  struct Other {  // that no option takes: a date, a time
    std::string shown;
  };

  std::variant<bool, std::int64_t, double, std::string, List, Table, Other> is;
  int line = 0;  // of the file; 0 if it came from elsewhere

  const Table* table() const { return std::get_if<Table>(&is); }
  const List* list() const { return std::get_if<List>(&is); }
  bool is_table() const { return table() != nullptr; }
};

/// The value as TOML, with the fewest digits that read back the same.
std::string ValueText(const OptionValue& value);

/// `value: rule`, the value cut to a line's length.
FieldError WrongValue(const OptionValue& value, std::string_view rule);

/// One field at the time it is visited, whatever its type.
struct OptionField {
  std::optional<OptionValue> value{};   // nothing for a text that is empty and for a preset
  std::optional<FieldError> problem{};  // the first rule it breaks; the field is "" or "[2]"
  std::string allowed{};                // "a number in (0, 10]"
  /// Sets the field from a file; what is wrong if the value has another type.
  std::function<std::optional<FieldError>(const OptionValue&)> take{};
  std::string digits{};                 // in a canonical text, if not those of the value
  std::vector<std::string> excludes{};  // options that may not be given beside this one
};

/// Whose an option is.
enum class Owner {
  kRun,      // every participant must have the same
  kLearner,  // may differ from learner to learner
  kHost,     // of the machine that runs; changes no result of learning
};
template <>
inline constexpr auto kWords<Owner> = Words("run", "learner", "host");

struct Option {
  std::string_view name;
  std::string_view unit;         // "m/s"; empty for a number without one
  std::string_view help;         // a sentence or two
  std::optional<Owner> owner{};  // if not that of its group
  bool acts = true;              // whether anything reads it, as the other options are
};

/// An option that something reads only if `acts`: a car's length, say, if the robot is a car.
constexpr Option ActsIf(bool acts, Option option) {
  option.acts = acts;
  return option;
}

struct OptionColumn {
  std::string_view name;
  NumberRange range;
};

class OptionVisitor {
 public:
  virtual ~OptionVisitor() = default;

  /// Every option comes here.
  virtual void Visit(const Option& option, const OptionField& field) = 0;

  /// What is visited until Leave() is in this group.
  virtual void Enter(std::string_view group, Owner owner = Owner::kRun) = 0;
  virtual void Leave() = 0;

  // The kinds of fields there are.

  void Number(const Option& option, double& field, NumberRange range);
  void Integer(const Option& option, int& field, CountRange range);
  void Integer(const Option& option, std::int64_t& field, CountRange range);
  void Flag(const Option& option, bool& field);
  void Text(const Option& option, std::string& field);
  /// A number, or [low, high] to draw from.
  void Drawn(const Option& option, Interval& field, NumberRange range);
  void Drawn(const Option& option, CountInterval& field, CountRange range);
  /// As many numbers as the field has.
  void Numbers(const Option& option, std::span<double> field, NumberRange range);
  /// At most max_count integers.
  void Integers(const Option& option, std::vector<int>& field, CountRange range,
                std::size_t max_count);
  /// A word that stands for values of the other options that it excludes. It has no value of its
  /// own; `set` is called with its index.
  void Preset(const Option& option, std::span<const std::string_view> words,
              std::vector<std::string> excludes, const std::function<void(std::size_t)>& set);

  /// One of the enum's words.
  template <typename Enum>
  void Choice(const Option& option, Enum& field) {
    Word(option, kWords<Enum>, static_cast<std::size_t>(field),
         [&field](std::size_t index) { field = static_cast<Enum>(index); });
  }

  /// A number or one of the enum's words; the value after the last word stands for the number.
  template <typename Enum>
  void NumberOrChoice(const Option& option, double& number, NumberRange range, Enum& field) {
    NumberOrWord(option, number, range, kWords<Enum>, static_cast<std::size_t>(field),
                 [&field](std::size_t index) { field = static_cast<Enum>(index); });
  }

  /// A list of rows of N numbers each.
  template <std::size_t N>
  void Rows(const Option& option, std::vector<std::array<double, N>>& rows,
            const std::array<OptionColumn, N>& columns) {
    std::vector<double> numbers;
    for (const auto& row : rows) numbers.insert(numbers.end(), row.begin(), row.end());
    Table(option, numbers, columns, [&rows](std::span<const double> given) {
      rows.resize(given.size() / N);
      for (std::size_t at = 0; at < given.size(); ++at) rows[at / N][at % N] = given[at];
    });
  }

 private:
  void Word(const Option& option, std::span<const std::string_view> words, std::size_t index,
            const std::function<void(std::size_t)>& set);
  void NumberOrWord(const Option& option, double& number, NumberRange range,
                    std::span<const std::string_view> words, std::size_t index,
                    const std::function<void(std::size_t)>& set);
  void Table(const Option& option, std::span<const double> numbers,
             std::span<const OptionColumn> columns,
             const std::function<void(std::span<const double>)>& set);
};

template <typename Options>
void DescribeGroup(OptionVisitor& visitor, std::string_view group, Options& options) {
  visitor.Enter(group);
  Describe(visitor, options);
  visitor.Leave();
}

/// Keeps the full name of what is visited: "world.goal.kind".
class PathVisitor : public OptionVisitor {
 public:
  void Enter(std::string_view group, Owner owner = Owner::kRun) override;
  void Leave() override;

 protected:
  std::string PathOf(std::string_view name) const;
  Owner owner() const { return groups_.empty() ? Owner::kRun : groups_.back().owner; }

 private:
  struct Group {
    std::string name;
    Owner owner;
  };
  std::vector<Group> groups_;
};

/// Finds the first field with a problem.
class RangeCheck : public PathVisitor {
 public:
  void Visit(const Option& option, const OptionField& field) override;
  std::optional<FieldError> error;
};

template <typename Options>
std::optional<FieldError> CheckRanges(Options options) {
  RangeCheck check;
  Describe(check, options);
  return check.error;
}

/// What is wrong with options: the field, and "value: rule"; nothing if all is well. Options with
/// rules between their fields have a Validate of their own.
template <typename Options>
std::optional<FieldError> Validate(const Options& options) {
  return CheckRanges(options);
}

/// Rounds every number to what a float and a billionth can tell apart, and -0 to 0: nothing that is
/// simulated in floats acts on more.
class RoundNumbers : public PathVisitor {
 public:
  void Visit(const Option& option, const OptionField& field) override;
};

/// Collects `group.name=value` lines, one for each number, with enough digits to tell any two
/// numbers apart; words count by their place. Texts are the same only if all options are, or all
/// that act.
class CanonicalText : public PathVisitor {
 public:
  enum class What { kAll, kWhatActs };
  explicit CanonicalText(What what) : what_(what) {}
  void Visit(const Option& option, const OptionField& field) override;
  std::string text;

 private:
  What what_;
};

}  // namespace fedgen
