// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "fedgen/base/file.h"
#include "fedgen/base/result.h"
#include "fedgen/report/axis.h"
#include "fedgen/report/canvas.h"

namespace fedgen {

// Line charts: how numbers go over rounds, seconds or settings. A figure is a grid of charts with
// one title above and one legend below, so that nothing ever covers data.
//
// A chart is described by plain numbers in the units of its axes and drawn by SaveChart. What is
// not finite is not drawn: a y that is NaN is a gap in its line, a low or high that is NaN means no
// interval there. A chart without any number says so in words. Long series are thinned to what the
// picture can show; extremes stay.

struct SeriesPoint {
  double x = 0, y = 0;
  double low = std::numeric_limits<double>::quiet_NaN();  // interval of y
  double high = std::numeric_limits<double>::quiet_NaN();
  bool dot = true;  // false for a corner of the line where nothing was measured
};

/// How the intervals of a series are shown.
enum class Spread { kNone, kBand, kBars };

struct Series {
  std::string label = {};  // in the legend; series of one label share an entry, empty has none
  Colour colour = {};
  std::vector<SeriesPoint> points = {};  // x does not decrease
  double line_width = 1.8;               // 0 for no line
  double dash = 0, gap = 0;              // as in Ink
  bool steps = false;                    // y holds until the next x
  double dot_radius = 0;                 // of the dots; 0 for none
  Spread spread = Spread::kNone;
};

enum class MarkShape { kTriangle, kSquare, kDiamond };

/// Something that happened at a place of the chart.
struct Mark {
  double x = 0, y = 0;
  Colour colour = {};
  std::string text = {};  // beside it, if there is room; may be empty
};

/// Marks of one meaning.
struct MarkSeries {
  std::string label = {};  // in the legend
  MarkShape shape = MarkShape::kTriangle;
  std::vector<Mark> marks = {};
};

/// A horizontal line, named to the right of the frame.
struct ReferenceLine {
  double y = 0;
  std::string label = {};
  Colour colour = Rgb(0x6d757d);
};

struct Chart {
  std::string title = {};  // may be empty
  Axis x = {}, y = {};
  std::vector<Series> series = {};  // later ones are drawn over earlier ones
  std::vector<MarkSeries> marks = {};
  std::vector<ReferenceLine> references = {};
};

struct ChartFigure {
  std::string title = {};          // above all; may be empty
  std::string subtitle = {};       // below it: sample size, confidence, where it comes from
  std::vector<Chart> charts = {};  // in reading order, at least one
  int columns = 2;                 // charts in a row, >= 1
  double chart_width = 420;        // of a frame
  double chart_height = 270;
};

/// The look of the n-th of several equal series, n >= 0. Eight colours that stay apart for normal
/// vision and for full protan-, deuter- and tritanopia, from each other and from kInk; from the
/// ninth on they come again in dashes.
LineStyle StyleOfSeries(int number);

/// Draws the figure and writes it. The ending of `path` must be .svg or .png. Texts are UTF-8. The
/// same figure gives the same bytes, on one system with one set of fonts. On failure nothing is
/// left behind and what was at `path` is still there.
Result<void> SaveChart(const std::string& path, const ChartFigure& figure, IfExists if_exists);

}  // namespace fedgen
