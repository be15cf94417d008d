// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fedgen/base/check.h"
#include "fedgen/base/text.h"

namespace fedgen {
namespace {

double PerEpisode(const Evaluation& evaluation, double sum) {
  return sum / static_cast<double>(evaluation.tally.episodes);
}

void CheckCounts(const Evaluation& evaluation) {
  FEDGEN_CHECK(evaluation.starts_per_world >= 1, "starts_per_world = {}",
               evaluation.starts_per_world);
  FEDGEN_CHECK(evaluation.tally.episodes >= 1, "an evaluation of no episodes");
  FEDGEN_CHECK(evaluation.tally.episodes % evaluation.starts_per_world == 0,
               "{} episodes are not whole worlds of {} starts", evaluation.tally.episodes,
               evaluation.starts_per_world);
}

std::string HashText(const Tally& tally) { return fmt::format("{:016x}", tally.outcome_hash); }

std::string Row(std::string_view name, std::string_view value, std::string_view note) {
  return fmt::format("{:<14}{}  {}\n", name, value, note);
}

// A number in [0, 1], and of how many worlds it is the mean.
std::string CensusRow(std::string_view name, double value, const std::string& samples) {
  return Row(name, fmt::format("{:.4f}", value), fmt::format("({}, as given)", samples));
}

// A number in [0, 1], its interval and where that comes from. Clopper-Pearson needs no name: it is
// what one expects of a rate; any other method does.
std::string UnitRow(std::string_view name, double value, const ProportionInterval& interval,
                    std::string_view method, const std::string& samples) {
  // The ends are rounded outwards, so that the interval shown promises no more than the true one.
  const double low = std::floor(1e4 * interval.low) / 1e4;
  const double high = std::ceil(1e4 * interval.high) / 1e4;
  return Row(name, fmt::format("{:.4f}", value),
             fmt::format("[{:.4f}, {:.4f}] ({:.0f} %{}{}, {})", low, high,
                         100 * kEvaluationConfidence, method.empty() ? "" : " ", method, samples));
}

}  // namespace

std::string_view IntervalMethod(const Evaluation& evaluation) {
  if (evaluation.census) return "none";
  return evaluation.starts_per_world == 1 ? "clopper-pearson" : "hoeffding";
}

ProportionInterval RateInterval(const Evaluation& evaluation, std::int64_t count,
                                double confidence) {
  CheckCounts(evaluation);
  if (evaluation.starts_per_world == 1) {
    return ClopperPearson(count, evaluation.tally.episodes, confidence);
  }
  // Every world has as many starts, so the mean over worlds is the mean over episodes.
  return HoeffdingInterval(PerEpisode(evaluation, static_cast<double>(count)), evaluation.worlds(),
                           confidence);
}

ProportionInterval CostInterval(const Evaluation& evaluation, double confidence) {
  CheckCounts(evaluation);
  const double mean = PerEpisode(evaluation, evaluation.tally.cost_sum);
  return HoeffdingInterval(std::clamp(mean, 0.0, 1.0), evaluation.worlds(), confidence);
}

ProportionInterval CrossableInterval(const Evaluation& evaluation, const Crossable& crossable,
                                     double confidence) {
  return {RateInterval(evaluation, crossable.crossed, confidence).low, 1};
}

std::string EvaluationJson(const Evaluation& evaluation) {
  CheckCounts(evaluation);
  const Tally& tally = evaluation.tally;
  const auto rate = [&](std::int64_t count) {
    return PerEpisode(evaluation, static_cast<double>(count));
  };
  const auto ends = [&](const ProportionInterval& interval) {
    return evaluation.census ? nlohmann::ordered_json()
                             : nlohmann::ordered_json{interval.low, interval.high};
  };
  nlohmann::ordered_json json;
  json["worlds"] = evaluation.worlds();
  json["safe_rate"] = rate(tally.reached);
  json["safe_rate_interval"] = ends(RateInterval(evaluation, tally.reached));
  json["collision_rate"] = rate(tally.collided);
  json["collision_rate_interval"] = ends(RateInterval(evaluation, tally.collided));
  json["timeout_rate"] = rate(tally.timed_out);
  json["timeout_rate_interval"] = ends(RateInterval(evaluation, tally.timed_out));
  json["mean_cost"] = PerEpisode(evaluation, tally.cost_sum);
  json["mean_cost_interval"] = ends(CostInterval(evaluation));
  json["mean_distance"] = PerEpisode(evaluation, tally.goal_distance_sum);
  json["mean_arrival_time"] = nullptr;
  if (tally.reached > 0) {
    json["mean_arrival_time"] = tally.arrival_time_sum / static_cast<double>(tally.reached);
  }
  json["steps"] = tally.steps;
  json["steps_per_second"] = nullptr;
  if (evaluation.seconds > 0) {
    json["steps_per_second"] = static_cast<double>(tally.steps) / evaluation.seconds;
  }
  json["outcome_hash"] = HashText(tally);
  json["interval_method"] = IntervalMethod(evaluation);
  json["mean_cost_interval_method"] = evaluation.census ? "none" : "hoeffding";
  json["interval_confidence"] = nullptr;
  if (!evaluation.census) json["interval_confidence"] = kEvaluationConfidence;
  json["episodes"] = tally.episodes;
  json["starts_per_world"] = evaluation.starts_per_world;
  if (const auto& crossable = evaluation.crossable) {
    json["crossable_rate"] = rate(crossable->crossed);
    json["crossable_rate_interval"] = ends(CrossableInterval(evaluation, *crossable));
    json["searched"] = crossable->searched;
    json["expansions"] = crossable->expansions;
  }
  if (evaluation.seed) json["seed"] = *evaluation.seed;
  if (!evaluation.policy.empty()) json["policy"] = evaluation.policy;
  if (!evaluation.config.empty()) json["config"] = evaluation.config;
  if (!evaluation.overrides.empty()) json["overrides"] = evaluation.overrides;
  if (!evaluation.kernel.empty()) json["kernel"] = evaluation.kernel;
  if (evaluation.threads) json["threads"] = *evaluation.threads;
  // A file name need not be UTF-8, JSON must be: bytes that are not become U+FFFD.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string EvaluationTable(const Evaluation& evaluation) {
  CheckCounts(evaluation);
  const Tally& tally = evaluation.tally;
  const bool one_start = evaluation.starts_per_world == 1;
  const std::string worlds = Counted(evaluation.worlds(), "world");
  const std::string samples =
      one_start ? worlds
                : fmt::format("{} with {} starts each", worlds, evaluation.starts_per_world);

  std::string table;
  if (!evaluation.policy.empty()) table += fmt::format("{:<14}{}\n", "policy", evaluation.policy);
  if (!evaluation.config.empty()) table += fmt::format("{:<14}{}\n", "config", evaluation.config);
  for (const std::string& one : evaluation.overrides) {
    table += fmt::format("{:<14}{}\n", "  set", one);
  }
  if (evaluation.seed) table += fmt::format("{:<14}{}\n", "seed", *evaluation.seed);

  const auto rate_row = [&](std::string_view name, std::int64_t count) {
    const double rate = PerEpisode(evaluation, static_cast<double>(count));
    if (evaluation.census) return CensusRow(name, rate, samples);
    return UnitRow(name, rate, RateInterval(evaluation, count), one_start ? "" : "Hoeffding",
                   samples);
  };
  table += rate_row("safe arrival", tally.reached);
  table += rate_row("collision", tally.collided);
  table += rate_row("time-out", tally.timed_out);
  if (const auto& crossable = evaluation.crossable) {
    const double rate = PerEpisode(evaluation, static_cast<double>(crossable->crossed));
    table += evaluation.census
                 ? CensusRow("crossable", rate, samples)
                 : UnitRow("crossable", rate, CrossableInterval(evaluation, *crossable),
                           one_start ? "" : "Hoeffding", samples);
    table += fmt::format(
        "              at least: a search that knows the map finds a way in {} of the {} that the "
        "policy failed in\n",
        Grouped(crossable->crossed - tally.reached), Counted(crossable->searched, "episode"));
  }

  const double cost = PerEpisode(evaluation, tally.cost_sum);
  table += evaluation.census
               ? CensusRow("cost J", cost, samples)
               : UnitRow("cost J", cost, CostInterval(evaluation), "Hoeffding", samples);
  if (evaluation.census) {
    table +=
        "              a census: these worlds were given, not drawn, and promise nothing about "
        "others\n";
  }
  table +=
      Row("goal distance", fmt::format("{:.3f} m", PerEpisode(evaluation, tally.goal_distance_sum)),
          fmt::format("(mean at the end of {})", Counted(tally.episodes, "episode")));
  table += tally.reached > 0 ? Row("arrival time",
                                   fmt::format("{:.3f} s", tally.arrival_time_sum /
                                                               static_cast<double>(tally.reached)),
                                   fmt::format("(mean over {})", Counted(tally.reached, "arrival")))
                             : Row("arrival time", "none", "(no episode arrived)");

  std::string speed;
  if (evaluation.seconds > 0) {
    speed = fmt::format("in {:.3g} s: {:.3g} million steps/s", evaluation.seconds,
                        static_cast<double>(tally.steps) / evaluation.seconds / 1e6);
    std::string how = evaluation.kernel.empty() ? "" : evaluation.kernel + " kernel";
    if (evaluation.threads) {
      how += (how.empty() ? "" : ", ") + Counted(*evaluation.threads, "thread");
    }
    if (!how.empty()) speed += fmt::format(" ({})", how);
  }
  table +=
      fmt::format("{:<14}{}{}{}\n", "steps", Grouped(tally.steps), speed.empty() ? "" : " ", speed);
  table += fmt::format("{:<14}{}\n", "outcome hash", HashText(tally));
  return table;
}

}  // namespace fedgen
