// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fedgen/base/result.h"

namespace fedgen {

/// What a run's config.toml does not hold: run.json.
struct RunIdentity {
  std::uint64_t seed = 1;
  std::string config_name;  // the file it was started with, for people
};

std::string RunIdentityToJson(const RunIdentity& identity);
Result<RunIdentity> ParseRunIdentity(std::string_view text, const std::string& name);

}  // namespace fedgen
