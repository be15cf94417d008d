// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fedgen/base/check.h"

namespace fedgen {
namespace {

double TickStep(double low, double high, int most) {
  const double least = (high - low) / most;
  const double unit = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0, 20.0}) {
    const double step = factor * unit;
    const double count = std::floor(high / step + 1e-9) - std::ceil(low / step - 1e-9) + 1;
    if (count <= most) return step;
  }
  return 50 * unit;
}

std::vector<Tick> LinearTicks(double low, double high, int most, bool whole) {
  std::vector<Tick> ticks;
  const double step = TickStep(low, high, most);
  for (const double tick : MakeTicks(low, high, most)) {
    if (!whole || std::fabs(tick - std::round(tick)) < 1e-9) {
      ticks.push_back({tick, TickText(tick, whole ? 1 : step)});
    }
  }
  return ticks;
}

// 1, 2, 5 or only 1 times the powers of ten, or every so many powers; the other digits are fine.
std::vector<Tick> LogTicks(double low, double high, int most) {
  const double decades = high - low;
  // Within less than a decade the numbers are as good as linear.
  if (decades < 0.7) {
    std::vector<Tick> ticks;
    const double from = std::pow(10, low);
    const double to = std::pow(10, high);
    const double step = TickStep(from, to, most);
    for (const double tick : MakeTicks(from, to, most)) {
      if (tick > 0) ticks.push_back({std::log10(tick), TickText(tick, step)});
    }
    return ticks;
  }
  const int every = std::max(1, static_cast<int>(std::ceil(decades / most)));
  const bool with_2_and_5 = 3 * decades <= most;
  std::vector<Tick> ticks;
  for (int power = static_cast<int>(std::floor(low)); power <= high; ++power) {
    for (int digit = 1; digit <= 9; ++digit) {
      const double position = power + std::log10(digit);
      if (position < low - 1e-9 || position > high + 1e-9) continue;
      const bool named =
          digit == 1 ? power % every == 0 : with_2_and_5 && (digit == 2 || digit == 5);
      const double unit = std::pow(10, power);
      if (named) {
        ticks.push_back({position, TickText(digit * unit, unit)});
      } else if (decades <= 6) {
        ticks.push_back({position, ""});
      }
    }
  }
  return ticks;
}

std::vector<Tick> NinesTicks(double low, double high) {
  std::vector<Tick> ticks;
  for (int power = 0; power < 10; ++power) {
    const double unit = std::pow(10, -power);
    for (const double missing : {1.0, 0.5, 0.2}) {
      const double number = 1 - missing * unit;
      const double position = PositionOn(Scale::kNines, number);
      if (position < low - 1e-9 || position > high + 1e-9) continue;
      ticks.push_back({position, TickText(number, missing == 1 ? unit : unit / 10)});
    }
  }
  return ticks;
}

}  // namespace

double PositionOn(Scale scale, double number) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (!std::isfinite(number)) return kNone;
  switch (scale) {
    case Scale::kLinear:
      return number;
    case Scale::kLog:
      return number > 0 ? std::log10(number) : kNone;
    case Scale::kNines:
      // Ten nines stand for 1, beyond the end of any axis.
      return number < 1 ? std::min(-std::log10(1 - number), 10.0) : 10.0;
  }
  return kNone;
}

void Extent::Enclose(double position) {
  if (std::isnan(position)) return;
  low = std::min(low, position);
  high = std::max(high, position);
}

AxisSpan MakeSpan(const Axis& axis, Extent data, double air, int most) {
  const std::optional<double> low = axis.low;
  const std::optional<double> high = axis.high;
  if (data.empty()) data = {PositionOn(axis.scale, axis.scale == Scale::kLog ? 1 : 0), 1};
  // A single number, or none that can be told apart, stands in the middle of something.
  const double size = std::max(std::fabs(data.low), std::fabs(data.high));
  if (data.high - data.low <= 1e-9 * size || data.high == data.low) {
    const double half = axis.scale == Scale::kLinear && size > 0 ? 0.1 * size : 0.3;
    data = {data.low - half, data.high + half};
  }
  const double free = air * (data.high - data.low);
  // Rates, which a scale of nines is for, are never below 0.
  const double least =
      axis.scale == Scale::kNines ? std::max(data.low - free, 0.0) : data.low - free;
  AxisSpan span = {axis.scale, low ? PositionOn(axis.scale, *low) : least,
                   high ? PositionOn(axis.scale, *high) : data.high + free};
  if (!(span.low < span.high)) span.high = span.low + 1;
  switch (axis.scale) {
    case Scale::kLinear:
      span.ticks = LinearTicks(span.low, span.high, most, axis.whole);
      break;
    case Scale::kLog:
      span.ticks = LogTicks(span.low, span.high, most);
      break;
    case Scale::kNines:
      span.ticks = NinesTicks(span.low, span.high);
      break;
  }
  return span;
}

std::vector<double> MultiplesOf(double step, double low, double high) {
  // Rounding must not lose a multiple at either end.
  const double last = std::floor(high / step + 1e-9);
  std::vector<double> multiples;
  for (double count = std::ceil(low / step - 1e-9); count <= last; ++count) {
    multiples.push_back(count == 0 ? 0 : count * step);  // no -0
  }
  return multiples;
}

std::vector<double> MakeTicks(double low, double high, int most) {
  FEDGEN_CHECK(std::isfinite(low) && std::isfinite(high) && low < high, "ticks from {} to {}", low,
               high);
  FEDGEN_CHECK(most >= 2, "at most {} ticks", most);
  return MultiplesOf(TickStep(low, high, most), low, high);
}

std::string TickText(double number, double step) {
  const double size = std::fabs(number);
  // Numbers too long to read as digits.
  if (size >= 1e7 || (size > 0 && step < 1e-5)) {
    return fmt::format("{}{:g}", number < 0 ? "\u2212" : "", size);
  }
  const int decimals = step >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
  std::string text = fmt::format("{:.{}f}", size, decimals);
  const std::size_t whole = std::min(text.find('.'), text.size());
  for (std::size_t digit = whole; digit > 3; digit -= 3) text.insert(digit - 3, ",");
  return (number < 0 ? "\u2212" : "") + text;
}

}  // namespace fedgen
