// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fuse/learner.h"

#include <algorithm>
#include <cmath>

#include "fedgen/base/check.h"
#include "fedgen/certify/bounds.h"

namespace fedgen {
namespace {

// log sigma goes down its own gradient, a tenth at most in one round, and stays within a factor of
// ten of where it began (Eq. 20).
void MoveSigma(std::span<const double> z_sigma, double step, std::span<const float> initial,
               std::span<float> sigma) {
  for (std::size_t index = 0; index < sigma.size(); ++index) {
    if (sigma[index] == 0) continue;
    const double old = static_cast<double>(sigma[index]);
    const double first = static_cast<double>(initial[index]);
    const double move = std::clamp(step * old * z_sigma[index], -0.1, 0.1);
    sigma[index] = static_cast<float>(std::clamp(old * std::exp(-move), first / 10, first * 10));
  }
}

}  // namespace

Learner::Learner(int index, const LearnerOptions& options, std::unique_ptr<Objective> objective,
                 Search initial, Key key)
    : index_(index),
      options_(options),
      objective_(std::move(objective)),
      key_(key),
      initial_sigma_(initial.sigma) {
  state_.search = std::move(initial);
  state_.origin = index;
}

void Learner::Collect(int k) {
  measurement_ = objective_->Measure(
      state_.search, key_.Fork(Stream::kTraining).Fork(static_cast<std::uint64_t>(k)));
  state_.y = measurement_->y;
  state_.b = options_.bias;
  state_.z_norm = Norm(measurement_->z_mu);
  state_.spread = measurement_->spread;
  state_.measured_round = k;
  state_.episodes += measurement_->episodes;
}

bool Learner::TakeStock(int k) {
  if (options_.stock_every <= 0 || resting()) return false;
  const bool after_stop = state_.stopped && state_.stock_round < state_.measured_round;
  if (!after_stop && (state_.stopped || k % options_.stock_every != 0)) return false;
  const Value value = objective_->MeasureValue(
      state_.search.mu, options_.stock_worlds,
      key_.Fork(Stream::kAudit).Fork(0).Fork(static_cast<std::uint64_t>(k)));
  state_.y = value.y;
  state_.b = EmpiricalBernsteinBias(value.variance, value.worlds, options_.gamma);
  state_.measured_round = k;
  state_.stock_round = k;
  state_.episodes += value.episodes;
  return true;
}

Submission Learner::Submit() const {
  return {.learner = index_,
          .round = state_.measured_round,
          .origin = state_.origin,
          .y = state_.y,
          .b = state_.b,
          .theta = state_.search.mu,
          .hash = HashOf(state_.search.mu)};
}

void Learner::Update(int k, int num_rounds) {
  if (state_.stopped) return;  // theta, y and z stay as they are
  FEDGEN_CHECK(measurement_.has_value(), "learner {} did not collect in round {}", index_, k);
  if (ShouldStop(options_.stop, *measurement_, state_.stop)) {
    state_.stopped = true;
    if (state_.first_stop == 0) {
      state_.first_stop = k;
      state_.first_stopped = state_.search.mu;
    }
  } else {
    const double step = StepSize(options_.step, k, num_rounds);
    Descend(options_.optimizer, measurement_->z_mu, step, state_.optimizer, state_.search.mu);
    if (options_.sigma_rate > 0) {
      MoveSigma(measurement_->z_sigma, options_.sigma_rate * step, initial_sigma_,
                state_.search.sigma);
    }
  }
  if (state_.stopped) measurement_.reset();
}

bool Learner::WouldAdopt(const Submission& incumbent, bool may) const {
  return incumbent.learner != index_ &&
         incumbent.y + incumbent.b < std::min(state_.y - state_.b, state_.zeta) && may &&
         !resting();
}

bool Learner::Fuse(const Submission& incumbent, bool may) {
  if (!WouldAdopt(incumbent, may)) return false;
  Take(incumbent);
  state_.search.sigma = initial_sigma_;
  state_.stopped = false;
  state_.optimizer = {};
  state_.stop.recent.clear();  // q stays: it bounds the noise, which has not changed
  ++state_.adoptions;
  if (resting()) Follow(incumbent);
  return true;
}

void Learner::Follow(const Submission& incumbent) {
  FEDGEN_CHECK(resting(), "learner {} searches by itself", index_);
  Take(incumbent);
  state_.y = incumbent.y;
  state_.b = incumbent.b;
  state_.stopped = true;
  measurement_.reset();
}

void Learner::Take(const Submission& incumbent) {
  state_.search.mu = incumbent.theta;
  state_.origin = incumbent.origin;
  state_.zeta = incumbent.y;
}

Submission Learner::Judge(const Candidate& candidate, int k, int as_learner) {
  const Value value = objective_->MeasureValue(
      candidate.theta, options_.candidate_worlds,
      key_.Fork(Stream::kAudit).Fork(1).Fork(static_cast<std::uint64_t>(k)));
  state_.episodes += value.episodes;
  const double b = options_.stock_every > 0
                       ? EmpiricalBernsteinBias(value.variance, value.worlds, options_.gamma)
                       : options_.bias;
  return {.learner = as_learner,
          .round = k,
          .origin = candidate.origin,
          .y = value.y,
          .b = b,
          .theta = candidate.theta,
          .hash = HashOf(candidate.theta)};
}

}  // namespace fedgen
