// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "fedgen/federation/wire-inl.h"

namespace fedgen {
namespace {

using Floats = google::protobuf::RepeatedField<float>;

// The first thing that is wrong with a message.
class Faults {
 public:
  void Add(const char* field, const char* rule) {
    if (problem_.empty()) problem_ = fmt::format("{}: {}", field, rule);
  }
  int Round(std::uint32_t round, const char* field) {
    if (round > static_cast<std::uint32_t>(std::numeric_limits<int>::max())) {
      Add(field, "is no round");
      return 0;
    }
    return static_cast<int>(round);
  }
  double Number(double value, const char* field) {
    if (!std::isfinite(value)) Add(field, "must be a finite number");
    return value;
  }
  std::vector<float> Numbers(const Floats& values, const char* field) {
    for (const float value : values) {
      if (std::isfinite(value)) continue;
      Add(field, "must hold finite numbers");
      break;
    }
    return {values.begin(), values.end()};
  }
  Ending HowItEnds(std::uint32_t ending) {
    if (ending < static_cast<std::uint32_t>(NumValues(Ending{}))) {
      return static_cast<Ending>(ending);
    }
    Add("ending", "is unknown");
    return Ending::kNotYet;
  }
  Outlook WhatItWillDo(std::uint32_t outlook) {
    if (outlook < static_cast<std::uint32_t>(NumValues(Outlook{}))) {
      return static_cast<Outlook>(outlook);
    }
    Add("outlook", "is unknown");
    return Outlook::kSearches;
  }
  std::string Hash(const std::string& hash, const char* field) {
    const bool is_hash =
        hash.size() == 64 && hash.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!is_hash) Add(field, "must be 64 hexadecimal digits");
    return hash;
  }
  template <typename T>
  Result<T> Checked(T value) const {
    if (!problem_.empty()) return Error{ErrorCode::kData, problem_};
    return value;
  }

 private:
  std::string problem_;
};

void Put(std::span<const float> values, Floats* field) { field->Add(values.begin(), values.end()); }

void Put(const Submission& s, v1::Submission* to) {
  to->set_learner(s.learner.index());
  to->set_round(static_cast<std::uint32_t>(s.round));
  to->set_origin(s.origin.index());
  to->set_y(s.y);
  to->set_b(s.b);
  Put(s.theta, to->mutable_theta());
  to->set_hash(s.hash);
}

Submission Get(const v1::Submission& from, Faults& faults) {
  Submission s;
  s.learner = LearnerId(from.learner());
  s.round = faults.Round(from.round(), "submission.round");
  s.origin = LearnerId(from.origin());
  s.y = faults.Number(from.y(), "submission.y");
  s.b = faults.Number(from.b(), "submission.b");
  s.theta = faults.Numbers(from.theta(), "submission.theta");
  s.hash = faults.Hash(from.hash(), "submission.hash");
  return s;
}

void Put(const JoinMessage& m, v1::StepRequest* to) {
  Put(m.theta, to->mutable_join()->mutable_theta());
  to->mutable_join()->set_task(m.task);
}

void Put(const RoundMessage& m, v1::StepRequest* request) {
  v1::Round* to = request->mutable_round();
  to->set_round(static_cast<std::uint32_t>(m.round));
  if (m.submission) Put(*m.submission, to->mutable_submission());
  for (const Submission& judged : m.judged) Put(judged, to->add_judged());
  for (const Verdict& verdict : m.verdicts) {
    v1::Verdict* said = to->add_verdicts();
    said->set_verifier(verdict.verifier.index());
    said->mutable_record()->set_bound(verdict.record.bound);
    said->mutable_record()->set_learner(verdict.record.learner.index());
    said->mutable_record()->set_round(static_cast<std::uint32_t>(verdict.record.round));
    said->mutable_record()->set_hash(verdict.record.hash);
  }
  Put(m.moved, to->mutable_moved());
  to->set_episodes(m.episodes);
}

void Put(const CloseMessage& m, v1::StepRequest* request) {
  v1::Close* to = request->mutable_close();
  to->set_round(static_cast<std::uint32_t>(m.round));
  to->set_origin(m.origin.index());
  to->set_outlook(static_cast<std::uint32_t>(m.outlook));
}

void Put(const FinalMessage& m, v1::StepRequest* request) {
  Put(m.final, request->mutable_final()->mutable_final());
}

using Tallies = google::protobuf::RepeatedPtrField<v1::Tally>;

void Put(const std::vector<RaceTally>& tallies, Tallies* to) {
  for (const RaceTally& tally : tallies) {
    v1::Tally* counted = to->Add();
    counted->set_episodes(tally.episodes);
    counted->set_reached(tally.reached);
    counted->set_cost(tally.cost);
  }
}

void Put(const RaceMessage& m, v1::StepRequest* request) {
  Put(m.tallies, request->mutable_race()->mutable_tallies());
}

void Put(const LeaveMessage& /*m*/, v1::StepRequest* request) { request->mutable_leave(); }

// What the Cloud says to itself does not travel.
void Put(const ControlMessage& /*m*/, v1::StepRequest* /*request*/) {}

std::vector<RaceTally> Get(const Tallies& from) {
  std::vector<RaceTally> tallies;
  tallies.reserve(static_cast<std::size_t>(from.size()));
  for (const v1::Tally& counted : from) {
    tallies.push_back({counted.episodes(), counted.reached(), counted.cost()});
  }
  return tallies;
}

JoinMessage Get(const v1::Join& from, LearnerId learner, Faults& faults) {
  JoinMessage m{learner, faults.Numbers(from.theta(), "theta"), from.task()};
  if (!m.task.empty()) faults.Hash(m.task, "task");
  return m;
}

RoundMessage Get(const v1::Round& from, LearnerId learner, Faults& faults) {
  RoundMessage m;
  m.learner = learner;
  m.round = faults.Round(from.round(), "round");
  if (from.has_submission()) m.submission = Get(from.submission(), faults);
  for (const v1::Submission& judged : from.judged()) m.judged.push_back(Get(judged, faults));
  for (const v1::Verdict& said : from.verdicts()) {
    Verdict verdict;
    verdict.verifier = LearnerId(said.verifier());
    verdict.record.bound = faults.Number(said.record().bound(), "verdict.bound");
    verdict.record.learner = LearnerId(said.record().learner());
    verdict.record.round = faults.Round(said.record().round(), "verdict.round");
    verdict.record.hash = faults.Hash(said.record().hash(), "verdict.hash");
    m.verdicts.push_back(std::move(verdict));
  }
  m.moved = faults.Numbers(from.moved(), "moved");
  m.episodes = from.episodes();
  return m;
}

void Put(const Welcome& welcome, v1::StepReply* to) {
  to->mutable_welcome()->set_origin(welcome.origin.index());
  Put(welcome.start, to->mutable_welcome()->mutable_start());
  to->mutable_welcome()->set_round(static_cast<std::uint32_t>(welcome.round));
  to->mutable_welcome()->set_ending(static_cast<std::uint32_t>(welcome.ending));
}

void Put(const RoundAnswer& answer, v1::StepReply* reply) {
  v1::RoundAnswer* to = reply->mutable_round();
  to->set_round(static_cast<std::uint32_t>(answer.round));
  to->set_ending(static_cast<std::uint32_t>(answer.ending));
  for (const LearnerId learner : answer.participants) to->add_participants(learner.index());
  if (answer.incumbent) Put(*answer.incumbent, to->mutable_incumbent());
  for (const Candidate& candidate : answer.candidates) {
    v1::Candidate* named = to->add_candidates();
    named->set_measurer(candidate.measurer.index());
    named->set_origin(candidate.origin.index());
    Put(candidate.theta, named->mutable_theta());
  }
  Put(answer.mean, to->mutable_mean());
  to->set_episodes(answer.episodes);
}

void Put(const Ending& ending, v1::StepReply* to) {
  to->mutable_end()->set_ending(static_cast<std::uint32_t>(ending));
}

void Put(const Finalists& finalists, v1::StepReply* reply) {
  v1::Finalists* to = reply->mutable_finalists();
  for (const Submission& final : finalists.finals) Put(final, to->add_finals());
  if (finalists.incumbent) Put(*finalists.incumbent, to->mutable_incumbent());
  Put(finalists.average, to->mutable_average());
  to->set_seed(finalists.seed);
  for (const LearnerId racer : finalists.racers) to->add_racers(racer.index());
}

void Put(const RaceAnswer& answer, v1::StepReply* reply) {
  v1::RaceAnswer* to = reply->mutable_race();
  for (const RacePart& part : answer.parts) {
    v1::RacePart* driven = to->add_parts();
    driven->set_learner(part.learner.index());
    Put(part.tallies, driven->mutable_tallies());
  }
}

void Put(const Farewell& /*farewell*/, v1::StepReply* reply) { reply->mutable_farewell(); }

Welcome Get(const v1::Welcome& from, Faults& faults) {
  return {LearnerId(from.origin()), faults.Numbers(from.start(), "start"),
          faults.Round(from.round(), "round"), faults.HowItEnds(from.ending())};
}

RoundAnswer Get(const v1::RoundAnswer& from, Faults& faults) {
  RoundAnswer answer;
  answer.round = faults.Round(from.round(), "round");
  answer.ending = faults.HowItEnds(from.ending());
  for (const std::uint32_t index : from.participants()) answer.participants.emplace_back(index);
  if (from.has_incumbent()) answer.incumbent = Get(from.incumbent(), faults);
  for (const v1::Candidate& named : from.candidates()) {
    answer.candidates.push_back({LearnerId(named.measurer()), LearnerId(named.origin()),
                                 faults.Numbers(named.theta(), "candidate.theta")});
  }
  answer.mean = faults.Numbers(from.mean(), "mean");
  answer.episodes = from.episodes();
  return answer;
}

Finalists Get(const v1::Finalists& from, Faults& faults) {
  Finalists finalists;
  for (const v1::Submission& final : from.finals()) finalists.finals.push_back(Get(final, faults));
  if (from.has_incumbent()) finalists.incumbent = Get(from.incumbent(), faults);
  finalists.average = faults.Numbers(from.average(), "average");
  finalists.seed = from.seed();
  for (const std::uint32_t index : from.racers()) finalists.racers.emplace_back(index);
  return finalists;
}

RaceAnswer Get(const v1::RaceAnswer& from) {
  RaceAnswer answer;
  for (const v1::RacePart& part : from.parts()) {
    answer.parts.push_back({LearnerId(part.learner()), Get(part.tallies())});
  }
  return answer;
}

}  // namespace

v1::StepRequest ToWire(const std::string& run, const StepMessage& message) {
  v1::StepRequest request;
  request.set_run(run);
  request.set_learner(SpeakerOf(message).index());
  std::visit([&](const auto& m) { Put(m, &request); }, message);
  return request;
}

Result<StepMessage> FromWire(const v1::StepRequest& request) {
  Faults faults;
  const LearnerId learner(request.learner());
  StepMessage message;
  switch (request.message_case()) {
    case v1::StepRequest::kJoin:
      message = Get(request.join(), learner, faults);
      break;
    case v1::StepRequest::kRound:
      message = Get(request.round(), learner, faults);
      break;
    case v1::StepRequest::kClose:
      message = CloseMessage{learner, faults.Round(request.close().round(), "round"),
                             LearnerId(request.close().origin()),
                             faults.WhatItWillDo(request.close().outlook())};
      break;
    case v1::StepRequest::kFinal:
      message = FinalMessage{Get(request.final().final(), faults)};
      if (SpeakerOf(message) != learner) faults.Add("final.learner", "must be the sender");
      break;
    case v1::StepRequest::kRace:
      message = RaceMessage{learner, Get(request.race().tallies())};
      break;
    case v1::StepRequest::kLeave:
      message = LeaveMessage{learner};
      break;
    case v1::StepRequest::MESSAGE_NOT_SET:
      faults.Add("message", "is missing");
      break;
  }
  return faults.Checked(std::move(message));
}

v1::StepReply ToWire(const std::optional<StepAnswer>& answer) {
  v1::StepReply reply;
  if (answer) {
    std::visit([&](const auto& a) { Put(a, &reply); }, *answer);
  } else {
    reply.mutable_pending();
  }
  return reply;
}

Result<std::optional<StepAnswer>> FromWire(const v1::StepReply& reply) {
  Faults faults;
  std::optional<StepAnswer> answer;
  switch (reply.answer_case()) {
    case v1::StepReply::kPending:
      break;
    case v1::StepReply::kWelcome:
      answer = Get(reply.welcome(), faults);
      break;
    case v1::StepReply::kRound:
      answer = Get(reply.round(), faults);
      break;
    case v1::StepReply::kEnd:
      answer = faults.HowItEnds(reply.end().ending());
      break;
    case v1::StepReply::kFinalists:
      answer = Get(reply.finalists(), faults);
      break;
    case v1::StepReply::kRace:
      answer = Get(reply.race());
      break;
    case v1::StepReply::kFarewell:
      answer = Farewell{};
      break;
    case v1::StepReply::ANSWER_NOT_SET:
      faults.Add("answer", "is missing");
      break;
  }
  return faults.Checked(std::move(answer));
}

}  // namespace fedgen
