// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "fedgen/rollout/evaluate.h"

namespace fedgen {

// Can this world be crossed at all? A search that knows what no policy knows, the map and every
// push to come, looks for controls that carry the robot from its start into the goal.
//
//   Planner planner(task, kernel, kMostExpansions);
//   if (const auto controls = planner.FindWay(world, start)) ...  // it can be crossed
//
// A way that is found was driven: its controls passed through Redrive, the episode by which
// policies are judged, and arrived. So the share of worlds with a way is a lower bound of what is
// possible. That no way is found proves nothing: the search holds a control for several steps,
// knows seven controls, visits each small cell of poses once, and gives up after a number of
// expansions.
//
// It is weighted A* over poses: an expansion drives on from one pose with every control, with the
// simulator's own kernels. What is left to the goal is the way around obstacles
// (world/way_map.h). A search that ends without a way is repeated with shorter holds and smaller
// cells.

/// The most expansions that pay: worlds that are not crossed by then hardly ever are later.
inline constexpr int kMostExpansions = 30'000;

/// Searches on one thread. The task must outlive it.
class Planner {
 public:
  Planner(const Task& task, Kernel kernel, int max_expansions);
  ~Planner();
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  /// Controls, one a step, with which the episode from this start of the world arrives; empty if it
  /// begins in the goal; nothing if the search found none. Depends on the task, the world, the
  /// start and max_expansions only.
  std::optional<std::vector<float>> FindWay(const World& world, int start);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// How many expansions each of this many episodes may have, so that all of them take no longer than
/// about a minute on one thread: kMostExpansions, or fewer from a thousand episodes on.
int ExpansionsEach(std::int64_t num_episodes);

/// What can be crossed of some episodes, at least.
struct Crossable {
  std::int64_t episodes = 0;  // in all
  std::int64_t searched = 0;  // of these no driver arrived, and a way was searched
  std::int64_t crossed = 0;   // a driver arrived, or a way was found: <= those that have one
  int expansions = 0;         // at most, in each search
};

/// Searches a way in every episode where arrived[episode] is false (start e % starts_per_world of
/// world e / starts_per_world): who arrived has shown that there is one. The effort for each
/// depends on how many there are (ExpansionsEach). on_progress (may be empty) is called from one
/// thread at a time. The result does not depend on the number of threads.
Crossable FindCrossable(
    const Task& task, const WorldSource& worlds, const EvaluateOptions& options,
    const std::vector<bool>& arrived,
    const std::function<void(std::int64_t done, std::int64_t total)>& on_progress = {});

}  // namespace fedgen
