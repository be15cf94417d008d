// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/run_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "fedgen/base/check.h"
#include "fedgen/base/text.h"
#include "fedgen/report/picture.h"

namespace fedgen {
namespace {

constexpr Colour kBound = Rgb(0xb43c00);
constexpr Colour kActual = Rgb(0x1f5fc4);
// Beyond this many learners, colours no longer tell them apart.
constexpr std::size_t kMostColoured = 16;
constexpr Colour kManyLearners = Rgb(0x9fb1c6);

// The rounds of both tables, with some air: the same for all charts of a figure.
Axis RoundAxis(const std::vector<MetricsRow>& metrics, const std::vector<TruthRow>& truth) {
  Axis axis = {.label = "round", .whole = true};
  if (metrics.empty() && truth.empty()) return axis;
  int first = std::numeric_limits<int>::max();
  int last = 0;
  // Both are sorted by round.
  if (!metrics.empty()) {
    first = metrics.front().round;
    last = metrics.back().round;
  }
  if (!truth.empty()) {
    first = std::min(first, truth.front().round);
    last = std::max(last, truth.back().round);
  }
  const double air = last > first ? 0.02 * (last - first) : 0.5;
  axis.low = first - air;
  axis.high = last + air;
  return axis;
}

// ---- Truth --------------------------------------------------------------------------------------

// The measurements of a learner's policy, or of the incumbent (no learner).
std::vector<TruthRow> RowsOf(const std::vector<TruthRow>& truth,
                             const std::optional<int>& learner) {
  std::vector<TruthRow> rows;
  std::copy_if(truth.begin(), truth.end(), std::back_inserter(rows),
               [&](const TruthRow& row) { return row.learner == learner; });
  return rows;
}

// Safe arrival rates with their intervals, against x(row).
template <typename X>
std::vector<SeriesPoint> RatePoints(const std::vector<TruthRow>& rows, const X& x) {
  std::vector<SeriesPoint> points;
  for (const TruthRow& row : rows) {
    const ProportionInterval interval = SafeRateInterval(row);
    points.push_back({x(row), row.safe_rate, interval.low, interval.high});
  }
  return points;
}

std::vector<SeriesPoint> CostPoints(const std::vector<TruthRow>& rows) {
  std::vector<SeriesPoint> points;
  for (const TruthRow& row : rows) {
    const ProportionInterval interval = MeanCostInterval(row);
    points.push_back({static_cast<double>(row.round), row.cost, interval.low, interval.high});
  }
  return points;
}

double RoundOf(const TruthRow& row) { return row.round; }

// ---- Texts --------------------------------------------------------------------------------------

std::string Join(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!text.empty()) text += between;
    text += part;
  }
  return text;
}

std::string TitleText(std::string what, const RunFigureOptions& options) {
  return Join({std::move(what), options.title}, " \u2013 ");
}

// "2,000 fresh worlds", or between which numbers. Requires rows.
std::string WorldsText(const std::vector<TruthRow>& rows) {
  const auto [fewest, most] =
      std::minmax_element(rows.begin(), rows.end(),
                          [](const TruthRow& a, const TruthRow& b) { return a.worlds < b.worlds; });
  const std::string at_most = Counted(most->worlds, "fresh world");
  return fewest->worlds == most->worlds ? at_most
                                        : fmt::format("{} to {}", Grouped(fewest->worlds), at_most);
}

// `what` was measured, in how many worlds, and what the band is an interval of; empty without a
// band.
std::string Subtitle(const RunFigureOptions& options, std::string_view what,
                     const std::vector<TruthRow>& rows, std::string_view band) {
  std::string truth;
  if (!rows.empty()) truth = fmt::format("{} measured in {}", what, WorldsText(rows));
  if (!rows.empty() && !band.empty()) truth += fmt::format("; band: 99 % interval of {}", band);
  return Join({options.config, truth}, "; ");
}

// ---- Events -------------------------------------------------------------------------------------

// Marks with the same text in the same round share one text, beside the highest of them.
void ShareTexts(std::vector<Mark>& marks) {
  std::map<std::pair<double, std::string>, std::vector<Mark*>> groups;
  for (Mark& mark : marks) groups[{mark.x, mark.text}].push_back(&mark);
  for (auto& [what, group] : groups) {
    if (group.size() == 1) continue;
    for (Mark* const mark : group) mark->text.clear();
    Mark* const highest = *std::max_element(
        group.begin(), group.end(), [](const Mark* a, const Mark* b) { return a->y < b->y; });
    highest->text = fmt::format("{} adopt {}", group.size(), what.second);
  }
}

// Where each learner stops and adopts; `height` is where in the chart.
template <typename Height>
std::vector<MarkSeries> MakeEvents(const std::vector<MetricsRow>& rows, const Height& height,
                                   const std::map<int, Colour>& colours) {
  MarkSeries stops = {"learner stops", MarkShape::kSquare, {}};
  MarkSeries adoptions = {
      "learner adopts a policy from another (dotted: the change)", MarkShape::kTriangle, {}};
  for (const MetricsRow& row : rows) {
    const Colour& colour = colours.at(row.learner);
    if (row.state == LearnerPhase::kStopping) {
      stops.marks.push_back({static_cast<double>(row.round), height(row), colour, ""});
    }
    if (row.adopted_from) {
      adoptions.marks.push_back({static_cast<double>(row.round), height(row), colour,
                                 "from " + row.adopted_from->name()});
    }
  }
  ShareTexts(adoptions.marks);
  return {std::move(stops), std::move(adoptions)};
}

// The rounds in which a learner takes stock: it measures in many more worlds than usual (Eq. 43).
// An adoption in such a round has its own mark.
MarkSeries MakeLargeMeasurements(const std::vector<MetricsRow>& rows, const auto& height) {
  MarkSeries large = {"large measurement: many worlds, small b", MarkShape::kDiamond, {}};
  for (const MetricsRow& row : rows) {
    if (!row.took_stock || row.adopted_from) continue;
    large.marks.push_back({static_cast<double>(row.round), height(row), kInk, ""});
  }
  return large;
}

// ---- Between two measurements of a learner ------------------------------------------------------

// What is known of a learner's policy from its measurements and from when it changed.
struct TruthLine {
  std::vector<SeriesPoint> points;  // flat while the policy was kept, with a gap at adoptions
  std::vector<SeriesPoint> jumps;   // over those gaps: before, after, and a gap behind each pair
};

// `points` are measurements of a learner's policies and `rows` its rounds, both sorted by round. A
// straight line between measurements would show a stopped learner as improving, and hide the round
// in which it adopted a policy.
TruthLine MakeTruthLine(const std::vector<SeriesPoint>& points,
                        const std::vector<MetricsRow>& rows) {
  const SeriesPoint gap = {0, std::numeric_limits<double>::quiet_NaN()};
  TruthLine line;
  std::size_t row = 0;
  std::optional<SeriesPoint> before;
  for (const SeriesPoint& point : points) {
    std::optional<double> first_change;
    double last_change = point.x;
    bool replaced = false;
    for (; row < rows.size() && rows[row].round <= point.x; ++row) {
      if (rows[row].kept_policy) continue;
      last_change = rows[row].round;
      // What was adopted counts from this round on; a step, from the round before.
      if (!first_change) first_change = rows[row].adopted_from ? last_change : last_change - 1;
      replaced = replaced || rows[row].adopted_from;
    }
    if (before) {
      SeriesPoint held = *before;
      held.x = std::max(held.x, first_change.value_or(held.x));
      held.dot = false;
      SeriesPoint since = point;
      since.x = last_change;
      since.dot = false;
      if (held.x > before->x) line.points.push_back(held);
      if (replaced) {
        line.points.push_back(gap);
        line.jumps.insert(line.jumps.end(), {held, since, gap});
      }
      if (since.x < point.x) line.points.push_back(since);
    }
    line.points.push_back(point);
    before = point;
  }
  return line;
}

// The look of the jumps of a series.
Series JumpsOf(Series series, std::vector<SeriesPoint> jumps) {
  series.label.clear();
  series.points = std::move(jumps);
  series.line_width = 1.1;
  series.dash = 1.5;
  series.gap = 2.5;
  series.dot_radius = 0;
  series.spread = Spread::kNone;
  return series;
}

// ---- Learners -----------------------------------------------------------------------------------

// The look of every learner that appears in a table.
std::map<int, Series> MakeLearnerLooks(const std::vector<MetricsRow>& metrics,
                                       const std::vector<TruthRow>& truth) {
  std::set<int> learners;
  for (const MetricsRow& row : metrics) learners.insert(row.learner);
  for (const TruthRow& row : truth) {
    if (row.learner) learners.insert(*row.learner);
  }
  const bool coloured = learners.size() <= kMostColoured;
  std::map<int, Series> looks;
  for (const int learner : learners) {
    const LineStyle style =
        coloured ? StyleOfSeries(static_cast<int>(looks.size())) : LineStyle{kManyLearners};
    looks[learner] = {.label = coloured ? fmt::format("learner {}", learner)
                                        : fmt::format("each of {} learners", learners.size()),
                      .colour = style.colour,
                      .line_width = coloured ? 1.3 : 0.9,
                      .dash = style.dash,
                      .gap = style.gap};
  }
  return looks;
}

const Series kIncumbentLook = {
    .label = "incumbent (least y + b so far)", .colour = kInk, .line_width = 2.6};

std::vector<SeriesPoint> IncumbentPoints(const std::vector<MetricsRow>& metrics) {
  std::vector<SeriesPoint> points;
  for (const MetricsRow& row : metrics) {
    const double round = row.round;
    if (points.empty() || points.back().x != round) points.push_back({round, row.incumbent_y});
  }
  return points;
}

}  // namespace

ProportionInterval SafeRateInterval(const TruthRow& row) {
  // Starts share their world: only with one in each are the worlds trials that fail or not.
  if (row.starts > 1) return HoeffdingInterval(row.safe_rate, row.worlds, kTruthConfidence);
  const double safe = row.safe_rate * static_cast<double>(row.worlds);
  return ClopperPearson(std::llround(safe), row.worlds, kTruthConfidence);
}

ProportionInterval MeanCostInterval(const TruthRow& row) {
  return HoeffdingInterval(row.cost, row.worlds, kTruthConfidence);
}

ChartFigure MakeBoundsFigure(const std::vector<MetricsRow>& metrics,
                             const std::vector<TruthRow>& truth, int learner, double gamma,
                             const RunFigureOptions& options) {
  FEDGEN_CHECK(learner >= 1, "learner = {}", learner);
  FEDGEN_CHECK(0 < gamma && gamma < 1, "gamma = {}", gamma);
  std::vector<MetricsRow> rows;
  std::copy_if(metrics.begin(), metrics.end(), std::back_inserter(rows),
               [&](const MetricsRow& row) { return row.learner == learner; });
  const std::vector<TruthRow> measured = RowsOf(truth, learner);
  const Axis rounds = RoundAxis(rows, measured);

  const auto cost_bound = [](const MetricsRow& row) { return std::min(row.y + row.b, 1.0); };
  const auto rate_bound = [gamma](const MetricsRow& row) {
    return std::max(1 - gamma - (1 - gamma) * (row.y + row.b), 0.0);
  };
  Series bound = {.label = "proved bound", .colour = kBound};
  Series actual = {
      .label = measured.size() <= 60 ? "actual value (dots: measurements)" : "actual value",
      .colour = kActual,
      .line_width = 1.6,
      .dot_radius = measured.size() <= 60 ? 2.6 : 0,
      .spread = Spread::kBand};
  const std::map<int, Colour> colours = {{learner, kInk}};

  Chart cost = {
      .title = fmt::format("T1: mean cost at most y + b ({} confidence)", Percent(1 - gamma)),
      .x = rounds,
      .y = {.label = "mean cost, in [0, 1]", .low = 0, .high = 1}};
  Chart rate = {
      .title = "T2: safe arrival rate at least 1 \u2212 \u03b3 \u2212 (1 \u2212 \u03b3)(y + b)",
      .x = rounds,
      .y = {.label = "safe arrival rate", .low = 0, .high = 1}};
  const auto fill = [&](Chart& chart, const auto& bound_of,
                        const std::vector<SeriesPoint>& truth_points) {
    bound.points.clear();
    for (const MetricsRow& row : rows) {
      bound.points.push_back({static_cast<double>(row.round), bound_of(row)});
    }
    TruthLine line = MakeTruthLine(truth_points, rows);
    actual.points = std::move(line.points);
    chart.series = {bound};
    if (!line.jumps.empty()) chart.series.push_back(JumpsOf(actual, std::move(line.jumps)));
    if (!actual.points.empty()) chart.series.push_back(actual);
    chart.marks = MakeEvents(rows, bound_of, colours);
    MarkSeries large = MakeLargeMeasurements(rows, bound_of);
    if (!large.marks.empty()) chart.marks.push_back(std::move(large));
  };
  fill(cost, cost_bound, CostPoints(measured));
  fill(rate, rate_bound, RatePoints(measured, RoundOf));
  return {TitleText(fmt::format("Learner {}: proved bounds and actual values", learner), options),
          Subtitle(options, "actual values", measured, "each measurement"),
          {std::move(cost), std::move(rate)}};
}

ChartFigure MakeLearningFigure(const std::vector<MetricsRow>& metrics,
                               const std::vector<TruthRow>& truth,
                               const RunFigureOptions& options) {
  const std::map<int, Series> looks = MakeLearnerLooks(metrics, truth);
  std::map<int, Colour> colours;
  for (const auto& [learner, look] : looks) colours[learner] = look.colour;
  const Axis rounds = RoundAxis(metrics, truth);

  Chart costs = {.title = "Measured by the learners while training",
                 .x = rounds,
                 .y = {.label = "mean cost y, in [0, 1]", .low = 0, .high = 1}};
  Chart rates = {
      .title = "The same policies in fresh worlds",
      .x = rounds,
      .y = {.label = "safe arrival rate (stretched towards 1)", .scale = Scale::kNines, .low = 0}};
  std::map<int, std::vector<MetricsRow>> rows_of;
  for (const MetricsRow& row : metrics) rows_of[row.learner].push_back(row);
  for (const auto& [learner, look] : looks) {
    const std::vector<MetricsRow>& rows = rows_of[learner];
    Series series = look;
    for (const MetricsRow& row : rows) {
      series.points.push_back({static_cast<double>(row.round), row.y});
    }
    costs.series.push_back(series);
    const std::vector<SeriesPoint> points = RatePoints(RowsOf(truth, learner), RoundOf);
    TruthLine line = MakeTruthLine(points, rows);
    series.points = std::move(line.points);
    series.dot_radius = looks.size() <= kMostColoured && points.size() <= 30 ? 2.3 : 0;
    if (!line.jumps.empty()) rates.series.push_back(JumpsOf(look, std::move(line.jumps)));
    if (!series.points.empty()) rates.series.push_back(std::move(series));
  }
  Series incumbent = kIncumbentLook;
  incumbent.points = IncumbentPoints(metrics);
  incumbent.steps = true;
  costs.series.push_back(incumbent);
  costs.marks = MakeEvents(metrics, [](const MetricsRow& row) { return row.y; }, colours);
  incumbent.points = RatePoints(RowsOf(truth, std::nullopt), RoundOf);
  incumbent.steps = false;
  incumbent.spread = Spread::kBand;
  const bool incumbent_measured = !incumbent.points.empty();
  if (incumbent_measured) rates.series.push_back(std::move(incumbent));
  return {TitleText(fmt::format("Learning of {} learners", looks.size()), options),
          Subtitle(options, "right: policies", truth, incumbent_measured ? "the incumbent" : ""),
          {std::move(costs), std::move(rates)}};
}

ChartFigure MakeSecondsFigure(const std::vector<TruthRow>& truth,
                              const std::vector<TimingRow>& timing,
                              const std::vector<SafetyLevel>& levels,
                              const RunFigureOptions& options) {
  std::map<int, double> seconds_of;
  for (const TimingRow& row : timing) seconds_of[row.round] = row.seconds;
  std::vector<TruthRow> rows = RowsOf(truth, std::nullopt);
  const bool of_incumbent = !rows.empty();
  if (!of_incumbent) {
    std::map<int, TruthRow> best;
    for (const TruthRow& row : truth) {
      const auto [place, first] = best.try_emplace(row.round, row);
      if (!first && row.safe_rate > place->second.safe_rate) place->second = row;
    }
    for (const auto& [round, row] : best) rows.push_back(row);
  }
  // A logarithm has no zero: what was measured before training has no place.
  std::erase_if(rows, [&](const TruthRow& row) {
    const auto seconds = seconds_of.find(row.round);
    return seconds == seconds_of.end() || !(seconds->second > 0);
  });

  Series series = kIncumbentLook;
  series.label =
      of_incumbent ? kIncumbentLook.label : "best learner of each round, selected in these worlds";
  series.line_width = 2;
  series.points = RatePoints(rows, [&](const TruthRow& row) { return seconds_of.at(row.round); });
  series.dot_radius = rows.size() <= 60 ? 2.6 : 0;
  series.spread = of_incumbent ? Spread::kBand : Spread::kNone;

  Chart chart = {.x = {.label = "training time (s)", .scale = Scale::kLog},
                 .y = {.label = "safe arrival rate (stretched towards 1)", .scale = Scale::kNines}};
  MarkSeries reached = {"first measurement at or above a level", MarkShape::kDiamond, {}};
  for (std::size_t index = 0; index < levels.size(); ++index) {
    const SafetyLevel& level = levels[index];
    const auto first =
        std::find_if(series.points.begin(), series.points.end(),
                     [&](const SeriesPoint& point) { return point.y >= level.rate; });
    std::string when = "not reached";
    if (first != series.points.end()) {
      when = fmt::format("after {:.3g} s", first->x);
      reached.marks.push_back({first->x, first->y, kActual, ""});
    }
    const std::string name = level.name.empty() ? "" : fmt::format(" ({})", level.name);
    chart.references.push_back({level.rate, fmt::format("{}{}: {}", level.rate, name, when)});
  }
  chart.series = {std::move(series)};
  chart.marks = {std::move(reached)};
  return {.title = TitleText("Safety over training time", options),
          .subtitle =
              Subtitle(options, "safe arrival rate", rows, of_incumbent ? "each measurement" : ""),
          .charts = {std::move(chart)},
          .columns = 1,
          .chart_width = 560,
          .chart_height = 320};
}

ChartFigure MakeTradeoffFigure(std::vector<TradeoffPoint> points, const TradeoffOptions& options) {
  std::sort(points.begin(), points.end(),
            [](const TradeoffPoint& a, const TradeoffPoint& b) { return a.x < b.x; });
  const Axis x = {.label = options.x_label, .scale = options.log_x ? Scale::kLog : Scale::kLinear};
  const auto make = [&](const char* title, const char* label, MeanAndRange TradeoffPoint::* what,
                        const Colour& colour) {
    Series series = {
        .colour = colour, .line_width = 1.4, .dot_radius = 3.4, .spread = Spread::kBars};
    for (const TradeoffPoint& point : points) {
      const MeanAndRange& value = point.*what;
      series.points.push_back({point.x, value.mean, value.low, value.high});
    }
    return Chart{.title = title, .x = x, .y = {.label = label}, .series = {std::move(series)}};
  };
  Chart gap = make("Consensus gap", "max \u2212 min cost over learners",
                   &TradeoffPoint::consensus_gap, kBound);
  Chart adoptions =
      make("Adoptions", "number per run", &TradeoffPoint::adoptions, StyleOfSeries(2).colour);
  Chart safety = make("Final safety", "safe arrival rate", &TradeoffPoint::final_safety, kActual);
  gap.y.low = 0;
  adoptions.y.low = 0;
  return {.title = options.title,
          .subtitle = options.subtitle,
          .charts = {std::move(gap), std::move(adoptions), std::move(safety)},
          .columns = 3,
          .chart_width = 270,
          .chart_height = 220};
}

Result<void> SaveSvgAndPng(const std::string& stem, const ChartFigure& figure, IfExists if_exists) {
  FEDGEN_TRY(SaveChart(stem + ".svg", figure, if_exists));
  return SaveChart(stem + ".png", figure, if_exists);
}

}  // namespace fedgen
