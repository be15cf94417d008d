// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fedgen/base/file.h"
#include "fedgen/base/result.h"
#include "fedgen/rollout/rollout.h"
#include "fedgen/world/world.h"

namespace fedgen {

// Pictures of worlds and of ways through them, in the paper's colours: red obstacles, a cyan square at
// the start, a green goal, blue paths. One drawing, written as SVG or PNG by the path's ending.

/// A way through a world, and how it ended.
struct DrawnPath {
  Trajectory trajectory;
  Outcome outcome = Outcome::kReachedGoal;
};

/// One square of a figure.
struct Panel {
  const World* world = nullptr;
  std::string title;  // e.g. "world 3: collided after 2.15 s"
  std::vector<DrawnPath> paths;
};

struct FigureOptions {
  std::string title;          // above all panels; may be empty
  int columns = 3;            // panels in a row
  double robot_radius = 0.27;  // m; the robot is drawn at the end of its path
  /// If set, also the lidar beams from the first start of each panel.
  const Lidar* lidar = nullptr;
};

/// Draws panels in reading order. The part of the plane shown is the same in all: what encloses every
/// obstacle, start and goal.
Result<void> SaveFigure(const std::vector<Panel>& panels, const FigureOptions& options,
                        const std::string& path, IfExists if_exists);

}  // namespace fedgen
