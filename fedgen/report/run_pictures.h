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
/// worlds that nobody trained on. Replaces earlier pictures. Returns the files it wrote.
Result<std::vector<std::string>> DrawRun(const RunToDraw& run);

}  // namespace fedgen
