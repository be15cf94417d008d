// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <utility>

#include "fedgen/base/check.h"
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
constexpr Font kMarkFont = {8.5};

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
constexpr double kMarkSize = 4.2;      // half of a mark's width

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

// ---- A chart and its place ----------------------------------------------------------------------

struct Plot {
  const Chart* chart = nullptr;
  AxisSpan x, y;
  bool empty = false;  // no number to draw
  Rectangle frame;

  // May be NaN. What is off the frame is kept near it: far enough to leave it at the right angle
  // for the eye, near enough for any renderer.
  Point At(double at_x, double at_y) const {
    const double up = std::clamp(y.Share(at_y), -20.0, 20.0);
    // On a scale of nines the number 1 is the upper end.
    const double height = y.scale == Scale::kNines ? std::min(up, 1.0) : up;
    return {frame.left + frame.width * std::clamp(x.Share(at_x), -20.0, 20.0),
            frame.bottom() - frame.height * height};
  }
  double TickX(const Tick& tick) const {
    return frame.left + frame.width * (tick.position - x.low) / (x.high - x.low);
  }
  double TickY(const Tick& tick) const {
    return frame.bottom() - frame.height * (tick.position - y.low) / (y.high - y.low);
  }
};

bool Finite(const Point& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

// A run of points without a gap, in the picture; low is below high, so its y is larger.
struct Place {
  Point at;
  double low = 0, high = 0;  // y of the interval's ends; NaN if there is none
  bool dot = true;
};

// Of many points within a third of a unit only the first, the last and the extremes can be seen.
std::vector<Place> Thin(const std::vector<Place>& places) {
  constexpr double kBin = 1.0 / 3;
  std::vector<Place> thinned;
  for (std::size_t begin = 0; begin < places.size();) {
    const double bin = std::floor(places[begin].at.x / kBin);
    std::size_t end = begin;
    while (end < places.size() && std::floor(places[end].at.x / kBin) == bin) ++end;
    if (end - begin <= 4) {
      thinned.insert(thinned.end(), places.begin() + static_cast<std::ptrdiff_t>(begin),
                     places.begin() + static_cast<std::ptrdiff_t>(end));
    } else {
      std::array<std::size_t, 4> kept = {begin, begin, begin, end - 1};
      double low = places[begin].low;
      double high = places[begin].high;
      for (std::size_t place = begin; place < end; ++place) {
        if (places[place].at.y < places[kept[1]].at.y) kept[1] = place;
        if (places[place].at.y > places[kept[2]].at.y) kept[2] = place;
        low = std::fmax(low, places[place].low);
        high = std::fmin(high, places[place].high);
      }
      std::sort(kept.begin(), kept.end());
      const auto last = std::unique(kept.begin(), kept.end());
      for (auto place = kept.begin(); place != last; ++place) {
        thinned.push_back({places[*place].at, low, high, places[*place].dot});
      }
    }
    begin = end;
  }
  return thinned;
}

// The runs of a series between its gaps.
std::vector<std::vector<Place>> MakeRuns(const Series& series, const Plot& plot) {
  std::vector<std::vector<Place>> runs(1);
  for (const SeriesPoint& point : series.points) {
    const Point at = plot.At(point.x, point.y);
    if (!Finite(at)) {
      if (!runs.back().empty()) runs.emplace_back();
      continue;
    }
    runs.back().push_back(
        {at, plot.At(point.x, point.low).y, plot.At(point.x, point.high).y, point.dot});
  }
  for (std::vector<Place>& run : runs) run = Thin(run);
  return runs;
}

// The line through a run: straight, or holding each height until the next place.
std::vector<Point> LineThrough(const std::vector<Place>& run, bool steps) {
  std::vector<Point> line;
  for (const Place& place : run) {
    if (steps && !line.empty()) line.push_back({place.at.x, line.back().y});
    line.push_back(place.at);
  }
  return line;
}

Ink LineInk(const Series& series) {
  return {.line = series.colour,
          .line_width = series.line_width,
          .dash = series.dash,
          .gap = series.gap};
}

Ink BandInk(const Colour& colour) { return {.fill = colour, .fill_alpha = 0.16}; }

void DrawBar(Point at, double low, double high, const Colour& colour, Canvas& canvas) {
  if (!std::isfinite(low + high)) return;
  constexpr double kCap = 3.5;
  const Ink ink = {.line = colour, .line_width = 1.2};
  canvas.Line({at.x, low}, {at.x, high}, ink);
  canvas.Line({at.x - kCap, low}, {at.x + kCap, low}, ink);
  canvas.Line({at.x - kCap, high}, {at.x + kCap, high}, ink);
}

void DrawBand(const Series& series, const Plot& plot, Canvas& canvas) {
  for (const std::vector<Place>& run : MakeRuns(series, plot)) {
    for (std::size_t begin = 0; begin < run.size();) {
      std::vector<Place> upper;
      std::vector<Place> lower;
      std::size_t end = begin;
      for (; end < run.size() && std::isfinite(run[end].low + run[end].high); ++end) {
        upper.push_back({{run[end].at.x, run[end].high}});
        lower.push_back({{run[end].at.x, run[end].low}});
      }
      std::vector<Point> outline = LineThrough(upper, series.steps);
      const std::vector<Point> back = LineThrough(lower, series.steps);
      outline.insert(outline.end(), back.rbegin(), back.rend());
      if (upper.size() >= 2) canvas.Polygon(outline, BandInk(series.colour));
      // A band of no width would not be seen.
      if (upper.size() == 1) {
        DrawBar(run[begin].at, run[begin].low, run[begin].high, series.colour, canvas);
      }
      begin = end + 1;
    }
  }
}

void DrawDot(Point at, double radius, const Colour& colour, Canvas& canvas) {
  canvas.Circle(at, radius, {.fill = colour, .line = kPaper, .line_width = 0.8});
}

void DrawSeries(const Series& series, const Plot& plot, Canvas& canvas) {
  for (const std::vector<Place>& run : MakeRuns(series, plot)) {
    if (series.line_width > 0) {
      const std::vector<Point> line = LineThrough(run, series.steps);
      if (line.size() >= 2) canvas.Polyline(line, LineInk(series));
      // A number between two gaps is a line of no length.
      if (line.size() == 1 && series.dot_radius == 0) {
        canvas.Circle(line[0], 0.9 * series.line_width, {.fill = series.colour});
      }
    }
    for (const Place& place : run) {
      if (series.spread == Spread::kBars && place.dot) {
        DrawBar(place.at, place.low, place.high, series.colour, canvas);
      }
    }
    for (const Place& place : run) {
      if (series.dot_radius > 0 && place.dot) {
        DrawDot(place.at, series.dot_radius, series.colour, canvas);
      }
    }
  }
}

// ---- Marks --------------------------------------------------------------------------------------

void DrawMark(Point at, MarkShape shape, const Colour& colour, Canvas& canvas) {
  const Ink ink = {.fill = colour, .line = kPaper, .line_width = 1};
  const double half = kMarkSize;
  switch (shape) {
    case MarkShape::kTriangle: {
      const Point corners[] = {{at.x, at.y - 1.25 * half},
                               {at.x + 1.15 * half, at.y + 0.8 * half},
                               {at.x - 1.15 * half, at.y + 0.8 * half}};
      return canvas.Polygon(corners, ink);
    }
    case MarkShape::kSquare:
      return canvas.Box({at.x - 0.85 * half, at.y - 0.85 * half, 1.7 * half, 1.7 * half}, ink);
    case MarkShape::kDiamond: {
      const Point corners[] = {{at.x, at.y - 1.25 * half},
                               {at.x + 1.25 * half, at.y},
                               {at.x, at.y + 1.25 * half},
                               {at.x - 1.25 * half, at.y}};
      return canvas.Polygon(corners, ink);
    }
  }
}

// Half of each: a mark's colour, dark enough to read.
Colour Mix(const Colour& a, const Colour& b) {
  return {(a.red + b.red) / 2, (a.green + b.green) / 2, (a.blue + b.blue) / 2};
}

bool Overlap(const Rectangle& a, const Rectangle& b) {
  return a.left < b.right() && b.left < a.right() && a.top < b.bottom() && b.top < a.bottom();
}

bool Contains(const Rectangle& outer, const Rectangle& inner) {
  return outer.left <= inner.left && inner.right() <= outer.right() && outer.top <= inner.top &&
         inner.bottom() <= outer.bottom();
}

// Places texts beside marks, where they cover no mark and no other text and as little of the lines
// as can be. A text without such a place is left out.
class MarkTexts {
 public:
  explicit MarkTexts(const Plot& plot) : frame_(plot.frame) {
    for (const Series& series : plot.chart->series) {
      for (const std::vector<Place>& run : MakeRuns(series, plot)) {
        const std::vector<Point> line = LineThrough(run, series.steps);
        for (std::size_t corner = 0; corner < line.size(); ++corner) {
          AddSegment(line[corner == 0 ? 0 : corner - 1], line[corner]);
        }
      }
    }
    for (const MarkSeries& marks : plot.chart->marks) {
      for (const Mark& mark : marks.marks) {
        const Point at = plot.At(mark.x, mark.y);
        if (Finite(at)) {
          taken_.push_back({at.x - kMarkSize, at.y - kMarkSize, 2 * kMarkSize, 2 * kMarkSize});
        }
      }
    }
  }

  void Draw(Point at, const Mark& mark, Canvas& canvas) {
    if (mark.text.empty()) return;
    const double width = TextWidth(mark.text, kMarkFont);
    const double height = kMarkFont.size;
    const double away = kMarkSize + 3;
    const Point beside = {away + width / 2, 0.8 * height};
    const Point middles[] = {{at.x, at.y - away - height / 2},
                             {at.x + beside.x, at.y},
                             {at.x - beside.x, at.y},
                             {at.x, at.y + away + height / 2},
                             {at.x + beside.x, at.y - beside.y},
                             {at.x - beside.x, at.y - beside.y},
                             {at.x + beside.x, at.y + beside.y},
                             {at.x - beside.x, at.y + beside.y}};
    std::optional<Rectangle> best;
    std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
    for (const Point& middle : middles) {
      const Rectangle box = {middle.x - width / 2 - 1, middle.y - height / 2 - 0.5, width + 2,
                             height + 1};
      if (!Contains(frame_, box)) continue;
      if (std::any_of(taken_.begin(), taken_.end(),
                      [&](const Rectangle& other) { return Overlap(box, other); })) {
        continue;
      }
      const std::int64_t covered = std::count_if(inked_.begin(), inked_.end(), [&](const Point& p) {
        return box.left <= p.x && p.x <= box.right() && box.top <= p.y && p.y <= box.bottom();
      });
      if (covered >= fewest) continue;
      fewest = covered;
      best = box;
    }
    if (!best) return;
    taken_.push_back(*best);
    if (fewest > 0) canvas.Box(*best, {.fill = kPaper, .fill_alpha = 0.75});
    canvas.Text({best->left + 1, best->top + best->height / 2 + kBaseline * kMarkFont.size},
                mark.text, kMarkFont, Mix(mark.colour, kInk));
  }

 private:
  // A line every other unit as points.
  void AddSegment(Point from, Point to) {
    const double length = std::hypot(to.x - from.x, to.y - from.y);
    const int pieces = static_cast<int>(std::ceil(length / 2)) + 1;
    for (int piece = 0; piece < pieces; ++piece) {
      const double share = static_cast<double>(piece) / pieces;
      inked_.push_back({from.x + share * (to.x - from.x), from.y + share * (to.y - from.y)});
    }
  }

  Rectangle frame_;
  std::vector<Point> inked_;      // points on the lines
  std::vector<Rectangle> taken_;  // marks and texts
};

void DrawMarks(const Plot& plot, Canvas& canvas) {
  for (const MarkSeries& marks : plot.chart->marks) {
    for (const Mark& mark : marks.marks) {
      const Point at = plot.At(mark.x, mark.y);
      if (Finite(at)) DrawMark(at, marks.shape, mark.colour, canvas);
    }
  }
  MarkTexts texts(plot);
  for (const MarkSeries& marks : plot.chart->marks) {
    for (const Mark& mark : marks.marks) {
      const Point at = plot.At(mark.x, mark.y);
      if (Finite(at)) texts.Draw(at, mark, canvas);
    }
  }
}

// ---- Frame, grid, reference lines ---------------------------------------------------------------

void DrawGrid(const Plot& plot, Canvas& canvas) {
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

void DrawAxes(const Plot& plot, double longest_tick_y, Canvas& canvas) {
  const Rectangle& frame = plot.frame;
  canvas.Box(frame, kFrameInk);
  for (const Tick& tick : plot.x.ticks) {
    if (tick.text.empty()) continue;
    const double x = plot.TickX(tick);
    canvas.Line({x, frame.bottom()}, {x, frame.bottom() + kTickLength}, kFrameInk);
    canvas.Text({x, frame.bottom() + kTickLength + 11}, tick.text, kTickFont, kSoftInk, 0.5);
  }
  for (const Tick& tick : plot.y.ticks) {
    if (tick.text.empty()) continue;
    const double y = plot.TickY(tick);
    canvas.Line({frame.left - kTickLength, y}, {frame.left, y}, kFrameInk);
    canvas.Text({frame.left - kTickLength - 4, y + kBaseline * kTickFont.size}, tick.text,
                kTickFont, kSoftInk, 1);
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

void DrawReferences(const Plot& plot, Canvas& canvas) {
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

void DrawChart(const Plot& plot, double longest_tick_y, Canvas& canvas) {
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
  for (const Series& series : chart.series) {
    if (series.spread == Spread::kBand) DrawBand(series, plot, canvas);
  }
  canvas.EndClip();
  DrawAxes(plot, longest_tick_y, canvas);
  DrawReferences(plot, canvas);
  // Lines and dots at the very edge keep their full width.
  canvas.BeginClip({frame.left - 3, frame.top - 3, frame.width + 6, frame.height + 6});
  for (const Series& series : chart.series) DrawSeries(series, plot, canvas);
  DrawMarks(plot, canvas);
  canvas.EndClip();
}

// ---- The legend ---------------------------------------------------------------------------------

LegendEntry SeriesEntry(const Series& series) {
  Series look = series;
  look.points.clear();
  return {series.label, 26, [look](Point left, Canvas& canvas) {
            const Point middle = {left.x + 13, left.y};
            if (look.spread == Spread::kBand) {
              canvas.Box({left.x, left.y - 5.5, 26, 11}, BandInk(look.colour));
            }
            if (look.line_width > 0) canvas.Line(left, {left.x + 26, left.y}, LineInk(look));
            if (look.spread == Spread::kBars) {
              DrawBar(middle, left.y + 6, left.y - 6, look.colour, canvas);
            }
            if (look.dot_radius > 0) DrawDot(middle, look.dot_radius, look.colour, canvas);
          }};
}

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
      if (marks.marks.empty()) continue;
      add({marks.label, 11, [shape = marks.shape](Point left, Canvas& canvas) {
             DrawMark({left.x + 5.5, left.y}, shape, kSoftInk, canvas);
           }});
    }
  }
  return legend;
}

// ---- Layout and drawing -------------------------------------------------------------------------

struct Layout {
  double width = 0, height = 0;
  double text_left = 0;  // of titles and legend
  std::vector<Plot> plots;
  std::vector<double> longest_tick_y;  // [columns]
  Point legend_corner;                 // its top left
  std::vector<PlacedEntry> legend;
};

Plot MakePlot(const Chart& chart, const ChartFigure& figure) {
  Plot plot;
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
    const Plot& plot = layout.plots.emplace_back(MakePlot(chart, figure));
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

SeriesStyle StyleOfSeries(int number) {
  FEDGEN_CHECK(number >= 0, "series {}", number);
  constexpr std::array<Colour, 8> kColours = {Rgb(0x784bd2), Rgb(0xf09600), Rgb(0x3c785a),
                                              Rgb(0x4bc3c3), Rgb(0xb43c00), Rgb(0xa5a5ff),
                                              Rgb(0x873c87), Rgb(0xc3b478)};
  const auto index = static_cast<std::size_t>(number);
  const std::size_t cycle = index / kColours.size();
  SeriesStyle style = {kColours[index % kColours.size()]};
  if (cycle > 0) style = {style.colour, 5, 1 + 2 * static_cast<double>(cycle)};
  return style;
}

Result<void> SaveChart(const std::string& path, const ChartFigure& figure, IfExists if_exists) {
  FEDGEN_CHECK(!figure.charts.empty(), "a figure without charts");
  FEDGEN_CHECK(figure.columns >= 1, "columns = {}", figure.columns);
  FEDGEN_CHECK(figure.chart_width >= 100 && figure.chart_height >= 60, "charts of {} x {}",
               figure.chart_width, figure.chart_height);
  Result<PictureFile> file = PictureFile::Create(path, if_exists);
  if (!file) return file.error();
  const Layout layout = MakeLayout(figure);
  return file->Save(figure.title, layout.width, layout.height,
                    [&](Canvas& canvas) { DrawFigure(figure, layout, canvas); });
}

}  // namespace fedgen
