// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fedgen/base/option.h"
#include "fedgen/fuse/exchange.h"
#include "fedgen/learn/improver.h"

namespace fedgen {

// One learner of Algorithm 1: what it knows (LearnerState) and the three things it does in a round.
// It improves by an Improver, which may drive through its private worlds or descend a function on
// paper, and it never sees another learner: only submissions.

struct LearnerOptions {
  double bias = 0.2;  // b, the bound on the error of y (Eq. 18), > 0

  // Beyond the paper: every so many rounds, and once after it has stopped, a learner takes stock:
  // it measures its policy on many more fresh worlds, which gives a y with a far smaller b (Eq.
  // 43), and may adopt in that round as if it had stopped.
  int stock_every = 0;        // rounds; 0 for never
  double stock_growth = 1;    // >= 1; by how much the next such round is later at least
  int stock_worlds = 0;       // worlds on which stock is taken
  int candidate_worlds = 50;  // on which the Cloud's candidates are judged
  double gamma = 0.01;        // the probability that a b fails

  // Beyond the paper: a learner that has adopted rests from then on. It measures nothing and
  // follows the Cloud's incumbent, which whoever found it goes on improving: two learners on one
  // policy would spend twice the episodes for one way down.
  bool rest = false;

  std::string task{};  // SHA-256 of its task in hexadecimal, if it says so; tells equal ones apart
};

/// Everything a learner must remember between rounds, besides its improver's private state.
struct LearnerState {
  std::vector<float> theta;          // the policy
  double y = 1;                      // last measurement of theta
  double b = 1;                      // bound on its error
  int measured_round = 0;            // when it was taken
  double zeta = 1;                   // the last adopted global minimum
  bool stopped = false;              // Stop
  int stock_round = 0;               // when the learner last took stock
  LearnerId origin;                  // whose initial policy theta descends from
  int adoptions = 0;                 // so far
  std::int64_t episodes = 0;         // spent so far
  int first_stop = 0;                // round of the first stop; 0 if it never stopped
  std::vector<float> first_stopped;  // theta then: the policy that local learning ends at

  bool operator==(const LearnerState&) const = default;
  friend void Fields(auto& archive, Is<LearnerState> auto& s) {
    archive(s.theta, s.y, s.b, s.measured_round, s.zeta, s.stopped, s.stock_round, s.origin,
            s.adoptions, s.episodes, s.first_stop, s.first_stopped);
  }
};

/// What a learner did in a round.
enum class LearnerPhase {
  kRunning,   // it measured and took a step
  kStopping,  // it measured and stopped: a local minimum, as far as it can tell
  kStopped,   // it had stopped before and measured nothing, except to take stock
  kAdopted,   // it took the incumbent
  kResting,   // it adopted earlier and follows the incumbent: y and b are the incumbent's
};
template <>
inline constexpr std::array<std::string_view, 5> kWords<LearnerPhase> = {
    "running", "stopping", "stopped", "adopted", "resting"};

/// Whether what is done now and then is due in round k: in round `every` first; after a round r in
/// which it was due, in max(r + every, floor(r growth)). With a growth of 1 that is every so many
/// rounds; with more, the number of such rounds grows like the logarithm of k. Requires every > 0,
/// growth >= 1.
bool IsDue(int k, int every, double growth);

class Learner {
 public:
  /// `secret` names the learner's private randomness; only this learner knows it. The improver is
  /// its own.
  Learner(LearnerId id, const LearnerOptions& options, std::unique_ptr<Improver> improver,
          std::vector<float> theta, Key secret);

  /// Before the first round: what the Cloud says about where it begins.
  void Begin(const Welcome& welcome);
  /// Line 6 of Algorithm 1: measures theta on round k's fresh worlds.
  Look Collect(int k, int num_rounds);
  /// Takes stock if it is time to; returns whether it did.
  bool TakeStock(int k);
  /// Line 8: what it tells the Cloud.
  Submission Submit() const;
  /// Lines 9 to 15: improves, or stops. Returns whether it moved. Requires Collect(k).
  bool Update(int k, int num_rounds);
  /// Lines 20 to 27: takes the incumbent if it is significantly better than what the learner has,
  /// provided that it `may`: it had stopped before this round began, or has taken stock in it.
  /// Returns whether it did.
  bool Fuse(const Submission& incumbent, bool may);
  /// Whether Fuse would take it (Eq. 31).
  bool WouldAdopt(const Submission& incumbent, bool may) const;
  /// Whether it has given up searching and holds what the Cloud holds.
  bool resting() const { return options_.rest && state_.adoptions > 0; }
  /// Takes the incumbent as it is. Requires that the learner rests.
  void Follow(const Submission& incumbent);
  /// What it will do after fusion. It is settled if nothing it does will change any more as long as
  /// the incumbent stays. `averaged_round` is the last in which the mean of the policies as they
  /// are was a candidate.
  Outlook OutlookAfter(const std::optional<Submission>& incumbent, int averaged_round) const;

  /// Beyond the paper: y of a candidate that the Cloud made, on worlds of the learner.
  Submission Judge(const Candidate& candidate, int k);
  /// Federated averaging, for comparison: goes on from here.
  void ContinueFrom(const std::vector<float>& theta) { state_.theta = theta; }

  LearnerId id() const { return id_; }
  const LearnerOptions& options() const { return options_; }
  const Improver& improver() const { return *improver_; }
  Improver& improver() { return *improver_; }
  const LearnerState& state() const { return state_; }
  void set_state(LearnerState state) { state_ = std::move(state); }

 private:
  void Take(const Submission& incumbent);

  LearnerId id_;
  LearnerOptions options_;
  std::unique_ptr<Improver> improver_;
  Key secret_;
  LearnerState state_;
};

}  // namespace fedgen
