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

void Describe(OptionVisitor& visitor, StepOptions& options) {
  constexpr NumberRange kStep = Above(0, 1e6);
  auto& [step, schedule, exponent, last, rounds] = options;
  visitor.Number({"step", "", "How long a step is, r: the learning rate."}, step, kStep);
  visitor.Choice({"schedule", "",
                  "How the step shrinks: r / k^step_exponent in round k (power), not "
                  "at all, or evenly in log from r to last_step (Eq. 25)."},
                 schedule);
  visitor.Number(ActsIf(schedule == StepOptions::Schedule::kPower,
                        {"step_exponent", "", "Power schedule: how fast the step shrinks."}),
                 exponent, Closed(0, 1));
  visitor.Number(ActsIf(schedule == StepOptions::Schedule::kGeometric,
                        {"last_step", "", "Geometric schedule: the step of the last round."}),
                 last, kStep);
  visitor.Integer({"schedule_rounds", "rounds",
                   "Geometric schedules: in which round they arrive (at last_step, at last_noise), "
                   "and stay there; 0 for the last."},
                  rounds, {0, 10000000});
}

void Describe(OptionVisitor& visitor, OptimizerOptions& options) {
  auto& [kind] = options;
  visitor.Choice({"optimizer", "",
                  "Which way a step goes: straight down the gradient (sgd, Algorithm "
                  "1), Adam (Eq. 26), or ClipUp (Eq. 27)."},
                 kind);
}

double StepSize(const StepOptions& options, int k, int num_rounds) {
  switch (options.schedule) {
    case StepOptions::Schedule::kPower:
      return options.step / std::pow(static_cast<double>(k), options.exponent);
    case StepOptions::Schedule::kConstant:
      return options.step;
    case StepOptions::Schedule::kGeometric: {
      const int rounds = options.rounds > 0 ? options.rounds : num_rounds;
      const double progress = static_cast<double>(k - 1) / std::max(1, rounds - 1);
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
