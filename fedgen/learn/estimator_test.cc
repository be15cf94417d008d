// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/estimator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>
#include <tuple>

#include "fedgen/learn/analytic_testing.h"

namespace fedgen {
namespace {

using ::testing::ElementsAre;
using Kind = EstimatorOptions::Kind;
using Shaping = EstimatorOptions::Shaping;

// A cost that is the same in every world, on doubles of the parameters.
class PlainCosts final : public CostSource {
 public:
  using Function = std::function<double(std::span<const float>)>;
  explicit PlainCosts(Function function) : function_(std::move(function)) {}

  Costs Measure(std::span<const float> mu, std::int64_t num_members, const MakeMember& make_member,
                Key key) override {
    keys.push_back(key);
    Costs costs;
    costs.y = function_(mu);
    costs.episodes = num_members + 1;
    std::vector<float> parameters(mu.begin(), mu.end());
    for (std::int64_t member = 0; member < num_members; ++member) {
      make_member(member, parameters);
      costs.members.push_back(function_(parameters));
      members.push_back(parameters);
    }
    return costs;
  }

  Value MeasureValue(std::span<const float> mu, std::int64_t worlds, Key key) override {
    Value value;
    value.y = Measure(mu, 0, {}, key).y;
    value.worlds = worlds;
    return value;
  }

  std::vector<Key> keys;
  std::vector<std::vector<float>> members;

 private:
  Function function_;
};

double Dot(std::span<const double> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t index = 0; index < a.size(); ++index) {
    sum += a[index] * static_cast<double>(b[index]);
  }
  return sum;
}

EstimatorOptions Options(Kind kind, int pairs, Shaping shaping = Shaping::kRaw) {
  EstimatorOptions options;
  options.kind = kind;
  options.pairs = pairs;
  options.shaping = shaping;
  return options;
}

std::unique_ptr<Objective> Make(const EstimatorOptions& options,
                                std::shared_ptr<CostSource> costs) {
  return MakeEstimator(options, std::move(costs), BestKernel(), 1);
}

const std::vector<double> kSlope = {1, -2, 0.5, 0, 3, -0.25};

std::shared_ptr<PlainCosts> Linear() {
  return std::make_shared<PlainCosts>([](std::span<const float> p) { return 1 + Dot(kSlope, p); });
}

struct Moments {
  std::vector<double> mean;
  double variance = 0;      // E|z - E z|^2, of all entries
  double mean_spread2 = 0;  // of the reported spread
};

Moments MomentsOf(Objective& objective, const Search& search, int trials) {
  std::vector<std::vector<double>> zs;
  Moments moments;
  moments.mean.resize(search.mu.size());
  for (std::uint64_t trial = 0; trial < static_cast<std::uint64_t>(trials); ++trial) {
    const Measurement m = objective.Measure(search, Key(5).Fork(trial));
    for (std::size_t index = 0; index < search.mu.size(); ++index) {
      moments.mean[index] += m.z_mu[index] / trials;
    }
    moments.mean_spread2 += m.spread * m.spread / trials;
    zs.push_back(m.z_mu);
  }
  for (const auto& z : zs) {
    for (std::size_t index = 0; index < z.size(); ++index) {
      moments.variance += std::pow(z[index] - moments.mean[index], 2) / (trials - 1);
    }
  }
  return moments;
}

TEST(MakeEstimator, MeasuresOnlyValuesForAPolicyGradient) {
  const auto values =
      MakeEstimator({.kind = Kind::kPolicyGradient},
                    std::make_shared<PlainCosts>([](std::span<const float>) { return 0.25; }),
                    Kernel::kScalar, 1);
  EXPECT_EQ(values->MeasureValue(std::vector<float>{1}, 3, Key(1)).y, 0.25);
  EXPECT_DEATH(values->Measure({{1}, {1}}, Key(1)), "estimator = policy-gradient");
}

TEST(Evolution, IsUnbiasedOnALinearCostWithTheKnownVariance) {  // Eq. 19, below Eq. 24
  const auto objective = Make(Options(Kind::kEvolution, 5), Linear());
  const Search search{{0, 0, 0, 0, 0, 0}, {0.1F, 0.2F, 0.1F, 0.3F, 0.1F, 0.1F}};
  const Search even{search.mu, std::vector<float>(6, 0.1F)};
  constexpr int kTrials = 20000;
  const Moments own = MomentsOf(*objective, search, kTrials);
  for (std::size_t index = 0; index < 6; ++index) {
    EXPECT_NEAR(own.mean[index], kSlope[index], 5 * std::sqrt(own.variance / kTrials)) << index;
  }
  const Moments m = MomentsOf(*objective, even, kTrials);
  const double norm = Norm(kSlope);
  EXPECT_NEAR(m.variance / (7.0 / 5 * norm * norm), 1, 0.03);  // (D + 1) / P |grad|^2
  EXPECT_NEAR(m.mean_spread2 / m.variance, 1, 0.03);           // Eq. 22 estimates it
}

TEST(Evolution, CancelsQuadraticTermsExactly) {
  // Around mu = 0 the members are exact opposites, and an even cost gives equal bits.
  const auto even = std::make_shared<PlainCosts>([](std::span<const float> p) {
    double sum = 0.3;
    for (const float value : p) sum += static_cast<double>(value) * static_cast<double>(value);
    return sum;
  });
  const auto objective = Make(Options(Kind::kEvolution, 30), even);
  const Search search{std::vector<float>(6), std::vector<float>(6, 0.1F)};
  const Measurement m = objective->Measure(search, Key(1));
  for (const double z : m.z_mu) EXPECT_EQ(z, 0.0);
  EXPECT_EQ(m.spread, 0.0);
  EXPECT_EQ(m.y, 0.3);
  EXPECT_EQ(m.pairs, 30);
  EXPECT_EQ(m.episodes, 61);
}

TEST(Evolution, SeesTheSlopeOfSigmaOnAQuadratic) {  // Eq. 20
  // E c(mu + sigma e) = sum curvature_i (mu_i^2 + sigma_i^2) / 2: its derivative for sigma_i is
  // curvature_i sigma_i, whatever mu.
  const std::vector<double> curvature = {4, 1, -2, 0};
  const auto costs = std::make_shared<PlainCosts>([&](std::span<const float> p) {
    double sum = 0;
    for (std::size_t index = 0; index < p.size(); ++index) {
      sum += curvature[index] / 2 * std::pow(static_cast<double>(p[index]), 2);
    }
    return sum;
  });
  const auto objective = Make(Options(Kind::kEvolution, 20), costs);
  const Search search{{1, -1, 0.5F, 2}, {0.5F, 1, 0.25F, 0.5F}};
  constexpr int kTrials = 20000;
  std::vector<double> mean(4), squares(4);
  for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
    const Measurement m = objective->Measure(search, Key(2).Fork(trial));
    for (std::size_t index = 0; index < 4; ++index) {
      mean[index] += m.z_sigma[index] / kTrials;
      squares[index] += m.z_sigma[index] * m.z_sigma[index] / kTrials;
    }
  }
  for (std::size_t index = 0; index < 4; ++index) {
    const double expected = curvature[index] * static_cast<double>(search.sigma[index]);
    const double error = std::sqrt((squares[index] - mean[index] * mean[index]) / kTrials);
    EXPECT_NEAR(mean[index], expected, 5 * error) << index;
    EXPECT_LT(error, 0.05) << index;
  }
  // A constant tells nothing, exactly: the baseline takes it away.
  const auto flat = Make(Options(Kind::kEvolution, 20),
                         std::make_shared<PlainCosts>([](std::span<const float>) { return 0.5; }));
  for (const double z : flat->Measure(search, Key(2)).z_sigma) EXPECT_EQ(z, 0.0);
}

// Eq. 19 to 22 once more, from the members that were really asked for.
TEST(Evolution, FollowsItsFormulas) {
  for (const Shaping shaping : {Shaping::kRaw, Shaping::kCentredRanks}) {
    const auto costs = std::make_shared<PlainCosts>([](std::span<const float> p) {
      return std::sin(3 * static_cast<double>(p[0])) + static_cast<double>(p[1]);
    });
    constexpr int kPairs = 7;
    const auto objective = Make(Options(Kind::kEvolution, kPairs, shaping), costs);
    const Search search{{0.25F, 0.5F}, {0.5F, 0.125F}};
    const Measurement m = objective->Measure(search, Key(3));
    std::vector<double> c;
    for (const auto& p : costs->members) {
      c.push_back(std::sin(3 * static_cast<double>(p[0])) + static_cast<double>(p[1]));
    }
    ASSERT_EQ(c.size(), 2U * kPairs);
    if (shaping == Shaping::kCentredRanks) CentreRanks(c);
    std::vector<std::vector<double>> g;
    std::vector<double> z(2), z_sigma(2);
    for (std::size_t p = 0; p < kPairs; ++p) {
      std::vector<double> e(2);
      for (std::size_t index = 0; index < 2; ++index) {
        const double sigma = static_cast<double>(search.sigma[index]);
        e[index] = (static_cast<double>(costs->members[2 * p][index]) -
                    static_cast<double>(costs->members[2 * p + 1][index])) /
                   (2 * sigma);
        z[index] += (c[2 * p] - c[2 * p + 1]) / 2 * e[index] / sigma / kPairs;
        double others = 0;
        for (std::size_t q = 0; q < kPairs; ++q) {
          if (q != p) others += (c[2 * q] + c[2 * q + 1]) / 2 / (kPairs - 1);
        }
        z_sigma[index] +=
            ((c[2 * p] + c[2 * p + 1]) / 2 - others) * (e[index] * e[index] - 1) / sigma / kPairs;
      }
      g.push_back({(c[2 * p] - c[2 * p + 1]) / 2 * e[0] / 0.5,
                   (c[2 * p] - c[2 * p + 1]) / 2 * e[1] / 0.125});
    }
    double squares = 0;
    for (const auto& gp : g) squares += std::pow(gp[0] - z[0], 2) + std::pow(gp[1] - z[1], 2);
    for (std::size_t index = 0; index < 2; ++index) {
      EXPECT_NEAR(m.z_mu[index], z[index], 1e-5);
      EXPECT_NEAR(m.z_sigma[index], z_sigma[index], 1e-5);
    }
    EXPECT_NEAR(m.spread, std::sqrt(squares / (kPairs * (kPairs - 1))), 1e-5);
  }
}

TEST(Estimators, LeaveFrozenParametersAlone) {
  for (const Kind kind : {Kind::kEvolution, Kind::kFiniteDifferences}) {
    const auto costs = Linear();
    const auto objective = Make(Options(kind, 8), costs);
    const Search search{{0.1F, 7.3F, 0, -2.7F, 0, 0}, {0.1F, 0, 0.1F, 0, 0.2F, 0.1F}};
    const Measurement m = objective->Measure(search, Key(4));
    EXPECT_EQ(m.z_mu[1], 0.0);
    EXPECT_EQ(m.z_mu[3], 0.0);
    EXPECT_EQ(m.z_sigma[1], 0.0);
    EXPECT_NE(m.z_mu[4], 0.0);
    for (const auto& member : costs->members) {
      EXPECT_EQ(member[1], 7.3F);
      EXPECT_EQ(member[3], -2.7F);
    }
    EXPECT_TRUE(std::isfinite(m.spread));
  }
}

TEST(Estimators, SurviveASearchThatIsAllFrozen) {
  for (const Kind kind : {Kind::kEvolution, Kind::kFiniteDifferences}) {
    const auto objective = Make(Options(kind, 3), Linear());
    const Measurement m =
        objective->Measure({std::vector<float>(6, 1), std::vector<float>(6)}, Key(4));
    for (const double z : m.z_mu) EXPECT_EQ(z, 0.0);
    EXPECT_EQ(m.spread, 0.0);
  }
}

TEST(FiniteDifferences, GiveTheWholeGradientWithAsManyPairsAsParameters) {  // Eq. 24
  const Search search{{0.1F, 0.2F, 0, 0.5F, -1, 0}, {0.1F, 0.2F, 0.1F, 0.3F, 0.1F, 0.1F}};
  for (std::uint64_t trial = 0; trial < 20; ++trial) {
    const auto linear = Make(Options(Kind::kFiniteDifferences, 6), Linear());
    const Measurement m = linear->Measure(search, Key(trial));
    for (std::size_t index = 0; index < 6; ++index) {
      EXPECT_NEAR(m.z_mu[index], kSlope[index], 2e-5);
      EXPECT_EQ(m.z_sigma[index], 0.0);
    }
    EXPECT_EQ(m.spread, 0.0);
    EXPECT_EQ(m.pairs, 6);
  }
  // The numeric gradient of a curved function, with steps too short to see its third derivative.
  const AnalyticFunction f = ThreeWells();
  AnalyticFunction quiet = f;
  quiet.amplitude = 0;
  const auto wells = Make(Options(Kind::kFiniteDifferences, 2), MakeAnalyticCosts(quiet, 1));
  const Search there{{1.25F, 0.5F}, {0x1p-8F, 0x1p-8F}};
  const Measurement m = wells->Measure(there, Key(1));
  const std::vector<double> gradient = f.Gradient(there.mu);
  for (std::size_t index = 0; index < 2; ++index) {
    EXPECT_NEAR(m.z_mu[index], gradient[index], 1e-4);
  }
}

TEST(FiniteDifferences, AreUnbiasedWithFewerPairs) {
  const auto objective = Make(Options(Kind::kFiniteDifferences, 2), Linear());
  const Search search{std::vector<float>(6), std::vector<float>(6, 0.1F)};
  constexpr int kTrials = 20000;
  const Moments m = MomentsOf(*objective, search, kTrials);
  const double norm = Norm(kSlope);
  for (std::size_t index = 0; index < 6; ++index) {
    EXPECT_NEAR(m.mean[index], kSlope[index], 5 * std::sqrt(m.variance / kTrials)) << index;
  }
  EXPECT_NEAR(m.variance / ((6.0 / 2 - 1) * norm * norm), 1, 0.03);
  EXPECT_NEAR(m.mean_spread2 / m.variance, 1, 0.03);
}

TEST(FiniteDifferences, BeginANewSetOfDirectionsWithMorePairs) {
  const Search search{std::vector<float>(6), std::vector<float>(6, 0.1F)};
  const auto twice = Make(Options(Kind::kFiniteDifferences, 12), Linear());
  const Measurement m = twice->Measure(search, Key(8));
  for (std::size_t index = 0; index < 6; ++index) EXPECT_NEAR(m.z_mu[index], kSlope[index], 2e-5);
  // Half a set on top of a whole one scatters, and the spread says so.
  const auto more = Make(Options(Kind::kFiniteDifferences, 9), Linear());
  const Moments moments = MomentsOf(*more, search, 20000);
  const double norm = Norm(kSlope);
  EXPECT_NEAR(moments.variance / (norm * norm), std::pow(6.0 / 9, 2) * 0.5 * 0.5, 0.01);
  EXPECT_NEAR(moments.mean_spread2 / moments.variance, 1, 0.05);
}

TEST(FiniteDifferences, TakeOrthonormalStepsAsLongAsNormalOnes) {
  const auto costs = Linear();
  const auto objective = Make(Options(Kind::kFiniteDifferences, 6), costs);
  static_cast<void>(
      objective->Measure({std::vector<float>(6), std::vector<float>(6, 0.1F)}, Key(3)));
  for (std::size_t a = 0; a < 12; a += 2) {
    for (std::size_t b = 0; b < 12; b += 2) {
      double dot = 0;
      for (std::size_t index = 0; index < 6; ++index) {
        dot += static_cast<double>(costs->members[a][index] * costs->members[b][index]);
      }
      EXPECT_NEAR(dot, a == b ? 0.06 : 0.0, 1e-6);  // h^2 = sigma^2 D
    }
  }
}

TEST(Estimators, DrawWorldsAndDirectionsFromTheKeyAlone) {
  std::set<std::uint64_t> names;
  const auto costs = Linear();
  const auto objective = Make(Options(Kind::kEvolution, 3), costs);
  const Search search{std::vector<float>(6), std::vector<float>(6, 0.1F)};
  static_cast<void>(objective->Measure(search, Key(1)));
  static_cast<void>(objective->MeasureValue(search.mu, 10, Key(1)));
  static_cast<void>(objective->Measure(search, Key(2)));
  EXPECT_EQ(costs->keys[0], costs->keys[1]);  // the same worlds for the same key
  EXPECT_FALSE(costs->keys[0] == costs->keys[2]);
  EXPECT_NE(costs->members[0], costs->members[6]);
}

TEST(Estimators, GiveTheSameBitsForAnyThreadsAndKernel) {
  const AnalyticFunction f = ThreeWells();
  for (const auto& options :
       {Options(Kind::kEvolution, 33), Options(Kind::kEvolution, 33, Shaping::kCentredRanks),
        Options(Kind::kFiniteDifferences, 33)}) {
    const Search search{{0.5F, 1}, {0.3F, 0.1F}};
    const auto measure = [&](Kernel kernel, int threads) {
      return MakeEstimator(options, MakeAnalyticCosts(f, 5), kernel, threads)
          ->Measure(search, Key(6));
    };
    const Measurement alone = measure(Kernel::kScalar, 1);
    for (const int threads : {1, 2, 3, 8}) {
      for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
        const Measurement m = measure(kernel, threads);
        EXPECT_EQ(m.z_mu, alone.z_mu);
        EXPECT_EQ(m.z_sigma, alone.z_sigma);
        EXPECT_EQ(m.y, alone.y);
        EXPECT_EQ(m.spread, alone.spread);
      }
    }
  }
}

TEST(CentreRanks, SpreadsEvenlyAndSharesTies) {  // Eq. 21
  std::vector<double> costs = {3, 1, 2, 10, -5};
  CentreRanks(costs);
  EXPECT_THAT(costs, ElementsAre(0.25, -0.25, 0, 0.5, -0.5));
  costs = {1, 1, 0, 2, 2, 2};
  CentreRanks(costs);  // ranks 1.5, 1.5, 0, 4, 4, 4 of 5
  EXPECT_THAT(costs,
              ElementsAre(-0.2, -0.2, -0.5, ::testing::DoubleNear(0.3, 1e-15),
                          ::testing::DoubleNear(0.3, 1e-15), ::testing::DoubleNear(0.3, 1e-15)));
  costs = {7, 7, 7};
  CentreRanks(costs);
  EXPECT_THAT(costs, ElementsAre(0, 0, 0));
  costs = {7};
  CentreRanks(costs);
  EXPECT_THAT(costs, ElementsAre(0));
  costs = {};
  CentreRanks(costs);
  EXPECT_TRUE(costs.empty());
}

TEST(CentreRanks, IsTheSameAfterAnyIncreasingFunction) {
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    std::vector<double> costs, changed;
    for (std::uint64_t at = 0; at < 40; ++at) {
      costs.push_back(UniformInt(Key(trial).Block(at)[0], -10, 10) / 4.0);
      changed.push_back(std::exp(costs.back()) + 1000);
    }
    CentreRanks(costs);
    CentreRanks(changed);
    ASSERT_EQ(costs, changed);
    double sum = 0;
    for (const double rank : costs) sum += rank;
    EXPECT_NEAR(sum, 0, 1e-12);
  }
}

TEST(EstimatorOptions, AreValidated) {
  EXPECT_FALSE(Validate(Options(Kind::kEvolution, 2)));
  EXPECT_FALSE(Validate(Options(Kind::kEvolution, 100000)));
  for (const int pairs : {-1, 0, 1, 100001}) {
    EXPECT_EQ(Validate(Options(Kind::kEvolution, pairs))->field, "pairs");
  }
}

}  // namespace
}  // namespace fedgen
