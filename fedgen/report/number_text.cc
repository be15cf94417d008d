// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/number_text.h"

#include <fmt/format.h>

namespace fedgen {

std::string Grouped(std::int64_t number) {
  std::string digits = fmt::format("{}", number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t end = digits.size(); end > first + 3; end -= 3) digits.insert(end - 3, 1, ',');
  return digits;
}

std::string Counted(std::int64_t number, std::string_view one) {
  return fmt::format("{} {}{}", Grouped(number), one, number == 1 ? "" : "s");
}

}  // namespace fedgen
