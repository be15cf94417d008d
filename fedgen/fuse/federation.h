// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "fedgen/fuse/exchange.h"
#include "fedgen/fuse/learner.h"

namespace fedgen {

// Algorithm 1 of the paper, and the three algorithms it is compared with.
//
//   fedgen       learners stop at local minima; the Cloud's incumbent rescues those that are
//                significantly worse
//   local        nobody talks to anybody, nobody stops
//   fedavg       everybody goes on from the mean of all, every round
//   centralized  one learner that has everybody's directions (MakeFederation)
enum class Algorithm { kFedGen, kLocal, kFedAvg, kCentralized };

/// Why a run is over, if it is.
enum class Ending {
  kNotYet,
  kRounds,    // K rounds were run
  kSettled,   // every learner has stopped and no fusion can fire
  kEpisodes,  // the budget of episodes is spent
};

struct FederationOptions {
  Algorithm algorithm = Algorithm::kFedGen;
  int rounds = 200;           // K, 1..10^7
  std::int64_t episodes = 0;  // stop when this many are spent in training; 0 for no limit
  int average_every = 0;      // rounds between averaged candidates; 0 for none
};

/// What happened to one learner in one round.
struct LearnerRound {
  bool was_stopped = false;       // before the round began: nothing was measured
  bool took_stock = false;        // in it
  bool stopped = false;           // after it
  bool resting = false;           // after it: it stopped for good and holds the incumbent
  bool adopted = false;           // the incumbent, in this round
  int adopted_from = 0;           // whose
  double y = 1, b = 1;            // of theta before the step
  double z_norm = 0, spread = 0;  // of the last measurement
  std::optional<double> threshold;
  double step = 0;
  double zeta = 1;
  std::int64_t episodes = 0;  // so far
};

struct RoundReport {
  int round = 0;
  std::vector<LearnerRound> learners;
  std::optional<Submission> incumbent;
  std::int64_t episodes = 0;         // of all learners, so far
  std::vector<std::string> remarks;  // that a person should read
};

/// What a federation must remember between rounds, besides the learners' states.
struct FederationState {
  int round = 0;
  Knowledge knowledge;
  std::vector<Candidate> candidates;

  bool operator==(const FederationState&) const = default;
};

/// Learners that live in this process, round after round. Not thread-safe; objectives may use
/// threads.
class Federation {
 public:
  Federation(const FederationOptions& options, std::vector<std::unique_ptr<Learner>> learners);

  /// One round of Algorithm 1 (or of what it is compared with).
  Result<RoundReport> Round();
  Ending FindEnding() const;

  int round() const { return round_; }
  /// Whether learners share policies at all: then their mean may be taken.
  bool fuses() const {
    return options_.algorithm == Algorithm::kFedGen || options_.algorithm == Algorithm::kFedAvg;
  }
  std::int64_t episodes() const;
  const std::vector<std::unique_ptr<Learner>>& learners() const { return learners_; }
  std::optional<Submission> incumbent() const;

  FederationState state() const { return {round_, exchange_.knowledge(), candidates_}; }
  void set_state(FederationState state);

 private:
  void AverageAll();

  FederationOptions options_;
  std::vector<std::unique_ptr<Learner>> learners_;
  InProcessExchange exchange_;
  std::vector<Candidate> candidates_;  // to be measured in the next round
  int round_ = 0;
};

}  // namespace fedgen
