// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/experience.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "fedgen/learn/normal_kernel.h"
#include "fedgen/policy/mlp_kernel.h"
#include "fedgen/sim/move_kernel.h"
#include "fedgen/sim/observe_kernel.h"
#include "fedgen/world/way_map.h"
#include "tests/tasks.h"

namespace fedgen {
namespace {

double Draw(Key key, std::uint64_t index, double low, double high) {
  return low + (high - low) * static_cast<double>(UnitFloat(key.Block(index)[0]));
}

constexpr int kHorizon = 40;

// Episodes of every outcome and of many lengths, 0 too, with distances and values by chance.
Experience MadeUp(Key key, bool with_values) {
  Experience experience;
  experience.Reset({60, kHorizon, 3});
  for (std::size_t e = 0; e < experience.episodes.size(); ++e) {
    Episode& episode = experience.episodes[e];
    episode.outcome = static_cast<Outcome>(e % 3);
    episode.steps = episode.outcome == Outcome::kTimedOut
                        ? kHorizon
                        : UniformInt(key.Block(e)[0], e < 6 ? 0 : 1, e < 6 ? 1 : kHorizon);
  }
  for (std::size_t at = 0; at < experience.distances.size(); ++at) {
    experience.distances[at] = static_cast<float>(Draw(key.Fork(1), at, 0, 10));
  }
  for (std::size_t at = 0; at < experience.values.size(); ++at) {
    experience.values[at] = with_values ? static_cast<float>(Draw(key.Fork(2), at, -1, 1)) : 0.0F;
  }
  return experience;
}

const float* DistancesOf(const Experience& experience, std::size_t episode) {
  return experience.distances.data() + episode * (kHorizon + 1);
}

// e^(-cost_rate times the time that n steps take), by the formula.
double Left(const EpisodeOptions& options, std::size_t n) {
  const bool index = options.clock == EpisodeOptions::Clock::kStepIndex && n > 0;
  return std::exp(-options.cost_rate * options.time_step *
                  static_cast<double>(n - (index ? 1 : 0)));
}

// Eq. 46, one step at a time.
double Reward(const RewardOptions& reward, const EpisodeOptions& options,
              const Experience& experience, std::size_t episode, std::size_t time) {
  const Episode& outcome = experience.episodes[episode];
  const float* distances = DistancesOf(experience, episode);
  double gain = reward.distance_weight *
                (static_cast<double>(distances[time]) - static_cast<double>(distances[time + 1]));
  gain -= reward.time_weight * (Left(options, time) - Left(options, time + 1));
  const auto num_steps = static_cast<std::size_t>(outcome.steps);
  if (time + 1 == num_steps && outcome.outcome != Outcome::kReachedGoal) {
    gain -= reward.failure_weight * Left(options, num_steps);
  }
  return gain;
}

std::vector<EpisodeOptions> Clocks() {
  EpisodeOptions elapsed, index;
  elapsed.horizon = index.horizon = kHorizon;
  elapsed.cost_rate = index.cost_rate = 0.7;
  index.clock = EpisodeOptions::Clock::kStepIndex;
  return {elapsed, index};
}

// Eq. 47 as it is printed: every advantage is the sum of all surprises after it.
TEST(GiveCredit, IsTheSumOfDiscountedSurprises) {
  for (const EpisodeOptions& options : Clocks()) {
    for (const double discount : {1.0, 0.995, 0.5}) {
      for (const double trace : {1.0, 0.95, 0.3, 0.0}) {
        const RewardOptions reward{0.3, 2, 1.5};
        Experience experience = MadeUp(Key(1), true);
        GiveCredit(reward, options, discount, trace, 0, experience.episodes.size(), experience);
        for (std::size_t e = 0; e < experience.episodes.size(); ++e) {
          const auto num_steps = static_cast<std::size_t>(experience.episodes[e].steps);
          const float* values = experience.values.data() + experience.FirstStep(e);
          for (std::size_t t = 0; t < num_steps; ++t) {
            double advantage = 0;
            for (std::size_t later = t; later < num_steps; ++later) {
              const double next =
                  later + 1 < num_steps ? static_cast<double>(values[later + 1]) : 0;
              const double surprise = Reward(reward, options, experience, e, later) +
                                      discount * next - static_cast<double>(values[later]);
              advantage += std::pow(discount * trace, static_cast<double>(later - t)) * surprise;
            }
            const std::size_t step = experience.FirstStep(e) + t;
            ASSERT_NEAR(experience.notes[step].advantage, advantage, 2e-5) << e << ", " << t;
            ASSERT_NEAR(experience.notes[step].target, advantage + static_cast<double>(values[t]),
                        2e-5);
          }
        }
      }
    }
  }
}

// With weights 0, 1, 1 the rewards add up to -J; progress adds the distance gained (Eq. 46).
TEST(GiveCredit, AddsUpToTheCostAndTheDistanceGained) {
  for (const EpisodeOptions& options : Clocks()) {
    for (const double weight : {0.0, 0.25}) {
      Experience experience = MadeUp(Key(2), false);
      GiveCredit({weight, 1, 1}, options, 1, 1, 0, experience.episodes.size(), experience);
      int driven = 0;
      for (std::size_t e = 0; e < experience.episodes.size(); ++e) {
        const Episode& episode = experience.episodes[e];
        if (episode.steps == 0) continue;
        const float* distances = DistancesOf(experience, e);
        const double gained =
            static_cast<double>(distances[0]) - static_cast<double>(distances[episode.steps]);
        ASSERT_NEAR(experience.notes[experience.FirstStep(e)].advantage,
                    weight * gained - Cost(options, episode), 1e-6);
        ++driven;
      }
      EXPECT_GE(driven, 54);
    }
  }
}

// Time and failure weigh what they say, each for itself: an arrival costs time only, and the two
// parts of a failure are 1 - left and left.
TEST(GiveCredit, WeighsTimeAndFailureApart) {
  const EpisodeOptions options = Clocks()[0];
  for (const auto& [time_weight, failure_weight] :
       {std::pair(0.0, 1.0), std::pair(1.0, 0.0), std::pair(2.0, 1.5)}) {
    Experience experience = MadeUp(Key(3), false);
    GiveCredit({0, time_weight, failure_weight}, options, 1, 1, 0, experience.episodes.size(),
               experience);
    for (std::size_t e = 0; e < experience.episodes.size(); ++e) {
      const Episode& episode = experience.episodes[e];
      if (episode.steps == 0) continue;
      const double left = Left(options, static_cast<std::size_t>(episode.steps));
      const double failed = episode.outcome == Outcome::kReachedGoal ? 0 : failure_weight * left;
      ASSERT_NEAR(experience.notes[experience.FirstStep(e)].advantage,
                  -time_weight * (1 - left) - failed, 1e-6);
    }
  }
}

TEST(GiveCredit, TouchesOnlyItsEpisodes) {
  Experience experience = MadeUp(Key(4), true);
  for (Experience::Note& note : experience.notes) note.advantage = note.target = 99.0F;
  GiveCredit({}, Clocks()[0], 1, 1, 20, 10, experience);
  for (std::size_t step = 0; step < experience.notes.size(); ++step) {
    const std::size_t episode = step / kHorizon;
    const bool given =
        episode >= 20 && episode < 30 &&
        step % kHorizon < static_cast<std::size_t>(experience.episodes[episode].steps);
    ASSERT_EQ(experience.notes[step].advantage != 99.0F, given) << step;
    ASSERT_EQ(experience.notes[step].target != 99.0F, given) << step;
  }
}

// Three starts a world, pushes, boxes, a normalised network that sees the goal.
Task SmallTask() {
  Task task = MixedTask();
  task.lidar.beams = 9;
  task.episode.horizon = kHorizon;
  return task;
}

Mlp Net(const Task& task) {
  MlpOptions options;
  options.hidden = {7};
  options.goal_inputs = true;
  Mlp mlp = MakeMlp(options, task.lidar.beams, task.lidar.range, ControlLimit(task.robot));
  DrawParameters(Key(5), 1, mlp);
  for (std::size_t input = 0; input < mlp.input_scale.size(); ++input) {
    mlp.input_scale[input] = 0.5F + 0.02F * static_cast<float>(input);
    mlp.input_shift[input] = 0.3F - 0.05F * static_cast<float>(input);
  }
  return mlp;
}

struct How {
  int episodes = 300;  // three chunks
  double noise = 0.4;
  bool way = false;
  std::size_t first = 0;
  Kernel kernel = BestKernel();
  int num_threads = 2;
};

Experience Explored(const Task& task, const Mlp& mlp, const How& how) {
  Practice practice;
  practice.task = &task;
  practice.policy = &mlp;
  practice.worlds = DrawnWorlds(task, Key(6), how.kernel);
  practice.first = how.first;
  practice.episodes = how.episodes;
  practice.noise = how.noise;
  practice.noise_key = Key(7);
  practice.way = how.way;
  practice.kernel = how.kernel;
  practice.num_threads = how.num_threads;
  Experience experience;
  experience.Reset(
      {static_cast<int>(how.first) + how.episodes, task.episode.horizon, mlp.num_inputs()});
  const std::int64_t steps = Explore(practice, experience);
  experience.ListSteps();
  EXPECT_EQ(static_cast<std::size_t>(steps), experience.steps.size());
  return experience;
}

// Every number of an episode as bits.
std::vector<std::uint32_t> BitsOf(const Experience& experience, std::size_t episode) {
  const Episode& outcome = experience.episodes[episode];
  std::vector<std::uint32_t> bits = {static_cast<std::uint32_t>(outcome.outcome),
                                     static_cast<std::uint32_t>(outcome.steps)};
  const auto add = [&](const float* values, int count) {
    for (int at = 0; at < count; ++at) bits.push_back(std::bit_cast<std::uint32_t>(values[at]));
  };
  add(&outcome.goal_distance, 1);
  const std::size_t first = experience.FirstStep(episode);
  add(experience.distances.data() +
          episode * static_cast<std::size_t>(experience.shape().horizon + 1),
      outcome.steps + 1);
  for (int t = 0; t < outcome.steps; ++t) {
    const std::size_t step = first + static_cast<std::size_t>(t);
    add(experience.row(step), experience.shape().num_inputs + Experience::kCriticInputs);
    const auto& [output, noise, advantage, target] = experience.notes[step];
    const auto& [x, y, cos, sin] = experience.stands[step];
    for (const float number : {output, noise, x, y, cos, sin}) add(&number, 1);
  }
  return bits;
}

// What was written down, played back: the noise is the key's, it is added before the output
// becomes a control (Eq. 13, 45a), and the robot that is driven so stands where it was noted to
// stand, bit for bit. There it sees what the row says.
TEST(Explore, WritesDownWhatReplays) {
  const Task task = SmallTask();
  const Mlp mlp = Net(task);
  const auto radius = static_cast<float>(task.robot.radius);
  const auto time_step = static_cast<float>(task.episode.time_step);
  const double longest = task.robot.speed * task.episode.time_step * kHorizon;
  const Lidar lidar(task.lidar);
  for (const bool way : {false, true}) {
    const Experience experience = Explored(task, mlp, {.episodes = 150, .way = way});
    const WorldSource worlds = DrawnWorlds(task, Key(6), Kernel::kScalar);
    Batch batch(1, lidar), looking(1, lidar);
    AlignedVector<float> noise(PaddedNormals(kHorizon)), noisy(batch.control.size());
    std::vector<float> raw(static_cast<std::size_t>(mlp.num_inputs()));
    WayMap map(Kernel::kScalar);
    for (std::size_t e = 0; e < 150; ++e) {
      World scratch;
      const World& world = worlds(static_cast<std::int64_t>(e / 3), scratch);
      if (way) map.Make(world, task.robot.radius);
      const auto distance_at = [&](float x, float y) {
        return way ? map.Distance(x, y) : static_cast<float>(DistanceToGoal(world.goal, x, y));
      };
      DrawNormals(Kernel::kScalar, Key(7).Fork(e), noise);
      batch.Place(0, world, world.starts[e % 3], world.disturbance.key.Fork(e % 3));
      FaceHeading(Kernel::kScalar, 0, 1, batch);
      const auto num_steps = static_cast<std::size_t>(experience.episodes[e].steps);
      for (std::size_t t = 0; t < num_steps; ++t) {
        const std::size_t step = experience.FirstStep(e) + t;
        ASSERT_EQ(experience.stands[step].x, batch.x[0]) << "episode " << e << ", step " << t;
        ASSERT_EQ(experience.stands[step].y, batch.y[0]);
        ASSERT_EQ(experience.stands[step].cos, batch.cos[0]);
        ASSERT_EQ(experience.stands[step].sin, batch.sin[0]);
        ASSERT_EQ(experience.notes[step].noise, noise[t]);
        // What it sees.
        Sense(Kernel::kScalar, lidar, radius, world, {batch.x[0], batch.y[0], batch.heading[0]},
              looking);
        RawInputs(Kernel::kScalar, mlp, looking, 0, raw);
        const float* row = experience.row(step);
        for (std::size_t input = 0; input < raw.size(); ++input) {
          ASSERT_NEAR(row[input], raw[input] * mlp.input_scale[input] + mlp.input_shift[input],
                      1e-5);
        }
        // What only the critic sees.
        const float* extra = row + raw.size();
        const float distance = distance_at(batch.x[0], batch.y[0]);
        ASSERT_NEAR(experience.distances[e * (kHorizon + 1) + t], distance, 1e-5);
        ASSERT_NEAR(extra[0], 2.0 * static_cast<double>(t) / kHorizon, 1e-6);
        ASSERT_NEAR(extra[1], 2 * static_cast<double>(distance) / longest, 1e-5);
        double forward = looking.goal_forward[0], left = looking.goal_left[0];
        if (way) {
          const auto [x, y] = map.Direction(batch.x[0], batch.y[0]);
          forward = x * batch.cos[0] + y * batch.sin[0];
          left = y * batch.cos[0] - x * batch.sin[0];
        }
        const double length = std::hypot(forward, left);
        ASSERT_NEAR(extra[2], length > 0 ? forward / length : 0, 1e-5);
        ASSERT_NEAR(extra[3], length > 0 ? left / length : 0, 1e-5);
        // What it does.
        noisy[0] = experience.notes[step].output + 0.4F * noise[t];
        OutputsToControls(Kernel::kScalar, mlp, 1, noisy, batch);
        Disturb(Kernel::kScalar, 1, batch);
        Advance(Kernel::kScalar, task.robot, time_step, 1, batch);
      }
      ASSERT_NEAR(experience.distances[e * (kHorizon + 1) + num_steps],
                  distance_at(batch.x[0], batch.y[0]), 1e-5);
    }
  }
}

// Without noise it drives as everybody does.
TEST(Explore, DrivesAsRolloutWithoutNoise) {
  const Task task = SmallTask();
  const Mlp mlp = Net(task);
  const Policy policy = mlp;
  std::vector<Episode> plain(300);
  std::vector<Trajectory> ways(300);
  Rollout(task, policy, BestKernel())
      .Run(DrawnWorlds(task, Key(6), BestKernel()), 3, 0, plain, ways);
  const Experience still = Explored(task, mlp, {.noise = 0});
  const Experience noisy = Explored(task, mlp, {});
  int different = 0;
  for (std::size_t e = 0; e < plain.size(); ++e) {
    ASSERT_EQ(still.episodes[e].outcome, plain[e].outcome) << "episode " << e;
    ASSERT_EQ(still.episodes[e].steps, plain[e].steps);
    ASSERT_EQ(still.episodes[e].goal_distance, plain[e].goal_distance);
    for (std::size_t t = 0; t < ways[e].controls.size(); ++t) {
      ASSERT_EQ(still.stands[still.FirstStep(e) + t].x, ways[e].poses[t].x);
      ASSERT_EQ(still.stands[still.FirstStep(e) + t].y, ways[e].poses[t].y);
    }
    if (noisy.episodes[e].steps != plain[e].steps) ++different;
  }
  EXPECT_GT(different, 30);
}

TEST(Explore, GivesTheSameBitsForAnyThreadsAndKernel) {
  const Task task = SmallTask();
  const Mlp mlp = Net(task);
  for (const bool way : {false, true}) {
    const int episodes = way ? 12 : 300;  // ways take long to find
    const Experience expected = Explored(
        task, mlp, {.episodes = episodes, .way = way, .kernel = Kernel::kScalar, .num_threads = 1});
    for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
      for (const int num_threads : way ? std::vector{2} : std::vector{1, 2, 3, 8}) {
        const Experience again = Explored(
            task, mlp,
            {.episodes = episodes, .way = way, .kernel = kernel, .num_threads = num_threads});
        ASSERT_EQ(again.steps, expected.steps);
        for (std::size_t e = 0; e < expected.episodes.size(); ++e) {
          ASSERT_EQ(BitsOf(again, e), BitsOf(expected, e))
              << num_threads << " threads, " << KernelName(kernel) << ", episode " << e;
        }
      }
    }
  }
}

// Episode e is the same whichever others there are and wherever it is written to.
TEST(Explore, GivesAnEpisodeWhatItsOwnKeySays) {
  const Task task = SmallTask();
  const Mlp mlp = Net(task);
  const Experience all = Explored(task, mlp, {});
  const Experience few = Explored(task, mlp, {.episodes = 12, .first = 21});
  for (std::size_t e = 0; e < 12; ++e) {
    ASSERT_EQ(BitsOf(few, 21 + e), BitsOf(all, e)) << "episode " << e;
  }
  EXPECT_NE(BitsOf(all, 0), BitsOf(all, 3));
}

TEST(Experience, ListsTheStepsThatWereTakenAndKnowsItsSize) {
  Experience experience;
  experience.Reset({4, 5, 3});
  experience.episodes[0].steps = 2;
  experience.episodes[1].steps = 0;
  experience.episodes[2].steps = 5;
  experience.episodes[3].steps = 1;
  experience.ListSteps();
  EXPECT_EQ(experience.steps, (std::vector<std::uint32_t>{0, 1, 10, 11, 12, 13, 14, 15}));

  const Experience::Shape shape{100, 50, 26};
  experience.Reset(shape);
  const std::size_t bytes = 4 * (experience.rows.size() + experience.distances.size() +
                                 experience.values.size() + experience.steps.capacity()) +
                            16 * (experience.notes.size() + experience.stands.size());
  EXPECT_NEAR(Experience::Bytes(shape), static_cast<double>(bytes), 4.0 * shape.episodes);
  // A smaller round keeps the room, a larger one grows it.
  experience.Reset({10, 50, 26});
  EXPECT_EQ(experience.episodes.size(), 10U);
  EXPECT_EQ(experience.notes.size(), 5000U);
  experience.Reset({200, 50, 26});
  EXPECT_EQ(experience.notes.size(), 10000U);
}

}  // namespace
}  // namespace fedgen
