// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "fedgen/base/text.h"
#include "fedgen/certify/bounds.h"
#include "fedgen/cli/commands.h"
#include "fedgen/cli/print.h"
#include "fedgen/cli/progress.h"
#include "fedgen/learn/constants.h"
#include "fedgen/learn/stop_rule.h"
#include "fedgen/policy/policy_file.h"
#include "fedgen/run/config.h"
#include "fedgen/run/local_run.h"

namespace fedgen {

Result<void> RunEstimate(const EstimateCommand& command) {
  const int num_threads = FEDGEN_TRY(NumThreads(command.threads));
  Config config = FEDGEN_TRY(LoadConfig(command.config, command.overrides));
  const TrainingSettings& settings = config.training;
  const LearnerSettings& learner = settings.learners.front();
  if (ByPolicyGradient(learner)) {
    return Error{ErrorCode::kConfig,
                 fmt::format("{}: learner.estimator = policy-gradient: only what evolution and "
                             "finite-differences estimate is measured here",
                             command.config)};
  }
  const Key key = Key(command.seed).Fork(Stream::kLearner).Fork(0);

  if (command.policy.empty()) {
    FEDGEN_TRY(
        LoadGivenPolicies(command.anyway ? OtherBodies::kAllow : OtherBodies::kRefuse, config));
  }
  Mlp mlp = command.policy.empty()
                ? InitialPolicy(settings, learner, key, BestKernel(), num_threads)
                : FEDGEN_TRY(LoadPolicy(command.policy));
  const auto differs = command.anyway ? ForgetBody(BodyOf(settings.task), mlp) : std::nullopt;
  if (const auto mismatch = FindMismatch(mlp, ShapeOf(settings))) {
    return Error{ErrorCode::kMismatch, fmt::format("{}: {}", command.policy, *mismatch)};
  }
  WarnOfBody(command.policy, differs);
  const Search search{ThetaOf(mlp), InitialSigma(mlp, learner.sigma)};
  const auto objective = MakeObjective(settings, learner, BestKernel(), num_threads);
  constexpr int kProbes = 4;
  Progress progress("estimate", "measurements", std::int64_t{command.repeats} * (kProbes + 1));
  const GradientConstants c =
      MeasureConstants(*objective, search, command.repeats, kProbes, key.Fork(Stream::kEvaluation),
                       [&](std::int64_t done) { progress.Update(done); });

  progress.Wipe();

  const std::int64_t worlds = std::int64_t{c.repeats} * learner.worlds;
  const std::optional<double> largest_step = c.largest_step();
  Print(
      "at {}: {} measurements of {} on {} each\n"
      "  cost y                 {:.4f} +- {:.4f} (99 % Hoeffding, {})\n"
      "  |z|                    {:.4g}, root mean square\n"
      "  noise of z, s-bar      {:.4g}, of which directions alone {:.4g}\n"
      "  gradient |E z|         {}; noise alone would show {:.2g}\n"
      "  smoothness Lambda_1    {} over {} probes of length {:.3g}; noise alone would show "
      "{:.2g}\n",
      command.policy.empty() ? "the initial policy of learner 1" : command.policy, c.repeats,
      Counted(learner.estimator.pairs, "pair"), Counted(learner.worlds, "world"), c.y,
      LearnerBias(worlds, 0.01), Counted(worlds, "world"), c.z_norm, c.spread, c.direction_part,
      c.gradient.IsVisible() ? fmt::format("{:.3g}", std::sqrt(c.gradient.value))
                             : "not visible above its noise",
      std::sqrt(c.gradient.error),
      largest_step ? fmt::format("{:.4g}", c.smoothness) : "not visible above its noise", c.probes,
      c.probe_length, c.smoothness_noise);
  Print(
      "conditions of T3 at this policy (local estimates, not bounds; symbols as in docs/math.md, "
      "Eq. 34)\n"
      "  r <= 1 / (2 Lambda_1)  {}; configured {:.4g}\n"
      "  q >= 4 s-bar           {:.4g}; configured {}\n",
      largest_step ? fmt::format("{:.4g}", *largest_step)
                   : "unknown: Lambda_1 is below its noise; more --repeats lower the noise",
      learner.step.step, c.least_threshold(),
      learner.stop.rule == StopOptions::Rule::kGradient
          ? fmt::format("{:.4g}", learner.stop.threshold)
          : "another stop rule");
  if (c.z_norm < c.least_threshold()) {
    Print("  With that q a learner stops here at once: {}.\n",
          PairsAdvice(c.gradient, c.spread, learner.estimator.pairs));
  }
  return {};
}

}  // namespace fedgen
