// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fedgen/fuse/exchange.h"
#include "fedgen/fuse/learner.h"

namespace fedgen {

// Algorithm 1 of the paper, for the learners that live in this process. The others, and the Cloud,
// are behind the exchange:
//
//   Host host(options, std::move(learners));
//   FEDGEN_TRY(host.Join(exchange));
//   while (host.ending() == Ending::kNotYet) FEDGEN_TRY(host.Round(exchange));
//   const Finalists finalists = FEDGEN_TRY(host.Finish(exchange));

/// What happened to one learner in one round.
struct LearnerRound {
  LearnerId learner;
  LearnerPhase phase = LearnerPhase::kRunning;
  bool took_stock = false;
  bool kept_policy = false;               // theta after the round is theta before it
  double y = 1, b = 1;                    // of theta before the step
  std::optional<double> z_norm, spread;   // if a gradient was measured in this round
  std::optional<double> threshold;        // q, if |z| below it stops the learner
  double step = 0;                        // its length, if it took one
  std::optional<LearnerId> adopted_from;  // whose, if it adopted
  double zeta = 1;                        // the last adopted global minimum
  std::int64_t episodes = 0;              // of this learner, so far
};

struct RoundReport {
  int round = 0;
  std::vector<LearnerRound> learners;   // living here
  std::vector<LearnerId> participants;  // of the whole run
  std::optional<Submission> incumbent;
  std::int64_t episodes = 0;         // of all learners of the run, so far
  Ending ending = Ending::kNotYet;   // of the run, after this round
  std::vector<std::string> remarks;  // that a person should read
};

/// What a host must remember between rounds, besides its learners.
struct HostState {
  int round = 0;                      // rounds that are complete
  Ending ending = Ending::kNotYet;    // after the last
  std::int64_t episodes = 0;          // of all learners of the run
  std::vector<Candidate> candidates;  // to be measured in the next round

  bool operator==(const HostState&) const = default;
  friend void Fields(auto& archive, Is<HostState> auto& s) {
    archive(s.round, s.ending, s.episodes, s.candidates);
  }
};

/// Not thread-safe; improvers may use threads.
class Host {
 public:
  /// At least one learner, each with an id of its own.
  Host(const FederationOptions& options, std::vector<std::unique_ptr<Learner>> learners);

  /// Before the first round: where every learner begins.
  Result<void> Join(Exchange& exchange);
  /// One round of Algorithm 1, or of what it is compared with.
  Result<RoundReport> Round(Exchange& exchange);
  /// After the last round: what may win.
  Result<Finalists> Finish(Exchange& exchange);

  int round() const { return state_.round; }
  Ending ending() const { return state_.ending; }
  std::int64_t episodes() const { return state_.episodes; }
  const FederationOptions& options() const { return options_; }
  /// In the order they were given.
  const std::vector<std::unique_ptr<Learner>>& learners() const { return learners_; }
  /// Null if it lives elsewhere.
  Learner* Find(LearnerId id) const;

  const HostState& state() const { return state_; }
  void set_state(HostState state) { state_ = std::move(state); }

 private:
  RoundMessage Contribute(Learner& learner, LearnerRound& row, RoundReport& report);
  void Fuse(Learner& learner, const RoundAnswer& answer, bool may, LearnerRound& row) const;

  FederationOptions options_;
  std::vector<std::unique_ptr<Learner>> learners_;
  HostState state_;
};

}  // namespace fedgen
