// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fedgen/fuse/cloud.h"
#include "fedgen/fuse/host.h"
#include "fedgen/learn/estimator.h"
#include "fedgen/learn/gradient_search.h"
#include "fedgen/learn/imitation.h"
#include "fedgen/learn/navigation.h"
#include "fedgen/learn/policy_gradient.h"

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
template <>  // kGiven is a number
inline constexpr std::array<std::string_view, 2> kWords<BiasOptions::Kind> = {"worlds", "paper"};

/// How the frozen normalisation of a new policy's inputs is set.
enum class Normalisation {
  kNone,
  kMeasured,  // mean 0 and standard deviation 1 over the steps of the gap follower
};
template <>
inline constexpr std::array<std::string_view, 2> kWords<Normalisation> = {"none", "measured"};

/// One learner's settings. They may differ from learner to learner.
struct LearnerSettings {
  std::optional<WorldDistribution> own_world;  // instead of the task's; outside T4 and T5
  int worlds = 50;                             // n_E, 1..10^6
  int starts = 0;                              // n_int, 1..10^4; 0 for the world's own per_world
  TrainingCost cost;
  EstimatorOptions estimator;
  PolicyGradientOptions policy_gradient;  // for the estimator of this name
  double sigma = 0.1;                     // initial standard deviation of the search, in (0, 1e3]
  BiasOptions bias;
  StepOptions step;
  OptimizerOptions optimizer;
  StopOptions stop;
  double sigma_rate = 0;  // in [0, 1e6]
  SigmaStep sigma_step = SigmaStep::kMultiplicative;
  int stock_every = 0;                // rounds between taking stock, 0..10^6; 0 for never
  double stock_growth = 1;            // 1..100; times as late comes the next one at least
  int stock_worlds = 20000;           // 2..10^8
  bool rest = false;                  // after adopting: follow the incumbent, search no more
  double initial_half_width = 0.02;   // of theta_0 (DrawParameters), in [0, 10]
  std::optional<Mlp> initial_policy;  // theta_0 itself, instead of a drawn one
};

struct TrainingSettings {
  Task task;
  MlpOptions policy;
  Normalisation normalisation = Normalisation::kNone;
  int normalisation_worlds = 200;  // 1..10^6
  std::optional<Policy> teacher;   // that drawn policies imitate before round 1
  ImitationOptions imitation;
  FederationOptions federation;
  double gamma = 0.01;  // in (0, 1), shared
  std::vector<LearnerSettings> learners;
};

/// Whether it looks at single steps (learn/policy_gradient.h), not at costs.
bool ByPolicyGradient(const LearnerSettings& learner);

/// b of a learner.
double BiasOf(const TrainingSettings& settings, const LearnerSettings& learner);

/// Which worlds, and how many starts in each, a learner of these settings trains on.
Task TaskOf(const TrainingSettings& settings, const LearnerSettings& learner);

/// A network shaped as the settings say, with parameters 0.
Mlp ShapeOf(const TrainingSettings& settings);

/// theta_0 of a learner: the one given, or one drawn from its key, with the normalisation that the
/// settings ask for, and then what it learns from the teacher, if there is one.
Mlp InitialPolicy(const TrainingSettings& settings, const LearnerSettings& learner, Key key,
                  Kernel kernel, int num_threads);

/// What a learner of these settings measures with.
std::unique_ptr<Objective> MakeObjective(const TrainingSettings& settings,
                                         const LearnerSettings& learner, Kernel kernel,
                                         int num_threads);

/// The learners as the algorithm runs them. Those of the algorithms we compare with never stop,
/// take stock or rest. Two have one learner, which begins as learner 0 does: centralized sums
/// everybody's worlds and directions, single everybody's directions.
std::vector<LearnerSettings> LearnersOf(const TrainingSettings& settings);

/// What a round costs if no learner has stopped or takes stock.
std::int64_t EpisodesPerRound(const TrainingSettings& settings);

/// What the algorithm really does of [federation]: only fedgen measures averaged candidates.
FederationOptions FederationOf(const TrainingSettings& settings);

/// A learner that is to live in a host. Only its host knows the secret, from which everything that
/// the learner draws follows.
struct Seat {
  LearnerId id;
  Key secret;
};

/// All learners of the run with secrets that follow from one seed, as long as they live in one
/// process: learner i has seed.Fork(Stream::kLearner).Fork(i).
std::vector<Seat> SeatsOf(const TrainingSettings& settings, Key seed);

/// A host of these learners of the run, before it has joined.
Host MakeHost(const TrainingSettings& settings, std::span<const Seat> seats, Kernel kernel,
              int num_threads);

/// The Cloud of the run.
Cloud MakeCloud(const TrainingSettings& settings);

}  // namespace fedgen
