// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/config_explain.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <vector>

#include "fedgen/base/text.h"
#include "fedgen/run/config.h"
#include "fedgen/run/config_options.h"

namespace fedgen {
namespace {

struct Explained {
  std::string key, unit, value, allowed, help;  // value: the default, as TOML; "" if none
  Owner owner;
};

class Explainer : public PathVisitor {
 public:
  void Visit(const Option& option, const OptionField& field) override {
    options.push_back({PathOf(option.name), std::string(option.unit),
                       field.value ? ValueText(*field.value) : "", field.allowed,
                       std::string(option.help), option.owner.value_or(owner())});
  }
  std::vector<Explained> options;
};

std::vector<Explained> AllOptions() {
  Explainer explainer;
  Config config;
  std::string initial_policy;
  Describe(explainer, config);
  explainer.Enter("learners", Owner::kLearner);
  DescribeBeginning(explainer, config.learner, initial_policy);
  explainer.Visit({"world", "",
                   "Worlds of its own kind, over those of [world]. Theorems T4 and T5 do not hold "
                   "then, and the summary says so."},
                  {.allowed = "a table like [world]"});
  explainer.Leave();
  return explainer.options;
}

constexpr std::string_view kOwnEntry = "a learner's own: its entry of [[learners]] sets it";
constexpr std::array<std::string_view, 3> kWhose = {
    "the run's: every participant must have the same",
    "a learner's own: here it is set for all, by an entry of [[learners]] for one; in a federation "
    "it stands in each learner's own file",
    "the host's: it changes nothing that is learned, only what is written beside it"};

// Breaks a text into lines of at most 90 characters, each indented by two.
std::string Wrapped(std::string_view text) {
  constexpr std::size_t kWidth = 90;
  std::string lines;
  while (text.size() > kWidth) {
    const std::size_t cut = text.rfind(' ', kWidth);
    lines += fmt::format("  {}\n", text.substr(0, cut));
    text.remove_prefix(cut + 1);
  }
  return lines + fmt::format("  {}\n", text);
}

// Up to a point before a capital letter: Eq. 5 goes on.
std::string_view FirstSentence(std::string_view text) {
  for (std::size_t at = text.find(". "); at != std::string_view::npos;
       at = text.find(". ", at + 1)) {
    if (std::isupper(static_cast<unsigned char>(text[at + 2])) != 0) return text.substr(0, at + 1);
  }
  return text;
}

std::string Line(const Explained& option) {
  return fmt::format("{:<38} {:<14} {}\n", option.key, option.value, FirstSentence(option.help));
}

std::string Card(const Explained& option) {
  std::string text = option.key + "\n" + Wrapped(option.help) + "\n";
  const auto add = [&text](const char* name, std::string_view value) {
    if (!value.empty()) text += fmt::format("  {:<8}  {}\n", name, value);
  };
  add("default", option.value.empty() ? "none" : option.value);
  add("unit", option.unit);
  add("allowed", option.allowed);
  const bool only_in_entries = option.key.starts_with("learners.");
  add("whose", only_in_entries ? kOwnEntry : kWhose[static_cast<std::size_t>(option.owner)]);
  return text;
}

}  // namespace

Result<std::string> ExplainOption(const std::string& key) {
  std::string group;
  std::vector<std::string> keys;
  for (const Explained& option : AllOptions()) {
    if (option.key == key) return Card(option);
    if (option.key.starts_with(key + ".")) group += Line(option);
    keys.push_back(option.key);
  }
  if (!group.empty()) return group;
  return Error{ErrorCode::kUsage,
               fmt::format("{}: no such option{}", Printable(key), DidYouMean(key, keys))};
}

std::string ExplainOptions() {
  std::string text;
  for (const Explained& option : AllOptions()) text += Line(option);
  return text;
}

std::string OptionsMarkdown() {
  std::string text, section;
  for (const Explained& option : AllOptions()) {
    const std::string in = option.key.substr(0, option.key.find('.'));
    if (in != section) {
      text += fmt::format(
          "\n### {}\n\n| key | default | unit | allowed | whose | meaning |\n"
          "|---|---|---|---|---|---|\n",
          in);
      section = in;
    }
    const std::string value = option.value.empty() ? "" : "`" + option.value + "`";
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", option.key, value, option.unit,
                        option.allowed, NameOf(option.owner), option.help);
  }
  return text + "\n";
}

}  // namespace fedgen
