// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "fedgen/base/result.h"

namespace fedgen {

// The options of a configuration for people: what each means, its default, and what it may be.

/// One option, or the options of a group ("world.goal"). An unknown key is a usage error that names
/// the nearest.
Result<std::string> ExplainOption(const std::string& key);

/// All of them, a line each.
std::string ExplainOptions();

/// All of them as tables, for docs/configuration.md.
std::string OptionsMarkdown();

}  // namespace fedgen
