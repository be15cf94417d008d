// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fedgen/certify/bounds.h"
#include "fedgen/rollout/planner.h"

namespace fedgen {

// The result of evaluating a policy, as a table for people and as JSON for programs.
//
// Every rate comes with a two-sided 99 % confidence interval and its sample size, under the
// assumptions of fedgen/certify/bounds.h: worlds drawn independently from one distribution, and a
// policy that was fixed before they were drawn. With one start per world the episodes are the
// i.i.d. trials and the interval is the exact one of Clopper and Pearson. With several, starts
// share their world; the worlds are the samples, and the interval is Hoeffding's for the mean over
// worlds of the share of starts that arrived.
//
// Worlds from a file are a census: nobody drew them, so what is counted says nothing about others
// and has no interval.

inline constexpr double kEvaluationConfidence = 0.99;

/// A measured evaluation. A field that is empty or absent is not reported.
struct Evaluation {
  Tally tally;                         // episodes = worlds * starts_per_world >= 1
  double seconds = 0;                  // wall clock of the episodes; 0 if not measured
  int starts_per_world = 1;            // >= 1
  bool census = false;                 // the worlds were given, not drawn
  std::optional<Crossable> crossable;  // if somebody searched
  std::optional<std::uint64_t> seed;
  std::string policy;                  // a file or a built-in name
  std::string config;                  // a file
  std::vector<std::string> overrides;  // key=value over the file
  std::string kernel;
  std::optional<int> threads;

  std::int64_t worlds() const { return tally.episodes / starts_per_world; }
};

/// "clopper-pearson" or "hoeffding": how the intervals of rates were computed; "none" for a census.
std::string_view IntervalMethod(const Evaluation& evaluation);

/// The interval for the rate at which `count` of the episodes ended in some way.
ProportionInterval RateInterval(const Evaluation& evaluation, std::int64_t count,
                                double confidence = kEvaluationConfidence);

/// The interval for E[J]. J is in [0, 1] but not 0 or 1, so it is Hoeffding's for any number of
/// starts.
ProportionInterval CostInterval(const Evaluation& evaluation,
                                double confidence = kEvaluationConfidence);

/// The interval for the rate at which episodes can be crossed. It ends at 1: that a search finds no
/// way proves nothing.
ProportionInterval CrossableInterval(const Evaluation& evaluation, const Crossable& crossable,
                                     double confidence = kEvaluationConfidence);

/// One JSON object on one line, without a newline: worlds, then safe_rate, collision_rate,
/// timeout_rate and mean_cost, each with its _interval [low, high] (null in a census),
/// mean_distance (m), mean_arrival_time (s; null if no episode arrived), steps, steps_per_second
/// (null if not measured), outcome_hash (16 hex digits), interval_method (of the rates),
/// mean_cost_interval_method,
/// interval_confidence (null in a census), episodes, starts_per_world, and what else was given of
/// seed, policy, config, kernel, threads; after a search crossable_rate (at least), its _interval,
/// searched (episodes) and expansions (at most, for each). Numbers have the digits that give the
/// same double back.
std::string EvaluationJson(const Evaluation& evaluation);

/// A table of several lines, each ending in a newline.
std::string EvaluationTable(const Evaluation& evaluation);

}  // namespace fedgen
