// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/gradient_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fedgen/base/archive.h"
#include "fedgen/base/check.h"

namespace fedgen {

void Fields(auto& archive, Is<GradientSearchState> auto& s) {
  archive(s.sigma, s.optimizer.steps, s.optimizer.first, s.optimizer.second, s.stop.recent,
          s.stop.threshold);
}

namespace {

// log sigma goes down its own gradient, a tenth at most in one round, and stays within a factor of
// ten of where it began (Eq. 20).
void MultiplySigma(std::span<const double> z_sigma, double step, std::span<const float> initial,
                   std::span<float> sigma) {
  for (std::size_t index = 0; index < sigma.size(); ++index) {
    if (sigma[index] == 0) continue;
    const double old = static_cast<double>(sigma[index]);
    const double first = static_cast<double>(initial[index]);
    const double move = std::clamp(step * old * z_sigma[index], -0.1, 0.1);
    sigma[index] = static_cast<float>(std::clamp(old * std::exp(-move), first / 10, first * 10));
  }
}

// sigma goes down its own gradient as printed (Eq. 20a). The search distribution knows sigma^2
// only, so a component that steps below 0 goes on as its absolute value, and the search is the
// printed one. Returns how many did.
std::size_t SubtractFromSigma(std::span<const double> z_sigma, double step,
                              std::span<float> sigma) {
  constexpr double kLeast = 1e-6;  // a smaller one is lost next to mu, in float, and 0 is frozen
  std::size_t num_reflected = 0;
  for (std::size_t index = 0; index < sigma.size(); ++index) {
    if (sigma[index] == 0) continue;
    const double moved = static_cast<double>(sigma[index]) - step * z_sigma[index];
    num_reflected += moved <= 0 ? 1 : 0;
    sigma[index] = static_cast<float>(std::max(std::abs(moved), kLeast));
  }
  return num_reflected;
}

}  // namespace

GradientSearch::GradientSearch(const GradientSearchOptions& options,
                               std::unique_ptr<Objective> objective, std::vector<float> sigma)
    : options_(options), objective_(std::move(objective)), initial_sigma_(std::move(sigma)) {
  state_.sigma = initial_sigma_;
}

Look GradientSearch::Measure(int /*k*/, int /*num_rounds*/, std::span<const float> theta, Key key) {
  measurement_ = objective_->Measure({{theta.begin(), theta.end()}, state_.sigma}, key);
  Look look;
  look.y = measurement_->y;
  look.episodes = measurement_->episodes;
  look.z_norm = Norm(measurement_->z_mu);
  look.spread = measurement_->spread;
  look.threshold = ThresholdFor(options_.stop, *measurement_, state_.stop);
  // An automatic threshold that will stop the learner before it has moved.
  const bool first = options_.stop.rule == StopOptions::Rule::kAuto && !state_.stop.threshold;
  const std::optional<std::string> problem =
      first ? ExplainStopAtOnce(*measurement_) : std::nullopt;
  if (problem) look.remark = "stops at once: " + *problem;
  if (num_reflected_ > 0 && !told_reflection_) {
    told_reflection_ = true;
    const auto num_frozen = std::ranges::count(state_.sigma, 0.0F);
    look.remark = fmt::format(
        "took sigma of {} of its {} parameters below 0 in one step: it goes on as its absolute "
        "value (sigma_step = \"additive\"; said once)",
        num_reflected_, std::ssize(state_.sigma) - num_frozen);
  }
  return look;
}

Step GradientSearch::Improve(int k, int num_rounds, Key /*key*/, std::span<float> theta) {
  FEDGEN_CHECK(measurement_.has_value(), "nothing was measured in round {}", k);
  const Measurement measurement = std::exchange(measurement_, std::nullopt).value_or(Measurement{});
  if (ShouldStop(options_.stop, measurement, state_.stop)) return {.moved = false};
  const double step = StepLength(k, num_rounds);
  Descend(options_.optimizer, measurement.z_mu, step, state_.optimizer, theta);
  const double sigma_step = options_.sigma_rate * step;
  if (sigma_step > 0 && options_.sigma_step == SigmaStep::kMultiplicative) {
    MultiplySigma(measurement.z_sigma, sigma_step, initial_sigma_, state_.sigma);
  } else if (sigma_step > 0) {
    num_reflected_ = SubtractFromSigma(measurement.z_sigma, sigma_step, state_.sigma);
  }
  return {.moved = true};
}

double GradientSearch::StepLength(int k, int num_rounds) const {
  return StepSize(options_.step, k, num_rounds);
}

Value GradientSearch::MeasureValue(std::span<const float> theta, std::int64_t worlds, Key key) {
  return objective_->MeasureValue(theta, worlds, key);
}

void GradientSearch::Restart() {
  state_.sigma = initial_sigma_;
  state_.optimizer = {};
  state_.stop.recent.clear();  // q stays: it bounds the noise, which has not changed
  measurement_.reset();
  num_reflected_ = 0;
}

std::string GradientSearch::SaveState() const { return ToBytes(state_); }

Result<void> GradientSearch::LoadState(std::string_view bytes, std::size_t num_parameters) {
  GradientSearchState state;
  Reader reader(bytes);
  reader(state);
  reader.Finish();
  const auto fits = [&](const auto& values) {
    return values.empty() || values.size() == num_parameters;
  };
  if (state.sigma.size() != num_parameters || !fits(state.optimizer.first) ||
      !fits(state.optimizer.second)) {
    reader.Fail("the search has another number of parameters than the policy");
  }
  if (std::ranges::any_of(state.sigma, [](float sigma) { return sigma < 0; }) ||
      state.optimizer.steps < 0) {
    reader.Fail("a sigma or a number of steps is negative");
  }
  if (!reader.problem().empty()) return Error{ErrorCode::kData, reader.problem()};
  state_ = std::move(state);
  measurement_.reset();
  return {};
}

}  // namespace fedgen
