// SPDX-License-Identifier: Apache-2.0
#include "fedgen/federation/run_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "fedgen/base/json-inl.h"
#include "fedgen/base/text.h"
#include "fedgen/federation/steps.h"

namespace fedgen {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kFormat = "fedgen-log";
constexpr int kVersion = 1;
constexpr std::size_t kMaxLineBytes = std::size_t{64} << 20;  // as a message may have
constexpr int kMaxInt = std::numeric_limits<int>::max();

// Who took part is known from the events before.
class Rounds {
 public:
  /// The round that this event completes, if it does.
  std::optional<LoggedRound> Add(const LogEvent& event) {
    const bool is_round = event.kind == "round";
    const int own = (event.step + 1) / 2;
    if (is_round) heard_[own].push_back(event.learner);
    const bool is_for_all = is_round ? event.answered == own : event.kind != "answered-again";
    if (event.answered <= last_ || !is_for_all || heard_[event.answered].empty()) {
      return std::nullopt;
    }
    LoggedRound round{event.answered, event.sequence, std::move(heard_[event.answered]),
                      event.incumbent};
    std::ranges::sort(round.participants);
    last_ = event.answered;
    heard_.clear();
    return round;
  }

 private:
  int last_ = 0;
  std::map<int, std::vector<LearnerId>> heard_;
};

bool IsAsync(const RunHeader& header) {
  return header.settings.find("\nasync = true\n") != std::string::npos;
}

Problem ReadText(const Json& json, const char* field, std::string& text) {
  const Json* const value = FindField(json, field);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) return fmt::format("{} = {}: must be a text", field, Describe(*value));
  text = value->get<std::string>();
  return std::nullopt;
}

Problem ReadHash(const Json& json, const char* field, std::string& hash) {
  if (Problem problem = ReadText(json, field, hash)) return problem;
  const bool is_hash =
      hash.size() == 64 && hash.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (is_hash || FindField(json, field) == nullptr) return std::nullopt;
  return fmt::format("{} = {}: must be 64 hexadecimal digits", field, Printable(hash, 80));
}

template <typename Integer>
Problem ReadNumber(const Json& json, const char* field, Integer low, Integer high, Integer& value) {
  const Json* const number = FindField(json, field);
  if (number == nullptr) return std::nullopt;
  if (Problem problem = ReadInt(*number, low, high, value)) {
    return fmt::format("{} = {}", field, *problem);
  }
  return std::nullopt;
}

Problem ReadParticipants(const Json& json, std::vector<LearnerId>& participants) {
  const Json* const list = FindField(json, "participants");
  if (list == nullptr) return std::nullopt;
  if (!list->is_array()) return "participants = " + Describe(*list) + ": must be an array";
  for (const Json& entry : *list) {
    std::uint32_t number = 0;
    if (Problem problem =
            ReadInt(entry, 1U, std::numeric_limits<std::uint32_t>::max() - 1, number)) {
      return "participants: " + *problem;
    }
    participants.emplace_back(number - 1);
  }
  return std::nullopt;
}

Problem ReadEvent(std::string_view line, LogEvent& event, std::vector<LearnerId>& participants) {
  Json json;
  const JsonLimits limits{.max_depth = 3, .max_values = kMaxLineBytes};
  if (Problem problem = ParseJson(line, limits, json)) return problem;
  if (Problem problem = CheckFields(json, "", {"sequence", "kind", "learner", "step", "hash"},
                                    {"answered", "incumbent", "participants"})) {
    return problem;
  }
  std::uint32_t number = 0;
  if (Problem p = ReadNumber(json, "sequence", std::int64_t{1},
                             std::numeric_limits<std::int64_t>::max(), event.sequence)) {
    return p;
  }
  if (Problem p = ReadText(json, "kind", event.kind)) return p;
  if (!std::ranges::count(kMessageKinds, event.kind)) {
    return fmt::format("kind = {}: is unknown", Printable(event.kind, 80));
  }
  if (Problem p =
          ReadNumber(json, "learner", 1U, std::numeric_limits<std::uint32_t>::max() - 1, number)) {
    return p;
  }
  event.learner = LearnerId(number - 1);
  if (Problem p = ReadNumber(json, "step", -kMaxInt, kMaxInt, event.step)) return p;
  if (Problem p = ReadHash(json, "hash", event.hash)) return p;
  if (Problem p = ReadNumber(json, "answered", 1, kMaxInt, event.answered)) return p;
  if (Problem p = ReadHash(json, "incumbent", event.incumbent)) return p;
  return ReadParticipants(json, participants);
}

Problem ReadHeader(std::string_view line, RunHeader& header) {
  Json json;
  if (Problem problem = ParseJson(line, JsonLimits{}, json)) return problem;
  if (Problem problem = CheckFormat(json, kFormat, kVersion)) return problem;
  if (Problem problem = CheckFields(json, "", {"format", "version", "run", "settings"})) {
    return problem;
  }
  if (Problem problem = ReadText(json, "run", header.run)) return problem;
  if (!IsRunName(header.run)) return "run = " + Describe(json["run"]) + ": is no name of a run";
  return ReadText(json, "settings", header.settings);
}

std::string_view TakeLine(std::string_view& text) {
  const std::size_t length = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, length);
  text.remove_prefix(std::min(length + 1, text.size()));
  return line;
}

OrderedJson EventToJson(const LogEvent& event, const std::optional<LoggedRound>& round) {
  OrderedJson json;
  json["sequence"] = event.sequence;
  json["kind"] = event.kind;
  json["learner"] = event.learner.number();
  json["step"] = event.step;
  json["hash"] = event.hash;
  if (event.answered > 0) json["answered"] = event.answered;
  if (!event.incumbent.empty()) json["incumbent"] = event.incumbent;
  if (round) {
    json["participants"] = OrderedJson::array();
    for (const LearnerId learner : round->participants) {
      json["participants"].push_back(learner.number());
    }
  }
  return json;
}

}  // namespace

Result<RunLog> ReadRunLog(Store& store, const std::string& run) {
  RunLog log;
  for (const RunHeader& header : FEDGEN_TRY(store.Runs())) {
    if (header.run == run) log.header = header;
  }
  for (StoredMessage& row : FEDGEN_TRY(store.RowsOf(run))) {
    if (row.kind.empty()) {
      return Error{ErrorCode::kData,
                   fmt::format("run {}: message {} was kept by a program that kept no log",
                               Printable(run, 80), row.sequence)};
    }
    log.events.push_back({row.sequence, std::move(row.kind), row.learner, row.step,
                          std::move(row.hash), row.answered, std::move(row.incumbent)});
  }
  return log;
}

std::vector<LoggedRound> RoundsOf(const RunLog& log) {
  std::vector<LoggedRound> all;
  if (IsAsync(log.header)) return all;
  Rounds rounds;
  for (const LogEvent& event : log.events) {
    if (auto round = rounds.Add(event)) all.push_back(*std::move(round));
  }
  return all;
}

std::string LogToText(const RunLog& log) {
  OrderedJson header;
  header["format"] = kFormat;
  header["version"] = kVersion;
  header["run"] = log.header.run;
  header["settings"] = log.header.settings;
  std::string text = header.dump() + "\n";
  Rounds rounds;
  for (const LogEvent& event : log.events) {
    std::optional<LoggedRound> round;
    if (!IsAsync(log.header)) round = rounds.Add(event);
    text += EventToJson(event, round).dump() + "\n";
  }
  return text;
}

Result<RunLog> LogFromText(std::string_view text, const std::string& name) {
  RunLog log;
  const auto refused = [&](std::int64_t line, const std::string& problem) {
    return Error{ErrorCode::kData, fmt::format("{}:{}: {}", name, line, problem)};
  };
  if (const Problem problem = ReadHeader(TakeLine(text), log.header)) return refused(1, *problem);
  Rounds rounds;
  std::set<LearnerId> joined;
  for (std::int64_t line = 2; !text.empty(); ++line) {
    LogEvent event;
    std::vector<LearnerId> participants;
    if (const Problem problem = ReadEvent(TakeLine(text), event, participants)) {
      return refused(line, *problem);
    }
    if (event.sequence != line - 1) {
      return refused(line, fmt::format("sequence = {}: must be {}", event.sequence, line - 1));
    }
    if (event.kind == "join") joined.insert(event.learner);
    if (!ControlKindOf(event.kind) && !joined.contains(event.learner)) {
      return refused(line, fmt::format("learner = {}: has not joined", event.learner.number()));
    }
    std::optional<LoggedRound> round;
    if (!IsAsync(log.header)) round = rounds.Add(event);
    if (participants != (round ? round->participants : std::vector<LearnerId>())) {
      return refused(line, "participants: must be those who were heard in the round it completes");
    }
    log.events.push_back(std::move(event));
  }
  return log;
}

}  // namespace fedgen
