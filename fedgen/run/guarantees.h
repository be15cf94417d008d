// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fedgen/run/experiment.h"

namespace fedgen {

/// How far a statement of the paper goes for a run, in the words of docs/guarantees.md, section 2.
enum class Standing {
  kYes,     // it holds, as corrected there
  kPartly,  // what is stated here holds, but not all that the theorem says
  kNo,      // nothing is proved
};

/// "yes", "partly", "no".
std::string_view StandingName(Standing standing);

/// Which of the paper's statements holds for a run of these settings (docs/guarantees.md).
struct Guarantee {
  std::string name;  // "T1", ..., "adoptions", "certificate"
  Standing standing = Standing::kNo;
  std::string statement;  // what it says, with this run's numbers
  std::string reason;     // kPartly: what is missing; kNo: why; kYes: empty
};

std::vector<Guarantee> WhatHolds(const TrainingSettings& settings);

/// What a user should know before starting such a run, e.g. that no learner can adopt.
std::vector<std::string> Warnings(const TrainingSettings& settings);

}  // namespace fedgen
