// SPDX-License-Identifier: Apache-2.0
#include "fedgen/sim/observe_kernel.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "fedgen/sim/move_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fedgen/sim/observe_kernel.cc"
#include <hwy/foreach_target.h>
//
#include "fedgen/base/lanes-inl.h"
#include "fedgen/sim/chosen-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fedgen {
namespace HWY_NAMESPACE {

// Notation: world frame (x, y); body frame (forward, left) with its origin at the robot's centre
// and its first axis along the heading; fan frame, the same along the centre of the lidar's fan. A
// "group" is kLanes robots in neighbouring slots.

// ---- The formulas, the same for both kernels ----

/// A group, one robot a lane.
struct Robot {
  F x, y, cos, sin;
};

HWY_INLINE Robot GroupOfRobots(const Batch& batch, int slot) {
  return {Load(batch.x.data() + slot), Load(batch.y.data() + slot), Load(batch.cos.data() + slot),
          Load(batch.sin.data() + slot)};
}

/// The robots with the centre of the fan for a heading.
HWY_INLINE Robot FacingFan(const Robot& robot, const Lidar& lidar) {
  const F c = Set(lidar.centre_cos);
  const F s = Set(lidar.centre_sin);
  return {robot.x, robot.y, NegFma(robot.sin, s, robot.cos * c), Fma(robot.sin, c, robot.cos * s)};
}

struct BodyPoint {
  F forward, left;
};

HWY_INLINE BodyPoint ToBody(const Robot& robot, F dx, F dy) {
  return {Fma(dx, robot.cos, dy * robot.sin), NegFma(dx, robot.sin, dy * robot.cos)};
}

/// The smaller of two readings, where a negative number or a NaN means "not met". As bits read
/// without a sign, those are larger than every distance, so one integer minimum does it all.
template <typename V>
HWY_INLINE V Nearer(V distance, V reading) {
#if HWY_TARGET == HWY_AVX2
  const hn::DFromV<V> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  return hn::BitCast(d, hn::Min(hn::BitCast(du, distance), hn::BitCast(du, reading)));
#else
  return std::bit_cast<float>(
      std::min(std::bit_cast<std::uint32_t>(distance), std::bit_cast<std::uint32_t>(reading)));
#endif
}

/// Eq. 8: distance along beams (beam_cos, beam_sin) to a disc; NaN if it is missed, negative if it
/// lies behind.
template <typename V>
HWY_INLINE V RayToDisc(V forward, V left, V radius2, V beam_cos, V beam_sin) {
  const V along = Fma(forward, beam_cos, left * beam_sin);
  const V across = NegFma(forward, beam_sin, left * beam_cos);
  return along - Sqrt(NegFma(across, across, radius2));
}

/// A wall in the fan frame, its ends ordered so that it is passed counter-clockwise.
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

/// Beam x wall direction: positive where the beam runs towards the wall's line.
HWY_INLINE F Facing(const BodyWall& wall, F beam_cos, F beam_sin) {
  return NegFma(beam_sin, wall.dforward, beam_cos * wall.dleft);
}

/// Eq. 9: distance along beams to a wall; negative or NaN if it is missed.
HWY_INLINE F RayToWall(const BodyWall& wall, F beam_cos, F beam_sin) {
  // The beam meets the wall's line at area / facing, at numerator / facing of the wall's length.
  const F facing = Facing(wall, beam_cos, beam_sin);
  const F numerator = NegFma(wall.left, beam_cos, wall.forward * beam_sin);
  const Mask beside = Or(numerator<Set(0.0f), numerator> facing);
  return Select(beside, Set(-1.0f), wall.area / facing);
}

/// Eq. 9 where the robot stands on the wall's line (area 0): only beams along it meet it, at its
/// nearer end.
HWY_INLINE F RayAlongWall(const BodyWall& wall, F beam_cos, F beam_sin) {
  const F zero = Set(0.0f);
  const F end0 = Fma(wall.forward, beam_cos, wall.left * beam_sin);
  const F end1 = Fma(wall.dforward, beam_cos, Fma(wall.dleft, beam_sin, end0));
  const Mask meets = And(Facing(wall, beam_cos, beam_sin) == zero, Max(end0, end1) >= zero);
  return Select(meets, Max(Min(end0, end1), zero), Set(-1.0f));
}

/// Eq. 4 for discs, in the fan frame.
HWY_INLINE Mask TouchesDisc(F distance2, F radius, F robot_radius) {
  const F reach = radius + robot_radius;
  return distance2 < reach * reach;
}

/// Eq. 4 for walls: squared distance from the robots' centres to the wall in row `at`.
HWY_INLINE F WallDistance2(const Robot& robots, const Batch& batch, std::size_t at) {
  const F px = robots.x - Load(batch.wall_x.data() + at);
  const F py = robots.y - Load(batch.wall_y.data() + at);
  const F dx = Load(batch.wall_dx.data() + at);
  const F dy = Load(batch.wall_dy.data() + at);
  const F along = Fma(px, dx, py * dy) * Load(batch.wall_inverse_length2.data() + at);
  const F t = Clamp(along, Set(0.0f), Set(1.0f));
  const F rx = NegFma(t, dx, px);
  const F ry = NegFma(t, dy, py);
  return Fma(rx, rx, ry * ry);
}

HWY_INLINE BodyWall WallOfGroup(const Robot& robots, const Batch& batch, std::size_t at) {
  return WallToBody(robots, Load(batch.wall_x.data() + at), Load(batch.wall_y.data() + at),
                    Load(batch.wall_dx.data() + at), Load(batch.wall_dy.data() + at));
}

/// Writes 0xffffffff or 0 for each lane.
HWY_INLINE void StoreMask(Mask mask, std::uint32_t* to) {
#if HWY_TARGET == HWY_AVX2
  const hn::FixedTag<std::uint32_t, 8> du;
  hn::Store(hn::BitCast(du, hn::VecFromMask(FloatTag(), mask)), du, to);
#else
  *to = mask ? 0xFFFFFFFFU : 0U;
#endif
}

/// Eq. 10 for a group: the vector to the goal's nearest point, its length, and whether it is
/// reached.
HWY_INLINE void FindGoals(const Robot& robots, int slot, Batch& batch) {
  const F zero = Set(0.0f);
  const F goal_x = Load(batch.goal_x.data() + slot);
  const F goal_y = Load(batch.goal_y.data() + slot);
  const F size = Load(batch.goal_size.data() + slot);
  const Mask is_disc = Load(batch.goal_is_disc.data() + slot) > zero;
  // A disc: the vector to its centre. A half plane: its normal.
  const F to_x = Select(is_disc, goal_x - robots.x, goal_x);
  const F to_y = Select(is_disc, goal_y - robots.y, goal_y);
  const F length = Sqrt(Fma(to_x, to_x, to_y * to_y));
  const F outside = Select(is_disc, length - size, size - Fma(goal_x, robots.x, goal_y * robots.y));
  const F distance = Max(outside, zero);
  const F share = Select(is_disc, Select(length > zero, distance / length, zero), distance);
  const BodyPoint seen = ToBody(robots, share * to_x, share * to_y);
  StoreMask(outside <= zero - Load(batch.goal_depth.data() + slot), batch.arrived.data() + slot);
  Store(distance, batch.goal_distance.data() + slot);
  Store(seen.forward, batch.goal_forward.data() + slot);
  Store(seen.left, batch.goal_left.data() + slot);
}

/// Where row `row` of the obstacles has its entry for a slot.
HWY_INLINE std::size_t EntryOf(const Batch& batch, int row, std::size_t slot) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(batch.capacity) + slot;
}

/// Eq. 4 for the inside of boxes (their sides are walls). Few worlds have boxes, so this is plain
/// code.
bool InsideABox(const Batch& batch, std::size_t slot) {
  const int first = batch.first_box_row[slot];
  for (int box = first; box < first + 4 * batch.num_boxes[slot]; box += 4) {
    bool inside = true;  // left of all four counter-clockwise sides
    for (int side = box; side < box + 4; ++side) {
      const std::size_t at = EntryOf(batch, side, slot);
      const float cross = batch.wall_dx[at] * (batch.y[slot] - batch.wall_y[at]) -
                          batch.wall_dy[at] * (batch.x[slot] - batch.wall_x[at]);
      inside = inside && cross > 0.0f;
    }
    if (inside) return true;
  }
  return false;
}

#if HWY_TARGET == HWY_AVX2

// ---- The fast kernel ----
//
// Two passes. The first looks at every obstacle, eight at once, and lists those that some beam may
// meet; the second casts beams at each listed obstacle, four at a time at discs, for which a few
// suffice. Hardly a branch depends on where things are: one mispredicted branch costs as much as
// casting at three discs. The passes run over many robots before they take turns, because a list
// that is read right after it was written in pieces makes the processor wait for the pieces.

/// The lidar as the first pass wants it, in registers or on the stack. Everything is widened by a
/// slack far above the rounding of a distance within range.
struct Fan {
  explicit HWY_INLINE Fan(const Lidar& lidar)
      : slack(1e-3f + 1e-4f * lidar.range),
        range(lidar.range + slack),
        scale(1.0f / lidar.spacing),
        // Rounding to nearest after adding not quite half a beam takes in every beam inside.
        first_offset(lidar.half_width / lidar.spacing + 0.49f),
        last_offset(lidar.half_width / lidar.spacing - 0.49f),
        last_beam(static_cast<float>(lidar.num_beams - 1)),
        edge_cos(lidar.half_width_cos),
        edge_sin(lidar.half_width_sin),
        wraps(lidar.wraps) {}
  float slack, range, scale, first_offset, last_offset, last_beam;
  float edge_cos, edge_sin;  // of the last beam; the first is its mirror image
  bool wraps;
};

constexpr int kBeamsAtOnce = 4;  // cast at a disc; at 3 m it covers one or two

/// Discs near enough and not beside the fan, in the fan frame of their robots, and all discs that
/// touch their robots.
struct SeenDiscs {
  static constexpr int kCapacity = 1024;
  static constexpr int kRoom = kCapacity + 2 * kLanes;

  alignas(32) float forward[kRoom];
  alignas(32) float left[kRoom];
  alignas(32) float radius[kRoom];
  alignas(32) std::int32_t row[kRoom];  // where the readings of its robot start
  int size = 0;

  // Worked out in the second pass.
  alignas(32) float radius2[kRoom];
  alignas(32) std::int32_t beam[kRoom];       // first of the four beams cast first
  alignas(32) std::int32_t reading[kRoom];    // where their readings are
  alignas(32) std::int32_t last_beam[kRoom];  // that may meet the disc
  std::int32_t to_widen[kRoom];               // discs that need more than four beams
};

/// Walls that some beam may meet, in the fan frame of their robots.
struct SeenWalls {
  static constexpr int kCapacity = 256;
  static constexpr int kRoom = kCapacity + kLanes;

  float forward[kRoom], left[kRoom], dforward[kRoom], dleft[kRoom], area[kRoom];
  std::int32_t row[kRoom];
  float first_beam[kRoom], last_beam[kRoom];  // that may meet the wall
  int size = 0;
};

struct BeamInterval {
  F first, last;  // integers in [0, num_beams - 1]; first > last: none
};

/// Bearing in [0, pi], to the left or right, off by less than 0.005 rad: a quadratic approximation
/// of atan on [0, 1].
HWY_INLINE F RoughBearing(BodyPoint point) {
  const F forward = Abs(point.forward);
  const F left = Abs(point.left);
  const F ratio = Min(forward, left) * hn::ApproximateReciprocal(Max(forward, left));
  F bearing = ratio * NegFma(Set(0.273f), ratio, Set(1.0583982f));
  bearing = Select(left > forward, Set(1.5707963f) - bearing, bearing);
  return Select(point.forward < Set(0.0f), Set(3.1415927f) - bearing, bearing);
}

/// The beams from one bearing to another, and perhaps one to each side.
HWY_INLINE BeamInterval BeamsBetween(const Fan& fan, F from, F to) {
  const F first = Fma(from, Set(fan.scale), Set(fan.first_offset));
  const F last = Fma(to, Set(fan.scale), Set(fan.last_offset));
  const F last_beam = Set(fan.last_beam);
  return {Round(Clamp(first, Set(0.0f), last_beam)), Round(Clamp(last, Set(0.0f), last_beam))};
}

/// The beams that may meet each of eight discs, and perhaps one that does not. The angles are
/// approximate, with a margin that covers it.
HWY_INLINE BeamInterval BeamsThatMayMeet(const Fan& fan, BodyPoint centre, F distance2, F radius) {
  const F bearing = RoughBearing(centre);
  // Half width asin(q) <= q + (pi/2 - 1) q^3 with q = radius / distance < 1: a robot inside a disc
  // has collided and is not asked.
  const F q = radius * hn::ApproximateReciprocalSqrt(distance2);
  F width = Fma(q * q, q * Set(0.5707964f), q + Set(0.006f));
  // A disc across the +-pi cut may meet beams at both ends of a wide fan: try them all.
  if (fan.wraps) width = Select(bearing + width > Set(3.14f), Set(7.0f), width);
  const F signed_bearing = hn::CopySign(bearing, centre.left);
  return BeamsBetween(fan, signed_bearing - width, signed_bearing + width);
}

/// The same for walls: the beams between the bearings of their ends. All beams where an end is too
/// near, or the robot too near to the wall's line, for bearings to be sure, and across the +-pi
/// cut.
HWY_INLINE BeamInterval BeamsThatMayMeet(const Fan& fan, const BodyWall& wall, F length) {
  const BodyPoint end0{wall.forward, wall.left};
  const BodyPoint end1{wall.forward + wall.dforward, wall.left + wall.dleft};
  const F distance0 = Fma(end0.forward, end0.forward, end0.left * end0.left);
  const F distance1 = Fma(end1.forward, end1.forward, end1.left * end1.left);
  const F bearing0 = RoughBearing(end0);
  const F bearing1 = RoughBearing(end1);
  const F from = hn::CopySign(bearing0, end0.left);
  const F to = hn::CopySign(bearing1, end1.left);
  const F length2 = length * length;
  const Mask near_end = Min(distance0, distance1) < Fma(Set(1e-5f), length2, Set(0.01f));
  const Mask near_line = wall.area * wall.area < Set(1e-8f) * length2 * Max(distance0, distance1);
  const Mask across_cut = Or(Max(bearing0, bearing1) > Set(3.13f), to < from);
  const Mask unsure = Or(Or(near_end, near_line), across_cut);
  const F margin = Set(0.008f);
  return BeamsBetween(fan, Select(unsure, Set(-7.0f), from - margin),
                      Select(unsure, Set(7.0f), to + margin));
}

/// Second pass: casts beams at the discs seen, notes collisions with them, and forgets them.
HWY_NOINLINE void CastAtDiscs(const Lidar& lidar, const Fan& fan, F robot_radius, SeenDiscs& seen,
                              Batch& batch) {
  const IntTag di;
  const int size = seen.size;
  int num_to_widen = 0;
  for (int disc = 0; disc < size; disc += kLanes) {
    const BodyPoint centre{Load(seen.forward + disc), Load(seen.left + disc)};
    const F radius = Load(seen.radius + disc);
    const F distance2 = Fma(centre.forward, centre.forward, centre.left * centre.left);
    // The last eight may reach past the list.
    const std::uint32_t listed = 0xFFU >> std::max(disc + kLanes - size, 0);
    // A collision ends an episode, so this is rare.
    std::uint32_t touching = Bits(TouchesDisc(distance2, radius, robot_radius)) & listed;
    for (; HWY_UNLIKELY(touching != 0); touching &= touching - 1) {
      const std::int32_t row = seen.row[disc + __builtin_ctz(touching)];
      batch.collided[static_cast<std::size_t>(row / lidar.beam_stride)] = 0xFFFFFFFFU;
    }
    // Integers up to 2^22 sit in the low bits of a float once 1.5 * 2^23 is added.
    const BeamInterval beams = BeamsThatMayMeet(fan, centre, distance2, radius);
    const auto to_int = [&](F integer) HWY_ATTR {
      return hn::BitCast(di, integer + Set(12582912.0f)) - hn::Set(di, 0x4B400000);
    };
    const auto first_four = hn::And(to_int(beams.first), hn::Set(di, -kBeamsAtOnce));
    const auto last = to_int(beams.last);
    Store(radius * radius, seen.radius2 + disc);
    hn::Store(first_four, di, seen.beam + disc);
    hn::Store(hn::Load(di, seen.row + disc) + first_four, di, seen.reading + disc);
    hn::Store(last, di, seen.last_beam + disc);
    const auto wide = last > first_four + hn::Set(di, kBeamsAtOnce - 1);
    const Chosen to_widen(listed & Bits(hn::RebindMask(FloatTag(), wide)));
    to_widen.Append(Count() + hn::Set(di, disc), seen.to_widen + num_to_widen);
    num_to_widen += to_widen.count();
  }

  // Four beams for every disc, needed or not: asking would take longer.
  float* ranges = batch.ranges.data();
  const float* beam_cos = lidar.fan_cos.data();
  const float* beam_sin = lidar.fan_sin.data();
  const hn::FixedTag<float, kBeamsAtOnce> d4;
  const auto cast = [&](int disc, int beam, float* reading) HWY_ATTR {
    const auto distance = RayToDisc(hn::Set(d4, seen.forward[disc]), hn::Set(d4, seen.left[disc]),
                                    hn::Set(d4, seen.radius2[disc]), hn::Load(d4, beam_cos + beam),
                                    hn::Load(d4, beam_sin + beam));
    hn::Store(Nearer(distance, hn::Load(d4, reading)), d4, reading);
  };
  for (int disc = 0; disc < size; ++disc) {
    cast(disc, seen.beam[disc], ranges + seen.reading[disc]);
  }
  for (int entry = 0; entry < num_to_widen; ++entry) {
    const std::int32_t disc = seen.to_widen[entry];
    for (int beam = seen.beam[disc] + kBeamsAtOnce; beam <= seen.last_beam[disc];
         beam += kBeamsAtOnce) {
      cast(disc, beam, ranges + seen.row[disc] + beam);
    }
  }
  seen.size = 0;
}

/// First pass over a group's discs. `rows` is where each robot's readings start; `wanted` has a bit
/// for each robot asked.
HWY_INLINE void LookAtDiscs(const Lidar& lidar, const Fan& fan, const Robot& robots, int group,
                            F robot_radius, hn::Vec<IntTag> rows, std::uint32_t wanted,
                            SeenDiscs& seen, Batch& batch) {
  // A disc is beside a fan of less than half a turn if it is left of the last beam or right of the
  // first one, by its radius. Wider fans see everything: with zeros for the beam, nothing is ever
  // beside them. Adding the robot's radius keeps every disc that the robot touches.
  const F edge_cos = Set(fan.wraps ? 0.0f : fan.edge_cos);
  const F edge_sin = Set(fan.wraps ? 0.0f : fan.edge_sin);
  const F grow = robot_radius + Set(fan.slack);
  const F range = Max(Set(fan.range), grow);
  const int num_rows =
      *std::max_element(batch.num_discs.begin() + group, batch.num_discs.begin() + group + kLanes);
  const float* disc_x = batch.disc_x.data() + group;
  const float* disc_y = batch.disc_y.data() + group;
  const float* disc_radius = batch.disc_radius.data() + group;
  const std::ptrdiff_t stride = batch.capacity;
  int size = seen.size;
  for (std::ptrdiff_t at = 0; at < num_rows * stride; at += stride) {
    const F dx = Load(disc_x + at) - robots.x;
    const F dy = Load(disc_y + at) - robots.y;
    const F radius = Load(disc_radius + at);
    const BodyPoint centre = ToBody(robots, dx, dy);
    // Both are negative if the disc cannot matter.
    const F beside =
        Fma(centre.forward, edge_sin, NegFma(Abs(centre.left), edge_cos, radius + grow));
    const F reach = radius + range;
    const F in_reach = hn::MulSub(reach, reach, Fma(dx, dx, dy * dy));
    const Chosen seen_here(~Bits(hn::MaskFromVec(Min(beside, in_reach))) & wanted);
    seen_here.Append(centre.forward, seen.forward + size);
    seen_here.Append(centre.left, seen.left + size);
    seen_here.Append(radius, seen.radius + size);
    seen_here.Append(rows, seen.row + size);
    size += seen_here.count();
    if (HWY_UNLIKELY(size > SeenDiscs::kCapacity)) {
      seen.size = size;
      CastAtDiscs(lidar, fan, robot_radius, seen, batch);
      size = 0;
    }
  }
  seen.size = size;
}

/// Second pass: casts beams at the walls seen, and forgets them.
HWY_NOINLINE void CastAtWalls(const Lidar& lidar, SeenWalls& seen, float* ranges) {
  const float* beam_cos = lidar.fan_cos.data();
  const float* beam_sin = lidar.fan_sin.data();
  for (int entry = 0; entry < seen.size; ++entry) {
    const BodyWall wall{Set(seen.forward[entry]), Set(seen.left[entry]), Set(seen.dforward[entry]),
                        Set(seen.dleft[entry]), Set(seen.area[entry])};
    const bool on_its_line = seen.area[entry] == 0.0f;
    float* readings = ranges + seen.row[entry];
    const int first = static_cast<int>(seen.first_beam[entry]) / kLanes * kLanes;
    const int last = static_cast<int>(seen.last_beam[entry]);
    for (int beam = first; beam <= last; beam += kLanes) {
      const F c = Load(beam_cos + beam);
      const F s = Load(beam_sin + beam);
      const F distance =
          HWY_UNLIKELY(on_its_line) ? RayAlongWall(wall, c, s) : RayToWall(wall, c, s);
      Store(Nearer(distance, Load(readings + beam)), readings + beam);
    }
  }
  seen.size = 0;
}

/// First pass over a group's walls in the rows at `at`. `wanted` has a bit for each robot asked.
HWY_INLINE void LookAtWalls(const Lidar& lidar, const Fan& fan, const Robot& robots,
                            const Batch& batch, std::size_t at, hn::Vec<IntTag> rows,
                            std::uint32_t wanted, float* ranges, SeenWalls& seen) {
  const BodyWall wall = WallOfGroup(robots, batch, at);
  // The beam nearest to the wall's normal meets its line first. It is a beam at the edge of the
  // fan, unless the normal itself lies in the fan. Skip walls whose line that beam cannot reach.
  const F length = Load(batch.wall_length.data() + at);
  const F edges = Fma(Abs(wall.dforward), Set(fan.edge_sin), wall.dleft * Set(fan.edge_cos));
  const Mask normal_in_fan = wall.dleft > Set(fan.edge_cos - 1e-3f) * length;
  const F best = Select(normal_in_fan, length, edges);
  const std::uint32_t in_reach =
      Bits(wall.area <= Fma(Set(fan.range), best, Set(fan.slack))) & wanted;
  if (in_reach == 0) return;
  const Chosen may_meet(in_reach);
  const int size = seen.size;
  may_meet.Append(wall.forward, seen.forward + size);
  may_meet.Append(wall.left, seen.left + size);
  may_meet.Append(wall.dforward, seen.dforward + size);
  may_meet.Append(wall.dleft, seen.dleft + size);
  may_meet.Append(wall.area, seen.area + size);
  may_meet.Append(rows, seen.row + size);
  const BeamInterval beams = BeamsThatMayMeet(fan, wall, length);
  may_meet.Append(beams.first, seen.first_beam + size);
  may_meet.Append(beams.last, seen.last_beam + size);
  seen.size = size + may_meet.count();
  if (HWY_UNLIKELY(seen.size > SeenWalls::kCapacity - kLanes)) CastAtWalls(lidar, seen, ranges);
}

void ObserveLanes(const Lidar& lidar, float robot_radius, int first, int last, Batch& batch) {
  const IntTag di;
  const Fan fan(lidar);
  SeenDiscs seen_discs;
  SeenWalls seen_walls;
  float* ranges = batch.ranges.data();
  for (int at = first * lidar.beam_stride; at < last * lidar.beam_stride; at += kLanes) {
    Store(Set(lidar.range), ranges + at);
  }
  for (int group = first - first % kLanes; group < last; group += kLanes) {
    const int group_first = std::max(group, first);
    const int group_last = std::min(group + kLanes, last);
    const std::uint32_t wanted =
        (0xFFU << (group_first - group)) & (0xFFU >> (group + kLanes - group_last));
    const Robot robots = GroupOfRobots(batch, group);
    const Robot facing_fan = FacingFan(robots, lidar);
    const auto rows = (Count() + hn::Set(di, group)) * hn::Set(di, lidar.beam_stride);
    F wall_distance2 = Set(1e18f);
    for (int wall = 0; wall < batch.num_wall_rows; ++wall) {
      const std::size_t at = EntryOf(batch, wall, static_cast<std::size_t>(group));
      LookAtWalls(lidar, fan, facing_fan, batch, at, rows, wanted, ranges, seen_walls);
      wall_distance2 = Min(wall_distance2, WallDistance2(robots, batch, at));
    }
    // Robots that were not asked keep what was found about them before.
    const hn::FixedTag<std::uint32_t, 8> du;
    alignas(32) std::uint32_t before[kLanes];
    hn::Store(hn::Load(du, batch.collided.data() + group), du, before);
    StoreMask(wall_distance2 < Set(robot_radius * robot_radius), batch.collided.data() + group);
    for (int index = group; index < group_first; ++index) {
      batch.collided[static_cast<std::size_t>(index)] = before[index - group];
    }
    LookAtDiscs(lidar, fan, facing_fan, group, Set(robot_radius), rows, wanted, seen_discs, batch);
    FindGoals(robots, group, batch);
    for (int index = group_first; index < group_last; ++index) {
      const auto slot = static_cast<std::size_t>(index);
      if (batch.num_boxes[slot] != 0 && InsideABox(batch, slot)) batch.collided[slot] = 0xFFFFFFFFU;
    }
  }
  CastAtDiscs(lidar, fan, Set(robot_radius), seen_discs, batch);
  CastAtWalls(lidar, seen_walls, ranges);
}

#else

// ---- The scalar twin: every beam on every obstacle ----

bool ObserveDiscs(const Lidar& lidar, const Robot& robot, const Batch& batch, std::size_t slot,
                  float robot_radius, float* ranges) {
  bool touches = false;
  for (int disc = 0; disc < batch.num_discs[slot]; ++disc) {
    const std::size_t from = EntryOf(batch, disc, slot);
    const float radius = batch.disc_radius[from];
    const BodyPoint centre =
        ToBody(robot, batch.disc_x[from] - robot.x, batch.disc_y[from] - robot.y);
    const float distance2 = Fma(centre.forward, centre.forward, centre.left * centre.left);
    touches |= TouchesDisc(distance2, radius, robot_radius);
    for (int at = 0; at < lidar.num_beams; ++at) {
      const auto beam = static_cast<std::size_t>(at);
      const float distance = RayToDisc(centre.forward, centre.left, radius * radius,
                                       lidar.fan_cos[beam], lidar.fan_sin[beam]);
      ranges[beam] = Nearer(distance, ranges[beam]);
    }
  }
  return touches;
}

void ObserveWall(const Lidar& lidar, const BodyWall& wall, float* ranges) {
  for (int at = 0; at < lidar.num_beams; ++at) {
    const auto beam = static_cast<std::size_t>(at);
    const float distance = wall.area == 0.0f
                               ? RayAlongWall(wall, lidar.fan_cos[beam], lidar.fan_sin[beam])
                               : RayToWall(wall, lidar.fan_cos[beam], lidar.fan_sin[beam]);
    ranges[beam] = Nearer(distance, ranges[beam]);
  }
}

void ObserveLanes(const Lidar& lidar, float robot_radius, int first, int last, Batch& batch) {
  for (int index = first; index < last; ++index) {
    const auto slot = static_cast<std::size_t>(index);
    const Robot robot = GroupOfRobots(batch, index);
    float* ranges = batch.ranges.data() + slot * static_cast<std::size_t>(lidar.beam_stride);
    std::fill_n(ranges, lidar.beam_stride, lidar.range);
    const Robot facing_fan = FacingFan(robot, lidar);
    bool touches = ObserveDiscs(lidar, facing_fan, batch, slot, robot_radius, ranges);
    touches |= InsideABox(batch, slot);
    for (int wall = 0; wall < batch.num_wall_rows; ++wall) {
      const std::size_t at = EntryOf(batch, wall, slot);
      ObserveWall(lidar, WallOfGroup(facing_fan, batch, at), ranges);
      touches |= WallDistance2(robot, batch, at) < robot_radius * robot_radius;
    }
    StoreMask(touches, batch.collided.data() + slot);
    FindGoals(robot, index, batch);
  }
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace fedgen
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fedgen {

void Observe(Kernel kernel, const Lidar& lidar, float robot_radius, int first, int last,
             Batch& batch) {
  FEDGEN_LANES_DISPATCH(kernel, ObserveLanes)(lidar, robot_radius, first, last, batch);
}

void Sense(Kernel kernel, const Lidar& lidar, float robot_radius, const World& world,
           const Pose& pose, Batch& batch) {
  batch.Place(0, world, pose, world.disturbance.key);
  FaceHeading(kernel, 0, 1, batch);
  Observe(kernel, lidar, robot_radius, 0, 1, batch);
}

}  // namespace fedgen
#endif
