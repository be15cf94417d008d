// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fedgen/base/option.h"
#include "fedgen/learn/objective.h"

namespace fedgen {

// When a learner has arrived at a local minimum, as far as it can tell.
//
// The paper stops at |z| < q. That works while the gradient stands out of its noise; with 30 pairs
// in 1,361 dimensions it does not: |z| is then mostly noise, and a q near it stops by chance. The
// plateau rule asks the costs instead: have they fallen lately by more than their own scatter?

struct StopOptions {
  enum class Rule {
    kGradient,  // |z_mu| < threshold (Eq. 28)
    kAuto,      // the same with threshold = 4 x the spread of the learner's first measurement
    kPlateau,   // y no longer falls (Eq. 29)
    kNever,
  };
  Rule rule = Rule::kGradient;
  double threshold = 3;  // q; kGradient only
  int window = 20;       // w, rounds; kPlateau only
  double tolerance = 1;  // standard errors; kPlateau only
};
template <>
inline constexpr auto kWords<StopOptions::Rule> = Words("gradient", "auto", "plateau", "never");

void Describe(OptionVisitor& visitor, StopOptions& options);

/// What a rule remembers of a learner since it last began: at the start, and after an adoption.
struct StopState {
  std::vector<double> recent;       // y of the last 2 w rounds, oldest first
  std::optional<double> threshold;  // q in force, once known

  bool operator==(const StopState&) const = default;
};

/// q in force for this measurement; none where the rule does not look at |z|.
std::optional<double> ThresholdFor(const StopOptions& options, const Measurement& measurement,
                                   const StopState& state);

/// Whether the learner stops here. Call once for each measurement.
bool ShouldStop(const StopOptions& options, const Measurement& measurement, StopState& state);

/// How many pairs would lift the gradient above 4 x the spread, in words (Eq. 28). A gradient that
/// is not visible with as many `pairs` as there were only gives a least number.
std::string PairsAdvice(const SquaredSignal& gradient, double spread, int pairs);

/// For an automatic threshold that stops a learner in its first round: a line that says so, and
/// about how many pairs would let it move (Eq. 28). Nothing otherwise.
std::optional<std::string> ExplainStopAtOnce(const Measurement& first);

}  // namespace fedgen
