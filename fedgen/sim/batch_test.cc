// SPDX-License-Identifier: Apache-2.0
#include "fedgen/sim/batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

#include "fedgen/sim/move_kernel.h"
#include "fedgen/sim/observe_kernel.h"

namespace fedgen {
namespace {

constexpr float kRobotRadius = 0.2F;
constexpr int kSlots = 32;

float Draw(Key key, std::uint64_t index, float low, float high) {
  return low + (high - low) * UnitFloat(key.Block(index)[0]);
}

// A world with this many obstacles of each kind, a disc for a goal if the number of discs is even,
// and noise that pushes.
World DrawnWorld(Key key, int discs, int walls, int boxes) {
  World world;
  const auto at = [&](std::uint64_t index) { return Draw(key, index, -4, 4); };
  std::uint64_t next = 0;
  for (int disc = 0; disc < discs; ++disc, next += 2) world.discs.Add(at(next), at(next + 1), 0.3F);
  for (int wall = 0; wall < walls; ++wall, next += 4) {
    world.walls.Add(at(next), at(next + 1), at(next + 2), at(next + 3));
  }
  for (int box = 0; box < boxes; ++box, next += 2) {
    world.AddBox({at(next), at(next + 1), 0.5F, 0.8F, 0.4F});
  }
  world.goal.kind = discs % 2 == 0 ? Goal::Kind::kDisc : Goal::Kind::kHalfPlane;
  world.goal.x = at(next++);
  world.goal.radius = 0.5F;
  world.goal.depth = 0.1F;
  world.disturbance.kind = Disturbance::Kind::kUniformNoise;
  world.disturbance.gain = {0.5F, -0.2F, 0.1F};
  world.disturbance.half_width = 0.3F;
  return world;
}

// Worlds of all sizes, the largest neither first nor last.
std::vector<World> DrawnWorlds(Key key) {
  std::vector<World> worlds;
  for (const auto& [discs, walls, boxes] : std::vector<std::array<int, 3>>{
           {2, 1, 0}, {0, 0, 0}, {5, 0, 1}, {40, 7, 3}, {3, 2, 2}, {11, 0, 0}, {0, 4, 0}}) {
    worlds.push_back(DrawnWorld(key.Fork(worlds.size()), discs, walls, boxes));
  }
  return worlds;
}

Pose DrawnPose(Key key) { return {Draw(key, 0, -3, 3), Draw(key, 1, -3, 3), Draw(key, 2, -3, 3)}; }

void Look(Kernel kernel, const Lidar& lidar, Batch& batch) {
  FaceHeading(kernel, 0, kSlots, batch);
  Observe(kernel, lidar, kRobotRadius, 0, kSlots, batch);
}

void Drive(Kernel kernel, const Lidar& lidar, int steps, Batch& batch) {
  for (int step = 0; step < steps; ++step) {
    for (std::size_t slot = 0; slot < kSlots; ++slot) batch.control[slot] = 0.3F;
    Disturb(kernel, kSlots, batch);
    Advance(kernel, RobotOptions{}, 0.05F, kSlots, batch);
    Observe(kernel, lidar, kRobotRadius, 0, kSlots, batch);
  }
}

// Everything that is known about the robot in a slot once it has observed, as bits.
std::vector<std::uint32_t> StateOf(const Batch& batch, int slot_index) {
  const auto slot = static_cast<std::size_t>(slot_index);
  std::vector<std::uint32_t> bits = {static_cast<std::uint32_t>(batch.step[slot]),
                                     batch.collided[slot], batch.arrived[slot]};
  const auto add = [&](float value) { bits.push_back(std::bit_cast<std::uint32_t>(value)); };
  for (const auto* column : {&batch.x, &batch.y, &batch.heading, &batch.cos, &batch.sin,
                             &batch.goal_distance, &batch.goal_forward, &batch.goal_left}) {
    add((*column)[slot]);
  }
  if (batch.collided[slot] != 0) return bits;  // its ranges are unspecified
  const auto stride = static_cast<std::size_t>(batch.beam_stride);
  for (std::size_t beam = 0; beam < stride; ++beam) add(batch.ranges[slot * stride + beam]);
  return bits;
}

class BatchTest : public ::testing::TestWithParam<Kernel> {
 protected:
  const Lidar lidar_{LidarOptions{24, 5, -120, 120}};
  const std::vector<World> worlds_ = DrawnWorlds(Key(1));
  const std::vector<Pose> poses_ = [] {
    std::vector<Pose> poses;
    for (std::uint64_t slot = 0; slot < kSlots; ++slot)
      poses.push_back(DrawnPose(Key(2).Fork(slot)));
    return poses;
  }();

  void PlaceEpisode(std::size_t episode, int slot, Batch& batch) const {
    batch.Place(slot, worlds_[episode % worlds_.size()], poses_[episode], Key(3).Fork(episode));
  }

  // An empty world in every slot, so that all of them may be driven.
  Batch MakeBatch() const {
    Batch batch(kSlots, lidar_);
    for (int slot = 0; slot < kSlots; ++slot) batch.Place(slot, empty_, {}, Key(0));
    return batch;
  }

  const World empty_;
};

// In mid-episode, with noise drawn for steps to come: an episode that moves goes on as if it had
// begun where it is now.
TEST_P(BatchTest, AnEpisodeThatMovesGoesOnAsIfItHadBegunThere) {
  for (std::size_t episode = 0; episode < worlds_.size(); ++episode) {
    const int to = 29 - static_cast<int>(episode);
    Batch moved = MakeBatch();
    Batch direct = MakeBatch();
    PlaceEpisode(episode + 3, to, moved);  // what stood there before, in another world
    PlaceEpisode(episode, 3, moved);
    PlaceEpisode(episode, to, direct);
    for (Batch* batch : {&moved, &direct}) {
      Look(GetParam(), lidar_, *batch);
      Drive(GetParam(), lidar_, 5, *batch);
    }
    moved.Move(3, to);
    EXPECT_EQ(StateOf(moved, to), StateOf(direct, to)) << episode;
    for (Batch* batch : {&moved, &direct}) Drive(GetParam(), lidar_, 40, *batch);
    EXPECT_EQ(StateOf(moved, to), StateOf(direct, to)) << episode;
  }
}

TEST_P(BatchTest, MovingToWhereItIsChangesNothing) {
  Batch batch = MakeBatch();
  PlaceEpisode(3, 7, batch);
  Look(GetParam(), lidar_, batch);
  const auto before = StateOf(batch, 7);
  batch.Move(7, 7);
  EXPECT_EQ(StateOf(batch, 7), before);
}

TEST_P(BatchTest, ALargeWorldInOneSlotChangesNothingInOthers) {
  Batch small = MakeBatch();
  Batch grown = MakeBatch();
  const World large = DrawnWorld(Key(4), 100, 30, 10);
  for (int slot = 0; slot < kSlots; ++slot) {
    PlaceEpisode(static_cast<std::size_t>(slot), slot, small);
    PlaceEpisode(static_cast<std::size_t>(slot), slot, grown);
  }
  grown.Place(kSlots - 1, large, poses_[0], Key(0));
  EXPECT_EQ(grown.num_disc_rows, 100);
  EXPECT_EQ(grown.num_wall_rows, 30 + 4 * 10);
  Look(GetParam(), lidar_, small);
  Look(GetParam(), lidar_, grown);
  for (int slot = 0; slot < kSlots - 1; ++slot) {
    EXPECT_EQ(StateOf(grown, slot), StateOf(small, slot)) << slot;
  }
}

TEST_P(BatchTest, ASmallWorldAfterALargeOneIsAsInAFreshBatch) {
  for (std::size_t episode = 0; episode < worlds_.size(); ++episode) {
    Batch used = MakeBatch();
    Batch fresh = MakeBatch();
    PlaceEpisode(3, 5, used);  // the largest
    PlaceEpisode(episode, 5, used);
    PlaceEpisode(episode, 5, fresh);
    Look(GetParam(), lidar_, used);
    Look(GetParam(), lidar_, fresh);
    EXPECT_EQ(StateOf(used, 5), StateOf(fresh, 5)) << episode;
  }
}

// What is observed is what was placed: both kernels read the batch, and nothing is asked of the
// world again.
TEST_P(BatchTest, KeepsTheObstaclesThatWerePlaced) {
  for (std::size_t episode = 0; episode < worlds_.size(); ++episode) {
    World world = worlds_[episode];
    Batch kept = MakeBatch();
    Batch changed = MakeBatch();
    kept.Place(0, worlds_[episode], poses_[episode], Key(0));
    changed.Place(0, world, poses_[episode], Key(0));
    world.ClearObstacles();
    Look(GetParam(), lidar_, kept);
    Look(GetParam(), lidar_, changed);
    EXPECT_EQ(StateOf(changed, 0), StateOf(kept, 0)) << episode;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, BatchTest, ::testing::Values(Kernel::kScalar, BestKernel()));

TEST(Batch, HoldsWholeTilesOfSlots) {
  const Lidar lidar(kSymmetricFan);
  EXPECT_EQ(Batch(1, lidar).capacity, 32);
  EXPECT_EQ(Batch(32, lidar).capacity, 32);
  EXPECT_EQ(Batch(33, lidar).capacity, 64);
}

// Further away than the longest range there is (Validate of LidarOptions) from wherever a world may
// be (10 km from the origin), in rows that were never used and in rows that are used no more.
TEST(Batch, PadsUnusedRowsOutOfEverySensorsReach) {
  const Lidar lidar(kSymmetricFan);
  Batch batch(kSlots, lidar);
  const World large = DrawnWorld(Key(5), 20, 5, 2);
  const World small = DrawnWorld(Key(6), 4, 1, 1);
  batch.Place(0, large, {}, Key(0));
  batch.Place(1, large, {}, Key(0));
  batch.Place(1, small, {}, Key(0));
  const auto expect_far = [&](float x, float y, float dx, float dy) {
    EXPECT_GE(std::min(x, y), 1e9F);
    EXPECT_LE(std::max(std::abs(dx), std::abs(dy)), 1.0F);
  };
  for (const std::size_t slot : {1, 2}) {
    const int used_discs = slot == 1 ? 4 : 0;
    const int used_walls = slot == 1 ? 1 + 4 : 0;
    for (int row = used_discs; row < batch.num_disc_rows; ++row) {
      const std::size_t at = static_cast<std::size_t>(row) * kSlots + slot;
      expect_far(batch.disc_x[at], batch.disc_y[at], batch.disc_radius[at], 0);
    }
    for (int row = used_walls; row < batch.num_wall_rows; ++row) {
      const std::size_t at = static_cast<std::size_t>(row) * kSlots + slot;
      expect_far(batch.wall_x[at], batch.wall_y[at], batch.wall_dx[at], batch.wall_dy[at]);
      EXPECT_EQ(batch.wall_length[at] * batch.wall_inverse_length2[at], 1.0F);
    }
  }
}

}  // namespace
}  // namespace fedgen
