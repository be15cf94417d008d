// SPDX-License-Identifier: Apache-2.0
#include "fedgen/rollout/planner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <queue>
#include <unordered_set>

#include "fedgen/base/parallel.h"
#include "fedgen/sim/move_kernel.h"
#include "fedgen/sim/observe_kernel.h"
#include "fedgen/world/way_map.h"

namespace fedgen {
namespace {

// Shares of the control limit, one slot of the batch each.
constexpr std::array<float, 7> kShares = {0, 1.0F / 6, -1.0F / 6, 0.5F, -0.5F, 1, -1};
constexpr int kNumShares = static_cast<int>(kShares.size());

// The search wants collisions and arrivals, not ranges: one short beam.
constexpr LidarOptions kBlind{1, 0.1, 0, 0};

/// How fine an attempt is.
struct Resolution {
  int hold;          // steps that a control is held
  double cell;       // m, side of a cell of poses
  int headings;      // cells around
  double eagerness;  // weight of what is left against what was driven
};

/// A pose that the search has reached, and how.
struct Node {
  Pose pose;
  std::int32_t step = 0;     // steps taken
  std::int32_t parent = -1;  // index; -1 for the start
  float control = 0;         // held from the parent to here
};

}  // namespace

struct Planner::State {
  State(const Task& the_task, Kernel the_kernel, int the_max_expansions)
      : task(the_task),
        kernel(the_kernel),
        max_expansions(the_max_expansions),
        lidar(kBlind),
        batch(kNumShares, lidar),
        map(the_kernel, the_task.robot.radius / 2) {}

  const Task& task;
  Kernel kernel;
  int max_expansions;
  Lidar lidar;
  Batch batch;
  WayMap map;  // of the world in the batch
  std::vector<Node> nodes;

  double StepLength() const { return task.robot.speed * task.episode.time_step; }

  Resolution At(int attempt) const {
    const int hold = std::max(1, static_cast<int>(std::lround(task.robot.radius / StepLength())));
    Resolution resolution;
    resolution.hold = std::max(1, hold >> attempt);
    resolution.cell = 0.5 * task.robot.radius / (1 << attempt);
    resolution.headings = 32 << attempt;
    resolution.eagerness = 2;
    return resolution;
  }

  // All slots stand at the node, each with its control.
  void Gather(const Node& node) {
    const auto limit = static_cast<float>(ControlLimit(task.robot));
    for (std::size_t slot = 0; slot < kShares.size(); ++slot) {
      batch.x[slot] = node.pose.x;
      batch.y[slot] = node.pose.y;
      batch.heading[slot] = node.pose.heading;
      batch.control[slot] = kShares[slot] * limit;
      // Noise is drawn when a block of steps begins, and the node may be inside of one.
      batch.step[slot] = node.step - node.step % Batch::kNoiseSteps;
    }
    FaceHeading(kernel, 0, kNumShares, batch);
    if (batch.push_kind[0] == Disturbance::Kind::kUniformNoise) Disturb(kernel, kNumShares, batch);
    for (std::size_t slot = 0; slot < kShares.size(); ++slot) batch.step[slot] = node.step;
  }

  // The controls that lead to a node, then `last` for some more steps.
  std::vector<float> ControlsTo(const Node& node, float last, int steps) const {
    std::vector<float> controls(static_cast<std::size_t>(node.step));
    const Node* at = &node;
    while (at->parent >= 0) {
      const Node& parent = nodes[static_cast<std::size_t>(at->parent)];
      std::fill(controls.begin() + parent.step, controls.begin() + at->step, at->control);
      at = &parent;
    }
    controls.insert(controls.end(), static_cast<std::size_t>(steps), last);
    return controls;
  }

  std::optional<std::vector<float>> Search(const Pose& start, const Resolution& resolution,
                                           int& expansions_left);
};

// Drives on from the most promising pose whose cell is new, until one arrives.
std::optional<std::vector<float>> Planner::State::Search(const Pose& start,
                                                         const Resolution& resolution,
                                                         int& expansions_left) {
  const auto robot_radius = static_cast<float>(task.robot.radius);
  const auto time_step = static_cast<float>(task.episode.time_step);
  const auto promise = [&](const Node& node) {
    return node.step + resolution.eagerness * map.Distance(node.pose.x, node.pose.y) / StepLength();
  };
  const auto cell_of = [&](const Pose& pose) {
    const auto part = [](double value) {
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(std::floor(value)));
    };
    constexpr std::uint64_t kPlace = (std::uint64_t{1} << 26) - 1;
    const double turns = pose.heading / (2 * std::numbers::pi) + 1;
    return (part(pose.x / resolution.cell) & kPlace) << 38 |
           (part(pose.y / resolution.cell) & kPlace) << 12 |
           (part(turns * resolution.headings) % static_cast<std::uint64_t>(resolution.headings));
  };
  using Entry = std::pair<double, std::int32_t>;  // equal promise: the older first
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  std::unordered_set<std::uint64_t> visited;
  nodes.assign(1, {start});
  open.emplace(promise(nodes[0]), 0);
  while (!open.empty() && expansions_left > 0) {
    const std::int32_t index = open.top().second;
    open.pop();
    const Node node = nodes[static_cast<std::size_t>(index)];
    if (!visited.insert(cell_of(node.pose)).second) continue;
    --expansions_left;
    Gather(node);
    std::array<bool, kShares.size()> alive;
    alive.fill(true);
    const int hold = std::min(resolution.hold, task.episode.horizon - node.step);
    for (int steps = 1; steps <= hold; ++steps) {
      Disturb(kernel, kNumShares, batch);
      Advance(kernel, task.robot, time_step, kNumShares, batch);
      Observe(kernel, lidar, robot_radius, 0, kNumShares, batch);
      for (std::size_t slot = 0; slot < kShares.size(); ++slot) {
        alive[slot] = alive[slot] && batch.collided[slot] == 0;
        if (alive[slot] && batch.arrived[slot] != 0) {
          return ControlsTo(node, batch.control[slot], steps);
        }
      }
    }
    if (node.step + hold >= task.episode.horizon) continue;
    for (std::size_t slot = 0; slot < kShares.size(); ++slot) {
      if (!alive[slot]) continue;
      nodes.push_back({{batch.x[slot], batch.y[slot], batch.heading[slot]},
                       node.step + hold,
                       index,
                       batch.control[slot]});
      open.emplace(promise(nodes.back()), static_cast<std::int32_t>(nodes.size()) - 1);
    }
  }
  return std::nullopt;
}

Planner::Planner(const Task& task, Kernel kernel, int max_expansions)
    : state_(std::make_unique<State>(task, kernel, max_expansions)) {}
Planner::~Planner() = default;

std::optional<std::vector<float>> Planner::FindWay(const World& world, int start) {
  State& s = *state_;
  const auto at = static_cast<std::size_t>(start);
  const Episode straight = Redrive(s.task, s.kernel, world, start, {});
  if (straight.outcome == Outcome::kReachedGoal) {
    return std::vector<float>(static_cast<std::size_t>(straight.steps));
  }
  if (straight.steps == 0) return std::nullopt;  // it begins in an obstacle
  const Pose& pose = world.starts[at];
  for (int slot = 0; slot < kNumShares; ++slot) {
    s.batch.Place(slot, world, pose, world.disturbance.key.Fork(at));
  }
  s.map.Make(world, s.task.robot.radius);
  constexpr int kAttempts = 3;
  int expansions_left = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    expansions_left += s.max_expansions / kAttempts;
    auto controls = s.Search(pose, s.At(attempt), expansions_left);
    if (!controls) continue;
    const Episode judged = Redrive(s.task, s.kernel, world, start, *controls);
    if (judged.outcome == Outcome::kReachedGoal) return controls;
  }
  return std::nullopt;
}

int ExpansionsEach(std::int64_t num_episodes) {
  constexpr std::int64_t kTogether = std::int64_t{1000} * kMostExpansions;
  return static_cast<int>(std::clamp<std::int64_t>(
      kTogether / std::max<std::int64_t>(num_episodes, 1), 1, kMostExpansions));
}

Crossable FindCrossable(
    const Task& task, const WorldSource& worlds, const EvaluateOptions& options,
    const std::vector<bool>& arrived,
    const std::function<void(std::int64_t done, std::int64_t total)>& on_progress) {
  std::vector<std::int64_t> open;
  for (std::size_t episode = 0; episode < arrived.size(); ++episode) {
    if (!arrived[episode]) open.push_back(static_cast<std::int64_t>(episode));
  }
  Crossable result;
  result.episodes = static_cast<std::int64_t>(arrived.size());
  result.searched = static_cast<std::int64_t>(open.size());
  result.crossed = result.episodes - result.searched;
  result.expansions = ExpansionsEach(result.searched);
  const int window = 2 * options.num_threads;
  std::vector<std::unique_ptr<Planner>> planners(static_cast<std::size_t>(options.num_threads));
  std::vector<World> scratch(planners.size());
  std::vector<int> found(static_cast<std::size_t>(window));  // 0 or 1
  OrderedParallelFor(
      result.searched, options.num_threads, window,
      [&](std::int64_t index, int worker) {
        const auto mine = static_cast<std::size_t>(worker);
        auto& planner = planners[mine];
        if (!planner) planner = std::make_unique<Planner>(task, options.kernel, result.expansions);
        const std::int64_t episode = open[static_cast<std::size_t>(index)];
        const auto start = static_cast<int>(episode % options.starts_per_world);
        const World& world = worlds(episode / options.starts_per_world, scratch[mine]);
        found[static_cast<std::size_t>(index % window)] = planner->FindWay(world, start) ? 1 : 0;
      },
      [&](std::int64_t index) {
        result.crossed += found[static_cast<std::size_t>(index % window)];
        if (on_progress) on_progress(index + 1, result.searched);
      });
  return result;
}

}  // namespace fedgen
