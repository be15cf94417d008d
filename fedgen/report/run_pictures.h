// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "fedgen/base/result.h"

namespace fedgen {

/// A run to draw, and the learner whose bounds and trajectories are shown.
struct RunToDraw {
  std::string directory;
  int learner = 1;  // counted from 1
};

/// Draws every figure of a run from the files of its directory, each as SVG and PNG: bounds,
/// learning and seconds (run_figures.h), a sample world, and the learner's trajectories through
/// worlds that nobody trained on. Replaces earlier pictures. Returns the files it wrote. Refuses
/// tables that are not those of the run's checkpoint; timing.csv differs from run to run and is
/// taken as it is.
Result<std::vector<std::string>> DrawRun(const RunToDraw& run);

}  // namespace fedgen
