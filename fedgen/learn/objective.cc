// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/objective.h"

#include <cmath>

namespace fedgen {

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
