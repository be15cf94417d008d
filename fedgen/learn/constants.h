// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "fedgen/learn/objective.h"

namespace fedgen {

// What T3 asks for and nobody knows: the noise of z, and how fast the gradient changes. Both are
// measured around one point, so they are local estimates, not bounds.

struct GradientConstants {
  int repeats = 0;            // R measurements on different worlds and directions
  double y = 1;               // mean over them
  double z_norm = 0;          // root mean square of |z|
  double spread = 0;          // s-bar of T3: standard deviation of z over worlds and directions
  double direction_part = 0;  // of it, what the directions alone explain (Eq. 22)
  SquaredSignal gradient;     // |E z|^2
  double smoothness = 0;  // Lambda_1: largest |E z(theta + h u) - E z(theta)| / h over the probes
  double smoothness_noise = 0;  // what that would be, on average, if z did not change at all
  int probes = 0;               // directions u
  double probe_length = 0;      // h

  /// r of T3; none if the change of z does not stand out from its noise.
  std::optional<double> largest_step() const {
    if (smoothness <= smoothness_noise) return std::nullopt;
    return 1 / (2 * smoothness);
  }
  double least_threshold() const { return 4 * spread; }  // q of T3
};

/// Measures at `search`. Probes are as long as sigma is, |sigma|. on_progress (may be empty) gets
/// the number of measurements done, of repeats * (probes + 1).
GradientConstants MeasureConstants(Objective& objective, const Search& search, int repeats,
                                   int probes, Key key,
                                   const std::function<void(std::int64_t)>& on_progress);

}  // namespace fedgen
