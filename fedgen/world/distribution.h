// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "fedgen/base/kernel.h"
#include "fedgen/base/option.h"
#include "fedgen/base/random.h"
#include "fedgen/world/world.h"

namespace fedgen {

// The distributions P_E over worlds and P_int|E over starts (docs/math.md, section 2).
//
// A world is what is the same in each (`fixed` obstacles) plus what is drawn: independent discs and
// boxes, a goal, starts, one disturbance. World number w of a seed is a function of (seed, stream,
// w) alone, so worlds can be drawn in any order, by any thread, as they are used.

template <>
inline constexpr auto kWords<Goal::Kind> = Words("half-plane", "disc");
template <>
inline constexpr auto kWords<Disturbance::Kind> = Words("none", "von-karman", "uniform-noise");

struct DiscDistribution {
  CountInterval count;
  Interval x, y;               // m
  Interval radius{0.1, 0.25};  // m
};

struct BoxDistribution {
  CountInterval count;
  Interval x, y;                                // m
  Interval half_x{0.2, 0.5}, half_y{0.2, 0.5};  // m
  Interval heading_degrees{0, 0};               // of the first axis
};

struct GoalDistribution {
  Goal::Kind kind = Goal::Kind::kHalfPlane;
  std::array<double, 2> normal = {0, 1};  // half plane; any length > 0
  Interval offset{10, 10};                // half plane, m
  Interval x{0, 0}, y{10, 10};            // disc, m
  Interval radius{0.5, 0.5};              // disc, m
  double depth = 0;                       // m, inside the region before the robot has arrived
};

struct StartDistribution {
  Interval x{0, 0}, y{1, 1};         // m
  Interval heading_degrees{90, 90};  // from the x axis
  int per_world = 1;                 // starts drawn in each world
  double clearance = 0;              // m; a drawn start nearer to an obstacle is redrawn
};

struct DisturbanceOptions {
  Disturbance::Kind kind = Disturbance::Kind::kNone;
  std::array<double, 3> gain = {1, 0, 0};  // on x', y', heading'
  double intensity = 0.115;                // Von Karman: m/s, standard deviation
  double length_scale = 1.0;               // Von Karman: m
  double shortest_wavelength = 0.25;       // Von Karman: m; nothing finer is synthesised
  int modes = 32;                          // Von Karman: plane waves per world
  double half_width = 0.2;                 // uniform noise: m/s
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

void Describe(OptionVisitor& visitor, DiscDistribution& discs);
void Describe(OptionVisitor& visitor, BoxDistribution& boxes);
void Describe(OptionVisitor& visitor, GoalDistribution& goal);
void Describe(OptionVisitor& visitor, StartDistribution& start);
void Describe(OptionVisitor& visitor, DisturbanceOptions& push);
void Describe(OptionVisitor& visitor, WorldDistribution& distribution);

/// Whether no world has an obstacle: then every policy that drives on arrives.
bool IsEmpty(const WorldDistribution& distribution);
inline constexpr std::string_view kEmptyWorldWarning =
    "[world] has no obstacle (walls, boxes, discs, random_discs, random_boxes): whoever drives on "
    "arrives";

/// What is wrong with the numbers, with the field named below `world`; nothing if all is well.
std::optional<FieldError> Validate(const WorldDistribution& distribution);

/// Draws a world. `world` is overwritten; its arrays keep their capacity, so drawing into the same
/// object again does not allocate. Requires Validate(distribution) to be empty.
///
/// A start that is drawn (not a constant) must leave room: nearer to an obstacle than
/// start.clearance or than robot_radius (m), of the robot that will stand there, it is drawn again,
/// up to 64 times; if no attempt leaves that much room, the one that leaves most stays.
///
/// With `start` given only that one is drawn, as if all were; the others are unspecified. Who
/// drives from one start of many need not pay for the rest.
inline constexpr int kEveryStart = -1;
void DrawWorld(const WorldDistribution& distribution, double robot_radius, Key key, Kernel kernel,
               World& world, int start = kEveryStart);

/// Fills the modes of a Von Karman field from its key, intensity, length scale and cut-off (Eq. 5).
void SynthesizeField(int num_modes, Kernel kernel, Disturbance& disturbance);

}  // namespace fedgen
