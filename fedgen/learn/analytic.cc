// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/analytic.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fedgen {
namespace {

double At(const std::vector<double>& vector, std::size_t index) {
  return vector.empty() ? 0 : vector[index];
}

double KappaTheta(const AnalyticFunction& f, std::span<const float> theta) {
  double dot = 0;
  for (std::size_t index = 0; index < theta.size(); ++index) {
    dot += At(f.kappa, index) * static_cast<double>(theta[index]);
  }
  return dot;
}

double Phase(double u, double kappa_theta) { return 2 * std::numbers::pi * u + kappa_theta; }

// depth exp(-|theta - centre|^2 / (2 width^2))
double Hole(const Well& well, std::span<const float> theta) {
  double squares = 0;
  for (std::size_t index = 0; index < theta.size(); ++index) {
    const double off = static_cast<double>(theta[index]) - At(well.centre, index);
    squares += off * off;
  }
  return well.depth * std::exp(-squares / (2 * well.width * well.width));
}

// J of the worlds of a sample, which share eta and kappa . theta.
Value ValueOf(const AnalyticFunction& f, std::span<const float> theta, std::int64_t worlds,
              Key key) {
  const double eta = f.Eta(theta);
  const double kappa_theta = KappaTheta(f, theta);
  double sum = 0;
  double squares = 0;
  for (std::int64_t world = 0; world < worlds; ++world) {
    const double phase = Phase(PhaseOf(key, static_cast<int>(world)), kappa_theta);
    const double cost = eta + f.amplitude * std::sin(phase);
    sum += cost;
    squares += cost * cost;
  }
  const auto n = static_cast<double>(worlds);
  Value value;
  value.y = sum / n;
  value.variance = worlds > 1 ? std::max(0.0, squares - n * value.y * value.y) / (n - 1) : 0;
  value.worlds = worlds;
  value.episodes = worlds;
  return value;
}

class AnalyticCosts final : public CostSource {
 public:
  AnalyticCosts(AnalyticFunction function, int num_worlds)
      : function_(std::move(function)), num_worlds_(num_worlds) {}

  Costs Measure(std::span<const float> mu, std::int64_t num_members, const MakeMember& make_member,
                Key key) override {
    Costs costs;
    costs.y = ValueOf(function_, mu, num_worlds_, key).y;
    costs.episodes = (num_members + 1) * num_worlds_;
    std::vector<float> parameters(mu.begin(), mu.end());
    for (std::int64_t member = 0; member < num_members; ++member) {
      std::ranges::copy(mu, parameters.begin());
      make_member(member, parameters);
      costs.members.push_back(ValueOf(function_, parameters, num_worlds_, key).y);
    }
    return costs;
  }

  Value MeasureValue(std::span<const float> mu, std::int64_t worlds, Key key) override {
    return ValueOf(function_, mu, worlds, key);
  }

 private:
  AnalyticFunction function_;
  int num_worlds_;
};

class AnalyticObjective final : public Objective {
 public:
  AnalyticObjective(AnalyticFunction function, int num_worlds)
      : function_(std::move(function)), num_worlds_(num_worlds) {}

  Measurement Measure(const Search& search, Key key) override {
    const double n = num_worlds_;
    Measurement m;
    m.z_mu = function_.Gradient(search.mu);
    m.z_sigma.assign(search.mu.size(), 0.0);
    m.pairs = num_worlds_;
    m.episodes = num_worlds_;
    m.y = ValueOf(function_, search.mu, num_worlds_, key).y;
    // Worlds' gradients differ in one number only: the cosine of their phase.
    const double kappa_theta = KappaTheta(function_, search.mu);
    double cosines = 0, squares = 0;
    for (int world = 0; world < num_worlds_; ++world) {
      const double cosine = std::cos(Phase(PhaseOf(key, world), kappa_theta));
      cosines += cosine;
      squares += cosine * cosine;
    }
    for (std::size_t index = 0; index < m.z_mu.size(); ++index) {
      m.z_mu[index] += function_.amplitude * At(function_.kappa, index) * cosines / n;
    }
    const double scatter = std::max(0.0, squares - cosines * cosines / n);
    m.spread = num_worlds_ < 2 ? 0
                               : function_.amplitude * Norm(function_.kappa) *
                                     std::sqrt(scatter / (n * (n - 1)));
    return m;
  }

  Value MeasureValue(std::span<const float> mu, std::int64_t worlds, Key key) override {
    return ValueOf(function_, mu, worlds, key);
  }

 private:
  AnalyticFunction function_;
  int num_worlds_;
};

}  // namespace

double AnalyticFunction::Eta(std::span<const float> theta) const {
  double eta = level;
  for (std::size_t index = 0; index < theta.size(); ++index) {
    const double value = static_cast<double>(theta[index]);
    const double off = value - At(centre, index);
    eta += At(slope, index) * value + curvature / 2 * off * off;
  }
  for (const Well& well : wells) eta -= Hole(well, theta);
  return eta;
}

std::vector<double> AnalyticFunction::Gradient(std::span<const float> theta) const {
  std::vector<double> gradient(theta.size());
  for (std::size_t index = 0; index < theta.size(); ++index) {
    gradient[index] =
        At(slope, index) + curvature * (static_cast<double>(theta[index]) - At(centre, index));
  }
  for (const Well& well : wells) {
    const double pull = Hole(well, theta) / (well.width * well.width);
    for (std::size_t index = 0; index < theta.size(); ++index) {
      gradient[index] += pull * (static_cast<double>(theta[index]) - At(well.centre, index));
    }
  }
  return gradient;
}

double AnalyticFunction::Cost(std::span<const float> theta, double u) const {
  return Eta(theta) + amplitude * std::sin(Phase(u, KappaTheta(*this, theta)));
}

double AnalyticFunction::Lambda0() const {
  double sum = 0;
  for (const Well& well : wells) sum += well.depth / (well.width * std::sqrt(std::numbers::e));
  return sum;
}

double AnalyticFunction::Lambda1() const {
  double sum = curvature;
  for (const Well& well : wells) sum += well.depth / (well.width * well.width);
  return sum;
}

double AnalyticFunction::GradientNoise(int num_worlds) const {
  return amplitude * Norm(kappa) / std::sqrt(2.0 * num_worlds);
}

double PhaseOf(Key key, int world) {
  return static_cast<double>(UnitFloat(key.Block(static_cast<std::uint64_t>(world))[0]));
}

std::shared_ptr<CostSource> MakeAnalyticCosts(AnalyticFunction function, int num_worlds) {
  return std::make_shared<AnalyticCosts>(std::move(function), num_worlds);
}

std::unique_ptr<Objective> MakeAnalyticObjective(AnalyticFunction function, int num_worlds) {
  return std::make_unique<AnalyticObjective>(std::move(function), num_worlds);
}

}  // namespace fedgen
