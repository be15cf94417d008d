// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "fedgen/learn/training.h"

namespace fedgen {

/// Which of the paper's statements holds for a run of these settings (docs/guarantees.md).
struct Guarantee {
  std::string name;       // "T1", ..., "adoptions", "certificate"
  bool holds = false;     // as corrected in docs/guarantees.md
  std::string statement;  // what it says, with this run's numbers
  std::string reason;     // why it does not hold; empty if it does
};

std::vector<Guarantee> WhatHolds(const TrainingSettings& settings);

/// Things that a person should know before starting such a run, e.g. that no adoption can happen.
std::vector<std::string> Warnings(const TrainingSettings& settings);

}  // namespace fedgen
