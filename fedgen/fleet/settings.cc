// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fleet/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "fedgen/base/file.h"
#include "fedgen/base/text.h"
#include "fedgen/run/config_options.h"
#include "fedgen/run/toml.h"

namespace fedgen {
namespace {

using Table = OptionValue::Table;

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
// What only [learner] of a learner's own file has; in one process these stand in [[learners]].
constexpr const char* kBeginning[] = {"initial_half_width", "initial_policy"};

// Whose each key is.
class Owners : public PathVisitor {
 public:
  Owners() {
    Config config;
    Describe(*this, config);
    for (const char* key : kBeginning) of_[fmt::format("learner.{}", key)] = Owner::kLearner;
  }
  void Visit(const Option& option, const OptionField& /*field*/) override {
    of_[PathOf(option.name)] = option.owner.value_or(owner());
  }
  /// Nothing for a key that nobody knows.
  const Owner* Find(const std::string& path) const {
    const auto found = of_.find(path);
    return found == of_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::string, Owner> of_;
};

enum class File { kShared, kOwn };

bool BelongsTo(File file, Owner owner) { return (owner == Owner::kRun) == (file == File::kShared); }

Table& TableAt(Table& parent, const std::string& key) {
  OptionValue& value = parent[key];
  if (!value.is_table()) value.is = Table();
  return std::get<Table>(value.is);
}

// Takes away what is not of this file.
void Keep(File file, const Owners& owners, const std::string& prefix, Table& table) {
  for (auto at = table.begin(); at != table.end();) {
    const std::string path = prefix + at->first;
    if (auto* inner = std::get_if<Table>(&at->second.is)) {
      Keep(file, owners, path + ".", *inner);
      at = inner->empty() ? table.erase(at) : std::next(at);
      continue;
    }
    const Owner* owner = owners.Find(path);
    at = owner == nullptr || !BelongsTo(file, *owner) ? table.erase(at) : std::next(at);
  }
}

// The first key that belongs into the other file.
Result<void> CheckOwners(File file, const Owners& owners, const std::string& name,
                         const std::string& prefix, const Table& table) {
  for (const auto& [key, value] : table) {
    const std::string path = prefix + key;
    const auto wrong = [&](std::string_view rule) {
      const std::string where = value.line > 0 ? fmt::format("{}:{}", name, value.line) : "--set";
      return Error{ErrorCode::kConfig,
                   Printable(fmt::format("{}: {}: {}", where, path, rule), 300)};
    };
    if (path == "learners") {
      return wrong("is for learners in one process; here each has a file of its own");
    }
    if (const Table* inner = value.table()) {
      FEDGEN_TRY(CheckOwners(file, owners, name, path + ".", *inner));
      continue;
    }
    const Owner* owner = owners.Find(path);
    if (owner == nullptr || BelongsTo(file, *owner)) continue;
    return wrong(file == File::kShared
                     ? "is a learner's own: it belongs into the learner's own file"
                     : "is shared by the run: it belongs into the Cloud's file");
  }
  return {};
}

void SetLines(int line, OptionValue& value) {
  value.line = line;
  if (auto* table = std::get_if<Table>(&value.is)) {
    for (auto& [key, inner] : *table) SetLines(line, inner);
  } else if (auto* list = std::get_if<OptionValue::List>(&value.is)) {
    for (OptionValue& entry : *list) SetLines(line, entry);
  }
}

void Lay(Table over, Table& base) {
  for (auto& [key, value] : over) {
    if (auto* inner = std::get_if<Table>(&value.is)) {
      Lay(std::move(*inner), TableAt(base, key));
    } else {
      base[key] = std::move(value);
    }
  }
}

// [learner] of a learner's own file may say how it begins, which a configuration keeps in the
// learner's entry of [[learners]].
void MoveBeginning(LearnerId learner, Table& root) {
  Table& settings = TableAt(root, "learner");
  Table entry;
  for (const char* key : kBeginning) {
    if (auto node = settings.extract(key)) entry.insert(std::move(node));
  }
  if (entry.empty()) return;
  OptionValue::List entries(learner.index(), OptionValue{Table()});
  entries.push_back({std::move(entry)});
  root["learners"] = {std::move(entries)};
}

Result<std::string> ReadText(const std::string& path) {
  Result<std::string> text = ReadFile(path, kMaxBytes);
  if (text || text.error().code != ErrorCode::kData) return text;
  return Error{ErrorCode::kConfig, text.error().message};
}

// What was written by Resolve() and reads back.
Table ResolvedTable(const Config& config) {
  const Result<OptionValue> root = ParseToml(config.resolved, "resolved");
  FEDGEN_CHECK(root.has_value(), "{}", root.error().message);
  return *root->table();
}

}  // namespace

Result<Config> ParseShared(std::string_view text, const std::string& name,
                           std::span<const std::string> overrides) {
  OptionValue root = FEDGEN_TRY(ParseToml(text, name));
  for (const std::string& one : overrides) FEDGEN_TRY(ApplyOverride(one, root));
  FEDGEN_TRY(CheckOwners(File::kShared, Owners(), name, "", *root.table()));
  Config config = FEDGEN_TRY(ReadConfig(std::move(root), name));
  FEDGEN_TRY(CheckHasCloud(config, name));
  return config;
}

Result<void> CheckHasCloud(const Config& config, const std::string& name) {
  const Algorithm algorithm = config.training.federation.algorithm;
  if (algorithm != Algorithm::kCentralized && algorithm != Algorithm::kSingle) return {};
  return Error{ErrorCode::kConfig,
               fmt::format("{}: federation.algorithm = '{}': has one learner and no Cloud; fedgen "
                           "train runs it",
                           name, NameOf(algorithm))};
}

Result<Config> LoadShared(const std::string& path, std::span<const std::string> overrides) {
  const std::string text = FEDGEN_TRY(ReadText(path));
  return ParseShared(text, path, overrides);
}

Result<Config> ParseOwn(const std::string& shared, std::string_view text, const std::string& name,
                        LearnerId learner) {
  OptionValue root = FEDGEN_TRY(ParseToml(shared, "the run's settings"));
  SetLines(kSharedLine, root);
  OptionValue own = FEDGEN_TRY(ParseToml(text, name));
  const Owners owners;
  FEDGEN_TRY(CheckOwners(File::kOwn, owners, name, "", *own.table()));
  // Whatever the Cloud says, a learner's own is the learner's.
  auto& table = std::get<Table>(root.is);
  Keep(File::kShared, owners, "", table);
  Lay(std::move(std::get<Table>(own.is)), table);
  MoveBeginning(learner, table);
  // Who joins later may have any number.
  OptionValue& count = TableAt(table, "federation")["learners"];
  const auto* given = std::get_if<std::int64_t>(&count.is);
  const std::int64_t least = std::int64_t{learner.index()} + 1;
  if (given == nullptr || *given < least) {
    count.is = std::max<std::int64_t>(least, given == nullptr ? Config().num_learners : *given);
  }
  Result<Config> config = ReadConfig(std::move(root), name);
  if (config) return config;
  // As the key is called in the learner's own file.
  Error error = config.error();
  const std::string moved = fmt::format("learners[{}].", learner.number());
  if (const std::size_t at = error.message.find(moved); at != std::string::npos) {
    error.message.replace(at, moved.size(), "learner.");
  }
  return error;
}

Result<Config> LoadOwn(const std::string& shared, const std::string& path, LearnerId learner) {
  const std::string text = FEDGEN_TRY(ReadText(path));
  Config config = FEDGEN_TRY(ParseOwn(shared, text, path, learner));
  config.directory = std::filesystem::path(path).parent_path().string();
  return config;
}

Result<void> CheckOwn(const std::string& path) {
  const std::string text = FEDGEN_TRY(ReadText(path));
  const OptionValue own = FEDGEN_TRY(ParseToml(text, path));
  return CheckOwners(File::kOwn, Owners(), path, "", *own.table());
}

std::string SharedText(const Config& config) {
  Table table = ResolvedTable(config);
  table.erase("learners");
  Keep(File::kShared, Owners(), "", table);
  return TomlText(table);
}

std::string OwnText(const Config& config, LearnerId learner) {
  Table table = ResolvedTable(config);
  auto entries = table.extract("learners");
  Keep(File::kOwn, Owners(), "", table);
  if (!entries) return TomlText(table);
  auto& list = std::get<OptionValue::List>(entries.mapped().is);
  if (learner.index() >= list.size()) return TomlText(table);
  auto& entry = std::get<Table>(list[learner.index()].is);
  if (auto world = entry.extract("world")) table["world"] = std::move(world.mapped());
  Lay(std::move(entry), TableAt(table, "learner"));
  return TomlText(table);
}

}  // namespace fedgen
