// SPDX-License-Identifier: Apache-2.0
#include "fedgen/sim/move_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fedgen {
namespace {

constexpr float kTimeStep = 0.05F;
constexpr float kUp = static_cast<float>(std::numbers::pi / 2);

RobotOptions Car() { return {}; }

RobotOptions Differential() {
  RobotOptions robot;
  robot.kind = RobotOptions::Kind::kDifferential;
  return robot;
}

Batch MakeBatch(int slots) { return Batch(slots, Lidar({1, 5, 0, 0})); }

const World kEmpty;

// One robot, one step, with a control and no push.
Pose StepOnce(Kernel kernel, const RobotOptions& robot, const Pose& from, float control,
              const std::array<float, 3>& push = {}) {
  Batch batch = MakeBatch(1);
  batch.Place(0, kEmpty, from, Key(0));
  FaceHeading(kernel, 0, 1, batch);
  batch.control[0] = control;
  batch.push_x[0] = push[0];
  batch.push_y[0] = push[1];
  batch.push_heading[0] = push[2];
  Advance(kernel, robot, kTimeStep, 1, batch);
  return {batch.x[0], batch.y[0], batch.heading[0]};
}

void ExpectNear(const Pose& pose, double x, double y, double heading) {
  EXPECT_NEAR(pose.x, x, 2e-6);
  EXPECT_NEAR(pose.y, y, 2e-6);
  EXPECT_NEAR(pose.heading, heading, 2e-6);
}

class AdvanceTest : public ::testing::TestWithParam<Kernel> {};

// Eq. 6: heading' = tan(u) / length, x' = v cos, y' = v sin, at the heading before the step.
TEST_P(AdvanceTest, TurnsTheCarByTheTangentOfItsSteering) {
  for (const float u : {0.0F, 0.1F, -0.3F, 0.7F}) {
    const Pose after = StepOnce(GetParam(), Car(), {1, 2, 0.4F}, u);
    ExpectNear(after, 1 + 0.05 * 2.5 * std::cos(0.4), 2 + 0.05 * 2.5 * std::sin(0.4),
               0.4 + 0.05 * std::tan(static_cast<double>(u)) / 0.08);
  }
}

// Eq. 7: heading' = u.
TEST_P(AdvanceTest, TurnsTheDifferentialDriveAsItIsTold) {
  for (const float u : {0.0F, 1.0F, -3.0F, 4.9F}) {
    const Pose after = StepOnce(GetParam(), Differential(), {1, 2, -2}, u);
    ExpectNear(after, 1 + 0.05 * 2.5 * std::cos(-2), 2 + 0.05 * 2.5 * std::sin(-2), -2 + 0.05 * u);
  }
}

TEST_P(AdvanceTest, ObeysNoControlBeyondTheLimit) {
  // tan(pi / 4) / 0.08 = 12.5 rad/s for the car, 5 rad/s for the differential drive.
  for (const float sign : {-1.0F, 1.0F}) {
    ExpectNear(StepOnce(GetParam(), Car(), {0, 0, 0}, sign * 100), 0.125, 0, sign * 0.05 * 12.5);
    ExpectNear(StepOnce(GetParam(), Differential(), {0, 0, 0}, sign * 100), 0.125, 0,
               sign * 0.05 * 5);
  }
}

TEST_P(AdvanceTest, AddsThePushToTheRates) {
  const Pose after = StepOnce(GetParam(), Differential(), {0, 0, 0}, 1, {0.4F, -0.6F, 2});
  ExpectNear(after, 0.05 * (2.5 + 0.4), 0.05 * -0.6, 0.05 * 3);
}

// 2.5 m/s * 0.05 s = 0.125 m is a float, and sin of the float nearest to pi / 2 rounds to 1, so y
// is exact at every step; x drifts by cos(pi / 2) = -4e-8 of the way.
TEST_P(AdvanceTest, DrivesStraightFor73Steps) {
  Batch batch = MakeBatch(1);
  batch.Place(0, kEmpty, {0, 1, kUp}, Key(0));
  FaceHeading(GetParam(), 0, 1, batch);
  for (int step = 1; step <= 73; ++step) {
    Advance(GetParam(), Car(), kTimeStep, 1, batch);
    ASSERT_EQ(batch.y[0], 1 + 0.125F * static_cast<float>(step));
    ASSERT_NEAR(batch.x[0], 0, 1e-6);
    ASSERT_EQ(batch.heading[0], kUp);
    ASSERT_EQ(batch.step[0], step);
  }
}

// Steering fully turns the car by 0.625 rad a step: a polygon inscribed in a circle of radius
// 0.0625 / sin(0.3125), closed to within rounding after any whole number of turns.
TEST_P(AdvanceTest, DrivesARegularPolygonAtConstantSteering) {
  Batch batch = MakeBatch(1);
  RobotOptions robot = Differential();
  robot.turn_rate_limit = 100;
  batch.Place(0, kEmpty, {3, 4, 0}, Key(0));
  FaceHeading(GetParam(), 0, 1, batch);
  batch.control[0] = static_cast<float>(2 * std::numbers::pi / 16 / 0.05);
  for (int step = 0; step < 16; ++step) Advance(GetParam(), robot, kTimeStep, 1, batch);
  EXPECT_NEAR(batch.x[0], 3, 1e-5);
  EXPECT_NEAR(batch.y[0], 4, 1e-5);
  EXPECT_NEAR(batch.heading[0], 0, 1e-5);  // a full turn
}

INSTANTIATE_TEST_SUITE_P(Kernels, AdvanceTest, ::testing::Values(Kernel::kScalar, BestKernel()),
                         [](const auto& instance) {
                           return std::to_string(instance.index) +
                                  std::string(KernelName(instance.param));
                         });

float Draw(std::uint64_t address, int word, float low, float high) {
  return low + (high - low) * UnitFloat(Key(21).Block(address)[static_cast<std::size_t>(word)]);
}

// 37 robots for 150 steps at random controls and pushes, against Euler's method in double.
TEST(Advance, FollowsEulersMethodAndGivesTheSameBitsInBothKernels) {
  constexpr int kRobots = 37;
  for (const RobotOptions& robot : {Car(), Differential()}) {
    Batch scalar = MakeBatch(kRobots);
    Batch simd = MakeBatch(kRobots);
    struct State {
      double x, y, heading;
    };
    std::vector<State> naive;
    for (int slot = 0; slot < kRobots; ++slot) {
      const auto address = static_cast<std::uint64_t>(1000000 + slot);
      const Pose start{Draw(address, 0, -5, 5), Draw(address, 1, 0, 10), Draw(address, 2, -4, 4)};
      scalar.Place(slot, kEmpty, start, Key(0));
      simd.Place(slot, kEmpty, start, Key(0));
      naive.push_back({start.x, start.y, start.heading});
    }
    FaceHeading(Kernel::kScalar, 0, kRobots, scalar);
    FaceHeading(BestKernel(), 0, kRobots, simd);
    const double limit = ControlLimit(robot);
    for (int step = 0; step < 150; ++step) {
      for (std::size_t slot = 0; slot < kRobots; ++slot) {
        const std::uint64_t address = static_cast<std::uint64_t>(step) * 1000 + slot;
        const float u = Draw(address, 0, -1.2F, 1.2F) * static_cast<float>(limit);
        const float push_x = Draw(address, 1, -0.5F, 0.5F);
        const float push_y = Draw(address, 2, -0.5F, 0.5F);
        const float push_heading = Draw(address, 3, -0.5F, 0.5F);
        for (Batch* batch : {&scalar, &simd}) {
          batch->control[slot] = u;
          batch->push_x[slot] = push_x;
          batch->push_y[slot] = push_y;
          batch->push_heading[slot] = push_heading;
        }
        const double obeyed = std::clamp<double>(u, -limit, limit);
        const double turn =
            robot.kind == RobotOptions::Kind::kCar ? std::tan(obeyed) / robot.length : obeyed;
        State& state = naive[slot];
        state.x += 0.05 * (robot.speed * std::cos(state.heading) + push_x);
        state.y += 0.05 * (robot.speed * std::sin(state.heading) + push_y);
        state.heading += 0.05 * (turn + push_heading);
      }
      Advance(Kernel::kScalar, robot, kTimeStep, kRobots, scalar);
      Advance(BestKernel(), robot, kTimeStep, kRobots, simd);
      for (std::size_t slot = 0; slot < kRobots; ++slot) {
        ASSERT_EQ(scalar.x[slot], simd.x[slot]);
        ASSERT_EQ(scalar.y[slot], simd.y[slot]);
        ASSERT_EQ(scalar.heading[slot], simd.heading[slot]);
        ASSERT_EQ(scalar.cos[slot], simd.cos[slot]);
        ASSERT_EQ(scalar.sin[slot], simd.sin[slot]);
        ASSERT_EQ(simd.step[slot], step + 1);
        // The heading gains half an ulp of 4e-6 a step: 3e-4 after 150 steps, in the worst case.
        ASSERT_NEAR(simd.x[slot], naive[slot].x, 1e-3);
        ASSERT_NEAR(simd.y[slot], naive[slot].y, 1e-3);
        const double turned = simd.heading[slot] - naive[slot].heading;  // up to full turns
        ASSERT_NEAR(std::remainder(turned, 2 * std::numbers::pi), 0, 3e-4);
      }
    }
  }
}

TEST(FaceHeading, WorksOutCosineAndSineOfTheNewSlotsOnly) {
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    Batch batch = MakeBatch(48);
    for (int slot = 0; slot < 48; ++slot) {
      batch.Place(slot, kEmpty, {0, 0, 0.3F * static_cast<float>(slot) - 7}, Key(0));
    }
    FaceHeading(kernel, 0, 48, batch);
    for (std::size_t slot = 0; slot < 48; ++slot) {
      EXPECT_NEAR(batch.cos[slot], std::cos(static_cast<double>(batch.heading[slot])), 2e-7);
      EXPECT_NEAR(batch.sin[slot], std::sin(static_cast<double>(batch.heading[slot])), 2e-7);
    }
    for (int slot = 21; slot < 30; ++slot) batch.Place(slot, kEmpty, {0, 0, kUp}, Key(0));
    const float before = batch.sin[20];
    const float after = batch.sin[47];
    FaceHeading(kernel, 21, 30, batch);
    for (std::size_t slot = 21; slot < 30; ++slot) EXPECT_EQ(batch.sin[slot], 1.0F);
    EXPECT_EQ(batch.sin[20], before);
    EXPECT_EQ(batch.sin[47], after);
  }
}

TEST(Batch, CanHoldWhatItIsAskedFor) {
  for (const int slots : {1, 15, 16, 17, 100}) {
    const Batch batch = MakeBatch(slots);
    EXPECT_GE(batch.capacity, slots);
    EXPECT_EQ(batch.capacity % 16, 0);
  }
}

// At 1e5 rad a step, an unwrapped heading would be 1e8 rad after a thousand steps, where floats are
// 8 rad apart and sine and cosine mean nothing.
TEST(Advance, KeepsTheHeadingWithinHalfATurn) {
  World world;
  world.starts = {{0, 0, 0}};
  RobotOptions spinner;
  spinner.kind = RobotOptions::Kind::kDifferential;
  spinner.turn_rate_limit = 1e4;
  const Lidar lidar(kSymmetricFan);
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    Batch batch(1, lidar);
    batch.Place(0, world, {0, 0, 0}, Key(1));
    FaceHeading(kernel, 0, 1, batch);
    for (int step = 0; step < 1000; ++step) {
      batch.control[0] = 1e4F;
      Advance(kernel, spinner, 10.0F, 1, batch);
      ASSERT_LE(std::fabs(batch.heading[0]), 3.15F) << step;
      const float norm = batch.cos[0] * batch.cos[0] + batch.sin[0] * batch.sin[0];
      ASSERT_NEAR(norm, 1.0F, 1e-5F) << step;
    }
  }
}

}  // namespace
}  // namespace fedgen
