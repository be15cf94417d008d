// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/navigation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fedgen/rollout/evaluate.h"
#include "fedgen/sim/observe_kernel.h"
#include "tests/tasks.h"

namespace fedgen {
namespace {

Mlp Net(const Task& task, std::uint64_t seed) {
  MlpOptions options;
  options.hidden = {5, 3};
  options.goal_inputs = true;
  Mlp mlp = MakeMlp(options, task.lidar.beams, task.lidar.range, ControlLimit(task.robot));
  DrawParameters(Key(seed), 1, mlp);
  for (std::size_t input = 0; input < mlp.input_scale.size(); ++input) {
    mlp.input_scale[input] = 1 + 0.01F * static_cast<float>(input);
    mlp.input_shift[input] = -0.02F * static_cast<float>(input);
  }
  return mlp;
}

TEST(ThetaOf, ComesBackThroughMlpOf) {
  const Mlp mlp = Net(MixedTask(), 1);
  const std::vector<float> theta = ThetaOf(mlp);
  EXPECT_EQ(theta.size(), 2 * mlp.input_scale.size() + mlp.parameters.size());
  const Mlp blank =
      MakeMlp({{5, 3}, Activation::kRelu, true, true}, mlp.num_beams,
              static_cast<double>(mlp.max_range), static_cast<double>(mlp.control_limit));
  const Mlp back = MlpOf(blank, theta);
  EXPECT_EQ(back.input_scale, mlp.input_scale);
  EXPECT_EQ(back.input_shift, mlp.input_shift);
  EXPECT_EQ(back.parameters, mlp.parameters);
  EXPECT_EQ(ThetaOf(back), theta);
  const std::vector<float> sigma = InitialSigma(mlp, 0.25);
  ASSERT_EQ(sigma.size(), theta.size());
  for (std::size_t at = 0; at < sigma.size(); ++at) {
    EXPECT_EQ(sigma[at], at < 2 * mlp.input_scale.size() ? 0.0F : 0.25F);
  }
}

TEST(CostOf, KnowsThreeKinds) {  // Eq. 23
  EpisodeOptions options;        // 0.05 s a step, rate 0.1 / s
  Episode arrived, collided;
  arrived.outcome = Outcome::kReachedGoal;
  arrived.steps = 80;
  collided.outcome = Outcome::kCollided;
  collided.steps = 10;
  collided.goal_distance = 3;
  const double j = 1 - std::exp(-0.1 * 80 * 0.05);
  const auto cost = [&](TrainingCost::Kind kind, const Episode& e) {
    return CostOf({kind, 0.25}, options, e);
  };
  using Kind = TrainingCost::Kind;
  EXPECT_DOUBLE_EQ(cost(Kind::kPaper, arrived), j);
  EXPECT_DOUBLE_EQ(cost(Kind::kPaper, collided), 1.75);
  EXPECT_DOUBLE_EQ(cost(Kind::kFailure, arrived), 0);
  EXPECT_DOUBLE_EQ(cost(Kind::kFailure, collided), 1.75);
  EXPECT_DOUBLE_EQ(cost(Kind::kPlain, arrived), j);
  EXPECT_DOUBLE_EQ(cost(Kind::kPlain, collided), 1);
  EXPECT_EQ(Validate(TrainingCost{Kind::kPaper, -1})->field, "distance_weight");
  EXPECT_EQ(Validate(TrainingCost{Kind::kPaper, 0.1, -0.01})->field, "margin");
  EXPECT_EQ(Validate(TrainingCost{Kind::kPaper, std::nan("")})->field, "distance_weight");
  EXPECT_FALSE(Validate(TrainingCost{}));
}

Tally Truth(const Task& task, const Policy& policy, Key key, int worlds) {
  EvaluateOptions options;
  options.num_worlds = worlds;
  options.starts_per_world = task.world.start.per_world;
  options.kernel = BestKernel();
  return Evaluate(task, policy, DrawnWorlds(task, key, BestKernel()), options);
}

TEST(NavigationCosts, AreThoseOfEvaluateOnTheSameWorlds) {  // Eq. 17
  const Task task = MixedTask();                            // three starts in each world
  const Mlp mlp = Net(task, 2);
  const std::vector<float> mu = ThetaOf(mlp);
  NavigationOptions options;
  options.worlds = 12;
  options.kernel = BestKernel();
  for (const auto kind : {TrainingCost::Kind::kPaper, TrainingCost::Kind::kFailure}) {
    options.cost.kind = kind;
    // The source knows the shape only: what mu says of the normalisation counts.
    const Mlp shape = MakeMlp({{5, 3}, Activation::kRelu, true, true}, task.lidar.beams,
                              task.lidar.range, ControlLimit(task.robot));
    const auto source = MakeNavigationCosts(task, shape, options);
    const auto perturb = [&](std::int64_t member, std::span<float> p) {
      for (std::size_t at = 2 * mlp.input_scale.size(); at < p.size(); ++at) {
        p[at] += 0.1F * static_cast<float>(member) * (at % 2 == 0 ? 1.0F : -1.0F);
      }
    };
    for (std::uint64_t round = 0; round < 2; ++round) {
      const Key key = Key(3).Fork(round);
      const CostSource::Costs costs = source->Measure(mu, 3, perturb, key);
      const Tally own = Truth(task, mlp, key, 12);
      EXPECT_EQ(costs.episodes, 4 * 36);
      EXPECT_EQ(costs.y, own.cost_sum / 36);
      for (std::int64_t member = 0; member < 3; ++member) {
        std::vector<float> theta = mu;
        perturb(member, theta);
        const Tally tally = Truth(task, MlpOf(mlp, theta), key, 12);
        const double j = kind == TrainingCost::Kind::kPaper
                             ? tally.cost_sum
                             : static_cast<double>(tally.episodes - tally.reached);
        EXPECT_NEAR(costs.members[static_cast<std::size_t>(member)],
                    (j + 0.1 * tally.goal_distance_sum) / 36, 1e-12)
            << member;
      }
    }
  }
}

// The perturbed policies drive a wider robot in the same worlds; y is that of the true one.
TEST(NavigationCosts, OfAWiderRobotLeaveYAsItIs) {  // Eq. 23
  Task task = TextTask();
  constexpr double kMargin = 0.1;
  task.world.start.clearance = task.robot.radius + kMargin;  // the same worlds for both
  Task wide = task;
  wide.robot.radius += kMargin;
  Mlp mlp = Net(task, 2);
  DrawParameters(Key(2), 0, mlp);  // drives straight on, which one world in seven allows
  NavigationOptions options;
  options.worlds = 200;
  options.kernel = BestKernel();
  const auto nudge = [](std::int64_t member, std::span<float> p) {
    p.back() += static_cast<float>(member) * 0.3F;
  };
  const auto measure = [&](const Task& with) {
    return MakeNavigationCosts(with, mlp, options)->Measure(ThetaOf(mlp), 5, nudge, Key(6));
  };
  const auto plain = measure(task);
  const auto of_wide = measure(wide);
  options.cost.margin = kMargin;
  const auto with_margin = measure(task);
  EXPECT_EQ(with_margin.y, plain.y);
  EXPECT_EQ(with_margin.members, of_wide.members);
  EXPECT_NE(with_margin.members, plain.members);
  EXPECT_NE(of_wide.y, plain.y);
}

TEST(NavigationCosts, GiveTheSameBitsForAnyThreadsAndKernel) {
  const Task task = MixedTask();
  const std::vector<float> mu = ThetaOf(Net(task, 4));
  const auto measure = [&](Kernel kernel, int threads) {
    NavigationOptions options;
    options.worlds = 6;
    options.kernel = kernel;
    options.num_threads = threads;
    return MakeNavigationCosts(task, Net(task, 4), options)
        ->Measure(
            mu, 7,
            [](std::int64_t member, std::span<float> p) {
              p.back() += static_cast<float>(member) * 0.3F;
            },
            Key(5));
  };
  const auto alone = measure(Kernel::kScalar, 1);
  for (const int threads : {1, 2, 3, 8}) {
    for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
      const auto costs = measure(kernel, threads);
      EXPECT_EQ(costs.y, alone.y);
      EXPECT_EQ(costs.members, alone.members);
    }
  }
}

TEST(MeasureNormalisation, IsTheSameInBothKernels) {
  Task crowded = TextTask();  // most episodes end in a collision, where ranges are unspecified
  crowded.world.random_discs.count = {60, 60};
  for (const Task& task : {TextTask(), TablesTask(), MixedTask(), crowded}) {
    Mlp scalar = Net(task, 6), simd = Net(task, 6);
    MeasureNormalisation(task, 10, Key(1), Kernel::kScalar, scalar);
    MeasureNormalisation(task, 10, Key(1), BestKernel(), simd);
    EXPECT_EQ(scalar.input_scale, simd.input_scale);
    EXPECT_EQ(scalar.input_shift, simd.input_shift);
  }
}

// Mean 0 and standard deviation 1 over the decisions that the gap follower really took, from its
// ways: at the last pose, after a collision or an arrival, nobody decides.
TEST(MeasureNormalisation, MakesInputsMeanZeroAndDeviationOneOnItsOwnSample) {
  Task task = MixedTask();
  task.world.goal.x = {1, 1};
  for (const RangeCode code : {RangeCode::kRaw, RangeCode::kScaled, RangeCode::kInverse}) {
    Mlp mlp = Net(task, 7);
    mlp.range_code = code;
    constexpr int kWorlds = 15;
    MeasureNormalisation(task, kWorlds, Key(2), BestKernel(), mlp);

    const WorldSource source = DrawnWorlds(task, Key(2), BestKernel());
    std::vector<Episode> episodes(kWorlds * 3);
    std::vector<Trajectory> ways(episodes.size());
    const Policy driver = GapFollower{};
    Rollout(task, driver, BestKernel()).Run(source, 3, 0, episodes, ways);
    const Lidar lidar(task.lidar);
    Batch batch(8, lidar);
    std::vector<double> sum(static_cast<std::size_t>(mlp.num_inputs())), squares = sum;
    double count = 0;
    World scratch;
    for (std::size_t e = 0; e < ways.size(); ++e) {
      const World& world = source(static_cast<std::int64_t>(e) / 3, scratch);
      for (std::size_t step = 0; step < ways[e].controls.size(); ++step) {
        const Pose& pose = ways[e].poses[step];
        Sense(BestKernel(), lidar, static_cast<float>(task.robot.radius), world, pose, batch);
        std::vector<double> raw = {static_cast<double>(pose.x),
                                   static_cast<double>(pose.y),
                                   std::sin(static_cast<double>(pose.heading)),
                                   std::cos(static_cast<double>(pose.heading)),
                                   static_cast<double>(batch.goal_forward[0]),
                                   static_cast<double>(batch.goal_left[0])};
        for (std::size_t beam = 0; beam < static_cast<std::size_t>(mlp.num_beams); ++beam) {
          const double r = static_cast<double>(batch.ranges[beam]);
          raw.push_back(code == RangeCode::kRaw      ? r
                        : code == RangeCode::kScaled ? r / task.lidar.range
                                                     : 1 / (r + 0.1));
        }
        for (std::size_t input = 0; input < raw.size(); ++input) {
          const double x = raw[input] * static_cast<double>(mlp.input_scale[input]) +
                           static_cast<double>(mlp.input_shift[input]);
          sum[input] += x;
          squares[input] += x * x;
        }
        ++count;
      }
    }
    for (std::size_t input = 0; input < sum.size(); ++input) {
      EXPECT_NEAR(sum[input] / count, 0, 1e-4) << input;
      EXPECT_NEAR(std::sqrt(squares[input] / count), 1, 1e-4) << input;
    }
  }
}

TEST(MeasureNormalisation, OnlyShiftsWhatDoesNotVary) {
  Task task = TextTask();
  task.world.walls.clear();
  task.world.random_discs.count = {0, 0};
  task.world.disturbance = {};
  Mlp mlp = Net(task, 8);
  MeasureNormalisation(task, 3, Key(3), BestKernel(), mlp);
  const std::size_t beam = 6;  // sees nothing but its range
  EXPECT_EQ(mlp.input_scale[beam], 1.0F);
  EXPECT_NEAR(mlp.input_shift[beam], -1.0F, 1e-6);  // scaled ranges
}

}  // namespace
}  // namespace fedgen
