// SPDX-License-Identifier: Apache-2.0
#include "fedgen/sim/observe_kernel.h"

#include <algorithm>
#include <bit>
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
// its first axis along the heading. A "group" is kLanes robots in neighbouring slots.

// ---- The formulas, the same for both kernels ----

/// Lanes hold one robot spread out, or a group.
struct Robot {
  F x, y, cos, sin;
};

HWY_INLINE Robot OneRobot(const Batch& batch, std::size_t slot) {
  return {Set(batch.x[slot]), Set(batch.y[slot]), Set(batch.cos[slot]), Set(batch.sin[slot])};
}

HWY_INLINE Robot GroupOfRobots(const Batch& batch, int slot) {
  return {Load(batch.x.data() + slot), Load(batch.y.data() + slot), Load(batch.cos.data() + slot),
          Load(batch.sin.data() + slot)};
}

struct BodyPoint {
  F forward, left;
};

HWY_INLINE BodyPoint ToBody(const Robot& robot, F dx, F dy) {
  return {Fma(dx, robot.cos, dy * robot.sin), NegFma(dx, robot.sin, dy * robot.cos)};
}

/// The smaller of two readings, where a negative number or a NaN means "not met". As bits read without
/// a sign, those are larger than every distance, so one integer minimum does it all.
HWY_INLINE F Nearer(F distance, F reading) {
#if HWY_TARGET == HWY_AVX2
  const hn::FixedTag<std::uint32_t, 8> du;
  return hn::BitCast(FloatTag(), hn::Min(hn::BitCast(du, distance), hn::BitCast(du, reading)));
#else
  return std::bit_cast<float>(
      std::min(std::bit_cast<std::uint32_t>(distance), std::bit_cast<std::uint32_t>(reading)));
#endif
}

/// Eq. 8: distance along beams (beam_cos, beam_sin) to a disc; NaN if it is missed, negative if it
/// lies behind.
HWY_INLINE F RayToDisc(BodyPoint centre, F radius2, F beam_cos, F beam_sin) {
  const F along = Fma(centre.forward, beam_cos, centre.left * beam_sin);
  const F across = NegFma(centre.forward, beam_sin, centre.left * beam_cos);
  return along - Sqrt(NegFma(across, across, radius2));
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

/// Beam x wall direction: positive where the beam runs towards the wall's line.
HWY_INLINE F Facing(const BodyWall& wall, F beam_cos, F beam_sin) {
  return NegFma(beam_sin, wall.dforward, beam_cos * wall.dleft);
}

/// Eq. 9: distance along beams to a wall; negative or NaN if it is missed.
HWY_INLINE F RayToWall(const BodyWall& wall, F beam_cos, F beam_sin) {
  // The beam meets the wall's line at area / facing, at numerator / facing of the wall's length.
  const F facing = Facing(wall, beam_cos, beam_sin);
  const F numerator = NegFma(wall.left, beam_cos, wall.forward * beam_sin);
  const Mask beside = Or(numerator < Set(0.0f), numerator > facing);
  return Select(beside, Set(-1.0f), wall.area / facing);
}

/// Eq. 9 where the robot stands on the wall's line (area 0): only beams along it meet it, at its nearer
/// end.
HWY_INLINE F RayAlongWall(const BodyWall& wall, F beam_cos, F beam_sin) {
  const F zero = Set(0.0f);
  const F end0 = Fma(wall.forward, beam_cos, wall.left * beam_sin);
  const F end1 = Fma(wall.dforward, beam_cos, Fma(wall.dleft, beam_sin, end0));
  const Mask meets = And(Facing(wall, beam_cos, beam_sin) == zero, Max(end0, end1) >= zero);
  return Select(meets, Max(Min(end0, end1), zero), Set(-1.0f));
}

/// Eq. 4 for discs: squared distance beyond both radii, negative if the robot touches the disc.
HWY_INLINE F DiscGap(F distance2, F radius, F robot_radius) {
  const F reach = radius + robot_radius;
  return NegFma(reach, reach, distance2);
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

/// Eq. 10 for a group: the vector to the goal's nearest point, its length, and whether it is reached.
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

/// Eq. 4 for the inside of boxes (their sides are walls). Few worlds have boxes, so this is plain code.
bool InsideABox(const World& world, float x, float y) {
  for (std::size_t box = 0; box < world.boxes.size(); ++box) {
    bool inside = true;  // left of all four counter-clockwise sides
    for (std::size_t side = 4 * box; side < 4 * box + 4; ++side) {
      const float cross = world.box_edges.dx[side] * (y - world.box_edges.y[side]) -
                          world.box_edges.dy[side] * (x - world.box_edges.x[side]);
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
// meet; the second casts eight beams at a time at each listed obstacle. Hardly a branch depends on where
// things are: one mispredicted branch costs as much as casting at three discs. The passes run over many
// robots before they take turns, because a list that is read right after it was written in pieces
// makes the processor wait for the pieces.

/// For each set of eight lanes, which lane comes first, second, ... (Highway 1.0 has Compress for this,
/// but g++ 12 copies its table to the stack at every call.)
struct CompressTable {
  constexpr CompressTable() {
    for (std::size_t mask = 0; mask < 256; ++mask) {
      int count = 0;
      for (std::size_t lane = 0; lane < 8; ++lane) {
        if ((mask >> lane & 1) != 0) lanes[mask][count++] = static_cast<std::uint8_t>(lane);
      }
    }
  }
  alignas(64) std::uint8_t lanes[256][8] = {};
};
inline constexpr CompressTable kCompressTable;

/// Some of eight lanes, to be written side by side.
class Chosen {
 public:
  HWY_INLINE explicit Chosen(std::uint32_t bits) : bits_(bits) {
    const hn::FixedTag<std::uint8_t, 8> d8;
    lanes_ = hn::PromoteTo(IntTag(), hn::Load(d8, kCompressTable.lanes[bits]));
  }
  HWY_INLINE int count() const { return __builtin_popcount(bits_); }
  /// Writes the chosen lanes from `to` on; eight numbers are overwritten.
  HWY_INLINE void Append(F v, float* to) const {
    const FloatTag d;
    hn::StoreU(hn::TableLookupLanes(v, hn::IndicesFromVec(d, lanes_)), d, to);
  }
  HWY_INLINE void Append(hn::Vec<IntTag> v, std::int32_t* to) const {
    const IntTag di;
    hn::StoreU(hn::TableLookupLanes(v, hn::IndicesFromVec(di, lanes_)), di, to);
  }

 private:
  std::uint32_t bits_;
  hn::Vec<IntTag> lanes_;
};

/// 0, 1, ..., 7.
HWY_INLINE hn::Vec<IntTag> Count() {
  alignas(32) static constexpr std::int32_t kCount[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  return hn::Load(IntTag(), kCount);
}

HWY_INLINE std::uint32_t Bits(Mask mask) {
  return static_cast<std::uint32_t>(hn::detail::BitsFromMask(mask));
}

/// The lidar as the first pass wants it, in registers or on the stack.
struct Fan {
  explicit HWY_INLINE Fan(const Lidar& lidar)
      : range(lidar.range * 1.0001f),
        scale(1.0f / lidar.spacing),
        // Rounding to nearest after adding not quite half a beam takes in every beam inside.
        first_offset(-lidar.first / lidar.spacing + 0.49f),
        last_offset(-lidar.first / lidar.spacing - 0.49f),
        last_beam(static_cast<float>(lidar.num_beams - 1)),
        wraps(lidar.wraps) {
    const auto last = static_cast<std::size_t>(lidar.num_beams - 1);
    first_cos = lidar.cos[0];
    first_sin = lidar.sin[0];
    last_cos = lidar.cos[last];
    last_sin = lidar.sin[last];
  }
  float range, scale, first_offset, last_offset, last_beam;
  float first_cos, first_sin, last_cos, last_sin;
  bool wraps;
};

/// Discs near enough and not beside the fan, in the body frame of their robots.
struct SeenDiscs {
  static constexpr int kCapacity = 384;
  static constexpr int kRoom = kCapacity + 2 * kLanes;

  alignas(32) float forward[kRoom];
  alignas(32) float left[kRoom];
  alignas(32) float radius[kRoom];
  alignas(32) std::int32_t row[kRoom];         // where the readings of its robot start
  alignas(32) std::int32_t first_beam[kRoom];  // that may meet the disc
  alignas(32) std::int32_t last_beam[kRoom];
  int size = 0;

  std::int32_t to_cast[kRoom];   // discs that beams may meet, by their place above
  std::int32_t to_widen[kRoom];  // those met by beams of more than one eight
};

/// Walls that some beam may meet, in the body frame of their robots.
struct SeenWalls {
  static constexpr int kCapacity = 256;
  static constexpr int kRoom = kCapacity + kLanes;

  float forward[kRoom], left[kRoom], dforward[kRoom], dleft[kRoom], area[kRoom];
  std::int32_t row[kRoom];
  int size = 0;
};

struct BeamInterval {
  F first, last;  // integers; first > last: none
};

/// The beams that may meet each of eight discs. The angles are approximate, with a margin that covers
/// it.
HWY_INLINE BeamInterval BeamsThatMayMeet(const Fan& fan, BodyPoint centre, F radius) {
  // Bearing by a quadratic approximation of atan on [0, 1], off by less than 0.004 rad.
  const F forward = Abs(centre.forward);
  const F left = Abs(centre.left);
  const F ratio = Min(forward, left) * hn::ApproximateReciprocal(Max(forward, left));
  F bearing = ratio * NegFma(Set(0.273f), ratio, Set(1.0583982f));
  bearing = Select(left > forward, Set(1.5707963f) - bearing, bearing);
  bearing = Select(centre.forward < Set(0.0f), Set(3.1415927f) - bearing, bearing);
  // Half width asin(q) <= q + (pi/2 - 1) q^3 with q = radius / distance < 1: a robot inside a disc has
  // collided and is not asked.
  const F distance2 = Fma(forward, forward, left * left);
  const F q = radius * hn::ApproximateReciprocalSqrt(distance2);
  F width = Fma(q * q, q * Set(0.5707964f), q + Set(0.006f));
  // A disc across the +-pi cut may meet beams at both ends of a wide fan: try them all.
  if (fan.wraps) width = Select(bearing + width > Set(3.14f), Set(7.0f), width);
  const F signed_bearing = hn::CopySign(bearing, centre.left);
  const F scale = Set(fan.scale);
  const F first = Fma(signed_bearing - width, scale, Set(fan.first_offset));
  const F last = Fma(signed_bearing + width, scale, Set(fan.last_offset));
  return {Round(Max(first, Set(0.0f))), Round(Min(last, Set(fan.last_beam)))};
}

/// Second pass: casts beams at the discs seen, and forgets them.
HWY_INLINE void CastAtDiscs(const Lidar& lidar, const Fan& fan, SeenDiscs& seen, float* ranges) {
  const IntTag di;
  int num_to_cast = 0;
  int num_to_widen = 0;
  const int size = seen.size;
  for (int disc = 0; disc < size; disc += kLanes) {
    const BodyPoint centre{Load(seen.forward + disc), Load(seen.left + disc)};
    const BeamInterval beams = BeamsThatMayMeet(fan, centre, Load(seen.radius + disc));
    // The last eight may reach past the list.
    const std::uint32_t listed = 0xFFU >> std::max(disc + kLanes - size, 0);
    const std::uint32_t may_meet = Bits(beams.first <= beams.last) & listed;
    // Integers up to 2^22 sit in the low bits of a float once 1.5 * 2^23 is added.
    const auto to_int = [&](F integer) HWY_ATTR {
      return hn::BitCast(di, integer + Set(12582912.0f)) - hn::Set(di, 0x4B400000);
    };
    const auto first = to_int(beams.first);
    const auto last = to_int(Max(beams.last, Set(0.0f)));
    hn::Store(first, di, seen.first_beam + disc);
    hn::Store(last, di, seen.last_beam + disc);
    const auto wide = hn::ShiftRight<3>(last) > hn::ShiftRight<3>(first);
    const auto places = Count() + hn::Set(di, disc);
    const Chosen to_cast(may_meet);
    to_cast.Append(places, seen.to_cast + num_to_cast);
    num_to_cast += to_cast.count();
    const Chosen to_widen(may_meet & Bits(hn::RebindMask(FloatTag(), wide)));
    to_widen.Append(places, seen.to_widen + num_to_widen);
    num_to_widen += to_widen.count();
  }

  const float* beam_cos = lidar.cos.data();
  const float* beam_sin = lidar.sin.data();
  const auto cast = [&](std::int32_t disc, int beam) HWY_ATTR {
    float* reading = ranges + seen.row[disc] + beam;
    const F radius = Set(seen.radius[disc]);
    const F distance = RayToDisc({Set(seen.forward[disc]), Set(seen.left[disc])}, radius * radius,
                                 Load(beam_cos + beam), Load(beam_sin + beam));
    Store(Nearer(distance, Load(reading)), reading);
  };
  for (int entry = 0; entry < num_to_cast; ++entry) {
    const std::int32_t disc = seen.to_cast[entry];
    cast(disc, seen.first_beam[disc] & ~(kLanes - 1));
  }
  for (int entry = 0; entry < num_to_widen; ++entry) {
    const std::int32_t disc = seen.to_widen[entry];
    int beam = (seen.first_beam[disc] & ~(kLanes - 1)) + kLanes;
    do {
      cast(disc, beam);
      beam += kLanes;
    } while (beam <= seen.last_beam[disc]);
  }
  seen.size = 0;
}

/// First pass over a group's discs. `rows` is where each robot's readings start; `wanted` has a bit for
/// each robot asked. Returns which robots touch a disc.
HWY_INLINE Mask LookAtDiscs(const Lidar& lidar, const Fan& fan, const Robot& robots,
                            const Batch& batch, int group, F robot_radius,
                            hn::Vec<IntTag> rows, std::uint32_t wanted, float* ranges,
                            SeenDiscs& seen) {
  // A disc is beside a fan of less than half a turn if it is right of the first beam or left of the
  // last one. Wider fans see everything: with zeros for the beams, nothing is ever beside them.
  const float narrow = fan.wraps ? 0.0f : 1.0f;
  const F first_cos = Set(narrow * fan.first_cos);
  const F first_sin = Set(narrow * fan.first_sin);
  const F last_cos = Set(narrow * fan.last_cos);
  const F last_sin = Set(narrow * fan.last_sin);
  const F range = Set(fan.range);
  F gap = Set(1.0f);
  int size = seen.size;
  const int num_rows = *std::max_element(batch.num_discs.begin() + group,
                                         batch.num_discs.begin() + group + kLanes);
  const std::ptrdiff_t stride = batch.capacity;
  const float* disc_x = batch.disc_x.data() + group;
  const float* disc_y = batch.disc_y.data() + group;
  const float* disc_radius = batch.disc_radius.data() + group;
  for (std::ptrdiff_t at = 0; at < num_rows * stride; at += stride) {
    const F dx = Load(disc_x + at) - robots.x;
    const F dy = Load(disc_y + at) - robots.y;
    const F radius = Load(disc_radius + at);
    const F distance2 = Fma(dx, dx, dy * dy);
    gap = Min(gap, DiscGap(distance2, radius, robot_radius));
    const BodyPoint centre = ToBody(robots, dx, dy);
    // Each is negative if the disc cannot be seen; radii are grown against rounding.
    const F grown = Fma(radius, Set(1.0001f), Set(1e-4f));
    const F left_of_first = Fma(centre.left, first_cos, NegFma(centre.forward, first_sin, grown));
    const F right_of_last = Fma(centre.forward, last_sin, NegFma(centre.left, last_cos, grown));
    const F reach = range + grown;
    const F in_reach = hn::MulSub(reach, reach, distance2);
    const Chosen seen_here(
        ~Bits(hn::MaskFromVec(Min(Min(left_of_first, right_of_last), in_reach))) & wanted);
    seen_here.Append(centre.forward, seen.forward + size);
    seen_here.Append(centre.left, seen.left + size);
    seen_here.Append(radius, seen.radius + size);
    seen_here.Append(rows, seen.row + size);
    size += seen_here.count();
    if (HWY_UNLIKELY(size > SeenDiscs::kCapacity)) {
      seen.size = size;
      CastAtDiscs(lidar, fan, seen, ranges);
      size = 0;
    }
  }
  seen.size = size;
  return gap < Set(0.0f);
}

/// Second pass: casts beams at the walls seen, and forgets them.
HWY_INLINE void CastAtWalls(const Lidar& lidar, SeenWalls& seen, float* ranges) {
  const float* beam_cos = lidar.cos.data();
  const float* beam_sin = lidar.sin.data();
  const int beam_stride = lidar.beam_stride;
  for (int entry = 0; entry < seen.size; ++entry) {
    const BodyWall wall{Set(seen.forward[entry]), Set(seen.left[entry]), Set(seen.dforward[entry]),
                        Set(seen.dleft[entry]), Set(seen.area[entry])};
    const bool on_its_line = seen.area[entry] == 0.0f;
    float* readings = ranges + seen.row[entry];
    for (int beam = 0; beam < beam_stride; beam += kLanes) {
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
  // The beam nearest to the wall's normal meets its line first. It is a beam at the edge of the fan,
  // unless the normal itself lies in the fan. Skip walls whose line that beam cannot reach.
  const F length = Load(batch.wall_length.data() + at);
  const F edges = Max(Facing(wall, Set(fan.first_cos), Set(fan.first_sin)),
                      Facing(wall, Set(fan.last_cos), Set(fan.last_sin)));
  const Mask normal_in_fan = Facing(wall, Set(lidar.centre_cos), Set(lidar.centre_sin)) >
                             Set(lidar.half_width_cos - 1e-3f) * length;
  const F best = Select(normal_in_fan, length, edges);
  const Chosen may_meet(Bits(wall.area <= Fma(Set(fan.range), best, Set(1e-3f))) & wanted);
  const int size = seen.size;
  may_meet.Append(wall.forward, seen.forward + size);
  may_meet.Append(wall.left, seen.left + size);
  may_meet.Append(wall.dforward, seen.dforward + size);
  may_meet.Append(wall.dleft, seen.dleft + size);
  may_meet.Append(wall.area, seen.area + size);
  may_meet.Append(rows, seen.row + size);
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
    const auto rows = (Count() + hn::Set(di, group)) * hn::Set(di, lidar.beam_stride);
    Mask touches = LookAtDiscs(lidar, fan, robots, batch, group, Set(robot_radius), rows, wanted,
                               ranges, seen_discs);
    F wall_distance2 = Set(1e18f);
    for (int wall = 0; wall < batch.num_wall_rows; ++wall) {
      const auto at = static_cast<std::size_t>(wall) * static_cast<std::size_t>(batch.capacity) +
                      static_cast<std::size_t>(group);
      LookAtWalls(lidar, fan, robots, batch, at, rows, wanted, ranges, seen_walls);
      wall_distance2 = Min(wall_distance2, WallDistance2(robots, batch, at));
    }
    touches = Or(touches, wall_distance2 < Set(robot_radius * robot_radius));
    StoreMask(touches, batch.collided.data() + group);
    FindGoals(robots, group, batch);
    for (int index = group_first; index < group_last; ++index) {
      const auto slot = static_cast<std::size_t>(index);
      const World& world = *batch.world[slot];
      if (!world.boxes.empty() && InsideABox(world, batch.x[slot], batch.y[slot])) {
        batch.collided[slot] = 0xFFFFFFFFU;
      }
    }
  }
  CastAtDiscs(lidar, fan, seen_discs, ranges);
  CastAtWalls(lidar, seen_walls, ranges);
}

#else

// ---- The scalar twin: every beam on every obstacle ----

bool ObserveDiscs(const Lidar& lidar, const Robot& robot, const DiscSet& discs, float robot_radius,
                  float* ranges) {
  bool touches = false;
  for (int index = 0; index < discs.size(); ++index) {
    const auto disc = static_cast<std::size_t>(index);
    const float dx = discs.x[disc] - robot.x;
    const float dy = discs.y[disc] - robot.y;
    const float radius = discs.radius[disc];
    touches |= DiscGap(Fma(dx, dx, dy * dy), radius, robot_radius) < 0.0f;
    const BodyPoint centre = ToBody(robot, dx, dy);
    for (int at = 0; at < lidar.num_beams; ++at) {
      const auto beam = static_cast<std::size_t>(at);
      ranges[beam] = Nearer(RayToDisc(centre, radius * radius, lidar.cos[beam], lidar.sin[beam]),
                            ranges[beam]);
    }
  }
  return touches;
}

void ObserveWall(const Lidar& lidar, const BodyWall& wall, float* ranges) {
  for (int at = 0; at < lidar.num_beams; ++at) {
    const auto beam = static_cast<std::size_t>(at);
    const float distance = wall.area == 0.0f
                               ? RayAlongWall(wall, lidar.cos[beam], lidar.sin[beam])
                               : RayToWall(wall, lidar.cos[beam], lidar.sin[beam]);
    ranges[beam] = Nearer(distance, ranges[beam]);
  }
}

void ObserveLanes(const Lidar& lidar, float robot_radius, int first, int last, Batch& batch) {
  for (int index = first; index < last; ++index) {
    const auto slot = static_cast<std::size_t>(index);
    const World& world = *batch.world[slot];
    const Robot robot = OneRobot(batch, slot);
    float* ranges = batch.ranges.data() + slot * static_cast<std::size_t>(lidar.beam_stride);
    std::fill_n(ranges, lidar.beam_stride, lidar.range);
    bool touches = ObserveDiscs(lidar, robot, world.discs, robot_radius, ranges);
    touches |= InsideABox(world, batch.x[slot], batch.y[slot]);
    for (int wall = 0; wall < batch.num_wall_rows; ++wall) {
      const std::size_t at =
          static_cast<std::size_t>(wall) * static_cast<std::size_t>(batch.capacity) + slot;
      ObserveWall(lidar, WallOfGroup(robot, batch, at), ranges);
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

}  // namespace fedgen
#endif
