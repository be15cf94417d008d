// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fedgen {

// What learners share, and what is known from it.
//
// The Cloud keeps the argmin of y + b. A minimum over a total order is associative, commutative and
// idempotent, and so is the union of what is known; so one Merge serves a loop in one process, a
// server that folds messages in any order, repeated or not, a reduction, or neighbours that gossip
// (Eq. 30).

/// What leaves a learner: a policy, what it measured of it, and names. Nothing about its worlds.
struct Submission {
  int learner = 0;           // who measured it; num_learners for the Cloud's averaged candidate
  int round = 0;             // when, k >= 1
  int origin = 0;            // whose initial policy it descends from
  double y = 1;              // mean of J on that round's fresh worlds
  double b = 1;              // bound on the error of y (Eq. 18)
  std::vector<float> theta;  // the policy
  std::string hash;          // SHA-256 of theta, in hexadecimal

  bool operator==(const Submission&) const = default;
};

/// SHA-256 of the parameters' bytes.
std::string HashOf(const std::vector<float>& theta);

/// The total order of Eq. 30: by y + b, then learner, round and hash.
bool IsBetter(const Submission& a, const Submission& b);

struct Knowledge {
  std::map<int, Submission> best;  // of each learner
  std::set<std::string> refuted;   // hashes of policies that someone measured and found worse

  bool operator==(const Knowledge&) const = default;
};

/// What is known from one submission.
Knowledge KnowledgeOf(Submission submission);

/// The join of two states of knowledge: each learner's better submission, the union of what was
/// refuted.
Knowledge Merge(Knowledge a, const Knowledge& b);

/// The best submission that is not refuted; null if there is none.
const Submission* Incumbent(const Knowledge& knowledge);

}  // namespace fedgen
