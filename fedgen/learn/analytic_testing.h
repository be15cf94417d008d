// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "fedgen/learn/analytic.h"

namespace fedgen {

// Functions that several tests share.

/// A plateau at 0.8 in two dimensions with wells of depth 0.6, 0.35 and 0.2, far apart: the best
/// minimum is near (-2, 0).
inline AnalyticFunction ThreeWells() {
  AnalyticFunction f;
  f.level = 0.8;
  f.wells = {{{-2, 0}, 0.6, 0.7}, {{2, 0.5}, 0.35, 0.7}, {{0, 2.5}, 0.2, 0.7}};
  f.amplitude = 0.05;
  f.kappa = {3, -2};
  return f;
}

/// Uniform in the cube of this half width.
inline std::vector<float> UniformTheta(Key key, std::size_t size, double half_width) {
  std::vector<float> theta(size);
  for (std::size_t index = 0; index < size; ++index) {
    theta[index] = static_cast<float>(
        half_width * (2 * static_cast<double>(UnitFloat(key.Block(index)[0])) - 1));
  }
  return theta;
}

}  // namespace fedgen
