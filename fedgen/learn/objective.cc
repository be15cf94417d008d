// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/objective.h"

#include <cmath>

#include "fedgen/base/check.h"

namespace fedgen {
namespace {

class PooledObjective final : public Objective {
 public:
  explicit PooledObjective(std::vector<PooledPart> parts) : parts_(std::move(parts)) {
    FEDGEN_CHECK(!parts_.empty(), "an objective needs a part");
    for (const PooledPart& part : parts_) num_worlds_ += part.worlds;
  }

  Measurement Measure(const Search& search, Key key) override {
    Measurement pooled;
    pooled.y = 0;
    pooled.z_mu.assign(search.mu.size(), 0.0);
    pooled.z_sigma.assign(search.mu.size(), 0.0);
    double variance = 0;
    for (std::size_t index = 0; index < parts_.size(); ++index) {
      const Measurement m = parts_[index].objective->Measure(search, key.Fork(index));
      const double share = ShareOf(index);
      pooled.y += share * m.y;
      for (std::size_t at = 0; at < search.mu.size(); ++at) {
        pooled.z_mu[at] += share * m.z_mu[at];
        pooled.z_sigma[at] += share * m.z_sigma[at];
      }
      variance += share * share * m.spread * m.spread;  // parts are independent
      pooled.pairs += m.pairs;
      pooled.episodes += m.episodes;
      pooled.steps += m.steps;
    }
    pooled.spread = std::sqrt(variance);
    return pooled;
  }

  Value MeasureValue(std::span<const float> mu, std::int64_t worlds, Key key) override {
    // Each part gets its share of the worlds, up to one; the sum of squares about the common mean
    // is that within the parts and that between them.
    std::vector<Value> values;
    Value pooled{.y = 0};
    std::int64_t worlds_of_parts = 0;
    for (std::size_t index = 0; index < parts_.size(); ++index) {
      worlds_of_parts += parts_[index].worlds;
      const std::int64_t end = worlds * worlds_of_parts / num_worlds_;
      const std::int64_t count = end - pooled.worlds;
      if (count == 0) continue;
      values.push_back(parts_[index].objective->MeasureValue(mu, count, key.Fork(index)));
      pooled.worlds = end;
      pooled.y += values.back().y * static_cast<double>(count) / static_cast<double>(worlds);
      pooled.episodes += values.back().episodes;
    }
    double squares = 0;
    for (const Value& value : values) {
      const double off = value.y - pooled.y;
      squares += static_cast<double>(value.worlds - 1) * value.variance +
                 static_cast<double>(value.worlds) * off * off;
    }
    pooled.variance = worlds > 1 ? squares / static_cast<double>(worlds - 1) : 0;
    return pooled;
  }

 private:
  double ShareOf(std::size_t index) const {
    return static_cast<double>(parts_[index].worlds) / static_cast<double>(num_worlds_);
  }

  std::vector<PooledPart> parts_;
  std::int64_t num_worlds_ = 0;  // of all parts, in a round
};

}  // namespace

std::unique_ptr<Objective> MakePooledObjective(std::vector<PooledPart> parts) {
  return std::make_unique<PooledObjective>(std::move(parts));
}

double Norm(std::span<const double> vector) {
  double squares = 0;
  for (const double value : vector) squares += value * value;
  return std::sqrt(squares);
}

SquaredSignal EstimateSignal(std::span<const double> vector, double squared_noise) {
  const double norm = Norm(vector);
  return {norm * norm - squared_noise,
          squared_noise * std::sqrt(2.0 / static_cast<double>(vector.size()))};
}

}  // namespace fedgen
