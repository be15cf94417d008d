// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
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
// A run is a sequence of steps: join; submit and close for round 1, 2, ...; finish; race, if
// learners share one task. In each step the Cloud hears every learner once, in any order, then it
// has one answer for all and takes the next step. It remembers the answers of the last two steps,
// so a host that was killed and repeats a round gets the same answers again.
//
// What it keeps does not grow with the rounds: a few records (Knowledge), one running sum, and some
// bytes per learner, never a policy per learner. (At the end it holds up to kMaxFinalists
// policies.)

/// The first half of a SHA-256: enough to tell what was said from what was not, and half as long.
using ShortHash = std::array<std::uint8_t, 16>;

/// What the Cloud knows about a learner. There may be a million of them.
struct Member {
  LearnerId id;
  LearnerId initial_origin;   // of the policy it began with
  LearnerId origin;           // of the policy it has now
  int step = -1;              // the last in which it was heard; -1 before it joined
  std::int64_t episodes = 0;  // so far
  // Of its messages in that step and the two before: what it may repeat. Zeros for none.
  std::array<ShortHash, 3> heard{};
  ShortHash begins_with{};  // its initial policy
  bool settled = false;     // after the last round
  bool races = false;       // drives a part of the race

  bool operator==(const Member&) const = default;
  friend void Fields(auto& archive, Is<Member> auto& m) {
    archive(m.id, m.initial_origin, m.origin, m.step, m.episodes, m.heard, m.begins_with, m.settled,
            m.races);
  }
};

/// Null if there is none of this name. Members are in order of their names.
const Member* FindMember(std::span<const Member> members, LearnerId id);

/// All that a Cloud remembers; what its checkpoint holds.
struct CloudState {
  // The one being heard: 0 is join, 2k - 1 submit, 2k close of round k; then finish, race, nothing.
  int step = 0;
  int round = 0;                     // the last that was closed
  std::int64_t waiting = 0;          // learners still to be heard in this step
  std::vector<Member> members;       // everybody, in order of their names
  std::uint64_t num_parameters = 0;  // of a policy
  std::vector<float> start;          // the initial policy of the first learner
  std::string task;                  // of all; empty if they differ
  bool tasks_differ = false;         // or somebody does not say
  std::int64_t episodes = 0;         // of all learners so far
  Knowledge knowledge;
  RoundAnswer answer;                 // to the last round that everybody submitted in
  Ending ending = Ending::kNotYet;    // after the last round that was closed
  std::map<Rank, Submission> finals;  // at the end, the least
  std::vector<float> average;         // at the end, of the finals of average_origin
  std::vector<RacePart> parts;        // of the race, after it by learner

  std::optional<LearnerId> average_origin;  // the commonest, whose descendants' mean makes sense

  // What is being gathered in this step.
  RoundAnswer gathering;
  ExactMean mean;              // of policies
  bool measured_anew = false;  // a submission is newer than the last average

  friend void Fields(auto& archive, Is<CloudState> auto& s) {
    archive(s.step, s.round, s.waiting, s.members, s.num_parameters, s.start, s.task,
            s.tasks_differ, s.episodes, s.knowledge, s.answer, s.ending, s.finals, s.average,
            s.parts, s.gathering, s.mean, s.average_origin, s.measured_anew);
  }
};

class Cloud {
 public:
  /// Of a run of these learners, at least one. Learners hear of the race's seed after the end.
  Cloud(const FederationOptions& options, std::span<const LearnerId> learners,
        std::uint64_t race_seed = 0);

  /// Hears a message. A repetition changes nothing; a message of a stranger, one that comes too
  /// early, and one that differs from what the learner said in the last two steps are refused
  /// (kMismatch); older ones are ignored.
  Result<void> Receive(const JoinMessage& message);
  Result<void> Receive(const RoundMessage& message);
  Result<void> Receive(const CloseMessage& message);
  Result<void> Receive(const FinalMessage& message);
  /// Of who does not race it is heard, and changes nothing.
  Result<void> Receive(const RaceMessage& message);

  /// What there is to answer; nothing while somebody is still to be heard. The answers to a round
  /// are there until the next round is answered.
  std::optional<Welcome> WelcomeOf(LearnerId learner) const;
  const RoundAnswer* AnswerTo(int round) const;
  std::optional<Ending> EndingAfter(int round) const;
  std::optional<Finalists> FindFinalists() const;
  std::optional<RaceAnswer> FindRaceAnswer() const;

  static constexpr std::size_t kMaxFinalists = 1000;
  static constexpr std::size_t kMaxRacers = 100;  // the first ones; their counts go to everybody
  static constexpr std::int64_t kMaxRaceEpisodes = std::int64_t{1}
                                                   << 30;  // of one policy, in a part

  const FederationOptions& options() const { return options_; }
  /// The last round that was closed.
  int round() const { return state_.round; }
  /// After the last round.
  int finish_step() const { return 2 * state_.round + 1; }
  int race_step() const { return finish_step() + 1; }
  const CloudState& state() const { return state_; }
  /// Goes on from there. If the run was over and has another number of rounds now, it is over or
  /// not as if it had had that number from the beginning.
  void set_state(CloudState state);

 private:
  Member* Find(LearnerId learner);
  bool IsMember(LearnerId learner) const;
  Result<Member*> Hear(int step, LearnerId learner, const std::string& bytes);
  bool IsPolicy(std::span<const float> theta) const;
  Result<void> Check(const Submission& submission) const;
  Result<void> Check(const RoundMessage& message) const;
  Result<void> Check(const RaceMessage& message) const;
  void Count(void (Cloud::*complete)());
  void CompleteJoin();
  void CompleteSubmit();
  void CompleteClose();
  Ending FindEnding() const;
  void CompleteFinish();
  void CompleteRace();
  bool somebody_races() const;
  void FindAverageOrigin();
  std::optional<Candidate> Nominate() const;
  bool is_averaging_round() const;

  FederationOptions options_;
  std::uint64_t race_seed_;
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
  Result<RaceAnswer> Race(std::span<const RaceMessage> messages) override;

 private:
  Cloud& cloud_;
};

}  // namespace fedgen
