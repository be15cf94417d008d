// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/guarantees.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "fedgen/certify/bounds.h"

namespace fedgen {
namespace {

bool Any(const TrainingSettings& settings,
         const std::function<bool(const LearnerSettings&)>& predicate) {
  return std::any_of(settings.learners.begin(), settings.learners.end(), predicate);
}

struct Range {
  double low, high;
};

// The smallest b a learner can come to: at best, all worlds of a stock cost the same (Eq. 43).
double LeastBias(const TrainingSettings& settings, const LearnerSettings& learner) {
  const double b = BiasOf(settings, learner);
  if (learner.stock_every == 0) return b;
  return std::min(b, EmpiricalBernsteinBias(0, learner.stock_worlds, settings.gamma));
}

// The least b_i + b_j of two different learners: adoption takes y_j + b_j < y_i - b_i.
double LeastPairOfBiases(const TrainingSettings& settings) {
  std::vector<double> biases;
  biases.reserve(settings.learners.size());
  for (const LearnerSettings& learner : settings.learners) {
    biases.push_back(LeastBias(settings, learner));
  }
  std::sort(biases.begin(), biases.end());
  // What a learner measured for the Cloud counts as another's, and may become its own.
  return biases[0] + (settings.federation.average_every > 0 ? biases[0] : biases[1]);
}

// The largest b of a stock: half of the worlds cost 0, the others 1.
double LargestStockBias(const TrainingSettings& settings, const LearnerSettings& learner) {
  const double n = learner.stock_worlds;
  return EmpiricalBernsteinBias(n / (n - 1) / 4, learner.stock_worlds, settings.gamma);
}

Range BiasRange(const TrainingSettings& settings) {
  Range range{1e300, 0};
  for (const LearnerSettings& learner : settings.learners) {
    range = {std::min(range.low, LeastBias(settings, learner)),
             std::max(range.high, BiasOf(settings, learner))};
    if (learner.stock_every > 0) {
      range.high = std::max(range.high, LargestStockBias(settings, learner));
    }
  }
  return range;
}

// Eq. 37: fewer than 1 / b - 1; where that says nothing below 1, nobody adopts at all.
double AdoptionLimit(double b) { return std::max(1.0, 1 / b - 1); }

// Only who has stopped, or takes stock, may adopt.
bool MayEverAdopt(const LearnerSettings& learner) {
  return learner.stop.rule != StopOptions::Rule::kNever || learner.stock_every > 0;
}

std::string AdoptionText(const TrainingSettings& settings, double least_bias) {
  if (settings.federation.algorithm != Algorithm::kFedGen) return "nobody adopts in this algorithm";
  if (AdoptionLimit(least_bias) <= 1) return "no learner ever adopts";
  if (!Any(settings, MayEverAdopt)) return "no learner ever adopts: none stops or takes stock";
  if (!Any(settings, [](const LearnerSettings& s) { return !s.rest; })) {
    return "a learner adopts at most once and rests then";
  }
  return fmt::format("a learner adopts fewer than {:.4g} times", AdoptionLimit(least_bias));
}

std::string Join(const std::vector<std::string>& reasons) {
  return fmt::format("{}", fmt::join(reasons, "; "));
}

}  // namespace

std::string_view StandingName(Standing standing) {
  switch (standing) {
    case Standing::kYes:
      return "yes";
    case Standing::kOwn:
      return "own";
    case Standing::kNo:
      return "no";
  }
  return "unknown";
}

std::vector<Guarantee> WhatHolds(const TrainingSettings& given) {
  TrainingSettings settings = given;
  settings.learners = LearnersOf(given);
  const bool fedgen = settings.federation.algorithm == Algorithm::kFedGen;
  const Range b = BiasRange(settings);

  std::vector<std::string> against_t1;
  if (Any(settings, [&](const LearnerSettings& s) {
        return s.bias.kind == BiasOptions::Kind::kPaper &&
               TaskOf(settings, s).world.start.per_world > 1;
      })) {
    against_t1.emplace_back("starts in one world are dependent, bias = \"paper\" counts them all");
  }
  if (Any(settings,
          [](const LearnerSettings& s) { return s.bias.kind == BiasOptions::Kind::kGiven; })) {
    against_t1.emplace_back("b was given, not derived from the worlds");
  }

  // What T3 needs of z and of the steps.
  std::vector<std::string> against_t3;
  const auto add_if = [&](bool condition, const char* reason) {
    if (condition) against_t3.emplace_back(reason);
  };
  add_if(Any(settings,
             [](const LearnerSettings& s) {
               return s.cost.kind != TrainingCost::Kind::kPlain || s.cost.margin > 0;
             }),
         "z is the gradient of a surrogate cost");
  add_if(Any(settings,
             [](const LearnerSettings& s) {
               return s.estimator.shaping != EstimatorOptions::Shaping::kRaw;
             }),
         "ranks are the gradient of no fixed function");
  add_if(Any(settings,
             [](const LearnerSettings& s) {
               return s.optimizer.kind != OptimizerOptions::Kind::kSgd;
             }),
         "the optimiser does not follow z in mean");
  add_if(Any(settings,
             [](const LearnerSettings& s) {
               return s.step.schedule == StepOptions::Schedule::kGeometric;
             }),
         "the steps of a geometric schedule add up to too little");
  add_if(fedgen && Any(settings,
                       [](const LearnerSettings& s) {
                         return s.stop.rule == StopOptions::Rule::kPlateau ||
                                s.stop.rule == StopOptions::Rule::kNever;
                       }),
         "the stop rule is not |z| < q");
  add_if(!fedgen, "nobody stops in this algorithm");
  // R4 and R5 compare measurements of the cost and need no gradient; what a learner's own steps do
  // between two adoptions follows from T3's conditions only (R6).
  const std::string steps =
      against_t3.empty() ? "" : "without T3, a learner's own steps may raise its cost";
  std::string consensus = steps;
  if (Any(settings, [](const LearnerSettings& s) { return s.rest; })) {
    consensus += std::string(steps.empty() ? "" : "; ") +
                 "who rests holds what was measured best and is not compared again";
  }
  if (against_t3.empty()) {
    against_t3.emplace_back(
        "r <= 1 / (2 Lambda_1) and q >= 4 s-bar are not checked here: `fedgen estimate` measures "
        "both");
  }

  // T4 and T5 compare measurements that were selected: they need b to hold for all of them at once.
  std::vector<std::string> against_t4 = against_t1;
  const int rounds = settings.federation.rounds;
  const int average_every = settings.federation.average_every;
  const double measurements = static_cast<double>(settings.learners.size()) * rounds +
                              (average_every > 0 ? rounds / average_every : 0);
  const double gamma = settings.gamma;
  constexpr double kLikely = 0.5;  // a promise that is kept less often is none
  const bool joint = 1 - measurements * gamma >= kLikely;
  const std::string jointly = joint && against_t1.empty() ? fmt::format(", with probability {:.4g}",
                                                                        1 - measurements * gamma)
                                                          : "";
  if (!joint) {
    against_t4.push_back(fmt::format(
        "b speaks for one measurement at a time and the run compares up to {:.0f}; gamma "
        "= {:.3g} would cover them all",
        measurements, 0.01 / measurements));
  }
  if (!fedgen) against_t4.emplace_back("nobody fuses in this algorithm");
  const bool own_worlds =
      Any(settings, [](const LearnerSettings& s) { return s.own_world.has_value(); });
  if (own_worlds) {
    against_t4.emplace_back("learners have worlds of their own kinds");
  }
  const std::vector<std::string> against_t5 = against_t4;
  if (fedgen && Any(settings, [](const LearnerSettings& s) {
        return s.stop.rule == StopOptions::Rule::kNever;
      })) {
    against_t4.emplace_back("learners never stop");
  }
  if (4 * b.high >= 1) {
    against_t4.push_back(
        fmt::format("4 b = {:.3g} says nothing about costs in [0, 1]", 4 * b.high));
  }

  const auto make = [](const char* name, std::string statement,
                       const std::vector<std::string>& against, const std::string& missing = "") {
    const Standing standing = !against.empty()   ? Standing::kNo
                              : !missing.empty() ? Standing::kOwn
                                                 : Standing::kYes;
    return Guarantee{name, standing, std::move(statement),
                     against.empty() ? missing : Join(against)};
  };
  const std::string own_cost =
      own_worlds ? "each about the kind of worlds that its learner has" : "";
  return {
      make("T1",
           fmt::format("a fresh measurement y bounds the cost: eta <= y + b with probability {}, "
                       "b = {:.4g}{}",
                       1 - gamma, b.low, b.low == b.high ? "" : fmt::format(" to {:.4g}", b.high)),
           against_t1, own_cost),
      make("T2",
           fmt::format("and safe arrival has probability at least 1 - (y + b), with probability {}",
                       1 - gamma),
           against_t1, own_cost),
      make("T3", "every learner settles", against_t3),
      make(
          "T4",
          fmt::format("when all have stopped, no learner is worse than the best by more than 4 b = "
                      "{:.3g}, but for what it lost itself since (R4){}",
                      4 * b.high, jointly),
          against_t4, consensus),
      make("T5", "every adoption was an improvement (R5)" + jointly, against_t5, steps),
      make("adoptions", AdoptionText(settings, b.low), {}),
      make("certificate", "holds for the winner, however it was found", {}),
  };
}

std::vector<std::string> Warnings(const TrainingSettings& given) {
  TrainingSettings settings = given;
  settings.learners = LearnersOf(given);
  std::vector<std::string> warnings;
  if (settings.federation.algorithm == Algorithm::kFedGen && settings.learners.size() > 1 &&
      LeastPairOfBiases(settings) >= 1) {
    warnings.push_back(fmt::format(
        "b = {:.4g}: no adoption can happen, since it takes y_j + b < y_i - b with y in "
        "[0, 1]; b < 0.5 needs more than {:.0f} worlds a round",
        BiasRange(settings).low, std::floor(2 * std::log(2 / settings.gamma))));
  }
  if (Any(settings, [](const LearnerSettings& s) { return s.own_world.has_value(); })) {
    warnings.emplace_back(
        "learners have worlds of their own kinds: comparing their costs is outside T4 and T5, and "
        "the certificate speaks about [world]");
  }
  for (const LearnerSettings& learner : settings.learners) {
    if (learner.stock_every == 0 ||
        LargestStockBias(settings, learner) <= BiasOf(settings, learner)) {
      continue;
    }
    warnings.push_back(fmt::format(
        "stock_worlds = {}: b of a stock may be {:.3g}, that of an ordinary round is {:.3g}",
        learner.stock_worlds, LargestStockBias(settings, learner), BiasOf(settings, learner)));
    break;
  }
  if (Any(settings, [](const LearnerSettings& s) { return s.rest && !MayEverAdopt(s); })) {
    warnings.emplace_back(
        "rest = true does nothing for a learner that never stops and takes no stock");
  }
  if (Any(settings, [](const LearnerSettings& s) {
        return s.sigma_rate > 0 && s.estimator.kind == EstimatorOptions::Kind::kFiniteDifferences;
      })) {
    warnings.emplace_back("sigma_rate does nothing with finite differences: they keep sigma");
  }
  return warnings;
}

}  // namespace fedgen
