// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/legend.h"

#include <utility>

#include "fedgen/report/picture.h"

namespace fedgen {
namespace {

constexpr Font kLegendFont = {10.5};
constexpr double kLine = 22;      // from line to line
constexpr double kGap = 15;       // between entries
constexpr double kSymbolGap = 7;  // between a symbol and its text

}  // namespace

std::vector<PlacedEntry> PlaceLegend(std::vector<LegendEntry> entries, double width) {
  std::vector<PlacedEntry> legend;
  Point left = {0, kLine / 2};
  for (LegendEntry& entry : entries) {
    const double before_text = entry.symbol_width + kSymbolGap;
    entry.text = FitText(entry.text, kLegendFont, width - before_text);
    const double entry_width = before_text + TextWidth(entry.text, kLegendFont);
    if (left.x > 0 && left.x + entry_width > width) left = {0, left.y + kLine};
    legend.push_back({std::move(entry), left});
    left.x += entry_width + kGap;
  }
  return legend;
}

double LegendHeight(const std::vector<PlacedEntry>& legend) {
  return legend.empty() ? 0 : legend.back().left.y + kLine / 2;
}

void DrawLegend(const std::vector<PlacedEntry>& legend, Point corner, Canvas& canvas) {
  for (const auto& [entry, offset] : legend) {
    const Point at = {corner.x + offset.x, corner.y + offset.y};
    entry.draw(at, canvas);
    canvas.Text({at.x + entry.symbol_width + kSymbolGap, at.y + kBaseline * kLegendFont.size},
                entry.text, kLegendFont, kSoftInk);
  }
}

}  // namespace fedgen
