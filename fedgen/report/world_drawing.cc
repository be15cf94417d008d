// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/world_drawing.h"

#include <array>
#include <cmath>
#include <numbers>

#include "fedgen/report/picture.h"
#include "fedgen/sim/batch.h"
#include "fedgen/sim/observe_kernel.h"

namespace fedgen {
namespace {

constexpr Colour kStart = Rgb(0x1fd0e3);
constexpr Colour kStartEdge = Rgb(0x0b7885);
constexpr Colour kCrash = Rgb(0x7d0c12);
constexpr Colour kPushBack = Rgb(0xd9cdf0);     // d < 0
constexpr Colour kPushForward = Rgb(0xfce0b3);  // d > 0
const Ink kArrivalInk = {.line = kGoalColour, .line_width = 1, .dash = 4, .gap = 3};

// The point `length` away from another in a direction of the plane.
Point Along(Point from, double heading, double length) {
  return {from.x + length * std::cos(heading), from.y - length * std::sin(heading)};
}

// d (m/s) of a Von Karman field at a point (Eq. 5), in double.
double FieldAt(const Disturbance& disturbance, double x, double y) {
  double sum = 0;
  for (std::size_t mode = 0; mode < disturbance.kx.size(); ++mode) {
    const double cycles =
        disturbance.kx[mode] * x + disturbance.ky[mode] * y + disturbance.phase[mode];
    sum += std::cos(2 * std::numbers::pi * cycles);
  }
  return disturbance.amplitude * sum;
}

void DrawHalfPlane(const Goal& goal, const WorldPlot& plot, Canvas& canvas) {
  const View& view = plot.view;
  const double middle_x = (view.left + view.right) / 2;
  const double middle_y = (view.bottom + view.top) / 2;
  const double to_border = goal.offset - (goal.normal_x * middle_x + goal.normal_y * middle_y);
  // The point `depth` behind the border and `along` beside the panel's middle. Far enough to either
  // side and behind is outside of the panel, where nothing is drawn.
  const double far = 2 * (view.width() + view.height()) + std::fabs(to_border);
  const auto at = [&](double along, double depth) {
    const double ahead = to_border + depth;
    return plot.At(middle_x + ahead * goal.normal_x - along * goal.normal_y,
                   middle_y + ahead * goal.normal_y + along * goal.normal_x);
  };
  const std::array<Point, 4> area = {at(-far, 0), at(far, 0), at(far, far), at(-far, far)};
  canvas.Polygon(area, kGoalAreaInk);
  canvas.Line(at(-far, 0), at(far, 0), kGoalBorderInk);
  if (goal.depth > 0) canvas.Line(at(-far, goal.depth), at(far, goal.depth), kArrivalInk);
}

}  // namespace

void DrawGoal(const Goal& goal, const WorldPlot& plot, Canvas& canvas) {
  if (goal.kind == Goal::Kind::kHalfPlane) return DrawHalfPlane(goal, plot, canvas);
  const Point centre = plot.At(goal.x, goal.y);
  canvas.Circle(centre, plot.scale * goal.radius, kGoalAreaInk);
  canvas.Circle(centre, plot.scale * goal.radius, kGoalBorderInk);
  if (goal.depth > 0 && goal.depth < goal.radius) {
    canvas.Circle(centre, plot.scale * (goal.radius - goal.depth), kArrivalInk);
  }
}

void DrawObstacles(const World& world, const WorldPlot& plot, Canvas& canvas) {
  const DiscSet& discs = world.discs;
  for (std::size_t disc = 0; disc < static_cast<std::size_t>(discs.size()); ++disc) {
    canvas.Circle(plot.At(discs.x[disc], discs.y[disc]), plot.scale * discs.radius[disc],
                  kObstacleInk);
  }
  // The sides of a box are four consecutive edges.
  const WallSet& edges = world.box_edges;
  for (std::size_t edge = 0; edge + 3 < static_cast<std::size_t>(edges.size()); edge += 4) {
    std::array<Point, 4> corners;
    for (std::size_t corner = 0; corner < 4; ++corner) {
      corners[corner] = plot.At(edges.x[edge + corner], edges.y[edge + corner]);
    }
    canvas.Polygon(corners, kObstacleInk);
  }
  const WallSet& walls = world.walls;
  for (std::size_t wall = 0; wall < static_cast<std::size_t>(walls.size()); ++wall) {
    const double x = walls.x[wall];
    const double y = walls.y[wall];
    canvas.Line(plot.At(x, y), plot.At(x + walls.dx[wall], y + walls.dy[wall]), kWallInk);
  }
}

void DrawBeams(const World& world, const Pose& pose, const Lidar& lidar, double robot_radius,
               const WorldPlot& plot, Canvas& canvas) {
  Batch batch(1, lidar);
  Sense(Kernel::kScalar, lidar, static_cast<float>(robot_radius), world, pose, batch);
  if (batch.collided[0] != 0) return;
  const auto num_beams = static_cast<std::size_t>(lidar.num_beams);
  std::vector<Point> area = {plot.At(pose)};
  for (std::size_t beam = 0; beam < num_beams; ++beam) {
    const double angle = pose.heading + std::atan2(lidar.sin[beam], lidar.cos[beam]);
    area.push_back(Along(area.front(), angle, plot.scale * batch.ranges[beam]));
  }
  canvas.Polygon(area, {.fill = kBeamColour, .fill_alpha = 0.07});
  for (std::size_t beam = 0; beam < num_beams; ++beam) {
    canvas.Line(area.front(), area[beam + 1], kBeamInk);
    if (batch.ranges[beam] < lidar.range) canvas.Circle(area[beam + 1], 1.7, kBeamEndInk);
  }
}

void DrawStart(Point at, double heading, double size, Canvas& canvas) {
  canvas.Line(at, Along(at, heading, 1.5 * size), {.line = kStartEdge, .line_width = 1.6});
  canvas.Box({at.x - size / 2, at.y - size / 2, size, size}, {.fill = kStart, .line = kStartEdge});
}

void DrawEnd(Point at, Outcome outcome, const Colour& colour, Canvas& canvas) {
  constexpr double kArm = 3.6;
  switch (outcome) {
    case Outcome::kReachedGoal:
      canvas.Circle(at, 3.4, {.fill = kGoalColour, .line = kPaper, .line_width = 1.1});
      return;
    case Outcome::kCollided:
      for (const Ink& ink : {Ink{.line = kPaper, .line_width = 4.2, .line_alpha = 0.8},
                             Ink{.line = kCrash, .line_width = 2.3}}) {
        canvas.Line({at.x - kArm, at.y - kArm}, {at.x + kArm, at.y + kArm}, ink);
        canvas.Line({at.x - kArm, at.y + kArm}, {at.x + kArm, at.y - kArm}, ink);
      }
      return;
    case Outcome::kTimedOut:
      canvas.Circle(at, 3.6, {.fill = kPaper, .line = colour, .line_width = 1.7});
      return;
  }
}

void DrawRobot(Point at, double heading, double radius, const Colour& colour, Canvas& canvas) {
  const Ink ink = {
      .fill = colour, .fill_alpha = 0.2, .line = colour, .line_width = 0.9, .line_alpha = 0.75};
  canvas.Circle(at, radius, ink);
  canvas.Line(at, Along(at, heading, radius), ink);
}

Raster SampleField(const Disturbance& disturbance, const View& view) {
  constexpr int kCellsAcross = 120;
  Raster raster;
  raster.cell = view.extent() / kCellsAcross;
  raster.columns = static_cast<int>(std::ceil(view.width() / raster.cell)) + 2;
  raster.rows = static_cast<int>(std::ceil(view.height() / raster.cell)) + 2;
  for (int row = 0; row < raster.rows; ++row) {
    for (int column = 0; column < raster.columns; ++column) {
      raster.value.push_back(FieldAt(disturbance, view.left + (column - 0.5) * raster.cell,
                                     view.top - (row - 0.5) * raster.cell));
    }
  }
  return raster;
}

Colour FieldColour(double strength) {
  const Colour& end = strength < 0 ? kPushBack : kPushForward;
  const double share = std::min(std::fabs(strength), 1.0);
  return {1 + share * (end.red - 1), 1 + share * (end.green - 1), 1 + share * (end.blue - 1)};
}

void DrawField(const Raster& raster, double full_scale, const WorldPlot& plot, Canvas& canvas) {
  std::vector<Colour> pixels;
  pixels.reserve(raster.value.size());
  for (const double value : raster.value) pixels.push_back(FieldColour(value / full_scale));
  const double cell = plot.scale * raster.cell;
  canvas.Image({plot.left - cell, plot.top - cell, raster.columns * cell, raster.rows * cell},
               raster.columns, pixels);
}

}  // namespace fedgen
