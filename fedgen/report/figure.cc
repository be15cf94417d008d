// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <optional>
#include <span>
#include <utility>

#include "fedgen/base/check.h"
#include "fedgen/report/axis.h"
#include "fedgen/report/canvas.h"
#include "fedgen/report/legend.h"
#include "fedgen/report/picture.h"
#include "fedgen/sim/batch.h"
#include "fedgen/sim/move_kernel.h"
#include "fedgen/sim/observe_kernel.h"

namespace fedgen {
namespace {

// ---- Colours ------------------------------------------------------------------------------------

constexpr Colour kObstacle = Rgb(0xdc4a41);
constexpr Colour kObstacleEdge = Rgb(0xa82f29);
constexpr Colour kWall = Rgb(0x3d4247);
constexpr Colour kStart = Rgb(0x1fd0e3);
constexpr Colour kStartEdge = Rgb(0x0b7885);
constexpr Colour kGoal = Rgb(0x1e9e4a);
constexpr Colour kCrash = Rgb(0x7d0c12);
constexpr Colour kBeam = Rgb(0x0b8fa0);
constexpr Colour kPushBack = Rgb(0xd9cdf0);     // d < 0
constexpr Colour kPushForward = Rgb(0xfce0b3);  // d > 0

// How the paths of one label are drawn. Red, green and cyan are taken; these five differ by at
// least 26 in CIE Lab for normal vision and for full protan-, deuter- and tritanopia. All but the
// first are dashed, so that a path under another can be seen.
struct PathStyle {
  Colour colour;
  double dash = 0, gap = 0;
};
constexpr std::array<PathStyle, 5> kPathStyles = {{{Rgb(0x1f5fc4)},
                                                   {Rgb(0xe08e00), 7, 5},
                                                   {Rgb(0x202428), 2.5, 2.5},
                                                   {Rgb(0x6ab4ee), 12, 3},
                                                   {Rgb(0x5b2a6e), 4.5, 2}}};

// The style of the label with this number. From the sixth on colours come again, in sparser dashes.
PathStyle StyleOf(std::size_t label) {
  PathStyle style = kPathStyles[label % kPathStyles.size()];
  const std::size_t cycle = label / kPathStyles.size();
  const auto round = static_cast<double>(cycle);
  if (round > 0) style = {style.colour, 3, 2 + 3 * round};
  return style;
}

const Ink kObstacleInk = {.fill = kObstacle, .line = kObstacleEdge, .line_width = 0.9};
const Ink kWallInk = {.line = kWall, .line_width = 2.4};
const Ink kGoalAreaInk = {.fill = kGoal, .fill_alpha = 0.14};
const Ink kGoalBorderInk = {.line = kGoal, .line_width = 2.2};
const Ink kArrivalInk = {.line = kGoal, .line_width = 1, .dash = 4, .gap = 3};
const Ink kBeamInk = {.line = kBeam, .line_width = 0.7, .line_alpha = 0.6};
const Ink kBeamEndInk = {.fill = kBeam};

// ---- Sizes --------------------------------------------------------------------------------------

constexpr Font kPanelTitleFont = {11.5};

constexpr double kTitleSpace = 34;       // from the margin to the first panel's title
constexpr double kPanelTitleSpace = 22;  // a panel's title and its distance to the panel
constexpr double kAxisSpaceX = 38;  // tick labels and name of the x axis, below the lowest panels
constexpr double kAxisSpaceY = 42;  // of the y axis, left of the first column
constexpr double kColumnGap = 24;
constexpr double kRowGap = 18;

// A number with a true minus sign, and a plus sign if asked for.
std::string NumberText(double number, bool plus = false) {
  const char* const sign = number < 0 ? "\u2212" : number > 0 && plus ? "+" : "";
  return fmt::format("{}{:g}", sign, std::fabs(number));
}

// ---- What is shown, and where -------------------------------------------------------------------

// A rectangle of the plane, in m.
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

void EncloseWalls(const WallSet& walls, View& view) {
  for (std::size_t wall = 0; wall < static_cast<std::size_t>(walls.size()); ++wall) {
    const double x = walls.x[wall];
    const double y = walls.y[wall];
    view.Enclose(x, y, 0);
    view.Enclose(x + walls.dx[wall], y + walls.dy[wall], 0);
  }
}

View EncloseWorlds(const std::vector<Panel>& panels, double robot_radius) {
  View view;
  for (const Panel& panel : panels) {
    const World& world = *panel.world;
    for (std::size_t disc = 0; disc < static_cast<std::size_t>(world.discs.size()); ++disc) {
      view.Enclose(world.discs.x[disc], world.discs.y[disc], world.discs.radius[disc]);
    }
    EncloseWalls(world.walls, view);
    EncloseWalls(world.box_edges, view);
    for (const Pose& start : world.starts) view.Enclose(start.x, start.y, robot_radius);
    const Goal& goal = world.goal;
    if (goal.kind == Goal::Kind::kDisc) view.Enclose(goal.x, goal.y, goal.radius);
  }
  // Of a half plane, show the border where it is nearest and a band behind it.
  const View without_goals = view;
  const double middle_x = (without_goals.left + without_goals.right) / 2;
  const double middle_y = (without_goals.bottom + without_goals.top) / 2;
  for (const Panel& panel : panels) {
    const Goal& goal = panel.world->goal;
    if (goal.kind != Goal::Kind::kHalfPlane) continue;
    const double to_border = goal.offset - (goal.normal_x * middle_x + goal.normal_y * middle_y);
    for (const double way : {to_border, to_border + goal.depth + 0.04 * without_goals.extent()}) {
      view.Enclose(middle_x + way * goal.normal_x, middle_y + way * goal.normal_y, 0);
    }
  }
  return view;
}

View ComputeView(const std::vector<Panel>& panels, double robot_radius) {
  const View worlds = EncloseWorlds(panels, robot_radius);
  View farthest = worlds;
  farthest.Grow(worlds.extent(), worlds.extent());
  View view = worlds;
  for (const Panel& panel : panels) {
    for (const DrawnPath& path : panel.paths) {
      for (const Pose& pose : path.trajectory.poses) {
        view.Enclose(std::clamp<double>(pose.x, farthest.left, farthest.right),
                     std::clamp<double>(pose.y, farthest.bottom, farthest.top), robot_radius);
      }
    }
  }
  // Some air around it, and neither a strip nor a tower.
  const double air = std::max(0.03 * view.extent(), 0.1 * robot_radius);
  view.Grow(air, air);
  view.Grow(std::max(0.0, view.height() / 1.5 - view.width()) / 2,
            std::max(0.0, view.width() / 2 - view.height()) / 2);
  return view;
}

// A panel's place in the picture. Same scale along both axes; y points up in the plane.
struct Plot {
  View view;
  double left = 0, top = 0;  // of the frame
  double scale = 1;          // per m

  Rectangle frame() const { return {left, top, scale * view.width(), scale * view.height()}; }
  Point At(double x, double y) const {
    return {left + scale * (x - view.left), top + scale * (view.top - y)};
  }
  Point At(const Pose& pose) const { return At(pose.x, pose.y); }
};

// The point `length` away from another in a direction of the plane.
Point Along(Point from, double heading, double length) {
  return {from.x + length * std::cos(heading), from.y - length * std::sin(heading)};
}

// ---- The disturbance ----------------------------------------------------------------------------

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

// A field sampled in the middles of square cells that cover the view and one cell around it.
struct Raster {
  int columns = 0, rows = 0;
  double cell = 0;            // m
  std::vector<double> value;  // [rows][columns] m/s, from the top left
};

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

// The colour of strength -1 .. 1: white in the middle, linear to either side.
Colour FieldColour(double strength) {
  const Colour& end = strength < 0 ? kPushBack : kPushForward;
  const double share = std::min(std::fabs(strength), 1.0);
  return {1 + share * (end.red - 1), 1 + share * (end.green - 1), 1 + share * (end.blue - 1)};
}

void DrawField(const Raster& raster, double full_scale, const Plot& plot, Canvas& canvas) {
  std::vector<Colour> pixels;
  pixels.reserve(raster.value.size());
  for (const double value : raster.value) pixels.push_back(FieldColour(value / full_scale));
  const double cell = plot.scale * raster.cell;
  canvas.Image({plot.left - cell, plot.top - cell, raster.columns * cell, raster.rows * cell},
               raster.columns, pixels);
}

// ---- The world ----------------------------------------------------------------------------------

void DrawHalfPlane(const Goal& goal, const Plot& plot, Canvas& canvas) {
  const View& view = plot.view;
  const double middle_x = (view.left + view.right) / 2;
  const double middle_y = (view.bottom + view.top) / 2;
  const double to_border = goal.offset - (goal.normal_x * middle_x + goal.normal_y * middle_y);
  // The point `depth` behind the border and `along` beside the panel's middle. Far enough to either
  // side and behind is outside of the panel, where nothing is drawn.
  const double far = 2 * (view.width() + view.height()) + std::fabs(to_border);
  const auto at = [&](double along, double depth) {
    const double way = to_border + depth;
    return plot.At(middle_x + way * goal.normal_x - along * goal.normal_y,
                   middle_y + way * goal.normal_y + along * goal.normal_x);
  };
  const std::array<Point, 4> area = {at(-far, 0), at(far, 0), at(far, far), at(-far, far)};
  canvas.Polygon(area, kGoalAreaInk);
  canvas.Line(at(-far, 0), at(far, 0), kGoalBorderInk);
  if (goal.depth > 0) canvas.Line(at(-far, goal.depth), at(far, goal.depth), kArrivalInk);
}

void DrawGoal(const Goal& goal, const Plot& plot, Canvas& canvas) {
  if (goal.kind == Goal::Kind::kHalfPlane) return DrawHalfPlane(goal, plot, canvas);
  const Point centre = plot.At(goal.x, goal.y);
  canvas.Circle(centre, plot.scale * goal.radius, kGoalAreaInk);
  canvas.Circle(centre, plot.scale * goal.radius, kGoalBorderInk);
  if (goal.depth > 0 && goal.depth < goal.radius) {
    canvas.Circle(centre, plot.scale * (goal.radius - goal.depth), kArrivalInk);
  }
}

void DrawObstacles(const World& world, const Plot& plot, Canvas& canvas) {
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

// What the lidar sees from a pose: the area that is free, the beams, and a dot where one is
// stopped.
void DrawBeams(const World& world, const Pose& pose, const Lidar& lidar, double robot_radius,
               const Plot& plot, Canvas& canvas) {
  Batch batch(1, lidar);
  batch.Place(0, world, pose, Key());
  FaceHeading(Kernel::kScalar, 0, 1, batch);
  Observe(Kernel::kScalar, lidar, static_cast<float>(robot_radius), 0, 1, batch);
  if (batch.collided[0] != 0) return;
  const auto num_beams = static_cast<std::size_t>(lidar.num_beams);
  std::vector<Point> area = {plot.At(pose)};
  for (std::size_t beam = 0; beam < num_beams; ++beam) {
    const double angle = pose.heading + std::atan2(lidar.sin[beam], lidar.cos[beam]);
    area.push_back(Along(area.front(), angle, plot.scale * batch.ranges[beam]));
  }
  canvas.Polygon(area, {.fill = kBeam, .fill_alpha = 0.07});
  for (std::size_t beam = 0; beam < num_beams; ++beam) {
    canvas.Line(area.front(), area[beam + 1], kBeamInk);
    if (batch.ranges[beam] < lidar.range) canvas.Circle(area[beam + 1], 1.7, kBeamEndInk);
  }
}

// ---- Starts, paths and their ends ---------------------------------------------------------------

// A square with a tick along the heading. The size is that of a mark, not of the robot.
void DrawStart(Point at, double heading, double size, Canvas& canvas) {
  canvas.Line(at, Along(at, heading, 1.5 * size), {.line = kStartEdge, .line_width = 1.6});
  canvas.Box({at.x - size / 2, at.y - size / 2, size, size}, {.fill = kStart, .line = kStartEdge});
}

void DrawEnd(Point at, Outcome outcome, const Colour& colour, Canvas& canvas) {
  constexpr double kArm = 3.6;
  switch (outcome) {
    case Outcome::kReachedGoal:
      canvas.Circle(at, 3.4, {.fill = kGoal, .line = kPaper, .line_width = 1.1});
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

Ink PathInk(const PathStyle& style) {
  return {.line = style.colour, .line_width = 1.8, .dash = style.dash, .gap = style.gap};
}

// Where a path goes. Points nearer than a third of a pixel to the one before cannot be seen and
// would only make the file large.
std::vector<Point> PathPoints(const DrawnPath& path, const Plot& plot) {
  constexpr double kSmallestStep = 0.3;
  std::vector<Point> points;
  for (const Pose& pose : path.trajectory.poses) {
    const Point point = plot.At(pose);
    if (!points.empty() &&
        std::hypot(point.x - points.back().x, point.y - points.back().y) < kSmallestStep) {
      continue;
    }
    points.push_back(point);
  }
  if (!points.empty()) points.push_back(plot.At(path.trajectory.poses.back()));
  return points;
}

// ---- Axes ---------------------------------------------------------------------------------------

// The largest of 1, 2, 5 times a power of ten that puts three ticks on the shorter axis.
double TickStep(const View& view) {
  const double wanted = std::min(view.width(), view.height()) / 2;
  const double power = std::pow(10, std::floor(std::log10(wanted)));
  for (const double factor : {5.0, 2.0}) {
    if (factor * power <= wanted) return factor * power;
  }
  return power;
}

struct AxisLabels {
  bool x = false, y = false;
};

void DrawFrame(const Plot& plot, const AxisLabels& labels, Canvas& canvas) {
  const Rectangle frame = plot.frame();
  canvas.Box(frame, kFrameInk);
  const double step = TickStep(plot.view);
  for (const double tick : MultiplesOf(step, plot.view.left, plot.view.right)) {
    const double x = plot.At(tick, 0).x;
    canvas.Line({x, frame.bottom()}, {x, frame.bottom() + kTickLength}, kFrameInk);
    if (!labels.x) continue;
    canvas.Text({x, frame.bottom() + kTickLength + 11}, NumberText(tick), kTickFont, kSoftInk, 0.5);
  }
  for (const double tick : MultiplesOf(step, plot.view.bottom, plot.view.top)) {
    const double y = plot.At(0, tick).y;
    canvas.Line({frame.left, y}, {frame.left - kTickLength, y}, kFrameInk);
    if (!labels.y) continue;
    canvas.Text({frame.left - kTickLength - 4, y + kBaseline * kTickFont.size}, NumberText(tick),
                kTickFont, kSoftInk, 1);
  }
  if (labels.x) {
    canvas.Text({frame.left + frame.width / 2, frame.bottom() + 30}, "x (m)", kTickFont, kSoftInk,
                0.5);
  }
  if (labels.y) {
    canvas.Text({frame.left - 31, frame.top + frame.height / 2}, "y (m)", kTickFont, kSoftInk, 0.5,
                std::numbers::pi / 2);
  }
}

// ---- All panels together ------------------------------------------------------------------------

struct Scene {
  std::span<const Panel> panels;
  const FigureOptions& options;
  View view;
  std::vector<std::string> labels = {};            // of paths, in order of appearance
  std::vector<std::optional<Raster>> fields = {};  // [panels]
  double field_scale = 0;  // m/s, of the strongest colour; 0 if there is no field to draw

  PathStyle StyleOfPath(const DrawnPath& path) const {
    const auto found = std::find(labels.begin(), labels.end(), path.label);
    return StyleOf(static_cast<std::size_t>(found - labels.begin()));
  }
  bool AnyWorld(const std::function<bool(const World&)>& has) const {
    return std::any_of(panels.begin(), panels.end(),
                       [&](const Panel& panel) { return has(*panel.world); });
  }
  bool AnyPathEnds(Outcome outcome) const {
    return std::any_of(panels.begin(), panels.end(), [&](const Panel& panel) {
      return std::any_of(panel.paths.begin(), panel.paths.end(),
                         [&](const DrawnPath& path) { return path.outcome == outcome; });
    });
  }
};

// Up to the next number with one digit: 0.37 -> 0.4.
double RoundUp(double number) {
  const double unit = std::pow(10, std::floor(std::log10(number)));
  return std::ceil(number / unit) * unit;
}

Scene MakeScene(const std::vector<Panel>& panels, const FigureOptions& options) {
  Scene scene{panels, options, ComputeView(panels, options.robot_radius)};
  double strongest = 0;
  for (const Panel& panel : panels) {
    for (const DrawnPath& path : panel.paths) {
      if (std::find(scene.labels.begin(), scene.labels.end(), path.label) == scene.labels.end()) {
        scene.labels.push_back(path.label);
      }
    }
    std::optional<Raster>& field = scene.fields.emplace_back();
    const Disturbance& disturbance = panel.world->disturbance;
    if (!options.draw_field || disturbance.kind != Disturbance::Kind::kVonKarman) continue;
    field = SampleField(disturbance, scene.view);
    for (const double value : field->value) strongest = std::max(strongest, std::fabs(value));
  }
  if (strongest > 0) scene.field_scale = RoundUp(strongest);
  return scene;
}

void DrawPaths(const Scene& scene, const Panel& panel, const Plot& plot, Canvas& canvas) {
  std::vector<std::vector<Point>> ways;
  ways.reserve(panel.paths.size());
  for (const DrawnPath& path : panel.paths) ways.push_back(PathPoints(path, plot));
  // A pale seam keeps the lines readable where they cross something.
  for (const std::vector<Point>& way : ways) {
    canvas.Polyline(way, {.line = kPaper, .line_width = 3.6, .line_alpha = 0.65});
  }
  for (std::size_t index = 0; index < ways.size(); ++index) {
    if (ways[index].empty()) continue;
    const DrawnPath& path = panel.paths[index];
    const PathStyle style = scene.StyleOfPath(path);
    canvas.Polyline(ways[index], PathInk(style));
    DrawRobot(ways[index].back(), path.trajectory.poses.back().heading,
              plot.scale * scene.options.robot_radius, style.colour, canvas);
  }
}

void DrawPanel(const Scene& scene, std::size_t index, const Plot& plot, const AxisLabels& labels,
               Canvas& canvas) {
  const Panel& panel = scene.panels[index];
  const World& world = *panel.world;
  const FigureOptions& options = scene.options;
  const Rectangle frame = plot.frame();
  canvas.Text({frame.left, frame.top - 8}, FitText(panel.title, kPanelTitleFont, frame.width),
              kPanelTitleFont, kInk);
  canvas.BeginClip(frame);
  if (const std::optional<Raster>& field = scene.fields[index]; field && scene.field_scale > 0) {
    DrawField(*field, scene.field_scale, plot, canvas);
  }
  DrawGoal(world.goal, plot, canvas);
  if (options.lidar != nullptr) {
    DrawBeams(world, world.starts.front(), *options.lidar, options.robot_radius, plot, canvas);
  }
  DrawObstacles(world, plot, canvas);
  DrawPaths(scene, panel, plot, canvas);
  for (const Pose& start : world.starts) {
    DrawStart(plot.At(start), start.heading, world.starts.size() <= 8 ? 9 : 5, canvas);
  }
  for (const DrawnPath& path : panel.paths) {
    if (path.trajectory.poses.empty()) continue;
    DrawEnd(plot.At(path.trajectory.poses.back()), path.outcome, scene.StyleOfPath(path).colour,
            canvas);
  }
  canvas.EndClip();
  DrawFrame(plot, labels, canvas);
}

// ---- The legend ---------------------------------------------------------------------------------

// What the field pushes, in words if it is one direction.
std::string FieldName(const Disturbance& disturbance) {
  if (disturbance.gain == std::array<float, 3>{1, 0, 0}) return "push along x (m/s)";
  if (disturbance.gain == std::array<float, 3>{0, 1, 0}) return "push along y (m/s)";
  return "disturbance d (m/s)";
}

LegendEntry FieldEntry(const Scene& scene) {
  constexpr double kBar = 64;
  const std::string low = NumberText(-scene.field_scale);
  const std::string high = NumberText(scene.field_scale, true);
  const double low_width = TextWidth(low, kTickFont) + 5;
  const double high_width = TextWidth(high, kTickFont) + 5;
  const auto with_field = std::find_if(scene.fields.begin(), scene.fields.end(),
                                       [](const auto& field) { return field.has_value(); });
  const Panel& panel = scene.panels[static_cast<std::size_t>(with_field - scene.fields.begin())];
  return {FieldName(panel.world->disturbance), low_width + kBar + high_width,
          [=](Point left, Canvas& canvas) {
            const Rectangle bar = {left.x + low_width, left.y - 5, kBar, 10};
            const std::array<Colour, 3> colours = {FieldColour(-1), FieldColour(0), FieldColour(1)};
            canvas.Gradient(bar, colours);
            canvas.Box(bar, kFrameInk);
            const double baseline = left.y + kBaseline * kTickFont.size;
            canvas.Text({left.x, baseline}, low, kTickFont, kSoftInk);
            canvas.Text({bar.right() + 5, baseline}, high, kTickFont, kSoftInk);
          }};
}

LegendEntry PathEntry(const std::string& label, const PathStyle& style) {
  return {label.empty() ? "path" : label, 30, [style](Point left, Canvas& canvas) {
            canvas.Line({left.x, left.y}, {left.x + 24, left.y}, PathInk(style));
            DrawRobot({left.x + 24, left.y}, 0, 5.5, style.colour, canvas);
          }};
}

std::vector<LegendEntry> MakeLegend(const Scene& scene) {
  std::vector<LegendEntry> legend;
  legend.push_back({"start", 18, [](Point left, Canvas& canvas) {
                      DrawStart({left.x + 5, left.y}, 0, 9, canvas);
                    }});
  const bool deep = scene.AnyWorld([](const World& world) { return world.goal.depth > 0; });
  const bool half_plane =
      scene.AnyWorld([](const World& world) { return world.goal.kind == Goal::Kind::kHalfPlane; });
  legend.push_back({deep ? "goal (dashed: arrived)" : "goal", half_plane ? 22.0 : 13.0,
                    [half_plane](Point left, Canvas& canvas) {
                      if (half_plane) {
                        canvas.Box({left.x, left.y - 5, 22, 10}, kGoalAreaInk);
                        canvas.Line({left.x + 1, left.y + 5}, {left.x + 21, left.y + 5},
                                    kGoalBorderInk);
                      } else {
                        canvas.Circle({left.x + 6.5, left.y}, 5.5, kGoalAreaInk);
                        canvas.Circle({left.x + 6.5, left.y}, 5.5, kGoalBorderInk);
                      }
                    }});
  const bool discs = scene.AnyWorld([](const World& world) { return world.discs.size() > 0; });
  const bool boxes = scene.AnyWorld([](const World& world) { return !world.boxes.empty(); });
  if (discs || boxes) {
    legend.push_back({"obstacle", 11, [discs](Point left, Canvas& canvas) {
                        if (discs) return canvas.Circle({left.x + 5.5, left.y}, 5, kObstacleInk);
                        canvas.Box({left.x + 0.5, left.y - 5, 10, 10}, kObstacleInk);
                      }});
  }
  if (scene.AnyWorld([](const World& world) { return world.walls.size() > 0; })) {
    legend.push_back({"wall", 20, [](Point left, Canvas& canvas) {
                        canvas.Line({left.x + 1, left.y}, {left.x + 19, left.y}, kWallInk);
                      }});
  }
  if (scene.options.lidar != nullptr) {
    legend.push_back({"lidar beam", 22, [](Point left, Canvas& canvas) {
                        canvas.Line(left, {left.x + 20, left.y}, kBeamInk);
                        canvas.Circle({left.x + 20, left.y}, 1.9, kBeamEndInk);
                      }});
  }
  for (std::size_t label = 0; label < scene.labels.size(); ++label) {
    legend.push_back(PathEntry(scene.labels[label], StyleOf(label)));
  }
  for (const Outcome outcome : {Outcome::kReachedGoal, Outcome::kCollided, Outcome::kTimedOut}) {
    if (!scene.AnyPathEnds(outcome)) continue;
    legend.push_back({std::string(OutcomeName(outcome)), 8, [outcome](Point left, Canvas& canvas) {
                        DrawEnd({left.x + 4, left.y}, outcome, kPathStyles[0].colour, canvas);
                      }});
  }
  if (scene.field_scale > 0) legend.push_back(FieldEntry(scene));
  return legend;
}

// ---- Layout and drawing -------------------------------------------------------------------------

struct Layout {
  double width = 0, height = 0;
  std::vector<Plot> plots;       // [panels]
  std::vector<AxisLabels> axes;  // [panels]
  Point legend_corner;           // its top left
  std::vector<PlacedEntry> legend;
};

double PanelWidth(int columns) {
  if (columns == 1) return 440;
  return columns == 2 ? 340 : 270;
}

Layout MakeLayout(const Scene& scene) {
  const auto num_panels = static_cast<int>(scene.panels.size());
  const int columns = std::min(scene.options.columns, num_panels);
  const bool titled = std::any_of(scene.panels.begin(), scene.panels.end(),
                                  [](const Panel& panel) { return !panel.title.empty(); });
  const double above_panel = titled ? kPanelTitleSpace : 0;
  // A last row with gaps leaves panels above it without a neighbour below: they need their axis.
  const double below_panel = num_panels % columns == 0 ? kRowGap : kAxisSpaceX + kRowGap / 2;

  const double panel_width = PanelWidth(columns);
  const double scale = panel_width / scene.view.width();
  const double panel_height = scale * scene.view.height();
  const double row_height = above_panel + panel_height + below_panel;
  const double left = kMargin + kAxisSpaceY;
  const double top = kMargin + (scene.options.title.empty() ? 0 : kTitleSpace) + above_panel;

  Layout layout;
  for (int panel = 0; panel < num_panels; ++panel) {
    const int column = panel % columns;
    const int row = panel / columns;
    layout.plots.push_back(
        {scene.view, left + column * (panel_width + kColumnGap), top + row * row_height, scale});
    layout.axes.push_back({panel + columns >= num_panels, column == 0});
  }
  const double content_width = columns * (panel_width + kColumnGap) - kColumnGap;
  layout.width = std::ceil(left + content_width + kMargin);
  layout.legend_corner = {left, layout.plots.back().top + panel_height + kAxisSpaceX + 10};
  layout.legend = PlaceLegend(MakeLegend(scene), content_width);
  layout.height = std::ceil(layout.legend_corner.y + LegendHeight(layout.legend) + kMargin - 6);
  return layout;
}

void DrawFigure(const Scene& scene, const Layout& layout, Canvas& canvas) {
  const double left = layout.plots.front().left;
  const std::string title = FitText(scene.options.title, kTitleFont, layout.width - kMargin - left);
  canvas.Text({left, kMargin + kTitleFont.size}, title, kTitleFont, kInk);
  for (std::size_t panel = 0; panel < scene.panels.size(); ++panel) {
    DrawPanel(scene, panel, layout.plots[panel], layout.axes[panel], canvas);
  }
  DrawLegend(layout.legend, layout.legend_corner, canvas);
}

}  // namespace

Result<void> SaveFigure(const std::vector<Panel>& panels, const FigureOptions& options,
                        const std::string& path, IfExists if_exists) {
  FEDGEN_CHECK(!panels.empty(), "a figure without panels");
  FEDGEN_CHECK(options.columns >= 1, "columns = {}", options.columns);
  FEDGEN_CHECK(options.robot_radius > 0, "robot_radius = {}", options.robot_radius);
  for (const Panel& panel : panels) {
    FEDGEN_CHECK(panel.world != nullptr && !panel.world->starts.empty(),
                 "a panel needs a world with a start");
  }
  Result<PictureFile> file = PictureFile::Create(path, if_exists);
  if (!file) return file.error();
  const Scene scene = MakeScene(panels, options);
  const Layout layout = MakeLayout(scene);
  return file->Save(options.title, layout.width, layout.height,
                    [&](Canvas& canvas) { DrawFigure(scene, layout, canvas); });
}

}  // namespace fedgen
