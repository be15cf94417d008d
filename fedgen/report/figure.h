// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "fedgen/base/file.h"
#include "fedgen/base/result.h"
#include "fedgen/rollout/rollout.h"
#include "fedgen/sim/lidar.h"
#include "fedgen/world/world.h"

namespace fedgen {

// Pictures of worlds and of paths through them, in the paper's colours: red obstacles, a cyan
// square at the start, a green goal, blue paths. One drawing, written as SVG or PNG by the file's
// ending.
//
// A path ends in the robot's disc and in a mark that says how: a green dot where it reached the
// goal, a dark red cross where it collided, a hollow circle where time ran out. Below the panels a
// legend names what is drawn, and nothing else.

/// A path through a world, and how it ended.
struct DrawnPath {
  Trajectory trajectory;
  Outcome outcome = Outcome::kReachedGoal;
  /// The policy that drove, e.g. "gap-follower". Paths of the same label have the same colour in
  /// all panels; the first label is blue. May be empty.
  std::string label;
};

/// One square of a figure.
struct Panel {
  const World* world = nullptr;  // not owned, never null
  std::string title = {};        // e.g. "world 3: collided after 2.15 s"; may be empty
  std::vector<DrawnPath> paths;
};

/// Drives the policy from the first start of each panel's world and adds the path, under the label,
/// to the panel. Returns how each episode went, one per panel.
std::vector<Episode> DrivePanels(const Task& task, const Policy& policy, const std::string& label,
                                 std::vector<Panel>& panels);

struct FigureOptions {
  std::string title = {};      // above all panels; may be empty
  int columns = 3;             // panels in a row, >= 1
  double robot_radius = 0.27;  // m, > 0; the robot is drawn at the end of its path
  /// The Von Karman field of a world that has one, as a pale background.
  bool draw_field = true;
  /// If set, also the lidar beams from the first start of each panel. Not owned.
  const Lidar* lidar = nullptr;
};

/// Draws panels in reading order; there is at least one. The part of the plane shown is the same in
/// all: what encloses every obstacle, start, goal and path, except that a path which strays farther
/// than the world is wide is cut at the frame.
///
/// The ending of `path` must be .svg or .png. Texts are UTF-8. A PNG has two pixels per unit of the
/// SVG. The same arguments give the same bytes, on one system with one set of fonts. On failure
/// nothing is left behind and what was at `path` is still there.
Result<void> SaveFigure(const std::vector<Panel>& panels, const FigureOptions& options,
                        const std::string& path, IfExists if_exists);

}  // namespace fedgen
