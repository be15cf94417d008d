// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "fedgen/report/canvas.h"
#include "fedgen/rollout/rollout.h"
#include "fedgen/sim/lidar.h"
#include "fedgen/world/world.h"

namespace fedgen {

// How the parts of a world look on paper: obstacles, goal, start, disturbance, lidar beams, and how
// a path ends. figure.cc arranges them into panels and names them in a legend.

inline constexpr Colour kGoalColour = Rgb(0x1e9e4a);
inline constexpr Colour kBeamColour = Rgb(0x0b8fa0);

inline const Ink kObstacleInk = {.fill = Rgb(0xdc4a41), .line = Rgb(0xa82f29), .line_width = 0.9};
inline const Ink kWallInk = {.line = Rgb(0x3d4247), .line_width = 2.4};
inline const Ink kGoalAreaInk = {.fill = kGoalColour, .fill_alpha = 0.14};
inline const Ink kGoalBorderInk = {.line = kGoalColour, .line_width = 2.2};
inline const Ink kBeamInk = {.line = kBeamColour, .line_width = 0.7, .line_alpha = 0.6};
inline const Ink kBeamEndInk = {.fill = kBeamColour};

/// A rectangle of the plane, in m.
struct View {
  double left = std::numeric_limits<double>::infinity();
  double right = -std::numeric_limits<double>::infinity();
  double bottom = std::numeric_limits<double>::infinity();
  double top = -std::numeric_limits<double>::infinity();

  double width() const { return right - left; }
  double height() const { return top - bottom; }
  double extent() const { return std::max(width(), height()); }

  void Enclose(double x, double y, double radius) {
    left = std::min(left, x - radius);
    right = std::max(right, x + radius);
    bottom = std::min(bottom, y - radius);
    top = std::max(top, y + radius);
  }
  void Grow(double by_x, double by_y) {
    left -= by_x;
    right += by_x;
    bottom -= by_y;
    top += by_y;
  }
};

/// The place of a view in the picture. Same scale along both axes; y points up in the plane.
struct WorldPlot {
  View view;
  double left = 0, top = 0;  // of the frame
  double scale = 1;          // per m

  Rectangle frame() const { return {left, top, scale * view.width(), scale * view.height()}; }
  Point At(double x, double y) const {
    return {left + scale * (x - view.left), top + scale * (view.top - y)};
  }
  Point At(const Pose& pose) const { return At(pose.x, pose.y); }
};

void DrawGoal(const Goal& goal, const WorldPlot& plot, Canvas& canvas);
void DrawObstacles(const World& world, const WorldPlot& plot, Canvas& canvas);

/// What the lidar sees from a pose: the area that is free, the beams, and a dot where an obstacle
/// stops a beam. Nothing if the robot collides there.
void DrawBeams(const World& world, const Pose& pose, const Lidar& lidar, double robot_radius,
               const WorldPlot& plot, Canvas& canvas);

/// A square with a tick along the heading. The size is that of a mark, not of the robot.
void DrawStart(Point at, double heading, double size, Canvas& canvas);

/// The mark that says how a path ended; the path has the given colour.
void DrawEnd(Point at, Outcome outcome, const Colour& colour, Canvas& canvas);

/// A disc with a line along the heading.
void DrawRobot(Point at, double heading, double radius, const Colour& colour, Canvas& canvas);

/// A Von Karman field sampled in the middles of square cells that cover the view and one cell
/// around it.
struct Raster {
  int columns = 0, rows = 0;
  double cell = 0;            // m
  std::vector<double> value;  // [rows][columns] m/s, from the top left
};
Raster SampleField(const Disturbance& disturbance, const View& view);

/// The colour of a push of strength -1 .. 1: white in the middle, linear to either side.
Colour FieldColour(double strength);

/// The field as a pale background; `full_scale` (m/s) has the strongest colour.
void DrawField(const Raster& raster, double full_scale, const WorldPlot& plot, Canvas& canvas);

}  // namespace fedgen
