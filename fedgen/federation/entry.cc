// SPDX-License-Identifier: Apache-2.0
#include "fedgen/federation/entry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "fedgen/base/text.h"
#include "fedgen/base/version.h"

namespace fedgen {
namespace {

// Keys with their groups, and values: "[federation]" and "rounds = 200" are federation.rounds.
std::map<std::string, std::string> ValuesOf(std::string_view text) {
  std::map<std::string, std::string> values;
  std::string group;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = line.find(" = ");
    if (line.starts_with('[')) {
      const std::size_t begin = line.find_first_not_of('[');  // of a table, or one of several
      group = std::string(line.substr(begin, line.find(']') - begin)) + ".";
    } else if (equals != std::string_view::npos) {
      values[group + std::string(line.substr(0, equals))] = line.substr(equals + 3);
    }
  }
  return values;
}

}  // namespace

std::optional<std::string> FindDifference(const std::string& has, const std::string& wanted) {
  if (has == wanted) return std::nullopt;
  std::map<std::string, std::string> mine = ValuesOf(has);
  std::map<std::string, std::string> theirs = ValuesOf(wanted);
  for (const auto& [key, value] : theirs) {
    const auto found = mine.find(key);
    if (found == mine.end()) {
      return Printable(fmt::format("{}: is missing, must be {}", key, value), 300);
    }
    if (found->second != value) {
      return Printable(fmt::format("{} = {}: must be {}", key, found->second, value), 300);
    }
    mine.erase(found);
  }
  if (mine.empty()) return "is written in another way";
  return Printable(
      fmt::format("{} = {}: must not be there", mine.begin()->first, mine.begin()->second), 300);
}

Result<Entered> Enter(const SharedSettings& served, const Entry& entry) {
  const auto found =
      entry.run.empty() && served.size() == 1 ? served.begin() : served.find(entry.run);
  if (found == served.end()) {
    std::vector<std::string> names;
    for (const auto& [name, settings] : served) names.push_back(name);
    if (entry.run.empty()) {
      return Error{ErrorCode::kUsage,
                   fmt::format("--run is needed: several are served: {}", fmt::join(names, ", "))};
    }
    return Error{ErrorCode::kUsage,
                 fmt::format("--run = {}: must be one of those that are served: {}",
                             Printable(entry.run, 80), fmt::join(names, ", "))};
  }
  if (entry.version != kVersion) {
    return Error{ErrorCode::kMismatch, fmt::format("version = {}: must be {}, the Cloud's",
                                                   Printable(entry.version, 80), kVersion)};
  }
  if (!entry.settings.empty()) {
    if (const auto difference = FindDifference(entry.settings, found->second)) {
      return Error{ErrorCode::kMismatch,
                   fmt::format("run {}: {}, as the Cloud has it", found->first, *difference)};
    }
  }
  return Entered{found->first, found->second};
}

}  // namespace fedgen
