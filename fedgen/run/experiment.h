// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fedgen/fuse/federation.h"
#include "fedgen/learn/estimator.h"
#include "fedgen/learn/navigation.h"

namespace fedgen {

// From settings to learners that are ready to go: who draws which worlds, starts from which policy,
// and how it improves.

/// How b is found (Eq. 18).
struct BiasOptions {
  enum class Kind {
    kWorlds,  // from n_E: starts in one world are dependent, so only worlds count
    kPaper,   // from n_E n_int, as printed
    kGiven,
  };
  Kind kind = Kind::kWorlds;
  double given = 0.2;  // in (0, 1e6]; kGiven only
};

/// How the frozen normalisation of a new policy's inputs is set.
enum class Normalisation {
  kNone,
  kMeasured,  // mean 0 and standard deviation 1 over the steps of the gap follower
};

/// One learner's settings. They may differ from learner to learner.
struct LearnerSettings {
  std::optional<WorldDistribution> own_world;  // instead of the task's; outside T4 and T5
  int worlds = 50;                             // n_E, 1..10^6
  int starts = 0;                              // n_int, 1..10^4; 0 for the world's own per_world
  TrainingCost cost;
  EstimatorOptions estimator;
  double sigma = 0.1;  // initial standard deviation of the search, in (0, 1e3]
  BiasOptions bias;
  StepOptions step;
  OptimizerOptions optimizer;
  StopOptions stop;
  double sigma_rate = 0;              // in [0, 1e6]
  int stock_every = 0;                // rounds between taking stock, 0..10^6; 0 for never
  int stock_worlds = 20000;           // 2..10^8
  bool rest = false;                  // after adopting: follow the incumbent, search no more
  double initial_half_width = 0.02;   // of theta_0 (DrawParameters), in [0, 10]
  std::optional<Mlp> initial_policy;  // theta_0 itself, instead of a drawn one
};

std::optional<FieldError> Validate(const LearnerSettings& settings);

struct TrainingSettings {
  Task task;
  MlpOptions policy;
  Normalisation normalisation = Normalisation::kNone;
  int normalisation_worlds = 200;  // 1..10^6
  FederationOptions federation;
  double gamma = 0.01;  // in (0, 1), shared
  std::vector<LearnerSettings> learners;
};

/// b of a learner.
double BiasOf(const TrainingSettings& settings, const LearnerSettings& learner);

/// Which worlds, and how many starts in each, a learner of these settings trains on.
Task TaskOf(const TrainingSettings& settings, const LearnerSettings& learner);

/// A network shaped as the settings say, with parameters 0.
Mlp ShapeOf(const TrainingSettings& settings);

/// theta_0 of a learner: the one given, or one drawn from its key, with the normalisation that the
/// settings ask for.
Mlp InitialPolicy(const TrainingSettings& settings, const LearnerSettings& learner, Key key,
                  Kernel kernel);

/// What a learner of these settings measures with.
std::unique_ptr<Objective> MakeObjective(const TrainingSettings& settings,
                                         const LearnerSettings& learner, Kernel kernel,
                                         int num_threads);

/// The learners as the algorithm runs them. Those of the algorithms we compare with never stop,
/// take stock or rest; centralized is learner 0 alone with everybody's directions.
std::vector<LearnerSettings> LearnersOf(const TrainingSettings& settings);

/// Learner i draws everything from seed.Fork(Stream::kLearner).Fork(i). fedavg begins everywhere
/// with the policy of learner 0.
Federation MakeFederation(const TrainingSettings& settings, Key seed, Kernel kernel,
                          int num_threads);

}  // namespace fedgen
