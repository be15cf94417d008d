// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/chart_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "fedgen/report/picture.h"

namespace fedgen {
namespace {

constexpr Font kMarkFont = {8.5};
constexpr double kMarkSize = 4.2;  // half of a mark's width

// ---- Series -------------------------------------------------------------------------------------

bool Finite(const Point& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

// A point of a series in the picture. `low` is drawn below `high`, so its y is larger.
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

// The points of a series in the picture: one run for each stretch between two gaps.
std::vector<std::vector<Place>> MakeRuns(const Series& series, const ChartPlot& plot) {
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

void DrawBand(const Series& series, const ChartPlot& plot, Canvas& canvas) {
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

void DrawLine(const Series& series, const ChartPlot& plot, Canvas& canvas) {
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
  explicit MarkTexts(const ChartPlot& plot) : frame_(plot.frame) {
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

}  // namespace

Point ChartPlot::At(double at_x, double at_y) const {
  const double up = std::clamp(y.Share(at_y), -20.0, 20.0);
  // On a scale of nines the number 1 is the upper end.
  const double height = y.scale == Scale::kNines ? std::min(up, 1.0) : up;
  return {frame.left + frame.width * std::clamp(x.Share(at_x), -20.0, 20.0),
          frame.bottom() - frame.height * height};
}

void DrawBands(const ChartPlot& plot, Canvas& canvas) {
  for (const Series& series : plot.chart->series) {
    if (series.spread == Spread::kBand) DrawBand(series, plot, canvas);
  }
}

void DrawSeries(const ChartPlot& plot, Canvas& canvas) {
  for (const Series& series : plot.chart->series) DrawLine(series, plot, canvas);
}

void DrawMarks(const ChartPlot& plot, Canvas& canvas) {
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

LegendEntry MarkEntry(const MarkSeries& marks) {
  return {marks.label, 11, [shape = marks.shape](Point left, Canvas& canvas) {
            DrawMark({left.x + 5.5, left.y}, shape, kSoftInk, canvas);
          }};
}

}  // namespace fedgen
