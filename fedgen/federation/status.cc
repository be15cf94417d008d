// SPDX-License-Identifier: Apache-2.0
#include "fedgen/federation/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "fedgen/federation/client-inl.h"
#include "fedgen/federation/wire-inl.h"
#include "fedgen/identity/pki.h"

namespace fedgen {
namespace {

// An asynchronous run has no common rounds: somebody is in one of its own.
bool IsInRounds(const Cloud& cloud) {
  return cloud.options().async && std::ranges::any_of(cloud.state().members, [](const Member& m) {
           return m.presence == Presence::kPresent && m.step >= kJoinStep &&
                  m.ending == Ending::kNotYet;
         });
}

std::string PhaseOf(const Cloud& cloud) {
  switch (cloud.phase()) {
    case Cloud::Phase::kJoin:
      return "join";
    case Cloud::Phase::kSubmit:
      return "submit";
    case Cloud::Phase::kClose:
      return "close";
    case Cloud::Phase::kFinish:
      return IsInRounds(cloud) ? "submit" : "final";
    case Cloud::Phase::kRace:
      // Learners with tasks of their own race at home.
      if (std::ranges::any_of(cloud.state().members, &Member::races)) return "race";
      break;
    case Cloud::Phase::kOver:
      break;
  }
  return "over";
}

// The last that was closed. Where everybody has rounds of its own, by all who are there.
int RoundOf(const Cloud& cloud) {
  if (!cloud.options().async) return cloud.round();
  int least = std::numeric_limits<int>::max();
  for (const Member& member : cloud.state().members) {
    if (member.presence != Presence::kPresent) continue;
    const bool is_over = member.ending != Ending::kNotYet;
    least = std::min(least, std::max(0, is_over ? member.told : member.step / 2));
  }
  return least == std::numeric_limits<int>::max() ? 0 : least;
}

// Of who is not expected to speak.
std::string PresenceText(const Cloud& cloud, const Member& member) {
  switch (member.presence) {
    case Presence::kPresent:
      if (cloud.IsResting(member.id) && cloud.state().ending == Ending::kNotYet) return "resting";
      break;
    case Presence::kLeftOut:
      return "left out";
    case Presence::kLeft:
      return "left";
    case Presence::kRevoked:
      return "revoked";
  }
  return "";
}

std::string EndingText(Ending ending) {
  switch (ending) {
    case Ending::kNotYet:
      break;
    case Ending::kRounds:
      return "rounds";
    case Ending::kSettled:
      return "settled";
    case Ending::kEpisodes:
      return "episodes";
  }
  return "";
}

}  // namespace

RunProgress ProgressOf(const ServedRun& run) {
  const CloudState& state = run.cloud().state();
  RunProgress progress;
  progress.run = run.name();
  progress.round = RoundOf(run.cloud());
  progress.phase = PhaseOf(run.cloud());
  progress.learners = static_cast<std::int64_t>(state.members.size());
  progress.awaited = progress.phase == "over" ? 0 : state.waiting;
  return progress;
}

RunStatus StatusOf(const ServedRun& run) {
  const CloudState& state = run.cloud().state();
  RunStatus status;
  status.progress = ProgressOf(run);
  status.ending = EndingText(state.ending);
  if (const Submission* incumbent = Incumbent(state.knowledge)) {
    status.incumbent = *incumbent;
    status.incumbent->theta.clear();
  }
  const bool over = status.progress.phase == "over";
  for (const bool awaited : {true, false}) {
    for (const Member& member : state.members) {
      if (status.members.size() >= RunStatus::kMostMembers) break;
      if ((!over && member.awaited) != awaited) continue;
      status.members.push_back({member.id, member.step, member.outlook != Outlook::kSearches,
                                awaited, std::nullopt, PresenceText(run.cloud(), member)});
    }
  }
  return status;
}

v1::StatusReply ToWire(const CloudStatus& status) {
  v1::StatusReply reply;
  reply.set_now(status.now);
  reply.set_version(status.version);
  reply.set_peer(status.peer);
  for (const RunStatus& run : status.runs) {
    v1::RunStatus* const r = reply.add_runs();
    r->set_run(run.progress.run);
    r->set_round(static_cast<std::uint32_t>(run.progress.round));
    r->set_phase(run.progress.phase);
    r->set_learners(run.progress.learners);
    r->set_awaited(run.progress.awaited);
    r->set_ending(run.ending);
    if (run.incumbent) {
      r->mutable_incumbent()->set_learner(run.incumbent->learner.index());
      r->mutable_incumbent()->set_round(static_cast<std::uint32_t>(run.incumbent->round));
      r->mutable_incumbent()->set_y(run.incumbent->y);
      r->mutable_incumbent()->set_b(run.incumbent->b);
      r->mutable_incumbent()->set_hash(run.incumbent->hash);
    }
    for (const MemberStatus& member : run.members) {
      v1::MemberStatus* const m = r->add_members();
      m->set_learner(member.learner.index());
      m->set_step(member.step);
      m->set_settled(member.settled);
      m->set_awaited(member.awaited);
      if (member.silence) m->set_silence(*member.silence);
      m->set_presence(member.presence);
    }
  }
  return reply;
}

CloudStatus FromWire(const v1::StatusReply& reply) {
  CloudStatus status{reply.now(), reply.version(), reply.peer(), {}};
  for (const v1::RunStatus& r : reply.runs()) {
    RunStatus& run = status.runs.emplace_back();
    run.progress = {r.run(), static_cast<int>(r.round()), r.phase(), r.learners(), r.awaited()};
    run.ending = r.ending();
    if (r.has_incumbent()) {
      const v1::IncumbentStatus& i = r.incumbent();
      run.incumbent = Submission{
          LearnerId(i.learner()), static_cast<int>(i.round()), {}, i.y(), i.b(), {}, i.hash()};
    }
    for (const v1::MemberStatus& m : r.members()) {
      run.members.push_back({LearnerId(m.learner()), m.step(), m.settled(), m.awaited(),
                             m.has_silence() ? std::optional(m.silence()) : std::nullopt,
                             m.presence()});
    }
  }
  return status;
}

Result<CloudStatus> FetchStatus(const std::string& address, const std::string& tls_directory,
                                const std::string& run, std::chrono::milliseconds deadline) {
  const TlsIdentity tls = FEDGEN_TRY(LoadTlsIdentity(tls_directory, std::nullopt, SystemClock()));
  const auto stub = v1::Federation::NewStub(MakeChannel(address, tls));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + deadline);
  v1::StatusRequest request;
  request.set_run(run);
  v1::StatusReply reply;
  const grpc::Status status = stub->Status(&context, request, &reply);
  if (status.ok()) return FromWire(reply);
  const bool reached = status.error_code() != grpc::StatusCode::UNAVAILABLE &&
                       status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED;
  return Error{reached ? ErrorCode::kMismatch : ErrorCode::kIo, TroubleOf(address, status)};
}

}  // namespace fedgen
