// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/estimator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fedgen/base/aligned.h"
#include "fedgen/base/check.h"
#include "fedgen/base/parallel.h"
#include "fedgen/learn/normal_kernel.h"

namespace fedgen {
namespace {

// Where a round's random numbers live under its key.
enum : std::uint64_t { kWorlds = 0, kDirections = 1 };

using Directions = std::vector<AlignedVector<float>>;  // [pairs][padded parameters]

// What a pair tells: half the difference of its two costs.
double HalfDifference(const std::vector<double>& costs, std::size_t pair) {
  return (costs[2 * pair] - costs[2 * pair + 1]) / 2;
}

class Estimator : public Objective {
 public:
  Estimator(const EstimatorOptions& options, std::shared_ptr<CostSource> costs, Kernel kernel,
            int num_threads)
      : options_(options), costs_(std::move(costs)), kernel_(kernel), num_threads_(num_threads) {}

  Value MeasureValue(std::span<const float> mu, std::int64_t worlds, Key key) override {
    return costs_->MeasureValue(mu, worlds, key.Fork(kWorlds));
  }

 protected:
  std::size_t num_pairs() const { return static_cast<std::size_t>(options_.pairs); }

  void DrawDirections(std::size_t num_parameters, Key key) {
    directions_.resize(num_pairs());
    ParallelFor(options_.pairs, num_threads_, [&](std::int64_t pair, int /*worker*/) {
      auto& direction = directions_[static_cast<std::size_t>(pair)];
      direction.resize(PaddedNormals(num_parameters));
      DrawNormals(kernel_, key.Fork(kDirections).Fork(static_cast<std::uint64_t>(pair)), direction);
    });
  }

  // Costs of mu + scale . direction (member 2p) and mu - scale . direction (member 2p + 1).
  CostSource::Costs MeasurePairs(const Search& search, std::span<const float> scale, Key key) {
    CostSource::Costs costs = costs_->Measure(
        search.mu, 2 * options_.pairs,
        [&](std::int64_t member, std::span<float> parameters) {
          const auto& direction = directions_[static_cast<std::size_t>(member / 2)];
          const float sign = member % 2 == 0 ? 1.0F : -1.0F;
          for (std::size_t index = 0; index < parameters.size(); ++index) {
            parameters[index] = search.mu[index] + sign * (scale[index] * direction[index]);
          }
        },
        key.Fork(kWorlds));
    if (options_.shaping == EstimatorOptions::Shaping::kCentredRanks) CentreRanks(costs.members);
    return costs;
  }

  // All but the gradient and its spread, which begin at zero.
  Measurement BeginMeasurement(const CostSource::Costs& costs, std::size_t num_parameters) const {
    Measurement m;
    m.y = costs.y;
    m.episodes = costs.episodes;
    m.steps = costs.steps;
    m.pairs = options_.pairs;
    m.z_mu.assign(num_parameters, 0.0);
    m.z_sigma.assign(num_parameters, 0.0);
    return m;
  }

  // The variance of z, the mean of the pairs' gradients g_p, were they independent (Eq. 22).
  // `squares` is the sum of |g_p|^2.
  double Variance(std::span<const double> z, double squares) const {
    const auto pairs = static_cast<double>(num_pairs());
    const double norm = Norm(z);
    return std::max(0.0, squares - pairs * norm * norm) / (pairs * (pairs - 1));
  }

  EstimatorOptions options_;
  std::shared_ptr<CostSource> costs_;
  Kernel kernel_;
  int num_threads_;
  Directions directions_;
};

class EvolutionStrategies final : public Estimator {
 public:
  using Estimator::Estimator;

  Measurement Measure(const Search& search, Key key) override {
    const std::size_t n = search.mu.size();
    const auto pairs = static_cast<double>(num_pairs());
    DrawDirections(n, key);
    const CostSource::Costs costs = MeasurePairs(search, search.sigma, key);

    Measurement m = BeginMeasurement(costs, n);
    std::vector<double> inverse_sigma(n);  // 0 where frozen
    for (std::size_t index = 0; index < n; ++index) {
      const double sigma = static_cast<double>(search.sigma[index]);
      inverse_sigma[index] = sigma > 0 ? 1 / sigma : 0;
    }
    double total = 0;
    for (const double cost : costs.members) total += cost;
    double squares = 0;  // sum over pairs of |g_p|^2
    for (std::size_t pair = 0; pair < num_pairs(); ++pair) {
      const auto& e = directions_[pair];
      const double half_difference = HalfDifference(costs.members, pair);
      const double sum = costs.members[2 * pair] + costs.members[2 * pair + 1];
      // Against the mean of the other pairs, so that the baseline does not know this one.
      const double advantage = sum / 2 - (total - sum) / (2 * (pairs - 1));
      double pair_squares = 0;
      for (std::size_t index = 0; index < n; ++index) {
        const double direction = static_cast<double>(e[index]);
        const double scaled = direction * inverse_sigma[index];
        m.z_mu[index] += half_difference * scaled;
        m.z_sigma[index] += advantage * (direction * direction - 1) * inverse_sigma[index];
        pair_squares += scaled * scaled;
      }
      squares += half_difference * half_difference * pair_squares;
    }
    for (double& value : m.z_mu) value /= pairs;
    for (double& value : m.z_sigma) value /= pairs;
    m.spread = std::sqrt(Variance(m.z_mu, squares));
    return m;
  }
};

class FiniteDifferences final : public Estimator {
 public:
  using Estimator::Estimator;

  Measurement Measure(const Search& search, Key key) override {
    // Work in the coordinates theta / sigma of the parameters that are not frozen: h is then one
    // number, as long as a normal step (Eq. 24).
    const std::size_t n = search.mu.size();
    const auto num_free = static_cast<std::size_t>(
        std::ranges::count_if(search.sigma, [](float sigma) { return sigma > 0; }));
    const auto free_count = static_cast<double>(num_free);
    DrawDirections(n, key);
    Orthonormalize(search, num_free);
    const double h = std::sqrt(free_count);
    std::vector<float> scale(n);
    for (std::size_t index = 0; index < n; ++index) {
      scale[index] = static_cast<float>(h) * search.sigma[index];
    }
    const CostSource::Costs costs = MeasurePairs(search, scale, key);

    Measurement m = BeginMeasurement(costs, n);
    const auto pairs = static_cast<double>(num_pairs());
    double squares = 0;
    for (std::size_t pair = 0; pair < num_pairs(); ++pair) {
      const double slope = HalfDifference(costs.members, pair) / h * free_count;
      double pair_squares = 0;
      for (std::size_t index = 0; index < n; ++index) {
        if (search.sigma[index] == 0) continue;
        const double g = slope * static_cast<double>(directions_[pair][index]) /
                         static_cast<double>(search.sigma[index]);
        m.z_mu[index] += g / pairs;
        pair_squares += g * g;
      }
      squares += pair_squares;
    }
    // Whole sets of directions that exclude each other do not scatter at all on a linear cost; what
    // is left of the last set does, by v |grad|^2. The formula for independent ones (Eq. 22) gives
    // (D - 1 - v) / (P - 1) |grad|^2 in mean.
    if (free_count > 0) {
      const double begun = std::fmod(pairs, free_count) / free_count;
      const double v = std::pow(free_count / pairs, 2) * begun * (1 - begun);
      const double left = v > 0 ? v * (pairs - 1) / (free_count - 1 - v) : 0;
      m.spread = std::sqrt(Variance(m.z_mu, squares) * left);
    }
    return m;
  }

 private:
  // Gram and Schmidt, twice for accuracy. More directions than parameters begin a new set.
  void Orthonormalize(const Search& search, std::size_t num_free) {
    const std::size_t n = search.mu.size();
    for (std::size_t pair = 0; pair < num_pairs(); ++pair) {
      auto& u = directions_[pair];
      for (std::size_t index = 0; index < n; ++index) {
        if (search.sigma[index] == 0) u[index] = 0;
      }
      const std::size_t first = pair - pair % std::max<std::size_t>(num_free, 1);
      for (int pass = 0; pass < 2; ++pass) {
        for (std::size_t other = first; other < pair; ++other) {
          const double along = Dot(u, directions_[other], n);
          for (std::size_t index = 0; index < n; ++index) {
            u[index] -= static_cast<float>(along * static_cast<double>(directions_[other][index]));
          }
        }
      }
      const double length = std::sqrt(Dot(u, u, n));
      if (length == 0) continue;
      for (std::size_t index = 0; index < n; ++index) {
        u[index] = static_cast<float>(static_cast<double>(u[index]) / length);
      }
    }
  }

  static double Dot(const AlignedVector<float>& a, const AlignedVector<float>& b, std::size_t n) {
    double sum = 0;
    for (std::size_t index = 0; index < n; ++index) {
      sum += static_cast<double>(a[index]) * static_cast<double>(b[index]);
    }
    return sum;
  }
};

// For who does not learn from costs.
class ValuesOnly final : public Estimator {
 public:
  using Estimator::Estimator;

  Measurement Measure(const Search& /*search*/, Key /*key*/) override {
    FEDGEN_CHECK(false, "estimator = {}: makes no gradient from costs", NameOf(options_.kind));
  }
};

}  // namespace

void Describe(OptionVisitor& visitor, EstimatorOptions& options) {
  auto& [kind, pairs, shaping] = options;
  visitor.Choice({"estimator", "",
                  "How the way down is felt for: by random changes of all parameters "
                  "at once (Eq. 19), by finite differences (Eq. 24), or by noise on the control in "
                  "every single "
                  "step and a critic ([learner.policy_gradient], Eq. 46 to 51)."},
                 kind);
  visitor.Integer(
      {"pairs", "", "How many directions are tried in a round, each forwards and backwards."},
      pairs, {2, 100000});
  visitor.Choice({"shaping", "",
                  "Whether costs count as they are or by their rank (Eq. 21), which "
                  "outliers do not disturb."},
                 shaping);
}

std::unique_ptr<Objective> MakeEstimator(const EstimatorOptions& options,
                                         std::shared_ptr<CostSource> costs, Kernel kernel,
                                         int num_threads) {
  switch (options.kind) {
    case EstimatorOptions::Kind::kEvolution:
      return std::make_unique<EvolutionStrategies>(options, std::move(costs), kernel, num_threads);
    case EstimatorOptions::Kind::kFiniteDifferences:
      return std::make_unique<FiniteDifferences>(options, std::move(costs), kernel, num_threads);
    case EstimatorOptions::Kind::kPolicyGradient:
      return std::make_unique<ValuesOnly>(options, std::move(costs), kernel, num_threads);
  }
  return nullptr;
}

void CentreRanks(std::vector<double>& costs) {
  if (costs.size() < 2) {
    std::fill(costs.begin(), costs.end(), 0.0);
    return;
  }
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return costs[a] < costs[b]; });
  std::vector<double> ranks(costs.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    while (last + 1 < order.size() && costs[order[last + 1]] == costs[order[first]]) ++last;
    for (std::size_t at = first; at <= last; ++at) {
      ranks[order[at]] =
          static_cast<double>(first + last) / 2 / static_cast<double>(order.size() - 1) - 0.5;
    }
    first = last + 1;
  }
  costs = std::move(ranks);
}

}  // namespace fedgen
