// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fuse/knowledge.h"

#include <tuple>

#include "fedgen/base/hash.h"

namespace fedgen {

std::string HashOf(const std::vector<float>& theta) {
  return Sha256Hex({reinterpret_cast<const char*>(theta.data()),  // NOLINT(*reinterpret-cast)
                    theta.size() * sizeof(float)});
}

bool IsBetter(const Submission& a, const Submission& b) {
  return std::tuple(a.y + a.b, a.learner, a.round, a.hash) <
         std::tuple(b.y + b.b, b.learner, b.round, b.hash);
}

Knowledge KnowledgeOf(Submission submission) {
  Knowledge knowledge;
  const int learner = submission.learner;
  knowledge.best.emplace(learner, std::move(submission));
  return knowledge;
}

Knowledge Merge(Knowledge a, const Knowledge& b) {
  for (const auto& [learner, submission] : b.best) {
    const auto [at, is_new] = a.best.try_emplace(learner, submission);
    if (!is_new && IsBetter(submission, at->second)) at->second = submission;
  }
  a.refuted.insert(b.refuted.begin(), b.refuted.end());
  return a;
}

const Submission* Incumbent(const Knowledge& knowledge) {
  const Submission* incumbent = nullptr;
  for (const auto& [learner, submission] : knowledge.best) {
    if (knowledge.refuted.contains(submission.hash)) continue;
    if (incumbent == nullptr || IsBetter(submission, *incumbent)) incumbent = &submission;
  }
  return incumbent;
}

}  // namespace fedgen
