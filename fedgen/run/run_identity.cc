// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/run_identity.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace fedgen {

using Json = nlohmann::ordered_json;

std::string RunIdentityToJson(const RunIdentity& identity) {
  const Json json = {{"format", "fedgen-run"},
                     {"version", 1},
                     {"seed", identity.seed},
                     {"config", identity.config_name}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<RunIdentity> ParseRunIdentity(std::string_view text, const std::string& name) {
  const auto wrong = [&](const char* problem) {
    return Error{ErrorCode::kData, fmt::format("{}: {}", name, problem)};
  };
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || json.value("format", Json()) != "fedgen-run") {
    return wrong("format: must be fedgen-run");
  }
  if (json.value("version", Json()) != 1) return wrong("version: must be 1");
  if (!json.value("seed", Json()).is_number_unsigned()) {
    return wrong("seed: must be an integer in 0..2^64 - 1");
  }
  if (!json.value("config", Json()).is_string()) return wrong("config: must be a text");
  return RunIdentity{json["seed"].get<std::uint64_t>(), json["config"].get<std::string>()};
}

}  // namespace fedgen
