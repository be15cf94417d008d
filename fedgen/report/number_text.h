// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fedgen {

// Numbers as people read them.

/// 1234567 as "1,234,567".
std::string Grouped(std::int64_t number);

/// "1 world", "10,000 worlds"; `one` is the singular of a noun that takes an s.
std::string Counted(std::int64_t number, std::string_view one);

}  // namespace fedgen
