// SPDX-License-Identifier: Apache-2.0
#include "fedgen/base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

namespace fedgen {
namespace {

// Levenshtein distance, one row at a time.
std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, substituted}));
    }
  }
  return row[b.size()];
}

// How many edits make another name of this one: about a third of the longer one, so that "a" is
// near to nothing but itself and "cuont", two edits away, to "count". A group that both begin with
// ("learner.") says nothing about what was meant.
std::size_t MostEdits(std::string_view a, std::string_view b) {
  const auto [end, ignored] = std::ranges::mismatch(a, b);
  const std::size_t shared = a.substr(0, static_cast<std::size_t>(end - a.begin())).rfind('.');
  const std::size_t group = shared == std::string_view::npos ? 0 : shared + 1;
  return (std::max(a.size(), b.size()) - group + 1) / 3;
}

}  // namespace

std::string NearestName(std::string_view name, std::span<const std::string> known) {
  constexpr std::size_t kLongest = 64;  // of the part compared; a hostile key may be megabytes
  const std::string_view head = name.substr(0, kLongest);
  std::string nearest;
  std::size_t best = std::string::npos;
  for (const std::string& candidate : known) {
    const std::size_t distance = EditDistance(head, candidate);
    if (distance < best && distance <= MostEdits(head, candidate)) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string DidYouMean(std::string_view name, std::span<const std::string> known,
                       std::string_view group) {
  const std::string nearest = NearestName(name, known);
  return nearest.empty() ? "" : fmt::format(", did you mean {}{}?", group, nearest);
}

std::string Printable(std::string_view text, std::size_t longest) {
  std::string shown;
  for (const char c : text.substr(0, longest)) {
    if (c >= ' ' && c <= '~') {
      shown += c;
    } else {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text.size() > longest ? shown + "..." : shown;
}

std::string Grouped(std::int64_t number) {
  std::string digits = fmt::format("{}", number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t end = digits.size(); end > first + 3; end -= 3) digits.insert(end - 3, 1, ',');
  return digits;
}

std::string Counted(std::int64_t number, std::string_view one) {
  return fmt::format("{} {}{}", Grouped(number), one, number == 1 ? "" : "s");
}

std::string Certainty(double risk, int decimals) {
  // A millionth of the last decimal: what 1 - 0.01 may lack of 0.99.
  const double scale = std::pow(10.0, decimals);
  const double down = std::floor((1 - risk) * scale + 1e-6) / scale;
  if (down < 1 || risk <= 0) return fmt::format("{:.{}g}", down, decimals);
  return "more than 0." + std::string(static_cast<std::size_t>(decimals), '9');
}

std::string Percent(double confidence) {
  const std::string text = fmt::format("{:.10g}", 100 * confidence);
  return (text == "100" && confidence < 1 ? "more than 99.99999999" : text) + " %";
}

}  // namespace fedgen
