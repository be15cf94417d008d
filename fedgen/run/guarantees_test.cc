// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/guarantees.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "tests/tasks.h"

namespace fedgen {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Algorithm 1 as the theorems want it: plain cost, steps along z, |z| < q, b from worlds, and a
// gamma that covers 8 x 100 measurements, and worlds enough that 4 b < 1.
TrainingSettings AsAssumed() {
  TrainingSettings settings;
  settings.task = TablesTask();
  settings.federation.rounds = 100;
  settings.gamma = 1e-5;
  LearnerSettings learner;
  learner.cost.kind = TrainingCost::Kind::kPlain;
  learner.worlds = 200;
  settings.learners.assign(8, learner);
  return settings;
}

std::string Held(const TrainingSettings& settings) {
  std::string names;
  for (const Guarantee& g : WhatHolds(settings)) {
    EXPECT_EQ(g.standing == Standing::kYes, g.reason.empty()) << g.name << ": " << g.reason;
    EXPECT_FALSE(g.statement.empty());
    if (g.standing == Standing::kNo) continue;
    names +=
        (names.empty() ? "" : " ") + g.name + (g.standing == Standing::kPartly ? "(partly)" : "");
  }
  return names;
}

std::string Reason(const TrainingSettings& settings, const std::string& name) {
  for (const Guarantee& g : WhatHolds(settings)) {
    if (g.name == name) return g.reason;
  }
  return "no such guarantee";
}

TEST(WhatHolds, FollowsTheTableOfGuarantees) {  // docs/guarantees.md, section 2
  using Change = std::function<void(TrainingSettings&)>;
  const auto all = [](const std::function<void(LearnerSettings&)>& change) -> Change {
    return [=](TrainingSettings& s) {
      for (LearnerSettings& learner : s.learners) change(learner);
    };
  };
  const auto one = [](const std::function<void(LearnerSettings&)>& change) -> Change {
    return [=](TrainingSettings& s) { change(s.learners[3]); };
  };
  const std::string everything = "T1 T2 T4 T5 adoptions certificate";
  const std::string adoptions = "T1 T2 T4(partly) T5(partly) adoptions certificate";
  const std::string only_t1 = "T1 T2 adoptions certificate";
  const std::string nothing = "adoptions certificate";
  struct Row {
    const char* name;
    Change change;
    std::string holds;
    const char* against;  // a guarantee
    const char* reason;   // part of why it does not hold
  };
  const Row rows[] = {
      {"as assumed", [](TrainingSettings&) {}, everything, "T3", "fedgen estimate"},
      {"few worlds", one([](auto& s) { s.worlds = 50; }), "T1 T2 T5 adoptions certificate", "T4",
       "says nothing"},
      {"surrogate", all([](auto& s) { s.cost.kind = TrainingCost::Kind::kPaper; }), adoptions, "T3",
       "surrogate"},
      {"failure cost", one([](auto& s) { s.cost.kind = TrainingCost::Kind::kFailure; }), adoptions,
       "T5", "without T3"},
      {"ranks",
       one([](auto& s) { s.estimator.shaping = EstimatorOptions::Shaping::kCentredRanks; }),
       adoptions, "T4", "without T3"},
      {"adam", one([](auto& s) { s.optimizer.kind = OptimizerOptions::Kind::kAdam; }), adoptions,
       "T3", "optimiser"},
      {"clipup", one([](auto& s) { s.optimizer.kind = OptimizerOptions::Kind::kClipUp; }),
       adoptions, "T3", "optimiser"},
      {"plain policy gradient", one([](auto& s) {
         s.estimator.kind = EstimatorOptions::Kind::kPolicyGradient;
         s.policy_gradient.method = PolicyGradientOptions::Method::kPlain;
       }),
       adoptions, "T3", "with noise on the control"},
      {"ppo", one([](auto& s) { s.estimator.kind = EstimatorOptions::Kind::kPolicyGradient; }),
       adoptions, "T3", "ppo"},
      {"ppo and adoptions",
       all([](auto& s) { s.estimator.kind = EstimatorOptions::Kind::kPolicyGradient; }), adoptions,
       "T5", "without T3, a learner's own steps may raise its cost"},
      {"sigma moves", one([](auto& s) { s.sigma_rate = 1; }), adoptions, "T3", "sigma moves"},
      {"geometric", one([](auto& s) { s.step.schedule = StepOptions::Schedule::kGeometric; }),
       adoptions, "T3", "geometric"},
      {"plateau", one([](auto& s) { s.stop.rule = StopOptions::Rule::kPlateau; }), adoptions, "T3",
       "|z| < q"},
      // A learner that takes stock may adopt without having stopped.
      {"never", one([](auto& s) { s.stop.rule = StopOptions::Rule::kNever; }),
       "T1 T2 T5(partly) adoptions certificate", "T4", "never stop"},
      {"paper's b, one start", all([](auto& s) { s.bias.kind = BiasOptions::Kind::kPaper; }),
       everything, "T3", ""},
      {"paper's b, several starts", all([](auto& s) {
         s.bias.kind = BiasOptions::Kind::kPaper;
         s.starts = 10;
       }),
       nothing, "T1", "dependent"},
      {"several starts, b from worlds", all([](auto& s) { s.starts = 10; }), everything, "T3", ""},
      {"given b", one([](auto& s) { s.bias.kind = BiasOptions::Kind::kGiven; }), nothing, "T2",
       "given"},
      {"own worlds", one([](auto& s) { s.own_world = TextTask().world; }),
       "T1(partly) T2(partly) adoptions certificate", "T5", "worlds of different kinds"},
      {"own worlds, pooled",
       [](TrainingSettings& s) {
         s.federation.algorithm = Algorithm::kCentralized;
         s.learners[3].own_world = TextTask().world;
       },
       "T1(partly) T2(partly) adoptions certificate", "T1", "kind of worlds"},
      {"gamma for one measurement", [](TrainingSettings& s) { s.gamma = 0.01; }, only_t1, "T4",
       "up to 800; gamma = 1.25e-05"},
      {"local", [](TrainingSettings& s) { s.federation.algorithm = Algorithm::kLocal; }, only_t1,
       "T3", "do not stop"},
      {"rest", all([](auto& s) { s.rest = true; }), "T1 T2 T4(partly) T5 adoptions certificate",
       "T4", "does not compare it again"},
      {"gamma for too many", [](TrainingSettings& s) { s.gamma = 0.9 / 800; }, only_t1, "T5",
       "up to 800"},
      {"fedavg", [](TrainingSettings& s) { s.federation.algorithm = Algorithm::kFedAvg; }, only_t1,
       "T4", "do not adopt"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    TrainingSettings settings = AsAssumed();
    row.change(settings);
    EXPECT_EQ(Held(settings), row.holds);
    EXPECT_THAT(Reason(settings, row.against), HasSubstr(row.reason));
  }
}

// Options that a learner by policy gradients does not read are no reasons against what it does.
TEST(WhatHolds, GivesOnlyReasonsThatApply) {
  TrainingSettings settings = AsAssumed();
  for (LearnerSettings& learner : settings.learners) {
    learner.estimator.kind = EstimatorOptions::Kind::kPolicyGradient;
    learner.policy_gradient.method = PolicyGradientOptions::Method::kPlain;
    learner.cost = {TrainingCost::Kind::kPaper, 0.1, 0.04};
    learner.estimator.shaping = EstimatorOptions::Shaping::kCentredRanks;
    learner.sigma_rate = 1;
  }
  EXPECT_EQ(Reason(settings, "T3"),
            "z is the gradient of the cost with noise on the control, and y is of the policy "
            "without it");
  settings.learners[2].estimator.kind = EstimatorOptions::Kind::kEvolution;
  EXPECT_THAT(Reason(settings, "T3"), HasSubstr("surrogate"));
  EXPECT_THAT(Reason(settings, "T3"), HasSubstr("ranks"));
  EXPECT_THAT(Reason(settings, "T3"), HasSubstr("sigma moves"));
}

TEST(WhatHolds, StatesTheNumbersOfTheRun) {
  TrainingSettings settings = AsAssumed();
  settings.gamma = 0.01;
  settings.learners[0].worlds = 10;
  std::map<std::string, std::string> statements;
  for (const Guarantee& g : WhatHolds(settings)) statements[g.name] = g.statement;
  EXPECT_THAT(statements["T1"], HasSubstr("within 0.1151 to 0.5147 of"));
  EXPECT_THAT(statements["T1"], HasSubstr("0.99"));
  EXPECT_THAT(statements["T4"], HasSubstr("that error, 2.06,"));
  EXPECT_THAT(statements["adoptions"], HasSubstr("at most 7 times"));  // 1 / b - 1
  settings.gamma = 1e-5;
  for (const Guarantee& g : WhatHolds(settings)) statements[g.name] = g.statement;
  EXPECT_THAT(statements["T4"], HasSubstr("probability 0.992"));  // 1 - 800 gamma
  EXPECT_THAT(statements["T5"], HasSubstr("probability 0.992"));
}

// 800 measurements and 20 averaged candidates.
TEST(WhatHolds, CountsWhatIsMeasured) {
  const auto statement = [](const TrainingSettings& settings, const std::string& name) {
    for (const Guarantee& g : WhatHolds(settings)) {
      if (g.name == name) return g.statement;
    }
    return std::string();
  };
  TrainingSettings settings = AsAssumed();
  settings.gamma = 1e-5;
  settings.federation.average_every = 5;
  EXPECT_THAT(statement(settings, "T5"), HasSubstr("probability 0.9918"));  // 1 - 820 gamma
  settings = AsAssumed();
  for (LearnerSettings& s : settings.learners) {
    s.stock_every = 5;
    s.stock_worlds = 10;
  }
  // All worlds of a large measurement cost the same, or half of them cost nothing: 7 ln(400) / 27
  // = 1.553 and sqrt(2 (10 / 36) ln(400) / 10) = 0.577 more.
  settings.gamma = 0.01;
  EXPECT_THAT(statement(settings, "T1"), HasSubstr("to 2.13"));
  EXPECT_THAT(Warnings(settings), Contains(HasSubstr("may be 2.13")));
  settings.federation.algorithm = Algorithm::kLocal;
  EXPECT_THAT(statement(settings, "T1"), HasSubstr("within 0.1151 of"));
  EXPECT_THAT(Warnings(settings), IsEmpty());
  settings = AsAssumed();
  for (LearnerSettings& s : settings.learners) s.rest = true;
  EXPECT_EQ(statement(settings, "adoptions"),
            "a learner adopts at most once; then it rests (rest = true)");
  for (LearnerSettings& s : settings.learners) s.stop.rule = StopOptions::Rule::kNever;
  EXPECT_EQ(statement(settings, "adoptions"),
            "no learner ever adopts: none stops or takes large measurements (stock_every)");
  EXPECT_THAT(Warnings(settings), Contains(HasSubstr("rest = true: has no effect")));
}

TEST(WhatHolds, SaysThatNoLearnerAdoptsIfNoneCan) {
  TrainingSettings settings = AsAssumed();
  for (LearnerSettings& learner : settings.learners) learner.worlds = 10;  // b > 0.5
  const std::vector<Guarantee> all = WhatHolds(settings);
  const auto adoptions = std::find_if(all.begin(), all.end(),
                                      [](const Guarantee& g) { return g.name == "adoptions"; });
  EXPECT_EQ(adoptions->statement, "no learner ever adopts");
}

// gamma says nothing about a b that somebody wrote down.
TEST(WhatHolds, NamesNoProbabilityWhereBWasGiven) {
  TrainingSettings settings = AsAssumed();
  const auto statement = [&] {
    const std::vector<Guarantee> all = WhatHolds(settings);
    return std::find_if(all.begin(), all.end(), [](const Guarantee& g) { return g.name == "T5"; })
        ->statement;
  };
  EXPECT_THAT(statement(), HasSubstr(", with probability "));
  for (LearnerSettings& learner : settings.learners) {
    learner.bias.kind = BiasOptions::Kind::kGiven;
    learner.bias.given = 0.05;
  }
  EXPECT_THAT(statement(), Not(HasSubstr("probability")));
}

TEST(Warnings, SayThatSigmaStays) {
  TrainingSettings settings = AsAssumed();
  settings.learners[3].sigma_rate = 0.5;
  EXPECT_THAT(Warnings(settings), IsEmpty());
  settings.learners[3].estimator.kind = EstimatorOptions::Kind::kFiniteDifferences;
  EXPECT_THAT(Warnings(settings), Contains(HasSubstr("sigma_rate = 0.5: has no effect")));
}

// Each option that an estimator, a method or a rule does not read, if somebody has set it.
TEST(Warnings, NameOptionsThatNothingReads) {
  using Change = void (*)(LearnerSettings&);
  const auto warned = [](Change base, Change change) {
    TrainingSettings settings = AsAssumed();
    LearnerSettings& learner = settings.learners[3];
    learner = {};
    base(learner);
    const std::size_t before = Warnings(settings).size();
    change(learner);
    return Warnings(settings).size() > before;
  };
  const Change evolution = [](LearnerSettings&) {};
  const Change ppo = [](LearnerSettings& s) {
    s.estimator.kind = EstimatorOptions::Kind::kPolicyGradient;
  };
  const Change plain = [](LearnerSettings& s) {
    s.estimator.kind = EstimatorOptions::Kind::kPolicyGradient;
    s.policy_gradient.method = PolicyGradientOptions::Method::kPlain;
  };
  const auto expect = [&](Change change, bool by_evolution, bool by_ppo, bool by_plain) {
    EXPECT_EQ(!warned(evolution, change), by_evolution);
    EXPECT_EQ(!warned(ppo, change), by_ppo);
    EXPECT_EQ(!warned(plain, change), by_plain);
  };
  expect([](LearnerSettings& s) { s.cost.kind = TrainingCost::Kind::kPlain; }, true, false, false);
  expect([](LearnerSettings& s) { s.cost.margin = 0.3; }, true, true, false);
  expect([](LearnerSettings& s) { s.cost.distance_weight = 0.3; }, true, true, false);
  expect([](LearnerSettings& s) { s.estimator.pairs = 77; }, true, false, false);
  expect([](LearnerSettings& s) { s.sigma = 0.7; }, true, false, false);
  expect([](LearnerSettings& s) { s.policy_gradient.episodes = 7; }, false, true, true);
  expect([](LearnerSettings& s) { s.policy_gradient.clip = 0.7; }, false, true, false);
  expect([](LearnerSettings& s) { s.policy_gradient.hard_share = 0.7; }, false, true, false);
  expect([](LearnerSettings& s) { s.step.step = 0.7; }, true, true, true);
  // Read under another rule than the one that is set, which is by gradient and power.
  expect([](LearnerSettings& s) { s.stop.window = 77; }, false, false, false);
  expect([](LearnerSettings& s) { s.step.last = 0.7; }, false, false, false);
  expect([](LearnerSettings& s) { s.stock_worlds = 77; }, false, false, false);
  expect([](LearnerSettings& s) { s.stop.threshold = 77; }, true, true, true);
}

TEST(Warnings, SayWhoseOptionAndWhy) {
  TrainingSettings settings = AsAssumed();
  settings.learners[3].policy_gradient.noise = 0.7;
  EXPECT_THAT(
      Warnings(settings),
      ::testing::Contains("learner 4: policy_gradient.noise = 0.7: has no effect with estimator = "
                          "'evolution'"));
  settings.federation.algorithm = Algorithm::kCentralized;  // the first stands for all
  EXPECT_THAT(Warnings(settings), IsEmpty());
  settings.learners[0].policy_gradient.noise = 0.7;
  EXPECT_THAT(Warnings(settings),
              ::testing::Contains("policy_gradient.noise = 0.7: has no effect with "
                                  "estimator = 'evolution'"));
}

TEST(Warnings, NameSchedulesThatRise) {
  TrainingSettings settings = AsAssumed();
  for (LearnerSettings& learner : settings.learners) {
    learner.step.schedule = StepOptions::Schedule::kGeometric;
    learner.step.step = learner.step.last = 0.01;
  }
  EXPECT_THAT(Warnings(settings), IsEmpty());
  for (LearnerSettings& learner : settings.learners) learner.step.last = 0.02;
  EXPECT_THAT(
      Warnings(settings),
      ::testing::Contains("last_step = 0.02 is above step = 0.01: it grows from round to round"));
}

TEST(Warnings, SayThatNoAdoptionCanHappen) {
  TrainingSettings settings = AsAssumed();
  settings.gamma = 0.01;
  EXPECT_THAT(Warnings(settings), IsEmpty());
  for (LearnerSettings& learner : settings.learners) learner.worlds = 10;  // b = 0.5147
  ASSERT_THAT(Warnings(settings), SizeIs(1));
  EXPECT_THAT(Warnings(settings)[0], HasSubstr("b = 0.5147: no adoption can happen"));
  EXPECT_THAT(Warnings(settings)[0], HasSubstr("more than 10 worlds"));    // 2 ln 200 = 10.6
  for (LearnerSettings& learner : settings.learners) learner.worlds = 11;  // b = 0.4907
  EXPECT_THAT(Warnings(settings), IsEmpty());
  // It takes one learner that knows better, and one that is worse.
  for (LearnerSettings& learner : settings.learners) learner.worlds = 10;
  settings.learners[7].worlds = 12;  // 0.4699 + 0.5147 < 1
  EXPECT_THAT(Warnings(settings), IsEmpty());
  settings.learners[7].worlds = 11;  // 0.4907 + 0.5147 > 1
  EXPECT_THAT(Warnings(settings), SizeIs(1));
  settings.federation.average_every = 5;  // 0.4907 + 0.4907 < 1, as its own measurer
  EXPECT_THAT(Warnings(settings), IsEmpty());
  settings.federation = {};
  settings.federation.algorithm = Algorithm::kLocal;
  EXPECT_THAT(Warnings(settings), IsEmpty());
}

TEST(Warnings, NameWorldsOfDifferentKinds) {
  TrainingSettings settings = AsAssumed();
  settings.learners[2].own_world = TextTask().world;
  ASSERT_THAT(Warnings(settings), SizeIs(1));
  EXPECT_THAT(Warnings(settings)[0], HasSubstr("worlds of different kinds"));
}

}  // namespace
}  // namespace fedgen
