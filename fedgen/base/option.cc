// SPDX-License-Identifier: Apache-2.0
#include "fedgen/base/option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace fedgen {
namespace {

// A limit as a person would write it: 0.001, 45, 1e4, 1 - 1e-9.
std::string LimitText(double limit) {
  if (limit == 0) return "0";
  if (limit > 0.999 && limit < 1) return "1 - " + LimitText(std::round((1 - limit) * 1e15) / 1e15);
  const double exponent = std::round(std::log10(std::fabs(limit)));
  if (std::fabs(exponent) >= 3 && exponent != -3 && std::fabs(limit) == std::pow(10, exponent)) {
    return fmt::format("{}1e{}", limit < 0 ? "-" : "", exponent);
  }
  return fmt::format("{}", limit);
}

// A text in quotes as TOML has them: as it is if it can be, with escapes otherwise.
std::string Quoted(const std::string& text) {
  const auto needs_escape = [](char c) { return (c >= 0 && c < ' ') || c == '\x7f' || c == '\''; };
  if (std::ranges::none_of(text, needs_escape)) return "'" + text + "'";
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (c != '\'' && needs_escape(c)) {
      quoted += fmt::format("\\u{:04X}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// Whether the value has the type of the field, and if so, puts it there.

template <typename T>
bool Read(const OptionValue& value, T& field) {
  const T* typed = std::get_if<T>(&value.is);
  if (typed != nullptr) field = *typed;
  return typed != nullptr;
}

bool Read(const OptionValue& value, double& field) {
  std::int64_t integer = 0;
  if (!Read(value, integer)) return Read<double>(value, field);
  field = static_cast<double>(integer);
  return true;
}

bool Read(const OptionValue& value, int& field) {
  std::int64_t integer = 0;
  if (!Read(value, integer) || !std::in_range<int>(integer)) return false;
  field = static_cast<int>(integer);
  return true;
}

template <typename T>
bool Read(const OptionValue& value, std::vector<T>& field) {
  const OptionValue::List* list = value.list();
  if (list == nullptr) return false;
  field.resize(list->size());
  for (std::size_t at = 0; at < list->size(); ++at) {
    if (!Read((*list)[at], field[at])) return false;
  }
  return true;
}

template <typename Ends, typename T>
bool ReadEnds(const OptionValue& value, Ends& field, T one) {
  std::vector<T> pair;
  const bool is_one = Read(value, one);
  if (is_one) pair = {one, one};
  if (!is_one && !(Read(value, pair) && pair.size() == 2)) return false;
  field = {pair[0], pair[1]};
  return true;
}
bool Read(const OptionValue& value, Interval& field) { return ReadEnds(value, field, 0.0); }
bool Read(const OptionValue& value, CountInterval& field) { return ReadEnds(value, field, 0); }

// What takes a value into the field, or says the rule.
template <typename T>
auto Into(T& field, std::string rule) {
  return [&field, rule = std::move(rule)](const OptionValue& value) -> std::optional<FieldError> {
    T read{};
    if (!Read(value, read)) return WrongValue(value, rule);
    field = std::move(read);
    return std::nullopt;
  };
}

std::optional<std::size_t> FindWord(const OptionValue& value,
                                    std::span<const std::string_view> words) {
  std::string text;
  const auto found = Read(value, text) ? std::ranges::find(words, text) : words.end();
  if (found == words.end()) return std::nullopt;
  return static_cast<std::size_t>(found - words.begin());
}

template <typename Numbers>
OptionValue ListOf(const Numbers& numbers) {
  OptionValue::List list;
  for (const auto number : numbers) list.push_back({number});
  return {std::move(list)};
}

std::string QuotedWords(std::span<const std::string_view> words) {
  return fmt::format("'{}'", fmt::join(words, "', '"));
}

template <typename Number, typename Limits>
std::optional<FieldError> FindProblem(Number number, const Limits& limits,
                                      const std::string& field = "") {
  if (limits.Contains(number)) return std::nullopt;
  return FieldError{field, fmt::format("{}: must be {}", number, limits.Text())};
}

// Both ends, and their order. A constant is shown as one number.
template <typename Ends, typename Limits>
std::optional<FieldError> FindEndsProblem(const Ends& ends, const Limits& limits) {
  const bool inside = limits.Contains(ends.low) && limits.Contains(ends.high);
  if (inside && ends.low <= ends.high) return std::nullopt;
  if (ends.low == ends.high) return FindProblem(ends.low, limits);
  return FieldError{"",
                    fmt::format("[{}, {}]: {}", ends.low, ends.high,
                                inside ? "low end above high end" : "must be " + limits.Text())};
}

template <typename Int>
OptionField IntegerField(Int& field, CountRange range) {
  const std::string allowed = range.multiple_of == 1 ? "an integer " + range.Text() : range.Text();
  return {.value = OptionValue{std::int64_t{field}},
          .problem = FindProblem(field, range),
          .allowed = allowed,
          .take = Into(field, "must be " + allowed)};
}

// One of some words; `set` is called with its index.
OptionField WordField(std::span<const std::string_view> words, std::size_t index,
                      const std::function<void(std::size_t)>& set) {
  return {.value = OptionValue{std::string(words[index])},
          .problem = std::nullopt,
          .allowed = QuotedWords(words),
          .take = [words, set](const OptionValue& value) -> std::optional<FieldError> {
            const auto read = FindWord(value, words);
            if (!read) {
              return WrongValue(value, fmt::format("must be one of {}", fmt::join(words, ", ")));
            }
            set(*read);
            return std::nullopt;
          },
          .digits = fmt::format("{}", index)};
}

// Numbers without what makes them TOML: brackets, and the point of a whole one.
std::string Digits(const OptionValue& value) {
  if (const double* number = std::get_if<double>(&value.is)) return fmt::format("{}", *number);
  if (value.list() == nullptr) return ValueText(value);
  std::vector<std::string> digits;
  for (const OptionValue& one : *value.list()) digits.push_back(Digits(one));
  return fmt::format("{}", fmt::join(digits, ","));
}

}  // namespace

std::string NumberRange::Text() const {
  return fmt::format("in {}{}, {}{}", open_low ? '(' : '[', LimitText(low), LimitText(high),
                     open_high ? ')' : ']');
}

std::string CountRange::Text() const {
  const std::string in = fmt::format("in {}..{}", low, high);
  return multiple_of == 1 ? in : fmt::format("a multiple of {} {}", multiple_of, in);
}

std::string ValueText(const OptionValue& value) {
  if (const auto* flag = std::get_if<bool>(&value.is)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value.is)) {
    return fmt::format("{}", *integer);
  }
  if (const auto* number = std::get_if<double>(&value.is)) {
    const std::string text = fmt::format("{}", *number);
    const bool whole = text.find_first_not_of("-0123456789") == std::string::npos;
    return whole ? text + ".0" : text;  // an integer is another type
  }
  if (const auto* text = std::get_if<std::string>(&value.is)) return Quoted(*text);
  if (const auto* other = std::get_if<OptionValue::Other>(&value.is)) return other->shown;
  if (const OptionValue::Table* table = value.table()) return table->empty() ? "{}" : "{...}";
  std::vector<std::string> entries;
  for (const OptionValue& entry : *value.list()) entries.push_back(ValueText(entry));
  return fmt::format("[{}]", fmt::join(entries, ", "));
}

FieldError WrongValue(const OptionValue& value, std::string_view rule) {
  constexpr std::size_t kLongest = 60;
  std::string text = ValueText(value);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return {"", fmt::format("{}: {}", text, rule)};
}

void OptionVisitor::Number(const Option& option, double& field, NumberRange range) {
  Visit(option, {.value = OptionValue{field},
                 .problem = FindProblem(field, range),
                 .allowed = "a number " + range.Text(),
                 .take = Into(field, "must be a number")});
}

void OptionVisitor::Integer(const Option& option, int& field, CountRange range) {
  Visit(option, IntegerField(field, range));
}

void OptionVisitor::Integer(const Option& option, std::int64_t& field, CountRange range) {
  Visit(option, IntegerField(field, range));
}

void OptionVisitor::Flag(const Option& option, bool& field) {
  Visit(option, {.value = OptionValue{field},
                 .allowed = "true, false",
                 .take = Into(field, "must be true or false")});
}

void OptionVisitor::Text(const Option& option, std::string& field) {
  Visit(option, {.value = field.empty() ? std::nullopt : std::optional(OptionValue{field}),
                 .allowed = "a text",
                 .take = Into(field, "must be a text")});
}

void OptionVisitor::Drawn(const Option& option, Interval& field, NumberRange range) {
  const bool constant = field.low == field.high;
  Visit(option,
        {.value = constant ? OptionValue{field.low} : ListOf(std::array{field.low, field.high}),
         .problem = FindEndsProblem(field, range),
         .allowed = fmt::format("a number {}, or [low, high]", range.Text()),
         .take = Into(field, "must be a number or [low, high]"),
         .digits = fmt::format("{},{}", field.low, field.high)});
}

void OptionVisitor::Drawn(const Option& option, CountInterval& field, CountRange range) {
  const std::string allowed = fmt::format("an integer {}, or [low, high]", range.Text());
  Visit(option, {.value = ListOf(std::array{std::int64_t{field.low}, std::int64_t{field.high}}),
                 .problem = FindEndsProblem(field, range),
                 .allowed = allowed,
                 .take = Into(field, "must be " + allowed)});
}

void OptionVisitor::Numbers(const Option& option, std::span<double> field, NumberRange range) {
  std::optional<FieldError> problem;
  for (std::size_t at = 0; at < field.size() && !problem; ++at) {
    problem = FindProblem(field[at], range, fmt::format("[{}]", at));
  }
  const auto take = [field](const OptionValue& value) -> std::optional<FieldError> {
    std::vector<double> read;
    if (!Read(value, read) || read.size() != field.size()) {
      return WrongValue(value, fmt::format("must be {} numbers", field.size()));
    }
    std::ranges::copy(read, field.begin());
    return std::nullopt;
  };
  Visit(option, {.value = ListOf(field),
                 .problem = problem,
                 .allowed = fmt::format("{} numbers {}", field.size(), range.Text()),
                 .take = take});
}

void OptionVisitor::Integers(const Option& option, std::vector<int>& field, CountRange range,
                             std::size_t max_count) {
  std::optional<FieldError> problem;
  if (field.size() > max_count) {
    problem = {"", fmt::format("{} integers: must be at most {}", field.size(), max_count)};
  }
  for (std::size_t at = 0; at < field.size() && !problem; ++at) {
    problem = FindProblem(field[at], range);
  }
  const std::string allowed =
      fmt::format("a list of up to {} integers {}", max_count, range.Text());
  Visit(option, {.value = ListOf(std::vector<std::int64_t>(field.begin(), field.end())),
                 .problem = problem,
                 .allowed = allowed,
                 .take = Into(field, "must be " + allowed)});
}

void OptionVisitor::Word(const Option& option, std::span<const std::string_view> words,
                         std::size_t index, const std::function<void(std::size_t)>& set) {
  Visit(option, WordField(words, index, set));
}

void OptionVisitor::NumberOrWord(const Option& option, double& number, NumberRange range,
                                 std::span<const std::string_view> words, std::size_t index,
                                 const std::function<void(std::size_t)>& set) {
  const auto take = [&number, words, set](const OptionValue& value) -> std::optional<FieldError> {
    const auto word = FindWord(value, words);
    if (!word && !Read(value, number)) {
      return WrongValue(value, fmt::format("must be a number or {}", fmt::join(words, ", ")));
    }
    set(word.value_or(words.size()));
    return std::nullopt;
  };
  const bool is_word = index < words.size();
  Visit(option, {.value = is_word ? OptionValue{std::string(words[index])} : OptionValue{number},
                 .problem = FindProblem(number, range),
                 .allowed = fmt::format("a number {}, or {}", range.Text(), QuotedWords(words)),
                 .take = take});
}

void OptionVisitor::Preset(const Option& option, std::span<const std::string_view> words,
                           std::vector<std::string> excludes,
                           const std::function<void(std::size_t)>& set) {
  OptionField field = WordField(words, 0, set);
  field.value.reset();
  field.excludes = std::move(excludes);
  Visit(option, field);
}

void OptionVisitor::Table(const Option& option, std::span<const double> numbers,
                          std::span<const OptionColumn> columns,
                          const std::function<void(std::span<const double>)>& set) {
  std::vector<std::string_view> names;
  for (const OptionColumn& column : columns) names.push_back(column.name);
  const std::string row_text = fmt::format("[{}]", fmt::join(names, ", "));
  OptionValue::List rows;
  std::optional<FieldError> problem;
  for (std::size_t at = 0; at < numbers.size(); ++at) {
    const std::size_t row = at / columns.size();
    const std::size_t column = at % columns.size();
    if (column == 0) rows.push_back(ListOf(numbers.subspan(at, columns.size())));
    if (problem) continue;
    problem = FindProblem(numbers[at], columns[column].range, fmt::format("[{}][{}]", row, column));
  }
  const auto take = [row_text, width = columns.size(),
                     set](const OptionValue& value) -> std::optional<FieldError> {
    constexpr std::size_t kMaxRows = 1000;
    if (value.list() == nullptr) return WrongValue(value, "must be a list of " + row_text);
    if (value.list()->size() > kMaxRows) {
      return WrongValue(value, fmt::format("must have at most {} rows", kMaxRows));
    }
    std::vector<double> given;
    for (std::size_t row = 0; row < value.list()->size(); ++row) {
      const OptionValue& entry = (*value.list())[row];
      std::vector<double> read;
      if (!Read(entry, read) || read.size() != width) {
        return FieldError{fmt::format("[{}]", row),
                          WrongValue(entry, "must be " + row_text).problem};
      }
      given.insert(given.end(), read.begin(), read.end());
    }
    set(given);
    return std::nullopt;
  };
  Visit(option, {.value = OptionValue{std::move(rows)},
                 .problem = problem,
                 .allowed = "a list of " + row_text,
                 .take = take});
}

void PathVisitor::Enter(std::string_view group, Owner owner) {
  // What is in a learner's group is the learner's.
  const Owner outer = this->owner();
  groups_.push_back({PathOf(group), owner == Owner::kRun ? outer : owner});
}
void PathVisitor::Leave() { groups_.pop_back(); }

std::string PathVisitor::PathOf(std::string_view name) const {
  return groups_.empty() ? std::string(name) : fmt::format("{}.{}", groups_.back().name, name);
}

void RangeCheck::Visit(const Option& option, const OptionField& field) {
  if (error || !field.problem) return;
  error = FieldError{PathOf(option.name) + field.problem->field, field.problem->problem};
}

namespace {

void Round(OptionValue& value) {
  if (auto* number = std::get_if<double>(&value.is)) {
    constexpr double kGrid = 1e9;  // per unit; larger numbers are coarser as floats
    const double on_grid = std::fabs(*number) < 1e6 ? std::round(*number * kGrid) / kGrid : *number;
    // The double that a float's shortest digits spell: 0.27 stays 0.27.
    const std::string digits = fmt::format("{}", static_cast<float>(on_grid) + 0.0F);
    *number = std::strtod(digits.c_str(), nullptr);
  } else if (auto* list = std::get_if<OptionValue::List>(&value.is)) {
    for (OptionValue& entry : *list) Round(entry);
  }
}

}  // namespace

void RoundNumbers::Visit(const Option& /*option*/, const OptionField& field) {
  if (!field.value) return;
  OptionValue value = *field.value;
  Round(value);
  const auto problem = field.take(value);
  FEDGEN_CHECK(!problem, "{}", problem ? problem->problem : "");
}

void CanonicalText::Visit(const Option& option, const OptionField& field) {
  if (!field.value || (what_ == What::kWhatActs && !option.acts)) return;
  const std::string path = PathOf(option.name);
  const OptionValue::List* list = field.value->list();
  if (!field.digits.empty()) {
    text += fmt::format("{}={}\n", path, field.digits);
  } else if (list != nullptr && (list->empty() || list->front().list() != nullptr)) {
    text += fmt::format("{}.size={}\n", path, list->size());
    for (std::size_t row = 0; row < list->size(); ++row) {
      text += fmt::format("{}[{}]={}\n", path, row, Digits((*list)[row]));
    }
  } else {
    text += fmt::format("{}={}\n", path, Digits(*field.value));
  }
}

}  // namespace fedgen
