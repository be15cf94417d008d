// SPDX-License-Identifier: Apache-2.0
#include "fedgen/sim/observe_kernel.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fedgen/sim/observe_kernel.cc"
#include <hwy/foreach_target.h>
//
#include "fedgen/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fedgen {
namespace HWY_NAMESPACE {

// Notation: world frame (x, y); body frame (forward, left) with its origin at the robot's centre and
// its first axis along the heading. c and s are cosine and sine of the heading.

/// A robot's place, spread over the lanes.
struct Robot {
  F x, y, cos, sin;
};

struct BodyPoint {
  F forward, left;
};

HWY_INLINE BodyPoint ToBody(const Robot& robot, F dx, F dy) {
  return {Fma(dx, robot.cos, dy * robot.sin), NegFma(dx, robot.sin, dy * robot.cos)};
}

/// Eq. 8: distance along beams (beam_cos, beam_sin) to a disc, or `range` if it is missed.
HWY_INLINE F RayToDisc(BodyPoint centre, F radius2, F beam_cos, F beam_sin, F range) {
  const F along = Fma(centre.forward, beam_cos, centre.left * beam_sin);
  const F across = NegFma(centre.forward, beam_sin, centre.left * beam_cos);
  const F inside = NegFma(across, across, radius2);
  const F distance = along - Sqrt(Max(inside, Set(0.0f)));
  const Mask hit = And(inside >= Set(0.0f), along > Set(0.0f));
  return Select(hit, Max(distance, Set(0.0f)), range);
}

/// A wall in the body frame, its ends ordered so that it is passed counter-clockwise.
struct BodyWall {
  F forward, left;    // first end
  F dforward, dleft;  // to the other end
  F area;             // first end x direction, >= 0: distance to the wall's line times its length
};

HWY_INLINE BodyWall WallToBody(const Robot& robot, F wall_x, F wall_y, F wall_dx, F wall_dy) {
  const BodyPoint end = ToBody(robot, wall_x - robot.x, wall_y - robot.y);
  const BodyPoint span = ToBody(robot, wall_dx, wall_dy);
  const F area = NegFma(end.left, span.forward, end.forward * span.left);
  const Mask clockwise = area < Set(0.0f);
  return {Select(clockwise, end.forward + span.forward, end.forward),
          Select(clockwise, end.left + span.left, end.left),
          Select(clockwise, Set(0.0f) - span.forward, span.forward),
          Select(clockwise, Set(0.0f) - span.left, span.left), Abs(area)};
}

/// Eq. 9: distance along beams to a wall, or `range`. A beam along the wall meets its nearer end.
HWY_INLINE F RayToWall(const BodyWall& wall, F beam_cos, F beam_sin, F range) {
  const F zero = Set(0.0f);
  // d = beam x wall direction; the beam meets the wall's line at area / d, at `share` of its length.
  const F d = NegFma(beam_sin, wall.dforward, beam_cos * wall.dleft);
  const F numerator = NegFma(wall.left, beam_cos, wall.forward * beam_sin);
  const Mask crosses = And(And(d > zero, numerator >= zero), numerator <= d);
  const F crossing = Select(crosses, wall.area / d, range);
  const F end0 = Fma(wall.forward, beam_cos, wall.left * beam_sin);
  const F end1 = Fma(wall.dforward, beam_cos, Fma(wall.dleft, beam_sin, end0));
  const F nearer = Max(Min(end0, end1), zero);
  const Mask along = And(And(d == zero, wall.area == zero), Max(end0, end1) >= zero);
  return Select(along, nearer, crossing);
}

/// Eq. 4 for discs, as a mask: the robot's centre is nearer than both radii.
HWY_INLINE Mask TouchesDisc(F distance2, F radius, F robot_radius) {
  const F reach = radius + robot_radius;
  return distance2 < reach * reach;
}

/// Eq. 4 for walls: squared distance from the robot's centre to the segment.
HWY_INLINE F WallDistance2(const Robot& robot, const WallSet& walls, int wall) {
  const F px = robot.x - Load(walls.x.data() + wall);
  const F py = robot.y - Load(walls.y.data() + wall);
  const F dx = Load(walls.dx.data() + wall);
  const F dy = Load(walls.dy.data() + wall);
  const F along = Fma(px, dx, py * dy) * Load(walls.inverse_length2.data() + wall);
  const F t = Clamp(along, Set(0.0f), Set(1.0f));
  const F rx = NegFma(t, dx, px);
  const F ry = NegFma(t, dy, py);
  return Fma(rx, rx, ry * ry);
}

HWY_INLINE bool TouchesWalls(const Robot& robot, const WallSet& walls, float robot_radius) {
  const F reach2 = Set(robot_radius * robot_radius);
  bool touches = false;
  for (int wall = 0; wall < walls.padded_size(); wall += kLanes) {
    touches |= Any(WallDistance2(robot, walls, wall) < reach2);
  }
  return touches;
}

// Eq. 4 for boxes: their edges as walls, and the inside. Few worlds have boxes, so the inside is
// plain scalar code, the same for both kernels.
bool InsideBox(const Box& box, const WallSet& edges, int first_edge, float x, float y) {
  // Inside iff left of all four counter-clockwise edges.
  bool inside = box.half_x > 0;
  for (int edge = first_edge; edge < first_edge + 4; ++edge) {
    const auto e = static_cast<std::size_t>(edge);
    const float cross = edges.dx[e] * (y - edges.y[e]) - edges.dy[e] * (x - edges.x[e]);
    inside = inside && cross > 0.0f;
  }
  return inside;
}

HWY_INLINE bool TouchesBoxes(const Robot& robot, const World& world, float robot_radius, float x,
                             float y) {
  if (world.boxes.empty()) return false;
  bool touches = TouchesWalls(robot, world.box_edges, robot_radius);
  for (std::size_t box = 0; box < world.boxes.size(); ++box) {
    touches |= InsideBox(world.boxes[box], world.box_edges, static_cast<int>(4 * box), x, y);
  }
  return touches;
}

// The goal as the robot sees it: the vector to its nearest point, and how long that is.
HWY_INLINE void FindGoal(const Goal& goal, std::size_t slot, Batch& batch) {
  const float x = batch.x[slot];
  const float y = batch.y[slot];
  float to_x = 0;
  float to_y = 0;
  float outside = 0;  // m, negative inside the region
  float distance = 0;
  if (goal.kind == Goal::Kind::kHalfPlane) {
    outside = goal.offset - (goal.normal_x * x + goal.normal_y * y);
    distance = outside > 0.0f ? outside : 0.0f;
    to_x = distance * goal.normal_x;
    to_y = distance * goal.normal_y;
  } else {
    const float dx = goal.x - x;
    const float dy = goal.y - y;
    const float to_centre = std::sqrt(dx * dx + dy * dy);
    outside = to_centre - goal.radius;
    distance = outside > 0.0f ? outside : 0.0f;
    const float share = to_centre > 0.0f ? distance / to_centre : 0.0f;
    to_x = share * dx;
    to_y = share * dy;
  }
  batch.arrived[slot] = outside <= -goal.depth ? 1 : 0;
  batch.goal_distance[slot] = distance;
  batch.goal_forward[slot] = to_x * batch.cos[slot] + to_y * batch.sin[slot];
  batch.goal_left[slot] = to_y * batch.cos[slot] - to_x * batch.sin[slot];
}

#if HWY_TARGET == HWY_AVX2

constexpr int kGroup = 32;  // discs worked out before the visible ones are cast, one bit each

// Writes, for eight discs, the first and last beam that could meet each (first > last: none), and
// returns the mask of discs near enough. Angles are approximate, with a margin that covers it.
struct BeamInterval {
  F low, high;
};
HWY_INLINE BeamInterval BeamsThatMayMeet(const Lidar& lidar, BodyPoint centre, F distance2,
                                         F radius) {
  // Bearing by a quadratic approximation of atan on [0, 1], off by less than 0.004 rad.
  const F forward = Abs(centre.forward);
  const F left = Abs(centre.left);
  const F ratio = Min(forward, left) * hn::ApproximateReciprocal(Max(forward, left));
  F bearing = ratio * NegFma(Set(0.273f), ratio, Set(1.0583982f));
  bearing = Select(left > forward, Set(1.5707963f) - bearing, bearing);
  bearing = Select(centre.forward < Set(0.0f), Set(3.1415927f) - bearing, bearing);
  const F signed_bearing = hn::CopySign(bearing, centre.left);
  // Half width asin(q) <= q + (pi/2 - 1) q^3 with q = radius / distance; everything if inside.
  const F q = radius * hn::ApproximateReciprocalSqrt(distance2);
  F width = Fma(q * q * q, Set(0.5707964f), q + Set(0.006f));
  width = Select(q < Set(0.99f), width, Set(7.0f));
  // A disc across the +-pi cut may meet beams at both ends of a wide fan: try them all.
  if (lidar.wraps) width = Select(bearing + width > Set(3.14f), Set(7.0f), width);
  const F scale = Set(1.0f / lidar.spacing);
  const F offset = Set(-lidar.first / lidar.spacing);
  return {Max(hn::Ceil(Fma(signed_bearing - width, scale, offset)), Set(0.0f)),
          Min(hn::Floor(Fma(signed_bearing + width, scale, offset)),
              Set(static_cast<float>(lidar.num_beams - 1)))};
}

HWY_INLINE bool ObserveDiscs(const Lidar& lidar, const Robot& robot, const DiscSet& discs,
                             float robot_radius, float* ranges) {
  alignas(32) float forward[kGroup];
  alignas(32) float left[kGroup];
  alignas(32) float radius2[kGroup];
  alignas(32) std::int32_t low[kGroup];
  alignas(32) std::int32_t high[kGroup];
  const IntTag di;
  const F range = Set(lidar.range);
  Mask touches = Set(0.0f) > Set(1.0f);
  for (int group = 0; group < discs.padded_size(); group += kGroup) {
    const int group_end = std::min(group + kGroup, discs.padded_size());
    std::uint32_t visible = 0;
    for (int disc = group; disc < group_end; disc += kLanes) {
      const int at = disc - group;
      const F dx = Load(discs.x.data() + disc) - robot.x;
      const F dy = Load(discs.y.data() + disc) - robot.y;
      const F radius = Load(discs.radius.data() + disc);
      const F distance2 = Fma(dx, dx, dy * dy);
      touches = Or(touches, TouchesDisc(distance2, radius, Set(robot_radius)));
      const BodyPoint centre = ToBody(robot, dx, dy);
      const BeamInterval beams = BeamsThatMayMeet(lidar, centre, distance2, radius);
      const F reach = (range + radius) * Set(1.0001f);
      const Mask may_meet = And(distance2 < reach * reach, beams.low <= beams.high);
      Store(centre.forward, forward + at);
      Store(centre.left, left + at);
      Store(radius * radius, radius2 + at);
      hn::Store(hn::ConvertTo(di, beams.low), di, low + at);
      hn::Store(hn::ConvertTo(di, beams.high), di, high + at);
      visible |= static_cast<std::uint32_t>(hn::detail::BitsFromMask(may_meet)) << at;
    }
    for (; visible != 0; visible &= visible - 1) {
      const int at = __builtin_ctz(visible);
      const BodyPoint centre{Set(forward[at]), Set(left[at])};
      for (int beam = low[at] & ~(kLanes - 1); beam <= high[at]; beam += kLanes) {
        const F distance = RayToDisc(centre, Set(radius2[at]), Load(lidar.cos.data() + beam),
                                     Load(lidar.sin.data() + beam), range);
        Store(Min(distance, Load(ranges + beam)), ranges + beam);
      }
    }
  }
  return Any(touches);
}

HWY_INLINE void ObserveWalls(const Lidar& lidar, const Robot& robot, const WallSet& walls,
                             float* ranges) {
  for (int group = 0; group < walls.padded_size(); group += kLanes) {
    const BodyWall wall =
        WallToBody(robot, Load(walls.x.data() + group), Load(walls.y.data() + group),
                   Load(walls.dx.data() + group), Load(walls.dy.data() + group));
    // The beam nearest to the wall's normal meets its line first. It is a beam at the edge of the
    // fan, unless the normal itself lies in the fan. Skip walls whose line that beam cannot reach.
    const F length = Load(walls.length.data() + group);
    const int last = lidar.num_beams - 1;
    const auto facing = [&](float beam_cos, float beam_sin) HWY_ATTR {
      return NegFma(Set(beam_sin), wall.dforward, Set(beam_cos) * wall.dleft);
    };
    const F first_beam = facing(lidar.cos[0], lidar.sin[0]);
    const F last_beam = facing(lidar.cos[static_cast<std::size_t>(last)],
                               lidar.sin[static_cast<std::size_t>(last)]);
    const Mask normal_in_fan = facing(lidar.centre_cos, lidar.centre_sin) >
                               (Set(lidar.half_width_cos) - Set(1e-3f)) * length;
    const F best = Select(normal_in_fan, length, Max(first_beam, last_beam));
    const F reach = Set(lidar.range * 1.0001f);
    const Mask may_meet = wall.area <= Fma(reach, best, Set(1e-3f));
    std::uint64_t visible = hn::detail::BitsFromMask(may_meet);
    if (visible == 0) continue;
    alignas(32) float columns[5][kLanes];
    Store(wall.forward, columns[0]);
    Store(wall.left, columns[1]);
    Store(wall.dforward, columns[2]);
    Store(wall.dleft, columns[3]);
    Store(wall.area, columns[4]);
    for (; visible != 0; visible &= visible - 1) {
      const int at = __builtin_ctzll(visible);
      const BodyWall one{Set(columns[0][at]), Set(columns[1][at]), Set(columns[2][at]),
                         Set(columns[3][at]), Set(columns[4][at])};
      for (int beam = 0; beam < lidar.num_beams; beam += kLanes) {
        const F distance = RayToWall(one, Load(lidar.cos.data() + beam),
                                     Load(lidar.sin.data() + beam), Set(lidar.range));
        Store(Min(distance, Load(ranges + beam)), ranges + beam);
      }
    }
  }
}

#else  // the scalar twin: every beam on every obstacle

bool ObserveDiscs(const Lidar& lidar, const Robot& robot, const DiscSet& discs, float robot_radius,
                  float* ranges) {
  bool touches = false;
  for (int index = 0; index < discs.size(); ++index) {
    const auto disc = static_cast<std::size_t>(index);
    const float dx = discs.x[disc] - robot.x;
    const float dy = discs.y[disc] - robot.y;
    const float radius = discs.radius[disc];
    touches |= TouchesDisc(Fma(dx, dx, dy * dy), radius, robot_radius);
    const BodyPoint centre = ToBody(robot, dx, dy);
    for (int at = 0; at < lidar.num_beams; ++at) {
      const auto beam = static_cast<std::size_t>(at);
      ranges[beam] = Min(RayToDisc(centre, radius * radius, lidar.cos[beam], lidar.sin[beam],
                                   lidar.range),
                         ranges[beam]);
    }
  }
  return touches;
}

void ObserveWalls(const Lidar& lidar, const Robot& robot, const WallSet& walls, float* ranges) {
  for (int index = 0; index < walls.size(); ++index) {
    const auto at = static_cast<std::size_t>(index);
    const BodyWall wall = WallToBody(robot, walls.x[at], walls.y[at], walls.dx[at], walls.dy[at]);
    for (int beam_index = 0; beam_index < lidar.num_beams; ++beam_index) {
      const auto beam = static_cast<std::size_t>(beam_index);
      ranges[beam] =
          Min(RayToWall(wall, lidar.cos[beam], lidar.sin[beam], lidar.range), ranges[beam]);
    }
  }
}

#endif

void ObserveLanes(const Lidar& lidar, float robot_radius, int first, int last, Batch& batch) {
  for (int index = first; index < last; ++index) {
    const auto slot = static_cast<std::size_t>(index);
    const World& world = *batch.world[slot];
    const Robot robot{Set(batch.x[slot]), Set(batch.y[slot]), Set(batch.cos[slot]),
                      Set(batch.sin[slot])};
    float* ranges = batch.ranges.data() + slot * static_cast<std::size_t>(lidar.beam_stride);
    for (int beam = 0; beam < lidar.beam_stride; beam += kLanes) {
      Store(Set(lidar.range), ranges + beam);
    }
    bool touches = ObserveDiscs(lidar, robot, world.discs, robot_radius, ranges);
    ObserveWalls(lidar, robot, world.walls, ranges);
    ObserveWalls(lidar, robot, world.box_edges, ranges);
    touches |= TouchesWalls(robot, world.walls, robot_radius);
    touches |= TouchesBoxes(robot, world, robot_radius, batch.x[slot], batch.y[slot]);
    batch.collided[slot] = touches ? 1 : 0;
    FindGoal(world.goal, slot, batch);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fedgen
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fedgen {

void Observe(Kernel kernel, const Lidar& lidar, float robot_radius, int first, int last,
             Batch& batch) {
  FEDGEN_LANES_DISPATCH(kernel, ObserveLanes)(lidar, robot_radius, first, last, batch);
}

}  // namespace fedgen
#endif
