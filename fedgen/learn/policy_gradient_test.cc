// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/policy_gradient.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ranges>

#include "fedgen/base/archive.h"
#include "fedgen/learn/policy_gradient_testing.h"
#include "tests/tasks.h"

namespace fedgen {
namespace {

using ::testing::HasSubstr;
using Method = PolicyGradientOptions::Method;

std::vector<double> Difference(std::span<const float> a, std::span<const float> b) {
  std::vector<double> difference(a.size());
  for (std::size_t at = 0; at < a.size(); ++at) {
    difference[at] = static_cast<double>(a[at]) - static_cast<double>(b[at]);
  }
  return difference;
}

// A task with everything, and a policy that is normalised.
Given Mixed(Method method) {
  Task task = MixedTask();
  task.world.goal = {.offset = {4, 4}};  // within reach, with a policy that steers a little
  task.robot.kind = RobotOptions::Kind::kDifferential;
  task.lidar.beams = 9;
  task.episode.horizon = 40;
  MlpOptions options;
  options.hidden = {6};
  options.goal_inputs = true;
  Given given;
  given.net = MakeMlp(options, BodyOf(task));
  DrawParameters(Key(21), 0.3, given.net);
  for (std::size_t input = 0; input < given.net.input_scale.size(); ++input) {
    given.net.input_scale[input] = 0.5F;
    given.net.input_shift[input] = -0.1F;
  }
  PolicyGradientSettings& settings = given.settings;
  settings.grounds = {{task, 4, 60}};
  settings.options.method = method;
  settings.options.minibatch = 500;
  settings.options.epochs = 2;
  settings.options.refit_epochs = 2;
  settings.options.critic_hidden = {8};
  settings.options.averaging = 0.5;
  settings.cost.margin = 0.05;
  settings.step = {.step = 0.01, .schedule = StepOptions::Schedule::kConstant};
  settings.optimizer.kind =
      method == Method::kPpo ? OptimizerOptions::Kind::kAdam : OptimizerOptions::Kind::kSgd;
  settings.stop.rule = StopOptions::Rule::kNever;
  settings.kernel = BestKernel();
  return given;
}

// Every way to go about it that keeps something else in mind.
std::vector<std::pair<std::string, Given>> Variants() {
  std::vector<std::pair<std::string, Given>> variants = {{"plain", Mixed(Method::kPlain)},
                                                         {"ppo", Mixed(Method::kPpo)},
                                                         {"hard", Mixed(Method::kPpo)},
                                                         {"way", Mixed(Method::kPpo)}};
  variants[2].second.settings.options.hard_share = 0.5;
  variants[2].second.settings.options.crowding = 1.5;
  variants[2].second.settings.stop.rule = StopOptions::Rule::kPlateau;
  // Everybody's worlds, of other horizons and starts, and with a rule that looks at z.
  PolicyGradientSettings& last = variants[3].second.settings;
  last.options.way = true;
  last.options.averaging = 0;
  last.stop = {StopOptions::Rule::kGradient, 0};
  last.grounds.front().episodes = 3;
  PracticeGround other = last.grounds.front();
  other.task.episode.horizon = 25;
  other.task.world.start.per_world = 1;
  last.grounds.push_back(other);
  return variants;
}

TEST(PolicyGradient, GivesTheSameBitsForAnyThreadsAndKernel) {
  for (auto& [name, given] : Variants()) {
    std::string expected;
    for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
      for (const int num_threads :
           kernel == Kernel::kScalar ? std::vector{1} : std::vector{1, 2, 3}) {
        given.settings.kernel = kernel;
        given.settings.num_threads = num_threads;
        PolicyGradient learner = given.Make();
        std::vector<float> theta = ThetaOf(given.net);
        Writer writer;
        for (int k = 1; k <= 2; ++k) {
          const Look look = Round(learner, k, Key(22), theta);
          writer(look.y, look.episodes, look.z_norm, look.spread, theta, learner.SaveState());
        }
        const std::string bytes = writer.Take();
        if (expected.empty()) expected = bytes;
        EXPECT_TRUE(bytes == expected)
            << name << ", " << num_threads << " threads, " << KernelName(kernel);
      }
    }
  }
}

TEST(PolicyGradient, GoesOnFromItsSavedStateBitForBit) {
  for (const auto& [name, given] : Variants()) {
    PolicyGradient learner = given.Make();
    std::vector<float> theta = ThetaOf(given.net);
    for (int k = 1; k <= 3; ++k) Round(learner, k, Key(23), theta);
    PolicyGradient other = given.Make();
    std::vector<float> again = theta;
    const Result<void> loaded = other.LoadState(learner.SaveState(), theta.size());
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ(other.state(), learner.state());
    for (int k = 4; k <= 6; ++k) {
      Round(learner, k, Key(23), theta);
      Round(other, k, Key(23), again);
      ASSERT_EQ(again, theta) << name << ", round " << k;
      ASSERT_EQ(other.SaveState(), learner.SaveState()) << name << ", round " << k;
    }
    EXPECT_NE(learner.state().critic, given.Make().state().critic);
  }
}

TEST(PolicyGradient, RefusesAStateThatDoesNotFit) {
  const Given given = Mixed(Method::kPpo);
  PolicyGradient learner = given.Make();
  std::vector<float> theta = ThetaOf(given.net);
  Round(learner, 1, Key(24), theta);
  const std::string before = learner.SaveState();
  const auto complaint = [&](std::string_view bytes, std::size_t num_parameters) {
    const Result<void> loaded = learner.LoadState(bytes, num_parameters);
    EXPECT_EQ(loaded ? ErrorCode{} : loaded.error().code, ErrorCode::kData);
    return loaded ? "" : loaded.error().message;
  };
  EXPECT_THAT(complaint("", theta.size()), HasSubstr("truncated"));
  EXPECT_THAT(complaint(before + "x", theta.size()), HasSubstr("bytes after the end"));
  EXPECT_THAT(complaint(before, theta.size() + 1), HasSubstr("number of parameters"));
  EXPECT_THAT(complaint(before, 3), HasSubstr("number of parameters"));
  // Of learners with another network, another critic, other grounds.
  const auto state_of = [](const Given& another) {
    PolicyGradient stranger = another.Make();
    std::vector<float> at = ThetaOf(another.net);
    Round(stranger, 1, Key(24), at);
    return stranger.SaveState();
  };
  Given wider = given, critical = given, travelled = given;
  wider.net.hidden = {7};
  wider.net.parameters.assign(NumParameters(wider.net), 0.1F);
  EXPECT_THAT(complaint(state_of(wider), theta.size()), HasSubstr("the search has another number"));
  critical.settings.options.critic_hidden = {9};
  EXPECT_THAT(complaint(state_of(critical), theta.size()), HasSubstr("the critic has another"));
  travelled.settings.grounds.push_back(travelled.settings.grounds.front());
  EXPECT_THAT(complaint(state_of(travelled), theta.size()), HasSubstr("list"));
  EXPECT_EQ(learner.SaveState(), before) << "what was refused changed nothing";
}

// Only what is learned moves: neither the normalisation, nor theta while it is measured.
TEST(PolicyGradient, MovesTheNetworkOnly) {
  for (const auto& [name, given] : Variants()) {
    PolicyGradient learner = given.Make();
    const std::vector<float> initial = ThetaOf(given.net);
    std::vector<float> theta = initial;
    learner.Measure(1, 10, theta, Key(25));
    EXPECT_EQ(theta, initial);
    ASSERT_TRUE(learner.Improve(1, 10, Key(26), theta).moved);
    const std::size_t frozen = 2 * given.net.input_scale.size();
    EXPECT_TRUE(std::equal(theta.begin(), theta.begin() + static_cast<std::ptrdiff_t>(frozen),
                           initial.begin()));
    EXPECT_FALSE(std::equal(theta.begin() + static_cast<std::ptrdiff_t>(frozen), theta.end(),
                            initial.begin() + static_cast<std::ptrdiff_t>(frozen)))
        << name;
  }
}

// y is of theta without noise, in the true task: what is practised instead does not touch it.
TEST(PolicyGradient, MeasuresTheTrueTask) {
  for (const Method method : {Method::kPpo, Method::kPlain}) {
    Given given = Mixed(method);
    const std::vector<float> theta = ThetaOf(given.net);
    const Value value = given.MakeObjective()->MeasureValue(theta, 4, Key(27));
    EXPECT_GT(value.variance, 0) << "or nothing was tested";
    for (const double odd : {0.0, 1.0}) {
      given.settings.cost.margin = 0.2 * odd;
      given.settings.options.crowding = 1 + odd;
      given.settings.options.noise = 0.1 + odd;
      PolicyGradient learner = given.Make();
      const Look look = learner.Measure(1, 10, theta, Key(27));
      EXPECT_EQ(look.y, value.y);
      EXPECT_EQ(look.episodes, 4 * 3 + 60);
      EXPECT_EQ(look.z_norm.has_value(), method == Method::kPlain);
      EXPECT_EQ(learner.MeasureValue(theta, 4, Key(27)).y, value.y);
    }
  }
}

TEST(PracticeTask, IsWiderAndDenserAndElseTheSame) {
  Task task = MixedTask();
  task.world.random_boxes.count = {1, 3};
  PolicyGradientOptions options;
  options.crowding = 1.5;
  Task practised = PracticeTask(task, {.margin = 0.06}, options);
  EXPECT_DOUBLE_EQ(practised.robot.radius, task.robot.radius + 0.06);
  EXPECT_EQ(practised.world.random_discs.count, (CountInterval{0, 60}));
  EXPECT_EQ(practised.world.random_boxes.count, (CountInterval{2, 5}));  // 1.5 and 4.5, rounded up
  practised.robot.radius = task.robot.radius;
  practised.world.random_discs.count = task.world.random_discs.count;
  practised.world.random_boxes.count = task.world.random_boxes.count;
  EXPECT_EQ(CanonicalTaskV1(practised), CanonicalTaskV1(task));
  options.method = Method::kPlain;
  EXPECT_EQ(CanonicalTaskV1(PracticeTask(task, {.margin = 0.06}, options)), CanonicalTaskV1(task));
}

// What is marked ppo is not for the plain method: it practises the true task for the true cost.
TEST(PolicyGradient, IsPlainWhateverPpoIsTold) {
  const auto bytes = [](const Given& given) {
    PolicyGradient learner = given.Make();
    std::vector<float> theta = ThetaOf(given.net);
    for (int k = 1; k <= 2; ++k) Round(learner, k, Key(54), theta);
    return learner.SaveState();
  };
  Given given = Mixed(Method::kPlain);
  const std::string expected = bytes(given);
  PolicyGradientOptions& options = given.settings.options;
  options.last_noise = 0.01;
  options.discount = 0.5;
  options.trace = 0.1;
  options.clip = 0.01;
  options.normalise = false;
  options.norm_limit = 1e-3;
  options.averaging = 0.9;
  options.refit_epochs = 7;
  options.time_weight = 5;
  options.failure_weight = 6;
  options.way = true;
  options.crowding = 2;
  options.hard_share = 0.9;
  given.settings.cost = {TrainingCost::Kind::kFailure, 0.7, 0.1};
  EXPECT_EQ(bytes(given), expected);
  options.noise = 0.31;
  EXPECT_NE(bytes(given), expected);
}

// What the plain method's critic learns to expect is what was left of -J.
TEST(PolicyGradient, FitsThePlainCriticToWholeEpisodes) {
  const Given given = Mixed(Method::kPlain);
  PolicyGradient learner = given.Make();
  std::vector<float> theta = ThetaOf(given.net);
  Round(learner, 1, Key(55), theta);
  const Experience& experience = *given.experience;
  for (std::size_t e = 0; e < experience.episodes.size(); ++e) {
    const Episode& episode = experience.episodes[e];
    if (episode.steps == 0) continue;
    ASSERT_NEAR(experience.notes[experience.FirstStep(e)].target,
                -Cost(given.settings.grounds[0].task.episode, episode), 1e-6);
  }
}

// Eq. 48 and 49 agree where nothing has moved yet: with one minibatch and plain descent the first
// step of ppo is down the mean over samples, which is z times worlds over samples.
TEST(PolicyGradient, TakesItsFirstStepDownZ) {
  Given given = Mixed(Method::kPpo);
  PolicyGradientSettings& settings = given.settings;
  settings.grounds.front().task.world.start.per_world = 1;
  settings.stop = {StopOptions::Rule::kGradient, 0};  // asks for z
  settings.optimizer.kind = OptimizerOptions::Kind::kSgd;
  settings.options.epochs = 1;
  settings.options.minibatch = 1000000;
  settings.options.normalise = false;
  settings.options.norm_limit = 0;
  settings.options.averaging = 0;
  PolicyGradient learner = given.Make();
  std::vector<float> theta = ThetaOf(given.net);
  learner.Measure(1, 10, theta, Key(28));
  const std::vector<double> z = learner.measurement().z_mu;
  const double share = 60.0 / static_cast<double>(given.experience->steps.size());
  ASSERT_TRUE(learner.Improve(1, 10, Key(29), theta).moved);
  const std::vector<double> move =
      Difference(std::span(theta).last(z.size()), given.net.parameters);
  EXPECT_GT(Norm(z) * share, 0.01);
  for (std::size_t at = 0; at < z.size(); ++at) {
    ASSERT_NEAR(move[at], -0.01 * share * z[at], 1e-6) << at;
  }
  EXPECT_EQ(std::vector<float>(theta.end() - std::ssize(z), theta.end()), learner.state().search);

  // A limit far below its length makes the step this long.
  settings.options.norm_limit = 1e-3;
  settings.step.step = 1;
  PolicyGradient limited = given.Make();
  theta = ThetaOf(given.net);
  limited.Measure(1, 10, theta, Key(28));
  limited.Improve(1, 10, Key(29), theta);
  EXPECT_NEAR(Norm(Difference(limited.state().search, given.net.parameters)), 1e-3, 1e-6);
}

TEST(PolicyGradient, NormalisesAdvantages) {
  const Given given = Mixed(Method::kPpo);
  PolicyGradient learner = given.Make();
  std::vector<float> theta = ThetaOf(given.net);
  Round(learner, 1, Key(30), theta);
  double sum = 0, squares = 0;
  for (const std::uint32_t step : given.experience->steps) {
    const auto advantage = static_cast<double>(given.experience->notes[step].advantage);
    sum += advantage;
    squares += advantage * advantage;
  }
  const auto n = static_cast<double>(given.experience->steps.size());
  EXPECT_NEAR(sum / n, 0, 1e-6);
  EXPECT_NEAR(squares / n, 1, 1e-4);
}

// What is shared is an average of where the search has been: after round n at most the share
// (n + 1) / (n + 10) of it is past.
TEST(PolicyGradient, SharesAnAverage) {
  const Given given = Mixed(Method::kPpo);
  PolicyGradient learner = given.Make();
  std::vector<float> theta = ThetaOf(given.net);
  std::vector<float> before = given.net.parameters;
  for (const double keep : {2.0 / 11, 3.0 / 12, 4.0 / 13}) {
    Round(learner, 1, Key(31), theta);
    const std::vector<float>& search = learner.state().search;
    const std::span<const float> shared = std::span(theta).last(search.size());
    for (std::size_t at = 0; at < search.size(); ++at) {
      const auto now = static_cast<double>(search[at]);
      ASSERT_NEAR(shared[at], now + keep * (static_cast<double>(before[at]) - now), 1e-6);
    }
    before.assign(shared.begin(), shared.end());
  }
  EXPECT_NE(learner.state().search, before);
}

// Somebody else's average: the search goes on from there, with what it knows.
TEST(PolicyGradient, FollowsAThetaThatWasChanged) {
  const Given given = Mixed(Method::kPpo);
  PolicyGradient learner = given.Make();
  std::vector<float> theta = ThetaOf(given.net);
  Round(learner, 1, Key(32), theta);
  Round(learner, 2, Key(32), theta);
  ASSERT_NE(learner.state().search, learner.state().average);
  theta[theta.size() - 3] += 0.25F;
  theta[1] = 0.75F;  // of the normalisation
  learner.Measure(3, 10, theta, Key(33));
  const std::vector<float> parameters(theta.end() - std::ssize(learner.state().search),
                                      theta.end());
  EXPECT_EQ(learner.state().search, parameters);
  EXPECT_EQ(learner.state().average, parameters);
  EXPECT_EQ(learner.state().averaged, 0);
  EXPECT_GT(learner.state().optimizer.steps, 0);
  // It practises with this network and this normalisation.
  const Experience& experience = *given.experience;
  NetworkShape shape{{given.net.num_inputs(), 6, 1}, Activation::kRelu};
  PackedNetwork network(shape);
  network.Pack(parameters);
  NetworkWorkspace workspace(shape);
  for (std::size_t at = 0; at < experience.steps.size(); at += 7) {
    const std::size_t step = experience.steps[at];
    const float* row = experience.row(step);
    float output = 0;
    Forward(BestKernel(), network, experience.RowsFrom(step, 1), workspace, {&output, 1});
    ASSERT_EQ(output, experience.notes[step].output);
    ASSERT_NEAR(row[1], 0.75 * static_cast<double>(experience.stands[step].y) - 0.1, 1e-5);
  }
}

// After an adoption: a new search, and a critic that first gets to know the new policy.
TEST(PolicyGradient, RestartsFromAnotherPolicy) {
  const Given given = Mixed(Method::kPpo);
  PolicyGradient learner = given.Make();
  std::vector<float> theta = ThetaOf(given.net);
  const std::vector<float> drawn = learner.state().critic;
  learner.Measure(1, 10, theta, Key(34));
  EXPECT_TRUE(learner.state().critic_fits);
  const std::vector<float> fitted = learner.state().critic;
  EXPECT_NE(fitted, drawn) << "at the start it is fitted first";
  learner.Measure(1, 10, theta, Key(35));
  EXPECT_EQ(learner.state().critic, fitted) << "and not by measuring again";
  learner.Improve(1, 10, Key(36), theta);

  const std::vector<float> trained = learner.state().critic;
  learner.Restart();
  EXPECT_EQ(learner.state().optimizer, OptimizerState{});
  EXPECT_EQ(learner.state().critic_optimizer, OptimizerState{});
  EXPECT_FALSE(learner.state().critic_fits);
  EXPECT_EQ(learner.state().critic, trained) << "what it knows about worlds is worth keeping";
  std::vector<float> adopted = ThetaOf(given.net);
  for (float& value : adopted) value *= 0.5F;
  learner.Measure(2, 10, adopted, Key(37));
  EXPECT_TRUE(std::ranges::equal(learner.state().search,
                                 std::span(adopted).last(learner.state().search.size())));
  EXPECT_NE(learner.state().critic, trained) << "fitted again";
  EXPECT_TRUE(learner.state().critic_fits);
}

// Worlds in which it failed are practised again, the newest first.
TEST(PolicyGradient, PractisesHardWorldsAgain) {
  Given given = Mixed(Method::kPpo);
  given.settings.options.hard_share = 0.25;  // five of 20 worlds with three starts
  given.settings.grounds[0].task.world.random_discs.count = {0, 20};
  PolicyGradient learner = given.Make();
  std::vector<float> theta = ThetaOf(given.net);
  Round(learner, 1, Key(38), theta);
  const std::vector<std::uint64_t> hard = learner.state().hard[0];
  std::size_t failed_worlds = 0;
  const auto failed = [&](std::size_t world) {
    const auto* of_world = given.experience->episodes.data() + 3 * world;
    return std::any_of(of_world, of_world + 3,
                       [](const Episode& e) { return e.outcome != Outcome::kReachedGoal; });
  };
  for (std::size_t world = 0; world < 20; ++world) failed_worlds += failed(world) ? 1 : 0;
  EXPECT_EQ(hard.size(), failed_worlds);
  ASSERT_GE(hard.size(), 6U);
  ASSERT_LT(hard.size(), 20U);
  learner.Measure(2, 10, theta, Key(39));
  const Task task =
      PracticeTask(given.settings.grounds[0].task, given.settings.cost, given.settings.options);
  World world;
  for (std::size_t e = 0; e < 15; ++e) {
    if (given.experience->episodes[e].steps == 0) continue;
    DrawWorld(task.world, task.robot.radius, Key(hard[e / 3]), BestKernel(), world);
    const std::size_t step = given.experience->FirstStep(e);
    ASSERT_EQ(given.experience->stands[step].x, world.starts[e % 3].x) << "episode " << e;
    ASSERT_EQ(given.experience->stands[step].y, world.starts[e % 3].y);
  }
  // What failed again stays, what went well goes: none is listed twice.
  std::vector<std::uint64_t> later = learner.state().hard[0];
  EXPECT_LE(later.size(), 20U);
  for (std::size_t at = 0; at < 5; ++at) {
    EXPECT_EQ(std::ranges::count(later, hard[at]), failed(at) ? 1 : 0) << at;
  }
  // The newest come first, then those that were not practised now.
  const std::size_t num_new = static_cast<std::size_t>(
      std::ranges::count_if(std::views::iota(std::size_t{0}, std::size_t{20}), failed));
  const std::size_t num_old = std::min(hard.size() - 5, 20 - num_new);
  ASSERT_GT(num_old, 0U);
  ASSERT_EQ(later.size(), num_new + num_old);
  EXPECT_TRUE(
      std::ranges::equal(std::span(later).last(num_old), std::span(hard).subspan(5, num_old)));
  std::ranges::sort(later);
  EXPECT_EQ(std::ranges::adjacent_find(later), later.end());
}

TEST(PolicyGradient, LowersItsNoiseGeometrically) {
  Given given = Mixed(Method::kPpo);
  given.settings.options.noise = 0.4;
  given.settings.options.last_noise = 0.1;
  EXPECT_DOUBLE_EQ(given.Make().NoiseOf(1, 11), 0.4);
  EXPECT_DOUBLE_EQ(given.Make().NoiseOf(6, 11), 0.2);
  EXPECT_DOUBLE_EQ(given.Make().NoiseOf(11, 11), 0.1);
  given.settings.options.method = Method::kPlain;
  EXPECT_DOUBLE_EQ(given.Make().NoiseOf(11, 11), 0.4);
}

TEST(PolicyGradient, StopsBelowTheThresholdAndLeavesTheta) {
  for (const Method method : {Method::kPpo, Method::kPlain}) {
    Given given = Mixed(method);
    given.settings.stop = {StopOptions::Rule::kGradient, 1e9};
    PolicyGradient learner = given.Make();
    const std::vector<float> initial = ThetaOf(given.net);
    std::vector<float> theta = initial;
    const Look look = learner.Measure(1, 10, theta, Key(40));
    EXPECT_EQ(look.threshold, 1e9);
    EXPECT_EQ(look.z_norm, Norm(learner.measurement().z_mu));
    EXPECT_FALSE(learner.Improve(1, 10, Key(41), theta).moved);
    EXPECT_EQ(theta, initial);
    EXPECT_EQ(learner.state().search, given.net.parameters);
  }
}

// Whoever starts in the goal takes no step, and there is nothing to learn from: 0 samples, whose
// mean is not a number.
TEST(PolicyGradient, LearnsNothingFromEpisodesWithoutSteps) {
  for (const Method method : {Method::kPpo, Method::kPlain}) {
    Given given = Mixed(method);
    given.settings.grounds[0].task.world.goal = {.offset = {-100, -100}};
    PolicyGradient learner = given.Make();
    const std::vector<float> initial = ThetaOf(given.net);
    std::vector<float> theta = initial;
    EXPECT_EQ(Round(learner, 1, Key(42), theta).y, 0);
    EXPECT_EQ(theta, initial);
    EXPECT_EQ(learner.state().critic, given.Make().state().critic);
  }
}

// A dozen discs around the way to a goal 5 m ahead. Twenty rounds take J from 0.62 to 0.22 (ppo)
// and 0.26 (plain); 500 worlds know it to 0.02.
TEST(PolicyGradient, Learns) {
  Task task = TextTask();
  task.world.random_discs.count = {12, 16};
  task.world.goal.offset = {6, 6};
  task.world.disturbance.kind = Disturbance::Kind::kNone;
  task.robot.kind = RobotOptions::Kind::kDifferential;
  task.lidar.beams = 12;
  task.episode.horizon = 60;
  for (const Method method : {Method::kPpo, Method::kPlain}) {
    Given given;
    MlpOptions options;
    options.hidden = {16};
    options.range_code = RangeCode::kInverse;
    options.state_inputs = false;
    options.goal_inputs = true;
    given.net = MakeMlp(options, BodyOf(task));
    DrawParameters(Key(51), 0.3, given.net);
    given.settings.grounds = {{task, 1, 128}};
    given.settings.options.method = method;
    given.settings.options.minibatch = 2048;
    given.settings.options.averaging = 0;
    given.settings.options.last_noise = 0.3;
    given.settings.step = {.step = method == Method::kPpo ? 0.01 : 0.03,
                           .schedule = StepOptions::Schedule::kConstant};
    given.settings.optimizer.kind = OptimizerOptions::Kind::kAdam;
    given.settings.stop.rule = StopOptions::Rule::kNever;
    given.settings.kernel = BestKernel();
    PolicyGradient learner = given.Make();
    std::vector<float> theta = ThetaOf(given.net);
    const double before = learner.MeasureValue(theta, 500, Key(52)).y;
    for (int k = 1; k <= 20; ++k) Round(learner, k, Key(53), theta);
    const double after = learner.MeasureValue(theta, 500, Key(52)).y;
    EXPECT_GT(before, 0.5);
    EXPECT_LT(after, 0.35) << "who drives straight on through free worlds has 0.18";
  }
}

}  // namespace
}  // namespace fedgen
