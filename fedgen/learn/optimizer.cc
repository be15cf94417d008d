// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fedgen/learn/objective.h"

namespace fedgen {
namespace {

void DescendSgd(std::span<const double> z, double step, std::span<float> mu) {
  for (std::size_t index = 0; index < mu.size(); ++index) {
    mu[index] = static_cast<float>(static_cast<double>(mu[index]) - step * z[index]);
  }
}

void DescendAdam(std::span<const double> z, double step, OptimizerState& state,
                 std::span<float> mu) {
  constexpr double kMeanDecay = 0.9;
  constexpr double kSquareDecay = 0.999;
  constexpr double kFloor = 1e-8;
  state.first.resize(mu.size());
  state.second.resize(mu.size());
  const auto t = static_cast<double>(++state.steps);
  const double mean_share = 1 - std::pow(kMeanDecay, t);
  const double square_share = 1 - std::pow(kSquareDecay, t);
  for (std::size_t index = 0; index < mu.size(); ++index) {
    double& m = state.first[index];
    double& v = state.second[index];
    m = kMeanDecay * m + (1 - kMeanDecay) * z[index];
    v = kSquareDecay * v + (1 - kSquareDecay) * z[index] * z[index];
    const double move = step * (m / mean_share) / (std::sqrt(v / square_share) + kFloor);
    mu[index] = static_cast<float>(static_cast<double>(mu[index]) - move);
  }
}

void DescendClipUp(std::span<const double> z, double step, OptimizerState& state,
                   std::span<float> mu) {
  constexpr double kMomentum = 0.9;
  const double max_speed = 2 * step;
  state.first.resize(mu.size());
  ++state.steps;
  const double norm = Norm(z);
  const double scale = norm > 0 ? step / norm : 0;
  for (std::size_t index = 0; index < mu.size(); ++index) {
    state.first[index] = kMomentum * state.first[index] + scale * z[index];
  }
  const double speed = Norm(state.first);
  const double brake = speed > max_speed ? max_speed / speed : 1;
  for (std::size_t index = 0; index < mu.size(); ++index) {
    state.first[index] *= brake;
    mu[index] = static_cast<float>(static_cast<double>(mu[index]) - state.first[index]);
  }
}

}  // namespace

std::optional<FieldError> Validate(const StepOptions& options) {
  const auto positive = [](double value) { return value > 0 && value <= 1e6; };
  if (!positive(options.step)) {
    return FieldError{"step", fmt::format("{}: must be in (0, 1e6]", options.step)};
  }
  if (!positive(options.last)) {
    return FieldError{"last_step", fmt::format("{}: must be in (0, 1e6]", options.last)};
  }
  if (!(options.exponent >= 0 && options.exponent <= 1)) {
    return FieldError{"step_exponent", fmt::format("{}: must be in [0, 1]", options.exponent)};
  }
  return std::nullopt;
}

double StepSize(const StepOptions& options, int k, int num_rounds) {
  switch (options.schedule) {
    case StepOptions::Schedule::kPower:
      return options.step / std::pow(static_cast<double>(k), options.exponent);
    case StepOptions::Schedule::kConstant:
      return options.step;
    case StepOptions::Schedule::kGeometric: {
      const double progress = static_cast<double>(k - 1) / std::max(1, num_rounds - 1);
      return options.step * std::pow(options.last / options.step, std::min(progress, 1.0));
    }
  }
  return options.step;
}

void Descend(const OptimizerOptions& options, std::span<const double> z, double step,
             OptimizerState& state, std::span<float> mu) {
  switch (options.kind) {
    case OptimizerOptions::Kind::kSgd:
      return DescendSgd(z, step, mu);
    case OptimizerOptions::Kind::kAdam:
      return DescendAdam(z, step, state, mu);
    case OptimizerOptions::Kind::kClipUp:
      return DescendClipUp(z, step, state, mu);
  }
}

}  // namespace fedgen
