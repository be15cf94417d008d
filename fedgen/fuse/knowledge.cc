// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fuse/knowledge.h"

#include <fmt/format.h>

#include <algorithm>

#include "fedgen/base/hash.h"

namespace fedgen {
namespace {

// The last of the records in the total order. Requires a record.
auto Worst(std::map<LearnerId, Submission>& records) {
  return std::max_element(records.begin(), records.end(), [](const auto& a, const auto& b) {
    return IsBetter(a.second, b.second);
  });
}

// Whether the record of this rank is among the records, or would be if it came. What is once
// excluded stays so: records only get better.
bool MayMatter(const Rank& rank, const std::map<LearnerId, Submission>& records,
               const std::optional<Rank>& worst) {
  if (const auto own = records.find(rank.learner); own != records.end()) {
    return rank <= RankOf(own->second);
  }
  return !worst || rank < *worst;
}

}  // namespace

std::string LearnerId::name() const { return is_cloud() ? "average" : fmt::format("{}", number()); }

std::string HashOf(std::span<const float> theta) {
  return Sha256Hex({reinterpret_cast<const char*>(theta.data()),  // NOLINT(*reinterpret-cast)
                    theta.size_bytes()});
}

Rank RankOf(const Submission& s) { return {s.y + s.b, s.learner, s.round, s.hash}; }

bool IsBetter(const Submission& a, const Submission& b) { return RankOf(a) < RankOf(b); }

Knowledge KnowledgeOf(Submission submission) {
  Knowledge knowledge;
  const LearnerId learner = submission.learner;
  knowledge.records.emplace(learner, std::move(submission));
  return knowledge;
}

Knowledge KnowledgeOf(Verdict verdict) {
  Knowledge knowledge;
  knowledge.verdicts.insert(std::move(verdict));
  return knowledge;
}

Knowledge Merge(Knowledge a, const Knowledge& b) {
  for (const auto& [learner, submission] : b.records) {
    const auto [at, is_new] = a.records.try_emplace(learner, submission);
    if (!is_new && IsBetter(submission, at->second)) at->second = submission;
  }
  while (a.records.size() > Knowledge::kMaxRecords) a.records.erase(Worst(a.records));
  a.verdicts.insert(b.verdicts.begin(), b.verdicts.end());
  std::optional<Rank> worst;  // once there are as many records as are kept
  if (a.records.size() == Knowledge::kMaxRecords) worst = RankOf(Worst(a.records)->second);
  std::erase_if(a.verdicts,
                [&](const Verdict& v) { return !MayMatter(v.record, a.records, worst); });
  return a;
}

const Submission* Incumbent(const Knowledge& knowledge) {
  std::set<Rank> refuted;
  for (const Verdict& verdict : knowledge.verdicts) refuted.insert(verdict.record);
  const Submission* incumbent = nullptr;
  for (const auto& [learner, submission] : knowledge.records) {
    if (refuted.contains(RankOf(submission))) continue;
    if (incumbent == nullptr || IsBetter(submission, *incumbent)) incumbent = &submission;
  }
  return incumbent;
}

}  // namespace fedgen
