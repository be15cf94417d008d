// SPDX-License-Identifier: Apache-2.0

// Algorithm 1: against a second, literal transcription; then each rule of a round on numbers made
// up for it.

#include "fedgen/fuse/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "fedgen/certify/bounds.h"
#include "fedgen/fuse/federation_testing.h"

namespace fedgen {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// ---- The paper's pseudo-code, as it is printed: all of the past is kept and searched ----

struct Naive {
  struct Seen {  // what learner j sent in round k
    int j, k;
    std::vector<float> theta;
    double y;
  };

  AnalyticFunction f;
  int worlds;
  Key seed;
  double r, rho, q;
  std::vector<double> b;                  // [i]
  std::vector<std::vector<float>> theta;  // [i] theta(k-1)
  std::vector<double> y;                  // [i]
  std::vector<double> zeta;               // [i]
  std::vector<bool> stop;                 // [i] Stop(k-1)
  std::vector<int> adoptions;             // [i]
  std::vector<Seen> history;

  void Iterate(int k) {
    const std::size_t n = theta.size();
    std::vector<std::vector<float>> theta_hat = theta;
    std::vector<bool> stop_now = stop;
    for (std::size_t i = 0; i < n; ++i) {
      if (stop[i]) continue;  // y(k-1) = y(k-2)
      const Key key = seed.Fork(Stream::kLearner)
                          .Fork(i)
                          .Fork(Stream::kTraining)
                          .Fork(static_cast<std::uint64_t>(k));
      const Measurement m = MakeAnalyticObjective(f, worlds)->Measure({theta[i], {}}, key);
      y[i] = m.y;
      double norm2 = 0;
      for (const double z : m.z_mu) norm2 += z * z;
      if (std::sqrt(norm2) >= q) {
        for (std::size_t d = 0; d < theta[i].size(); ++d) {
          theta_hat[i][d] = static_cast<float>(static_cast<double>(theta[i][d]) -
                                               r / std::pow(k, rho) * m.z_mu[d]);
        }
      } else {
        stop_now[i] = true;
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      history.push_back({static_cast<int>(i), k, theta[i], y[i]});
    }
    const Seen* best = &history.front();
    for (const Seen& seen : history) {
      const double value = seen.y + b[static_cast<std::size_t>(seen.j)];
      const double least = best->y + b[static_cast<std::size_t>(best->j)];
      if (value < least || (value == least && seen.j < best->j)) best = &seen;
    }
    const double bound = best->y + b[static_cast<std::size_t>(best->j)];
    for (std::size_t i = 0; i < n; ++i) {
      if (static_cast<std::size_t>(best->j) != i && bound < y[i] - b[i] && bound < zeta[i] &&
          stop[i]) {
        theta_hat[i] = best->theta;
        zeta[i] = best->y;
        stop_now[i] = false;
        ++adoptions[i];
      }
    }
    theta = theta_hat;
    stop = stop_now;
  }
};

TEST(Algorithm1, AgreesWithItsTranscriptionBitForBit) {
  int adoptions = 0, stops = 0, settled = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Naive naive;
    naive.f = ThreeWells();
    naive.worlds = 10;
    naive.seed = Key(seed);
    naive.r = seed % 2 == 0 ? 0.4 : 1.5;
    naive.rho = 0.7;
    naive.q = seed % 3 == 0 ? 0.02 : 0.15;
    const int num_learners = 2 + static_cast<int>(seed % 5);
    FederationOptions options;
    options.rounds = 80;
    std::vector<std::unique_ptr<Learner>> learners;
    for (int i = 0; i < num_learners; ++i) {
      TestLearnerOptions learner;
      learner.bias = 0.02 + 0.03 * static_cast<double>((seed + static_cast<std::uint64_t>(i)) % 4);
      learner.step.step = naive.r;
      learner.step.exponent = naive.rho;
      learner.stop.threshold = naive.q;
      const auto theta = UniformTheta(
          Key(seed).Fork(Stream::kInitialPolicy).Fork(static_cast<std::uint64_t>(i)), 2, 4);
      naive.b.push_back(learner.bias);
      naive.theta.push_back(theta);
      learners.push_back(MakeTestLearner(i, learner, MakeAnalyticObjective(naive.f, naive.worlds),
                                         theta, Key(seed)));
    }
    const auto n = static_cast<std::size_t>(num_learners);
    naive.y.assign(n, 1);
    naive.zeta.assign(n, 1);
    naive.stop.assign(n, false);
    naive.adoptions.assign(n, 0);

    Federation federation(options, std::move(learners));
    for (int k = 1; k <= options.rounds; ++k) {
      const std::vector<bool> before = naive.stop;
      naive.Iterate(k);
      const Result<RoundReport> report = federation.RoundAfterTheEnd();
      ASSERT_TRUE(report);
      for (std::size_t i = 0; i < n; ++i) {
        SCOPED_TRACE(::testing::Message()
                     << "seed " << seed << ", round " << k << ", learner " << i);
        const LearnerState& state = federation.learners()[i]->state();
        ASSERT_EQ(state.theta, naive.theta[i]);
        ASSERT_EQ(state.y, naive.y[i]);
        ASSERT_EQ(state.zeta, naive.zeta[i]);
        ASSERT_EQ(state.stopped, naive.stop[i]);
        ASSERT_EQ(state.adoptions, naive.adoptions[i]);
        const LearnerRound& row = report->learners[i];
        ASSERT_EQ(row.y, naive.y[i]);
        const bool adopted = before[i] && !naive.stop[i];
        ASSERT_EQ(row.phase, adopted         ? LearnerPhase::kAdopted
                             : before[i]     ? LearnerPhase::kStopped
                             : naive.stop[i] ? LearnerPhase::kStopping
                                             : LearnerPhase::kRunning);
        ASSERT_EQ(row.z_norm.has_value(), !before[i]);
        ASSERT_EQ(row.kept_policy, before[i] ? !adopted : naive.stop[i]);
        ASSERT_EQ(row.zeta, naive.zeta[i]);
        // Eq. 37, in every run.
        ASSERT_LT(state.adoptions, 1 / 0.02 - 1);
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      adoptions += naive.adoptions[i];
      stops += naive.stop[i] ? 1 : 0;
    }
    settled += federation.ending() == Ending::kRounds ? 1 : 0;
  }
  EXPECT_GT(adoptions, 50);
  EXPECT_GT(stops, 50);
  EXPECT_EQ(settled, 60);
}

// ---- One rule at a time ----

// A learner that runs may adopt in the round it takes stock in, and in no other.
TEST(Federation, FusesWhereStockIsTaken) {
  TestLearnerOptions options = WithBias(0.25);
  options.stock_every = 4;
  options.stock_worlds = 100000;
  options.stop.rule = StopOptions::Rule::kNever;
  std::vector<std::unique_ptr<Learner>> learners;
  learners.push_back(MakeTestLearner(0, options, Always(0.5, 1), {1}, Key(1)));
  learners.push_back(MakeTestLearner(1, options, Always(0.49, 1), {2}, Key(2)));
  FederationOptions federation_options;
  federation_options.rounds = 10;
  Federation federation(federation_options, std::move(learners));
  for (int k = 1; k <= 10; ++k) {
    const auto report = federation.Round();
    ASSERT_TRUE(report);
    EXPECT_EQ(report->learners[0].took_stock, k % 4 == 0) << k;
    // 0.49 + b < 0.5 - b with b = 0.00014; in round 8 zeta = 0.49 is not undercut.
    EXPECT_EQ(report->learners[0].adopted_from.has_value(), k == 4) << k;
    EXPECT_FALSE(report->learners[1].adopted_from) << k;
  }
  EXPECT_EQ(federation.learners()[0]->state().origin, LearnerId(1));
}

// Two learners at 0.5 and 0.49; the second gets better from stock to stock. The first adopts once
// and then costs nothing, says nothing, and holds whatever the Cloud holds.
TEST(Federation, LetsALearnerRestAfterItsAdoption) {
  TestLearnerOptions options = WithBias(0.25);
  options.stock_every = 4;
  options.stock_worlds = 100000;
  options.stop.rule = StopOptions::Rule::kNever;
  options.rest = true;
  int measurements = 0;
  const auto improving = [&](const Search& search, Key) {
    Measurement m;
    m.y = 0.49 - 1e-6 * ++measurements;  // by far less than b
    m.z_mu.assign(search.mu.size(), 1);
    m.z_sigma.assign(search.mu.size(), 0);
    m.episodes = 10;
    return m;
  };
  std::vector<std::unique_ptr<Learner>> learners;
  learners.push_back(MakeTestLearner(0, options, Always(0.5, 1), {1}, Key(1)));
  learners.push_back(
      MakeTestLearner(1, options, std::make_unique<Scripted>(improving), {2}, Key(2)));
  FederationOptions federation_options;
  federation_options.rounds = 12;
  Federation federation(federation_options, std::move(learners));
  for (int k = 1; k <= 12; ++k) {
    const auto report = federation.Round();
    ASSERT_TRUE(report);
    const LearnerState& rester = federation.learners()[0]->state();
    EXPECT_EQ(report->learners[0].adopted_from.has_value(), k == 4) << k;
    EXPECT_EQ(report->learners[0].took_stock, k == 4) << k;
    EXPECT_EQ(federation.learners()[0]->resting(), k >= 4) << k;
    EXPECT_EQ(rester.stopped, k >= 4) << k;
    EXPECT_FALSE(federation.learners()[1]->resting());
    EXPECT_EQ(rester.episodes, k < 4 ? 10 * k : 50) << k;  // four rounds and a stock
    if (k < 4) continue;
    EXPECT_EQ(report->incumbent->learner, LearnerId(1)) << k;
    EXPECT_EQ(report->incumbent->round, k - k % 4) << k;  // the newest stock
    EXPECT_EQ(rester.theta, report->incumbent->theta) << k;
    EXPECT_EQ(rester.y, report->incumbent->y) << k;
    EXPECT_EQ(rester.b, report->incumbent->b) << k;
    EXPECT_EQ(rester.adoptions, 1) << k;
  }
}

Federation Two(const FederationOptions& options, std::unique_ptr<Objective> first,
               std::unique_ptr<Objective> second) {
  std::vector<std::unique_ptr<Learner>> learners;
  learners.push_back(MakeTestLearner(0, WithBias(0.1), std::move(first), {1}, Key(1)));
  learners.push_back(MakeTestLearner(1, WithBias(0.1), std::move(second), {5}, Key(1)));
  return {options, std::move(learners)};
}

// As if both had begun with the policy of learner 0: their mean makes sense.
void DescendFromTheFirst(Federation& federation) {
  federation.Join();
  LearnerState state = federation.learners()[1]->state();
  state.origin = LearnerId(0);
  federation.learners()[1]->set_state(state);
  CloudState cloud = federation.cloud().state();
  cloud.average_origin = LearnerId(0);
  federation.cloud().set_state(cloud);
}

TEST(Federation, FusesTheRoundAfterTheStop) {
  Federation federation = Two({}, Always(0.9, 0), Always(0.2, 2));
  const auto first = federation.Round();
  EXPECT_EQ(first->learners[0].phase,
            LearnerPhase::kStopping);  // it stops in round 1 and may fuse from round 2 on
  EXPECT_EQ(federation.ending(), Ending::kNotYet);
  const auto second = federation.Round();
  EXPECT_EQ(second->learners[0].phase, LearnerPhase::kAdopted);
  EXPECT_EQ(second->learners[0].adopted_from, LearnerId(1));
  EXPECT_FALSE(federation.learners()[0]->state().stopped);
  EXPECT_EQ(second->learners[0].zeta, 0.2);
  EXPECT_EQ(federation.learners()[0]->state().theta, std::vector<float>{5});  // of round 1
  EXPECT_EQ(second->episodes, 30);  // the stopped one measured nothing in round 2
  // Its worlds say 0.9 again, and what tempts it is not below zeta: adopted once, for good.
  for (int k = 3; k < 20; ++k) EXPECT_FALSE((*federation.Round()).learners[0].adopted_from);
}

TEST(Federation, EndsForOneOfThreeReasons) {
  FederationOptions options;
  options.rounds = 3;
  Federation rounds = Two(options, Always(0.9, 2), Always(0.2, 2));
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(rounds.ending(), Ending::kNotYet);
    ASSERT_TRUE(rounds.Round());
  }
  EXPECT_EQ(rounds.ending(), Ending::kRounds);

  options.rounds = 100;
  options.episodes = 55;
  Federation episodes = Two(options, Always(0.9, 2), Always(0.2, 2));
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(episodes.ending(), Ending::kNotYet) << k;
    ASSERT_TRUE(episodes.Round());
  }
  EXPECT_EQ(episodes.ending(), Ending::kEpisodes);

  Federation settled = Two({}, Always(0.35, 0), Always(0.2, 0));
  EXPECT_EQ(settled.ending(), Ending::kNotYet);
  ASSERT_TRUE(settled.Round());
  EXPECT_EQ(settled.ending(), Ending::kSettled);  // 0.2 + 0.1 is not below 0.35 - 0.1
  Federation tempted = Two({}, Always(0.45, 0), Always(0.2, 0));
  ASSERT_TRUE(tempted.Round());
  EXPECT_EQ(tempted.ending(), Ending::kNotYet);
}

TEST(Federation, SettledMeansThatNothingMovesAnyMore) {
  const AnalyticFunction f = ThreeWells();
  TestLearnerOptions learner = WithBias(0.05);
  learner.step.step = 0.4;
  learner.stop.threshold = 0.1;
  int settled = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    FederationOptions options;
    options.rounds = 2000;
    Federation federation = MakeAnalyticFederation(options, learner, f, 20, 4, 4, Key(seed));
    while (federation.ending() == Ending::kNotYet) ASSERT_TRUE(federation.Round());
    if (federation.ending() != Ending::kSettled) continue;
    ++settled;
    std::vector<std::vector<float>> thetas;
    for (const auto& l : federation.learners()) thetas.push_back(l->state().theta);
    const auto episodes = federation.episodes();
    for (int more = 0; more < 5; ++more) ASSERT_TRUE(federation.RoundAfterTheEnd());
    EXPECT_EQ(federation.episodes(), episodes);
    for (std::size_t i = 0; i < thetas.size(); ++i) {
      EXPECT_EQ(federation.learners()[i]->state().theta, thetas[i]);
    }
  }
  EXPECT_GE(settled, 18);
}

TEST(Federation, OfLocalLearnersSharesNothing) {
  FederationOptions options;
  options.algorithm = Algorithm::kLocal;
  Federation federation = Two(options, Always(0.9, 0), Always(0.2, 0));
  for (int k = 0; k < 3; ++k) {
    const auto report = federation.Round();
    EXPECT_FALSE(report->learners[0].adopted_from);
    EXPECT_EQ(report->incumbent->learner, LearnerId(1));
  }
  EXPECT_EQ(federation.learners()[0]->state().theta, std::vector<float>{1});
}

TEST(Federation, AveragesEveryRoundIfAskedTo) {
  FederationOptions options;
  options.algorithm = Algorithm::kFedAvg;
  std::vector<std::unique_ptr<Learner>> learners;
  TestLearnerOptions learner = WithBias(0.1);
  learner.step.schedule = StepOptions::Schedule::kConstant;
  learner.step.step = 0.5;
  learner.stop.rule = StopOptions::Rule::kNever;
  for (int i = 0; i < 3; ++i) {
    learners.push_back(MakeTestLearner(i, learner, Always(0.5, 2.0 * i), {1}, Key(1)));
  }
  Federation federation(options, std::move(learners));
  for (int k = 1; k <= 3; ++k) {
    ASSERT_TRUE(federation.Round());
    for (const auto& l : federation.learners()) {  // mean z = 2, step 0.5
      EXPECT_EQ(l->state().theta[0], 1.0F - static_cast<float>(k));
    }
  }
}

TEST(Federation, HasAveragedCandidatesMeasuredInTheNextRound) {
  FederationOptions options;
  options.average_every = 2;
  Federation federation = Two(options, Always(0.5, 2), Always(0.45, 2));
  DescendFromTheFirst(federation);
  ASSERT_TRUE(federation.Round());
  EXPECT_THAT(federation.host().state().candidates, IsEmpty());
  ASSERT_TRUE(federation.Round());
  ASSERT_THAT(federation.host().state().candidates, SizeIs(1));
  EXPECT_EQ(federation.episodes(), 40);
  ASSERT_TRUE(federation.Round());
  EXPECT_EQ(federation.episodes(), 70);  // two learners and the candidate
  EXPECT_TRUE(federation.cloud().state().knowledge.records.contains(LearnerId::Cloud()));
  EXPECT_THAT(federation.host().state().candidates, IsEmpty());
}

// Both stop in round 1, on either side of a better policy, and tempt nobody. Their mean is due in
// round 4 and does.
TEST(Federation, DoesNotSettleBeforeTheLastAverageWasMeasured) {
  FederationOptions options;
  options.average_every = 4;
  const auto valley = [](const Search& search, Key) {
    Measurement m;
    m.y = search.mu[0] == 3 ? 0.2 : 0.5;
    m.z_mu = {0};
    m.z_sigma = {0};
    return m;
  };
  Federation federation =
      Two(options, std::make_unique<Scripted>(valley), std::make_unique<Scripted>(valley));
  DescendFromTheFirst(federation);
  while (federation.ending() == Ending::kNotYet) ASSERT_TRUE(federation.Round());
  EXPECT_EQ(federation.ending(), Ending::kSettled);
  for (const auto& learner : federation.learners()) {
    EXPECT_EQ(learner->state().theta, std::vector<float>{3});
  }
  // Round 4 nominates, 5 adopts, 6 measures and stops; the mean of two equal policies, nominated in
  // round 8, is the last that could have changed anything.
  EXPECT_EQ(federation.host().round(), 9);
}

// A mean that changes no more is measured once, also where one is due in every round.
TEST(Federation, SettlesThoughAveragesAreDueInEveryRound) {
  FederationOptions options;
  options.average_every = 1;
  Federation federation = Two(options, Always(0.5, 0), Always(0.5, 0));
  DescendFromTheFirst(federation);
  ASSERT_TRUE(federation.Round());  // both stop, their mean is nominated
  EXPECT_EQ(federation.ending(), Ending::kNotYet);
  ASSERT_TRUE(federation.Round());  // it is measured
  EXPECT_EQ(federation.ending(), Ending::kSettled);
  EXPECT_EQ(federation.episodes(), 30);
  const auto refused = federation.Round();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("the run is over"));
}

TEST(Federation, SaysWhenAnAutomaticThresholdStopsALearnerAtOnce) {
  TestLearnerOptions options = WithBias(0.1);
  options.stop.rule = StopOptions::Rule::kAuto;
  std::vector<std::unique_ptr<Learner>> learners;
  const auto noisy = [](const Search&, Key) {
    Measurement m;
    m.z_mu = {2};
    m.z_sigma = {0};
    m.spread = 1;
    m.pairs = 30;
    return m;
  };
  learners.push_back(MakeTestLearner(0, options, std::make_unique<Scripted>(noisy), {1}, Key(1)));
  learners.push_back(MakeTestLearner(1, options, Always(0.5, 2), {1}, Key(1)));
  Federation federation({}, std::move(learners));
  const auto first = federation.Round();
  ASSERT_THAT(first->remarks, SizeIs(1));
  EXPECT_THAT(first->remarks[0], HasSubstr("learner 1 stops at once"));
  EXPECT_THAT(first->remarks[0], HasSubstr("160 pairs"));
  EXPECT_EQ(first->learners[0].phase, LearnerPhase::kStopping);
  EXPECT_EQ(first->learners[0].threshold, 4);
  EXPECT_THAT(federation.Round()->remarks, IsEmpty());
}

}  // namespace
}  // namespace fedgen
