// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fedgen/base/option.h"

namespace fedgen {

// How a gradient becomes a step: how long (StepSize) and which way (Descend).

struct StepOptions {
  enum class Schedule {
    kPower,      // r / k^exponent, Algorithm 1
    kConstant,   // r
    kGeometric,  // from r in round 1 to last in round K, or in an earlier one
  };
  double step = 0.5;  // r
  Schedule schedule = Schedule::kPower;
  double exponent = 0.7;  // rho of the paper; T3 asks for (2/3, 1)
  double last = 0.001;    // kGeometric only
  int rounds = 0;         // kGeometric only: the round of `last`, and after it; 0 for K
};
template <>
inline constexpr auto kWords<StepOptions::Schedule> = Words("power", "constant", "geometric");

void Describe(OptionVisitor& visitor, StepOptions& options);

/// The step of round k of num_rounds, k >= 1 (Eq. 25).
double StepSize(const StepOptions& options, int k, int num_rounds);

struct OptimizerOptions {
  enum class Kind {
    kSgd,     // mu - step z, Algorithm 1
    kAdam,    // Eq. 26
    kClipUp,  // Eq. 27: every step as long as the last, with momentum and a speed limit
  };
  Kind kind = Kind::kSgd;
};
template <>
inline constexpr auto kWords<OptimizerOptions::Kind> = Words("sgd", "adam", "clipup");

void Describe(OptionVisitor& visitor, OptimizerOptions& options);

/// What an optimiser remembers; empty at the start and after an adoption.
struct OptimizerState {
  std::int64_t steps = 0;
  std::vector<double> first;   // Adam's mean of z, ClipUp's velocity
  std::vector<double> second;  // Adam's mean of z^2

  bool operator==(const OptimizerState&) const = default;
};

/// One step down from mu. Where z is 0 and always was, mu does not move.
void Descend(const OptimizerOptions& options, std::span<const double> z, double step,
             OptimizerState& state, std::span<float> mu);

}  // namespace fedgen
