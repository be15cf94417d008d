// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fedgen/base/archive.h"
#include "fedgen/base/result.h"
#include "fedgen/fuse/exact_mean.h"
#include "fedgen/fuse/exchange.h"
#include "fedgen/fuse/knowledge.h"

namespace fedgen {

// The Cloud: a state machine from messages to answers. It does no I/O, has no clock and knows no
// transport.
//
// A run is a sequence of steps: join; submit and close for round 1, 2, ...; finish. In each step
// the Cloud hears every learner once, in any order, then it has one answer for all and takes the
// next step. It remembers the answers of the last two steps, so a host that was killed and repeats
// a round gets the same answers again.
//
// What it keeps does not grow with the rounds: a few records (Knowledge), one running sum, and some
// bytes per learner, never a policy per learner. (At the end it holds up to kMaxFinalists
// policies.)

/// What the Cloud knows about a learner.
struct Member {
  LearnerId initial_origin;   // of the policy it began with
  LearnerId origin;           // of the policy it has now
  bool settled = false;       // after the last round
  std::int64_t episodes = 0;  // so far
  // SHA-256 of its last messages, by step: what it may repeat.
  std::map<int, std::string> heard;

  bool operator==(const Member&) const = default;
  friend void Fields(auto& archive, Is<Member> auto& m) {
    archive(m.initial_origin, m.origin, m.settled, m.episodes, m.heard);
  }
};

/// All that a Cloud remembers; what its checkpoint holds.
struct CloudState {
  int step = 0;  // the one being heard: 0 is join, 2k - 1 submit, 2k close of round k; then finish
  std::int64_t waiting = 0;             // learners still to be heard in this step
  std::map<LearnerId, Member> members;  // everybody, from the beginning
  std::uint64_t num_parameters = 0;     // of a policy
  std::vector<float> start;             // the initial policy of the first learner
  Knowledge knowledge;
  RoundAnswer answer;                 // to the last round that everybody submitted in
  Ending ending = Ending::kNotYet;    // after the last round that was closed
  std::map<Rank, Submission> finals;  // at the end, the least
  std::vector<float> average;         // at the end, of the finals of average_origin

  std::optional<LearnerId> average_origin;  // the commonest, whose descendants' mean makes sense

  // What is being gathered in this step.
  std::map<std::string, std::vector<LearnerId>> beginners;  // by hash of their initial policy
  RoundAnswer gathering;
  ExactMean mean;              // of policies
  bool measured_anew = false;  // a submission is newer than the last average

  friend void Fields(auto& archive, Is<CloudState> auto& s) {
    archive(s.step, s.waiting, s.members, s.num_parameters, s.start, s.knowledge, s.answer,
            s.ending, s.finals, s.average, s.beginners, s.gathering, s.mean, s.average_origin,
            s.measured_anew);
  }
};

class Cloud {
 public:
  /// Of a run of these learners, at least one.
  Cloud(const FederationOptions& options, std::span<const LearnerId> learners);

  /// Hears a message. A repetition changes nothing; a message of a stranger, one that comes too
  /// early, and one that differs from what the learner said in the last two steps are refused
  /// (kMismatch); older ones are ignored.
  Result<void> Receive(const JoinMessage& message);
  Result<void> Receive(const RoundMessage& message);
  Result<void> Receive(const CloseMessage& message);
  Result<void> Receive(const FinalMessage& message);

  /// What there is to answer; nothing while somebody is still to be heard. The answers to a round
  /// are there until the next round is answered.
  std::optional<Welcome> WelcomeOf(LearnerId learner) const;
  const RoundAnswer* AnswerTo(int round) const;
  std::optional<Ending> EndingAfter(int round) const;
  std::optional<Finalists> FindFinalists() const;

  static constexpr std::size_t kMaxFinalists = 1000;

  const FederationOptions& options() const { return options_; }
  /// The last round that was closed.
  int round() const { return state_.step > 0 ? (state_.step - 1) / 2 : 0; }
  const CloudState& state() const { return state_; }
  /// Goes on from there. If the run was over and has another number of rounds now, it is over or
  /// not as if it had had that number from the beginning.
  void set_state(CloudState state);

 private:
  Result<Member*> Hear(int step, LearnerId learner, const std::string& bytes);
  bool IsPolicy(std::span<const float> theta) const;
  Result<void> Check(const Submission& submission) const;
  Result<void> Check(const RoundMessage& message) const;
  void Count(void (Cloud::*complete)());
  void CompleteJoin();
  void CompleteSubmit();
  void CompleteClose();
  Ending FindEnding() const;
  void CompleteFinish();
  void FindAverageOrigin();
  std::optional<Candidate> Nominate() const;
  bool is_averaging_round() const;

  FederationOptions options_;
  CloudState state_;
};

/// The exchange of a host in which every learner of the run lives: the Cloud is at hand.
class LocalExchange final : public Exchange {
 public:
  explicit LocalExchange(Cloud& cloud) : cloud_(cloud) {}

  Result<std::vector<Welcome>> Join(std::span<const JoinMessage> messages) override;
  Result<RoundAnswer> Submit(std::span<const RoundMessage> messages) override;
  Result<Ending> Close(std::span<const CloseMessage> messages) override;
  Result<Finalists> Finish(std::span<const FinalMessage> messages) override;

 private:
  Cloud& cloud_;
};

}  // namespace fedgen
