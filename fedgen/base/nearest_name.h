// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace fedgen {

/// The known name with the smallest edit distance to `name` (the first of several); empty if there
/// is none. For messages: `radus: unknown key, did you mean radius?`
std::string NearestName(std::string_view name, std::span<const std::string> known);

}  // namespace fedgen
