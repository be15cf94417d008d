// SPDX-License-Identifier: Apache-2.0

// What a robot meets (Eq. 4, 8, 9, 10): the formulas of Observe, the same for both kernels.
//
// Include after <hwy/foreach_target.h>; it is compiled once per target.

#if defined(FEDGEN_SIM_OBSERVE_FORMULAS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEDGEN_SIM_OBSERVE_FORMULAS_INL_H_
#undef FEDGEN_SIM_OBSERVE_FORMULAS_INL_H_
#else
#define FEDGEN_SIM_OBSERVE_FORMULAS_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "fedgen/base/lanes-inl.h"
#include "fedgen/sim/batch.h"
#include "fedgen/sim/lidar.h"

HWY_BEFORE_NAMESPACE();
namespace fedgen {
namespace HWY_NAMESPACE {

// Notation: world frame (x, y); body frame (forward, left) with its origin at the robot's centre
// and its first axis along the heading; fan frame, the same along the centre of the lidar's fan. A
// "group" is kLanes robots in neighbouring slots.

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

HWY_INLINE BodyPoint OtherEnd(const BodyWall& wall) {
  return {wall.forward + wall.dforward, wall.left + wall.dleft};
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

/// Eq. 4 for the inside of boxes: left of all four sides, which run counter-clockwise and are the
/// first of the walls.
HWY_INLINE Mask InsideABox(const Robot& robots, const Batch& batch, int slot) {
  const F num_boxes = Load(batch.num_boxes.data() + slot);
  const auto most = static_cast<int>(
      *std::max_element(batch.num_boxes.data() + slot, batch.num_boxes.data() + slot + kLanes));
  F deepest = Set(0.0f);  // > 0 inside a box
  for (int box = 0; box < most; ++box) {
    // Not above 0 past a robot's own boxes, where its walls are.
    F depth = num_boxes - Set(static_cast<float>(box));
    for (int side = 4 * box; side < 4 * box + 4; ++side) {
      const std::size_t at = EntryOf(batch, side, static_cast<std::size_t>(slot));
      const F cross =
          Load(batch.wall_dx.data() + at) * (robots.y - Load(batch.wall_y.data() + at)) -
          Load(batch.wall_dy.data() + at) * (robots.x - Load(batch.wall_x.data() + at));
      depth = Min(depth, cross);
    }
    deepest = Max(deepest, depth);
  }
  return deepest > Set(0.0f);
}

}  // namespace HWY_NAMESPACE
}  // namespace fedgen
HWY_AFTER_NAMESPACE();

#endif  // FEDGEN_SIM_OBSERVE_FORMULAS_INL_H_
