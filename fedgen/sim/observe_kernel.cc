// SPDX-License-Identifier: Apache-2.0
#include "fedgen/sim/observe_kernel.h"

#include <algorithm>
#include <cmath>

#include "fedgen/sim/move_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fedgen/sim/observe_kernel.cc"
#include <hwy/foreach_target.h>
//
#include "fedgen/base/lanes-inl.h"
#include "fedgen/sim/chosen-inl.h"
#include "fedgen/sim/observe_formulas-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fedgen {
namespace HWY_NAMESPACE {

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
        half_width(lidar.half_width),
        wall_edge_cos(half_width < 1.5708f ? edge_cos : 0.0f),
        wall_edge_sin(half_width < 1.5708f ? edge_sin : 0.0f),
        wall_reach(1.1f * lidar.range + slack),
        cut(lidar.half_width > 3.1f ? 3.13f : 4.0f),
        wraps(lidar.wraps) {}
  float slack, range, scale, first_offset, last_offset, last_beam;
  float edge_cos, edge_sin;  // of the last beam; the first is its mirror image
  float half_width;          // rad
  // The edge again; zeros for a fan of more than half a turn, which no wall is beside.
  float wall_edge_cos, wall_edge_sin;
  float wall_reach;  // m, to a short wall
  float cut;         // rad, past which the sign of a bearing is not sure, if it matters
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
  static constexpr int kCapacity = 512;
  static constexpr int kRoom = kCapacity + 2 * kLanes;

  alignas(32) float forward[kRoom];
  alignas(32) float left[kRoom];
  alignas(32) float dforward[kRoom];
  alignas(32) float dleft[kRoom];
  alignas(32) float area[kRoom];
  alignas(32) std::int32_t row[kRoom];  // where the readings of its robot start
  int size = 0;

  // Worked out in the second pass.
  alignas(32) std::int32_t first_beam[kRoom];  // of the first eight cast
  alignas(32) std::int32_t last_beam[kRoom];   // that may meet the wall
};

/// Integers up to 2^22 sit in the low bits of a float once 1.5 * 2^23 is added.
HWY_INLINE hn::Vec<IntTag> ToInt(F integer) {
  const IntTag di;
  return hn::BitCast(di, integer + Set(12582912.0f)) - hn::Set(di, 0x4B400000);
}

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
/// near, or the robot too near to the wall's line, for bearings to be sure.
HWY_INLINE BeamInterval BeamsThatMayMeet(const Fan& fan, const BodyWall& wall) {
  const BodyPoint end0{wall.forward, wall.left};
  const BodyPoint end1 = OtherEnd(wall);
  const F distance0 = Fma(end0.forward, end0.forward, end0.left * end0.left);
  const F distance1 = Fma(end1.forward, end1.forward, end1.left * end1.left);
  const F length2 = Fma(wall.dforward, wall.dforward, wall.dleft * wall.dleft);
  const F bearing0 = RoughBearing(end0);
  const F bearing1 = RoughBearing(end1);
  const F from = hn::CopySign(bearing0, end0.left);
  const F to = hn::CopySign(bearing1, end1.left);
  const F margin = Set(0.008f);

  // A wall across the +-pi cut, from the left around to the right, may meet beams at either end of
  // the fan, or at both.
  const F zero = Set(0.0f);
  const Mask across_cut = And(from >= zero, to < zero);
  const Mask meets_left = And(across_cut, from - margin <= Set(fan.half_width));
  const Mask meets_right = And(across_cut, to + margin >= Set(-fan.half_width));

  const Mask near_end = Min(distance0, distance1) < Fma(Set(1e-5f), length2, Set(0.01f));
  const Mask near_line = wall.area * wall.area < Set(1e-8f) * length2 * Max(distance0, distance1);
  const Mask near_cut = Max(bearing0, bearing1) > Set(fan.cut);
  const Mask unsure = Or(Or(near_end, near_line), near_cut);
  return BeamsBetween(fan, Select(Or(unsure, meets_right), Set(-7.0f), from - margin),
                      Select(Or(unsure, meets_left), Set(7.0f), to + margin));
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
    const BeamInterval beams = BeamsThatMayMeet(fan, centre, distance2, radius);
    const auto first_four = hn::And(ToInt(beams.first), hn::Set(di, -kBeamsAtOnce));
    const auto last = ToInt(beams.last);
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
HWY_NOINLINE void CastAtWalls(const Lidar& lidar, const Fan& fan, SeenWalls& seen, float* ranges) {
  for (int entry = 0; entry < seen.size; entry += kLanes) {
    const BodyWall walls{Load(seen.forward + entry), Load(seen.left + entry),
                         Load(seen.dforward + entry), Load(seen.dleft + entry),
                         Load(seen.area + entry)};
    const IntTag di;
    const BeamInterval beams = BeamsThatMayMeet(fan, walls);
    hn::Store(hn::And(ToInt(beams.first), hn::Set(di, -kLanes)), di, seen.first_beam + entry);
    hn::Store(ToInt(beams.last), di, seen.last_beam + entry);
  }
  const float* beam_cos = lidar.fan_cos.data();
  const float* beam_sin = lidar.fan_sin.data();
  for (int entry = 0; entry < seen.size; ++entry) {
    const BodyWall wall{Set(seen.forward[entry]), Set(seen.left[entry]), Set(seen.dforward[entry]),
                        Set(seen.dleft[entry]), Set(seen.area[entry])};
    const bool on_its_line = seen.area[entry] == 0.0f;
    float* readings = ranges + seen.row[entry];
    const int last = seen.last_beam[entry];
    for (int beam = seen.first_beam[entry]; beam <= last; beam += kLanes) {
      const F c = Load(beam_cos + beam);
      const F s = Load(beam_sin + beam);
      const F distance =
          HWY_UNLIKELY(on_its_line) ? RayAlongWall(wall, c, s) : RayToWall(wall, c, s);
      Store(Nearer(distance, Load(readings + beam)), readings + beam);
    }
  }
  seen.size = 0;
}

/// First pass over a group's walls in the rows at `at`, `distance2` away. `wanted` has a bit for
/// each robot asked.
HWY_INLINE void LookAtWalls(const Lidar& lidar, const Fan& fan, const Robot& robots,
                            const Batch& batch, std::size_t at, F distance2, hn::Vec<IntTag> rows,
                            std::uint32_t wanted, float* ranges, SeenWalls& seen) {
  const BodyWall wall = WallOfGroup(robots, batch, at);
  const F length = Load(batch.wall_length.data() + at);
  // The beam nearest to the wall's normal meets its line first. It is a beam at the edge of the
  // fan, unless the normal itself lies in the fan. Skip walls whose line that beam cannot reach.
  const F edges = Fma(Abs(wall.dforward), Set(fan.edge_sin), wall.dleft * Set(fan.edge_cos));
  const Mask normal_in_fan = wall.dleft > Set(fan.edge_cos - 1e-3f) * length;
  const F best = Select(normal_in_fan, length, edges);
  const Mask line_in_reach = wall.area <= Fma(Set(fan.range), best, Set(fan.slack));
  // Skip walls out of range. A reading errs the more the smaller the angle at which its beam meets
  // the wall: at 0.01 rad by 1e-5 of itself, a small part of what wall_reach adds.
  const F extent = Abs(wall.forward) + Abs(wall.left) + length;
  const F reach = Fma(Set(1e-3f), length, Set(fan.wall_reach));
  const Mask far = And(distance2 > reach * reach, wall.area > Set(1e-2f) * length * extent);
  // Skip walls beside the fan: both ends are left of its last beam, or both right of its first.
  const BodyPoint other = OtherEnd(wall);
  const F edge_cos = Set(fan.wall_edge_cos);
  const F edge_sin = Set(fan.wall_edge_sin);
  const F before_last = Max(NegFma(wall.left, edge_cos, wall.forward * edge_sin),
                            NegFma(other.left, edge_cos, other.forward * edge_sin));
  const F after_first = Max(Fma(wall.left, edge_cos, wall.forward * edge_sin),
                            Fma(other.left, edge_cos, other.forward * edge_sin));
  const Mask beside = Min(before_last, after_first) < NegFma(Set(1e-4f), extent, Set(-fan.slack));
  const std::uint32_t seen_here = Bits(hn::AndNot(Or(far, beside), line_in_reach)) & wanted;
  if (seen_here == 0) return;
  const Chosen may_meet(seen_here);
  const int size = seen.size;
  may_meet.Append(wall.forward, seen.forward + size);
  may_meet.Append(wall.left, seen.left + size);
  may_meet.Append(wall.dforward, seen.dforward + size);
  may_meet.Append(wall.dleft, seen.dleft + size);
  may_meet.Append(wall.area, seen.area + size);
  may_meet.Append(rows, seen.row + size);
  seen.size = size + may_meet.count();
  if (HWY_UNLIKELY(seen.size > SeenWalls::kCapacity)) CastAtWalls(lidar, fan, seen, ranges);
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
      const F distance2 = WallDistance2(robots, batch, at);
      wall_distance2 = Min(wall_distance2, distance2);
      LookAtWalls(lidar, fan, facing_fan, batch, at, distance2, rows, wanted, ranges, seen_walls);
    }
    // Robots that were not asked keep what was found about them before.
    const hn::FixedTag<std::uint32_t, 8> du;
    alignas(32) std::uint32_t before[kLanes];
    hn::Store(hn::Load(du, batch.collided.data() + group), du, before);
    StoreMask(
        Or(wall_distance2 < Set(robot_radius * robot_radius), InsideABox(robots, batch, group)),
        batch.collided.data() + group);
    for (int index = group; index < group_first; ++index) {
      batch.collided[static_cast<std::size_t>(index)] = before[index - group];
    }
    LookAtDiscs(lidar, fan, facing_fan, group, Set(robot_radius), rows, wanted, seen_discs, batch);
    FindGoals(robots, group, batch);
  }
  CastAtDiscs(lidar, fan, Set(robot_radius), seen_discs, batch);
  CastAtWalls(lidar, fan, seen_walls, ranges);
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
    touches |= InsideABox(robot, batch, index);
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
