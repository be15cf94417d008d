// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fuse/cloud.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "fedgen/base/check.h"
#include "fedgen/base/hash.h"

namespace fedgen {
namespace {

constexpr std::int64_t kMaxEpisodes = 1'000'000'000'000;  // of a learner; a million can be added

ShortHash ShortHashOf(std::string_view hexadecimal) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  ShortHash hash{};
  for (std::size_t at = 0; at < hash.size(); ++at) {
    hash[at] =
        static_cast<std::uint8_t>(16 * digit(hexadecimal[2 * at]) + digit(hexadecimal[2 * at + 1]));
  }
  return hash;
}

void Remember(Member& member, int step, const ShortHash& hash) {
  // A host that was killed repeats its last round, two steps, and no more.
  const auto gap = std::min<std::ptrdiff_t>(step - member.step, std::ssize(member.heard));
  std::shift_right(member.heard.begin(), member.heard.end(), gap);
  std::fill_n(member.heard.begin(), gap, ShortHash{});
  member.heard[0] = hash;
  member.step = step;
}

bool IsHere(const Member& member) {
  return member.presence == Presence::kPresent && member.step >= kJoinStep;
}

}  // namespace

Error Cloud::Refused(LearnerId learner, const std::string& problem) {
  return {ErrorCode::kMismatch, fmt::format("learner {}: {}", learner.name(), problem)};
}

Error Cloud::Stranger(LearnerId learner) { return Refused(learner, "is not part of this run"); }

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

// ---- Who speaks, and what is heard --------------------------------------------------------------

Member* Cloud::Find(LearnerId learner) {
  return const_cast<Member*>(FindMember(state_.members, learner));  // NOLINT(*const-cast)
}

bool Cloud::IsMember(LearnerId learner) const {
  return FindMember(state_.members, learner) != nullptr;
}

Result<Member*> Cloud::Speaker(LearnerId learner) {
  Member* member = Find(learner);
  if (member == nullptr) return Stranger(learner);
  if (member->presence == Presence::kRevoked) return Refused(learner, "its certificate is revoked");
  if (member->presence == Presence::kLeft) return Refused(learner, "has left the run");
  return member;
}

Result<Cloud::Hearing> Cloud::HearAgain(int step, const Member& member, const ShortHash& hash) {
  const auto ago = static_cast<std::size_t>(member.step - step);
  if (ago >= member.heard.size() || member.heard[ago] == ShortHash{}) return Hearing::kRepeated;
  if (member.heard[ago] != hash) return Refused(member.id, "says something else than before");
  return Hearing::kRepeated;
}

Result<Cloud::Hearing> Cloud::HearInStep(int step, Member& member, const ShortHash& hash) {
  if (step > state_.step) return Refused(member.id, kNotBegun);
  if (step <= member.step) return HearAgain(step, member, hash);
  const bool is_late = step < state_.step;
  if (is_late && !is_tolerant()) return Hearing::kRepeated;
  Remember(member, step, hash);
  ComeBack(member);
  if (is_late) return Hearing::kLate;
  Await(member, false);
  ++state_.heard;
  return Hearing::kNew;
}

// What a message says, with policies by their hashes, which were checked: they are most of it.
std::string Cloud::WordsOf(const RoundMessage& message) {
  const auto by_hash = [](const Submission& s) {
    return Submission{s.learner, s.round, s.origin, s.y, s.b, {}, s.hash};
  };
  RoundMessage brief{message.learner,  message.round, std::nullopt,    {},
                     message.verdicts, message.moved, message.episodes};
  if (message.submission) brief.submission = by_hash(*message.submission);
  for (const Submission& judged : message.judged) brief.judged.push_back(by_hash(judged));
  return ToBytes(brief);
}

// In an asynchronous run everybody has steps of its own, but for the first.
Result<Cloud::Hearing> Cloud::Hear(int step, Member& member, const std::string& words) {
  const ShortHash hash = ShortHashOf(Sha256Hex(words));
  if (!options_.async || state_.step == kJoinStep) return HearInStep(step, member, hash);
  if (step <= member.step) return HearAgain(step, member, hash);
  if (step > member.step + 1 || member.closing) {
    return Refused(member.id, kNotBegun);
  }
  Remember(member, step, hash);
  ComeBack(member);
  return Hearing::kNew;
}

// Who was left out is awaited again: at once where there are no steps, else from the next submit.
void Cloud::ComeBack(Member& member) {
  if (member.presence == Presence::kLeftOut) member.presence = Presence::kPresent;
  const bool runs = options_.async && phase() == Phase::kFinish;
  if (runs && !member.awaited && member.step < FinishStepOf(member.id)) Await(member, true);
}

void Cloud::Await(Member& member, bool awaited) {
  running_ -= Runs(member) ? 1 : 0;
  state_.waiting += (awaited ? 1 : 0) - (member.awaited ? 1 : 0);
  member.awaited = awaited;
  running_ += Runs(member) ? 1 : 0;
}

std::vector<LearnerId> Cloud::Silent() const {
  std::vector<LearnerId> silent;
  for (const Member& member : state_.members) {
    if (member.awaited && !member.closing) silent.push_back(member.id);
  }
  return silent;
}

Result<bool> Cloud::Receive(const ControlMessage& message) {
  Member* member = FEDGEN_TRY(Speaker(message.learner));
  switch (message.kind) {
    case ControlMessage::Kind::kLeftOut:
      if (!member->awaited || member->closing) return Refused(member->id, "is not waited for");
      member->presence = Presence::kLeftOut;
      break;
    case ControlMessage::Kind::kRevoked:
      member->presence = Presence::kRevoked;
      break;
    case ControlMessage::Kind::kAnsweredAgain:
      return AnswerAgain(*member);
  }
  AwaitNoMore(*member);
  return true;
}

// In this step and in those that follow.
void Cloud::AwaitNoMore(Member& member) {
  Await(member, false);
  closing_ -= member.closing ? 1 : 0;
  member.closing = false;
  CompleteIfAllAreHeard();
}

Result<bool> Cloud::Receive(const LeaveMessage& message) {
  Member* member = Find(message.learner);
  if (member != nullptr && member->presence == Presence::kLeft) return false;
  member = FEDGEN_TRY(Speaker(message.learner));
  if (!options_.open) return Refused(message.learner, "may not leave: the run is not open");
  const bool is_over = phase() == Phase::kOver || (phase() == Phase::kRace && !somebody_races());
  if (is_over) return Refused(message.learner, "need not leave: the run is over");
  member->presence = Presence::kLeft;
  AwaitNoMore(*member);
  return true;
}

// ---- Steps --------------------------------------------------------------------------------------

Cloud::Phase Cloud::phase() const {
  if (state_.step == kJoinStep) return Phase::kJoin;
  if (!options_.async && state_.ending == Ending::kNotYet) {
    return state_.step % 2 == 1 ? Phase::kSubmit : Phase::kClose;
  }
  if (state_.step <= finish_step()) return Phase::kFinish;
  return state_.step == finish_step() + 1 ? Phase::kRace : Phase::kOver;
}

bool Cloud::finals_are_known() const { return phase() == Phase::kRace || phase() == Phase::kOver; }

int Cloud::FinishStepOf(LearnerId learner) const {
  if (!options_.async) return finish_step();
  const Member* member = FindMember(state_.members, learner);
  const bool is_over = member != nullptr && member->ending != Ending::kNotYet;
  return is_over ? SubmitStep(member->told + 1) : std::numeric_limits<int>::max() - 1;
}

// A step that waits for nobody may follow.
void Cloud::CompleteIfAllAreHeard() {
  if (options_.async && phase() == Phase::kFinish) SettleIfNobodyRuns();
  while (state_.waiting == 0 && CompleteStep()) TakeNextStep();
}

// A step in which nobody is heard is not complete, unless what it is about was said before it.
bool Cloud::CompleteStep() {
  switch (phase()) {
    case Phase::kJoin:
      if (state_.heard == 0) return false;
      CompleteJoin();
      return true;
    case Phase::kSubmit:
      if (state_.heard == 0 && !only_resting_are_here()) return false;
      CompleteSubmit();
      return true;
    case Phase::kClose:
      CompleteClose();
      return true;
    case Phase::kFinish:
      if (state_.finals.empty()) return false;
      CompleteFinish();
      return true;
    case Phase::kRace:
      if (!somebody_races()) return false;
      CompleteRace();
      return true;
    case Phase::kOver:
      break;
  }
  return false;
}

bool Cloud::only_resting_are_here() const {
  return std::ranges::any_of(state_.members, IsHere) &&
         std::ranges::all_of(state_.members,
                             [](const Member& m) { return !IsHere(m) || m.rests(); });
}

// Whether a step that begins waits for this learner.
bool Cloud::IsDue(const Member& member) const {
  if (!IsHere(member)) return false;
  switch (phase()) {
    case Phase::kJoin:
    case Phase::kFinish:
      return true;
    case Phase::kSubmit:
      return !member.rests();
    case Phase::kClose:
      return !member.rests() && member.step == state_.step - 1;
    case Phase::kRace:
      return member.races;
    case Phase::kOver:
      break;
  }
  return false;
}

void Cloud::TakeNextStep() {
  ++state_.step;
  for (Member& member : state_.members) member.awaited = IsDue(member);
  state_.mean = {};
  state_.gathering = {};
  state_.measured_anew = false;
  state_.heard = 0;
  Count();
}

// What follows from members.
void Cloud::Count() {
  state_.waiting = std::ranges::count_if(state_.members, &Member::awaited);
  running_ = std::ranges::count_if(state_.members, [&](const Member& m) { return Runs(m); });
  closing_ = std::ranges::count_if(state_.members, &Member::closing);
}

void Cloud::set_state(CloudState state) {
  state_ = std::move(state);
  Count();
  // Of another number of rounds: what it ended by may be no more, or be first.
  const bool was_last = state_.ending == Ending::kRounds;
  const bool is_over = state_.ending != Ending::kNotYet;
  const bool is_another = is_over && was_last != (state_.round >= options_.rounds);
  if (!is_another || options_.async || !state_.finals.empty()) return;
  state_.ending = FindEnding();
  for (Member& member : state_.members) member.awaited = IsDue(member);
  Count();
}

// Who comes late goes on after it; unknown while a round is being closed.
int Cloud::RoundToGoOnFrom() const {
  return phase() == Phase::kClose ? kRoundToCome : state_.round;
}

// ---- Join ---------------------------------------------------------------------------------------

bool Cloud::IsPolicy(std::span<const float> theta) const {
  return theta.size() == state_.num_parameters &&
         std::ranges::all_of(theta, [](float value) { return std::isfinite(value); });
}

Result<void> Cloud::Check(const JoinMessage& message) const {
  const bool may_join = IsMember(message.learner) || (options_.open && !message.learner.is_cloud());
  if (!may_join) return Stranger(message.learner);
  const bool is_first = state_.num_parameters == 0;
  const bool is_finite =
      std::ranges::all_of(message.theta, [](float x) { return std::isfinite(x); });
  if (message.theta.empty() || !is_finite || (!is_first && !IsPolicy(message.theta))) {
    return Refused(message.learner, "begins with a policy of another size than the others");
  }
  return {};
}

Result<bool> Cloud::Receive(const JoinMessage& message) {
  FEDGEN_TRY(Check(message));
  if (!IsMember(message.learner)) {
    const auto at = std::ranges::lower_bound(state_.members, message.learner, {}, &Member::id);
    Member newcomer;
    newcomer.id = newcomer.initial_origin = newcomer.origin = message.learner;
    newcomer.awaited = false;
    state_.members.insert(at, newcomer);
  }
  Member* member = FEDGEN_TRY(Speaker(message.learner));
  const ShortHash begins_with = ShortHashOf(HashOf(message.theta));
  if (member->step >= kJoinStep && member->begins_with != begins_with) {
    return Refused(
        message.learner,
        "says something else than before: it joined with another policy. It goes on in the "
        "directory in which it began (--out), or two use its certificate");
  }
  const bool is_late = state_.step > kJoinStep;
  if (FEDGEN_TRY(Hear(kJoinStep, *member, ToBytes(message))) == Hearing::kRepeated) return false;
  state_.num_parameters = message.theta.size();
  member->begins_with = begins_with;
  if (state_.task.empty() && !state_.tasks_differ) state_.task = message.task;  // the first
  if (message.task.empty() || message.task != state_.task) {
    state_.tasks_differ = true;
    state_.task.clear();
  }
  if (is_late) {
    member->joined = options_.async ? 0 : RoundToGoOnFrom();
    if (options_.async && finals_are_known()) member->ending = state_.ending;
    member->initial_origin = member->origin = OriginOf(*member);
    return true;
  }
  if (state_.start.empty() || message.learner < state_.starter) {
    state_.starter = message.learner;
    state_.start = message.theta;
  }
  CompleteIfAllAreHeard();
  return true;
}

// Who begins with the same policy has the same origin.
void Cloud::CompleteJoin() {
  std::vector<Member*> alike;
  alike.reserve(state_.members.size());
  for (Member& member : state_.members) {
    if (member.step >= kJoinStep) alike.push_back(&member);
  }
  std::ranges::sort(alike, {}, [](const Member* m) { return std::pair(m->begins_with, m->id); });
  const Member* first = alike.front();
  for (Member* member : alike) {
    if (member->begins_with != first->begins_with) first = member;
    const bool one_start = options_.algorithm == Algorithm::kFedAvg;
    member->initial_origin = one_start ? state_.starter : first->id;
    member->origin = member->initial_origin;
  }
  FindAverageOrigin();
}

LearnerId Cloud::OriginOf(const Member& beginner) const {
  if (options_.algorithm == Algorithm::kFedAvg) return state_.starter;
  for (const Member& member : state_.members) {
    const bool is_other = member.id != beginner.id && member.step >= kJoinStep;
    if (is_other && member.begins_with == beginner.begins_with) return member.initial_origin;
  }
  return beginner.id;
}

// Policies of one origin lie in one basin, where a mean makes sense. The smallest of the commonest.
void Cloud::FindAverageOrigin() {
  std::vector<LearnerId> origins;
  origins.reserve(state_.members.size());
  for (const Member& member : state_.members) {
    if (IsHere(member)) origins.push_back(member.origin);
  }
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

// ---- Submit -------------------------------------------------------------------------------------

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

// What a stranger may have made of a message, besides wrong policies.
Result<void> Cloud::Check(const RoundMessage& message) const {
  const auto refused = [&](const char* why) { return Refused(message.learner, why); };
  if (!options_.async && state_.ending != Ending::kNotYet && message.round > round()) {
    return refused("goes on though the run is over");
  }
  if (message.round < 1 || message.round > options_.rounds) return refused("names no round");
  if (state_.step == kJoinStep) return refused(kNotBegun);
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

Result<bool> Cloud::Receive(const RoundMessage& message) {
  FEDGEN_TRY(Check(message));
  Member* member = FEDGEN_TRY(Speaker(message.learner));
  if (options_.async) return ReceiveAsync(message, *member);
  const int step = SubmitStep(message.round);
  if (member->rests() && step > member->step) {  // a question: AnswerToResting()
    if (message.submission || step > state_.step) return Refused(member->id, "rests");
    return false;
  }
  const Hearing hearing = FEDGEN_TRY(Hear(step, *member, WordsOf(message)));
  if (hearing == Hearing::kRepeated) return false;
  state_.episodes += message.episodes - member->episodes;
  member->episodes = message.episodes;
  if (!finals_are_known()) Learn(message);
  if (hearing == Hearing::kLate) {
    if (message.round < state_.answer.round) member->told = RoundToGoOnFrom();
    return true;
  }
  Gather(message);
  CompleteIfAllAreHeard();
  return true;
}

void Cloud::Learn(const RoundMessage& message) {
  const auto learn = [&](auto what) {
    state_.knowledge = Merge(std::move(state_.knowledge), KnowledgeOf(std::move(what)));
  };
  for (const Submission& judged : message.judged) learn(judged);
  for (const Verdict& verdict : message.verdicts) learn(verdict);
  if (message.submission) learn(*message.submission);
}

void Cloud::Gather(const RoundMessage& message) {
  if (message.submission) {
    state_.gathering.participants.push_back(message.learner);
    state_.measured_anew |= message.submission->round > message.round - options_.average_every;
    if (is_averaging_round() && message.submission->origin == state_.average_origin) {
      state_.mean.Add(message.submission->theta);
    }
  }
  if (options_.algorithm == Algorithm::kFedAvg) state_.mean.Add(message.moved);
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
  const std::size_t first = turn % state_.members.size();
  for (std::size_t next = first; next < first + state_.members.size(); ++next) {
    const Member& measurer = state_.members[next % state_.members.size()];
    if (!IsHere(measurer)) continue;
    return Candidate{measurer.id, *state_.average_origin, state_.mean.Mean()};
  }
  return std::nullopt;
}

// ---- Close --------------------------------------------------------------------------------------

Result<bool> Cloud::Receive(const CloseMessage& message) {
  const bool over = !options_.async && state_.ending != Ending::kNotYet && message.round > round();
  if (message.round < 1 || message.round > options_.rounds || over) {
    return Refused(message.learner, "names no round");
  }
  if (!IsMember(message.origin)) return Stranger(message.origin);
  Member* member = FEDGEN_TRY(Speaker(message.learner));
  if (options_.async) return ReceiveAsync(message, *member);
  const Hearing hearing = FEDGEN_TRY(Hear(CloseStep(message.round), *member, ToBytes(message)));
  if (hearing == Hearing::kRepeated) return false;
  member->origin = message.origin;
  member->outlook = message.outlook;
  if (hearing == Hearing::kNew) CompleteIfAllAreHeard();
  return true;
}

void Cloud::CompleteClose() {
  if (const auto& incumbent = state_.answer.incumbent) {
    for (Member& member : state_.members) {
      if (member.rests()) member.origin = incumbent->origin;
    }
  }
  FindAverageOrigin();
  state_.round = state_.step / 2;
  state_.ending = FindEnding();
  for (Member& member : state_.members) {
    if (member.told == kRoundToCome) member.told = state_.round;
    if (member.joined == kRoundToCome) member.joined = state_.round;
  }
}

// Of the round that was closed last.
Ending Cloud::FindEnding() const {
  if (state_.round >= options_.rounds) return Ending::kRounds;
  if (options_.episodes > 0 && state_.answer.episodes >= options_.episodes) {
    return Ending::kEpisodes;
  }
  const bool all_settled = std::ranges::all_of(state_.members, [](const Member& m) {
    return !IsHere(m) || m.outlook != Outlook::kSearches;
  });
  const bool somebody = std::ranges::any_of(state_.members, IsHere);
  // Then nothing will ever change.
  if (somebody && all_settled && state_.answer.candidates.empty()) return Ending::kSettled;
  return Ending::kNotYet;
}

}  // namespace fedgen
