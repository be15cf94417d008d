// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace fedgen {

/// What every error message must be, whatever the input: short, printable, one line.
inline bool IsOneLine(std::string_view message) {
  for (const char c : message) {
    if (c < ' ' || c > '~') return false;
  }
  return !message.empty() && message.size() < 1000;
}

}  // namespace fedgen
