// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "fedgen/learn/policy_gradient_testing.h"

namespace fedgen {
namespace {

// Whether the plain policy gradient is unbiased, on a task whose gradient is known.
//
// A differential drive, two steps of 0.2 s at 2.5 m/s, no obstacle. It starts along the x axis at
// y = 1 and x in U(-1, 1). The first step goes straight ahead and turns by 0.2 u; the second climbs
// 0.5 sin(0.2 u). The goal begins where u = 0.3 takes it, so it arrives if and only if the first
// noisy output o(x) + s n is above 0.3, and
//   eta = E_x [ 1 - Phi((o(x) - 0.3) / s) e^(-0.4 rate) ].

constexpr double kNoise = 0.5, kThreshold = 0.3, kRate = 0.5;

Given TwoSteps(std::vector<int> hidden, int starts, int episodes) {
  Task task;
  task.robot.kind = RobotOptions::Kind::kDifferential;
  task.episode = {.time_step = 0.2, .horizon = 2, .cost_rate = kRate};
  task.lidar = {1, 5, 0, 0};
  task.world.start = {{-1, 1}, {1, 1}, {0, 0}, starts, 0};
  const double offset = 1 + 0.5 * std::sin(0.2 * kThreshold);
  task.world.goal.offset = {offset, offset};
  MlpOptions options;
  options.hidden = std::move(hidden);
  options.activation = Activation::kTanh;
  options.output_map = OutputMap::kClamp;
  Given given;
  given.net = MakeMlp(options, BodyOf(task));
  DrawParameters(Key(12), 1, given.net);
  given.net.parameters.back() = 0.2F;
  given.net.input_scale[0] = 1.5F;  // x
  given.net.input_shift[0] = 0.25F;
  given.settings.grounds = {{task, 1, episodes}};
  given.settings.options.method = PolicyGradientOptions::Method::kPlain;
  given.settings.options.noise = kNoise;
  given.settings.options.critic_hidden = {16};
  given.settings.options.critic_step = 0.01;
  given.settings.options.epochs = 4;
  given.settings.options.minibatch = 64;
  given.settings.step = {.step = 1e-3, .schedule = StepOptions::Schedule::kConstant};
  given.settings.stop.rule = StopOptions::Rule::kNever;
  given.settings.kernel = BestKernel();
  return given;
}

// o(x) in double; at most one hidden layer. Inputs are x, y, sin, cos and a free beam.
double OutputAt(const Mlp& net, std::span<const double> parameters, double x) {
  const double inputs[] = {1.5 * x + 0.25, 1, 0, 1, 1};
  std::vector<double> h(std::begin(inputs), std::end(inputs));
  std::size_t at = 0;
  for (int layer = 0; layer < net.num_layers(); ++layer) {
    std::vector<double> next(static_cast<std::size_t>(net.layer_outputs(layer)));
    for (double& unit : next) {
      for (const double input : h) unit += input * parameters[at++];
    }
    for (double& unit : next) {
      unit += parameters[at++];
      if (layer + 1 < net.num_layers()) unit = std::tanh(unit);
    }
    h = next;
  }
  return h[0];
}

double Eta(const Mlp& net, std::span<const double> parameters) {
  constexpr int kPoints = 400;
  double sum = 0;
  for (int point = 0; point < kPoints; ++point) {
    const double x = -1 + (2 * point + 1.0) / kPoints;
    const double margin = (OutputAt(net, parameters, x) - kThreshold) / kNoise;
    sum += 1 - 0.5 * std::erfc(-margin / std::numbers::sqrt2) * std::exp(-0.4 * kRate);
  }
  return sum / kPoints;
}

std::vector<double> TrueGradient(const Mlp& net) {
  std::vector<double> parameters(net.parameters.begin(), net.parameters.end());
  std::vector<double> gradient;
  for (double& parameter : parameters) {
    const double here = parameter;
    parameter = here + 1e-4;
    const double above = Eta(net, parameters);
    parameter = here - 1e-4;
    gradient.push_back((above - Eta(net, parameters)) / 2e-4);
    parameter = here;
  }
  return gradient;
}

// What many independent z of one policy come to.
struct Scatter {
  std::vector<double> mean, error;  // of every parameter
  double squared_distance = 0;      // mean of |z - truth|^2
  double squared_spread = 0;        // mean of what was reported for it
};

Scatter Repeat(PolicyGradient& learner, const Mlp& net, std::span<const double> truth, int repeats,
               bool fits) {
  const std::vector<float> theta = ThetaOf(net);
  Scatter scatter{std::vector<double>(truth.size()), std::vector<double>(truth.size())};
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const Key key = Key(13).Fork(static_cast<std::uint64_t>(repeat));
    learner.Measure(1, 10, theta, key.Fork(0));
    const Measurement& m = learner.measurement();
    for (std::size_t at = 0; at < truth.size(); ++at) {
      scatter.mean[at] += m.z_mu[at] / repeats;
      scatter.error[at] += m.z_mu[at] * m.z_mu[at] / repeats;
      scatter.squared_distance += std::pow(m.z_mu[at] - truth[at], 2) / repeats;
    }
    scatter.squared_spread += m.spread * m.spread / repeats;
    std::vector<float> moved = theta;  // the next round comes back to theta
    if (fits) learner.Improve(1, 10, key.Fork(1), moved);
  }
  for (std::size_t at = 0; at < truth.size(); ++at) {
    scatter.error[at] =
        std::sqrt((scatter.error[at] - scatter.mean[at] * scatter.mean[at]) / repeats);
  }
  return scatter;
}

// Eq. 48: the mean of z is the gradient and its reported spread is its scatter, whether the critic
// has learned nothing or learns from round to round, with one start a world and with several.
// 4 standard errors, and for the mean square of at least one direction 4 sqrt(2 / 500).
TEST(PlainPolicyGradient, HasTheKnownGradientAsItsMean) {
  for (const std::vector<int>& hidden : {std::vector<int>{}, {3}}) {
    std::vector<double> spreads;
    for (const bool fits : {false, true}) {
      for (const int starts : {1, 2}) {
        SCOPED_TRACE(fmt::format("{} hidden, critic {}, {} starts", hidden.size(), fits, starts));
        const Given given = TwoSteps(hidden, starts, 64);
        const std::vector<double> truth = TrueGradient(given.net);
        PolicyGradient learner = given.Make();
        const Scatter scatter = Repeat(learner, given.net, truth, 500, fits);
        for (std::size_t at = 0; at < truth.size(); ++at) {
          // A weight of sine, which is 0 at first, has no gradient; only the second step moves it.
          EXPECT_NEAR(scatter.mean[at], truth[at], 4 * scatter.error[at]) << "parameter " << at;
        }
        EXPECT_GT(Norm(truth), 0.3);
        EXPECT_LT(Norm(scatter.error), 0.1 * Norm(truth)) << "or nothing was tested";
        EXPECT_NEAR(scatter.squared_distance / scatter.squared_spread, 1, 0.25);
        spreads.push_back(std::sqrt(scatter.squared_spread));
      }
    }
    EXPECT_LT(spreads[2], 0.8 * spreads[0]) << "what a critic is for";
  }
}

}  // namespace
}  // namespace fedgen
