// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fedgen/report/axis.h"
#include "fedgen/report/canvas.h"
#include "fedgen/report/chart.h"
#include "fedgen/report/legend.h"

namespace fedgen {

// What is inside the frame of a chart: lines, dots, bands and marks at their places in the picture.
// The frame itself, the axes and the layout of a figure are chart.cc's.

/// A chart and its place in the picture.
struct ChartPlot {
  const Chart* chart = nullptr;
  AxisSpan x, y;
  bool empty = false;  // no number to draw
  Rectangle frame;

  /// NaN for a number that has no place. A point off the frame is kept near it: far enough that a
  /// line leaves the frame at the right angle for the eye, near enough for any renderer.
  Point At(double at_x, double at_y) const;
  double TickX(const Tick& tick) const {
    return frame.left + frame.width * (tick.position - x.low) / (x.high - x.low);
  }
  double TickY(const Tick& tick) const {
    return frame.bottom() - frame.height * (tick.position - y.low) / (y.high - y.low);
  }
};

/// The intervals of all series that show them as bands.
void DrawBands(const ChartPlot& plot, Canvas& canvas);

/// The lines, bars and dots of all series.
void DrawSeries(const ChartPlot& plot, Canvas& canvas);

/// All marks, and their texts where there is room.
void DrawMarks(const ChartPlot& plot, Canvas& canvas);

/// How a series and a mark look in the legend.
LegendEntry SeriesEntry(const Series& series);
LegendEntry MarkEntry(const MarkSeries& marks);

}  // namespace fedgen
