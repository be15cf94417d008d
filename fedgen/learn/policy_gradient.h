// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "fedgen/base/option.h"
#include "fedgen/learn/actor_critic.h"
#include "fedgen/learn/experience.h"
#include "fedgen/learn/improver.h"
#include "fedgen/learn/navigation.h"
#include "fedgen/learn/optimizer.h"
#include "fedgen/learn/stop_rule.h"

namespace fedgen {

// The improver that looks at single steps: its policy drives with noise on the control, a private
// critic says what was to be expected, and what went better than that is made more likely.
//
// Two ways to use what was lived through (docs/guarantees.md says what each leaves of the
// theorems):
//
//   plain  one step down z = an unbiased estimate of the gradient of the noisy policy's cost, as
//          Algorithm 1 wants it (Eq. 48)
//   ppo    several passes over the round's samples in minibatches, with a limit on how far the
//          policy may go (Eq. 49); what is practised may differ from the true task
//
// y is of the noiseless policy in the true task in both. Nothing but theta, y and b leaves the
// learner: the critic stays at home, in its host's checkpoint.

struct PolicyGradientOptions {
  enum class Method { kPpo, kPlain };
  Method method = Method::kPpo;
  int episodes = 1024;       // practised in a round
  double noise = 0.3;        // standard deviation of what is added to the output (Eq. 50)
  double last_noise = 0.07;  // kPpo: in the last round; geometric in between
  double discount = 0.995;   // kPpo, per step
  double trace = 0.95;       // kPpo, lambda of Eq. 47
  int epochs = 3;            // kPpo, passes over a round's samples
  int minibatch = 16384;     // kPpo, samples of a step
  double clip = 0.2;         // kPpo, epsilon of Eq. 49; 0 for none
  bool normalise = true;     // kPpo, advantages to mean 0 and standard deviation 1
  double norm_limit = 0.5;   // kPpo, of a step's gradient; 0 for none
  double averaging = 0.995;  // kPpo, share of the past in the average that is shared; 0 for none
  std::vector<int> critic_hidden = {32, 32};
  double critic_step = 2e-3;    // in round 1; falls with the policy's
  int refit_epochs = 10;        // kPpo, of the critic alone, at the start and after an adoption
  double time_weight = 2;       // kPpo, of Eq. 46
  double failure_weight = 1.5;  // kPpo, of Eq. 46
  bool way = false;             // kPpo, of Eq. 46
  double crowding = 1;          // kPpo: so many times as many random obstacles in practice
  double hard_share = 0;        // kPpo: of worlds in practice that failed before
};
template <>
inline constexpr auto kWords<PolicyGradientOptions::Method> = Words("ppo", "plain");

void Describe(OptionVisitor& visitor, PolicyGradientOptions& options);

/// One kind of worlds that a learner practises in. One that has everybody's worlds has several.
struct PracticeGround {
  Task task;         // the true one
  int worlds = 1;    // n_E, of y
  int episodes = 1;  // practised in a round
};

/// What is practised instead of the true task: a wider robot, denser worlds.
Task PracticeTask(const Task& task, const TrainingCost& cost, const PolicyGradientOptions& options);

struct PolicyGradientSettings {
  PolicyGradientOptions options;
  TrainingCost cost;  // distance_weight and margin
  StepOptions step;
  OptimizerOptions optimizer;
  StopOptions stop;
  std::vector<PracticeGround> grounds;
  Kernel kernel = Kernel::kScalar;
  int num_threads = 1;
};

/// What it remembers from round to round.
struct PolicyGradientState {
  std::vector<float> search;   // where the search is: parameters without the normalisation
  std::vector<float> average;  // of where it has been: the same part of the theta that is shared
  std::int64_t averaged = 0;   // rounds in the average
  OptimizerState optimizer;
  std::vector<float> critic;
  OptimizerState critic_optimizer;
  bool critic_fits = false;  // it has seen this policy, or one that this one came from
  StopState stop;
  std::vector<std::vector<std::uint64_t>> hard;  // [grounds] keys of worlds that failed

  bool operator==(const PolicyGradientState&) const = default;
};

class PolicyGradient final : public Improver {
 public:
  /// shape: of the policies. objective: measures y, and nothing else. key: of the critic's initial
  /// weights. The experience may be shared with other learners of the host.
  PolicyGradient(PolicyGradientSettings settings, const Mlp& shape,
                 std::unique_ptr<Objective> objective, std::shared_ptr<Experience> experience,
                 Key key);

  Look Measure(int k, int num_rounds, std::span<const float> theta, Key key) override;
  Step Improve(int k, int num_rounds, Key key, std::span<float> theta) override;
  double StepLength(int k, int num_rounds) const override;
  Value MeasureValue(std::span<const float> theta, std::int64_t worlds, Key key) override;
  void Restart() override;
  std::string SaveState() const override;
  Result<void> LoadState(std::string_view bytes, std::size_t num_parameters) override;

  const PolicyGradientState& state() const { return state_; }
  /// z of the last Measure, if it was asked for: the plain method, and the rules that look at it.
  const Measurement& measurement() const { return measurement_; }

  /// The standard deviation of the noise in round k.
  double NoiseOf(int k, int num_rounds) const;

 private:
  bool plain() const { return settings_.options.method == PolicyGradientOptions::Method::kPlain; }
  bool NeedsGradient() const;
  void Follow(std::span<const float> theta);
  std::int64_t Practise(int k, int num_rounds, Key key, bool judge);
  void KeepHardWorlds(std::size_t ground, std::size_t first, std::span<const Key> keys);
  /// Episodes [first, first + count) of a ground; `worker` as in Practice::on_driven.
  using EpisodesWork = std::function<void(const PracticeGround& ground, std::size_t first,
                                          std::size_t count, int worker)>;
  void ForEpisodes(const EpisodesWork& work) const;
  void Credit(const PracticeGround& ground, std::size_t first, std::size_t count, double trace);
  void Judge(const PracticeGround& ground, std::size_t first, std::size_t count, int worker);
  void FitCritic(int epochs, double step, Key key);
  void EstimateGradient();
  void NormaliseAdvantages();
  void TakeSteps(double step, double critic_step, Key key);
  void Average(std::span<float> theta);
  RewardOptions Reward() const;

  PolicyGradientSettings settings_;
  Mlp policy_;  // as it drives in practice
  NetworkShape policy_shape_, critic_shape_;
  std::unique_ptr<Objective> objective_;
  std::shared_ptr<Experience> experience_;
  std::vector<Task> tasks_;  // [grounds] as practised
  std::unique_ptr<ActorCritic> networks_;
  std::vector<std::uint32_t> shuffled_;  // indices of samples
  PolicyGradientState state_;
  Measurement measurement_;
  double noise_ = 0;  // of this round
  bool practised_ = false;
};

}  // namespace fedgen
