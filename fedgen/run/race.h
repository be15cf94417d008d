// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fedgen/base/option.h"
#include "fedgen/fuse/exchange.h"
#include "fedgen/policy/mlp.h"
#include "fedgen/rollout/evaluate.h"

namespace fedgen {

// Which policy wins: after the last round the candidates drive through the same fresh worlds, and
// the least mean cost, or the most safe arrivals, wins. What a winner measured while it was being
// selected is optimistic (docs/guarantees.md 3.1); a race on worlds of its own starts from scratch,
// and the certificate that follows draws others still.

struct Racer {
  std::string name;  // "final-3", "incumbent", "average"
  Mlp policy;
  Tally tally;  // over the worlds of the race
};

enum class Prize {
  kCost,    // the least mean J, what learning minimises
  kSafety,  // the most safe arrivals; of equals the least mean J
};
template <>
inline constexpr std::array<std::string_view, 2> kWords<Prize> = {"cost", "safety"};

/// Every final policy, the incumbent, and the average, if there is one. Equal policies enter once,
/// under the first name.
std::vector<Racer> Racers(const Finalists& finalists, const Mlp& shape);

/// Drives all of them through the worlds of the source and fills their tallies; returns the index
/// of the winner, the first of equals.
std::size_t Race(const Task& task, const WorldSource& worlds, const EvaluateOptions& options,
                 Prize prize, std::vector<Racer>& racers,
                 const std::function<void(std::int64_t)>& on_progress);

}  // namespace fedgen
