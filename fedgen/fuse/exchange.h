// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fedgen/base/result.h"
#include "fedgen/fuse/knowledge.h"

namespace fedgen {

// The seam between Algorithm 1 and the way learners reach each other. A transport implements
// Exchange; with the same seeds all of them give the same bytes.

/// A policy that nobody has measured yet and that the named learner is asked to.
struct Candidate {
  int measurer = 0;
  int origin = 0;
  std::vector<float> theta;

  bool operator==(const Candidate&) const = default;
};

/// What comes back from a round.
struct Exchanged {
  std::vector<int> participants;        // learners whose submission of this round counted
  std::optional<Submission> incumbent;  // argmin of y + b over all learners and rounds so far
  std::vector<Candidate> candidates;    // to be measured in the next round
};

class Exchange {
 public:
  Exchange() = default;
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Hands in what the learners living here submit in this round and returns when the round is
  /// complete.
  virtual Result<Exchanged> Submit(int round, std::span<const Submission> submissions) = 0;
};

/// All learners live in one process: the Cloud is a fold.
class InProcessExchange final : public Exchange {
 public:
  /// Every `average_every` rounds the mean of the policies with the commonest origin is nominated
  /// as a candidate, if any of them is new since the last time; 0 for never.
  InProcessExchange(int num_learners, int average_every)
      : num_learners_(num_learners), average_every_(average_every) {}

  Result<Exchanged> Submit(int round, std::span<const Submission> submissions) override;

  const Knowledge& knowledge() const { return knowledge_; }
  void set_knowledge(Knowledge knowledge) { knowledge_ = std::move(knowledge); }

 private:
  int num_learners_;
  int average_every_;
  Knowledge knowledge_;
};

/// The mean of the policies that share the commonest origin (the smallest if several are as
/// common); nothing if no two share one. Policies of one origin lie in one basin, where a mean
/// makes sense.
std::optional<Candidate> Average(std::span<const Submission> submissions);

/// The mean of one or more policies, summed in their order.
std::vector<float> MeanOf(std::span<const std::span<const float>> thetas);

}  // namespace fedgen
