// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "fedgen/base/kernel.h"
#include "fedgen/base/random.h"
#include "fedgen/base/result.h"
#include "fedgen/world/world.h"

namespace fedgen {

// The distributions P_E over worlds and P_int|E over starts (docs/math.md, section 2).
//
// A world is what is the same in each (`fixed` obstacles) plus what is drawn: independent discs and
// boxes, a goal, starts, one disturbance. World number w of a seed is a function of (seed, stream,
// w) alone, so worlds can be drawn in any order, by any thread, as they are used.

/// A closed interval to draw from uniformly; low == high is a constant.
struct Interval {
  double low = 0, high = 0;
  bool operator==(const Interval&) const = default;
};

struct CountInterval {
  int low = 0, high = 0;  // both ends are drawn
  bool operator==(const CountInterval&) const = default;
};

struct DiscDistribution {
  CountInterval count;         // 0 <= low <= high <= 1000
  Interval x, y;               // m
  Interval radius{0.1, 0.25};  // m, > 0
};

struct BoxDistribution {
  CountInterval count;                          // 0 <= low <= high <= 1000
  Interval x, y;                                // m
  Interval half_x{0.2, 0.5}, half_y{0.2, 0.5};  // m, > 0
  Interval heading_degrees{0, 0};               // of the first axis
};

struct GoalDistribution {
  Goal::Kind kind = Goal::Kind::kHalfPlane;
  std::array<double, 2> normal = {0, 1};  // half plane; any length > 0
  Interval offset{10, 10};                // half plane, m
  Interval x{0, 0}, y{10, 10};            // disc, m
  Interval radius{0.5, 0.5};              // disc, m, > 0
  double depth = 0;                       // m, >= 0, inside the region before the robot has arrived
};

struct StartDistribution {
  Interval x{0, 0}, y{1, 1};         // m
  Interval heading_degrees{90, 90};  // from the x axis
  int per_world = 1;                 // starts drawn in each world, 1..10000
  double clearance = 0;              // m; a drawn start nearer than this to an obstacle is redrawn
};

struct DisturbanceOptions {
  Disturbance::Kind kind = Disturbance::Kind::kNone;
  std::array<double, 3> gain = {1, 0, 0};  // on x', y', heading'
  double intensity = 0.115;                // Von Karman: m/s, standard deviation, >= 0
  double length_scale = 1.0;               // Von Karman: m, > 0
  double shortest_wavelength = 0.25;       // Von Karman: m, > 0; nothing finer is synthesised
  int modes = 32;                          // Von Karman: plane waves per world, multiple of 8
  double half_width = 0.2;                 // uniform noise: m/s, >= 0
};

struct WorldDistribution {
  std::vector<std::array<double, 4>> walls;  // x0, y0, x1, y1 in m, in every world
  std::vector<std::array<double, 5>> boxes;  // x, y, half_x, half_y in m, heading in degrees
  std::vector<std::array<double, 3>> discs;  // x, y, radius in m
  DiscDistribution random_discs;
  BoxDistribution random_boxes;
  GoalDistribution goal;
  StartDistribution start;
  DisturbanceOptions disturbance;
};

/// What is wrong with the numbers, with the field named below `world`; nothing if all is well.
std::optional<FieldError> Validate(const WorldDistribution& distribution);

/// Draws a world. `world` is overwritten; its arrays keep their capacity, so drawing into the same
/// object again does not allocate. Requires Validate(distribution) to be empty.
///
/// A start that is drawn (not a constant) and nearer than start.clearance to an obstacle is drawn
/// again, up to 64 times; if no attempt is free the last one stays and its episode counts as a
/// collision. The clearance must be set to the robot's radius by who knows the robot.
void DrawWorld(const WorldDistribution& distribution, Key key, Kernel kernel, World& world);

/// Fills the modes of a Von Karman field from its key, intensity, length scale and cut-off (Eq. 5).
void SynthesizeField(int num_modes, Kernel kernel, Disturbance& disturbance);

}  // namespace fedgen
