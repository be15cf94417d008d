// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fuse/learner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fedgen/certify/bounds.h"
#include "fedgen/fuse/federation_testing.h"

namespace fedgen {
namespace {

using ::testing::IsEmpty;

// A learner that measured y = 0.75 and has stopped; b = 0.125.
std::unique_ptr<Learner> Stopped() {
  auto learner = MakeTestLearner(0, WithBias(0.125), Always(0.75, 0), {1}, Key(1));
  learner->Collect(1, 10);
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
  EXPECT_EQ(learner->state().theta, std::vector<float>{1});
}

TEST(Learner, BeginsAgainWhenItAdopts) {
  TestLearnerOptions options = WithBias(0.125);
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
    learner->Collect(k, 10);
    learner->Update(k, 100);
  }
  EXPECT_EQ(SearchOf(*learner).optimizer.steps, 3);
  EXPECT_LT(SearchOf(*learner).sigma[0], 0.1F);
  calm = true;
  learner->Collect(4, 10);
  learner->Update(4, 100);
  ASSERT_TRUE(learner->state().stopped);
  EXPECT_EQ(learner->state().first_stop, 4);
  const std::vector<float> first = learner->state().theta;
  EXPECT_EQ(learner->state().first_stopped, first);
  EXPECT_EQ(learner->Submit().round, 4);
  EXPECT_EQ(learner->Submit().origin, LearnerId(3));

  ASSERT_TRUE(learner->Fuse(From(7, 0.25, 0.125), true));
  const LearnerState& state = learner->state();
  EXPECT_EQ(state.theta, std::vector<float>{42});
  EXPECT_EQ(SearchOf(*learner).sigma, std::vector<float>{0.1F});
  EXPECT_EQ(state.zeta, 0.25);
  EXPECT_FALSE(state.stopped);
  EXPECT_EQ(SearchOf(*learner).optimizer.steps, 0);
  EXPECT_THAT(SearchOf(*learner).optimizer.first, IsEmpty());
  EXPECT_EQ(state.adoptions, 1);
  EXPECT_EQ(state.origin, LearnerId(7));
  // It stops again: the first stop stays the first.
  learner->Collect(5, 10);
  learner->Update(5, 100);
  EXPECT_TRUE(learner->state().stopped);
  EXPECT_EQ(learner->state().first_stop, 4);
  EXPECT_EQ(learner->state().first_stopped, first);
}

TEST(Learner, GoesOnCountingRoundsThroughAnAdoption) {
  // z = 1.5 everywhere but at theta = 1, where the learner sits still.
  TestLearnerOptions options = WithBias(0.125);
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
  learner->Collect(1, 10);
  learner->Update(1, 100);
  ASSERT_TRUE(learner->Fuse(From(1, 0.25, 0.125), true));
  learner->Collect(6, 10);
  learner->Update(6, 100);
  EXPECT_EQ(learner->state().theta[0], 42 - 1.5F / 6);
}

// Beyond the paper (Eq. 43).
TEST(Learner, TakesStockInRoundsThatMayGrowApart) {
  const auto rounds = [](int every, double growth) {
    std::vector<int> due;
    for (int k = 1; k <= 200; ++k) {
      if (IsDue(k, every, growth)) due.push_back(k);
    }
    return due;
  };
  EXPECT_EQ(rounds(60, 1), (std::vector{60, 120, 180}));
  EXPECT_EQ(rounds(10, 2), (std::vector{10, 20, 40, 80, 160}));
  // 1.5 times as late, but never sooner than after 20 rounds: 30 is less than 40, 90 is not.
  EXPECT_EQ(rounds(20, 1.5), (std::vector{20, 40, 60, 90, 135}));

  TestLearnerOptions options = WithBias(0.25);
  options.stock_every = 1;
  options.stock_growth = 3;
  options.stock_worlds = 100;
  auto learner = MakeTestLearner(
      0, options, std::make_unique<Scripted>([](const Search&, Key) { return Measurement{}; }), {1},
      Key(1));
  std::vector<int> took;
  for (int k = 1; k <= 10; ++k) {
    if (learner->TakeStock(k)) took.push_back(k);
  }
  EXPECT_EQ(took, (std::vector{1, 3, 9}));
}

// Beyond the paper (Eq. 43): every third round on many worlds, and once after it has stopped.
TEST(Learner, TakesStockWhenItIsTime) {
  TestLearnerOptions options = WithBias(0.25);
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
    if (!learner->state().stopped) learner->Collect(k, 10);
    const bool took = learner->TakeStock(k);
    if (!learner->state().stopped) learner->Update(k, 100);
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

TEST(Learner, MovesSigmaByATenthAtMostAndWithinAFactorOfTen) {  // Eq. 20
  for (const double sign : {1.0, -1.0}) {
    TestLearnerOptions options = WithBias(0.1);
    options.step.schedule = StepOptions::Schedule::kConstant;
    options.step.step = 0.5;
    options.sigma_rate = 2;
    auto small = MakeTestLearner(0, options, Always(0.5, 2, 0.25 * sign), {0}, Key(1));
    small->Collect(1, 10);
    small->Update(1, 10);
    EXPECT_NEAR(SearchOf(*small).sigma[0], 0.1 * std::exp(-0.1 * 0.25 * sign), 1e-8);
    auto learner = MakeTestLearner(0, options, Always(0.5, 2, 1e6 * sign), {0}, Key(1));
    double before = 0.1;
    for (int k = 1; k <= 60; ++k) {
      learner->Collect(k, 10);
      learner->Update(k, 60);
      const double sigma = static_cast<double>(SearchOf(*learner).sigma[0]);
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
    for (int k = 1; k <= 3; ++k) learner->Collect(k, 10);
    const Submission judged = learner->Judge({learner->id(), LearnerId(1), {4}}, 3);
    EXPECT_EQ(judged.learner, LearnerId::Cloud());
    EXPECT_EQ(judged.round, 3);
    EXPECT_EQ(judged.origin, LearnerId(1));
    EXPECT_EQ(judged.theta, std::vector<float>{4});
    EXPECT_EQ(judged.b, 0.1);
    EXPECT_EQ(learner->state().episodes, 20);
  }
  for (std::size_t a = 0; a < keys.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) EXPECT_FALSE(keys[a] == keys[b]) << a << ", " << b;
  }
}

// An improver that takes three steps a round and remembers how many it took: Algorithm 1 does not
// need to know.
class ThreeSteps final : public Improver {
 public:
  Look Measure(int /*k*/, int /*num_rounds*/, std::span<const float> theta, Key /*key*/) override {
    Look look;
    look.y = std::min(1.0, std::fabs(static_cast<double>(theta[0])));
    look.episodes = 3;
    return look;
  }
  Step Improve(int /*k*/, int /*num_rounds*/, Key /*key*/, std::span<float> theta) override {
    for (int step = 0; step < 3 && theta[0] > 0; ++step, ++steps_) theta[0] -= 0.125F;
    return {theta[0] > 0, 7};
  }
  double StepLength(int /*k*/, int /*num_rounds*/) const override { return 0; }
  Value MeasureValue(std::span<const float> theta, std::int64_t worlds, Key key) override {
    return {Measure(1, 1, theta, key).y, 0, worlds, worlds};
  }
  void Restart() override { steps_ = 0; }
  std::string SaveState() const override { return ToBytes(steps_); }
  Result<void> LoadState(std::string_view bytes, std::size_t /*num_parameters*/) override {
    Reader reader(bytes);
    reader(steps_);
    reader.Finish();
    if (!reader.problem().empty()) return Error{ErrorCode::kData, reader.problem()};
    return {};
  }
  int steps() const { return steps_; }

 private:
  int steps_ = 0;
};

TEST(Learner, ImprovesByWhateverItIsGiven) {
  auto improver = std::make_unique<ThreeSteps>();
  const ThreeSteps& steps = *improver;
  Learner learner(LearnerId(4), {}, std::move(improver), {1}, Key(1));
  EXPECT_EQ(learner.Collect(1, 10).y, 1);
  EXPECT_TRUE(learner.Update(1, 10));
  EXPECT_EQ(learner.state().theta[0], 1 - 3 * 0.125F);
  learner.Collect(2, 10);
  EXPECT_TRUE(learner.Update(2, 10));
  EXPECT_EQ(learner.improver().SaveState(), ToBytes(6));
  learner.Collect(3, 10);
  EXPECT_FALSE(learner.Update(3, 10));  // two more steps, and it is there
  EXPECT_TRUE(learner.state().stopped);
  EXPECT_EQ(learner.state().first_stop, 3);
  EXPECT_EQ(steps.steps(), 8);
  EXPECT_EQ(learner.state().episodes, 3 * (3 + 7));
}

TEST(Learner, BeginsWhereTheCloudSays) {
  Learner learner(LearnerId(4), {}, std::make_unique<ThreeSteps>(), {1}, Key(1));
  EXPECT_EQ(learner.Submit().origin, LearnerId(4));
  learner.Begin({LearnerId(2), {}});
  EXPECT_EQ(learner.state().origin, LearnerId(2));
  EXPECT_EQ(learner.state().theta, std::vector<float>{1});
  learner.Begin({LearnerId(0), {0.5F}});
  EXPECT_EQ(learner.state().theta, std::vector<float>{0.5F});
}

}  // namespace
}  // namespace fedgen
