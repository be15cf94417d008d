// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/race.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "fedgen/base/check.h"
#include "fedgen/certify/bounds.h"
#include "fedgen/learn/navigation.h"

namespace fedgen {

std::vector<Racer> Racers(const Finalists& finalists, const Mlp& shape) {
  std::vector<Racer> racers;
  std::map<std::string, std::size_t> entered;  // by hash
  const auto enter = [&](std::string name, std::span<const float> theta) {
    const auto [place, is_new] = entered.try_emplace(HashOf(theta), racers.size());
    if (is_new) {
      racers.push_back({std::move(name), MlpOf(shape, theta)});
    } else {
      racers[place->second].also.push_back(std::move(name));
    }
  };
  for (const Submission& final : finalists.finals) {
    enter("final-" + final.learner.name(), final.theta);
  }
  if (finalists.incumbent) enter("incumbent", finalists.incumbent->theta);
  if (!finalists.average.empty()) enter("average", finalists.average);
  return racers;
}

namespace {

bool IsBetter(Prize prize, const RaceTally& a, const RaceTally& b) {
  if (prize == Prize::kSafety && a.reached != b.reached) return a.reached > b.reached;
  return a.cost < b.cost;
}

// J as an integer: sums of integers do not depend on their order.
constexpr double kCostUnit = 0x1p32;

void Add(const EpisodeOptions& options, const Episode& episode, RaceTally& sum) {
  ++sum.episodes;
  sum.reached += episode.outcome == Outcome::kReachedGoal ? 1 : 0;
  sum.cost += std::llround(kCostUnit * Cost(options, episode));
}

// Drives a policy through all episodes; says where it arrived, and marks it in `somebody`.
Tally DriveAll(const Task& task, const Policy& policy, const WorldSource& worlds,
               const EvaluateOptions& options, std::vector<bool>& arrived,
               std::vector<bool>& somebody, RaceTally& sum,
               const std::function<void(std::int64_t done)>& on_progress) {
  arrived.assign(somebody.size(), false);
  return Evaluate(task, policy, worlds, options, on_progress,
                  [&](std::int64_t index, const Episode& episode) {
                    Add(task.episode, episode, sum);
                    if (episode.outcome != Outcome::kReachedGoal) return;
                    arrived[static_cast<std::size_t>(index)] = true;
                    somebody[static_cast<std::size_t>(index)] = true;
                  });
}

std::size_t NumEpisodes(const EvaluateOptions& options) {
  return static_cast<std::size_t>(options.num_worlds * options.starts_per_world);
}

}  // namespace

RaceResult Race(const Task& task, const WorldSource& worlds, const EvaluateOptions& options,
                Prize prize, std::vector<Racer>& racers,
                const std::function<void(std::int64_t)>& on_progress) {
  RaceResult result;
  result.somebody_arrived.resize(NumEpisodes(options));
  std::vector<RaceTally> sums(racers.size());
  std::int64_t done_before = 0;
  for (std::size_t i = 0; i < racers.size(); ++i) {
    std::vector<bool> arrived;
    racers[i].tally = DriveAll(task, racers[i].policy, worlds, options, arrived,
                               result.somebody_arrived, sums[i], [&](std::int64_t done) {
                                 if (on_progress) on_progress(done_before + done);
                               });
    done_before += racers[i].tally.episodes;
    if (i == 0 || IsBetter(prize, sums[i], sums[result.winner])) {
      result.winner = i;
      result.winner_arrived = std::move(arrived);
    }
  }
  return result;
}

std::size_t FindWinner(Prize prize, const std::vector<RaceTally>& tallies) {
  std::size_t winner = 0;
  for (std::size_t i = 1; i < tallies.size(); ++i) {
    if (IsBetter(prize, tallies[i], tallies[winner])) winner = i;
  }
  return winner;
}

std::vector<RaceTally> DrivePart(
    const RaceCourse& course, const std::vector<Racer>& racers, std::size_t part,
    std::size_t num_parts,
    const std::function<void(std::int64_t done, std::int64_t total)>& on_progress) {
  const auto cut = [&](std::size_t at) {
    return course.options.num_worlds * static_cast<std::int64_t>(at) /
           static_cast<std::int64_t>(num_parts);
  };
  const std::int64_t first = cut(part);
  EvaluateOptions options = course.options;
  options.num_worlds = cut(part + 1) - first;
  std::vector<RaceTally> sums(racers.size());
  if (options.num_worlds == 0) return sums;
  const WorldSource worlds([&](std::int64_t index, int start, World& scratch) -> const World& {
    return course.worlds(first + index, start, scratch);
  });
  const std::int64_t each = options.num_worlds * options.starts_per_world;
  const std::int64_t total = each * static_cast<std::int64_t>(racers.size());
  for (std::size_t i = 0; i < racers.size(); ++i) {
    const std::int64_t done_before = each * static_cast<std::int64_t>(i);
    Evaluate(
        course.task, racers[i].policy, worlds, options,
        [&](std::int64_t done) {
          if (on_progress) on_progress(done_before + done, total);
        },
        [&](std::int64_t /*index*/, const Episode& episode) {
          Add(course.task.episode, episode, sums[i]);
        });
  }
  return sums;
}

Tally TallyOf(const RaceTally& sum) {
  Tally tally;
  tally.episodes = sum.episodes;
  tally.reached = sum.reached;
  tally.cost_sum = static_cast<double>(sum.cost) / kCostUnit;
  return tally;
}

Comparison Compare(const std::vector<bool>& first, const std::vector<bool>& second,
                   int starts_per_world, double confidence) {
  FEDGEN_CHECK(first.size() == second.size(), "{} and {} episodes", first.size(), second.size());
  const auto starts = static_cast<std::size_t>(starts_per_world);
  const std::size_t num_worlds = first.size() / starts;
  Comparison result;
  double square_sum = 0;  // of the difference of a world's shares of arrivals
  for (std::size_t world = 0; world < num_worlds; ++world) {
    std::int64_t difference = 0;
    for (std::size_t episode = world * starts; episode < (world + 1) * starts; ++episode) {
      if (first[episode] == second[episode]) continue;
      ++(first[episode] ? result.only_first : result.only_second);
      difference += first[episode] ? 1 : -1;
    }
    const double share = static_cast<double>(difference) / starts_per_world;
    square_sum += share * share;
  }
  const std::int64_t lead = result.only_first - result.only_second;
  bool told = false;
  if (starts_per_world == 1) {
    const ProportionInterval interval =
        ClopperPearson(result.only_first, result.only_first + result.only_second, confidence);
    told = interval.low > 0.5 || interval.high < 0.5;
  } else if (num_worlds >= 2) {
    // (1 + difference) / 2 is in [0, 1].
    const auto n = static_cast<double>(num_worlds);
    const double mean = static_cast<double>(lead) / static_cast<double>(first.size());
    const double variance = std::max(0.0, (square_sum - n * mean * mean) / (n - 1)) / 4;
    told = std::abs(mean) / 2 >
           EmpiricalBernsteinBias(variance, static_cast<std::int64_t>(num_worlds), 1 - confidence);
  }
  if (told) result.verdict = lead > 0 ? Comparison::Verdict::kBetter : Comparison::Verdict::kWorse;
  return result;
}

Baselines MeasureBaselines(
    const Task& task, const WorldSource& worlds, const EvaluateOptions& options,
    const RaceResult& race, std::size_t num_racers,
    const std::function<void(std::int64_t done)>& on_drive,
    const std::function<void(std::int64_t done, std::int64_t total)>& on_search) {
  Baselines result;
  std::vector<bool> somebody = race.somebody_arrived;
  std::vector<bool> arrived;
  std::int64_t done_before = 0;
  // The winner was chosen in these worlds: the risk is split among all that it could have been, and
  // among the drivers.
  const double comparisons = static_cast<double>(num_racers) * std::size(Baselines::kDrivers);
  const double confidence = 1 - (1 - kComparisonConfidence) / comparisons;
  for (const std::string_view name : Baselines::kDrivers) {
    const auto policy = BuiltInPolicy(name);
    FEDGEN_CHECK(policy.has_value(), "no built-in policy {}", name);
    RaceTally sum;
    const Tally tally =
        DriveAll(task, *policy, worlds, options, arrived, somebody, sum, [&](std::int64_t done) {
          if (on_drive) on_drive(done_before + done);
        });
    done_before += tally.episodes;
    result.drivers.push_back({std::string(name), tally});
    (name == "straight" ? result.with_straight : result.with_gap_follower) =
        Compare(race.winner_arrived, arrived, options.starts_per_world, confidence);
  }
  result.crossable = FindCrossable(task, worlds, options, somebody, on_search);
  return result;
}

}  // namespace fedgen
