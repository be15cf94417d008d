// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/experiment.h"

#include <fmt/format.h>

#include <algorithm>

#include "fedgen/certify/bounds.h"

namespace fedgen {
namespace {

std::unique_ptr<Learner> MakeLearner(const TrainingSettings& settings,
                                     const LearnerSettings& learner, int index, const Mlp& initial,
                                     Key key, Kernel kernel, int num_threads) {
  LearnerOptions options;
  options.bias = BiasOf(settings, learner);
  options.step = learner.step;
  options.optimizer = learner.optimizer;
  options.stop = learner.stop;
  options.sigma_rate = learner.sigma_rate;
  options.stock_every = learner.stock_every;
  options.stock_worlds = learner.stock_worlds;
  options.rest = learner.rest;
  options.candidate_worlds = learner.stock_every > 0 ? learner.stock_worlds : learner.worlds;
  options.gamma = settings.gamma;
  Search search{ThetaOf(initial), InitialSigma(initial, learner.sigma)};
  return std::make_unique<Learner>(index, options,
                                   MakeObjective(settings, learner, kernel, num_threads),
                                   std::move(search), key);
}

}  // namespace

std::optional<FieldError> Validate(const LearnerSettings& settings) {
  const auto in = [](double value, double low, double high) {
    return value >= low && value <= high;
  };
  if (settings.worlds < 1 || settings.worlds > 1000000) {
    return FieldError{"worlds", fmt::format("{}: must be in 1..1000000", settings.worlds)};
  }
  if (settings.starts < 0 || settings.starts > 10000) {
    return FieldError{"starts", fmt::format("{}: must be in 1..10000, or 0 for the world's own",
                                            settings.starts)};
  }
  if (!in(settings.sigma, 1e-6, 1000)) {  // what is less is lost next to mu, in float
    return FieldError{"sigma", fmt::format("{}: must be in [1e-6, 1000]", settings.sigma)};
  }
  if (!in(settings.sigma_rate, 0, 1e6)) {
    return FieldError{"sigma_rate", fmt::format("{}: must be in [0, 1e6]", settings.sigma_rate)};
  }
  if (!in(settings.initial_half_width, 0, 10)) {
    return FieldError{"initial_half_width",
                      fmt::format("{}: must be in [0, 10]", settings.initial_half_width)};
  }
  if (!(settings.bias.given > 0 && settings.bias.given <= 1e6)) {
    return FieldError{"bias", fmt::format("{}: must be in (0, 1e6]", settings.bias.given)};
  }
  if (settings.stock_every < 0 || settings.stock_every > 1000000) {
    return FieldError{"stock_every",
                      fmt::format("{}: must be in 0..1000000", settings.stock_every)};
  }
  if (settings.stock_worlds < 2 || settings.stock_worlds > 100000000) {
    return FieldError{"stock_worlds",
                      fmt::format("{}: must be in 2..100000000", settings.stock_worlds)};
  }
  if (auto error = Validate(settings.cost)) return error;
  if (auto error = Validate(settings.estimator)) return error;
  if (auto error = Validate(settings.step)) return error;
  return Validate(settings.stop);
}

double BiasOf(const TrainingSettings& settings, const LearnerSettings& learner) {
  if (learner.bias.kind == BiasOptions::Kind::kGiven) return learner.bias.given;
  double samples = learner.worlds;
  if (learner.bias.kind == BiasOptions::Kind::kPaper) {
    samples *= TaskOf(settings, learner).world.start.per_world;
  }
  return LearnerBias(static_cast<std::int64_t>(samples), settings.gamma);
}

Task TaskOf(const TrainingSettings& settings, const LearnerSettings& learner) {
  Task task = settings.task;
  if (learner.own_world) task.world = *learner.own_world;
  if (learner.starts > 0) task.world.start.per_world = learner.starts;
  return task;
}

Mlp ShapeOf(const TrainingSettings& settings) {
  const Task& task = settings.task;
  return MakeMlp(settings.policy, task.lidar.beams, task.lidar.range, ControlLimit(task.robot));
}

std::unique_ptr<Objective> MakeObjective(const TrainingSettings& settings,
                                         const LearnerSettings& learner, Kernel kernel,
                                         int num_threads) {
  NavigationOptions navigation;
  navigation.worlds = learner.worlds;
  navigation.cost = learner.cost;
  navigation.kernel = kernel;
  navigation.num_threads = num_threads;
  auto costs = MakeNavigationCosts(TaskOf(settings, learner), ShapeOf(settings), navigation);
  return MakeEstimator(learner.estimator, std::move(costs), kernel, num_threads);
}

Mlp InitialPolicy(const TrainingSettings& settings, const LearnerSettings& learner, Key key,
                  Kernel kernel) {
  if (learner.initial_policy) return *learner.initial_policy;
  Mlp mlp = ShapeOf(settings);
  DrawParameters(key.Fork(Stream::kInitialPolicy), learner.initial_half_width, mlp);
  if (settings.normalisation == Normalisation::kMeasured) {
    // Round 0 of the training worlds: a learner never trains on them.
    MeasureNormalisation(TaskOf(settings, learner), settings.normalisation_worlds,
                         key.Fork(Stream::kTraining).Fork(0), kernel, mlp);
  }
  return mlp;
}

std::vector<LearnerSettings> LearnersOf(const TrainingSettings& settings) {
  const Algorithm algorithm = settings.federation.algorithm;
  std::vector<LearnerSettings> wanted = settings.learners;
  if (algorithm == Algorithm::kCentralized) {
    LearnerSettings one = wanted.front();
    one.estimator.pairs = 0;
    for (const LearnerSettings& learner : wanted) one.estimator.pairs += learner.estimator.pairs;
    wanted = {one};
  }
  if (algorithm != Algorithm::kFedGen) {
    for (LearnerSettings& learner : wanted) {
      learner.stop.rule = StopOptions::Rule::kNever;
      learner.stock_every = 0;
      learner.rest = false;
    }
  }
  return wanted;
}

Federation MakeFederation(const TrainingSettings& settings, Key seed, Kernel kernel,
                          int num_threads) {
  const Algorithm algorithm = settings.federation.algorithm;
  const std::vector<LearnerSettings> wanted = LearnersOf(settings);
  FederationOptions federation = settings.federation;
  if (algorithm != Algorithm::kFedGen) federation.average_every = 0;
  const Key learners_key = seed.Fork(Stream::kLearner);
  const Mlp first = InitialPolicy(settings, wanted.front(), learners_key.Fork(0), kernel);
  std::vector<std::unique_ptr<Learner>> learners;
  for (std::size_t index = 0; index < wanted.size(); ++index) {
    const Key key = learners_key.Fork(index);
    const Mlp initial = index == 0 || algorithm == Algorithm::kFedAvg
                            ? first
                            : InitialPolicy(settings, wanted[index], key, kernel);
    learners.push_back(MakeLearner(settings, wanted[index], static_cast<int>(index), initial, key,
                                   kernel, num_threads));
  }
  // Who begins with the same policy has the same origin.
  for (std::size_t index = 1; index < learners.size(); ++index) {
    for (std::size_t other = 0; other < index; ++other) {
      if (learners[other]->state().search.mu != learners[index]->state().search.mu) continue;
      LearnerState state = learners[index]->state();
      state.origin = static_cast<int>(other);
      learners[index]->set_state(std::move(state));
      break;
    }
  }
  return {federation, std::move(learners)};
}

}  // namespace fedgen
