// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/navigation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fedgen/base/parallel.h"
#include "fedgen/policy/mlp_kernel.h"
#include "fedgen/rollout/evaluate.h"
#include "fedgen/sim/observe_kernel.h"

namespace fedgen {
namespace {

class NavigationCosts final : public CostSource {
 public:
  NavigationCosts(const Task& task, Mlp shape, const NavigationOptions& options)
      : task_(task),
        shape_(std::move(shape)),
        options_(options),
        training_task_(task),
        starts_(task.world.start.per_world),
        worlds_(static_cast<std::size_t>(options.worlds)) {
    training_task_.robot.radius += options.cost.margin;
  }

  Costs Measure(std::span<const float> mu, std::int64_t num_members, const MakeMember& make_member,
                Key key) override {
    const WorldSource drawn = DrawnWorlds(task_, key, options_.kernel);
    for (std::size_t world = 0; world < worlds_.size(); ++world) {
      drawn(static_cast<std::int64_t>(world), worlds_[world]);
    }
    const WorldSource given = GivenWorlds(worlds_);
    Costs costs;
    costs.members.resize(static_cast<std::size_t>(num_members));
    const std::int64_t episodes_each = std::int64_t{options_.worlds} * starts_;
    const auto num_episodes = static_cast<std::size_t>(episodes_each);
    costs.episodes = (num_members + 1) * episodes_each;
    std::int64_t mu_steps = 0;

    // Every worker drives one network, whose parameters are overwritten from member to member. mu
    // itself is driven apart: by the true robot, and on the first thread that is free.
    std::vector<std::unique_ptr<Worker>> workers(static_cast<std::size_t>(options_.num_threads));
    ParallelFor(num_members + 1, options_.num_threads, [&](std::int64_t task_index, int index) {
      if (task_index == 0) {
        Worker itself(task_, MlpOf(shape_, mu), options_.kernel, num_episodes);
        mu_steps = itself.Run(given, starts_);
        costs.y = Mean(itself.episodes, [&](const Episode& e) { return Cost(task_.episode, e); });
        return;
      }
      auto& worker = workers[static_cast<std::size_t>(index)];
      if (!worker) {
        worker = std::make_unique<Worker>(training_task_, MlpOf(shape_, mu), options_.kernel,
                                          num_episodes);
      }
      const std::int64_t member = task_index - 1;
      std::ranges::copy(mu, worker->theta.begin());
      make_member(member, worker->theta);
      worker->SetParameters();
      worker->steps += worker->Run(given, starts_);
      costs.members[static_cast<std::size_t>(member)] =
          Mean(worker->episodes,
               [&](const Episode& e) { return CostOf(options_.cost, task_.episode, e); });
    });
    costs.steps = mu_steps;
    for (const auto& worker : workers) {
      if (worker) costs.steps += worker->steps;
    }
    return costs;
  }

  Value MeasureValue(std::span<const float> mu, std::int64_t worlds, Key key) override {
    EvaluateOptions options;
    options.num_worlds = worlds;
    options.starts_per_world = starts_;
    options.num_threads = options_.num_threads;
    options.kernel = options_.kernel;
    const Policy policy = MlpOf(shape_, mu);
    Value value;
    value.worlds = worlds;
    // A world's cost is the mean over its starts. Welford's running mean and sum of squares.
    double world_sum = 0;
    double mean = 0;
    double squares = 0;
    const Tally tally = Evaluate(task_, policy, DrawnWorlds(task_, key, options_.kernel), options,
                                 {}, [&](std::int64_t index, const Episode& episode) {
                                   world_sum += Cost(task_.episode, episode) / starts_;
                                   if ((index + 1) % starts_ != 0) return;
                                   const double before = world_sum - mean;
                                   const std::int64_t worlds_seen = (index + 1) / starts_;
                                   mean += before / static_cast<double>(worlds_seen);
                                   squares += before * (world_sum - mean);
                                   world_sum = 0;
                                 });
    value.y = mean;
    value.variance = worlds > 1 ? squares / static_cast<double>(worlds - 1) : 0;
    value.episodes = tally.episodes;
    return value;
  }

 private:
  struct Worker {
    Worker(const Task& task, Mlp mlp, Kernel kernel, std::size_t num_episodes)
        : theta(ThetaOf(mlp)),
          policy(std::move(mlp)),
          rollout(task, policy, kernel, Rollout::kDefaultSlots),
          episodes(num_episodes) {}

    std::int64_t Run(const WorldSource& worlds, int starts) {
      return rollout.Run(worlds, starts, 0, episodes);
    }

    // The normalisation is the same for all members of a round and stays.
    void SetParameters() {
      std::vector<float>& parameters = std::get<Mlp>(policy).parameters;
      std::copy(theta.end() - static_cast<std::ptrdiff_t>(parameters.size()), theta.end(),
                parameters.begin());
    }

    std::vector<float> theta;
    Policy policy;
    Rollout rollout;
    std::vector<Episode> episodes;
    std::int64_t steps = 0;
  };

  static double Mean(const std::vector<Episode>& episodes, const auto& cost) {
    double sum = 0;
    for (const Episode& episode : episodes) sum += cost(episode);
    return sum / static_cast<double>(episodes.size());
  }

  Task task_;
  Mlp shape_;
  NavigationOptions options_;
  Task training_task_;  // the same with a wider robot
  int starts_;
  std::vector<World> worlds_;  // [n_E] of the present round
};

}  // namespace

void Describe(OptionVisitor& visitor, TrainingCost& cost) {
  auto& [kind, distance_weight, margin] = cost;
  visitor.Choice({"cost", "",
                  "What training makes small, with rho the distance left to the goal: "
                  "distance_weight rho + J (paper), distance_weight rho + 1 if it did not "
                  "arrive (failure), or J alone (Eq. 23)."},
                 kind);
  visitor.Number({"distance_weight", "1/m", "How much the distance left to the goal counts."},
                 distance_weight, Closed(0, 1e6));
  visitor.Number(
      {"margin", "m",
       "While searching, the robot is this much wider than it is, so that what is learned "
       "keeps its distance. Results are of the true robot (Eq. 23)."},
      margin, Closed(0, 10));
}

double CostOf(const TrainingCost& cost, const EpisodeOptions& options, const Episode& episode) {
  const double distance = cost.distance_weight * static_cast<double>(episode.goal_distance);
  switch (cost.kind) {
    case TrainingCost::Kind::kPaper:
      return distance + Cost(options, episode);
    case TrainingCost::Kind::kFailure:
      return distance + (episode.outcome == Outcome::kReachedGoal ? 0 : 1);
    case TrainingCost::Kind::kPlain:
      return Cost(options, episode);
  }
  return 1;
}

std::shared_ptr<CostSource> MakeNavigationCosts(const Task& task, const Mlp& shape,
                                                const NavigationOptions& options) {
  return std::make_shared<NavigationCosts>(task, shape, options);
}

std::vector<float> ThetaOf(const Mlp& mlp) {
  std::vector<float> theta = mlp.input_scale;
  theta.insert(theta.end(), mlp.input_shift.begin(), mlp.input_shift.end());
  theta.insert(theta.end(), mlp.parameters.begin(), mlp.parameters.end());
  return theta;
}

Mlp MlpOf(const Mlp& shape, std::span<const float> theta) {
  Mlp mlp = shape;
  FEDGEN_CHECK(theta.size() == 2 * shape.input_scale.size() + shape.parameters.size(),
               "{} numbers for a network of {} inputs and {} parameters", theta.size(),
               shape.input_scale.size(), shape.parameters.size());
  auto at = theta.begin();
  for (std::vector<float>* part : {&mlp.input_scale, &mlp.input_shift, &mlp.parameters}) {
    const auto end = at + static_cast<std::ptrdiff_t>(part->size());
    std::copy(at, end, part->begin());
    at = end;
  }
  return mlp;
}

std::vector<float> InitialSigma(const Mlp& shape, double sigma) {
  std::vector<float> result(2 * shape.input_scale.size(), 0.0F);
  result.resize(result.size() + shape.parameters.size(), static_cast<float>(sigma));
  return result;
}

void MeasureNormalisation(const Task& task, int worlds, Key key, Kernel kernel, Mlp& mlp) {
  // Drive the gap follower, then stand at each pose where it decided, and look. Where an episode
  // ended nobody decides, and after a collision ranges are unspecified.
  const WorldSource source = DrawnWorlds(task, key, kernel);
  const int starts = task.world.start.per_world;
  const Policy driver = GapFollower{};
  std::vector<Episode> episodes(static_cast<std::size_t>(worlds) *
                                static_cast<std::size_t>(starts));
  std::vector<Trajectory> ways(episodes.size());
  Rollout(task, driver, kernel).Run(source, starts, 0, episodes, ways);

  const Lidar lidar(task.lidar);
  Batch batch(1, lidar);
  const auto num_inputs = static_cast<std::size_t>(mlp.num_inputs());
  std::vector<float> raw(num_inputs);
  std::vector<double> sum(num_inputs), squares(num_inputs);
  double count = 0;
  World scratch;
  for (std::size_t episode = 0; episode < ways.size(); ++episode) {
    const auto index = static_cast<std::int64_t>(episode);
    const World& world = source(index / starts, static_cast<int>(index % starts), scratch);
    for (std::size_t step = 0; step < ways[episode].controls.size(); ++step) {
      Sense(kernel, lidar, static_cast<float>(task.robot.radius), world, ways[episode].poses[step],
            batch);
      RawInputs(kernel, mlp, batch, 0, raw);
      for (std::size_t input = 0; input < num_inputs; ++input) {
        const auto value = static_cast<double>(raw[input]);
        sum[input] += value;
        squares[input] += value * value;
      }
      ++count;
    }
  }
  for (std::size_t input = 0; input < num_inputs; ++input) {
    const double mean = count > 0 ? sum[input] / count : 0;
    const double variance = count > 0 ? squares[input] / count - mean * mean : 0;
    const double scale = variance > 1e-8 ? 1 / std::sqrt(variance) : 1;
    mlp.input_scale[input] = static_cast<float>(scale);
    mlp.input_shift[input] = static_cast<float>(-mean * scale);
  }
}

}  // namespace fedgen
