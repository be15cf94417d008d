// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/experiment.h"

#include <algorithm>
#include <limits>

#include "fedgen/certify/bounds.h"

namespace fedgen {
namespace {

// Round 0 of a learner's training worlds is for what comes before it learns; those of the
// normalisation are named by their index, so the teacher's have the last one to themselves.
constexpr std::uint64_t kImitation = std::numeric_limits<std::uint64_t>::max();

// Whose worlds are pooled. Costs are looked at, or single steps, as the first learner wants it.
std::vector<LearnerSettings> PartsOf(const TrainingSettings& settings) {
  std::vector<LearnerSettings> parts = settings.learners;
  for (LearnerSettings& part : parts) {
    if (ByPolicyGradient(part) != ByPolicyGradient(parts.front())) {
      part.estimator.kind = parts.front().estimator.kind;
    }
  }
  return parts;
}

// What the learner measures with: its own worlds, or everybody's.
std::unique_ptr<Objective> MakeObjectiveOf(const TrainingSettings& settings,
                                           const LearnerSettings& learner, Kernel kernel,
                                           int num_threads) {
  if (settings.federation.algorithm != Algorithm::kCentralized) {
    return MakeObjective(settings, learner, kernel, num_threads);
  }
  std::vector<PooledPart> parts;
  parts.reserve(settings.learners.size());
  for (const LearnerSettings& part : PartsOf(settings)) {
    parts.push_back({MakeObjective(settings, part, kernel, num_threads), part.worlds});
  }
  return MakePooledObjective(std::move(parts));
}

// Where it practises: in its own worlds, or in everybody's.
std::vector<PracticeGround> GroundsOf(const TrainingSettings& settings,
                                      const LearnerSettings& learner) {
  const bool pooled = settings.federation.algorithm == Algorithm::kCentralized;
  std::vector<PracticeGround> grounds;
  for (const LearnerSettings& part : pooled ? settings.learners : std::vector{learner}) {
    grounds.push_back({TaskOf(settings, part), part.worlds, part.policy_gradient.episodes});
  }
  return grounds;
}

std::unique_ptr<Improver> MakeImprover(const TrainingSettings& settings,
                                       const LearnerSettings& learner, const Seat& seat,
                                       const Mlp& initial, std::shared_ptr<Experience> experience,
                                       Kernel kernel, int num_threads) {
  auto objective = MakeObjectiveOf(settings, learner, kernel, num_threads);
  if (ByPolicyGradient(learner)) {
    PolicyGradientSettings of{
        learner.policy_gradient,      learner.cost, learner.step, learner.optimizer, learner.stop,
        GroundsOf(settings, learner), kernel,       num_threads};
    return std::make_unique<PolicyGradient>(std::move(of), initial, std::move(objective),
                                            std::move(experience),
                                            seat.secret.Fork(Stream::kInitialPolicy).Fork(1));
  }
  return std::make_unique<GradientSearch>(
      GradientSearchOptions{learner.step, learner.optimizer, learner.stop, learner.sigma_rate,
                            learner.sigma_step},
      std::move(objective), InitialSigma(initial, learner.sigma));
}

std::unique_ptr<Learner> MakeLearner(const TrainingSettings& settings,
                                     const LearnerSettings& learner, const Seat& seat,
                                     std::shared_ptr<Experience> experience, Kernel kernel,
                                     int num_threads) {
  LearnerOptions options;
  options.bias = BiasOf(settings, learner);
  options.stock_every = learner.stock_every;
  options.stock_growth = learner.stock_growth;
  options.stock_worlds = learner.stock_worlds;
  options.rest = learner.rest;
  options.candidate_worlds = learner.stock_every > 0 ? learner.stock_worlds : learner.worlds;
  options.gamma = settings.gamma;
  options.task = TaskName(TaskOf(settings, learner));
  const Mlp initial = InitialPolicy(settings, learner, seat.secret, kernel, num_threads);
  auto improver =
      MakeImprover(settings, learner, seat, initial, std::move(experience), kernel, num_threads);
  return std::make_unique<Learner>(seat.id, options, std::move(improver), ThetaOf(initial),
                                   seat.secret);
}

}  // namespace

bool ByPolicyGradient(const LearnerSettings& learner) {
  return learner.estimator.kind == EstimatorOptions::Kind::kPolicyGradient;
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
  return MakeMlp(settings.policy, BodyOf(settings.task));
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
                  Kernel kernel, int num_threads) {
  if (learner.initial_policy) return *learner.initial_policy;
  const Task task = TaskOf(settings, learner);
  const Key before = key.Fork(Stream::kTraining).Fork(0);  // a learner never trains on its worlds
  Mlp mlp = ShapeOf(settings);
  DrawParameters(key.Fork(Stream::kInitialPolicy), learner.initial_half_width, mlp);
  if (settings.normalisation == Normalisation::kMeasured) {
    MeasureNormalisation(task, settings.normalisation_worlds, before, kernel, mlp);
  }
  if (settings.teacher) {
    Imitate(*settings.teacher, task, settings.imitation, before.Fork(kImitation), kernel,
            num_threads, mlp);
  }
  return mlp;
}

std::vector<LearnerSettings> LearnersOf(const TrainingSettings& settings) {
  const Algorithm algorithm = settings.federation.algorithm;
  std::vector<LearnerSettings> wanted = settings.learners;
  if (algorithm == Algorithm::kCentralized || algorithm == Algorithm::kSingle) {
    LearnerSettings one = wanted.front();
    for (auto other = wanted.begin() + 1; other != wanted.end(); ++other) {
      one.estimator.pairs += other->estimator.pairs;
      one.policy_gradient.episodes += other->policy_gradient.episodes;
      if (algorithm == Algorithm::kCentralized) one.worlds += other->worlds;
    }
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

std::int64_t EpisodesPerRound(const TrainingSettings& settings) {
  // Where worlds are pooled, each learner's directions are tried in its own worlds.
  const bool pooled = settings.federation.algorithm == Algorithm::kCentralized;
  std::int64_t sum = 0;
  for (const LearnerSettings& learner : pooled ? PartsOf(settings) : LearnersOf(settings)) {
    const std::int64_t measured =
        std::int64_t{learner.worlds} * TaskOf(settings, learner).world.start.per_world;
    sum += ByPolicyGradient(learner) ? measured + learner.policy_gradient.episodes
                                     : (2 * std::int64_t{learner.estimator.pairs} + 1) * measured;
  }
  return sum;
}

FederationOptions FederationOf(const TrainingSettings& settings) {
  FederationOptions options = settings.federation;
  if (options.algorithm != Algorithm::kFedGen) options.average_every = 0;
  return options;
}

std::vector<Seat> SeatsOf(const TrainingSettings& settings, Key seed) {
  std::vector<Seat> seats;
  const std::size_t num_learners = LearnersOf(settings).size();
  seats.reserve(num_learners);
  for (std::uint32_t index = 0; index < num_learners; ++index) {
    seats.push_back({LearnerId(index), seed.Fork(Stream::kLearner).Fork(index)});
  }
  return seats;
}

Host MakeHost(const TrainingSettings& settings, std::span<const Seat> seats, Kernel kernel,
              int num_threads) {
  const std::vector<LearnerSettings> wanted = LearnersOf(settings);
  std::vector<std::unique_ptr<Learner>> learners;
  learners.reserve(seats.size());
  const auto experience = std::make_shared<Experience>();  // learners use it one after the other
  for (const Seat& seat : seats) {
    learners.push_back(
        MakeLearner(settings, wanted.at(seat.id.index()), seat, experience, kernel, num_threads));
  }
  return {FederationOf(settings), std::move(learners)};
}

Cloud MakeCloud(const TrainingSettings& settings) {
  std::vector<LearnerId> ids;
  const std::vector<Seat> seats = SeatsOf(settings, Key());
  ids.reserve(seats.size());
  for (const Seat& seat : seats) ids.push_back(seat.id);
  return {FederationOf(settings), ids};
}

}  // namespace fedgen
