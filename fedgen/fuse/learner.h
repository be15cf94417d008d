// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fedgen/fuse/exchange.h"
#include "fedgen/learn/objective.h"
#include "fedgen/learn/optimizer.h"
#include "fedgen/learn/stop_rule.h"

namespace fedgen {

// One learner of Algorithm 1: what it knows (LearnerState) and the three things it does in a round.
// It sees an Objective, which may be its private worlds or a function on paper, and never another
// learner: only submissions.

struct LearnerOptions {
  double bias = 0.2;  // b, the bound on the error of y (Eq. 18), > 0
  StepOptions step;
  OptimizerOptions optimizer;
  StopOptions stop;
  double sigma_rate = 0;  // of sigma's steps against mu's, >= 0 (Eq. 20)

  // Beyond the paper: every so many rounds, and when it has stopped, a learner takes stock: it
  // measures its policy on many more fresh worlds, which gives a y with a far smaller b (Eq. 43),
  // and may adopt in that round as if it had stopped.
  int stock_every = 0;        // rounds; 0 for never
  int stock_worlds = 0;       // worlds of it
  int candidate_worlds = 50;  // on which the Cloud's candidates are judged
  double gamma = 0.01;        // the probability that a b fails

  // Beyond the paper: a learner that has adopted rests from then on. It measures nothing and
  // follows the Cloud's incumbent, which whoever found it goes on improving: two learners on one
  // policy would spend twice the episodes for one way down.
  bool rest = false;
};

/// Everything a learner must remember between rounds; what a checkpoint holds.
struct LearnerState {
  Search search;                     // theta = mu
  double y = 1;                      // last measurement of mu
  double b = 1;                      // bound on its error
  double z_norm = 0;                 // |z_mu| of it
  double spread = 0;                 // of it
  int measured_round = 0;            // when it was taken
  double zeta = 1;                   // the last adopted global minimum
  bool stopped = false;              // Stop
  int stock_round = 0;               // when it last took stock
  int origin = 0;                    // whose initial policy this descends from
  int adoptions = 0;                 // so far
  std::int64_t episodes = 0;         // spent so far
  OptimizerState optimizer;          // cleared on adoption
  StopState stop;                    // its memory of y is cleared on adoption
  int first_stop = 0;                // round of the first stop; 0 if it never stopped
  std::vector<float> first_stopped;  // theta then: the policy that local learning ends at

  bool operator==(const LearnerState&) const = default;
};

class Learner {
 public:
  /// `key` names the learner's private randomness; only this learner knows it. The objective is its
  /// own.
  Learner(int index, const LearnerOptions& options, std::unique_ptr<Objective> objective,
          Search initial, Key key);

  /// Line 6 of Algorithm 1: measures (y, z) at theta on round k's fresh worlds.
  void Collect(int k);
  /// Takes stock if it is time to; returns whether it did.
  bool TakeStock(int k);
  /// Line 8: what it tells the Cloud.
  Submission Submit() const;
  /// Lines 9 to 15: one step down, or stop. Requires Collect(k) unless stopped.
  void Update(int k, int num_rounds);
  /// Lines 20 to 27: takes the incumbent if it is significantly better than what it has, provided
  /// it `may`: it had stopped before this round began, or has taken stock in it. Returns whether it
  /// did.
  bool Fuse(const Submission& incumbent, bool may);
  /// Whether Fuse would take it (Eq. 31).
  bool WouldAdopt(const Submission& incumbent, bool may) const;
  /// Whether it has given up searching and holds what the Cloud holds.
  bool resting() const { return options_.rest && state_.adoptions > 0; }
  /// Takes the incumbent as it is. Requires that the learner rests.
  void Follow(const Submission& incumbent);

  /// Beyond the paper: y of a candidate that the Cloud made, on worlds of its own.
  Submission Judge(const Candidate& candidate, int k, int as_learner);
  /// Federated averaging, for comparison: goes on from here.
  void ContinueFrom(const std::vector<float>& theta) { state_.search.mu = theta; }

  int index() const { return index_; }
  const LearnerOptions& options() const { return options_; }
  const LearnerState& state() const { return state_; }
  void set_state(LearnerState state) { state_ = std::move(state); }
  /// The measurement of the present round; empty while stopped.
  const std::optional<Measurement>& measurement() const { return measurement_; }

 private:
  void Take(const Submission& incumbent);

  int index_;
  LearnerOptions options_;
  std::unique_ptr<Objective> objective_;
  Key key_;
  std::vector<float> initial_sigma_;
  LearnerState state_;
  std::optional<Measurement> measurement_;
};

}  // namespace fedgen
