// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>
#include <optional>
#include <span>
#include <utility>

#include "fedgen/base/check.h"
#include "fedgen/report/axis.h"
#include "fedgen/report/canvas.h"
#include "fedgen/report/legend.h"
#include "fedgen/report/picture.h"
#include "fedgen/report/world_drawing.h"

namespace fedgen {
namespace {

// ---- Paths --------------------------------------------------------------------------------------

// How the paths of one label are drawn. Red, green and cyan are taken; these five differ by at
// least 26 in CIE Lab for normal vision and for full protan-, deuter- and tritanopia. All but the
// first are dashed, so that a path under another can be seen.
constexpr std::array<LineStyle, 5> kPathStyles = {{{Rgb(0x1f5fc4)},
                                                   {Rgb(0xe08e00), 7, 5},
                                                   {Rgb(0x202428), 2.5, 2.5},
                                                   {Rgb(0x6ab4ee), 12, 3},
                                                   {Rgb(0x5b2a6e), 4.5, 2}}};

// The style of the label with this number. From the sixth on colours come again, in sparser dashes.
LineStyle StyleOf(std::size_t label) {
  LineStyle style = kPathStyles[label % kPathStyles.size()];
  const std::size_t cycle = label / kPathStyles.size();
  const auto round = static_cast<double>(cycle);
  if (round > 0) style = {style.colour, 3, 2 + 3 * round};
  return style;
}

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
    for (const double ahead : {to_border, to_border + goal.depth + 0.04 * without_goals.extent()}) {
      view.Enclose(middle_x + ahead * goal.normal_x, middle_y + ahead * goal.normal_y, 0);
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

Ink PathInk(const LineStyle& style) {
  return {.line = style.colour, .line_width = 1.8, .dash = style.dash, .gap = style.gap};
}

// Where a path goes. Points nearer than a third of a pixel to the one before cannot be seen and
// would only make the file large.
std::vector<Point> PathPoints(const DrawnPath& path, const WorldPlot& plot) {
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

void DrawFrame(const WorldPlot& plot, const AxisLabels& labels, Canvas& canvas) {
  const Rectangle frame = plot.frame();
  canvas.Box(frame, kFrameInk);
  const double step = TickStep(plot.view);
  for (const double tick : MultiplesOf(step, plot.view.left, plot.view.right)) {
    DrawTickX(frame, plot.At(tick, 0).x, labels.x ? NumberText(tick) : "", canvas);
  }
  for (const double tick : MultiplesOf(step, plot.view.bottom, plot.view.top)) {
    DrawTickY(frame, plot.At(0, tick).y, labels.y ? NumberText(tick) : "", canvas);
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

  LineStyle StyleOfPath(const DrawnPath& path) const {
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

void DrawPaths(const Scene& scene, const Panel& panel, const WorldPlot& plot, Canvas& canvas) {
  std::vector<std::vector<Point>> lines;
  lines.reserve(panel.paths.size());
  for (const DrawnPath& path : panel.paths) lines.push_back(PathPoints(path, plot));
  // A pale seam keeps the lines readable where they cross something.
  for (const std::vector<Point>& line : lines) {
    canvas.Polyline(line, {.line = kPaper, .line_width = 3.6, .line_alpha = 0.65});
  }
  for (std::size_t index = 0; index < lines.size(); ++index) {
    if (lines[index].empty()) continue;
    const DrawnPath& path = panel.paths[index];
    const LineStyle style = scene.StyleOfPath(path);
    canvas.Polyline(lines[index], PathInk(style));
    DrawRobot(lines[index].back(), path.trajectory.poses.back().heading,
              plot.scale * scene.options.robot_radius, style.colour, canvas);
  }
}

void DrawPanel(const Scene& scene, std::size_t index, const WorldPlot& plot,
               const AxisLabels& labels, Canvas& canvas) {
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

LegendEntry PathEntry(const std::string& label, const LineStyle& style) {
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
  legend.push_back({deep ? "goal (arrived behind the dashed line)" : "goal",
                    half_plane ? 22.0 : 13.0, [half_plane](Point left, Canvas& canvas) {
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
  std::vector<WorldPlot> plots;  // [panels]
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
  // If the last row is not full, the panels above the gap show their own x axis.
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

std::vector<Episode> DrivePanels(const Task& task, const Policy& policy, const std::string& label,
                                 std::vector<Panel>& panels) {
  Rollout rollout(task, policy, BestKernel());
  std::vector<Episode> episodes;
  for (Panel& panel : panels) {
    Episode& episode = episodes.emplace_back();
    Trajectory trajectory;
    rollout.Run(GivenWorlds({panel.world, 1}), static_cast<int>(panel.world->starts.size()), 0,
                {&episode, 1}, {&trajectory, 1});
    panel.paths.push_back({std::move(trajectory), episode.outcome, label});
  }
  return episodes;
}

Result<void> SaveFigure(const std::vector<Panel>& panels, const FigureOptions& options,
                        const std::string& path, IfExists if_exists) {
  FEDGEN_CHECK(!panels.empty(), "a figure without panels");
  FEDGEN_CHECK(options.columns >= 1, "columns = {}", options.columns);
  FEDGEN_CHECK(options.robot_radius > 0, "robot_radius = {}", options.robot_radius);
  for (const Panel& panel : panels) {
    FEDGEN_CHECK(panel.world != nullptr && !panel.world->starts.empty(),
                 "a panel needs a world with a start");
  }
  PictureFile file = FEDGEN_TRY(PictureFile::Create(path, if_exists));
  const Scene scene = MakeScene(panels, options);
  const Layout layout = MakeLayout(scene);
  return file.Save(options.title, layout.width, layout.height,
                   [&](Canvas& canvas) { DrawFigure(scene, layout, canvas); });
}

}  // namespace fedgen
