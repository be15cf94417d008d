// SPDX-License-Identifier: Apache-2.0

// Algorithm 1: against a second, literal transcription; then each rule of Learner and Federation on
// numbers made up for it.

#include "fedgen/fuse/federation.h"

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
      LearnerOptions learner;
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
      const Result<RoundReport> report = federation.Round();
      ASSERT_TRUE(report);
      for (std::size_t i = 0; i < n; ++i) {
        SCOPED_TRACE(::testing::Message()
                     << "seed " << seed << ", round " << k << ", learner " << i);
        const LearnerState& state = federation.learners()[i]->state();
        ASSERT_EQ(state.search.mu, naive.theta[i]);
        ASSERT_EQ(state.y, naive.y[i]);
        ASSERT_EQ(state.zeta, naive.zeta[i]);
        ASSERT_EQ(state.stopped, naive.stop[i]);
        ASSERT_EQ(state.adoptions, naive.adoptions[i]);
        const LearnerRound& row = report->learners[i];
        ASSERT_EQ(row.y, naive.y[i]);
        ASSERT_EQ(row.was_stopped, before[i]);
        ASSERT_EQ(row.stopped, naive.stop[i]);
        ASSERT_EQ(row.zeta, naive.zeta[i]);
        ASSERT_EQ(row.adopted, before[i] && !naive.stop[i]);
        // Eq. 37, in every run.
        ASSERT_LT(state.adoptions, 1 / 0.02 - 1);
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      adoptions += naive.adoptions[i];
      stops += naive.stop[i] ? 1 : 0;
    }
    settled += federation.FindEnding() == Ending::kRounds ? 1 : 0;
  }
  EXPECT_GT(adoptions, 50);
  EXPECT_GT(stops, 50);
  EXPECT_EQ(settled, 60);
}

// ---- One rule at a time ----

class Scripted final : public Objective {
 public:
  using Script = std::function<Measurement(const Search&, Key)>;
  explicit Scripted(Script script) : script_(std::move(script)) {}
  Measurement Measure(const Search& search, Key key) override { return script_(search, key); }
  Value MeasureValue(std::span<const float> mu, std::int64_t worlds, Key key) override {
    const Measurement m = script_({{mu.begin(), mu.end()}, {}}, key);
    return {m.y, 0, worlds, m.episodes};
  }

 private:
  Script script_;
};

std::unique_ptr<Objective> Always(double y, double z, double z_sigma = 0) {
  return std::make_unique<Scripted>([=](const Search& search, Key) {
    Measurement m;
    m.y = y;
    m.z_mu.assign(search.mu.size(), z);
    m.z_sigma.assign(search.mu.size(), z_sigma);
    m.episodes = 10;
    return m;
  });
}

LearnerOptions WithBias(double b) {
  LearnerOptions options;
  options.bias = b;
  options.stop.threshold = 1;
  return options;
}

Submission From(int learner, double y, double b) {
  Submission s;
  s.learner = learner;
  s.round = 1;
  s.origin = learner;
  s.y = y;
  s.b = b;
  s.theta = {42};
  s.hash = HashOf(s.theta);
  return s;
}

// A learner that measured y = 0.75 and has stopped; b = 0.125.
std::unique_ptr<Learner> Stopped() {
  auto learner = MakeTestLearner(0, WithBias(0.125), Always(0.75, 0), {1}, Key(1));
  learner->Collect(1);
  learner->Update(1, 100);
  EXPECT_TRUE(learner->state().stopped);
  return learner;
}

TEST(Learner, AdoptsOnlyUnderTheConditionsOfEq31) {
  const auto learner = Stopped();
  EXPECT_TRUE(learner->WouldAdopt(From(1, 0.25, 0.125), true));
  EXPECT_FALSE(learner->WouldAdopt(From(1, 0.25, 0.125), false));  // not stopped before
  EXPECT_FALSE(learner->WouldAdopt(From(0, 0.25, 0.125), true));   // its own
  EXPECT_FALSE(learner->WouldAdopt(From(1, 0.5, 0.125), true));    // y_j + b_j = y_i - b_i
  EXPECT_TRUE(learner->WouldAdopt(From(1, 0.5, 0.12), true));
  LearnerState state = learner->state();
  state.zeta = 0.375;
  learner->set_state(state);
  EXPECT_FALSE(learner->WouldAdopt(From(1, 0.25, 0.125), true));  // y_j + b_j = zeta
  EXPECT_TRUE(learner->WouldAdopt(From(1, 0.25, 0.12), true));
  EXPECT_FALSE(learner->Fuse(From(1, 0.25, 0.125), true));
  EXPECT_EQ(learner->state().search.mu, std::vector<float>{1});
}

TEST(Learner, BeginsAgainWhenItAdopts) {
  LearnerOptions options = WithBias(0.125);
  options.optimizer.kind = OptimizerOptions::Kind::kAdam;
  options.sigma_rate = 1;
  bool calm = false;
  auto learner = MakeTestLearner(3, options, std::make_unique<Scripted>([&](const Search&, Key) {
                                   Measurement m;
                                   m.y = 0.75;
                                   m.z_mu = {calm ? 0.0 : 2.0};
                                   m.z_sigma = {1.0};
                                   return m;
                                 }),
                                 {1}, Key(1));
  for (int k = 1; k <= 3; ++k) {
    learner->Collect(k);
    learner->Update(k, 100);
  }
  EXPECT_EQ(learner->state().optimizer.steps, 3);
  EXPECT_LT(learner->state().search.sigma[0], 0.1F);
  calm = true;
  learner->Collect(4);
  learner->Update(4, 100);
  ASSERT_TRUE(learner->state().stopped);
  EXPECT_EQ(learner->state().first_stop, 4);
  const std::vector<float> first = learner->state().search.mu;
  EXPECT_EQ(learner->state().first_stopped, first);
  EXPECT_EQ(learner->Submit().round, 4);
  EXPECT_EQ(learner->Submit().origin, 3);

  ASSERT_TRUE(learner->Fuse(From(7, 0.25, 0.125), true));
  const LearnerState& state = learner->state();
  EXPECT_EQ(state.search.mu, std::vector<float>{42});
  EXPECT_EQ(state.search.sigma, std::vector<float>{0.1F});
  EXPECT_EQ(state.zeta, 0.25);
  EXPECT_FALSE(state.stopped);
  EXPECT_EQ(state.optimizer.steps, 0);
  EXPECT_THAT(state.optimizer.first, IsEmpty());
  EXPECT_EQ(state.adoptions, 1);
  EXPECT_EQ(state.origin, 7);
  // It stops again: the first stop stays the first.
  learner->Collect(5);
  learner->Update(5, 100);
  EXPECT_TRUE(learner->state().stopped);
  EXPECT_EQ(learner->state().first_stop, 4);
  EXPECT_EQ(learner->state().first_stopped, first);
}

TEST(Learner, GoesOnCountingRoundsThroughAnAdoption) {
  // z = 1.5 everywhere but at theta = 1, where the learner sits still.
  LearnerOptions options = WithBias(0.125);
  options.step.step = 1;
  options.step.exponent = 1;
  auto learner =
      MakeTestLearner(0, options, std::make_unique<Scripted>([](const Search& search, Key) {
                        Measurement m;
                        m.y = 0.75;
                        m.z_mu = {search.mu[0] == 1 ? 0.0 : 1.5};
                        m.z_sigma = {0};
                        return m;
                      }),
                      {1}, Key(1));
  learner->Collect(1);
  learner->Update(1, 100);
  ASSERT_TRUE(learner->Fuse(From(1, 0.25, 0.125), true));
  learner->Collect(6);
  learner->Update(6, 100);
  EXPECT_EQ(learner->state().search.mu[0], 42 - 1.5F / 6);
}

// Beyond the paper (Eq. 43): every third round on many worlds, and once after it has stopped.
TEST(Learner, TakesStockWhenItIsTime) {
  LearnerOptions options = WithBias(0.25);
  options.stock_every = 3;
  options.stock_worlds = 20000;
  options.stop.rule = StopOptions::Rule::kGradient;
  options.stop.threshold = 1;
  double z = 2;
  std::vector<Key> keys;
  auto learner =
      MakeTestLearner(0, options, std::make_unique<Scripted>([&](const Search&, Key key) {
                        keys.push_back(key);
                        Measurement m;
                        m.y = 0.5;
                        m.z_mu = {z};
                        m.z_sigma = {0};
                        m.episodes = 10;
                        return m;
                      }),
                      {1}, Key(1));
  const auto round = [&](int k) {
    if (!learner->state().stopped) learner->Collect(k);
    const bool took = learner->TakeStock(k);
    learner->Update(k, 100);
    return took;
  };
  EXPECT_FALSE(round(1));
  EXPECT_EQ(learner->Submit().b, 0.25);
  EXPECT_FALSE(round(2));
  EXPECT_TRUE(round(3));
  EXPECT_EQ(learner->Submit().b, EmpiricalBernsteinBias(0, 20000, 0.01));
  EXPECT_EQ(learner->Submit().round, 3);
  EXPECT_EQ(learner->state().episodes, 40);
  EXPECT_FALSE(round(4));
  EXPECT_EQ(learner->Submit().b, 0.25) << "a running learner's next y is an ordinary one";
  z = 0;
  EXPECT_FALSE(round(5));
  ASSERT_TRUE(learner->state().stopped);
  EXPECT_EQ(learner->Submit().b, 0.25);
  EXPECT_TRUE(round(6)) << "what it keeps is measured anew";
  EXPECT_EQ(learner->Submit().b, EmpiricalBernsteinBias(0, 20000, 0.01));
  EXPECT_EQ(learner->Submit().round, 6);
  EXPECT_FALSE(round(9)) << "once";
  // Never the same worlds twice.
  for (std::size_t a = 0; a < keys.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) EXPECT_FALSE(keys[a] == keys[b]);
  }
}

// A learner that runs may adopt in the round it takes stock in, and in no other.
TEST(Federation, FusesWhereStockIsTaken) {
  LearnerOptions options = WithBias(0.25);
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
    EXPECT_EQ(report->learners[0].adopted, k == 4) << k;
    EXPECT_FALSE(report->learners[1].adopted) << k;
  }
  EXPECT_EQ(federation.learners()[0]->state().origin, 1);
}

// Two learners at 0.5 and 0.49; the second gets better from stock to stock. The first adopts once
// and then costs nothing, says nothing, and holds whatever the Cloud holds.
TEST(Federation, LetsALearnerRestAfterItsAdoption) {
  LearnerOptions options = WithBias(0.25);
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
    EXPECT_EQ(report->learners[0].adopted, k == 4) << k;
    EXPECT_EQ(report->learners[0].took_stock, k == 4) << k;
    EXPECT_EQ(federation.learners()[0]->resting(), k >= 4) << k;
    EXPECT_EQ(rester.stopped, k >= 4) << k;
    EXPECT_FALSE(federation.learners()[1]->resting());
    EXPECT_EQ(rester.episodes, k < 4 ? 10 * k : 50) << k;  // four rounds and a stock
    if (k < 4) continue;
    EXPECT_EQ(report->incumbent->learner, 1) << k;
    EXPECT_EQ(report->incumbent->round, k - k % 4) << k;  // the newest stock
    EXPECT_EQ(rester.search.mu, report->incumbent->theta) << k;
    EXPECT_EQ(rester.y, report->incumbent->y) << k;
    EXPECT_EQ(rester.b, report->incumbent->b) << k;
    EXPECT_EQ(rester.adoptions, 1) << k;
  }
}

TEST(Learner, MovesSigmaByATenthAtMostAndWithinAFactorOfTen) {  // Eq. 20
  for (const double sign : {1.0, -1.0}) {
    LearnerOptions options = WithBias(0.1);
    options.step.schedule = StepOptions::Schedule::kConstant;
    options.step.step = 0.5;
    options.sigma_rate = 2;
    auto small = MakeTestLearner(0, options, Always(0.5, 2, 0.25 * sign), {0}, Key(1));
    small->Collect(1);
    small->Update(1, 10);
    EXPECT_NEAR(small->state().search.sigma[0], 0.1 * std::exp(-0.1 * 0.25 * sign), 1e-8);
    auto learner = MakeTestLearner(0, options, Always(0.5, 2, 1e6 * sign), {0}, Key(1));
    double before = 0.1;
    for (int k = 1; k <= 60; ++k) {
      learner->Collect(k);
      learner->Update(k, 60);
      const double sigma = static_cast<double>(learner->state().search.sigma[0]);
      EXPECT_LE(std::fabs(std::log(sigma / before)), 0.1 + 1e-6);
      before = sigma;
    }
    EXPECT_NEAR(before, sign > 0 ? 0.01 : 1.0, 1e-7);
  }
}

TEST(Learner, DrawsFreshWorldsEveryRoundAndForEveryUse) {
  std::vector<Key> keys;
  const auto record = [&](const Search& search, Key key) {
    keys.push_back(key);
    Measurement m;
    m.z_mu.assign(search.mu.size(), 2.0);
    m.z_sigma.assign(search.mu.size(), 0.0);
    m.episodes = 5;
    return m;
  };
  for (int i = 0; i < 2; ++i) {
    auto learner =
        MakeTestLearner(i, WithBias(0.1), std::make_unique<Scripted>(record), {0}, Key(1));
    for (int k = 1; k <= 3; ++k) learner->Collect(k);
    const Submission judged = learner->Judge({i, 1, {4}}, 3, 9);
    EXPECT_EQ(judged.learner, 9);
    EXPECT_EQ(judged.round, 3);
    EXPECT_EQ(judged.origin, 1);
    EXPECT_EQ(judged.theta, std::vector<float>{4});
    EXPECT_EQ(judged.b, 0.1);
    EXPECT_EQ(learner->state().episodes, 20);
  }
  for (std::size_t a = 0; a < keys.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) EXPECT_FALSE(keys[a] == keys[b]) << a << ", " << b;
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
  LearnerState state = federation.learners()[1]->state();
  state.origin = 0;
  federation.learners()[1]->set_state(state);
}

TEST(Federation, FusesTheRoundAfterTheStop) {
  Federation federation = Two({}, Always(0.9, 0), Always(0.2, 2));
  const auto first = federation.Round();
  EXPECT_TRUE(first->learners[0].stopped);  // it stops in round 1 and may fuse from round 2 on
  EXPECT_FALSE(first->learners[0].adopted);
  EXPECT_EQ(federation.FindEnding(), Ending::kNotYet);
  const auto second = federation.Round();
  EXPECT_TRUE(second->learners[0].adopted);
  EXPECT_EQ(second->learners[0].adopted_from, 1);
  EXPECT_FALSE(second->learners[0].stopped);
  EXPECT_EQ(second->learners[0].zeta, 0.2);
  EXPECT_EQ(federation.learners()[0]->state().search.mu, std::vector<float>{5});  // of round 1
  EXPECT_EQ(second->episodes, 30);  // the stopped one measured nothing in round 2
  // Its worlds say 0.9 again, and what tempts it is not below zeta: adopted once, for good.
  for (int k = 3; k < 20; ++k) EXPECT_FALSE((*federation.Round()).learners[0].adopted);
}

TEST(Federation, EndsForOneOfThreeReasons) {
  FederationOptions options;
  options.rounds = 3;
  Federation rounds = Two(options, Always(0.9, 2), Always(0.2, 2));
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(rounds.FindEnding(), Ending::kNotYet);
    ASSERT_TRUE(rounds.Round());
  }
  EXPECT_EQ(rounds.FindEnding(), Ending::kRounds);

  options.rounds = 100;
  options.episodes = 55;
  Federation episodes = Two(options, Always(0.9, 2), Always(0.2, 2));
  for (int k = 0; k < 3; ++k) {
    EXPECT_EQ(episodes.FindEnding(), Ending::kNotYet) << k;
    ASSERT_TRUE(episodes.Round());
  }
  EXPECT_EQ(episodes.FindEnding(), Ending::kEpisodes);

  Federation settled = Two({}, Always(0.35, 0), Always(0.2, 0));
  EXPECT_EQ(settled.FindEnding(), Ending::kNotYet);
  ASSERT_TRUE(settled.Round());
  EXPECT_EQ(settled.FindEnding(), Ending::kSettled);  // 0.2 + 0.1 is not below 0.35 - 0.1
  Federation tempted = Two({}, Always(0.45, 0), Always(0.2, 0));
  ASSERT_TRUE(tempted.Round());
  EXPECT_EQ(tempted.FindEnding(), Ending::kNotYet);
}

TEST(Federation, SettledMeansThatNothingMovesAnyMore) {
  const AnalyticFunction f = ThreeWells();
  LearnerOptions learner = WithBias(0.05);
  learner.step.step = 0.4;
  learner.stop.threshold = 0.1;
  int settled = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    FederationOptions options;
    options.rounds = 2000;
    Federation federation = MakeAnalyticFederation(options, learner, f, 20, 4, 4, Key(seed));
    while (federation.FindEnding() == Ending::kNotYet) ASSERT_TRUE(federation.Round());
    if (federation.FindEnding() != Ending::kSettled) continue;
    ++settled;
    std::vector<std::vector<float>> thetas;
    for (const auto& l : federation.learners()) thetas.push_back(l->state().search.mu);
    const auto episodes = federation.episodes();
    for (int more = 0; more < 5; ++more) ASSERT_TRUE(federation.Round());
    EXPECT_EQ(federation.episodes(), episodes);
    for (std::size_t i = 0; i < thetas.size(); ++i) {
      EXPECT_EQ(federation.learners()[i]->state().search.mu, thetas[i]);
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
    EXPECT_FALSE(report->learners[0].adopted);
    EXPECT_EQ(report->incumbent->learner, 1);
  }
  EXPECT_EQ(federation.learners()[0]->state().search.mu, std::vector<float>{1});
  EXPECT_FALSE(federation.fuses());
}

TEST(Federation, AveragesEveryRoundIfAskedTo) {
  FederationOptions options;
  options.algorithm = Algorithm::kFedAvg;
  std::vector<std::unique_ptr<Learner>> learners;
  LearnerOptions learner = WithBias(0.1);
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
      EXPECT_EQ(l->state().search.mu[0], 1.0F - static_cast<float>(k));
    }
  }
}

TEST(Federation, HasAveragedCandidatesMeasuredInTheNextRound) {
  FederationOptions options;
  options.average_every = 2;
  Federation federation = Two(options, Always(0.5, 2), Always(0.45, 2));
  DescendFromTheFirst(federation);
  ASSERT_TRUE(federation.Round());
  EXPECT_THAT(federation.state().candidates, IsEmpty());
  ASSERT_TRUE(federation.Round());
  ASSERT_THAT(federation.state().candidates, SizeIs(1));
  EXPECT_EQ(federation.episodes(), 40);
  ASSERT_TRUE(federation.Round());
  EXPECT_EQ(federation.episodes(), 70);  // two learners and the candidate
  EXPECT_TRUE(federation.state().knowledge.best.contains(2));
  EXPECT_THAT(federation.state().candidates, IsEmpty());
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
  while (federation.FindEnding() == Ending::kNotYet) ASSERT_TRUE(federation.Round());
  EXPECT_EQ(federation.FindEnding(), Ending::kSettled);
  for (const auto& learner : federation.learners()) {
    EXPECT_EQ(learner->state().search.mu, std::vector<float>{3});
  }
  // Round 4 nominates, 5 adopts, 6 measures and stops; the mean of two equal policies, nominated in
  // round 8, is the last that could have changed anything.
  EXPECT_EQ(federation.state().round, 9);
}

// A mean that changes no more is measured once, also where one is due in every round.
TEST(Federation, SettlesThoughAveragesAreDueInEveryRound) {
  FederationOptions options;
  options.average_every = 1;
  Federation federation = Two(options, Always(0.5, 0), Always(0.5, 0));
  DescendFromTheFirst(federation);
  ASSERT_TRUE(federation.Round());  // both stop, their mean is nominated
  EXPECT_EQ(federation.FindEnding(), Ending::kNotYet);
  ASSERT_TRUE(federation.Round());  // it is measured
  EXPECT_EQ(federation.FindEnding(), Ending::kSettled);
  EXPECT_EQ(federation.episodes(), 30);
  ASSERT_TRUE(federation.Round());
  EXPECT_EQ(federation.episodes(), 30);
}

TEST(Federation, SaysWhenAnAutomaticThresholdStopsALearnerAtOnce) {
  LearnerOptions options = WithBias(0.1);
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
  Federation federation({}, std::move(learners));
  const auto first = federation.Round();
  ASSERT_THAT(first->remarks, SizeIs(1));
  EXPECT_THAT(first->remarks[0], HasSubstr("learner 1 stops at once"));
  EXPECT_THAT(first->remarks[0], HasSubstr("160 pairs"));
  EXPECT_TRUE(first->learners[0].stopped);
  EXPECT_EQ(first->learners[0].threshold, 4);
  EXPECT_THAT(federation.Round()->remarks, IsEmpty());
}

}  // namespace
}  // namespace fedgen
