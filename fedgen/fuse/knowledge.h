// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "fedgen/base/archive.h"

namespace fedgen {

// What learners share, and what is known from it.
//
// The Cloud keeps the argmin of y + b. A minimum over a total order is associative, commutative and
// idempotent, and so is what is kept here: the least records of a few authors, and verdicts on
// them. So one Merge serves a loop in one process, a server that folds messages in any order,
// repeated or not, a reduction, or neighbours that gossip (Eq. 30).

/// Who answers for a measurement: a learner, or the Cloud, whose candidates learners measure for
/// it.
class LearnerId {
 public:
  constexpr LearnerId() = default;
  explicit constexpr LearnerId(std::uint32_t index) : index_(index) {}
  static constexpr LearnerId Cloud() { return LearnerId(0xffffffffU); }

  constexpr bool is_cloud() const { return *this == Cloud(); }
  /// From 0 on, in the order of the configuration.
  constexpr std::uint32_t index() const { return index_; }
  /// The same from 1 on, as people count.
  constexpr std::uint32_t number() const { return index_ + 1; }
  /// "3", or "average": the Cloud's candidates are means.
  std::string name() const;

  auto operator<=>(const LearnerId&) const = default;
  friend void Fields(auto& archive, Is<LearnerId> auto& id) { archive(id.index_); }

 private:
  std::uint32_t index_ = 0;
};

/// What leaves a learner: a policy, what it measured of it, and names. Nothing about its worlds.
struct Submission {
  LearnerId learner;         // who measured it
  int round = 0;             // when, k >= 1
  LearnerId origin;          // whose initial policy it descends from
  double y = 1;              // mean of J on that round's fresh worlds
  double b = 1;              // bound on the error of y (Eq. 18)
  std::vector<float> theta;  // the policy
  std::string hash;          // SHA-256 of theta, in hexadecimal

  bool operator==(const Submission&) const = default;
};

void Fields(auto& archive, Is<Submission> auto& s) {
  archive(s.learner, s.round, s.origin, s.y, s.b, s.theta, s.hash);
}

/// SHA-256 of the parameters' bytes.
std::string HashOf(std::span<const float> theta);

/// Where a submission stands in the total order of Eq. 30, and its name: by y + b, then learner,
/// round and hash.
struct Rank {
  double bound = 2;  // y + b
  LearnerId learner;
  int round = 0;
  std::string hash;

  auto operator<=>(const Rank&) const = default;
  friend void Fields(auto& archive, Is<Rank> auto& r) {
    archive(r.bound, r.learner, r.round, r.hash);
  }
};
Rank RankOf(const Submission& submission);

/// Whether a is before b in that order.
bool IsBetter(const Submission& a, const Submission& b);

/// "I measured this record and found it worse than claimed."
struct Verdict {
  LearnerId verifier;
  Rank record;

  auto operator<=>(const Verdict&) const = default;
  friend void Fields(auto& archive, Is<Verdict> auto& v) { archive(v.verifier, v.record); }
};

/// What is known. Always in the form that Merge gives: at most kMaxRecords records, and only
/// verdicts on records that are there or may still come to be (docs/math.md, below Eq. 30).
struct Knowledge {
  // The least record of each author, of the few authors whose are least; refuted ones stay.
  std::map<LearnerId, Submission> records;
  std::set<Verdict> verdicts;

  /// f + 1: with up to f = 7 records refuted there is an incumbent. Beyond that there is none until
  /// an author submits something better than its record here.
  static constexpr std::size_t kMaxRecords = 8;

  bool operator==(const Knowledge&) const = default;
  friend void Fields(auto& archive, Is<Knowledge> auto& k) { archive(k.records, k.verdicts); }
};

/// What is known from one submission, or one verdict.
Knowledge KnowledgeOf(Submission submission);
Knowledge KnowledgeOf(Verdict verdict);

/// The join of two states of knowledge.
Knowledge Merge(Knowledge a, const Knowledge& b);

/// The least record that nobody refuted; null if there is none.
const Submission* Incumbent(const Knowledge& knowledge);

}  // namespace fedgen
