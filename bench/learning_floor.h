// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "bench/floor.h"

namespace fedgen {

// The floor under the cost of learning: the products of one pass of backpropagation alone, done by
// Eigen: forward, deltas, gradients of the weights. No bias, no activation, no samples gathered.
// The floor of a pass that trains a policy and a critic is the sum of the floors of the two.

/// The networks whose sizes Eigen's compiler knows: inputs, hidden layers, 1.
inline constexpr std::array<std::string_view, 3> kLearningNets = {"24-20-20-20-1", "28-32-32-1",
                                                                  "66-64-64-1"};

/// The sizes in a name such as "28-32-32-1".
std::vector<int> SizesOf(std::string_view net);

/// The fastest of several ways, as samples per second. Takes about a second.
Floor MakeLearningFloor(std::string_view net);

}  // namespace fedgen
