// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fuse/learner.h"

#include <algorithm>

#include "fedgen/base/check.h"
#include "fedgen/certify/bounds.h"

namespace fedgen {

bool IsDue(int k, int every, double growth) {
  if (growth <= 1) return k % every == 0;
  std::int64_t due = every;
  while (due < k) {
    due = std::max(due + every, static_cast<std::int64_t>(static_cast<double>(due) * growth));
  }
  return due == k;
}

Learner::Learner(LearnerId id, const LearnerOptions& options, std::unique_ptr<Improver> improver,
                 std::vector<float> theta, Key secret)
    : id_(id), options_(options), improver_(std::move(improver)), secret_(secret) {
  state_.theta = std::move(theta);
  state_.origin = id;
}

void Learner::Begin(const Welcome& welcome) {
  state_.origin = welcome.origin;
  if (!welcome.start.empty()) state_.theta = welcome.start;
}

Look Learner::Collect(int k, int num_rounds) {
  const Key key = secret_.Fork(Stream::kTraining).Fork(static_cast<std::uint64_t>(k));
  Look look = improver_->Measure(k, num_rounds, state_.theta, key);
  state_.y = look.y;
  state_.b = options_.bias;
  state_.measured_round = k;
  state_.episodes += look.episodes;
  return look;
}

bool Learner::TakeStock(int k) {
  if (options_.stock_every <= 0 || resting()) return false;
  const bool after_stop = state_.stopped && state_.stock_round < state_.measured_round;
  const bool due = IsDue(k, options_.stock_every, options_.stock_growth);
  if (!after_stop && (state_.stopped || !due)) return false;
  const Value value = improver_->MeasureValue(
      state_.theta, options_.stock_worlds,
      secret_.Fork(Stream::kAudit).Fork(0).Fork(static_cast<std::uint64_t>(k)));
  state_.y = value.y;
  state_.b = EmpiricalBernsteinBias(value.variance, value.worlds, options_.gamma);
  state_.measured_round = k;
  state_.stock_round = k;
  state_.episodes += value.episodes;
  return true;
}

Submission Learner::Submit() const {
  return {.learner = id_,
          .round = state_.measured_round,
          .origin = state_.origin,
          .y = state_.y,
          .b = state_.b,
          .theta = state_.theta,
          .hash = HashOf(state_.theta)};
}

bool Learner::Update(int k, int num_rounds) {
  const Key key = secret_.Fork(Stream::kImprovement).Fork(static_cast<std::uint64_t>(k));
  const Step step = improver_->Improve(k, num_rounds, key, state_.theta);
  state_.episodes += step.episodes;
  state_.stopped = !step.moved;
  if (state_.stopped && state_.first_stop == 0) {
    state_.first_stop = k;
    state_.first_stopped = state_.theta;
  }
  return step.moved;
}

bool Learner::WouldAdopt(const Submission& incumbent, bool may) const {
  return incumbent.learner != id_ &&
         incumbent.y + incumbent.b < std::min(state_.y - state_.b, state_.zeta) && may &&
         !resting();
}

bool Learner::Fuse(const Submission& incumbent, bool may) {
  if (!WouldAdopt(incumbent, may)) return false;
  Take(incumbent);
  improver_->Restart();
  state_.stopped = false;
  ++state_.adoptions;
  if (resting()) Follow(incumbent);
  return true;
}

void Learner::Follow(const Submission& incumbent) {
  FEDGEN_CHECK(resting(), "learner {} searches by itself", id_.name());
  Take(incumbent);
  state_.y = incumbent.y;
  state_.b = incumbent.b;
  state_.stopped = true;
}

void Learner::Take(const Submission& incumbent) {
  state_.theta = incumbent.theta;
  state_.origin = incumbent.origin;
  state_.zeta = incumbent.y;
}

Outlook Learner::OutlookAfter(const std::optional<Submission>& incumbent,
                              int averaged_round) const {
  if (resting()) return Outlook::kRests;
  const bool stock_due = options_.stock_every > 0 && state_.stock_round < state_.measured_round;
  const bool average_due = averaged_round < state_.measured_round;
  const bool settled =
      state_.stopped && !stock_due && !average_due && !(incumbent && WouldAdopt(*incumbent, true));
  return settled ? Outlook::kSettled : Outlook::kSearches;
}

Submission Learner::Judge(const Candidate& candidate, int k) {
  const Value value = improver_->MeasureValue(
      candidate.theta, options_.candidate_worlds,
      secret_.Fork(Stream::kAudit).Fork(1).Fork(static_cast<std::uint64_t>(k)));
  state_.episodes += value.episodes;
  const double b = options_.stock_every > 0
                       ? EmpiricalBernsteinBias(value.variance, value.worlds, options_.gamma)
                       : options_.bias;
  return {.learner = LearnerId::Cloud(),
          .round = k,
          .origin = candidate.origin,
          .y = value.y,
          .b = b,
          .theta = candidate.theta,
          .hash = HashOf(candidate.theta)};
}

}  // namespace fedgen
