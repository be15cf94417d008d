// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "fedgen/fuse/cloud.h"

// The last steps: what may win, and the race in parts.

namespace fedgen {

Result<bool> Cloud::Receive(const FinalMessage& message) {
  const LearnerId learner = message.final.learner;
  Member* member = FEDGEN_TRY(Speaker(learner));
  const Ending ending = options_.async ? member->ending : state_.ending;
  if (ending == Ending::kNotYet) return Refused(learner, "ends before the run is over");
  FEDGEN_TRY(Check(message.final));
  const Hearing hearing = FEDGEN_TRY(Hear(FinishStepOf(learner), *member, ToBytes(message)));
  if (hearing == Hearing::kRepeated) return false;
  if (finals_are_known()) return true;  // too late to win
  state_.finals.emplace(RankOf(message.final), message.final);
  if (state_.finals.size() > kMaxFinalists) state_.finals.erase(std::prev(state_.finals.end()));
  if (options_.fuses() && message.final.origin == state_.average_origin) {
    state_.mean.Add(message.final.theta);
  }
  Await(*member, false);
  CompleteIfAllAreHeard();
  return true;
}

void Cloud::CompleteFinish() {
  if (state_.mean.count() > 1) state_.average = state_.mean.Mean();
  std::size_t racers = 0;
  for (Member& member : state_.members) {
    if (member.step < 0 || member.step != FinishStepOf(member.id)) continue;
    if (options_.async && state_.ending == Ending::kNotYet) state_.ending = member.ending;
    if (!state_.tasks_differ && racers < kMaxRacers) {
      member.races = true;
      ++racers;
    }
  }
}

bool Cloud::somebody_races() const { return std::ranges::any_of(state_.members, &Member::races); }

// What a stranger may have made of its counts. How many policies race follows from the finalists;
// what the first says binds the others.
Result<void> Cloud::Check(const RaceMessage& message) const {
  const auto refused = [&](const char* why) { return Refused(message.learner, why); };
  const std::size_t num_racing = message.tallies.size();
  if (num_racing < 1 || num_racing > state_.finals.size() + 2 ||
      (!state_.parts.empty() && num_racing != state_.parts.front().tallies.size())) {
    return refused("counts for another number of policies than race");
  }
  for (const RaceTally& tally : message.tallies) {
    const bool sound = tally.episodes >= 0 && tally.episodes <= kMaxRaceEpisodes &&
                       tally.reached >= 0 && tally.reached <= tally.episodes && tally.cost >= 0 &&
                       tally.cost <= tally.episodes << 32;
    if (!sound) return refused("its counts of the race contradict each other");
  }
  return {};
}

Result<bool> Cloud::Receive(const RaceMessage& message) {
  Member* member = FEDGEN_TRY(Speaker(message.learner));
  if (!finals_are_known()) {
    return Refused(message.learner, "races before the finalists are known");
  }
  if (!somebody_races()) {
    return Refused(message.learner, "races though tasks differ: everybody races at home");
  }
  if (!member->races) {
    if (message.tallies.empty()) return false;
    return Refused(message.learner, "counts what it was not asked to drive");
  }
  FEDGEN_TRY(Check(message));
  const int step = FinishStepOf(message.learner) + 1;
  const Hearing hearing = FEDGEN_TRY(Hear(step, *member, ToBytes(message)));
  if (hearing == Hearing::kRepeated) return false;
  if (phase() != Phase::kRace) return true;  // too late to count
  state_.parts.push_back({message.learner, message.tallies});
  Await(*member, false);
  CompleteIfAllAreHeard();
  return true;
}

void Cloud::CompleteRace() { std::ranges::sort(state_.parts, {}, &RacePart::learner); }

std::optional<Finalists> Cloud::FindFinalists() const {
  if (!finals_are_known()) return std::nullopt;
  Finalists finalists;
  finalists.seed = race_seed_;
  for (const Member& member : state_.members) {
    if (member.races) finalists.racers.push_back(member.id);
  }
  for (const auto& [rank, final] : state_.finals) finalists.finals.push_back(final);
  std::ranges::sort(finalists.finals, {}, &Submission::learner);
  if (const Submission* incumbent = Incumbent(state_.knowledge)) finalists.incumbent = *incumbent;
  finalists.average = state_.average;
  return finalists;
}

std::optional<RaceAnswer> Cloud::FindRaceAnswer() const {
  if (phase() != Phase::kOver || !somebody_races()) return std::nullopt;
  return RaceAnswer{state_.parts};
}

}  // namespace fedgen
