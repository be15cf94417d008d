// SPDX-License-Identifier: Apache-2.0
#include "bench/rollout_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>

#include "bench/bench_task.h"
#include "bench/floor.h"
#include "bench/peer_bullet.h"
#include "bench/peer_scalar.h"
#include "bench/stopwatch.h"
#include "fedgen/policy/policy_file.h"
#include "fedgen/rollout/evaluate.h"

namespace fedgen {
namespace {

constexpr int kNumRounds = 20;
// Our timed passes drive through this many of the worlds again and again, as a learner does with
// all the policies it compares in one round.
constexpr std::size_t kTimedWorlds = 512;

std::vector<World> DrawWorlds(const Task& task, std::int64_t num_worlds) {
  std::vector<World> worlds(static_cast<std::size_t>(num_worlds));
  const WorldSource source = DrawnWorlds(task, Key(1).Fork(Stream::kEvaluation), BestKernel());
  for (std::size_t world = 0; world < worlds.size(); ++world) {
    source(static_cast<std::int64_t>(world), worlds[world]);
  }
  return worlds;
}

/// Calls run(), which returns steps, at least once and until `seconds` have passed. Returns steps
/// per second.
double Measure(Stopwatch::Kind kind, double seconds, const std::function<std::int64_t()>& run) {
  const Stopwatch stopwatch(kind);
  double elapsed = 0;
  std::int64_t steps = 0;
  do {
    steps += run();
    elapsed = stopwatch.Seconds();
  } while (elapsed < seconds);
  return static_cast<double>(steps) / elapsed;
}

/// A peer that drives one episode after another, and remembers how each world's went.
template <typename Peer>
class Lap {
 public:
  Lap(const Task& task, const Mlp& mlp, std::span<const World> worlds)
      : peer_(task, mlp), worlds_(worlds) {}

  /// Drives through the next world; after the last one comes the first again. Returns the steps.
  std::int64_t RunNext() {
    const Episode episode = peer_.Run(worlds_[next_], 0);
    if (episodes_.size() < worlds_.size()) episodes_.push_back(episode);
    next_ = (next_ + 1) % worlds_.size();
    return episode.steps;
  }
  void RunTheRest() {
    while (episodes_.size() < worlds_.size()) RunNext();
  }
  /// Of the first worlds, as many as were driven through.
  std::span<const Episode> episodes() const { return episodes_; }

 private:
  Peer peer_;
  std::span<const World> worlds_;
  std::size_t next_ = 0;
  std::vector<Episode> episodes_;
};

double SafeRate(std::span<const Episode> episodes) {
  const auto safe = std::count_if(episodes.begin(), episodes.end(), [](const Episode& episode) {
    return episode.outcome == Outcome::kReachedGoal;
  });
  return static_cast<double>(safe) / static_cast<double>(episodes.size());
}

/// Share of peer's episodes that ended as ours did.
double Agreement(std::span<const Episode> ours, std::span<const Episode> peer) {
  std::int64_t equal = 0;
  for (std::size_t episode = 0; episode < peer.size(); ++episode) {
    equal += ours[episode].outcome == peer[episode].outcome ? 1 : 0;
  }
  return static_cast<double>(equal) / static_cast<double>(peer.size());
}

RolloutBenchRow MeasureNet(std::string_view net, const Mlp& mlp,
                           const RolloutBenchOptions& options) {
  const Task task = BenchTask(net);
  const Policy policy = mlp;
  const std::vector<World> worlds = DrawWorlds(task, options.num_worlds);
  const WorldSource given = GivenWorlds(worlds);

  // The contestants.
  Rollout rollout(task, policy, BestKernel());
  std::vector<Episode> episodes(worlds.size());
  const auto timed_episodes = std::span(episodes).first(std::min(kTimedWorlds, worlds.size()));
  const auto run_ours = [&] { return rollout.Run(given, 1, 0, timed_episodes); };
  const auto run_threads = [&](int num_threads) {
    EvaluateOptions evaluate;
    evaluate.num_worlds = options.num_worlds;
    evaluate.num_threads = num_threads;
    evaluate.kernel = BestKernel();
    return Evaluate(task, policy, given, evaluate).steps;
  };
  Lap<ScalarPeer> scalar(task, mlp, worlds);
  Lap<BulletPeer> bullet(task, mlp, worlds);
  const Floor floor(net);

  using enum Stopwatch::Kind;
  RolloutBenchRow row;
  row.net = net;
  double one_thread = 0;
  double two_threads = 0;
  const auto keep_best = [](double speed, double& best) { best = std::max(best, speed); };
  const double slice = options.seconds / kNumRounds;
  for (int round = 0; round < kNumRounds; ++round) {
    keep_best(Measure(kThread, slice, run_ours), row.steps_per_second);
    keep_best(Measure(kThread, slice, [&] { return scalar.RunNext(); }),
              row.scalar_steps_per_second);
    keep_best(floor.Run(slice), row.floor_steps_per_second);
    keep_best(Measure(kThread, slice, [&] { return bullet.RunNext(); }),
              row.bullet_steps_per_second);
    // The clock on the wall notices other programs, so every single pass may be the best one.
    const Stopwatch stopwatch(kWall);
    while (stopwatch.Seconds() < 2 * slice) {
      keep_best(Measure(kWall, 0, [&] { return run_threads(1); }), one_thread);
      keep_best(Measure(kWall, 0, [&] { return run_threads(2); }), two_threads);
    }
  }
  rollout.Run(given, 1, 0, episodes);
  scalar.RunTheRest();

  row.two_threads = two_threads / one_thread;
  row.worlds = options.num_worlds;
  row.outcome_agreement_scalar = Agreement(episodes, scalar.episodes());
  row.bullet_worlds = static_cast<std::int64_t>(bullet.episodes().size());
  row.outcome_agreement = Agreement(episodes, bullet.episodes());
  row.safe_rate = SafeRate(std::span(episodes).first(bullet.episodes().size()));
  row.bullet_safe_rate = SafeRate(bullet.episodes());
  row.floor_choice = floor.choice();
  return row;
}

}  // namespace

Result<std::vector<RolloutBenchRow>> RunRolloutBench(const RolloutBenchOptions& options) {
  if (BestKernel() != Kernel::kSimd) {
    return Error{ErrorCode::kUsage, "this processor has no AVX2 and FMA: nothing to compare"};
  }
  std::vector<RolloutBenchRow> rows;
  for (const std::string_view net : kBenchNets) {
    const Result<Mlp> mlp = LoadPolicy(BenchPolicyPath(net));
    if (!mlp) return mlp.error();
    const Task task = BenchTask(net);
    if (const auto mismatch = FindMismatch(*mlp, BodyOf(task))) {
      return Error{ErrorCode::kMismatch, fmt::format("{}: {}", BenchPolicyPath(net), *mismatch)};
    }
    rows.push_back(MeasureNet(net, *mlp, options));
  }
  return rows;
}

std::string RolloutBenchToJson(const std::vector<RolloutBenchRow>& rows) {
  auto nets = nlohmann::ordered_json::array();
  for (const RolloutBenchRow& row : rows) {
    nets.push_back({{"net", row.net},
                    {"steps_per_second", row.steps_per_second},
                    {"bullet_steps_per_second", row.bullet_steps_per_second},
                    {"scalar_steps_per_second", row.scalar_steps_per_second},
                    {"floor_steps_per_second", row.floor_steps_per_second},
                    {"ratio_bullet", row.ratio_bullet()},
                    {"ratio_scalar", row.ratio_scalar()},
                    {"ratio_floor", row.ratio_floor()},
                    {"outcome_agreement", row.outcome_agreement},
                    {"outcome_agreement_scalar", row.outcome_agreement_scalar},
                    {"safe_rate", row.safe_rate},
                    {"bullet_safe_rate", row.bullet_safe_rate},
                    {"two_threads", row.two_threads},
                    {"worlds", row.worlds}});
  }
  return nlohmann::ordered_json{{"nets", nets}}.dump(2) + "\n";
}

std::string RolloutBenchToTable(const std::vector<RolloutBenchRow>& rows) {
  std::string table;
  const auto line = [&](std::string_view label, const auto& cell) {
    table += fmt::format("{:<34}", label);
    for (const RolloutBenchRow& row : rows) table += fmt::format("{:>20}", cell(row));
    table += '\n';
  };
  const auto speed = [](double steps_per_second) {
    return fmt::format("{:.3f} M/s", steps_per_second * 1e-6);
  };
  const auto cost = [](double steps_per_second) {
    return fmt::format("{:.1f} ns", 1e9 / steps_per_second);
  };
  using Row = RolloutBenchRow;
  line("one thread, steps", [](const Row& row) { return row.net; });
  line("  FedGen", [&](const Row& row) { return speed(row.steps_per_second); });
  line("  scalar loop", [&](const Row& row) { return speed(row.scalar_steps_per_second); });
  line("  Bullet", [&](const Row& row) { return speed(row.bullet_steps_per_second); });
  line("  floor: multiplications only",
       [&](const Row& row) { return speed(row.floor_steps_per_second); });
  line("cost of a step", [&](const Row& row) { return cost(row.steps_per_second); });
  line("cost of the floor", [&](const Row& row) { return cost(row.floor_steps_per_second); });
  line("FedGen / Bullet",
       [](const Row& row) { return fmt::format("{:.1f} x", row.ratio_bullet()); });
  line("FedGen / scalar loop",
       [](const Row& row) { return fmt::format("{:.2f} x", row.ratio_scalar()); });
  line("step / floor", [](const Row& row) { return fmt::format("{:.2f} x", row.ratio_floor()); });
  line("two threads / one",
       [](const Row& row) { return fmt::format("{:.2f} x", row.two_threads); });
  line("outcomes equal to the scalar loop's",
       [](const Row& row) { return fmt::format("{:.4f}", row.outcome_agreement_scalar); });
  line("outcomes equal to Bullet's",
       [](const Row& row) { return fmt::format("{:.4f}", row.outcome_agreement); });
  line("safe rate", [](const Row& row) { return fmt::format("{:.4f}", row.safe_rate); });
  line("safe rate on Bullet",
       [](const Row& row) { return fmt::format("{:.4f}", row.bullet_safe_rate); });
  line("worlds (on Bullet)",
       [](const Row& row) { return fmt::format("{} ({})", row.worlds, row.bullet_worlds); });
  for (const Row& row : rows) {
    table += fmt::format("floor of {}: {}\n", row.net, row.floor_choice);
  }
  return table;
}

}  // namespace fedgen
