// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fedgen/base/result.h"
#include "fedgen/policy/mlp.h"
#include "fedgen/rollout/task.h"

namespace fedgen {

// An experiment as a TOML file (docs/configuration.md lists every key). Every key has a default and
// may be left out; an unknown key, a wrong type or a value out of range is an error that names the
// file, the line, the key and the rule.

struct Config {
  Task task;
  MlpOptions policy;                 // the network a new policy gets
  double initial_half_width = 0.02;  // of its weights (DrawParameters), in [0, 10]
};

/// Reads a configuration from text; `name` stands for the file in messages. Each override is
/// `key=value` in TOML's own spelling (strings may go without quotes) and replaces what the text
/// says.
Result<Config> ParseConfig(std::string_view text, const std::string& name,
                           std::span<const std::string> overrides = {});

Result<Config> LoadConfig(const std::string& path, std::span<const std::string> overrides = {});

}  // namespace fedgen
