// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fuse/host.h"

#include <fmt/format.h>

#include <algorithm>

namespace fedgen {

Host::Host(const FederationOptions& options, std::vector<std::unique_ptr<Learner>> learners)
    : options_(options), learners_(std::move(learners)) {}

Learner* Host::Find(LearnerId id) const {
  const auto found = std::ranges::find(learners_, id, [](const auto& l) { return l->id(); });
  return found == learners_.end() ? nullptr : found->get();
}

Result<void> Host::Join(Exchange& exchange) {
  std::vector<JoinMessage> messages;
  messages.reserve(learners_.size());
  for (const auto& learner : learners_) {
    messages.push_back({learner->id(), learner->state().theta, learner->options().task});
  }
  const std::vector<Welcome> welcomes = FEDGEN_TRY(exchange.Join(messages));
  for (std::size_t i = 0; i < learners_.size(); ++i) learners_[i]->Begin(welcomes[i]);
  // Who joins later goes on with everybody.
  state_.round = welcomes.front().round;
  state_.ending = welcomes.front().ending;
  return {};
}

// Algorithm 1, iteration k. Line numbers are the paper's.
Result<RoundReport> Host::Round(Exchange& exchange) {
  const int k = state_.round + 1;
  RoundReport report;
  report.round = k;

  // {Learner-based update}, lines 4 to 16. Who rests has nothing to say; where all do, they ask,
  // and are answered when the run is over.
  std::vector<RoundMessage> messages;
  std::vector<bool> speaks, may_fuse;
  std::vector<std::vector<float>> before;
  const bool only_ask =
      !options_.async && std::ranges::all_of(learners_, [](const auto& l) { return l->resting(); });
  for (const auto& learner : learners_) {
    before.push_back(learner->state().theta);
    const bool was_stopped = learner->state().stopped;  // Stop(k-1)
    speaks.push_back(only_ask || options_.async || !learner->resting());
    LearnerRound& row = report.learners.emplace_back();
    RoundMessage message = Contribute(*learner, row, report);
    if (speaks.back()) messages.push_back(std::move(message));
    may_fuse.push_back(was_stopped || row.took_stock);
  }

  // {Cloud update}, lines 17 and 18: the argmin of y + b over all learners and rounds.
  RoundAnswer answer = FEDGEN_TRY(exchange.Submit(messages));

  // {Learner-based fusion}, lines 19 to 28.
  std::vector<CloseMessage> closing;
  const int every = options_.average_every;
  const int averaged_round = every > 0 ? k - k % every : k;
  for (std::size_t i = 0; i < learners_.size(); ++i) {
    Learner& learner = *learners_[i];
    Fuse(learner, answer, may_fuse[i], report.learners[i]);
    report.learners[i].kept_policy = learner.state().theta == before[i];
    if (!speaks[i]) continue;
    closing.push_back({learner.id(), k, learner.state().origin,
                       learner.OutlookAfter(answer.incumbent, averaged_round)});
  }
  // Who was left behind, or rests, hears of a later round, which the others have closed.
  const bool was_left_behind = only_ask || answer.round > k;
  report.ending = was_left_behind ? answer.ending : FEDGEN_TRY(exchange.Close(closing));

  report.participants = std::move(answer.participants);
  report.incumbent = std::move(answer.incumbent);
  report.episodes = answer.episodes;
  const int completed = was_left_behind ? answer.round : k;
  state_ = {completed, report.ending, report.episodes, std::move(answer.candidates)};
  return report;
}

// What a learner does before anybody hears of it, and what it says then.
RoundMessage Host::Contribute(Learner& learner, LearnerRound& row, RoundReport& report) {
  const int k = report.round;
  row.learner = learner.id();
  row.phase = learner.resting() ? LearnerPhase::kResting : LearnerPhase::kStopped;
  const bool runs = !learner.state().stopped;
  if (runs) {
    const Look look = learner.Collect(k, options_.rounds);  // (y, z)(k-1) on fresh worlds
    row.z_norm = look.z_norm;
    row.spread = look.spread;
    row.threshold = look.threshold;
    if (!look.remark.empty()) {
      report.remarks.push_back(fmt::format("learner {} {}", learner.id().name(), look.remark));
    }
  }
  row.took_stock = learner.TakeStock(k);  // beyond the paper (Eq. 43)
  row.y = learner.state().y;
  row.b = learner.state().b;

  RoundMessage message;
  message.learner = learner.id();
  message.round = k;
  if (!learner.resting()) message.submission = learner.Submit();  // theta(k-1), y(k-1)
  if (runs) {
    const bool moved = learner.Update(k, options_.rounds);  // theta_hat(k), perhaps Stop(k)
    row.phase = moved ? LearnerPhase::kRunning : LearnerPhase::kStopping;
    if (moved) row.step = learner.improver().StepLength(k, options_.rounds);
  }
  if (options_.algorithm == Algorithm::kFedAvg) message.moved = learner.state().theta;
  // Beyond the paper: candidates that the Cloud made are measured by the learners it names.
  for (const Candidate& candidate : state_.candidates) {
    if (candidate.measurer == learner.id()) message.judged.push_back(learner.Judge(candidate, k));
  }
  message.episodes = learner.state().episodes;
  return message;
}

void Host::Fuse(Learner& learner, const RoundAnswer& answer, bool may, LearnerRound& row) const {
  if (options_.algorithm == Algorithm::kFedGen && answer.incumbent) {
    if (learner.resting()) {
      learner.Follow(*answer.incumbent);
      row.y = answer.incumbent->y;
      row.b = answer.incumbent->b;
    } else if (learner.Fuse(*answer.incumbent, may)) {
      row.phase = LearnerPhase::kAdopted;
      row.adopted_from = answer.incumbent->learner;
    }
  }
  if (options_.algorithm == Algorithm::kFedAvg) learner.ContinueFrom(answer.mean);
  row.zeta = learner.state().zeta;
  row.episodes = learner.state().episodes;
}

Result<Finalists> Host::Finish(Exchange& exchange) {
  std::vector<FinalMessage> messages;
  messages.reserve(learners_.size());
  for (const auto& learner : learners_) messages.push_back({learner->Submit()});
  return exchange.Finish(messages);
}

}  // namespace fedgen
