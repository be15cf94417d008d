// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fedgen/learn/improver.h"
#include "fedgen/learn/objective.h"
#include "fedgen/learn/optimizer.h"
#include "fedgen/learn/stop_rule.h"

namespace fedgen {

// The improver of Algorithm 1: measures (y, z) on fresh worlds and takes one step down z, unless
// its stop rule says that it has arrived (lines 6 and 9 to 15).

/// How sigma moves with z_sigma, if it moves at all.
enum class SigmaStep {
  kMultiplicative,  // by factors, a tenth a round at most, within [sigma_0 / 10, 10 sigma_0] (Eq.
                    // 20)
  kAdditive,        // as the paper prints it: down z_sigma like mu down z_mu (Eq. 20a)
};
template <>
inline constexpr auto kWords<SigmaStep> = Words("multiplicative", "additive");

struct GradientSearchOptions {
  StepOptions step;
  OptimizerOptions optimizer;
  StopOptions stop;
  double sigma_rate = 0;  // of sigma's steps against mu's, >= 0; 0 keeps sigma
  SigmaStep sigma_step = SigmaStep::kMultiplicative;
};

/// What it remembers from round to round.
struct GradientSearchState {
  std::vector<float> sigma;  // [num_parameters] the spread of the search now
  OptimizerState optimizer;  // cleared on adoption
  StopState stop;            // its memory of y is cleared on adoption

  bool operator==(const GradientSearchState&) const = default;
};

class GradientSearch final : public Improver {
 public:
  /// sigma: the initial spread of the search, one standard deviation per parameter; a parameter
  /// with sigma 0 is frozen.
  GradientSearch(const GradientSearchOptions& options, std::unique_ptr<Objective> objective,
                 std::vector<float> sigma);

  Look Measure(int k, int num_rounds, std::span<const float> theta, Key key) override;
  Step Improve(int k, int num_rounds, Key key, std::span<float> theta) override;
  double StepLength(int k, int num_rounds) const override;
  Value MeasureValue(std::span<const float> theta, std::int64_t worlds, Key key) override;
  void Restart() override;
  std::string SaveState() const override;
  Result<void> LoadState(std::string_view bytes, std::size_t num_parameters) override;

  const GradientSearchState& state() const { return state_; }

 private:
  GradientSearchOptions options_;
  std::unique_ptr<Objective> objective_;
  std::vector<float> initial_sigma_;
  GradientSearchState state_;
  std::optional<Measurement> measurement_;  // of this round
  std::size_t num_reflected_ = 0;           // parameters whose sigma the last step took below 0
  bool told_reflection_ = false;            // a person hears of it once
};

}  // namespace fedgen
