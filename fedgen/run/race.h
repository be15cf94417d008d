// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fedgen/base/option.h"
#include "fedgen/fuse/exchange.h"
#include "fedgen/policy/mlp.h"
#include "fedgen/rollout/planner.h"

namespace fedgen {

// Which policy wins: after the last round the candidates drive through the same fresh worlds, and
// the least mean cost, or the most safe arrivals, wins. What a winner measured while it was being
// selected is optimistic (docs/guarantees.md 3.1); a race on worlds of its own starts from scratch,
// and the certificate that follows draws others still.

struct Racer {
  std::string name;  // "final-3", "incumbent", "average"
  Mlp policy;
  Tally tally{};                    // over the worlds of the race
  std::vector<std::string> also{};  // names of others that hold the same policy
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

/// Which racer won, and the episodes of the race in which somebody arrived.
struct RaceResult {
  std::size_t winner = 0;              // index, the first of equals
  std::vector<bool> winner_arrived;    // [episodes]
  std::vector<bool> somebody_arrived;  // [episodes]
};

/// Which policy has won, by these sums of each; the first of equals.
std::size_t FindWinner(Prize prize, const std::vector<RaceTally>& tallies);

/// Drives all of them through the worlds of the source and fills their tallies.
RaceResult Race(const Task& task, const WorldSource& worlds, const EvaluateOptions& options,
                Prize prize, std::vector<Racer>& racers,
                const std::function<void(std::int64_t)>& on_progress);

// A race may be divided among several learners that have one task: each drives all policies through
// its part of the worlds. Sums are of integers, so it does not matter to any bit who drove what.

/// Where a race is driven.
struct RaceCourse {
  Task task;
  WorldSource worlds;
  EvaluateOptions options;
};

/// Drives the policies through part `part` of `num_parts`, which together are the course's worlds:
/// one piece each, in order, as equal as can be. on_progress (may be empty) is told episodes.
std::vector<RaceTally> DrivePart(
    const RaceCourse& course, const std::vector<Racer>& racers, std::size_t part,
    std::size_t num_parts,
    const std::function<void(std::int64_t done, std::int64_t total)>& on_progress);

/// What is known of them as a tally: episodes, arrivals and cost.
Tally TallyOf(const RaceTally& sum);

// How good it could be: what drivers that learn nothing do in the worlds of the race, and in how
// many of these a search that knows the map finds a way. They are measured to compare with, after
// the race, and cannot win.

/// Two drivers in the same episodes. Only those count in which one arrived and the other did not.
struct Comparison {
  enum class Verdict {
    kOpen,    // cannot be told apart
    kBetter,  // the first arrives more often
    kWorse,
  };
  std::int64_t only_first = 0;   // episodes in which only the first arrived
  std::int64_t only_second = 0;  // in which only the second did
  Verdict verdict = Verdict::kOpen;
};
template <>
inline constexpr auto kWords<Comparison::Verdict> = Words("open", "better", "worse");

/// Who arrives more often in new worlds: a verdict other than kOpen is wrong with probability at
/// most 1 - confidence. With one start per world by the exact test of McNemar (among the worlds
/// that tell, is 1/2 outside the Clopper-Pearson interval?), with several by the mean difference of
/// worlds (Eq. 43's bound).
Comparison Compare(const std::vector<bool>& first, const std::vector<bool>& second,
                   int starts_per_world, double confidence);

inline constexpr double kComparisonConfidence = 0.99;

struct Baseline {
  std::string name;
  Tally tally;
};

struct Baselines {
  static constexpr std::array<std::string_view, 2> kDrivers = {"straight", "gap-follower"};
  std::vector<Baseline> drivers;  // by kDrivers
  // The winner is the first. All hold at once, for whoever won.
  Comparison with_straight;
  Comparison with_gap_follower;
  Crossable crossable;  // by a racer, a baseline or a way that the search found
};

/// Measures them in the worlds of a race among num_racers. on_drive and on_search may be empty.
Baselines MeasureBaselines(
    const Task& task, const WorldSource& worlds, const EvaluateOptions& options,
    const RaceResult& race, std::size_t num_racers,
    const std::function<void(std::int64_t done)>& on_drive,
    const std::function<void(std::int64_t done, std::int64_t total)>& on_search);

}  // namespace fedgen
