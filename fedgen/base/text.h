// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fedgen {

// Words and numbers as a person reads them, in messages and reports.

/// The known name with the smallest edit distance to `name` (the first of several); empty if there
/// is none. For messages: `radus: unknown key, did you mean radius?`
std::string NearestName(std::string_view name, std::span<const std::string> known);

/// The beginning of a text as a message may show it: bytes a terminal could act on become \xNN, and
/// what is longer than `longest` bytes ends in "...".
std::string Printable(std::string_view text, std::size_t longest = 40);

/// 1234567 as "1,234,567".
std::string Grouped(std::int64_t number);

/// "1 world", "10,000 worlds"; `one` is the singular of a noun that takes an s.
std::string Counted(std::int64_t number, std::string_view one);

}  // namespace fedgen
