// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace fedgen {

// The axes of charts: where a number stands on a scale, which part of it an axis shows, and where
// the ticks are. Knows numbers and texts, no paper.

/// How numbers become lengths along an axis.
enum class Scale {
  kLinear,
  kLog,    // by log10; numbers <= 0 are not drawn
  kNines,  // of rates, by -log10(1 - v): as far from 0.9 to 0.99 as from 0 to 0.9; 1 is at the end
};

/// The position of a number on a scale; NaN if it has none.
double PositionOn(Scale scale, double number);

struct Axis {
  std::string label = {};  // with its unit
  Scale scale = Scale::kLinear;
  bool whole = false;  // ticks at whole numbers only
  /// Where the axis begins and ends; what is not given follows from the data.
  std::optional<double> low = std::nullopt;
  std::optional<double> high = std::nullopt;
};

/// Encloses positions; those that are NaN are not there.
struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  bool empty() const { return low > high; }
  void Enclose(double position);
};

struct Tick {
  double position = 0;    // on the scale
  std::string text = {};  // empty for a fine grid line
};

/// What an axis shows, in positions on its scale.
struct AxisSpan {
  Scale scale = Scale::kLinear;
  double low = 0, high = 1;  // low < high
  std::vector<Tick> ticks = {};

  /// How far along the axis a number is: 0 at its beginning, 1 at its end; NaN if it is nowhere.
  double Share(double number) const { return (PositionOn(scale, number) - low) / (high - low); }
};

/// The span that shows the data, with `most` ticks at most if they are linear or logarithmic; `air`
/// is the share of the data's extent left free beyond it at either end.
AxisSpan MakeSpan(const Axis& axis, Extent data, double air, int most);

/// The multiples of `step` in [low, high].
std::vector<double> MultiplesOf(double step, double low, double high);

/// Round numbers (1, 2 or 5 times a power of ten apart) in [low, high], at most `most` of them.
/// Requires finite low < high and most >= 2.
std::vector<double> MakeTicks(double low, double high, int most);

/// A tick's text: thousands apart, a true minus sign, and no more decimals than ticks `step` apart
/// need.
std::string TickText(double number, double step);

}  // namespace fedgen
