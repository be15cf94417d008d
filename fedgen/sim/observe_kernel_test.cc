// SPDX-License-Identifier: Apache-2.0
#include "fedgen/sim/observe_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <vector>

#include "fedgen/sim/move_kernel.h"

namespace fedgen {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kDegree = kPi / 180;
constexpr LidarOptions kAhead{1, 5, 0, 0};  // one beam, straight ahead

// Every fan that takes another path through a kernel: narrow, wide, wrapping around, one beam,
// fewer than eight, a remainder of eight, and many.
const std::vector<LidarOptions> kFans = {
    kSymmetricFan,         kOneSidedFan,         kAhead,
    {1, 5, 180, 180},      {7, 5, -90, 90},      {64, 5, -180, 180},
    {1000, 5, -60, 60},    {33, 5, 80, 180},     {24, 5, -180, -100},
    {20, 5, -135, 135},    {1000, 3, -180, 180}, {16, 5, 44.9, 45.1},
    {1024, 5, 20, 20.002},
};

struct View {
  std::vector<float> ranges;
  bool collided = false;
  bool arrived = false;
  float goal_distance = 0;
  float goal_forward = 0;
  float goal_left = 0;
};

struct Scene {
  World world;
  Pose pose;
};

View ViewOf(const Batch& batch, int slot_index, const Lidar& lidar) {
  const auto slot = static_cast<std::size_t>(slot_index);
  const float* ranges = batch.ranges.data() + slot * static_cast<std::size_t>(batch.beam_stride);
  return {{ranges, ranges + lidar.num_beams}, batch.collided[slot] != 0, batch.arrived[slot] != 0,
          batch.goal_distance[slot],          batch.goal_forward[slot],  batch.goal_left[slot]};
}

// Every robot in its own world, all in one batch.
std::vector<View> LookTogether(Kernel kernel, std::span<const Scene> scenes, const Lidar& lidar,
                               float robot_radius) {
  const int count = static_cast<int>(scenes.size());
  Batch batch(count, lidar);
  for (int slot = 0; slot < count; ++slot) {
    const Scene& scene = scenes[static_cast<std::size_t>(slot)];
    batch.Place(slot, scene.world, scene.pose, Key(0));
  }
  FaceHeading(kernel, 0, count, batch);
  Observe(kernel, lidar, robot_radius, 0, count, batch);
  std::vector<View> views;
  for (int slot = 0; slot < count; ++slot) views.push_back(ViewOf(batch, slot, lidar));
  return views;
}

View Look(Kernel kernel, const World& world, const Pose& pose, const Lidar& lidar,
          float robot_radius) {
  Batch batch(1, lidar);
  Sense(kernel, lidar, robot_radius, world, pose, batch);
  return ViewOf(batch, 0, lidar);
}

bool SameBits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

void ExpectSameBits(const View& a, const View& b) {
  EXPECT_EQ(a.collided, b.collided);
  EXPECT_EQ(a.arrived, b.arrived);
  EXPECT_TRUE(SameBits(a.goal_distance, b.goal_distance));
  EXPECT_TRUE(SameBits(a.goal_forward, b.goal_forward));
  EXPECT_TRUE(SameBits(a.goal_left, b.goal_left));
  if (a.collided) return;  // its ranges are unspecified
  for (std::size_t beam = 0; beam < a.ranges.size(); ++beam) {
    EXPECT_TRUE(SameBits(a.ranges[beam], b.ranges[beam]))
        << "beam " << beam << ": " << a.ranges[beam] << " and " << b.ranges[beam];
  }
}

// What both kernels see; they must agree bit for bit.
View LookTwice(const World& world, const Pose& pose, const Lidar& lidar, float robot_radius) {
  const View scalar = Look(Kernel::kScalar, world, pose, lidar, robot_radius);
  const View simd = Look(BestKernel(), world, pose, lidar, robot_radius);
  ExpectSameBits(scalar, simd);
  return simd;
}

// The same for robots that share a batch: 1 to 40 of them, trial by trial, with each of the fans.
template <typename DrawScene>
void ExpectSameBitsTogether(int num_trials, const std::vector<LidarOptions>& fans,
                            float robot_radius, const DrawScene& draw_scene) {
  int free = 0;
  int total = 0;
  for (int trial = 0; trial < num_trials; ++trial) {
    const LidarOptions& fan = fans[static_cast<std::size_t>(trial) % fans.size()];
    const Lidar lidar(fan);
    std::vector<Scene> scenes;
    for (int slot = 0; slot <= trial * 7 % 40; ++slot) {
      const auto t = static_cast<std::uint64_t>(trial);
      scenes.push_back(draw_scene(Key(42).Fork(t).Fork(static_cast<std::uint64_t>(slot)), fan));
    }
    const std::vector<View> scalar = LookTogether(Kernel::kScalar, scenes, lidar, robot_radius);
    const std::vector<View> simd = LookTogether(BestKernel(), scenes, lidar, robot_radius);
    for (std::size_t slot = 0; slot < scenes.size(); ++slot) {
      ExpectSameBits(scalar[slot], simd[slot]);
      if (::testing::Test::HasFailure()) {
        FAIL() << "trial " << trial << ", fan " << trial % static_cast<int>(fans.size())
               << ", slot " << slot << ", robot at " << scenes[slot].pose.x << ", "
               << scenes[slot].pose.y << ", " << scenes[slot].pose.heading;
      }
      ++total;
      free += simd[slot].collided ? 0 : 1;
    }
  }
  EXPECT_GT(free, total / 5) << "too few readings were compared";
}

float RangeAhead(const World& world, const Pose& pose = {}) {
  return LookTwice(world, pose, Lidar(kAhead), 0.01F).ranges[0];
}

// ---- Cases with a closed form (Eq. 8 and 9) ----

World WithDisc(float x, float y, float radius) {
  World world;
  world.discs.Add(x, y, radius);
  return world;
}

World WithWall(float x0, float y0, float x1, float y1) {
  World world;
  world.walls.Add(x0, y0, x1, y1);
  return world;
}

TEST(Observe, ReportsTheRangeWhenNothingIsHit) {
  const World empty;
  for (const LidarOptions& fan : kFans) {
    for (const float range : LookTwice(empty, {1, 2, 3}, Lidar(fan), 0.27F).ranges) {
      EXPECT_EQ(range, static_cast<float>(fan.range));
    }
  }
}

TEST(Observe, HitsADiscAheadAtCentreDistanceMinusRadius) {
  EXPECT_FLOAT_EQ(RangeAhead(WithDisc(3, 0, 1)), 2.0F);
  EXPECT_FLOAT_EQ(RangeAhead(WithDisc(3, 0.6F, 1)), 2.2F);  // sqrt(1 - 0.36) = 0.8
}

TEST(Observe, DoesNotSeeADiscBehind) { EXPECT_EQ(RangeAhead(WithDisc(-3, 0, 1)), 5.0F); }

TEST(Observe, DoesNotSeeADiscBeyondItsRange) {
  EXPECT_EQ(RangeAhead(WithDisc(6.5F, 0, 1)), 5.0F);
  EXPECT_FLOAT_EQ(RangeAhead(WithDisc(5.5F, 0, 1)), 4.5F);
}

TEST(Observe, CountsATangentAsAHit) {
  EXPECT_EQ(RangeAhead(WithDisc(3, 1, 1)), 3.0F);
  EXPECT_EQ(RangeAhead(WithDisc(3, -1, 1)), 3.0F);
  EXPECT_EQ(RangeAhead(WithDisc(3, std::nextafter(1.0F, 2.0F), 1)), 5.0F);
}

TEST(Observe, SeesTheNearerOfOverlappingDiscs) {
  World world = WithDisc(3, 0, 1);
  world.discs.Add(2.5F, 0.1F, 1);
  world.discs.Add(3.5F, 0, 2);
  EXPECT_FLOAT_EQ(RangeAhead(world), 1.5F);
}

TEST(Observe, HitsAWallWhereTheBeamCrossesIt) {
  EXPECT_FLOAT_EQ(RangeAhead(WithWall(2, -1, 2, 1)), 2.0F);
  EXPECT_FLOAT_EQ(RangeAhead(WithWall(2, 1, 2, -1)), 2.0F);  // either way round
  EXPECT_FLOAT_EQ(RangeAhead(WithWall(1, -1, 3, 1)), 2.0F);  // at 45 degrees
  EXPECT_EQ(RangeAhead(WithWall(-2, -1, -2, 1)), 5.0F);      // behind
  EXPECT_EQ(RangeAhead(WithWall(2, 0.5F, 2, 1)), 5.0F);      // beside
}

TEST(Observe, HitsAWallAtItsVeryEnds) {
  EXPECT_FLOAT_EQ(RangeAhead(WithWall(2, 0, 2, 1)), 2.0F);
  EXPECT_FLOAT_EQ(RangeAhead(WithWall(2, -1, 2, 0)), 2.0F);
  EXPECT_EQ(RangeAhead(WithWall(2, 1e-6F, 2, 1)), 5.0F);
}

TEST(Observe, MeetsTheNearerEndOfAWallItLooksAlong) {
  EXPECT_FLOAT_EQ(RangeAhead(WithWall(2, 0, 4, 0)), 2.0F);
  EXPECT_FLOAT_EQ(RangeAhead(WithWall(4, 0, 2, 0)), 2.0F);
  EXPECT_EQ(RangeAhead(WithWall(-4, 0, -2, 0)), 5.0F);
  EXPECT_EQ(RangeAhead(WithWall(6, 0, 8, 0)), 5.0F);
}

TEST(Observe, PassesAWallThatRunsBesideTheBeam) {
  EXPECT_EQ(RangeAhead(WithWall(-4, 0.5F, 4, 0.5F)), 5.0F);
}

TEST(Observe, SeesTheNearSideOfABox) {
  World world;
  world.AddBox({3, 0, 1, 0.5F, 0});
  EXPECT_FLOAT_EQ(RangeAhead(world), 2.0F);
  World turned;  // a square on its corner: half its diagonal nearer
  turned.AddBox({3, 0.1F, 1, 1, static_cast<float>(kPi / 4)});
  EXPECT_NEAR(RangeAhead(turned), 3 - std::numbers::sqrt2 + 0.1, 1e-5);
}

TEST(Observe, LooksAlongItsHeading) {
  const World world = WithDisc(1, 5, 0.5F);
  EXPECT_FLOAT_EQ(RangeAhead(world, {1, 2, static_cast<float>(kPi / 2)}), 2.5F);
  EXPECT_FLOAT_EQ(RangeAhead(world, {1, 8, static_cast<float>(-kPi / 2)}), 2.5F);
  EXPECT_EQ(RangeAhead(world, {1, 2, 0}), 5.0F);
}

TEST(Observe, CountsItsBeamsCounterClockwise) {
  const Lidar lidar({3, 5, -90, 90});
  const View view = LookTwice(WithDisc(0, 3, 1), {}, lidar, 0.1F);  // to the left
  EXPECT_EQ(view.ranges[0], 5.0F);
  EXPECT_EQ(view.ranges[1], 5.0F);
  EXPECT_FLOAT_EQ(view.ranges[2], 2.0F);
}

TEST(Observe, WritesTheAskedSlotsOnly) {
  const World world = WithDisc(3, 0, 1);
  const Lidar lidar(kSymmetricFan);
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    Batch batch(32, lidar);
    for (int slot = 0; slot < 32; ++slot) batch.Place(slot, world, {}, Key(0));
    FaceHeading(kernel, 0, 32, batch);
    std::fill(batch.ranges.begin(), batch.ranges.end(), -1.0F);
    Observe(kernel, lidar, 0.27F, 9, 18, batch);
    for (int slot = 0; slot < 32; ++slot) {
      for (int beam = 0; beam < lidar.num_beams; ++beam) {
        const float range = batch.ranges[static_cast<std::size_t>(slot * lidar.beam_stride + beam)];
        EXPECT_EQ(range >= 0, slot >= 9 && slot < 18) << "slot " << slot;
      }
    }
  }
}

// ---- Collision (Eq. 4) ----

bool Collides(const World& world, const Pose& pose, float robot_radius) {
  return LookTwice(world, pose, Lidar(kSymmetricFan), robot_radius).collided;
}

TEST(Observe, CollidesWhenTheDiscsOverlap) {
  const World world = WithDisc(1, 0, 0.5F);
  EXPECT_TRUE(Collides(world, {}, 0.51F));
  EXPECT_FALSE(Collides(world, {}, 0.5F));  // touching from outside is not nearer than both radii
  EXPECT_FALSE(Collides(world, {}, 0.49F));
}

TEST(Observe, CollidesInsideABox) {
  World world;
  world.AddBox({0, 0, 3, 2, 0.3F});
  EXPECT_TRUE(Collides(world, {0.1F, 0.2F, 0}, 0.05F));  // far from every side
  EXPECT_FALSE(Collides(world, {4, 0, 0}, 0.05F));
}

// Neighbours in a batch have their boxes in the same rows: four walls around a robot are no box,
// though they stand where its neighbour's does.
TEST(Observe, IsFreeBetweenFourWallsBesideARobotInABox) {
  Scene boxed;
  boxed.world.AddBox({0, 0, 1, 1, 0});
  Scene walled;
  const WallSet& sides = boxed.world.box_edges;
  for (std::size_t side = 0; side < 4; ++side) {
    walled.world.walls.Add(sides.x[side], sides.y[side], sides.x[side] + sides.dx[side],
                           sides.y[side] + sides.dy[side]);
  }
  Scene both = walled;
  both.world.AddBox({5, 0, 1, 1, 0});
  const std::vector<Scene> scenes = {walled, boxed, both, boxed};
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    const std::vector<View> views = LookTogether(kernel, scenes, Lidar(kSymmetricFan), 0.1F);
    EXPECT_FALSE(views[0].collided);
    EXPECT_TRUE(views[1].collided);
    EXPECT_FALSE(views[2].collided);
    EXPECT_TRUE(views[3].collided);
  }
}

TEST(Observe, CollidesWithBothSidesOfAWallButNotBeyondItsEnds) {
  const World world = WithWall(-1, 0, 1, 0);
  EXPECT_TRUE(Collides(world, {0, 0.2F, 0}, 0.27F));
  EXPECT_TRUE(Collides(world, {0, -0.2F, 0}, 0.27F));
  EXPECT_TRUE(Collides(world, {1.2F, 0.1F, 0}, 0.27F));
  EXPECT_FALSE(Collides(world, {1.2F, 0.2F, 0}, 0.27F));  // 0.2 sqrt 2 = 0.283
}

// ---- Goal (Eq. 10) ----

TEST(Observe, FindsAHalfPlaneAlongItsNormal) {
  World world;
  world.goal.offset = 10;
  const View view = LookTwice(world, {2, 7, 0}, Lidar(kAhead), 0.27F);
  EXPECT_FALSE(view.arrived);
  EXPECT_FLOAT_EQ(view.goal_distance, 3.0F);
  EXPECT_NEAR(view.goal_forward, 0, 1e-6);  // heads along x, the goal is to the left
  EXPECT_FLOAT_EQ(view.goal_left, 3.0F);
  const View up = LookTwice(world, {2, 7, static_cast<float>(kPi / 2)}, Lidar(kAhead), 0.27F);
  EXPECT_FLOAT_EQ(up.goal_forward, 3.0F);
  EXPECT_NEAR(up.goal_left, 0, 1e-6);
  EXPECT_TRUE(LookTwice(world, {2, 10, 0}, Lidar(kAhead), 0.27F).arrived);
  EXPECT_FALSE(LookTwice(world, {2, std::nextafter(10.0F, 0.0F), 0}, Lidar(kAhead), 0.27F).arrived);
}

TEST(Observe, FindsADiscAtItsRim) {
  World world;
  world.goal.kind = Goal::Kind::kDisc;
  world.goal.x = 3;
  world.goal.y = 4;
  world.goal.radius = 1;
  const View view = LookTwice(world, {0, 0, 0}, Lidar(kAhead), 0.27F);
  EXPECT_FALSE(view.arrived);
  EXPECT_FLOAT_EQ(view.goal_distance, 4.0F);
  EXPECT_FLOAT_EQ(view.goal_forward, 2.4F);
  EXPECT_FLOAT_EQ(view.goal_left, 3.2F);
  const View inside = LookTwice(world, {3.5F, 4, 1}, Lidar(kAhead), 0.27F);
  EXPECT_TRUE(inside.arrived);
  EXPECT_EQ(inside.goal_distance, 0.0F);
  EXPECT_EQ(inside.goal_forward, 0.0F);
  EXPECT_EQ(inside.goal_left, 0.0F);
  EXPECT_TRUE(LookTwice(world, {3, 4, 1}, Lidar(kAhead), 0.27F).arrived);  // at its very centre
}

TEST(Observe, HasArrivedAtTheDepthWhileTheDistanceIsToTheRegion) {
  World world;
  world.goal.depth = 0.125F;
  const View shallow = LookTwice(world, {0, 10.1F, 0}, Lidar(kAhead), 0.27F);
  EXPECT_FALSE(shallow.arrived);
  EXPECT_EQ(shallow.goal_distance, 0.0F);
  EXPECT_TRUE(LookTwice(world, {0, 10.125F, 0}, Lidar(kAhead), 0.27F).arrived);
  world.goal.kind = Goal::Kind::kDisc;
  world.goal.radius = 1;
  EXPECT_FALSE(LookTwice(world, {0.9F, 0, 0}, Lidar(kAhead), 0.27F).arrived);
  EXPECT_TRUE(LookTwice(world, {0.875F, 0, 0}, Lidar(kAhead), 0.27F).arrived);
}

// ---- Random scenes ----

// Draws addressed by (key, variable).
struct Dice {
  Key key;
  std::uint64_t next = 0;
  double Uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(UnitFloat(key.Block(next++)[0]));
  }
  float UniformFloat(double low, double high) { return static_cast<float>(Uniform(low, high)); }
  int Int(int low, int high) { return UniformInt(key.Block(next++)[0], low, high); }
};

double BeamAngle(const LidarOptions& fan, int beam) {
  const double spacing = fan.beams > 1 ? (fan.to_degrees - fan.from_degrees) / (fan.beams - 1) : 0;
  return (fan.from_degrees + spacing * beam) * kDegree;
}

// Up to 70 discs, 20 walls and 5 boxes, and a robot among or outside of them.
Scene DrawScene(Key key) {
  Dice dice{key};
  Scene scene;
  const int num_discs = dice.Int(0, 70);
  for (int disc = 0; disc < num_discs; ++disc) {
    scene.world.discs.Add(dice.UniformFloat(-6, 6), dice.UniformFloat(-6, 6),
                          dice.UniformFloat(0.05, 0.6));
  }
  const int num_walls = dice.Int(0, 20);
  for (int wall = 0; wall < num_walls; ++wall) {
    scene.world.walls.Add(dice.UniformFloat(-6, 6), dice.UniformFloat(-6, 6),
                          dice.UniformFloat(-6, 6), dice.UniformFloat(-6, 6));
  }
  const int num_boxes = dice.Int(0, 5);
  for (int box = 0; box < num_boxes; ++box) {
    scene.world.AddBox({dice.UniformFloat(-6, 6), dice.UniformFloat(-6, 6),
                        dice.UniformFloat(0.1, 1), dice.UniformFloat(0.1, 1),
                        dice.UniformFloat(-4, 4)});
  }
  scene.world.goal.kind = dice.Int(0, 1) == 0 ? Goal::Kind::kHalfPlane : Goal::Kind::kDisc;
  scene.world.goal.offset = dice.UniformFloat(-5, 5);
  scene.world.goal.x = dice.UniformFloat(-5, 5);
  scene.pose = {dice.UniformFloat(-8, 8), dice.UniformFloat(-8, 8), dice.UniformFloat(-7, 7)};
  return scene;
}

// A beam by the book, in double. `doubtful` if it passes so near to a tangent, to a wall's end or
// so flat along a wall that rounding to float may move the reading by more than 1e-4: a disc is
// grazed within 2e-4, an end passed within 1e-4, a wall met at less than 0.03 rad.
struct Reading {
  double range;
  bool doubtful = false;
};

Reading CastNaively(const World& world, double x, double y, double angle, double max_range) {
  const double bx = std::cos(angle);
  const double by = std::sin(angle);
  Reading reading{max_range};
  for (std::size_t disc = 0; disc < static_cast<std::size_t>(world.discs.size()); ++disc) {
    const double dx = world.discs.x[disc] - x;
    const double dy = world.discs.y[disc] - y;
    const double r = world.discs.radius[disc];
    const double along = dx * bx + dy * by;
    const double across = std::fabs(dy * bx - dx * by);
    if (along < 0 || along - r > max_range) continue;
    if (std::fabs(across - r) < 2e-4) reading.doubtful = true;
    if (across > r) continue;
    reading.range = std::min(reading.range, along - std::sqrt(r * r - across * across));
  }
  const auto cast_segment = [&](double x0, double y0, double x1, double y1) {
    const double ex = x1 - x0;
    const double ey = y1 - y0;
    const double length = std::hypot(ex, ey);
    const double line_distance = std::fabs((x0 - x) * ey - (y0 - y) * ex) / length;
    const double d = bx * ey - by * ex;
    if (std::fabs(d) < 0.03 * length) {
      if (line_distance < 0.03 * max_range) reading.doubtful = true;
      return;
    }
    const double distance = ((x0 - x) * ey - (y0 - y) * ex) / d;
    const double share = ((x0 - x) * by - (y0 - y) * bx) / d;
    if (distance < 0 || distance > max_range) return;
    const double overhang = std::max(-share, share - 1) * length;  // m past the nearer end
    if (std::fabs(overhang) < 1e-4) reading.doubtful = true;
    if (overhang <= 0) reading.range = std::min(reading.range, distance);
  };
  for (std::size_t wall = 0; wall < static_cast<std::size_t>(world.walls.size()); ++wall) {
    const double x0 = world.walls.x[wall];
    const double y0 = world.walls.y[wall];
    cast_segment(x0, y0, x0 + world.walls.dx[wall], y0 + world.walls.dy[wall]);
  }
  for (const Box& box : world.boxes) {
    const double c = std::cos(static_cast<double>(box.heading));
    const double s = std::sin(static_cast<double>(box.heading));
    double corner_x[5];
    double corner_y[5];
    for (int corner = 0; corner <= 4; ++corner) {
      const double along = (corner == 1 || corner == 2 ? -1 : 1) * static_cast<double>(box.half_x);
      const double across = (corner >= 2 && corner != 4 ? -1 : 1) * static_cast<double>(box.half_y);
      corner_x[corner] = box.x + c * along - s * across;
      corner_y[corner] = box.y + s * along + c * across;
    }
    for (int side = 0; side < 4; ++side) {
      cast_segment(corner_x[side], corner_y[side], corner_x[side + 1], corner_y[side + 1]);
    }
  }
  return reading;
}

TEST(Observe, ReadsWhatTheNaiveOracleReads) {
  int compared = 0;
  int doubtful = 0;
  int hits = 0;
  for (std::uint64_t trial = 0; trial < 3000; ++trial) {
    const Scene scene = DrawScene(Key(41).Fork(trial));
    const LidarOptions& fan = kFans[trial % kFans.size()];
    const View view = Look(BestKernel(), scene.world, scene.pose, Lidar(fan), 0.1F);
    if (view.collided) continue;
    const int stride = fan.beams > 100 ? 37 : 1;  // of a thousand beams, some
    for (int beam = 0; beam < fan.beams; beam += stride) {
      const Reading expected = CastNaively(scene.world, scene.pose.x, scene.pose.y,
                                           scene.pose.heading + BeamAngle(fan, beam), fan.range);
      ++compared;
      doubtful += expected.doubtful ? 1 : 0;
      hits += expected.range < fan.range ? 1 : 0;
      if (expected.doubtful) continue;
      ASSERT_NEAR(view.ranges[static_cast<std::size_t>(beam)], expected.range, 1e-4)
          << "trial " << trial << ", beam " << beam;
    }
  }
  EXPECT_GT(compared, 20000);
  EXPECT_GT(hits, compared / 3);
  EXPECT_LT(doubtful, compared / 5);
}

TEST(Observe, GivesTheSameBitsInBothKernelsInRandomScenes) {
  ExpectSameBitsTogether(120, kFans, 0.05F,
                         [](Key key, const LidarOptions& /*fan*/) { return DrawScene(key); });
}

// Where the SIMD kernel's bounds are tight: the robot almost touches discs of any size, discs are
// grazed by a beam or lie at the edge of the fan or of the range, walls point at the robot.
Scene DrawTightScene(Key key, const LidarOptions& fan) {
  Dice dice{key};
  Scene scene;
  scene.pose = {dice.UniformFloat(-9, 9), dice.UniformFloat(-9, 9), dice.UniformFloat(-7, 7)};
  const auto place = [&](double distance, double bearing, double radius) {
    const double angle = scene.pose.heading + bearing;
    scene.world.discs.Add(static_cast<float>(scene.pose.x + distance * std::cos(angle)),
                          static_cast<float>(scene.pose.y + distance * std::sin(angle)),
                          static_cast<float>(radius));
  };
  for (int disc = dice.Int(1, 12); disc > 0; --disc) {
    const double radius = std::pow(10.0, dice.Uniform(-2, 2));
    const double beam = BeamAngle(fan, dice.Int(0, fan.beams - 1));
    const double edge = (dice.Int(0, 1) == 0 ? fan.from_degrees : fan.to_degrees) * kDegree;
    const double near = radius + 0.0011 + std::pow(10.0, dice.Uniform(-6, 0));
    const double far = (radius + fan.range) * (1 + dice.Uniform(-1e-4, 2e-4));
    const double between = dice.Uniform(near, std::max(near, radius + fan.range));
    // Grazed by a beam, from either side, to within 1e-6 of its radius.
    const double grazing =
        std::asin(radius / between) * (1 + dice.Uniform(-1e-6, 1e-6)) * (dice.Int(0, 1) * 2 - 1);
    switch (dice.Int(0, 4)) {
      case 0:
        place(near, dice.Uniform(-kPi, kPi), radius);
        break;
      case 1:
        place(far, beam, radius);
        break;
      case 2:
        place(between, beam + grazing, radius);
        break;
      case 3:
        place(between, edge + grazing, radius);
        break;
      default:
        place(between, kPi + dice.Uniform(-0.1, 0.1), radius);
    }
  }
  for (int wall = dice.Int(0, 6); wall > 0; --wall) {
    // From a point on a beam, in a direction that may be the beam's own.
    const double bearing =
        scene.pose.heading + (dice.Int(0, 1) == 0 ? BeamAngle(fan, dice.Int(0, fan.beams - 1))
                                                  : dice.Uniform(-kPi, kPi));
    const double distance =
        dice.Int(0, 2) == 0 ? fan.range * (1 + dice.Uniform(-1e-4, 2e-4)) : dice.Uniform(0.01, 6);
    const double direction =
        bearing + (dice.Int(0, 1) == 0 ? dice.Uniform(-1e-4, 1e-4) : dice.Uniform(-kPi, kPi));
    const double length = std::pow(10.0, dice.Uniform(-2, 2));
    const double x0 = scene.pose.x + distance * std::cos(bearing);
    const double y0 = scene.pose.y + distance * std::sin(bearing);
    scene.world.walls.Add(static_cast<float>(x0), static_cast<float>(y0),
                          static_cast<float>(x0 + length * std::cos(direction)),
                          static_cast<float>(y0 + length * std::sin(direction)));
  }
  return scene;
}

TEST(Observe, GivesTheSameBitsInBothKernelsWhereBoundsAreTight) {
  ExpectSameBitsTogether(400, kFans, 0.001F, DrawTightScene);
}

// Where the SIMD kernel leaves out walls: corners of boxes at the edges of the fan, on a beam,
// straight behind, at the end of the range and where the kernel ends it, or a hair from the robot;
// sides that point at the robot; boxes as thin as they may be, and boxes around the robot.
Scene DrawSkippedBoxes(Key key, const LidarOptions& fan) {
  Dice dice{key};
  Scene scene;
  // Near the origin coordinates are finest.
  const double place = dice.Int(0, 1) == 0 ? 0.01 : 9;
  scene.pose = {dice.UniformFloat(-place, place), dice.UniformFloat(-place, place),
                dice.UniformFloat(-7, 7)};
  const auto tiny = [&] { return std::pow(10.0, dice.Uniform(-9, -2)) * (dice.Int(0, 1) * 2 - 1); };
  for (int box = dice.Int(1, 5); box > 0; --box) {
    const double bearings[] = {fan.from_degrees * kDegree, fan.to_degrees * kDegree, kPi,
                               BeamAngle(fan, dice.Int(0, fan.beams - 1)), dice.Uniform(-kPi, kPi)};
    const double distances[] = {fan.range, 1.1 * fan.range, 0.002, dice.Uniform(0.05, fan.range),
                                dice.Uniform(0, 4 * fan.range)};
    const double angle = scene.pose.heading + bearings[dice.Int(0, 4)] + tiny();
    const double distance = distances[dice.Int(0, 4)] * (1 + tiny());
    const double side =
        angle + (dice.Int(0, 2) == 0 ? dice.Uniform(-kPi, kPi) : dice.Int(0, 3) * kPi / 2 + tiny());
    const double half_x = std::pow(10.0, dice.Uniform(-3, 1));
    const double half_y = std::pow(10.0, dice.Uniform(-3, 1));
    const double c = std::cos(side);
    const double s = std::sin(side);
    scene.world.AddBox(
        {static_cast<float>(scene.pose.x + distance * std::cos(angle) + c * half_x - s * half_y),
         static_cast<float>(scene.pose.y + distance * std::sin(angle) + s * half_x + c * half_y),
         static_cast<float>(half_x), static_cast<float>(half_y), static_cast<float>(side)});
  }
  return scene;
}

// To within rounding: walls that begin on a beam at the very end of its range and lead away, and
// walls beyond the range that lie along a beam, where a reading is hardly more than rounding.
Scene DrawSkippedWalls(Key key, const LidarOptions& fan) {
  Dice dice{key};
  Scene scene;
  scene.pose = {dice.UniformFloat(-2, 2), dice.UniformFloat(-2, 2), dice.UniformFloat(-7, 7)};
  for (int wall = dice.Int(1, 8); wall > 0; --wall) {
    const double angle = scene.pose.heading + BeamAngle(fan, dice.Int(0, fan.beams - 1));
    const bool along = dice.Int(0, 1) == 0;
    const double distance =
        fan.range * (along ? dice.Uniform(1.2, 4) : 1 + dice.Uniform(-3e-7, 3e-7));
    const double direction =
        angle + (along ? dice.Uniform(-3e-7, 3e-7) : dice.Uniform(-kPi / 2, kPi / 2));
    const double length = std::pow(10.0, dice.Uniform(-2, 2));
    const double x0 = scene.pose.x + distance * std::cos(angle);
    const double y0 = scene.pose.y + distance * std::sin(angle);
    scene.world.walls.Add(static_cast<float>(x0), static_cast<float>(y0),
                          static_cast<float>(x0 + length * std::cos(direction)),
                          static_cast<float>(y0 + length * std::sin(direction)));
  }
  return scene;
}

TEST(Observe, GivesTheSameBitsInBothKernelsWhereWallsAreSkipped) {
  std::vector<LidarOptions> fans = kFans;
  // Half a turn, a little less and more; nearly a whole one.
  for (const double half : {90.0, 89.99, 90.01, 91.0, 170.0, 177.5, 179.0}) {
    fans.push_back({60, 8, -half, half});
    fans.push_back({250, 8, -half, half});
  }
  ExpectSameBitsTogether(800, fans, 0.001F, DrawSkippedBoxes);
  ExpectSameBitsTogether(800, fans, 0.001F, DrawSkippedWalls);
}

// Whole numbers and right angles: exact zeros, ties, beams along walls.
TEST(Observe, GivesTheSameBitsInBothKernelsOnAGrid) {
  const std::vector<LidarOptions> fans = {
      kAhead, {3, 5, -90, 90}, {5, 5, -180, 180}, {9, 4, -180, 180}};
  ExpectSameBitsTogether(400, fans, 0.27F, [](Key key, const LidarOptions& /*fan*/) {
    Dice dice{key};
    const auto grid = [&] { return static_cast<float>(dice.Int(-4, 4)); };
    Scene scene;
    for (int disc = dice.Int(0, 3); disc > 0; --disc) {
      const float x = grid();
      scene.world.discs.Add(x, grid(), 1);
    }
    for (int wall = dice.Int(0, 9); wall > 0; --wall) {
      const float x = grid();
      const float y = grid();
      const float length =
          static_cast<float>(dice.Int(1, 3)) * (dice.Int(0, 1) == 0 ? -1.0F : 1.0F);
      const bool upright = dice.Int(0, 1) == 0;
      scene.world.walls.Add(x, y, x + (upright ? 0 : length), y + (upright ? length : 0));
    }
    if (dice.Int(0, 1) == 0) {
      const float x = grid();
      scene.world.AddBox({x, grid(), 1, 1, 0});
    }
    const float x = grid();
    const float y = grid();
    scene.pose = {x, y, static_cast<float>(dice.Int(-2, 2) * kPi / 2)};
    return scene;
  });
}

// As many obstacles as a world may have, more than a kernel keeps in mind at once.
TEST(Observe, GivesTheSameBitsInBothKernelsInACrowd) {
  ExpectSameBitsTogether(4, {kSymmetricFan, {64, 5, -180, 180}}, 0.001F,
                         [](Key key, const LidarOptions& /*fan*/) {
                           Dice dice{key};
                           Scene scene;
                           for (int disc = 0; disc < 1000; ++disc) {
                             const float x = dice.UniformFloat(-5, 5);
                             scene.world.discs.Add(x, dice.UniformFloat(-5, 5), 0.02F);
                           }
                           for (int box = 0; box < 100; ++box) {
                             const float x = dice.UniformFloat(-5, 5);
                             scene.world.AddBox({x, dice.UniformFloat(-5, 5), 0.02F, 0.03F, x});
                           }
                           scene.pose = {0, 0, dice.UniformFloat(-3, 3)};
                           return scene;
                         });
}

// Who else is in the batch changes no bit, nor does the slot an episode moved to.
TEST(Observe, SeesForEachRobotWhatItSeesAlone) {
  const Lidar lidar(kSymmetricFan);
  constexpr int kRobots = 50;
  std::vector<Scene> scenes;
  for (std::uint64_t slot = 0; slot < kRobots; ++slot) {
    scenes.push_back(DrawScene(Key(40).Fork(slot)));
    // Few discs in the first half, many in the second, which moves there.
    if (slot < kRobots / 2) scenes.back().world.discs.Resize(scenes.back().world.discs.size() % 3);
  }
  std::vector<View> alone;
  for (const Scene& scene : scenes) {
    alone.push_back(Look(Kernel::kScalar, scene.world, scene.pose, lidar, 0.1F));
  }
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    Batch batch(kRobots, lidar);
    // Each slot first holds another world, then its own, then its own from another slot.
    for (int slot = 0; slot < kRobots; ++slot) {
      batch.Place(slot, scenes[static_cast<std::size_t>((slot + 7) % kRobots)].world, {}, Key(0));
    }
    for (int slot = 0; slot < kRobots; ++slot) {
      const Scene& scene = scenes[static_cast<std::size_t>(slot)];
      batch.Place(slot, scene.world, scene.pose, Key(0));
    }
    FaceHeading(kernel, 0, kRobots, batch);
    Observe(kernel, lidar, 0.1F, 0, kRobots, batch);
    for (int slot = 0; slot < kRobots; ++slot) {
      ExpectSameBits(alone[static_cast<std::size_t>(slot)], ViewOf(batch, slot, lidar));
    }
    for (int slot = 0; slot < kRobots / 2; ++slot) {
      batch.Move(kRobots - 1 - slot, slot);
      ExpectSameBits(alone[static_cast<std::size_t>(kRobots - 1 - slot)],
                     ViewOf(batch, slot, lidar));
    }
    Observe(kernel, lidar, 0.1F, 0, kRobots / 2, batch);
    for (int slot = 0; slot < kRobots / 2; ++slot) {
      ExpectSameBits(alone[static_cast<std::size_t>(kRobots - 1 - slot)],
                     ViewOf(batch, slot, lidar));
    }
  }
}

// The plain reading of the geometry decides, unless it is within rounding of a touch.
TEST(Observe, CollidesWhereTheClearanceIsBelowTheRadius) {
  int collided = 0;
  int free = 0;
  for (std::uint64_t trial = 0; trial < 400; ++trial) {
    Scene scene = DrawScene(Key(45).Fork(trial));
    Dice dice{Key(46).Fork(trial)};
    for (int point = 0; point < 20; ++point) {
      const float radius = dice.UniformFloat(0.02, 0.5);
      scene.pose.x = dice.UniformFloat(-7, 7);
      scene.pose.y = dice.UniformFloat(-7, 7);
      const double clearance = Clearance(scene.world, scene.pose.x, scene.pose.y);
      if (std::fabs(clearance - radius) < 1e-4) continue;
      const View view = LookTwice(scene.world, scene.pose, Lidar(kAhead), radius);
      ASSERT_EQ(view.collided, clearance < radius) << "clearance " << clearance;
      ++(view.collided ? collided : free);
    }
  }
  EXPECT_GT(collided, 1000);
  EXPECT_GT(free, 1000);
}

TEST(Observe, MeasuresTheGoalAsTheWorldDoes) {
  for (std::uint64_t trial = 0; trial < 1000; ++trial) {
    const Scene scene = DrawScene(Key(47).Fork(trial));
    const View view = LookTwice(scene.world, scene.pose, Lidar(kAhead), 0.1F);
    const double distance = DistanceToGoal(scene.world.goal, scene.pose.x, scene.pose.y);
    ASSERT_NEAR(view.goal_distance, distance, 1e-5);
    ASSERT_NEAR(std::hypot(view.goal_forward, view.goal_left), distance, 1e-5);
    // One step along the vector to the goal's nearest point is in the goal.
    const double c = std::cos(static_cast<double>(scene.pose.heading));
    const double s = std::sin(static_cast<double>(scene.pose.heading));
    ASSERT_NEAR(
        DistanceToGoal(scene.world.goal, scene.pose.x + view.goal_forward * c - view.goal_left * s,
                       scene.pose.y + view.goal_forward * s + view.goal_left * c),
        0, 1e-5);
  }
}

// ---- Laws ----

// The scene under (x, y) -> (sign (x c - y s), x s + y c): a turn, or a turn and a mirror.
Scene Transform(const Scene& scene, double turn, bool mirror) {
  const double c = std::cos(turn);
  const double s = std::sin(turn);
  const double sign = mirror ? -1 : 1;
  const auto map = [&](double x, double y) {
    return std::array<float, 2>{static_cast<float>(sign * (x * c - y * s)),
                                static_cast<float>(x * s + y * c)};
  };
  const auto map_angle = [&](double angle) {
    return static_cast<float>(mirror ? kPi - (angle + turn) : angle + turn);
  };
  Scene mapped;
  for (std::size_t disc = 0; disc < static_cast<std::size_t>(scene.world.discs.size()); ++disc) {
    const auto [x, y] = map(scene.world.discs.x[disc], scene.world.discs.y[disc]);
    mapped.world.discs.Add(x, y, scene.world.discs.radius[disc]);
  }
  const WallSet& walls = scene.world.walls;
  for (std::size_t wall = 0; wall < static_cast<std::size_t>(walls.size()); ++wall) {
    const auto [x0, y0] = map(walls.x[wall], walls.y[wall]);
    const auto [x1, y1] = map(walls.x[wall] + walls.dx[wall], walls.y[wall] + walls.dy[wall]);
    mapped.world.walls.Add(x0, y0, x1, y1);
  }
  for (const Box& box : scene.world.boxes) {
    const auto [x, y] = map(box.x, box.y);
    mapped.world.AddBox({x, y, box.half_x, box.half_y, map_angle(box.heading)});
  }
  const auto [x, y] = map(scene.pose.x, scene.pose.y);
  mapped.pose = {x, y, map_angle(scene.pose.heading)};
  return mapped;
}

void ExpectSameScan(const Scene& a, const Scene& b, bool reversed) {
  const Lidar lidar(kSymmetricFan);
  const View view_a = Look(BestKernel(), a.world, a.pose, lidar, 0.1F);
  const View view_b = Look(BestKernel(), b.world, b.pose, lidar, 0.1F);
  if (view_a.collided || view_b.collided) return;
  const int last = kSymmetricFan.beams - 1;
  for (int beam = 0; beam <= last; ++beam) {
    const double angle = a.pose.heading + BeamAngle(kSymmetricFan, beam);
    if (CastNaively(a.world, a.pose.x, a.pose.y, angle, 5).doubtful) continue;
    ASSERT_NEAR(view_a.ranges[static_cast<std::size_t>(beam)],
                view_b.ranges[static_cast<std::size_t>(reversed ? last - beam : beam)], 1e-4);
  }
}

TEST(Observe, SeesTheSameWhenWorldAndRobotTurnTogether) {
  for (std::uint64_t trial = 0; trial < 1000; ++trial) {
    const Scene scene = DrawScene(Key(48).Fork(trial));
    const double turn = 0.01 * static_cast<double>(trial);
    ExpectSameScan(scene, Transform(scene, turn, false), false);
    if (::testing::Test::HasFatalFailure()) FAIL() << "trial " << trial;
  }
}

TEST(Observe, SeesTheReverseInAMirror) {
  for (std::uint64_t trial = 0; trial < 1000; ++trial) {
    const Scene scene = DrawScene(Key(49).Fork(trial));
    ExpectSameScan(scene, Transform(scene, 0, true), true);
    if (::testing::Test::HasFatalFailure()) FAIL() << "trial " << trial;
  }
}

// Adding an obstacle can only shorten what the lidar reads.
TEST(Observe, NeverReadsFartherWithMoreObstacles) {
  const Lidar lidar(kFans[5]);
  for (std::uint64_t trial = 0; trial < 500; ++trial) {
    Scene scene = DrawScene(Key(50).Fork(trial));
    const View before = Look(BestKernel(), scene.world, scene.pose, lidar, 0.1F);
    Dice dice{Key(51).Fork(trial)};
    scene.world.discs.Add(dice.UniformFloat(-6, 6), dice.UniformFloat(-6, 6), 0.4F);
    const View after = Look(BestKernel(), scene.world, scene.pose, lidar, 0.1F);
    ASSERT_LE(before.collided, after.collided);
    if (after.collided) continue;
    for (std::size_t beam = 0; beam < before.ranges.size(); ++beam) {
      ASSERT_LE(after.ranges[beam], before.ranges[beam]);
    }
  }
}

// The fast kernel takes eight slots at a time; those before `first` belong to somebody else.
TEST(Observe, LeavesTheSlotsItWasNotAskedAboutAlone) {
  World empty;
  empty.starts = {{0, 0, 0}};
  World boxed = empty;
  boxed.AddBox({0, 0, 2, 2, 0});
  const Lidar lidar(kSymmetricFan);
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    Batch batch(16, lidar);
    for (int slot = 0; slot < 16; ++slot) {
      batch.Place(slot, slot == 8 ? boxed : empty, {0, 0, 0}, Key(1));
    }
    FaceHeading(kernel, 0, 16, batch);
    Observe(kernel, lidar, 0.1F, 0, 16, batch);
    ASSERT_NE(batch.collided[8], 0U);
    Observe(kernel, lidar, 0.1F, 9, 16, batch);
    EXPECT_NE(batch.collided[8], 0U) << KernelName(kernel);
    EXPECT_EQ(batch.collided[9], 0U) << KernelName(kernel);
  }
}

}  // namespace
}  // namespace fedgen
