// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fuse/federation.h"

#include <fmt/format.h>

#include <algorithm>

namespace fedgen {
namespace {

// What is told about a learner after its own part of the round; the fusion adds the rest.
LearnerRound Describe(const Learner& learner, int k, int num_rounds, bool was_stopped,
                      bool took_stock) {
  const LearnerState& state = learner.state();
  LearnerRound row;
  row.was_stopped = was_stopped;
  row.took_stock = took_stock;
  row.y = state.y;
  row.b = state.b;
  row.z_norm = state.z_norm;
  row.spread = state.spread;
  row.threshold = state.stop.threshold;
  row.step = StepSize(learner.options().step, k, num_rounds);
  return row;
}

// An automatic threshold that will stop a learner before it has moved.
void Remark(const Learner& learner, RoundReport& report) {
  const std::optional<Measurement>& first = learner.measurement();
  if (report.round != 1 || learner.options().stop.rule != StopOptions::Rule::kAuto || !first)
    return;
  if (const auto problem = ExplainStopAtOnce(*first)) {
    report.remarks.push_back(
        fmt::format("learner {} stops at once: {}", learner.index() + 1, *problem));
  }
}

}  // namespace

Federation::Federation(const FederationOptions& options,
                       std::vector<std::unique_ptr<Learner>> learners)
    : options_(options),
      learners_(std::move(learners)),
      exchange_(static_cast<int>(learners_.size()), options.average_every) {}

// Algorithm 1, iteration k. Line numbers are the paper's.
Result<RoundReport> Federation::Round() {
  const int k = ++round_;
  RoundReport report;
  report.round = k;
  std::vector<Submission> submissions;

  // {Learner-based update}, lines 4 to 16.
  for (const auto& learner : learners_) {
    const bool was_stopped = learner->state().stopped;  // Stop(k-1)
    if (!was_stopped) learner->Collect(k);              // (y, z)(k-1) on fresh worlds
    const bool took_stock = learner->TakeStock(k);      // beyond the paper (Eq. 43)
    if (!learner->resting()) submissions.push_back(learner->Submit());  // theta(k-1), y(k-1)
    Remark(*learner, report);
    learner->Update(k, options_.rounds);  // theta_hat(k), perhaps Stop(k)
    report.learners.push_back(Describe(*learner, k, options_.rounds, was_stopped, took_stock));
  }
  // Beyond the paper: candidates that the Cloud made are measured by the learners it names.
  for (const Candidate& candidate : candidates_) {
    auto& measurer = learners_[static_cast<std::size_t>(candidate.measurer)];
    submissions.push_back(measurer->Judge(candidate, k, static_cast<int>(learners_.size())));
  }

  // {Cloud update}, lines 17 and 18. (The algorithms we compare with fuse nothing; for them the
  // incumbent is a record of the best policy seen.)
  Result<Exchanged> exchanged = exchange_.Submit(k, submissions);
  if (!exchanged) return exchanged.error();
  report.incumbent = exchanged->incumbent;
  candidates_ = std::move(exchanged->candidates);

  // {Learner-based fusion}, lines 19 to 28.
  for (std::size_t i = 0; i < learners_.size(); ++i) {
    LearnerRound& row = report.learners[i];
    if (options_.algorithm == Algorithm::kFedGen && report.incumbent) {
      if (learners_[i]->resting()) {
        learners_[i]->Follow(*report.incumbent);
        row.y = report.incumbent->y;
        row.b = report.incumbent->b;
      }
      row.adopted = learners_[i]->Fuse(*report.incumbent, row.was_stopped || row.took_stock);
      row.adopted_from = report.incumbent->learner;
    }
    row.stopped = learners_[i]->state().stopped;
    row.resting = learners_[i]->resting();
    row.zeta = learners_[i]->state().zeta;
    row.episodes = learners_[i]->state().episodes;
  }
  if (options_.algorithm == Algorithm::kFedAvg) AverageAll();
  report.episodes = episodes();
  return report;
}

Ending Federation::FindEnding() const {
  if (round_ >= options_.rounds) return Ending::kRounds;
  if (options_.episodes > 0 && episodes() >= options_.episodes) return Ending::kEpisodes;
  // Nothing will ever change: everyone has stopped, no candidate is on its way, the mean of the
  // policies as they are now has been one, and the incumbent tempts nobody.
  const int averaged_round =
      options_.average_every > 0 ? round_ - round_ % options_.average_every : round_;
  const Submission* incumbent = Incumbent(exchange_.knowledge());
  const auto at_rest = [&](const std::unique_ptr<Learner>& learner) {
    const LearnerState& state = learner->state();
    const bool stock_due =
        learner->options().stock_every > 0 && state.stock_round < state.measured_round;
    const bool average_due = averaged_round < state.measured_round;
    if (learner->resting()) return true;
    return state.stopped && !stock_due && !average_due &&
           (incumbent == nullptr || !learner->WouldAdopt(*incumbent, true));
  };
  const bool settled =
      round_ > 0 && candidates_.empty() && std::all_of(learners_.begin(), learners_.end(), at_rest);
  return settled ? Ending::kSettled : Ending::kNotYet;
}

std::int64_t Federation::episodes() const {
  std::int64_t sum = 0;
  for (const auto& learner : learners_) sum += learner->state().episodes;
  return sum;
}

std::optional<Submission> Federation::incumbent() const {
  const Submission* incumbent = Incumbent(exchange_.knowledge());
  return incumbent == nullptr ? std::nullopt : std::optional(*incumbent);
}

void Federation::set_state(FederationState state) {
  round_ = state.round;
  exchange_.set_knowledge(std::move(state.knowledge));
  candidates_ = std::move(state.candidates);
}

void Federation::AverageAll() {
  std::vector<std::span<const float>> thetas;
  thetas.reserve(learners_.size());
  for (const auto& learner : learners_) thetas.emplace_back(learner->state().search.mu);
  const std::vector<float> mean = MeanOf(thetas);
  for (const auto& learner : learners_) learner->ContinueFrom(mean);
}

}  // namespace fedgen
