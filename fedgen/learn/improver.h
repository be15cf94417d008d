// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fedgen/base/random.h"
#include "fedgen/base/result.h"
#include "fedgen/learn/objective.h"

namespace fedgen {

// How one learner improves its policy between two exchanges with the others.
//
//   const Look look = improver.Measure(k, K, theta, key);  // y at theta, on fresh worlds
//   const Step step = improver.Improve(k, K, key, theta);  // theta moves, or the learner stops
//
// Algorithm 1's improver takes one gradient step a round (learn/gradient_search.h). Another may
// take several, and keep whatever it likes from round to round (learn/policy_gradient.h): nobody
// but its host's checkpoint sees it.

/// What a round of measuring tells about the present policy.
struct Look {
  double y = 1;                     // mean of J over the round's worlds, of theta itself (Eq. 17)
  std::int64_t episodes = 0;        // what it cost
  std::optional<double> z_norm;     // |z|, for improvers that estimate a gradient
  std::optional<double> spread;     // of z (Eq. 22)
  std::optional<double> threshold;  // q in force, if |z| below it stops the learner
  std::string remark;               // what a person should know, after "learner 3"; mostly empty
};

/// What improving came to.
struct Step {
  bool moved = false;         // false at a local minimum, as far as the improver can tell
  std::int64_t episodes = 0;  // spent on it, besides those of the measurement
};

class Improver {
 public:
  Improver() = default;
  virtual ~Improver() = default;
  Improver(const Improver&) = delete;
  Improver& operator=(const Improver&) = delete;

  /// Measures theta in round k of num_rounds on the fresh worlds that the key names, and keeps what
  /// Improve needs. The two follow each other: no other learner of the host measures in between.
  virtual Look Measure(int k, int num_rounds, std::span<const float> theta, Key key) = 0;

  /// Moves theta by what the last Measure saw, in round k of num_rounds, by one step or several.
  /// The key names whatever more is drawn: no other use of the round has it. A step that did not
  /// move leaves theta as it was.
  virtual Step Improve(int k, int num_rounds, Key key, std::span<float> theta) = 0;

  /// The length of the step that Improve takes in round k; 0 if there is no such thing.
  virtual double StepLength(int k, int num_rounds) const = 0;

  /// y alone, on as many fresh worlds as wanted: to take stock, or to judge a candidate.
  virtual Value MeasureValue(std::span<const float> theta, std::int64_t worlds, Key key) = 0;

  /// The learner goes on from another policy: what was remembered about the old one is void.
  virtual void Restart() = 0;

  /// What it remembers from round to round, as bytes, and back. Bytes that do not fit networks of
  /// this many parameters are an error of kind kData.
  virtual std::string SaveState() const = 0;
  virtual Result<void> LoadState(std::string_view bytes, std::size_t num_parameters) = 0;
};

}  // namespace fedgen
