// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/objective.h"

#include <cmath>

namespace fedgen {

double Norm(std::span<const double> vector) {
  double squares = 0;
  for (const double value : vector) squares += value * value;
  return std::sqrt(squares);
}

}  // namespace fedgen
