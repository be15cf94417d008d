// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fuse/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <tuple>

#include "fedgen/base/hash.h"

namespace fedgen {
namespace {

constexpr std::string_view kMagic{"FGC\x01\r\n\x1a\n", 8};
constexpr std::uint32_t kVersion = 4;
constexpr std::size_t kHashDigits = 64;

// Whose checkpoint it is stands behind the version.
constexpr std::uint8_t KindOf(const HostCheckpoint& /*type*/) { return 'H'; }
constexpr std::uint8_t KindOf(const CloudCheckpoint& /*type*/) { return 'C'; }

Error Malformed(const std::string& name, const std::string& problem) {
  return {ErrorCode::kData, fmt::format("{}: {}", name, problem)};
}

bool IsHash(const std::string& text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() == kHashDigits && std::ranges::all_of(text, is_digit);
}

// What fields that were read one by one cannot be together.
std::string FindProblem(const HostCheckpoint& checkpoint) {
  if (checkpoint.learners.empty()) return "holds no learner";
  if (checkpoint.host.round < 0) return "its round is negative";
  const std::size_t n = checkpoint.learners.front().state.theta.size();
  const auto in_rounds = [&](int round) { return round >= 0 && round <= checkpoint.host.round; };
  for (const LearnerCheckpoint& learner : checkpoint.learners) {
    const LearnerState& s = learner.state;
    if (s.theta.size() != n || (!s.first_stopped.empty() && s.first_stopped.size() != n)) {
      return "its learners differ in their number of parameters";
    }
    const bool counts = s.episodes >= 0 && s.adoptions >= 0 && in_rounds(s.measured_round) &&
                        in_rounds(s.stock_round) && in_rounds(s.first_stop) &&
                        (s.first_stop > 0 || s.first_stopped.empty());
    if (!counts) return "a learner's counts contradict each other";
  }
  for (const Candidate& candidate : checkpoint.host.candidates) {
    if (candidate.theta.size() != n) return "a candidate differs in its number of parameters";
  }
  for (const FileMark& mark : checkpoint.beside) {
    if (!IsHash(mark.sha256)) {
      return "what should be the SHA-256 of a table is not 64 hexadecimal digits";
    }
  }
  return {};
}

// What its counts of learners, steps and the race cannot be.
std::string FindWrongCount(const CloudState& s) {
  const auto num_members = static_cast<std::int64_t>(s.members.size());
  if (s.members.empty()) return "knows no learner";
  const bool possible = s.step >= 0 && s.round >= 0 && s.round <= s.step / 2 && s.waiting >= 0 &&
                        s.waiting <= num_members && s.answer.round >= 0;
  if (!possible || s.heard < 0 || s.incumbents < 0) return "its step is impossible";
  const auto is_member = [&](LearnerId id) { return FindMember(s.members, id) != nullptr; };
  const auto in_order = [](const Member& a, const Member& b) { return a.id < b.id; };
  if (std::ranges::adjacent_find(s.members, std::not_fn(in_order)) != s.members.end()) {
    return "its learners are out of order";
  }
  for (const Member& member : s.members) {
    const bool sound = is_member(member.origin) && is_member(member.initial_origin) &&
                       member.episodes >= 0 && member.step >= -1 && member.joined >= kRoundToCome &&
                       member.told >= kRoundToCome && member.seen >= 0;
    if (!sound) return "a learner's counts contradict each other";
  }
  for (const RacePart& part : s.parts) {
    const bool sound = is_member(part.learner) && !part.tallies.empty() &&
                       part.tallies.size() == s.parts.front().tallies.size();
    if (!sound) return "a part of its race is of nobody";
  }
  return {};
}

std::string FindProblem(const CloudCheckpoint& checkpoint) {
  const CloudState& s = checkpoint.cloud;
  if (std::string problem = FindWrongCount(s); !problem.empty()) return problem;
  const auto is_member = [&](LearnerId id) { return FindMember(s.members, id) != nullptr; };
  const auto is_sound = [&](const Submission& submission) {
    return submission.theta.size() == s.num_parameters && is_member(submission.origin) &&
           submission.hash == HashOf(submission.theta);
  };
  for (const auto& [id, record] : s.knowledge.records) {
    if (record.learner != id || !is_sound(record))
      return "a record's policy does not match its hash";
  }
  if (s.knowledge.records.size() > Knowledge::kMaxRecords) return "it holds too many records";
  for (const auto& [rank, final] : s.finals) {
    if (rank != RankOf(final) || !is_sound(final)) return "a final policy does not match its hash";
  }
  for (const RoundAnswer* answer : {&s.answer, &s.gathering}) {
    if (answer->incumbent && !is_sound(*answer->incumbent)) return "its incumbent is no policy";
    for (const Candidate& candidate : answer->candidates) {
      const bool sound = is_member(candidate.measurer) && is_member(candidate.origin) &&
                         candidate.theta.size() == s.num_parameters;
      if (!sound) return "a candidate is no policy of the run";
    }
  }
  const auto either = [&](std::size_t size) { return size == 0 || size == s.num_parameters; };
  if (!either(s.start.size()) || !either(s.average.size()) || !either(s.answer.mean.size()) ||
      s.mean.count() < 0 || !either(s.mean.size())) {
    return "its means differ in their number of parameters";
  }
  return {};
}

template <typename Checkpoint>
std::string Write(const Checkpoint& checkpoint) {
  Writer writer;
  writer(kVersion, KindOf(checkpoint), checkpoint);
  const std::string body = std::string(kMagic) + writer.Take();
  return body + Sha256Hex(body);
}

template <typename Checkpoint>
Result<Checkpoint> ReadBody(std::string_view body, const std::string& name) {
  Reader reader(body);
  std::uint32_t version = kVersion;
  std::uint8_t kind = 0;
  reader(version);
  if (version != kVersion) {
    return Malformed(name, fmt::format("version = {}: must be {}; a run is continued by the "
                                       "program that began it",
                                       version, kVersion));
  }
  Checkpoint checkpoint;
  reader(kind);
  if (kind != KindOf(checkpoint)) reader.Fail("is the checkpoint of something else");
  reader(checkpoint);
  if (reader.problem().empty()) reader.Finish();
  if (reader.problem().empty()) reader.Fail(FindProblem(checkpoint));
  if (!reader.problem().empty()) return Malformed(name, reader.problem());
  return checkpoint;
}

template <typename Checkpoint>
Result<Checkpoint> Read(std::string_view bytes, const std::string& name) {
  if (bytes.size() < kMagic.size() + kHashDigits || !bytes.starts_with(kMagic)) {
    return Malformed(name, "is not a checkpoint");
  }
  const std::string_view body = bytes.substr(0, bytes.size() - kHashDigits);
  if (bytes.substr(body.size()) != Sha256Hex(body)) {
    return Malformed(name, "its SHA-256 does not match: the file was altered or cut off");
  }
  return ReadBody<Checkpoint>(body.substr(kMagic.size()), name);
}

Error OtherLearners(const std::string& name) {
  return {ErrorCode::kMismatch,
          fmt::format("{}: its learners do not match the configuration", name)};
}

}  // namespace

Result<void> CheckFingerprint(const std::string& is, const std::string& wanted,
                              const std::string& name) {
  if (is == wanted) return {};
  return Error{ErrorCode::kMismatch,
               fmt::format("{}: belongs to another run: of another seed, configuration, "
                           "initial policy or program",
                           name)};
}

HostCheckpoint CheckpointOf(const Host& host, std::string fingerprint) {
  HostCheckpoint checkpoint;
  checkpoint.fingerprint = std::move(fingerprint);
  checkpoint.host = host.state();
  for (const auto& learner : host.learners()) {
    checkpoint.learners.push_back(
        {learner->id(), learner->state(), learner->improver().SaveState()});
  }
  return checkpoint;
}

std::string CheckpointToBytes(const HostCheckpoint& checkpoint) { return Write(checkpoint); }
std::string CheckpointToBytes(const CloudCheckpoint& checkpoint) { return Write(checkpoint); }

Result<HostCheckpoint> HostFromBytes(std::string_view bytes, const std::string& name) {
  return Read<HostCheckpoint>(bytes, name);
}
Result<CloudCheckpoint> CloudFromBytes(std::string_view bytes, const std::string& name) {
  return Read<CloudCheckpoint>(bytes, name);
}
Result<HostCheckpoint> HostFromBody(std::string_view body, const std::string& name) {
  return ReadBody<HostCheckpoint>(body, name);
}
Result<CloudCheckpoint> CloudFromBody(std::string_view body, const std::string& name) {
  return ReadBody<CloudCheckpoint>(body, name);
}

Result<void> Restore(const HostCheckpoint& checkpoint, const std::string& fingerprint,
                     const std::string& name, Host& host) {
  FEDGEN_TRY(CheckFingerprint(checkpoint.fingerprint, fingerprint, name));
  const auto& learners = host.learners();
  if (checkpoint.learners.size() != learners.size()) return OtherLearners(name);
  const std::size_t n = learners.front()->state().theta.size();
  for (std::size_t i = 0; i < learners.size(); ++i) {
    const LearnerCheckpoint& saved = checkpoint.learners[i];
    if (saved.id != learners[i]->id() || saved.state.theta.size() != n) return OtherLearners(name);
  }
  for (std::size_t i = 0; i < learners.size(); ++i) {
    const LearnerCheckpoint& saved = checkpoint.learners[i];
    if (auto loaded = learners[i]->improver().LoadState(saved.improver, n); !loaded) {
      return Malformed(name, loaded.error().message);
    }
    learners[i]->set_state(saved.state);
  }
  host.set_state(checkpoint.host);
  return {};
}

Result<void> Restore(const CloudCheckpoint& checkpoint, const std::string& fingerprint,
                     const std::string& name, Cloud& cloud) {
  FEDGEN_TRY(CheckFingerprint(checkpoint.fingerprint, fingerprint, name));
  // Others may have joined a run that is open.
  const auto& [saved, wanted] = std::tie(checkpoint.cloud.members, cloud.state().members);
  const bool complete = std::ranges::includes(saved, wanted, {}, &Member::id, &Member::id);
  if (!complete || (saved.size() > wanted.size() && !cloud.options().open)) {
    return OtherLearners(name);
  }
  cloud.set_state(checkpoint.cloud);
  return {};
}

}  // namespace fedgen
