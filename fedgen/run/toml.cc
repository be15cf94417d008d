// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/toml.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <sstream>
#include <utility>

#include "fedgen/base/text.h"

namespace fedgen {
namespace {

OptionValue ValueOf(const toml::node& node) {
  const int line = static_cast<int>(node.source().begin.line);
  if (const auto* flag = node.as_boolean()) return {flag->get(), line};
  if (const auto* integer = node.as_integer()) return {integer->get(), line};
  if (const auto* number = node.as_floating_point()) return {number->get(), line};
  if (const auto* text = node.as_string()) return {text->get(), line};
  if (const toml::array* array = node.as_array()) {
    OptionValue::List list;
    for (const toml::node& entry : *array) list.push_back(ValueOf(entry));
    return {std::move(list), line};
  }
  if (const toml::table* table = node.as_table()) {
    OptionValue::Table entries;
    for (const auto& [key, entry] : *table) entries.emplace(key.str(), ValueOf(entry));
    return {std::move(entries), line};
  }
  std::ostringstream shown;
  node.visit([&](const auto& typed) { shown << typed; });
  return {OptionValue::Other{shown.str()}, line};
}

// The line of a key with more parts than any of ours, which the parser would follow into the depth
// of its stack; 0 if there is none. Dots are counted from one separator to the next.
int FindDeepKey(std::string_view text) {
  constexpr int kMostParts = 64;
  int line = 1;
  int dots = 0;
  for (const char c : text) {
    if (c == '.' && ++dots > kMostParts) return line;
    if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos) dots = 0;
    if (c == '\n') ++line;
  }
  return 0;
}

// What comes from --set has no line in the file.
void ForgetLines(OptionValue& value) {
  value.line = 0;
  if (auto* list = std::get_if<OptionValue::List>(&value.is)) {
    for (OptionValue& entry : *list) ForgetLines(entry);
  }
  if (auto* table = std::get_if<OptionValue::Table>(&value.is)) {
    for (auto& [key, entry] : *table) ForgetLines(entry);
  }
}

// Lays `over` on `base`: tables merge, everything else is replaced.
void Merge(OptionValue over, OptionValue& base) {
  auto* tables = std::get_if<OptionValue::Table>(&over.is);
  auto* base_tables = std::get_if<OptionValue::Table>(&base.is);
  if (tables != nullptr && base_tables != nullptr) {
    for (auto& [key, value] : *tables) {
      const auto [at, is_new] = base_tables->try_emplace(key);
      if (is_new && value.is_table()) at->second.is = OptionValue::Table{};
      Merge(std::move(value), at->second);
    }
  } else {
    base = std::move(over);
  }
}

// a.b.c = value, and nothing else.
bool IsOneKey(const OptionValue& value) {
  const OptionValue::Table* table = value.table();
  while (table->size() == 1) {
    const OptionValue& only = table->begin()->second;
    if (!only.is_table()) return true;
    table = only.table();
  }
  return false;
}

bool IsListOfTables(const OptionValue& value) {
  return value.list() != nullptr && !value.list()->empty() && value.list()->front().is_table();
}

void WriteTable(const OptionValue::Table& table, const std::string& path, std::string& out) {
  for (const auto& [key, value] : table) {
    if (value.is_table() || IsListOfTables(value)) continue;
    out += fmt::format("{} = {}\n", key, ValueText(value));
  }
  for (const auto& [key, value] : table) {
    const std::string name = path + key;
    if (value.is_table()) {
      out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", name);
      WriteTable(*value.table(), name + ".", out);
    } else if (IsListOfTables(value)) {
      for (const OptionValue& entry : *value.list()) {
        out += fmt::format("\n[[{}]]\n", name);
        WriteTable(*entry.table(), name + ".", out);
      }
    }
  }
}

}  // namespace

Result<OptionValue> ParseToml(std::string_view text, const std::string& name) {
  if (const int line = FindDeepKey(text); line > 0) {
    return Error{ErrorCode::kConfig,
                 fmt::format("{}:{}: a key has more than 64 parts", name, line)};
  }
  try {
    return ValueOf(toml::parse(text, std::string_view(name)));
  } catch (const toml::parse_error& error) {
    return Error{ErrorCode::kConfig, fmt::format("{}:{}: {}", name, error.source().begin.line,
                                                 Printable(error.description(), 200))};
  }
}

Result<void> ApplyOverride(const std::string& text, OptionValue& table) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    return Error{ErrorCode::kConfig, fmt::format("--set = {}: must be key=value", text)};
  }
  Result<OptionValue> parsed = ParseToml(text, "--set");
  if (!parsed) {
    // kind=car without quotes: read the value as a string.
    parsed = ParseToml(fmt::format("{} = '{}'", text.substr(0, equals), text.substr(equals + 1)),
                       "--set");
  }
  if (!parsed || !IsOneKey(*parsed)) {
    return Error{ErrorCode::kConfig,
                 fmt::format("--set = {}: must be one key and its value in TOML", text)};
  }
  ForgetLines(*parsed);
  Merge(*std::move(parsed), table);
  return {};
}

std::string TomlText(const OptionValue::Table& table) {
  std::string text;
  WriteTable(table, "", text);
  return text;
}

}  // namespace fedgen
