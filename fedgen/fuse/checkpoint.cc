// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fuse/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "fedgen/base/hash.h"

namespace fedgen {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic{"FGC\x01\r\n\x1a\n", 8};
constexpr std::uint32_t kVersion = 2;
constexpr std::size_t kHashDigits = 64;

// One list of fields serves both directions: Visit(archive, value) hands them to the archive in
// order.

class Writer {
 public:
  template <typename T>
    requires std::is_arithmetic_v<T>
  void operator()(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value),  // NOLINT(*reinterpret-cast)
                  sizeof value);
  }
  void operator()(const std::string& text) {
    (*this)(std::uint64_t{text.size()});
    bytes_ += text;
  }
  template <typename T>
  void operator()(const std::vector<T>& values) {
    (*this)(std::uint64_t{values.size()});
    for (const T& value : values) Item(value);
  }
  template <typename T>
  void operator()(const std::optional<T>& value) {
    (*this)(static_cast<std::uint8_t>(value.has_value()));
    if (value) (*this)(*value);
  }

  std::string Take() { return std::move(bytes_); }

 private:
  template <typename T>
  void Item(const T& value);

  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <typename T>
    requires std::is_arithmetic_v<T>
  void operator()(T& value) {
    if (!Has(sizeof value)) return;
    bytes_.copy(reinterpret_cast<char*>(&value), sizeof value);  // NOLINT(*reinterpret-cast)
    bytes_.remove_prefix(sizeof value);
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(value)) Fail("a number is not finite");
    }
  }
  void operator()(bool& value) {
    std::uint8_t byte = 0;
    (*this)(byte);
    if (byte > 1) Fail("a flag is neither 0 nor 1");
    value = byte == 1;
  }
  void operator()(std::string& text) {
    std::uint64_t size = 0;
    (*this)(size);
    if (!Has(size)) return;
    text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
  }
  template <typename T>
  void operator()(std::vector<T>& values) {
    std::uint64_t size = 0;
    (*this)(size);
    if (!Has(size)) return;  // an item has at least one byte
    values.resize(size);
    for (T& value : values) {
      if (!problem_.empty()) return;
      Item(value);
    }
  }
  template <typename T>
  void operator()(std::optional<T>& value) {
    bool present = false;
    (*this)(present);
    value.reset();
    if (present && problem_.empty()) (*this)(value.emplace());
  }

  void Fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }
  const std::string& problem() const { return problem_; }
  bool at_end() const { return bytes_.empty(); }

 private:
  bool Has(std::uint64_t size) {
    if (!problem_.empty()) return false;
    if (size > bytes_.size()) Fail("truncated");
    return problem_.empty();
  }
  template <typename T>
  void Item(T& value);

  std::string_view bytes_;
  std::string problem_;
};

template <typename Archive, typename... Fields>
void Each(Archive& archive, Fields&... fields) {
  (archive(fields), ...);
}

template <typename Archive, typename State>
void VisitLearner(Archive& a, State& s) {
  Each(a, s.search.mu, s.search.sigma, s.y, s.b, s.z_norm, s.spread, s.measured_round, s.zeta,
       s.stopped, s.stock_round, s.origin, s.adoptions, s.episodes, s.optimizer.steps,
       s.optimizer.first, s.optimizer.second, s.stop.recent, s.stop.threshold, s.first_stop,
       s.first_stopped);
}

template <typename Archive, typename S>
void VisitSubmission(Archive& a, S& s) {
  Each(a, s.learner, s.round, s.origin, s.y, s.b, s.theta, s.hash);
}

template <typename Archive, typename C>
void VisitCandidate(Archive& a, C& c) {
  Each(a, c.measurer, c.origin, c.theta);
}

template <typename Archive, typename M>
void VisitMark(Archive& a, M& m) {
  Each(a, m.name, m.bytes, m.sha256);
}

template <typename Archive, typename T>
void Visit(Archive& a, T& value) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Plain, LearnerState>) {
    VisitLearner(a, value);
  } else if constexpr (std::is_same_v<Plain, Submission>) {
    VisitSubmission(a, value);
  } else if constexpr (std::is_same_v<Plain, Candidate>) {
    VisitCandidate(a, value);
  } else if constexpr (std::is_same_v<Plain, FileMark>) {
    VisitMark(a, value);
  } else {
    a(value);
  }
}

template <typename T>
void Writer::Item(const T& value) {
  Visit(*this, value);
}
template <typename T>
void Reader::Item(T& value) {
  Visit(*this, value);
}

Error Malformed(const std::string& name, const std::string& problem) {
  return {ErrorCode::kData, fmt::format("{}: {}", name, problem)};
}

// Sizes that disagree, indices that point nowhere, hashes that are not those of their policy.
std::string FindProblem(const Checkpoint& checkpoint) {
  if (checkpoint.learners.empty()) return "holds no learner";
  const std::size_t n = checkpoint.learners.front().search.mu.size();
  const auto either = [n](std::size_t size) { return size == 0 || size == n; };
  const auto num_learners = static_cast<int>(checkpoint.learners.size());
  const auto is_learner = [&](int index) { return index >= 0 && index < num_learners; };
  const auto in_rounds = [&](int round) {
    return round >= 0 && round <= checkpoint.federation.round;
  };
  if (checkpoint.federation.round < 0) return "the round is negative";
  for (const LearnerState& s : checkpoint.learners) {
    if (s.search.mu.size() != n || s.search.sigma.size() != n || !either(s.first_stopped.size()) ||
        !either(s.optimizer.first.size()) || !either(s.optimizer.second.size())) {
      return "learners differ in their number of parameters";
    }
    const bool counts = s.episodes >= 0 && s.adoptions >= 0 && s.optimizer.steps >= 0 &&
                        in_rounds(s.measured_round) && in_rounds(s.stock_round) &&
                        in_rounds(s.first_stop) && is_learner(s.origin) &&
                        (s.first_stop > 0 || s.first_stopped.empty());
    if (!counts) return "a learner's counts make no sense";
    if (std::ranges::any_of(s.search.sigma, [](float sigma) { return sigma < 0; })) {
      return "a learner's sigma makes no sense";
    }
  }
  for (const auto& [learner, s] : checkpoint.federation.knowledge.best) {
    // The Cloud's own candidates count as one learner more.
    const bool names = (is_learner(learner) || learner == num_learners) && in_rounds(s.round) &&
                       is_learner(s.origin);
    if (!names) return "a submission comes from nowhere";
    if (s.theta.size() != n || s.hash != HashOf(s.theta)) {
      return "a submission is not what its hash says";
    }
  }
  for (const Candidate& c : checkpoint.federation.candidates) {
    if (!is_learner(c.measurer) || !is_learner(c.origin) || c.theta.size() != n) {
      return "a candidate makes no sense";
    }
  }
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  for (const FileMark& mark : checkpoint.beside) {
    if (mark.sha256.size() != kHashDigits || !std::ranges::all_of(mark.sha256, is_digit)) {
      return "the hash of a file beside it is none";
    }
  }
  return {};
}

}  // namespace

Checkpoint CheckpointOf(const Federation& federation, std::string fingerprint) {
  Checkpoint checkpoint;
  checkpoint.fingerprint = std::move(fingerprint);
  checkpoint.federation = federation.state();
  for (const auto& learner : federation.learners()) checkpoint.learners.push_back(learner->state());
  return checkpoint;
}

std::string CheckpointToBytes(const Checkpoint& checkpoint) {
  Writer writer;
  writer(kVersion);
  writer(checkpoint.fingerprint);
  writer(checkpoint.federation.round);
  std::vector<Submission> best;
  best.reserve(checkpoint.federation.knowledge.best.size());
  for (const auto& [learner, submission] : checkpoint.federation.knowledge.best) {
    best.push_back(submission);
  }
  writer(best);
  const auto& refuted = checkpoint.federation.knowledge.refuted;
  writer(std::vector<std::string>(refuted.begin(), refuted.end()));
  writer(checkpoint.federation.candidates);
  writer(checkpoint.learners);
  writer(checkpoint.beside);
  const std::string body = std::string(kMagic) + writer.Take();
  return body + Sha256Hex(body);
}

Result<Checkpoint> CheckpointFromBytes(std::string_view bytes, const std::string& name) {
  if (bytes.size() < kMagic.size() + kHashDigits || !bytes.starts_with(kMagic)) {
    return Malformed(name, "is not a checkpoint");
  }
  const std::string_view body = bytes.substr(0, bytes.size() - kHashDigits);
  if (bytes.substr(body.size()) != Sha256Hex(body)) {
    return Malformed(name, "its SHA-256 does not fit: the file was altered or cut");
  }
  return CheckpointFromBody(body.substr(kMagic.size()), name);
}

Result<Checkpoint> CheckpointFromBody(std::string_view body, const std::string& name) {
  Reader reader(body);
  std::uint32_t version = kVersion;
  reader(version);
  if (version != kVersion) {
    return Malformed(name, fmt::format("version = {}: must be {}", version, kVersion));
  }
  Checkpoint checkpoint;
  std::vector<Submission> best;
  std::vector<std::string> refuted;
  reader(checkpoint.fingerprint);
  reader(checkpoint.federation.round);
  reader(best);
  reader(refuted);
  reader(checkpoint.federation.candidates);
  reader(checkpoint.learners);
  reader(checkpoint.beside);
  if (reader.problem().empty() && !reader.at_end()) reader.Fail("something follows the end");
  for (Submission& submission : best) {
    const int learner = submission.learner;
    if (!checkpoint.federation.knowledge.best.emplace(learner, std::move(submission)).second) {
      reader.Fail("a submission's learner is named twice");
    }
  }
  checkpoint.federation.knowledge.refuted = {refuted.begin(), refuted.end()};
  if (reader.problem().empty()) reader.Fail(FindProblem(checkpoint));
  if (!reader.problem().empty()) return Malformed(name, reader.problem());
  return checkpoint;
}

Result<void> Restore(const Checkpoint& checkpoint, const std::string& fingerprint,
                     const std::string& name, Federation& federation) {
  if (checkpoint.fingerprint != fingerprint) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("{}: belongs to another run: of another seed, configuration or "
                             "initial policy",
                             name)};
  }
  const auto& learners = federation.learners();
  const bool fits =
      checkpoint.learners.size() == learners.size() &&
      checkpoint.learners.front().search.mu.size() == learners.front()->state().search.mu.size();
  if (!fits) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("{}: its learners are not those of the configuration", name)};
  }
  federation.set_state(checkpoint.federation);
  for (std::size_t i = 0; i < learners.size(); ++i) learners[i]->set_state(checkpoint.learners[i]);
  return {};
}

}  // namespace fedgen
