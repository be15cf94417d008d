// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "fedgen/base/option.h"
#include "fedgen/base/result.h"

namespace fedgen {

// TOML as values with lines, and back.

/// A table. `name` stands for the file in messages.
Result<OptionValue> ParseToml(std::string_view text, const std::string& name);

/// `key=value` in TOML's own spelling (strings may go without quotes) over what `table` says. It
/// has line 0.
Result<void> ApplyOverride(const std::string& text, OptionValue& table);

/// The table as a file: its values by name, then the tables in it, each under its full name. Names
/// must need no quotes.
std::string TomlText(const OptionValue::Table& table);

}  // namespace fedgen
