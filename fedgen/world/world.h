// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "fedgen/base/aligned.h"
#include "fedgen/base/random.h"

namespace fedgen {

// What is out there: one world E, as the simulator reads it.
//
// A plane with discs, thin walls (segments) and solid boxes; a goal region; one or more starts; and
// a disturbance that pushes on the rates of the robot's state. All lengths in m, angles in rad
// counted counter-clockwise from the x axis, speeds in m/s.
//
// Obstacles are stored as structures of arrays, padded to groups of eight with obstacles too far
// away to be seen or touched, so that they can be drawn eight at a time. The simulator copies them
// into its own layout when an episode starts (Batch::Place).

struct Pose {
  float x = 0;        // m
  float y = 0;        // m
  float heading = 0;  // rad
  bool operator==(const Pose&) const = default;
};

/// Solid discs.
class DiscSet {
 public:
  void Clear() { Resize(0); }
  void Add(float x, float y, float radius);
  int size() const { return size_; }
  int padded_size() const { return static_cast<int>(x.size()); }

  AlignedVector<float> x;       // [padded_size] m
  AlignedVector<float> y;       // [padded_size] m
  AlignedVector<float> radius;  // [padded_size] m, >= 0

  /// Makes room for n discs; the caller fills the first n entries of the arrays.
  void Resize(int n);

 private:
  int size_ = 0;
};

/// Thin walls from (x, y) to (x + dx, y + dy).
class WallSet {
 public:
  void Clear() { Resize(0); }
  void Add(float x0, float y0, float x1, float y1);
  int size() const { return size_; }
  int padded_size() const { return static_cast<int>(x.size()); }

  AlignedVector<float> x, y;             // [padded_size] m, first end
  AlignedVector<float> dx, dy;           // [padded_size] m, to the other end
  AlignedVector<float> length;           // [padded_size] m, > 0
  AlignedVector<float> inverse_length2;  // [padded_size] 1/m^2

 private:
  void Resize(int n);
  int size_ = 0;
};

/// A solid rectangle: centre, half extents along its own axes, and the direction of its first axis.
struct Box {
  float x = 0, y = 0;            // m
  float half_x = 0, half_y = 0;  // m, > 0
  float heading = 0;             // rad
  bool operator==(const Box&) const = default;
};

/// Where the robot should arrive: the half plane normal . p >= offset, or a disc. It has arrived
/// when its centre is `depth` inside; rho is the distance to the region itself.
struct Goal {
  enum class Kind { kHalfPlane, kDisc };
  Kind kind = Kind::kHalfPlane;
  float normal_x = 0, normal_y = 1;  // half plane: unit normal, pointing into the goal
  float offset = 10;                 // half plane: m
  float x = 0, y = 0, radius = 1;    // disc: m
  float depth = 0;                   // m, >= 0, past the boundary before the robot has arrived
  bool operator==(const Goal&) const = default;
};

/// A push on the rates of the state: d/dt (x, y, heading) += gain * d, where d (m/s) is either a
/// field over the plane drawn once per world, or fresh noise at every step.
struct Disturbance {
  enum class Kind { kNone, kVonKarman, kUniformNoise };
  Kind kind = Kind::kNone;
  std::array<float, 3> gain = {1, 0, 0};  // share of d on x' (1), y' (1), heading' (rad/m)
  Key key;                                // names the draw; with the numbers below it fixes d

  // Von Karman field (Eq. 5): d(x, y) = amplitude * sum over modes of cos 2 pi (kx x + ky y +
  // phase).
  float intensity = 0;            // m/s, standard deviation of d
  float length_scale = 1;         // m
  float shortest_wavelength = 1;  // m
  float amplitude = 0;            // m/s, of each mode
  AlignedVector<float> kx, ky;    // [num_modes] cycles/m
  AlignedVector<float> phase;     // [num_modes] cycles

  // Uniform noise: d = half_width * U(-1, 1), fresh at every step of every episode.
  float half_width = 0;  // m/s
};

struct World {
  DiscSet discs;
  WallSet walls;
  std::vector<Box> boxes;
  WallSet box_edges;  // the four sides of each box, in order: what the lidar sees of it
  Goal goal;
  std::vector<Pose> starts;  // >= 1; an episode is a (world, start) pair
  Disturbance disturbance;

  void AddBox(const Box& box);
  void ClearObstacles();
};

/// Distance (m) from a point to the nearest obstacle's surface, negative inside a disc or box;
/// infinity in an empty world. The plain reading of the geometry, in double.
double Clearance(const World& world, double x, double y);

/// Distance (m) from a point to the goal region, 0 inside it (rho of Eq. 10).
double DistanceToGoal(const Goal& goal, double x, double y);

}  // namespace fedgen
