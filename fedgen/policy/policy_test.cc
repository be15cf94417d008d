// SPDX-License-Identifier: Apache-2.0
#include "fedgen/policy/policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "fedgen/sim/observe_kernel.h"

namespace fedgen {
namespace {

constexpr float kUp = static_cast<float>(std::numbers::pi / 2);
const LidarOptions kOddFan{21, 5, -60, 60};  // with a beam straight ahead

RobotOptions Differential() {
  RobotOptions robot;
  robot.kind = RobotOptions::Kind::kDifferential;
  return robot;
}

// What a policy does in a world at a pose.
float Decide(const Policy& policy, const World& world, const Pose& pose,
             const LidarOptions& fan = kOddFan, const RobotOptions& robot = Differential(),
             Kernel kernel = BestKernel()) {
  const Lidar lidar(fan);
  Batch batch(1, lidar);
  Sense(kernel, lidar, static_cast<float>(robot.radius), world, pose, batch);
  Driver driver(policy, {fan, robot, 0.05});
  driver.Decide(kernel, lidar, 1, batch);
  return batch.control[0];
}

World WithDiscs(const std::vector<std::array<float, 3>>& discs) {
  World world;
  for (const auto& [x, y, radius] : discs) world.discs.Add(x, y, radius);
  return world;
}

TEST(BuiltInPolicy, HasTwoNames) {
  EXPECT_TRUE(std::holds_alternative<StraightAhead>(*BuiltInPolicy("straight")));
  EXPECT_TRUE(std::holds_alternative<GapFollower>(*BuiltInPolicy("gap-follower")));
  EXPECT_FALSE(BuiltInPolicy("gap_follower"));
  EXPECT_FALSE(BuiltInPolicy(""));
}

TEST(FindMismatch, LetsBuiltInPoliciesDriveAnything) {
  EXPECT_FALSE(FindMismatch(StraightAhead{}, {{7, 3, -10, 10}, Differential()}));
  EXPECT_FALSE(FindMismatch(GapFollower{}, {{7, 3, -10, 10}, Differential()}));
}

TEST(FindMismatch, SaysWhatANetworkIsScaledFor) {
  const RobotOptions car;
  const Policy policy = MakeMlp(MlpOptions{}, 20, 5, ControlLimit(car));
  EXPECT_FALSE(FindMismatch(policy, {kSymmetricFan, car}));
  // Nothing else is known of a network that does not say what it was made for.
  EXPECT_FALSE(FindMismatch(policy, {kOneSidedFan, car, 0.1}));
  LidarOptions lidar = kSymmetricFan;
  lidar.beams = 24;
  EXPECT_EQ(*FindMismatch(policy, {lidar, car}), "policy reads 20 beams, lidar.beams = 24");
  lidar = kSymmetricFan;
  lidar.range = 4.5;
  EXPECT_EQ(*FindMismatch(policy, {lidar, car}),
            "policy expects a range of 5 m, lidar.range = 4.5");
  EXPECT_EQ(*FindMismatch(policy, {kSymmetricFan, Differential()}),
            "policy steers within +-0.785398, the robot within +-5");
}

TEST(FindMismatch, SaysWhatAPolicyWasMadeFor) {
  const Body body{kSymmetricFan, Differential(), 0.05};
  Mlp mlp = MakeMlp(MlpOptions{}, body);
  EXPECT_FALSE(FindMismatch(mlp, body));
  Body other = body;
  other.time_step = 0.1;
  EXPECT_EQ(FindMismatch(mlp, other),
            "policy was made for episode.time_step = 0.05, configured 0.1 (--anyway allows it)");
  // What its numbers are scaled for cannot be helped.
  Body narrower = other;
  narrower.lidar.range = 4;
  EXPECT_EQ(
      FindMismatch(mlp, narrower),
      "policy was made for lidar.range = 5, configured 4; episode.time_step = 0.05, configured "
      "0.1 (--anyway does not help: the network is scaled for its own)");
  // The same between two networks.
  EXPECT_FALSE(FindMismatch(mlp, MakeMlp(MlpOptions{}, body)));
  EXPECT_EQ(FindMismatch(mlp, MakeMlp(MlpOptions{}, other)),
            "policy was made for episode.time_step = 0.05, configured 0.1 (--anyway allows it)");

  EXPECT_FALSE(ForgetBody(body, mlp));
  EXPECT_TRUE(mlp.made_for) << "nothing to forget";
  EXPECT_EQ(ForgetBody(other, mlp), "policy was made for episode.time_step = 0.05, configured 0.1");
  EXPECT_FALSE(FindMismatch(mlp, other));
  EXPECT_FALSE(FindMismatch(mlp, MakeMlp(MlpOptions{}, other)));
  EXPECT_TRUE(FindMismatch(mlp, narrower));
}

// Each field that gives the parameters another meaning, alone.
TEST(FindMismatch, NamesTheFirstDifferenceBetweenNetworks) {
  const auto made = [](const MlpOptions& options) { return MakeMlp(options, 20, 5, 0.8); };
  const Mlp wanted = made({});
  Mlp other_numbers = wanted;
  other_numbers.parameters[3] = 7;
  other_numbers.input_scale[1] = 2;
  EXPECT_FALSE(FindMismatch(other_numbers, wanted));
  const std::pair<MlpOptions, const char*> differing[] = {
      {{.hidden = {20, 8}}, "hidden = [20, 8], policy.hidden = [20, 20, 20]"},
      {{.activation = Activation::kTanh}, "activation = tanh, policy.activation = relu"},
      {{.state_inputs = false}, "state_inputs = false, policy.state_inputs = true"},
      {{.goal_inputs = true}, "goal_inputs = true, policy.goal_inputs = false"},
      {{.range_code = RangeCode::kRaw}, "range_code = raw, policy.range_code = scaled"},
      {{.range_offset = 0.25}, "range_offset = 0.25, policy.range_offset = 0.1"},
      {{.output_map = OutputMap::kClamp}, "output_map = clamp, policy.output_map = tanh"},
  };
  for (const auto& [options, says] : differing) {
    EXPECT_EQ(FindMismatch(made(options), wanted), std::string("policy was made with ") + says);
  }
  EXPECT_EQ(FindMismatch(MakeMlp({}, 24, 5, 0.8), wanted),
            "policy reads 24 beams, lidar.beams = 20");
  EXPECT_EQ(FindMismatch(MakeMlp({}, 20, 6, 0.8), wanted),
            "policy expects a range of 6 m, lidar.range = 5");
  EXPECT_EQ(FindMismatch(MakeMlp({}, 20, 5, 0.7), wanted),
            "policy steers within +-0.7, the robot within +-0.8");
}

TEST(StraightAhead, NeverSteers) {
  const Policy straight = StraightAhead{};
  const World crowded = WithDiscs({{0, 2, 0.5F}, {1, 2, 0.5F}, {-1, 2, 0.5F}});
  for (float heading = -3; heading <= 3; heading += 0.5F) {
    EXPECT_EQ(Decide(straight, crowded, {0, 0, heading}), 0.0F);
  }
}

TEST(GapFollower, GoesStraightWhereNothingIsInTheWay) {
  World world;  // the goal is straight ahead too
  EXPECT_NEAR(Decide(GapFollower{}, world, {0, 1, kUp}), 0, 1e-4);
}

TEST(GapFollower, TurnsAwayFromADiscAhead) {
  // Slightly to the right of the way: pass it on the left; and the other way round.
  EXPECT_GT(Decide(GapFollower{}, WithDiscs({{0.1F, 2.5F, 0.3F}}), {0, 1, kUp}), 0.1F);
  EXPECT_LT(Decide(GapFollower{}, WithDiscs({{-0.1F, 2.5F, 0.3F}}), {0, 1, kUp}), -0.1F);
}

TEST(GapFollower, DrivesThroughAGapWideEnoughForItsDisc) {
  // A row of discs across the way with one opening of 1.4 m to the left.
  const World row =
      WithDiscs({{1.5F, 3, 0.4F}, {0.7F, 3, 0.4F}, {-0.1F, 3, 0.4F}, {-2.3F, 3, 0.4F}});
  EXPECT_GT(Decide(GapFollower{}, row, {0, 1, kUp}), 0.1F);
}

// Two discs of radius 0.15 leave 0.5 m or 1 m between them, 1.5 m ahead. The robot's disc with its
// margin is 0.66 m wide.
TEST(GapFollower, GoesAroundAGapTooNarrowForItsDisc) {
  const World narrow = WithDiscs({{-0.4F, 2.5F, 0.15F}, {0.4F, 2.5F, 0.15F}});
  const World wide = WithDiscs({{-0.65F, 2.5F, 0.15F}, {0.65F, 2.5F, 0.15F}});
  GapFollower follower;
  follower.margin = 0.06;
  EXPECT_GT(std::fabs(Decide(follower, narrow, {0, 1, kUp})), 0.1F);
  EXPECT_NEAR(Decide(follower, wide, {0, 1, kUp}), 0, 1e-4);
  follower.margin = 0.5;
  EXPECT_GT(std::fabs(Decide(follower, wide, {0, 1, kUp})), 0.1F);
}

TEST(GapFollower, PrefersTheGoal) {
  World world;
  world.goal.kind = Goal::Kind::kDisc;
  world.goal.y = 5;
  world.goal.radius = 0.5F;
  world.goal.x = 3;
  EXPECT_LT(Decide(GapFollower{}, world, {0, 1, kUp}), -0.1F);  // to the right
  world.goal.x = -3;
  EXPECT_GT(Decide(GapFollower{}, world, {0, 1, kUp}), 0.1F);
}

// Eq. 14: in the open, the best of beams 6 degrees apart is the one at the goal, 12 degrees to the
// left; half of that is turned in one step of 0.05 s. Of the car's full turn of 0.625 rad a step,
// as large a share of its steering limit is asked for.
TEST(GapFollower, TurnsItsShareOfTheWayInOneStep) {
  const double angle = 12 * std::numbers::pi / 180;
  World world;
  world.goal.kind = Goal::Kind::kDisc;
  world.goal.x = static_cast<float>(-100 * std::sin(angle));
  world.goal.y = static_cast<float>(100 * std::cos(angle));
  world.goal.radius = 0.1F;
  GapFollower follower;
  follower.turn_weight = 0;
  follower.gain = 0.5;
  EXPECT_NEAR(Decide(follower, world, {0, 0, kUp}, kOddFan, Differential()), 0.5 * angle / 0.05,
              1e-4);
  EXPECT_NEAR(Decide(follower, world, {0, 0, kUp}, kOddFan, RobotOptions{}),
              std::numbers::pi / 4 * 0.5 * angle / 0.625, 1e-5);
}

TEST(GapFollower, NeverSteersBeyondTheLimit) {
  for (std::uint64_t trial = 0; trial < 500; ++trial) {
    std::vector<std::array<float, 3>> discs;
    for (std::uint64_t disc = 0; disc < 12; ++disc) {
      const RandomBlock words = Key(71).Fork(trial).Block(disc);
      discs.push_back({6 * UnitFloat(words[0]) - 3, 4 * UnitFloat(words[1]) + 0.8F, 0.3F});
    }
    GapFollower eager;
    eager.gain = 10;
    EXPECT_LE(std::fabs(Decide(eager, WithDiscs(discs), {0, 0, kUp})), 5.0F);
  }
}

// The mirror image of a scene is answered by the mirror image of the control. (Exact ties between
// left and right, which the first beam wins, do not occur among random scenes.)
TEST(GapFollower, SteersTheOtherWayInAMirror) {
  int steered = 0;
  for (std::uint64_t trial = 0; trial < 500; ++trial) {
    std::vector<std::array<float, 3>> discs;
    std::vector<std::array<float, 3>> mirrored;
    for (std::uint64_t disc = 0; disc < 8; ++disc) {
      const RandomBlock words = Key(72).Fork(trial).Block(disc);
      const float x = 6 * UnitFloat(words[0]) - 3;
      const float y = 4 * UnitFloat(words[1]) + 0.8F;
      discs.push_back({x, y, 0.2F});
      mirrored.push_back({-x, y, 0.2F});
    }
    World world = WithDiscs(discs);
    World mirror = WithDiscs(mirrored);
    world.goal.kind = mirror.goal.kind = Goal::Kind::kDisc;
    world.goal.y = mirror.goal.y = 8;
    world.goal.x = 6 * UnitFloat(Key(72).Fork(trial).Block(100)[0]) - 3;
    mirror.goal.x = -world.goal.x;
    const float control = Decide(GapFollower{}, world, {0, 0, kUp});
    ASSERT_NEAR(Decide(GapFollower{}, mirror, {0, 0, kUp}), -control, 1e-4) << "trial " << trial;
    steered += std::fabs(control) > 0.5F ? 1 : 0;
  }
  EXPECT_GT(steered, 100);
}

TEST(Driver, GivesTheSameBitsInBothKernels) {
  Mlp mlp = MakeMlp(MlpOptions{}, 20, 5, 5);
  DrawParameters(Key(73), 1, mlp);
  for (const Policy& policy : {Policy(mlp), Policy(StraightAhead{}), Policy(GapFollower{})}) {
    for (std::uint64_t trial = 0; trial < 200; ++trial) {
      std::vector<std::array<float, 3>> discs;
      for (std::uint64_t disc = 0; disc < 8; ++disc) {
        const RandomBlock words = Key(74).Fork(trial).Block(disc);
        discs.push_back({6 * UnitFloat(words[0]) - 3, 4 * UnitFloat(words[1]) + 0.8F, 0.2F});
      }
      const World world = WithDiscs(discs);
      ASSERT_EQ(Decide(policy, world, {0, 0, kUp}, kSymmetricFan, Differential(), Kernel::kScalar),
                Decide(policy, world, {0, 0, kUp}, kSymmetricFan, Differential(), BestKernel()));
    }
  }
}

}  // namespace
}  // namespace fedgen
