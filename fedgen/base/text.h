// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fedgen {

// Words and numbers as a person reads them, in messages and reports.

/// The known name with the smallest edit distance to `name` (the first of several); empty if none
/// is near, that is within a third of the letters that both do not share as a group ("robot.").
std::string NearestName(std::string_view name, std::span<const std::string> known);

/// The end of a message about an unknown name: ", did you mean robot.radius?", with `group` before
/// the nearest name; empty if none is near.
std::string DidYouMean(std::string_view name, std::span<const std::string> known,
                       std::string_view group = "");

/// The beginning of a text as a message may show it: bytes a terminal could act on become \xNN, and
/// what is longer than `longest` bytes ends in "...".
std::string Printable(std::string_view text, std::size_t longest = 40);

/// 1234567 as "1,234,567".
std::string Grouped(std::int64_t number);

/// "1 world", "10,000 worlds"; `one` is the singular of a noun that takes an s.
std::string Counted(std::int64_t number, std::string_view one);

/// How sure something is, rounded down: 1 - risk to so many decimals, "0.99". However small a risk,
/// it is never certainty: "more than 0.9999".
std::string Certainty(double risk, int decimals = 10);

/// A confidence in percent, to ten digits and never rounded up to 100: "99 %".
std::string Percent(double confidence);

}  // namespace fedgen
