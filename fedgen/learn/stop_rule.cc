// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/stop_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace fedgen {
namespace {

constexpr double kAutoFactor = 4;  // q >= 4 sigma of T3

struct Moments {
  double mean = 0;
  double variance_of_mean = 0;
};

Moments MomentsOf(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  Moments m;
  for (const double value : values) m.mean += value / n;
  double squares = 0;
  for (const double value : values) squares += (value - m.mean) * (value - m.mean);
  m.variance_of_mean = squares / (n - 1) / n;
  return m;
}

bool IsPlateau(const StopOptions& options, const std::vector<double>& recent) {
  const auto window = static_cast<std::size_t>(options.window);
  if (recent.size() < 2 * window) return false;
  const std::span<const double> values(recent);
  const Moments before = MomentsOf(values.first(window));
  const Moments last = MomentsOf(values.last(window));
  const double error = std::sqrt(before.variance_of_mean + last.variance_of_mean);
  // Not strictly: costs that are all equal, without scatter, are as flat as can be.
  return before.mean - last.mean <= options.tolerance * error;
}

}  // namespace

std::optional<FieldError> Validate(const StopOptions& options) {
  if (!(options.threshold >= 0 && options.threshold <= 1e12)) {
    return FieldError{"threshold", fmt::format("{}: must be in [0, 1e12]", options.threshold)};
  }
  if (options.window < 2 || options.window > 10000) {
    return FieldError{"window", fmt::format("{}: must be in 2..10000", options.window)};
  }
  if (!(options.tolerance >= -10 && options.tolerance <= 10)) {
    return FieldError{"tolerance", fmt::format("{}: must be in [-10, 10]", options.tolerance)};
  }
  return std::nullopt;
}

bool ShouldStop(const StopOptions& options, const Measurement& measurement, StopState& state) {
  switch (options.rule) {
    case StopOptions::Rule::kNever:
      return false;
    case StopOptions::Rule::kPlateau:
      state.recent.push_back(measurement.y);
      if (state.recent.size() > 2 * static_cast<std::size_t>(options.window)) {
        state.recent.erase(state.recent.begin());
      }
      return IsPlateau(options, state.recent);
    case StopOptions::Rule::kGradient:
      state.threshold = options.threshold;
      break;
    case StopOptions::Rule::kAuto:
      if (!state.threshold) state.threshold = kAutoFactor * measurement.spread;
      break;
  }
  return Norm(measurement.z_mu) < *state.threshold;
}

std::string PairsAdvice(const SquaredSignal& gradient, double spread, int pairs) {
  // The noise falls with the number of pairs, the threshold with the noise: with m times as many,
  // q = 4 x spread / sqrt(m) is as small as the gradient.
  const auto needed = [&](double square) {
    const double count = kAutoFactor * kAutoFactor * spread * spread * pairs / square;
    const double unit = std::pow(10, std::floor(std::log10(count)) - 1);
    return std::ceil(count / unit) * unit;  // two digits: it is not known better
  };
  if (gradient.IsVisible()) {
    return fmt::format("about {:.0f} pairs instead of {} would show the gradient",
                       needed(gradient.value), pairs);
  }
  return fmt::format(
      "no gradient is visible above the noise of {} pairs, and it takes more than about {:.0f} to "
      "show one",
      pairs, needed(std::max(0.0, gradient.value) + 2 * gradient.error));
}

std::optional<std::string> ExplainStopAtOnce(const Measurement& first) {
  const double norm = Norm(first.z_mu);
  const double threshold = kAutoFactor * first.spread;
  if (norm >= threshold) return std::nullopt;
  const SquaredSignal gradient = EstimateSignal(first.z_mu, first.spread * first.spread);
  return fmt::format("|z| = {:.3g} is below q = 4 x spread = {:.3g}; {}", norm, threshold,
                     PairsAdvice(gradient, first.spread, first.pairs));
}

}  // namespace fedgen
