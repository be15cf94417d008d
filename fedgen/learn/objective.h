// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fedgen/base/random.h"

namespace fedgen {

// What a learner can know about the function it minimises: eta(theta), an expectation over worlds
// that nobody can compute (Eq. 17). It is measured on worlds drawn for the occasion.
//
// Nothing here knows about robots. Navigation is one objective (learn/navigation.h); functions with
// a known eta, gradient and minimum are others (learn/analytic.h), and on those the theorems are
// checked.

/// Where a learner searches: around mu, with one standard deviation per parameter. mu is the policy
/// that is shared and driven with; a parameter with sigma 0 is frozen.
struct Search {
  std::vector<float> mu;     // [num_parameters]
  std::vector<float> sigma;  // [num_parameters] >= 0

  bool operator==(const Search&) const = default;
};

/// What one round of measuring tells.
struct Measurement {
  double y = 1;                 // mean of J over the round's worlds, of mu itself (Eq. 17)
  std::vector<double> z_mu;     // [num_parameters] estimate of the gradient for mu
  std::vector<double> z_sigma;  // [num_parameters] estimate of the gradient for sigma
  double spread = 0;            // standard deviation of z_mu: the root of E|z - E z|^2 (Eq. 22)
  int pairs = 0;                // how many pairs z is the mean of
  std::int64_t episodes = 0;    // what it cost
  std::int64_t steps = 0;       // of all episodes, if they have any
};

/// The cost of one policy, measured for its own sake.
struct Value {
  double y = 1;               // mean of J over the worlds (Eq. 17)
  double variance = 0;        // of the worlds' costs, unbiased
  std::int64_t worlds = 0;    // independent samples, n
  std::int64_t episodes = 0;  // what it cost
};

class Objective {
 public:
  Objective() = default;
  virtual ~Objective() = default;
  Objective(const Objective&) = delete;
  Objective& operator=(const Objective&) = delete;

  /// Measures on fresh worlds named by the key: the same key, the same worlds, the same bits.
  virtual Measurement Measure(const Search& search, Key key) = 0;

  /// y alone, on as many fresh worlds as wanted: to take stock, or to judge a candidate.
  virtual Value MeasureValue(std::span<const float> mu, std::int64_t worlds, Key key) = 0;
};

/// One of several objectives that count as one, and how many worlds it draws in a round.
struct PooledPart {
  std::unique_ptr<Objective> objective;
  std::int64_t worlds = 1;
};

/// The mean of the parts, each by its worlds, as if all worlds were drawn by one: y and z are the
/// parts' means, so z is unbiased for the gradient of what y measures if each part's is. Every part
/// draws its own worlds, and directions. Requires a part.
std::unique_ptr<Objective> MakePooledObjective(std::vector<PooledPart> parts);

/// The 2-norm.
double Norm(std::span<const double> vector);

/// |E v|^2 of a noisy vector v.
struct SquaredSignal {
  double value = 0;  // estimated without bias, so it may be negative
  double error = 0;  // its standard deviation if there is nothing but noise

  bool IsVisible() const { return value > 2 * error; }
};

/// From one v and the noise in it, E|v - E v|^2. Noise that points anywhere has a chi-squared
/// square with one degree of freedom for each entry, so it is known but for a factor of sqrt(2 /
/// entries) (Eq. 28).
SquaredSignal EstimateSignal(std::span<const double> vector, double squared_noise);

}  // namespace fedgen
