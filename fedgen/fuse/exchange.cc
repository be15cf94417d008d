// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fuse/exchange.h"

#include <algorithm>
#include <iterator>

#include "fedgen/base/check.h"

namespace fedgen {

Result<Exchanged> InProcessExchange::Submit(int round, std::span<const Submission> submissions) {
  Exchanged exchanged;
  for (const Submission& submission : submissions) {
    knowledge_ = Merge(std::move(knowledge_), KnowledgeOf(submission));
    if (submission.learner < num_learners_) exchanged.participants.push_back(submission.learner);
  }
  if (const Submission* incumbent = Incumbent(knowledge_)) exchanged.incumbent = *incumbent;
  // A mean that was nominated before would only be measured again until it is lucky: somebody must
  // have measured anew since.
  const auto is_new = [&](const Submission& s) {
    return s.learner < num_learners_ && s.round > round - average_every_;
  };
  if (average_every_ > 0 && round % average_every_ == 0 &&
      std::any_of(submissions.begin(), submissions.end(), is_new)) {
    // A mean of floats depends on their order: take the learners in theirs, however they came.
    std::vector<Submission> learners;
    std::copy_if(submissions.begin(), submissions.end(), std::back_inserter(learners),
                 [&](const Submission& s) { return s.learner < num_learners_; });
    std::sort(learners.begin(), learners.end(),
              [](const Submission& a, const Submission& b) { return a.learner < b.learner; });
    if (auto candidate = Average(learners)) {
      candidate->measurer = (round / average_every_) % num_learners_;
      exchanged.candidates.push_back(*std::move(candidate));
    }
  }
  return exchanged;
}

std::optional<Candidate> Average(std::span<const Submission> submissions) {
  std::map<int, int> members;  // of each origin
  for (const Submission& submission : submissions) ++members[submission.origin];
  const auto commonest = std::max_element(members.begin(), members.end(), [](auto& a, auto& b) {
    return a.second < b.second;  // the first of equals wins
  });
  if (commonest == members.end() || commonest->second < 2) return std::nullopt;
  Candidate candidate;
  candidate.origin = commonest->first;
  std::vector<std::span<const float>> thetas;
  for (const Submission& submission : submissions) {
    if (submission.origin == candidate.origin) thetas.emplace_back(submission.theta);
  }
  candidate.theta = MeanOf(thetas);
  return candidate;
}

std::vector<float> MeanOf(std::span<const std::span<const float>> thetas) {
  FEDGEN_CHECK(!thetas.empty(), "the mean of no policy");
  std::vector<double> sum(thetas.front().size());
  for (const std::span<const float> theta : thetas) {
    FEDGEN_CHECK(theta.size() == sum.size(), "policies of {} and {} parameters", theta.size(),
                 sum.size());
    for (std::size_t index = 0; index < sum.size(); ++index) {
      sum[index] += static_cast<double>(theta[index]);
    }
  }
  std::vector<float> mean;
  mean.reserve(sum.size());
  for (const double value : sum) {
    mean.push_back(static_cast<float>(value / static_cast<double>(thetas.size())));
  }
  return mean;
}

}  // namespace fedgen
