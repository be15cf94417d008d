// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/guarantees.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <map>

#include "fedgen/base/text.h"
#include "fedgen/certify/bounds.h"
#include "fedgen/run/config_options.h"

namespace fedgen {
namespace {

using Predicate = std::function<bool(const LearnerSettings&)>;

bool Any(const TrainingSettings& settings, const Predicate& predicate) {
  return std::any_of(settings.learners.begin(), settings.learners.end(), predicate);
}

struct Range {
  double low, high;
};

// The smallest b of a learner: at best, all worlds of a large measurement cost the same (Eq. 43).
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
  // An averaged candidate may come back to the learner that measured it.
  return biases[0] + (settings.federation.average_every > 0 ? biases[0] : biases[1]);
}

// The largest b of a large measurement: half of its worlds cost 0, the others 1.
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

// Eq. 37: fewer than 1 / b - 1 adoptions. A limit of 1 means that no learner ever adopts.
double AdoptionLimit(double b) { return std::max(1.0, 1 / b - 1); }

// A learner adopts only when it has stopped or has taken stock (Eq. 43).
bool MayEverAdopt(const LearnerSettings& learner) {
  return learner.stop.rule != StopOptions::Rule::kNever || learner.stock_every > 0;
}

std::string AdoptionText(const TrainingSettings& settings, double least_bias) {
  if (settings.federation.algorithm != Algorithm::kFedGen) {
    return "learners do not adopt in this algorithm";
  }
  if (AdoptionLimit(least_bias) <= 1) return "no learner ever adopts";
  if (!Any(settings, MayEverAdopt)) {
    return "no learner ever adopts: none stops or takes large measurements (stock_every)";
  }
  if (!Any(settings, [](const auto& s) { return !s.rest; })) {
    return "a learner adopts at most once; then it rests (rest = true)";
  }
  return fmt::format(
      "a learner adopts at most {}",
      Counted(static_cast<std::int64_t>(std::ceil(AdoptionLimit(least_bias))) - 1, "time"));
}

// Reasons why a statement does not hold, or what is missing from it. Empty: nothing is.
using Reasons = std::vector<std::string>;

bool AnyOwnWorlds(const TrainingSettings& settings) {
  return Any(settings, [](const auto& s) { return s.own_world.has_value(); });
}

// With the learners that really run. Pooled worlds are of own kinds if anybody's are.
TrainingSettings AsRun(const TrainingSettings& given) {
  TrainingSettings settings = given;
  settings.learners = LearnersOf(given);
  if (given.federation.algorithm != Algorithm::kCentralized) return settings;
  for (const LearnerSettings& learner : given.learners) {
    if (learner.own_world) settings.learners.front().own_world = learner.own_world;
  }
  return settings;
}

Reasons AgainstT1(const TrainingSettings& settings) {
  Reasons reasons;
  if (Any(settings, [&](const auto& s) {
        return s.bias.kind == BiasOptions::Kind::kPaper &&
               TaskOf(settings, s).world.start.per_world > 1;
      })) {
    reasons.emplace_back(
        "bias = \"paper\" counts every start as a sample, but starts in one world are dependent");
  }
  if (Any(settings, [](const auto& s) { return s.bias.kind == BiasOptions::Kind::kGiven; })) {
    reasons.emplace_back("b is a given number, not derived from the number of worlds");
  }
  return reasons;
}

bool ByMethod(const LearnerSettings& learner, PolicyGradientOptions::Method method) {
  return ByPolicyGradient(learner) && learner.policy_gradient.method == method;
}

// What T3 needs of the gradient estimate z and of the steps.
Reasons AgainstT3(const TrainingSettings& settings) {
  const bool fedgen = settings.federation.algorithm == Algorithm::kFedGen;
  Reasons reasons;
  const auto add_if = [&](const Predicate& breaks, const char* reason) {
    if (Any(settings, breaks)) reasons.emplace_back(reason);
  };
  // What only those have that look at costs of whole episodes.
  const auto add_if_by_costs = [&](const Predicate& breaks, const char* reason) {
    add_if([&](const auto& s) { return !ByPolicyGradient(s) && breaks(s); }, reason);
  };
  add_if_by_costs(
      [](const auto& s) { return s.cost.kind != TrainingCost::Kind::kPlain || s.cost.margin > 0; },
      "z is the gradient of a surrogate cost");
  add_if_by_costs(
      [](const auto& s) { return s.estimator.shaping != EstimatorOptions::Shaping::kRaw; },
      "z from ranks is the gradient of no fixed function");
  add_if_by_costs([](const auto& s) { return s.sigma_rate > 0; },
                  "sigma moves, and with it the smoothed cost whose gradient z is");
  add_if([](const auto& s) { return ByMethod(s, PolicyGradientOptions::Method::kPlain); },
         "z is the gradient of the cost with noise on the control, and y is of the policy without "
         "it");
  add_if([](const auto& s) { return ByMethod(s, PolicyGradientOptions::Method::kPpo); },
         "the steps of ppo follow a clipped and discounted reward in practice worlds, which is no "
         "estimate of the gradient of the cost");
  add_if([](const auto& s) { return s.optimizer.kind != OptimizerOptions::Kind::kSgd; },
         "the optimiser's steps do not follow z on average");
  add_if([](const auto& s) { return s.step.schedule == StepOptions::Schedule::kGeometric; },
         "the steps of a geometric schedule have a finite sum");
  add_if(
      [&](const auto& s) {
        return fedgen && (s.stop.rule == StopOptions::Rule::kPlateau ||
                          s.stop.rule == StopOptions::Rule::kNever);
      },
      "the stop rule is not |z| < q");
  if (!fedgen) reasons.emplace_back("learners do not stop in this algorithm");
  return reasons;
}

// How many values of y a run may compare: one per learner and round, and one per averaged
// candidate.
double NumMeasurements(const TrainingSettings& settings) {
  const int rounds = settings.federation.rounds;
  const int average_every = settings.federation.average_every;
  return static_cast<double>(settings.learners.size()) * rounds +
         (average_every > 0 ? rounds / average_every : 0);
}

// The risk that b fails for one of all of a run's measurements, by the union bound (R1).
double JointRisk(const TrainingSettings& settings) {
  return NumMeasurements(settings) * settings.gamma;
}

constexpr double kUnlikely = 0.5;  // a larger risk is as good as no promise

// T4 and T5 compare measurements that were selected: b must hold for all of them at once.
Reasons AgainstT5(const TrainingSettings& settings) {
  Reasons reasons = AgainstT1(settings);
  if (JointRisk(settings) > kUnlikely) {
    const double measurements = NumMeasurements(settings);
    reasons.push_back(
        fmt::format("b holds for one measurement at a time, and the run compares up to {:.0f}; "
                    "gamma = {:.3g} would cover all of them",
                    measurements, 0.01 / measurements));
  }
  if (settings.federation.algorithm != Algorithm::kFedGen) {
    reasons.emplace_back("learners do not adopt in this algorithm");
  }
  if (AnyOwnWorlds(settings)) {
    reasons.emplace_back("learners have worlds of different kinds ([[learners]] world)");
  }
  return reasons;
}

Reasons AgainstT4(const TrainingSettings& settings, double largest_bias) {
  Reasons reasons = AgainstT5(settings);
  if (settings.federation.algorithm == Algorithm::kFedGen &&
      Any(settings, [](const auto& s) { return s.stop.rule == StopOptions::Rule::kNever; })) {
    reasons.emplace_back("some learners never stop");
  }
  if (4 * largest_bias >= 1) {
    reasons.push_back(
        fmt::format("4 b = {:.3g} says nothing about costs in [0, 1]", 4 * largest_bias));
  }
  return reasons;
}

// A statement with reasons against it does not hold; one with something missing holds in part.
Guarantee Judge(const char* name, std::string statement, const Reasons& against,
                const Reasons& missing = {}) {
  const Standing standing = !against.empty()   ? Standing::kNo
                            : !missing.empty() ? Standing::kPartly
                                               : Standing::kYes;
  const Reasons& reasons = against.empty() ? missing : against;
  return {name, standing, std::move(statement), fmt::format("{}", fmt::join(reasons, "; "))};
}

}  // namespace

std::string_view StandingName(Standing standing) {
  switch (standing) {
    case Standing::kYes:
      return "yes";
    case Standing::kPartly:
      return "partly";
    case Standing::kNo:
      return "no";
  }
  return "unknown";
}

std::vector<Guarantee> WhatHolds(const TrainingSettings& given) {
  const TrainingSettings settings = AsRun(given);
  const double gamma = settings.gamma;
  const Range b = BiasRange(settings);
  const Reasons against_t1 = AgainstT1(settings);
  Reasons against_t3 = AgainstT3(settings);

  Reasons own_cost;
  if (AnyOwnWorlds(settings)) {
    own_cost.emplace_back("for each learner about the kind of worlds that it has");
  }
  // R4 and R5 compare measurements of the cost and need no gradient; what a learner's steps do
  // between two adoptions follows from T3's conditions only (R6).
  Reasons steps;
  if (!against_t3.empty()) {
    steps.emplace_back("without T3, a learner's own steps may raise its cost");
  }
  Reasons consensus = steps;
  if (Any(settings, [](const auto& s) { return s.rest; })) {
    consensus.emplace_back(
        "a learner that rests keeps the incumbent and does not compare it again");
  }
  if (against_t3.empty()) {
    against_t3.emplace_back(
        "r <= 1 / (2 Lambda_1) and q >= 4 s-bar are not checked here: `fedgen estimate` measures "
        "both");
  }
  const double risk = JointRisk(settings);
  const std::string jointly =
      risk <= kUnlikely && against_t1.empty() ? ", with probability " + Certainty(risk, 4) : "";
  return {
      Judge("T1",
            fmt::format(
                "the cost that a learner measures is within {:.4g}{} of its true mean cost, "
                "with probability {}",
                b.low, b.low == b.high ? "" : fmt::format(" to {:.4g}", b.high), Certainty(gamma)),
            against_t1, own_cost),
      Judge("T2",
            fmt::format("a learner arrives safely at least as often as 1 minus that cost and that "
                        "error, with probability {}",
                        Certainty(gamma)),
            against_t1, own_cost),
      Judge("T3", "every learner stops for good", against_t3),
      Judge("T4",
            fmt::format("once all have stopped, none is worse than the best by more than 4 times "
                        "that error, {:.3g}, plus what it lost by its own steps{}",
                        4 * b.high, jointly),
            AgainstT4(settings, b.high), consensus),
      Judge("T5", "every adoption makes a learner better" + jointly, AgainstT5(settings), steps),
      Judge("adoptions", AdoptionText(settings, b.low), {}),
      Judge("certificate", "holds for the selected policy, however it was found", {}),
  };
}

namespace {

// A learner's options by name: what each is set to, and whether anything reads it.
class LearnerOptionList : public PathVisitor {
 public:
  explicit LearnerOptionList(LearnerSettings settings)
      : estimator_(settings.estimator.kind),
        is_plain_(ByPolicyGradient(settings) &&
                  settings.policy_gradient.method == PolicyGradientOptions::Method::kPlain),
        takes_stock_(settings.stock_every > 0) {
    Describe(*this, settings);
  }

  void Visit(const Option& option, const OptionField& field) override {
    if (!field.value) return;
    const std::string name = PathOf(option.name);
    values[name] = ValueText(*field.value);
    if (!option.acts || !Reads(name)) idle.push_back(name);
  }

  std::map<std::string, std::string> values;
  std::vector<std::string> idle;

 private:
  // Whether learners with this estimator read it.
  bool Reads(std::string_view name) const {
    using Kind = EstimatorOptions::Kind;
    const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
      return std::ranges::find(names, name) != names.end();
    };
    if (name.starts_with("policy_gradient.")) return estimator_ == Kind::kPolicyGradient;
    if (is_one_of({"sigma_rate", "sigma_step"})) return estimator_ == Kind::kEvolution;
    if (is_one_of({"cost", "pairs", "shaping", "sigma"})) {
      return estimator_ != Kind::kPolicyGradient;
    }
    if (is_one_of({"distance_weight", "margin"})) return !is_plain_;
    if (is_one_of({"stock_growth", "stock_worlds"})) return takes_stock_;
    return true;
  }

  EstimatorOptions::Kind estimator_;
  bool is_plain_;
  bool takes_stock_;
};

// The option because of which nobody reads another one.
std::string CauseOf(std::string_view idle, const LearnerSettings& learner) {
  if (idle == "threshold" || idle == "window" || idle == "tolerance") return "stop";
  if (idle == "step_exponent" || idle == "last_step") return "schedule";
  if (idle.starts_with("stock_")) return "stock_every";
  const bool by_method =
      ByPolicyGradient(learner) &&
      (idle.starts_with("policy_gradient.") || idle == "margin" || idle == "distance_weight");
  return by_method ? "policy_gradient.method" : "estimator";
}

// What is to be said of learners, each under the numbers of those that it is true of.
class Remarks {
 public:
  void Add(std::size_t learner, std::string text) { of_[std::move(text)].push_back(learner + 1); }
  void AppendTo(std::size_t num_learners, std::vector<std::string>& warnings) const {
    for (const auto& [text, learners] : of_) {
      const bool all = learners.size() == num_learners;
      warnings.push_back(all ? text
                             : fmt::format("{} {}: {}",
                                           learners.size() == 1 ? "learner" : "learners",
                                           fmt::join(learners, ", "), text));
    }
  }

 private:
  std::map<std::string, std::vector<std::size_t>> of_;
};

// "margin = 0.1: has no effect" for whatever somebody has set though nothing reads it (options at
// their defaults may not have been set by anybody), and schedules that rise. Where one learner
// stands for all, its settings count.
void AddRemarks(const TrainingSettings& settings, std::vector<std::string>& warnings) {
  const bool one = settings.federation.algorithm == Algorithm::kCentralized ||
                   settings.federation.algorithm == Algorithm::kSingle;
  const std::size_t num_learners = one ? 1 : settings.learners.size();
  const LearnerOptionList defaults{LearnerSettings()};
  Remarks remarks;
  for (std::size_t index = 0; index < num_learners; ++index) {
    const LearnerSettings& learner = settings.learners[index];
    const LearnerOptionList list(learner);
    for (const std::string& name : list.idle) {
      const std::string& value = list.values.at(name);
      if (value == defaults.values.at(name)) continue;
      const std::string cause = CauseOf(name, learner);
      remarks.Add(index, fmt::format("{} = {}: has no effect with {} = {}", name, value, cause,
                                     list.values.at(cause)));
    }
    const auto rises = [&](std::string_view from, double first, std::string_view to, double last) {
      if (last <= first) return;
      remarks.Add(index, fmt::format("{} = {} is above {} = {}: it grows from round to round", to,
                                     last, from, first));
    };
    if (learner.step.schedule == StepOptions::Schedule::kGeometric) {
      rises("step", learner.step.step, "last_step", learner.step.last);
    }
    const PolicyGradientOptions& gradient = learner.policy_gradient;
    if (ByPolicyGradient(learner) && gradient.method == PolicyGradientOptions::Method::kPpo) {
      rises("policy_gradient.noise", gradient.noise, "policy_gradient.last_noise",
            gradient.last_noise);
    }
  }
  remarks.AppendTo(num_learners, warnings);
}

}  // namespace

std::vector<std::string> Warnings(const TrainingSettings& given) {
  const TrainingSettings settings = AsRun(given);
  std::vector<std::string> warnings;
  if (IsEmpty(settings.task.world)) warnings.emplace_back(kEmptyWorldWarning);
  if (settings.federation.algorithm == Algorithm::kFedGen && settings.learners.size() > 1 &&
      LeastPairOfBiases(settings) >= 1) {
    const bool given_b =
        Any(settings, [](const auto& s) { return s.bias.kind == BiasOptions::Kind::kGiven; });
    warnings.push_back(fmt::format(
        "b = {:.4g}: no adoption can happen, since it needs y_j + b < y_i - b and y is in [0, 1]{}",
        BiasRange(settings).low,
        given_b ? ""
                : fmt::format("; b < 0.5 needs more than {:.0f} worlds a round",
                              std::floor(2 * std::log(2 / settings.gamma)))));
  }
  if (AnyOwnWorlds(settings)) {
    warnings.emplace_back(
        "learners have worlds of different kinds ([[learners]] world): T4 and T5 do not cover "
        "comparing their costs, and the certificate is about the worlds of [world]");
  }
  for (const LearnerSettings& learner : settings.learners) {
    if (learner.stock_every == 0 ||
        LargestStockBias(settings, learner) <= BiasOf(settings, learner)) {
      continue;
    }
    warnings.push_back(fmt::format(
        "stock_worlds = {}: b of such a large measurement may be {:.3g}, more than the {:.3g} of "
        "an "
        "ordinary round",
        learner.stock_worlds, LargestStockBias(settings, learner), BiasOf(settings, learner)));
    break;
  }
  if (Any(settings, [](const auto& s) { return s.rest && !MayEverAdopt(s); })) {
    warnings.emplace_back(
        "rest = true: has no effect for a learner that never adopts (stop = \"never\" and "
        "stock_every = 0)");
  }
  AddRemarks(given, warnings);
  return warnings;
}

}  // namespace fedgen
