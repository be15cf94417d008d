// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fedgen/report/canvas.h"

namespace fedgen {

// The legend below a picture: symbols and what they mean, in lines filled from the left.

struct LegendEntry {
  std::string text;
  double symbol_width = 0;
  /// Draws the symbol to the right of `left` and around its height.
  std::function<void(Point left, Canvas& canvas)> draw;
};

struct PlacedEntry {
  LegendEntry entry;
  Point left;  // of the symbol; counted from the legend's top left corner
};

/// Fills lines of the given width; a text too long for a line is cut.
std::vector<PlacedEntry> PlaceLegend(std::vector<LegendEntry> entries, double width);

/// Of all lines together; 0 without entries.
double LegendHeight(const std::vector<PlacedEntry>& legend);

void DrawLegend(const std::vector<PlacedEntry>& legend, Point corner, Canvas& canvas);

}  // namespace fedgen
