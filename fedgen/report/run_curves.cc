// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/run_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "fedgen/base/text.h"

namespace fedgen {
namespace {

std::string IntervalText(double value, const ProportionInterval& interval, int digits) {
  return fmt::format("{:.{}f} [{:.{}f}, {:.{}f}]", value, digits, interval.low, digits,
                     interval.high, digits);
}

std::string LevelText(const SafetyLevel& level) {
  return level.name.empty() ? fmt::format("{}", level.rate)
                            : fmt::format("{} ({})", level.rate, level.name);
}

// "20,000 fresh worlds"; several numbers if looks differ.
std::string WorldsText(const std::vector<RunCurve>& curves) {
  std::set<std::int64_t> numbers;
  for (const RunCurve& curve : curves) {
    for (const TimedLook& look : curve.looks) numbers.insert(look.truth.worlds);
  }
  if (numbers.size() == 1) return Counted(*numbers.begin(), "fresh world");
  return numbers.empty() ? "no worlds"
                         : fmt::format("{} to {}", Grouped(*numbers.begin()),
                                       Counted(*numbers.rbegin(), "fresh world"));
}

std::string ReachedText(const RunCurve& curve, const SafetyLevel& level) {
  const std::optional<Reached> reached = FirstReached(curve, level.rate);
  if (!reached) return fmt::format("{:>12}", "not reached");
  return fmt::format(
      "{:>12.1f} {:>13.1f} {:>14}  {}", reached->at.seconds, reached->seconds_before,
      Grouped(reached->at.episodes),
      IntervalText(reached->at.truth.safe_rate, SafeRateInterval(reached->at.truth), 4));
}

// How many times the seconds of the first run another one takes to each level.
std::string RatiosText(const std::vector<RunCurve>& curves,
                       const std::vector<SafetyLevel>& levels) {
  std::string text;
  for (std::size_t other = 1; other < curves.size(); ++other) {
    std::vector<std::string> ratios;
    for (const SafetyLevel& level : levels) {
      const std::optional<Reached> mine = FirstReached(curves[0], level.rate);
      const std::optional<Reached> its = FirstReached(curves[other], level.rate);
      const bool known = mine && its && mine->at.seconds > 0;
      ratios.push_back(
          known ? fmt::format("{:.2g} times to {}", its->at.seconds / mine->at.seconds, level.rate)
                : fmt::format("unknown to {}", level.rate));
    }
    text += fmt::format("  {}, against {}: {}\n", curves[other].name, curves[0].name,
                        fmt::join(ratios, ", "));
  }
  return text;
}

Series LookOf(const RunCurve& curve, int number) {
  const LineStyle style = StyleOfSeries(number);
  return {.label = curve.name,
          .colour = style.colour,
          .line_width = 2,
          .dash = style.dash,
          .gap = style.gap,
          .dot_radius = curve.looks.size() <= 100 ? 1.8 : 0};
}

}  // namespace

RunCurve MakeRunCurve(std::string name, const std::vector<TruthRow>& truth,
                      const std::vector<TimingRow>& timing) {
  RunCurve curve = {.name = std::move(name)};
  std::map<int, const TimingRow*> time_of;
  for (const TimingRow& row : timing) time_of[row.round] = &row;
  for (const TruthRow& row : truth) {
    const auto time = time_of.find(row.round);
    if (row.learner || time == time_of.end()) continue;
    curve.looks.push_back({row, time->second->seconds, time->second->episodes});
  }
  if (!timing.empty()) {
    curve.seconds = timing.back().seconds;
    curve.episodes = timing.back().episodes;
  }
  return curve;
}

std::optional<Reached> FirstReached(const RunCurve& curve, double safe_rate) {
  double before = 0;
  for (const TimedLook& look : curve.looks) {
    if (look.truth.safe_rate >= safe_rate) return Reached{look, before};
    before = look.seconds;
  }
  return std::nullopt;
}

std::string CurvesText(const std::vector<RunCurve>& curves, const std::vector<SafetyLevel>& levels,
                       const std::string& title) {
  std::string text =
      fmt::format("{}\nincumbents in {}; intervals 99 %, one by one; seconds of training alone\n",
                  title, WorldsText(curves));
  text += fmt::format(
      "\nfirst look at or above a safe rate\n\n  {:<38} {:<14} {:>12} {:>13} {:>14}  {}\n", "",
      "safe rate", "seconds", "look before", "episodes", "measured");
  for (const RunCurve& curve : curves) {
    for (const SafetyLevel& level : levels) {
      text += fmt::format("  {:<38} {:<14} {}\n", &level == levels.data() ? curve.name : "",
                          LevelText(level), ReachedText(curve, level));
    }
  }
  text += "\nseconds\n\n" + RatiosText(curves, levels);
  text += fmt::format("\nat the end\n\n  {:<38} {:>9} {:>14}  {:<25} {}\n", "", "seconds",
                      "episodes", "safe rate", "E[J]");
  for (const RunCurve& curve : curves) {
    text += fmt::format("  {:<38} {:>9.1f} {:>14}  ", curve.name, curve.seconds,
                        Grouped(curve.episodes));
    if (curve.looks.empty()) {
      text += "not measured\n";
      continue;
    }
    const TruthRow& last = curve.looks.back().truth;
    text += fmt::format("{:<25} {}\n", IntervalText(last.safe_rate, SafeRateInterval(last), 4),
                        IntervalText(last.cost, MeanCostInterval(last), 4));
  }
  return text;
}

std::string CurvesCsv(const std::vector<RunCurve>& curves) {
  std::string text = "run,round,seconds,episodes,worlds,safe_rate,cost\n";
  for (const RunCurve& curve : curves) {
    for (const TimedLook& look : curve.looks) {
      text += fmt::format("{},{},{},{},{},{},{}\n", curve.name, look.truth.round, look.seconds,
                          look.episodes, look.truth.worlds, look.truth.safe_rate, look.truth.cost);
    }
  }
  return text;
}

ChartFigure MakeCurvesFigure(const std::vector<RunCurve>& curves,
                             const std::vector<SafetyLevel>& levels, const std::string& title,
                             const std::string& source) {
  const Axis seconds = {.label = "training time (s)", .scale = Scale::kLog};
  Chart rates = {.title = "Safe arrivals",
                 .x = seconds,
                 .y = {.label = "safe arrival rate (stretched towards 1)", .scale = Scale::kNines}};
  Chart costs = {.title = "Mean cost", .x = seconds, .y = {.label = "E[J], in [0, 1]"}};
  MarkSeries reached = {"first look at or above a level", MarkShape::kDiamond, {}};
  for (const SafetyLevel& level : levels)
    rates.references.push_back({level.rate, LevelText(level)});
  for (std::size_t number = 0; number < curves.size(); ++number) {
    const RunCurve& curve = curves[number];
    Series rate = LookOf(curve, static_cast<int>(number));
    Series cost = rate;
    rate.spread = Spread::kBand;
    cost.dot_radius = 0;  // the same looks
    for (const TimedLook& look : curve.looks) {
      const ProportionInterval interval = SafeRateInterval(look.truth);
      rate.points.push_back({look.seconds, look.truth.safe_rate, interval.low, interval.high});
      cost.points.push_back({look.seconds, look.truth.cost});
    }
    for (const SafetyLevel& level : levels) {
      const std::optional<Reached> first = FirstReached(curve, level.rate);
      if (!first) continue;
      reached.marks.push_back({first->at.seconds, first->at.truth.safe_rate, rate.colour,
                               fmt::format("{:.3g} s", first->at.seconds)});
    }
    rates.series.push_back(std::move(rate));
    costs.series.push_back(std::move(cost));
  }
  rates.marks = {std::move(reached)};
  return {.title = title,
          .subtitle = fmt::format("{}; incumbents measured in {}; band: 99 % interval of each "
                                  "measurement",
                                  source, WorldsText(curves)),
          .charts = {std::move(rates), std::move(costs)},
          .columns = 2,
          .chart_width = 440,
          .chart_height = 320};
}

}  // namespace fedgen
