// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "fedgen/base/file.h"
#include "fedgen/base/text.h"
#include "fedgen/certify/ladder.h"
#include "fedgen/run/config_options.h"
#include "fedgen/run/toml.h"

namespace fedgen {
namespace {

constexpr std::size_t kMaxParameters = 10'000'000;  // of a policy
constexpr std::size_t kMaxConfigBytes = 1 << 20;
constexpr std::size_t kLongestMessage = 1000;

// Reads the options that are in the file into their fields, and keeps the first problem.
class ConfigReader : public OptionVisitor {
 public:
  ConfigReader(OptionValue& root, std::string name) : name_(std::move(name)) {
    groups_.push_back({std::get_if<OptionValue::Table>(&root.is), ""});
  }

  void Enter(std::string_view group, Owner /*owner*/ = Owner::kRun) override {
    OptionValue* value = Ask(group);
    OptionValue::Table* table =
        value == nullptr ? nullptr : std::get_if<OptionValue::Table>(&value->is);
    if (value != nullptr && table == nullptr)
      Fail(Path(group), WrongValue(*value, "must be a table"));
    groups_.push_back({table, Path(group)});
  }

  /// Entry `index` of a list of tables. Its path counts from 1, as learners do everywhere.
  void EnterEntry(std::string_view name, std::size_t index) {
    OptionValue& entry = std::get<OptionValue::List>(
        groups_.back().table->find(std::string(name))->second.is)[index];
    const std::string path = EntryPath(Path(name), index);
    lines_[path] = entry.line;
    groups_.push_back({std::get_if<OptionValue::Table>(&entry.is), path});
  }
  static std::string EntryPath(std::string_view list, std::size_t index) {
    return fmt::format("{}[{}]", list, index + 1);
  }

  // Whoever leaves has asked for every key.
  void Leave() override {
    const Group group = std::move(groups_.back());
    groups_.pop_back();
    if (group.table == nullptr) return;
    for (const auto& [key, value] : *group.table) {
      if (std::ranges::find(group.asked, key) != group.asked.end()) continue;
      Complain(value.line, fmt::format("{}{}: unknown key{}", group.prefix(), key.substr(0, 60),
                                       DidYouMean(key, group.asked, group.prefix())));
    }
  }

  void Visit(const Option& option, const OptionField& field) override {
    OptionValue* value = Ask(option.name);
    if (value == nullptr) return;
    // A key and one that sets it too: what --set brought goes before what the file says.
    for (const std::string& other : field.excludes) {
      const auto found = groups_.back().table->find(other);
      if (found == groups_.back().table->end()) continue;
      if (value->line > 0 && found->second.line == 0) return;
      if (value->line == 0 && found->second.line > 0) {
        groups_.back().table->erase(found);
        continue;
      }
      const std::string rule = Path(option.name) + " sets it already";
      return Complain(found->second.line,
                      Path(other) + " = " + WrongValue(found->second, rule).problem);
    }
    if (const auto error = field.take(*value)) Fail(Path(option.name), *error);
  }

  /// How many tables a list has; 0 if it is not there or wrong.
  std::size_t CountTables(std::string_view name, std::size_t max_size) {
    const OptionValue* value = Ask(name);
    if (value == nullptr) return 0;
    const OptionValue::List* list = value->list();
    if (list == nullptr || list->size() > max_size) {
      Fail(Path(name),
           WrongValue(*value, fmt::format("must be a list of at most {} tables", max_size)));
      return 0;
    }
    for (std::size_t index = 0; index < list->size(); ++index) {
      if ((*list)[index].is_table()) continue;
      Complain((*list)[index].line,
               fmt::format("{} = {}", EntryPath(Path(name), index),
                           WrongValue((*list)[index], "must be a table").problem));
      return 0;
    }
    return list->size();
  }

  bool Has(std::string_view key) { return Ask(key) != nullptr; }

  /// Reports what is wrong at `path` or, as the error names it, below.
  void Fail(const std::string& path, const FieldError& error) {
    const bool below = !error.field.empty() && error.field[0] != '[' && !path.empty();
    const std::string key = path + (below ? "." : "") + error.field;
    Complain(LineOf(key), fmt::format("{} = {}", key, error.problem));
  }
  void Check(const std::string& path, const std::optional<FieldError>& error) {
    if (error) Fail(path, *error);
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  struct Group {
    OptionValue::Table* table;  // none if the file does not have it
    std::string path;
    std::vector<std::string> asked{};
    std::string prefix() const { return path.empty() ? "" : path + "."; }
  };

  OptionValue* Ask(std::string_view key) {
    Group& group = groups_.back();
    group.asked.emplace_back(key);
    if (group.table == nullptr) return nullptr;
    const auto found = group.table->find(group.asked.back());
    if (found == group.table->end()) return nullptr;
    lines_[Path(key)] = found->second.line;
    if (const OptionValue::List* list = found->second.list()) {
      for (std::size_t at = 0; at < list->size(); ++at) {
        lines_[fmt::format("{}[{}]", Path(key), at)] = (*list)[at].line;
      }
    }
    return &found->second;
  }

  std::string Path(std::string_view key) const {
    return groups_.back().prefix() + std::string(key);
  }

  // The line of a key such as learners[1].world.walls[0], or of the nearest above it; 0 for --set.
  std::optional<int> LineOf(std::string key) const {
    while (true) {
      if (const auto found = lines_.find(key); found != lines_.end()) return found->second;
      const std::size_t cut = key.find_last_of(".[");
      if (cut == std::string::npos) return std::nullopt;
      key.resize(cut);
    }
  }

  void Complain(std::optional<int> line, const std::string& problem) {
    if (error_) return;
    const std::string where = !line                  ? name_
                              : *line == 0           ? "--set"
                              : *line == kSharedLine ? "the run's settings"
                                                     : fmt::format("{}:{}", name_, *line);
    error_ = Error{ErrorCode::kConfig, where + ": " + Printable(problem, kLongestMessage)};
  }

  std::string name_;
  std::map<std::string, int> lines_;  // of keys that were asked for
  std::vector<Group> groups_;
  std::optional<Error> error_;
};

// Writes the options into a table.
class ConfigWriter : public OptionVisitor {
 public:
  void Enter(std::string_view group, Owner /*owner*/ = Owner::kRun) override {
    OptionValue& value = (*groups_.back())[std::string(group)];
    groups_.push_back(&value.is.emplace<OptionValue::Table>());
  }
  void Leave() override { groups_.pop_back(); }
  void Visit(const Option& option, const OptionField& field) override {
    if (field.value) (*groups_.back())[std::string(option.name)] = *field.value;
  }

  OptionValue::Table table;

 private:
  std::vector<OptionValue::Table*> groups_ = {&table};
};

// What entry `index` of [[learners]] holds.
void DescribeEntry(OptionVisitor& visitor, Config& config, std::size_t index) {
  LearnerSettings& settings = config.training.learners[index];
  Describe(visitor, settings);
  DescribeBeginning(visitor, settings, config.initial_policies[index]);
  if (settings.own_world) DescribeGroup(visitor, "world", *settings.own_world);
}

// Entry i of [[learners]] changes learner i.
void ReadLearners(ConfigReader& reader, Config& config) {
  const auto num_learners =
      static_cast<std::size_t>(std::clamp(config.num_learners, 1, kMaxLearners));
  config.learner.initial_half_width = config.initial_half_width;
  config.training.learners.assign(num_learners, config.learner);
  config.initial_policies.assign(num_learners, "");
  const std::size_t num_entries = reader.CountTables("learners", num_learners);
  config.learner_tables = static_cast<int>(num_entries);
  for (std::size_t index = 0; index < num_entries; ++index) {
    LearnerSettings& settings = config.training.learners[index];
    reader.EnterEntry("learners", index);
    if (reader.Has("world")) settings.own_world = config.training.task.world;
    DescribeEntry(reader, config, index);
    reader.Leave();
    const std::string path = ConfigReader::EntryPath("learners", index);
    RangeCheck ranges;
    DescribeEntry(ranges, config, index);
    reader.Check(path, ranges.error);
    if (settings.own_world) reader.Check(path + ".world", Validate(*settings.own_world));
  }
}

// The rules of each room, and those between rooms.
void CheckRules(ConfigReader& reader, const Config& config) {
  reader.Check("", CheckRanges(config));
  reader.Check("world", Validate(config.task().world));
  reader.Check("lidar", Validate(config.task().lidar));
  reader.Check("federation", Validate(config.training.federation));
  Mlp shape;
  shape.num_beams = config.task().lidar.beams;
  shape.hidden = config.training.policy.hidden;
  if (const std::size_t count = NumParameters(shape); count > kMaxParameters) {
    reader.Fail("policy.hidden",
                {"", fmt::format("{} parameters: must be at most {}", count, kMaxParameters)});
  }
  if (!IsRung(config.certificate_worlds)) {
    reader.Fail("federation.certificate_worlds",
                {"", fmt::format("{}: {}", config.certificate_worlds, kLadderRule)});
  }
  // Single steps are numbered in 32 bits.
  const auto check_steps = [&](const char* option, std::int64_t episodes) {
    const std::int64_t horizon = config.task().episode.horizon;
    if (episodes * horizon <= std::numeric_limits<std::uint32_t>::max()) return;
    reader.Fail(option, {"", fmt::format("{}: with episode.horizon = {} that is {} steps, must be "
                                         "less than 2^32",
                                         episodes, horizon, episodes * horizon)});
  };
  for (const LearnerSettings& learner : LearnersOf(config.training)) {
    if (!ByPolicyGradient(learner)) continue;
    check_steps("learner.policy_gradient.episodes", learner.policy_gradient.episodes);
  }
  if (!config.imitate.empty()) {
    check_steps("policy.imitation_episodes", config.training.imitation.episodes);
  }
  // All might adopt the Cloud's own candidate and rest: nobody would be left to search.
  const bool rests = std::ranges::any_of(config.training.learners, &LearnerSettings::rest);
  if (rests && config.training.federation.average_every > 0) {
    reader.Fail("learner.rest", {"", "true: needs federation.average_every = 0"});
  }
}

}  // namespace

void Resolve(Config& config) {
  ConfigWriter resolved;
  Describe(resolved, config);
  OptionValue::List entries;
  for (int index = 0; index < config.learner_tables; ++index) {
    ConfigWriter entry;
    DescribeEntry(entry, config, static_cast<std::size_t>(index));
    entries.push_back({std::move(entry.table)});
  }
  if (!entries.empty()) resolved.table["learners"] = {std::move(entries)};
  config.resolved = TomlText(resolved.table);
}

void SetRounds(int rounds, Config& config) {
  int& now = config.training.federation.rounds;
  const auto keep_schedule = [now](LearnerSettings& learner) {
    StepOptions& step = learner.step;
    // The noise of policy gradients falls geometrically whatever the steps do.
    const bool geometric = step.schedule == StepOptions::Schedule::kGeometric ||
                           learner.estimator.kind == EstimatorOptions::Kind::kPolicyGradient;
    if (geometric && step.rounds == 0) step.rounds = now;
  };
  keep_schedule(config.learner);
  for (LearnerSettings& learner : config.training.learners) keep_schedule(learner);
  now = rounds;
  Resolve(config);
}

Result<Config> ParseConfig(std::string_view text, const std::string& name,
                           std::span<const std::string> overrides) {
  OptionValue root = FEDGEN_TRY(ParseToml(text, name));
  for (const std::string& one : overrides) FEDGEN_TRY(ApplyOverride(one, root));
  return ReadConfig(std::move(root), name);
}

Result<Config> ReadConfig(OptionValue root, const std::string& name) {
  Config config;
  ConfigReader reader(root, name);
  Describe(reader, config);
  ReadLearners(reader, config);
  reader.Leave();
  CheckRules(reader, config);
  if (const std::optional<Error>& error = reader.error()) return *error;
  Resolve(config);
  return config;
}

bool Sets(const std::string& override_text, std::string_view key) {
  OptionValue root{OptionValue::Table()};
  if (!ApplyOverride(override_text, root)) return false;
  const OptionValue* at = &root;
  while (at->is_table()) {
    const std::size_t dot = key.find('.');
    const auto found = at->table()->find(std::string(key.substr(0, dot)));
    if (found == at->table()->end()) return false;
    at = &found->second;
    if (dot == std::string_view::npos) return true;
    key.remove_prefix(dot + 1);
  }
  return true;  // a group that is no table: wrong, and nobody else's to set
}

Result<Config> LoadConfig(const std::string& path, std::span<const std::string> overrides) {
  const Result<std::string> text = ReadFile(path, kMaxConfigBytes);
  if (!text) {
    // Too large to be a configuration.
    const bool data = text.error().code == ErrorCode::kData;
    return Error{data ? ErrorCode::kConfig : text.error().code, text.error().message};
  }
  Result<Config> config = ParseConfig(*text, path, overrides);
  if (config) config->directory = std::filesystem::path(path).parent_path().string();
  return config;
}

}  // namespace fedgen
