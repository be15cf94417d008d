// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fedgen/base/option.h"
#include "fedgen/base/result.h"
#include "fedgen/fuse/knowledge.h"

namespace fedgen {

// The seam between Algorithm 1 and the way learners reach each other. A host, the process in which
// some of the learners live, sees nothing of the others but this:
//
//   exchange.Join(...)      once: initial policies in, origins out
//   exchange.Submit(k, ...) every round: theta, y, b in, the incumbent out (lines 8, 17, 18)
//   exchange.Close(k, ...)  every round, after fusion: its outlook in, the run's ending out
//   exchange.Finish(...)    once: final policies in, those that race out
//   exchange.Race(...)      once, if learners share a task: what each counted in its part of the
//   race
//                           in, everybody's counts out
//
// Each call hands in one message per learner living here and returns when every learner of the run
// was heard. A message is named by (learner, step): the same bytes again change nothing, other
// bytes are refused. A transport implements Exchange; with the same seeds all of them give the same
// bytes.

/// How learners fuse.
enum class Algorithm {
  kFedGen,       // learners stop at local minima; the Cloud's incumbent rescues those that are
                 // significantly worse
  kLocal,        // nobody talks to anybody, nobody stops
  kFedAvg,       // everybody goes on from the mean of all, every round
  kCentralized,  // one learner that has everybody's worlds and directions
  kSingle,       // one learner, in its own worlds, that has everybody's directions
};
template <>
inline constexpr std::array<std::string_view, 5> kWords<Algorithm> = {"fedgen", "local", "fedavg",
                                                                      "centralized", "single"};

/// Why a run is over, if it is.
enum class Ending : std::uint8_t {
  kNotYet,
  kRounds,    // K rounds were run
  kSettled,   // every learner has stopped and none can adopt
  kEpisodes,  // the budget of episodes is spent
};
constexpr int NumValues(Ending /*type*/) { return 4; }

/// What all participants of a run agree on.
struct FederationOptions {
  Algorithm algorithm = Algorithm::kFedGen;
  int rounds = 200;           // K, 1..10^7
  std::int64_t episodes = 0;  // stop when this many are spent in training; 0 for no limit
  int average_every = 0;      // rounds between averaged candidates; 0 for none
  double patience = 0;        // s, after which a round goes on without who is silent; 0: it waits
  bool async = false;         // everybody has rounds of its own and is answered at once
  bool open = false;          // learners may join later, and leave

  /// Whether learners share policies at all: then their mean may be taken.
  bool fuses() const { return algorithm == Algorithm::kFedGen || algorithm == Algorithm::kFedAvg; }
};

// ---- Before the first round ----

struct JoinMessage {
  LearnerId learner;
  std::vector<float> theta;  // its initial policy
  std::string task{};        // SHA-256 of what it is judged by, in hexadecimal: only tells whether
                             // tasks are equal; empty says nothing

  friend void Fields(auto& archive, Is<JoinMessage> auto& m) {
    archive(m.learner, m.theta, m.task);
  }
};

struct Welcome {
  LearnerId origin;                 // the first learner that begins with the same policy
  std::vector<float> start;         // to begin with instead (fedavg: one policy for all); or empty
  int round = 0;                    // the run is after this round
  Ending ending = Ending::kNotYet;  // after it

  bool operator==(const Welcome&) const = default;
  friend void Fields(auto& archive, Is<Welcome> auto& w) {
    archive(w.origin, w.start, w.round, w.ending);
  }
};

// ---- In a round ----

struct RoundMessage {
  LearnerId learner;
  int round = 0;
  std::optional<Submission> submission;  // theta(k-1), y(k-1), b; none while it rests
  std::vector<Submission> judged;        // the Cloud's candidates that it was asked to measure
  std::vector<Verdict> verdicts;         // on records that it measured
  std::vector<float> moved;              // theta_hat(k); for fedavg only
  std::int64_t episodes = 0;             // that it spent so far

  friend void Fields(auto& archive, Is<RoundMessage> auto& m) {
    archive(m.learner, m.round, m.submission, m.judged, m.verdicts, m.moved, m.episodes);
  }
};

/// A policy that nobody has measured yet and that the named learner is asked to.
struct Candidate {
  LearnerId measurer;
  LearnerId origin;
  std::vector<float> theta;

  bool operator==(const Candidate&) const = default;
  friend void Fields(auto& archive, Is<Candidate> auto& c) {
    archive(c.measurer, c.origin, c.theta);
  }
};

struct RoundAnswer {
  int round = 0;                        // that it answers
  Ending ending = Ending::kNotYet;      // after it, for who was left behind and need not close it
  std::vector<LearnerId> participants;  // learners that submitted in this round, in order
  std::optional<Submission> incumbent;  // argmin of y + b over all learners and rounds so far
  std::vector<Candidate> candidates;    // to be measured in the next round
  std::vector<float> mean;              // to go on from; for fedavg only
  std::int64_t episodes = 0;            // of all learners, so far

  bool operator==(const RoundAnswer&) const = default;
  friend void Fields(auto& archive, Is<RoundAnswer> auto& a) {
    archive(a.round, a.ending, a.participants, a.incumbent, a.candidates, a.mean, a.episodes);
  }
};

/// What a learner will do, as far as it knows.
enum class Outlook : std::uint8_t {
  kSearches,
  kSettled,  // it will not change any more
  kRests,    // nor by itself: it has whatever is the incumbent, and nothing to say until the end
};
constexpr int NumValues(Outlook /*type*/) { return 3; }

struct CloseMessage {
  LearnerId learner;
  int round = 0;
  LearnerId origin;  // of its policy after fusion
  Outlook outlook = Outlook::kSearches;

  friend void Fields(auto& archive, Is<CloseMessage> auto& m) {
    archive(m.learner, m.round, m.origin, m.outlook);
  }
};

// ---- After the last round ----

struct FinalMessage {
  Submission final;  // where the learner ended, and what it last measured

  friend void Fields(auto& archive, Is<FinalMessage> auto& m) { archive(m.final); }
};

/// What may win the run.
struct Finalists {
  std::vector<Submission> finals;       // by learner; of very many, those with the least y + b
  std::optional<Submission> incumbent;  // at the end
  std::vector<float> average;           // the mean of the finals of the commonest origin; or empty
  std::uint64_t seed = 0;               // of the race: told only now, so nobody trains for it
  std::vector<LearnerId> racers;        // who drives a part of the race, in order; empty if tasks
                                        // differ: then everybody races at home

  bool operator==(const Finalists&) const = default;
  friend void Fields(auto& archive, Is<Finalists> auto& f) {
    archive(f.finals, f.incumbent, f.average, f.seed, f.racers);
  }
};

/// What one policy did in a part of the race. Sums do not depend on how the worlds were divided.
struct RaceTally {
  std::int64_t episodes = 0;
  std::int64_t reached = 0;
  std::int64_t cost = 0;  // sum of round(2^32 J)

  bool operator==(const RaceTally&) const = default;
  friend void Fields(auto& archive, Is<RaceTally> auto& t) {
    archive(t.episodes, t.reached, t.cost);
  }
};

struct RaceMessage {
  LearnerId learner;
  std::vector<RaceTally> tallies;  // of every policy that races; none from who does not drive

  friend void Fields(auto& archive, Is<RaceMessage> auto& m) { archive(m.learner, m.tallies); }
};

struct RacePart {
  LearnerId learner;
  std::vector<RaceTally> tallies;

  bool operator==(const RacePart&) const = default;
  friend void Fields(auto& archive, Is<RacePart> auto& p) { archive(p.learner, p.tallies); }
};

struct RaceAnswer {
  std::vector<RacePart> parts;  // of those who were heard, by learner

  bool operator==(const RaceAnswer&) const = default;
  friend void Fields(auto& archive, Is<RaceAnswer> auto& a) { archive(a.parts); }
};

/// A learner will not speak any more, and need not be waited for.
struct LeaveMessage {
  LearnerId learner;

  friend void Fields(auto& archive, Is<LeaveMessage> auto& m) { archive(m.learner); }
};

class Exchange {
 public:
  Exchange() = default;
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Answers in the order of the messages.
  virtual Result<std::vector<Welcome>> Join(std::span<const JoinMessage> messages) = 0;
  virtual Result<RoundAnswer> Submit(std::span<const RoundMessage> messages) = 0;
  virtual Result<Ending> Close(std::span<const CloseMessage> messages) = 0;
  virtual Result<Finalists> Finish(std::span<const FinalMessage> messages) = 0;
  virtual Result<RaceAnswer> Race(std::span<const RaceMessage> messages) = 0;
};

}  // namespace fedgen
