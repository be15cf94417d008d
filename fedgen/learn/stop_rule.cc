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

void Describe(OptionVisitor& visitor, StopOptions& options) {
  auto& [rule, threshold, window, tolerance] = options;
  visitor.Choice({"stop", "",
                  "When a learner takes itself to be at a local minimum and stops: its "
                  "gradient is below the threshold; the same with a threshold of 4 x the "
                  "noise of the first gradient (auto); its cost no longer falls (plateau); "
                  "or never (Eq. 28, 29)."},
                 rule);
  const bool plateau = rule == StopOptions::Rule::kPlateau;
  visitor.Number(ActsIf(rule == StopOptions::Rule::kGradient,
                        {"threshold", "", "Stop by gradient: how small it must be, q."}),
                 threshold, Closed(0, 1e12));
  visitor.Integer(ActsIf(plateau, {"window", "rounds",
                                   "Stop by plateau: how many are compared with as many before."}),
                  window, {2, 10000});
  visitor.Number(
      ActsIf(plateau, {"tolerance", "standard errors",
                       "Stop by plateau: the cost must have fallen by more than this to go on."}),
      tolerance, Closed(-10, 10));
}

std::optional<double> ThresholdFor(const StopOptions& options, const Measurement& measurement,
                                   const StopState& state) {
  switch (options.rule) {
    case StopOptions::Rule::kGradient:
      return options.threshold;
    case StopOptions::Rule::kAuto:
      return state.threshold.value_or(kAutoFactor * measurement.spread);
    case StopOptions::Rule::kPlateau:
    case StopOptions::Rule::kNever:
      break;
  }
  return std::nullopt;
}

bool ShouldStop(const StopOptions& options, const Measurement& measurement, StopState& state) {
  state.threshold = ThresholdFor(options, measurement, state);
  if (state.threshold) return Norm(measurement.z_mu) < *state.threshold;
  if (options.rule == StopOptions::Rule::kNever) return false;
  state.recent.push_back(measurement.y);
  if (state.recent.size() > 2 * static_cast<std::size_t>(options.window)) {
    state.recent.erase(state.recent.begin());
  }
  return IsPlateau(options, state.recent);
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
