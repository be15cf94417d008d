// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fedgen/base/result.h"
#include "fedgen/fuse/cloud_state.h"
#include "fedgen/fuse/exchange.h"

namespace fedgen {

// The Cloud: a state machine from messages to answers. It does no I/O, has no clock and knows no
// transport.
//
// A run is a sequence of steps: join; submit and close for round 1, 2, ...; finish; race, if
// learners share one task. In each step the Cloud hears every learner once, in any order, then it
// has one answer for all and takes the next step. It remembers the answers of the last two steps,
// so a host that was killed and repeats a round gets the same answers again.
//
// Who is waited for may change. What depends on time is decided by whoever has a clock, and comes
// in as a message of its own (ControlMessage): a learner that is silent is left out and awaited no
// more. When it comes back, with a message of a round long ago, it is answered with the last round
// that is closed, and awaited again from the next submit on. Where the run is open, learners join
// later and leave.
//
// An asynchronous run (cloud_async.cc) has no steps between join and finish: everybody has rounds
// of its own, and is answered at once with the incumbent of that moment.
//
// So answers follow from the messages and, where somebody was left out or the run is asynchronous,
// from their order. What the Cloud keeps does not grow with the rounds: a few records (Knowledge),
// one running sum, and some bytes per learner, never a policy per learner. (At the end it holds up
// to kMaxFinalists policies.)

/// What the Cloud itself decides: it has a place among the messages, as everything that answers
/// depend on.
struct ControlMessage {
  enum class Kind : std::uint8_t {
    kLeftOut,        // the learner was silent for too long
    kRevoked,        // its certificate is no longer one
    kAnsweredAgain,  // its answer was lost, and what was answered is no more: it hears another
  };
  Kind kind = Kind::kLeftOut;
  LearnerId learner;

  bool operator==(const ControlMessage&) const = default;
  friend constexpr int NumValues(Kind /*type*/) { return 3; }
  friend void Fields(auto& archive, Is<ControlMessage> auto& m) { archive(m.kind, m.learner); }
};

/// What is wrong with what all agree on: an asynchronous run has no means.
std::optional<FieldError> Validate(const FederationOptions& options);

class Cloud {
 public:
  /// Of a run of these learners, at least one. Learners hear of the race's seed after the end.
  Cloud(const FederationOptions& options, std::span<const LearnerId> learners,
        std::uint64_t race_seed = 0);

  /// Hears a message, and says whether it is new. A repetition changes nothing; a message of a
  /// stranger, one that comes too early, and one that differs from what the learner said in its
  /// last two steps are refused (kMismatch); older ones are ignored.
  Result<bool> Receive(const JoinMessage& message);
  Result<bool> Receive(const RoundMessage& message);
  Result<bool> Receive(const CloseMessage& message);
  Result<bool> Receive(const FinalMessage& message);
  /// Of who does not race it is heard, and changes nothing.
  Result<bool> Receive(const RaceMessage& message);
  Result<bool> Receive(const LeaveMessage& message);
  Result<bool> Receive(const ControlMessage& message);

  /// What there is to answer; nothing while somebody is still to be heard. The answers to a round
  /// are there until the next round is answered; in an asynchronous run they are those of now.
  std::optional<Welcome> WelcomeOf(LearnerId learner) const;
  std::optional<RoundAnswer> AnswerTo(LearnerId learner, int round) const;
  std::optional<Ending> EndingAfter(LearnerId learner, int round) const;
  std::optional<Finalists> FindFinalists() const;
  std::optional<RaceAnswer> FindRaceAnswer() const;
  /// The same for everybody who is not behind.
  const RoundAnswer* AnswerTo(int round) const;
  std::optional<Ending> EndingAfter(int round) const;

  /// Whether a learner rests: it is not awaited in rounds, and hears of the last of them when the
  /// run is over (Outlook::kRests; not in an asynchronous run, where nobody is awaited).
  bool IsResting(LearnerId learner) const;
  /// Whether a learner repeats its last submission and can be answered only by kAnsweredAgain.
  bool NeedsAnotherAnswer(const RoundMessage& message) const;
  /// Who is still to be heard: whom kLeftOut may name.
  std::vector<LearnerId> Silent() const;

  static constexpr std::size_t kMaxFinalists = 1000;
  static constexpr std::size_t kMaxRacers = 100;  // the first ones; their counts go to everybody
  static constexpr std::int64_t kMaxRaceEpisodes = std::int64_t{1}
                                                   << 30;  // of one policy, in a part

  const FederationOptions& options() const { return options_; }
  /// The last round that was closed.
  int round() const { return state_.round; }
  /// What is being heard.
  enum class Phase : std::uint8_t { kJoin, kSubmit, kClose, kFinish, kRace, kOver };
  Phase phase() const;
  /// In which this learner finishes; the race is the next.
  int FinishStepOf(LearnerId learner) const;
  const CloudState& state() const { return state_; }
  /// Goes on from there. If the run was over and has another number of rounds now, it is over or
  /// not as if it had had that number from the beginning.
  void set_state(CloudState state);

 private:
  enum class Hearing : std::uint8_t {
    kNew,
    kLate,      // of a step that was completed without it
    kRepeated,  // or of long ago
  };

  // Who speaks, and what is heard.
  Member* Find(LearnerId learner);
  bool IsMember(LearnerId learner) const;
  Result<Member*> Speaker(LearnerId learner);
  static std::string WordsOf(const RoundMessage& message);
  Result<Hearing> Hear(int step, Member& member, const std::string& words);
  Result<Hearing> HearInStep(int step, Member& member, const ShortHash& hash);
  static Result<Hearing> HearAgain(int step, const Member& member, const ShortHash& hash);
  void ComeBack(Member& member);
  void Await(Member& member, bool awaited);
  void AwaitNoMore(Member& member);
  bool is_tolerant() const { return options_.patience > 0 || options_.open; }
  bool finals_are_known() const;

  // Whether what they say makes sense.
  static Error Refused(LearnerId learner, const std::string& problem);
  static Error Stranger(LearnerId learner);
  bool IsPolicy(std::span<const float> theta) const;
  Result<void> Check(const JoinMessage& message) const;
  Result<void> Check(const Submission& submission) const;
  Result<void> Check(const RoundMessage& message) const;
  Result<void> Check(const RaceMessage& message) const;

  // Steps.
  int finish_step() const { return 2 * state_.round + 1; }
  void CompleteIfAllAreHeard();
  bool CompleteStep();
  bool IsDue(const Member& member) const;
  bool only_resting_are_here() const;
  void TakeNextStep();
  void CompleteJoin();
  void CompleteSubmit();
  void CompleteClose();
  void CompleteFinish();
  void CompleteRace();
  void Gather(const RoundMessage& message);
  void Learn(const RoundMessage& message);
  int RoundToGoOnFrom() const;
  LearnerId OriginOf(const Member& beginner) const;
  Ending FindEnding() const;
  bool somebody_races() const;
  void FindAverageOrigin();
  std::optional<Candidate> Nominate() const;
  bool is_averaging_round() const;
  Result<bool> AnswerAgain(Member& member);
  std::optional<RoundAnswer> AnswerToResting() const;

  // Asynchronous runs.
  Result<bool> ReceiveAsync(const RoundMessage& message, Member& member);
  Result<bool> ReceiveAsync(const CloseMessage& message, Member& member);
  RoundAnswer AnswerOfNow(LearnerId learner, int round) const;
  void AnswerAgainAsync(Member& member);
  void EndFor(Member& member, Ending ending, int round);
  void Release();
  void SettleIfNobodyRuns();
  bool Runs(const Member& member) const;
  void Count();

  FederationOptions options_;
  std::uint64_t race_seed_;
  CloudState state_;
  // Follow from the state. Asynchronous: who is on the way to its next close, and who waits there.
  std::int64_t running_ = 0, closing_ = 0;
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
