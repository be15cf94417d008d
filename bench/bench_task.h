// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "fedgen/rollout/task.h"

namespace fedgen {

// What is measured: two networks, each in the world it was made for. Both drive with a trained
// policy (bench/policies/<net>.fgp, kept as it is so that figures compare over time), because
// episodes of a policy that survives are longer and pass nearer to obstacles than those of a random
// one.

/// The paper's network in the world of its text with the symmetric fan (configs/default.toml), and
/// the public code's network in the world of the published tables (configs/paper-tables.toml).
inline constexpr std::array<std::string_view, 2> kBenchNets = {"24-20-20-20-1", "20-20-1"};

/// The world, robot, sensor and episode of one of kBenchNets.
Task BenchTask(std::string_view net);

/// Where its trained policy is.
std::string BenchPolicyPath(std::string_view net);

}  // namespace fedgen
