// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fuse/cloud.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "fedgen/base/check.h"
#include "fedgen/base/hash.h"

namespace fedgen {
namespace {

constexpr int kJoin = 0;
constexpr std::int64_t kMaxEpisodes = 1'000'000'000'000;  // of a learner; a million can be added
constexpr int SubmitStep(int round) { return 2 * round - 1; }
constexpr int CloseStep(int round) { return 2 * round; }

Error Refused(LearnerId learner, const std::string& problem) {
  return {ErrorCode::kMismatch, fmt::format("learner {}: {}", learner.name(), problem)};
}

Error Stranger(LearnerId learner) { return Refused(learner, "is not part of this run"); }

ShortHash ShortHashOf(std::string_view hexadecimal) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  ShortHash hash{};
  for (std::size_t at = 0; at < hash.size(); ++at) {
    hash[at] =
        static_cast<std::uint8_t>(16 * digit(hexadecimal[2 * at]) + digit(hexadecimal[2 * at + 1]));
  }
  return hash;
}

}  // namespace

const Member* FindMember(std::span<const Member> members, LearnerId id) {
  const auto found = std::ranges::lower_bound(members, id, {}, &Member::id);
  return found == members.end() || found->id != id ? nullptr : &*found;
}

Cloud::Cloud(const FederationOptions& options, std::span<const LearnerId> learners,
             std::uint64_t race_seed)
    : options_(options), race_seed_(race_seed) {
  state_.members.reserve(learners.size());
  for (const LearnerId learner : learners) {
    Member& member = state_.members.emplace_back();
    member.id = member.initial_origin = member.origin = learner;
  }
  std::ranges::sort(state_.members, {}, &Member::id);
  const auto again = std::ranges::unique(state_.members, {}, &Member::id);
  state_.members.erase(again.begin(), again.end());
  FEDGEN_CHECK(!state_.members.empty(), "a run of no learner");
  state_.waiting = static_cast<std::int64_t>(state_.members.size());
}

Member* Cloud::Find(LearnerId learner) {
  return const_cast<Member*>(FindMember(state_.members, learner));  // NOLINT(*const-cast)
}

bool Cloud::IsMember(LearnerId learner) const {
  return FindMember(state_.members, learner) != nullptr;
}

// The member if what it says is new, nothing if it is a repetition.
Result<Member*> Cloud::Hear(int step, LearnerId learner, const std::string& bytes) {
  Member* member = Find(learner);
  if (member == nullptr) return Stranger(learner);
  if (step > state_.step) return Refused(learner, "speaks of a round that has not begun");
  const ShortHash hash = ShortHashOf(Sha256Hex(bytes));
  if (step > member->step) {
    if (step < state_.step) return nullptr;
    // A host that was killed repeats its last round, two steps, and no more.
    const auto gap = std::min<std::ptrdiff_t>(step - member->step, std::ssize(member->heard));
    std::shift_right(member->heard.begin(), member->heard.end(), gap);
    std::fill_n(member->heard.begin(), gap, ShortHash{});
    member->heard[0] = hash;
    member->step = step;
    return member;
  }
  const auto ago = static_cast<std::size_t>(member->step - step);
  if (ago >= member->heard.size()) return nullptr;  // of long ago; it was answered then
  if (member->heard[ago] != hash) return Refused(learner, "says something else than before");
  return nullptr;
}

bool Cloud::IsPolicy(std::span<const float> theta) const {
  return theta.size() == state_.num_parameters &&
         std::ranges::all_of(theta, [](float value) { return std::isfinite(value); });
}

Result<void> Cloud::Check(const Submission& s) const {
  const bool sound = IsPolicy(s.theta) && s.hash == HashOf(s.theta) && s.y >= 0 && s.y <= 1 &&
                     s.b >= 0 && std::isfinite(s.b) && IsMember(s.origin);
  if (sound) return {};
  const bool diverged = !std::ranges::all_of(s.theta, [](float x) { return std::isfinite(x); });
  return Refused(s.learner,
                 diverged
                     ? "its policy is no longer made of finite numbers: its steps are too long "
                       "(learner.step)"
                     : "submits what is no measurement of a policy of this run");
}

// One more was heard. The last completes the step.
void Cloud::Count(void (Cloud::*complete)()) {
  if (--state_.waiting > 0) return;
  (this->*complete)();
  ++state_.step;
  state_.waiting = state_.ending != Ending::kNotYet && state_.step == race_step()
                       ? std::ranges::count_if(state_.members, &Member::races)
                       : static_cast<std::int64_t>(state_.members.size());
  state_.mean = {};
  state_.gathering = {};
  state_.measured_anew = false;
}

Result<void> Cloud::Receive(const JoinMessage& message) {
  if (!IsMember(message.learner)) return Stranger(message.learner);
  if (state_.num_parameters == 0) state_.num_parameters = message.theta.size();
  if (message.theta.empty() || !IsPolicy(message.theta)) {
    return Refused(message.learner, "begins with a policy of another size than the others");
  }
  Member* member = FEDGEN_TRY(Hear(kJoin, message.learner, ToBytes(message)));
  if (member == nullptr) return {};
  member->begins_with = ShortHashOf(HashOf(message.theta));
  if (message.learner == state_.members.front().id) state_.start = message.theta;
  if (state_.task.empty() && !state_.tasks_differ) state_.task = message.task;  // the first
  if (message.task.empty() || message.task != state_.task) {
    state_.tasks_differ = true;
    state_.task.clear();
  }
  Count(&Cloud::CompleteJoin);
  return {};
}

// Who begins with the same policy has the same origin.
void Cloud::CompleteJoin() {
  std::vector<Member*> alike;
  alike.reserve(state_.members.size());
  for (Member& member : state_.members) alike.push_back(&member);
  std::ranges::stable_sort(alike, {}, &Member::begins_with);
  const Member* first = alike.front();
  for (Member* member : alike) {
    if (member->begins_with != first->begins_with) first = member;
    const bool one_start = options_.algorithm == Algorithm::kFedAvg;
    member->initial_origin = one_start ? state_.members.front().id : first->id;
    member->origin = member->initial_origin;
  }
  FindAverageOrigin();
}

// What a stranger may have made of a message, besides wrong policies.
Result<void> Cloud::Check(const RoundMessage& message) const {
  const auto refused = [&](const char* why) { return Refused(message.learner, why); };
  if (state_.ending != Ending::kNotYet && message.round > round()) {
    return refused("goes on though the run is over");
  }
  if (message.round < 1 || message.round > options_.rounds) return refused("names no round");
  if (message.submission) {
    FEDGEN_TRY(Check(*message.submission));
    if (message.submission->learner != message.learner) return refused("speaks for another");
    const int measured = message.submission->round;
    if (measured < 1 || measured > message.round) return refused("names no round");
  }
  for (const Submission& judged : message.judged) {
    FEDGEN_TRY(Check(judged));
    if (!judged.learner.is_cloud()) return refused("judges what is no candidate");
  }
  for (const Verdict& verdict : message.verdicts) {
    const bool sound = verdict.verifier == message.learner && std::isfinite(verdict.record.bound);
    if (!sound) return refused("gives no verdict of its own");
  }
  if (options_.algorithm == Algorithm::kFedAvg && !IsPolicy(message.moved)) {
    return refused("moved to what is no policy of this run");
  }
  if (message.episodes < 0 || message.episodes > kMaxEpisodes) return refused("miscounts episodes");
  return {};
}

Result<void> Cloud::Receive(const RoundMessage& message) {
  FEDGEN_TRY(Check(message));
  const int step = SubmitStep(message.round);
  Member* member = FEDGEN_TRY(Hear(step, message.learner, ToBytes(message)));
  if (member == nullptr) return {};

  const auto learn = [&](auto what) {
    state_.knowledge = Merge(std::move(state_.knowledge), KnowledgeOf(std::move(what)));
  };
  for (const Submission& judged : message.judged) learn(judged);
  for (const Verdict& verdict : message.verdicts) learn(verdict);
  if (message.submission) {
    learn(*message.submission);
    state_.gathering.participants.push_back(message.learner);
    state_.measured_anew |= message.submission->round > message.round - options_.average_every;
    if (is_averaging_round() && message.submission->origin == state_.average_origin) {
      state_.mean.Add(message.submission->theta);
    }
  }
  if (options_.algorithm == Algorithm::kFedAvg) state_.mean.Add(message.moved);
  state_.episodes += message.episodes - member->episodes;
  member->episodes = message.episodes;
  Count(&Cloud::CompleteSubmit);
  return {};
}

// {Cloud update}, lines 17 and 18. (The algorithms we compare with fuse nothing; for them the
// incumbent is a record of the best policy seen.)
void Cloud::CompleteSubmit() {
  RoundAnswer& answer = state_.gathering;
  answer.round = (state_.step + 1) / 2;
  std::ranges::sort(answer.participants);
  if (const Submission* incumbent = Incumbent(state_.knowledge)) answer.incumbent = *incumbent;
  if (auto candidate = Nominate()) answer.candidates.push_back(*std::move(candidate));
  if (options_.algorithm == Algorithm::kFedAvg) answer.mean = state_.mean.Mean();
  answer.episodes = state_.episodes;
  state_.answer = std::move(answer);
}

bool Cloud::is_averaging_round() const {
  return options_.algorithm == Algorithm::kFedGen && options_.average_every > 0 &&
         (state_.step + 1) / 2 % options_.average_every == 0;
}

// Beyond the paper: the mean of the policies of one origin, for the learner whose turn it is to
// measure. A mean that was nominated before would only be measured again until it is lucky:
// somebody must have measured anew since.
std::optional<Candidate> Cloud::Nominate() const {
  if (!is_averaging_round() || !state_.measured_anew || !state_.average_origin ||
      state_.mean.count() < 2) {
    return std::nullopt;
  }
  const auto turn = static_cast<std::size_t>((state_.step + 1) / 2 / options_.average_every);
  const Member& measurer = state_.members[turn % state_.members.size()];
  return Candidate{measurer.id, *state_.average_origin, state_.mean.Mean()};
}

Result<void> Cloud::Receive(const CloseMessage& message) {
  const bool over = state_.ending != Ending::kNotYet && message.round > round();
  if (message.round < 1 || message.round > options_.rounds || over) {
    return Refused(message.learner, "names no round");
  }
  if (!IsMember(message.origin)) return Stranger(message.origin);
  Member* member = FEDGEN_TRY(Hear(CloseStep(message.round), message.learner, ToBytes(message)));
  if (member == nullptr) return {};
  member->origin = message.origin;
  member->settled = message.settled;
  Count(&Cloud::CompleteClose);
  return {};
}

void Cloud::CompleteClose() {
  FindAverageOrigin();
  state_.round = state_.step / 2;
  state_.ending = FindEnding();
}

// Of the round that was closed last.
Ending Cloud::FindEnding() const {
  const bool all_settled = std::ranges::all_of(state_.members, &Member::settled);
  if (state_.round >= options_.rounds) return Ending::kRounds;
  if (options_.episodes > 0 && state_.answer.episodes >= options_.episodes) {
    return Ending::kEpisodes;
  }
  // Then nothing will ever change.
  if (all_settled && state_.answer.candidates.empty()) return Ending::kSettled;
  return Ending::kNotYet;
}

void Cloud::set_state(CloudState state) {
  state_ = std::move(state);
  if (state_.ending != Ending::kNotYet && state_.finals.empty()) state_.ending = FindEnding();
}

// Policies of one origin lie in one basin, where a mean makes sense. The smallest of the commonest.
void Cloud::FindAverageOrigin() {
  std::vector<LearnerId> origins;
  origins.reserve(state_.members.size());
  for (const Member& member : state_.members) origins.push_back(member.origin);
  std::ranges::sort(origins);
  state_.average_origin.reset();
  std::ptrdiff_t most = 1;  // one is no mean
  for (auto first = origins.begin(); first != origins.end();) {
    const auto next = std::upper_bound(first, origins.end(), *first);
    if (next - first > most) {
      most = next - first;
      state_.average_origin = *first;
    }
    first = next;
  }
}

Result<void> Cloud::Receive(const FinalMessage& message) {
  const LearnerId learner = message.final.learner;
  if (state_.ending == Ending::kNotYet) return Refused(learner, "ends before the run is over");
  FEDGEN_TRY(Check(message.final));
  const Member* member = FEDGEN_TRY(Hear(finish_step(), learner, ToBytes(message)));
  if (member == nullptr) return {};
  state_.finals.emplace(RankOf(message.final), message.final);
  if (state_.finals.size() > kMaxFinalists) state_.finals.erase(std::prev(state_.finals.end()));
  if (options_.fuses() && message.final.origin == state_.average_origin) {
    state_.mean.Add(message.final.theta);
  }
  Count(&Cloud::CompleteFinish);
  return {};
}

void Cloud::CompleteFinish() {
  if (state_.mean.count() > 1) state_.average = state_.mean.Mean();
  if (state_.tasks_differ) return;
  for (std::size_t racer = 0; racer < std::min(kMaxRacers, state_.members.size()); ++racer) {
    state_.members[racer].races = true;
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

Result<void> Cloud::Receive(const RaceMessage& message) {
  const Member* speaker = FindMember(state_.members, message.learner);
  if (speaker == nullptr) return Stranger(message.learner);
  if (state_.ending == Ending::kNotYet || state_.step < race_step()) {
    return Refused(message.learner, "races before the finalists are known");
  }
  if (!somebody_races()) {
    return Refused(message.learner, "races though tasks differ: everybody races at home");
  }
  if (!speaker->races) {
    if (message.tallies.empty()) return {};
    return Refused(message.learner, "counts what it was not asked to drive");
  }
  FEDGEN_TRY(Check(message));
  const Member* member = FEDGEN_TRY(Hear(race_step(), message.learner, ToBytes(message)));
  if (member == nullptr) return {};
  state_.parts.push_back({message.learner, message.tallies});
  Count(&Cloud::CompleteRace);
  return {};
}

void Cloud::CompleteRace() { std::ranges::sort(state_.parts, {}, &RacePart::learner); }

std::optional<Welcome> Cloud::WelcomeOf(LearnerId learner) const {
  const Member* member = FindMember(state_.members, learner);
  if (state_.step == kJoin || member == nullptr) return std::nullopt;
  Welcome welcome;
  welcome.origin = member->initial_origin;
  if (options_.algorithm == Algorithm::kFedAvg) welcome.start = state_.start;
  return welcome;
}

const RoundAnswer* Cloud::AnswerTo(int round) const {
  return round >= 1 && round == state_.answer.round ? &state_.answer : nullptr;
}

std::optional<Ending> Cloud::EndingAfter(int closed) const {
  if (closed > round()) return std::nullopt;
  return closed == round() ? state_.ending : Ending::kNotYet;
}

std::optional<Finalists> Cloud::FindFinalists() const {
  if (state_.ending == Ending::kNotYet || state_.step <= finish_step()) return std::nullopt;
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
  if (state_.parts.empty() || state_.step <= race_step()) return std::nullopt;
  return RaceAnswer{state_.parts};
}

namespace {

Error NotAllHere() {
  return {ErrorCode::kUsage, "a local exchange waits for learners that live elsewhere"};
}

}  // namespace

Result<std::vector<Welcome>> LocalExchange::Join(std::span<const JoinMessage> messages) {
  for (const JoinMessage& message : messages) FEDGEN_TRY(cloud_.Receive(message));
  std::vector<Welcome> welcomes;
  for (const JoinMessage& message : messages) {
    const std::optional<Welcome> welcome = cloud_.WelcomeOf(message.learner);
    if (!welcome) return NotAllHere();
    welcomes.push_back(*welcome);
  }
  return welcomes;
}

Result<RoundAnswer> LocalExchange::Submit(std::span<const RoundMessage> messages) {
  for (const RoundMessage& message : messages) FEDGEN_TRY(cloud_.Receive(message));
  const RoundAnswer* answer = cloud_.AnswerTo(messages.front().round);
  if (answer == nullptr) return NotAllHere();
  return *answer;
}

Result<Ending> LocalExchange::Close(std::span<const CloseMessage> messages) {
  for (const CloseMessage& message : messages) FEDGEN_TRY(cloud_.Receive(message));
  const std::optional<Ending> ending = cloud_.EndingAfter(messages.front().round);
  if (!ending) return NotAllHere();
  return *ending;
}

Result<Finalists> LocalExchange::Finish(std::span<const FinalMessage> messages) {
  for (const FinalMessage& message : messages) FEDGEN_TRY(cloud_.Receive(message));
  std::optional<Finalists> finalists = cloud_.FindFinalists();
  if (!finalists) return NotAllHere();
  return *std::move(finalists);
}

Result<RaceAnswer> LocalExchange::Race(std::span<const RaceMessage> messages) {
  for (const RaceMessage& message : messages) FEDGEN_TRY(cloud_.Receive(message));
  std::optional<RaceAnswer> answer = cloud_.FindRaceAnswer();
  if (!answer) return NotAllHere();
  return *std::move(answer);
}

}  // namespace fedgen
