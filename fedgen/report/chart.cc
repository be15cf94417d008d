// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "fedgen/base/check.h"
#include "fedgen/report/chart_plot.h"
#include "fedgen/report/legend.h"
#include "fedgen/report/picture.h"

namespace fedgen {
namespace {

// ---- Colours and sizes --------------------------------------------------------------------------

constexpr Colour kGrid = Rgb(0xe6e9ec);
constexpr Colour kFineGrid = Rgb(0xf3f4f6);  // between the ticks of a logarithmic axis

constexpr Font kSubtitleFont = {10.5};
constexpr Font kChartTitleFont = {11.5, true};
constexpr Font kAxisFont = {10.5};

constexpr double kTitleLine = 26;
constexpr double kSubtitleLine = 19;
constexpr double kHeadGap = 10;          // below title and subtitle
constexpr double kChartTitleSpace = 22;  // a chart's title and its distance to the frame
constexpr double kAxisSpaceX = 42;       // tick labels and name of the x axis
constexpr double kAxisGapY = 12;         // from the name of the y axis to its longest tick label
constexpr double kColumnGap = 28;
constexpr double kRowGap = 16;
constexpr double kReferenceGap = 14;   // from the frame to the name of a reference line
constexpr double kReferenceLine = 13;  // between such names, at least

const Ink kGridInk = {.line = kGrid, .line_width = 0.8};
const Ink kFineGridInk = {.line = kFineGrid, .line_width = 0.8};

Extent ExtentX(const Chart& chart) {
  Extent extent;
  for (const Series& series : chart.series) {
    for (const SeriesPoint& point : series.points) {
      if (!std::isnan(PositionOn(chart.y.scale, point.y)))
        extent.Enclose(PositionOn(chart.x.scale, point.x));
    }
  }
  for (const MarkSeries& marks : chart.marks) {
    for (const Mark& mark : marks.marks) extent.Enclose(PositionOn(chart.x.scale, mark.x));
  }
  return extent;
}

Extent ExtentY(const Chart& chart) {
  Extent extent;
  // On a scale of nines, 1 is at the end of the axis, wherever that is.
  const auto enclose = [&](double number) {
    if (chart.y.scale != Scale::kNines || number < 1)
      extent.Enclose(PositionOn(chart.y.scale, number));
  };
  for (const Series& series : chart.series) {
    for (const SeriesPoint& point : series.points) {
      if (std::isnan(PositionOn(chart.x.scale, point.x))) continue;
      enclose(point.y);
      if (series.spread == Spread::kNone) continue;
      enclose(point.low);
      enclose(point.high);
    }
  }
  for (const MarkSeries& marks : chart.marks) {
    for (const Mark& mark : marks.marks) enclose(mark.y);
  }
  for (const ReferenceLine& line : chart.references) enclose(line.y);
  return extent;
}

// ---- Frame, grid, reference lines ---------------------------------------------------------------

void DrawGrid(const ChartPlot& plot, Canvas& canvas) {
  const Rectangle& frame = plot.frame;
  for (const bool fine : {true, false}) {
    const Ink& ink = fine ? kFineGridInk : kGridInk;
    for (const Tick& tick : plot.x.ticks) {
      if (tick.text.empty() != fine) continue;
      const double x = plot.TickX(tick);
      canvas.Line({x, frame.top}, {x, frame.bottom()}, ink);
    }
    for (const Tick& tick : plot.y.ticks) {
      if (tick.text.empty() != fine) continue;
      const double y = plot.TickY(tick);
      canvas.Line({frame.left, y}, {frame.right(), y}, ink);
    }
  }
}

void DrawAxes(const ChartPlot& plot, double longest_tick_y, Canvas& canvas) {
  const Rectangle& frame = plot.frame;
  canvas.Box(frame, kFrameInk);
  for (const Tick& tick : plot.x.ticks) {
    if (!tick.text.empty()) DrawTickX(frame, plot.TickX(tick), tick.text, canvas);
  }
  for (const Tick& tick : plot.y.ticks) {
    if (!tick.text.empty()) DrawTickY(frame, plot.TickY(tick), tick.text, canvas);
  }
  canvas.Text({frame.left + frame.width / 2, frame.bottom() + 32},
              FitText(plot.chart->x.label, kAxisFont, frame.width), kAxisFont, kSoftInk, 0.5);
  canvas.Text(
      {frame.left - kTickLength - 4 - longest_tick_y - kAxisGapY + 3, frame.top + frame.height / 2},
      FitText(plot.chart->y.label, kAxisFont, frame.height), kAxisFont, kSoftInk, 0.5,
      std::numbers::pi / 2);
}

// Heights for texts that belong to the given ascending heights, at least a line apart and between
// `top` and `bottom` if they fit there.
std::vector<double> SpreadHeights(std::vector<double> heights, double top, double bottom) {
  for (std::size_t text = 1; text < heights.size(); ++text) {
    heights[text] = std::max(heights[text], heights[text - 1] + kReferenceLine);
  }
  double lowest = bottom;
  for (std::size_t text = heights.size(); text-- > 0;) {
    heights[text] = std::max(std::min(heights[text], lowest), top);
    lowest = heights[text] - kReferenceLine;
  }
  return heights;
}

void DrawReferences(const ChartPlot& plot, Canvas& canvas) {
  struct Reference {
    const ReferenceLine* line;
    double height;
  };
  const Rectangle& frame = plot.frame;
  std::vector<Reference> references;
  for (const ReferenceLine& line : plot.chart->references) {
    const double height = frame.bottom() - frame.height * plot.y.Share(line.y);
    if (height >= frame.top - 0.5 && height <= frame.bottom() + 0.5) {
      references.push_back({&line, height});
    }
  }
  std::sort(references.begin(), references.end(),
            [](const Reference& a, const Reference& b) { return a.height < b.height; });
  std::vector<double> heights;
  heights.reserve(references.size());
  for (const Reference& reference : references) heights.push_back(reference.height);
  heights = SpreadHeights(heights, frame.top + 3, frame.bottom() - 3);
  for (std::size_t index = 0; index < references.size(); ++index) {
    const auto& [line, height] = references[index];
    canvas.Line({frame.left, height}, {frame.right(), height},
                {.line = line->colour, .line_width = 1, .dash = 5, .gap = 3});
    const Point way[] = {{frame.right(), height},
                         {frame.right() + 4, height},
                         {frame.right() + kReferenceGap - 5, heights[index]},
                         {frame.right() + kReferenceGap - 3, heights[index]}};
    canvas.Polyline(way, {.line = line->colour, .line_width = 0.8});
    canvas.Text({frame.right() + kReferenceGap, heights[index] + kBaseline * kTickFont.size},
                line->label, kTickFont, kSoftInk);
  }
}

void DrawChart(const ChartPlot& plot, double longest_tick_y, Canvas& canvas) {
  const Chart& chart = *plot.chart;
  const Rectangle& frame = plot.frame;
  canvas.Text({frame.left, frame.top - 9}, FitText(chart.title, kChartTitleFont, frame.width),
              kChartTitleFont, kInk);
  if (plot.empty) {
    canvas.Text({frame.left + frame.width / 2, frame.top + frame.height / 2}, "no data yet",
                kAxisFont, kFrame, 0.5);
  } else {
    DrawGrid(plot, canvas);
  }
  canvas.BeginClip(frame);
  DrawBands(plot, canvas);
  canvas.EndClip();
  DrawAxes(plot, longest_tick_y, canvas);
  DrawReferences(plot, canvas);
  // Lines and dots at the very edge keep their full width.
  canvas.BeginClip({frame.left - 3, frame.top - 3, frame.width + 6, frame.height + 6});
  DrawSeries(plot, canvas);
  DrawMarks(plot, canvas);
  canvas.EndClip();
}

// ---- The legend ---------------------------------------------------------------------------------

std::vector<LegendEntry> MakeLegend(const ChartFigure& figure) {
  std::vector<LegendEntry> legend;
  const auto add = [&](LegendEntry entry) {
    const bool known = std::any_of(legend.begin(), legend.end(),
                                   [&](const LegendEntry& e) { return e.text == entry.text; });
    if (!entry.text.empty() && !known) legend.push_back(std::move(entry));
  };
  for (const Chart& chart : figure.charts) {
    for (const Series& series : chart.series) {
      if (!series.points.empty()) add(SeriesEntry(series));
    }
  }
  for (const Chart& chart : figure.charts) {
    for (const MarkSeries& marks : chart.marks) {
      if (!marks.marks.empty()) add(MarkEntry(marks));
    }
  }
  return legend;
}

// ---- Layout and drawing -------------------------------------------------------------------------

struct Layout {
  double width = 0, height = 0;
  double text_left = 0;  // of titles and legend
  std::vector<ChartPlot> plots;
  std::vector<double> longest_tick_y;  // [columns]
  Point legend_corner;                 // its top left
  std::vector<PlacedEntry> legend;
};

ChartPlot MakePlot(const Chart& chart, const ChartFigure& figure) {
  ChartPlot plot;
  plot.chart = &chart;
  const Extent x = ExtentX(chart);
  const Extent y = ExtentY(chart);
  plot.empty = x.empty() || y.empty();
  const bool bars = std::any_of(chart.series.begin(), chart.series.end(), [](const Series& series) {
    return series.spread == Spread::kBars;
  });
  const int most_x = std::max(2, static_cast<int>(figure.chart_width / 60));
  const int most_y = std::max(2, static_cast<int>(figure.chart_height / 32));
  plot.x = MakeSpan(chart.x, x, bars ? 0.05 : 0.02, most_x);
  plot.y = MakeSpan(chart.y, y, 0.05, most_y);
  if (plot.empty) plot.x.ticks.clear();
  return plot;
}

Layout MakeLayout(const ChartFigure& figure) {
  const std::size_t num_charts = figure.charts.size();
  const std::size_t columns = std::min(static_cast<std::size_t>(figure.columns), num_charts);
  Layout layout;
  layout.longest_tick_y.resize(columns);
  std::vector<double> right_space(columns);  // names of reference lines
  bool titled = false;
  for (std::size_t index = 0; index < num_charts; ++index) {
    const Chart& chart = figure.charts[index];
    const ChartPlot& plot = layout.plots.emplace_back(MakePlot(chart, figure));
    double& longest = layout.longest_tick_y[index % columns];
    for (const Tick& tick : plot.y.ticks) {
      longest = std::max(longest, TextWidth(tick.text, kTickFont));
    }
    double& right = right_space[index % columns];
    for (const ReferenceLine& line : chart.references) {
      right = std::max(right, kReferenceGap + TextWidth(line.label, kTickFont));
    }
    titled = titled || !chart.title.empty();
  }

  const double head =
      (figure.title.empty() ? 0 : kTitleLine) + (figure.subtitle.empty() ? 0 : kSubtitleLine);
  const double above_chart = titled ? kChartTitleSpace : 0;
  const double row_height = above_chart + figure.chart_height + kAxisSpaceX + kRowGap;
  const double top = kMargin + head + (head > 0 ? kHeadGap : 0);
  double left = kMargin;
  for (std::size_t column = 0; column < columns; ++column) {
    left += kTickLength + 4 + layout.longest_tick_y[column] + kAxisGapY + kAxisFont.size;
    if (column == 0) layout.text_left = left;
    for (std::size_t index = column; index < num_charts; index += columns) {
      const std::size_t row = index / columns;
      layout.plots[index].frame = {left, top + static_cast<double>(row) * row_height + above_chart,
                                   figure.chart_width, figure.chart_height};
    }
    left += figure.chart_width + right_space[column] + kColumnGap;
  }
  const double right = left - kColumnGap;
  layout.width = std::ceil(right + kMargin);
  layout.legend_corner = {layout.text_left, layout.plots.back().frame.bottom() + kAxisSpaceX + 8};
  layout.legend = PlaceLegend(MakeLegend(figure), right - layout.text_left);
  layout.height = std::ceil(layout.legend_corner.y + LegendHeight(layout.legend) + kMargin - 8);
  return layout;
}

void DrawFigure(const ChartFigure& figure, const Layout& layout, Canvas& canvas) {
  const double left = layout.text_left;
  const double width = layout.width - kMargin - left;
  double baseline = kMargin + kTitleFont.size - 4;
  if (!figure.title.empty()) {
    canvas.Text({left, baseline}, FitText(figure.title, kTitleFont, width), kTitleFont, kInk);
    baseline += kSubtitleLine;
  }
  canvas.Text({left, baseline}, FitText(figure.subtitle, kSubtitleFont, width), kSubtitleFont,
              kSoftInk);
  for (std::size_t index = 0; index < layout.plots.size(); ++index) {
    DrawChart(layout.plots[index], layout.longest_tick_y[index % layout.longest_tick_y.size()],
              canvas);
  }
  DrawLegend(layout.legend, layout.legend_corner, canvas);
}

}  // namespace

LineStyle StyleOfSeries(int number) {
  FEDGEN_CHECK(number >= 0, "series {}", number);
  constexpr std::array<Colour, 8> kColours = {Rgb(0x784bd2), Rgb(0xf09600), Rgb(0x3c785a),
                                              Rgb(0x4bc3c3), Rgb(0xb43c00), Rgb(0xa5a5ff),
                                              Rgb(0x873c87), Rgb(0xc3b478)};
  const auto index = static_cast<std::size_t>(number);
  const std::size_t cycle = index / kColours.size();
  LineStyle style = {kColours[index % kColours.size()]};
  if (cycle > 0) style = {style.colour, 5, 1 + 2 * static_cast<double>(cycle)};
  return style;
}

Result<void> SaveChart(const std::string& path, const ChartFigure& figure, IfExists if_exists) {
  FEDGEN_CHECK(!figure.charts.empty(), "a figure without charts");
  FEDGEN_CHECK(figure.columns >= 1, "columns = {}", figure.columns);
  FEDGEN_CHECK(figure.chart_width >= 100 && figure.chart_height >= 60, "charts of {} x {}",
               figure.chart_width, figure.chart_height);
  PictureFile file = FEDGEN_TRY(PictureFile::Create(path, if_exists));
  const Layout layout = MakeLayout(figure);
  return file.Save(figure.title, layout.width, layout.height,
                   [&](Canvas& canvas) { DrawFigure(figure, layout, canvas); });
}

}  // namespace fedgen
