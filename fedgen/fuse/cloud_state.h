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
#include "fedgen/fuse/exact_mean.h"
#include "fedgen/fuse/exchange.h"
#include "fedgen/fuse/knowledge.h"

namespace fedgen {

// All that a Cloud (fuse/cloud.h) remembers: what its checkpoint holds, and what follows from the
// messages that it heard and their order.

/// Whether a learner is expected to speak.
enum class Presence : std::uint8_t {
  kPresent,
  kLeftOut,  // it was silent for too long; it may come back
  kLeft,     // by itself, for good
  kRevoked,  // its certificate was
};
constexpr int NumValues(Presence /*type*/) { return 4; }

/// The first half of a SHA-256: enough to tell what was said from what was not, and half as long.
using ShortHash = std::array<std::uint8_t, 16>;

/// Steps of a run, as CloudState::step counts them.
inline constexpr int kJoinStep = 0;
constexpr int SubmitStep(int round) { return 2 * round - 1; }
constexpr int CloseStep(int round) { return 2 * round; }

/// Why a message of a later step is refused. A learner knows it only if a Cloud once did.
inline constexpr const char* kNotBegun =
    "speaks of a round that has not begun here: is this Cloud's store older than the learner's "
    "run?";

/// A round that is known when the one that is being closed is.
inline constexpr int kRoundToCome = -1;

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
  int joined = 0;           // after this round
  // The round whose answer it heard after it was left behind. In an asynchronous run its last
  // round, once it is over for it.
  int told = 0;
  int seen = 0;  // asynchronous: the incumbent that it heard of last, by number
  Presence presence = Presence::kPresent;
  Ending ending = Ending::kNotYet;       // asynchronous: after its last round
  bool awaited = true;                   // still to be heard in this step
  Outlook outlook = Outlook::kSearches;  // after the last round
  bool races = false;                    // drives a part of the race
  bool closing = false;                  // asynchronous: settled, and waits for what others do
  bool rewound = false;                  // asynchronous: closes its round once more

  bool rests() const { return outlook == Outlook::kRests; }

  bool operator==(const Member&) const = default;
  friend void Fields(auto& archive, Is<Member> auto& m) {
    archive(m.id, m.initial_origin, m.origin, m.step, m.episodes, m.heard, m.begins_with, m.joined,
            m.told, m.seen, m.presence, m.ending, m.awaited, m.outlook, m.races, m.closing,
            m.rewound);
  }
};

/// Null if there is none of this name. Members are in order of their names.
const Member* FindMember(std::span<const Member> members, LearnerId id);

struct CloudState {
  // The one being heard: 0 is join, 2k - 1 submit, 2k close of round k; then finish, race, nothing.
  // Asynchronous: 0 is join, 1 rounds and finish, 2 race.
  int step = 0;
  int round = 0;                     // the last that was closed
  std::int64_t waiting = 0;          // learners still to be heard in this step
  std::int64_t heard = 0;            // learners heard in it
  std::vector<Member> members;       // everybody, in order of their names
  std::uint64_t num_parameters = 0;  // of a policy
  LearnerId starter;                 // the first learner that joined before the first round
  std::vector<float> start;          // its initial policy
  std::string task;                  // of all; empty if they differ
  bool tasks_differ = false;         // or somebody does not say
  std::int64_t episodes = 0;         // of all learners so far
  Knowledge knowledge;
  int incumbents = 0;                 // asynchronous: how many there were
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
    archive(s.step, s.round, s.waiting, s.heard, s.members, s.num_parameters, s.starter, s.start,
            s.task, s.tasks_differ, s.episodes, s.knowledge, s.incumbents, s.answer, s.ending,
            s.finals, s.average, s.parts, s.gathering, s.mean, s.average_origin, s.measured_anew);
  }
};

}  // namespace fedgen
