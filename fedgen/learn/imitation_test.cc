// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/imitation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fedgen/learn/navigation.h"
#include "fedgen/rollout/evaluate.h"
#include "fedgen/sim/observe_kernel.h"
#include "tests/tasks.h"

namespace fedgen {
namespace {

// A short way with few obstacles, as in configs/quick.toml.
Task ShortTask() {
  Task task;
  task.world.walls = {{-3, 0, -3, 6}, {3, 0, 3, 6}, {-3, 0, 3, 0}};
  task.world.random_discs = {{5, 10}, {-3, 3}, {2, 6}, {0.1, 0.25}};
  task.world.goal.offset = {6, 6};
  task.world.disturbance.kind = Disturbance::Kind::kUniformNoise;
  task.world.disturbance.half_width = 0.1;
  task.episode.horizon = 100;
  return task;
}

Mlp Network(const Task& task, OutputMap output_map, double half_width, Key key) {
  MlpOptions options;
  options.hidden = {20, 20};
  options.range_code = RangeCode::kInverse;
  options.output_map = output_map;
  Mlp mlp = MakeMlp(options, BodyOf(task));
  DrawParameters(key, half_width, mlp);
  return mlp;
}

double SafeRateOf(const Task& task, const Policy& policy) {
  const EvaluateOptions options{.num_worlds = 4000, .kernel = BestKernel()};
  return SafeRate(Evaluate(task, policy, DrawnWorlds(task, Key(77), BestKernel()), options));
}

// The standard deviation of either rate over 4000 worlds is at most 0.008.
TEST(Imitate, MakesAStudentNearlyAsSafeAsTheGapFollower) {
  const Task task = ShortTask();
  const double teachers = SafeRateOf(task, GapFollower{});
  for (const OutputMap output_map : {OutputMap::kTanh, OutputMap::kClamp}) {
    Mlp student = Network(task, output_map, 0.3, Key(1));
    MeasureNormalisation(task, 100, Key(2), BestKernel(), student);
    const Mlp before = student;
    Imitate(GapFollower{}, task, {.episodes = 1500, .epochs = 15}, Key(3), BestKernel(), 2,
            student);
    EXPECT_LT(SafeRateOf(task, before), teachers - 0.2);
    EXPECT_GT(SafeRateOf(task, student), teachers - 0.04);
    EXPECT_EQ(student.input_scale, before.input_scale);
    EXPECT_EQ(student.input_shift, before.input_shift);
  }
}

// In every slot of the batch, in every step: the same episodes as without a lesson, and at each
// pose what the student sees and the teacher does there.
TEST(Attend, LetsOneDriveAndAsksTheTeacher) {
  constexpr int kEpisodes = 150;  // in two chunks and a half
  constexpr int kBegin = 10;
  const Task task = ShortTask();
  const Mlp student = Network(task, OutputMap::kTanh, 1.0, Key(21));
  const Policy student_policy = student;
  const Policy teacher = GapFollower{};
  const WorldSource worlds = DrawnWorlds(task, Key(22), BestKernel());
  const Lidar lidar(task.lidar);
  Batch batch(1, lidar);
  MlpTrace trace(student, batch.capacity);
  Driver student_there(student_policy, BodyOf(task), &trace);
  Driver teacher_there(teacher, BodyOf(task));
  for (const bool teacher_drives : {true, false}) {
    Experience experience;
    experience.Reset({kBegin + kEpisodes, task.episode.horizon, student.num_inputs()});
    Attend({&task, &teacher, &student, teacher_drives, kBegin, kBegin + kEpisodes}, worlds,
           BestKernel(), 2, experience);
    std::vector<Episode> episodes(kEpisodes);
    std::vector<Trajectory> ways(kEpisodes);
    Rollout(task, teacher_drives ? teacher : student_policy, BestKernel())
        .Run(worlds, 1, kBegin, episodes, ways);
    for (std::size_t at = 0; at < kEpisodes; ++at) {
      const Episode& attended = experience.episodes[kBegin + at];
      ASSERT_EQ(attended.outcome, episodes[at].outcome) << at;
      ASSERT_EQ(attended.steps, episodes[at].steps) << at;
      ASSERT_EQ(attended.goal_distance, episodes[at].goal_distance) << at;
      World scratch;
      const World& world = worlds(static_cast<std::int64_t>(kBegin + at), scratch);
      for (std::size_t step = 0; step < ways[at].controls.size(); ++step) {
        Sense(BestKernel(), lidar, static_cast<float>(task.robot.radius), world,
              ways[at].poses[step], batch);
        student_there.Decide(BestKernel(), lidar, 1, batch);
        teacher_there.Decide(BestKernel(), lidar, 1, batch);
        const std::size_t sample = experience.FirstStep(kBegin + at) + step;
        ASSERT_EQ(experience.notes[sample].target, batch.control[0]) << at << ", step " << step;
        const float* row = experience.row(sample);
        for (std::size_t in = 0; in < static_cast<std::size_t>(student.num_inputs()); ++in) {
          ASSERT_EQ(row[in], trace.inputs[in]) << at << ", step " << step << ", input " << in;
        }
      }
    }
  }
}

// With few episodes in a dense world a student that has only watched its teacher errs into places
// that it knows nothing about. Without the lessons in which it drives it arrives in 0.919 of
// worlds, with them in 0.975; the standard deviation of either is at most 0.004.
TEST(Imitate, LearnsWhereItsOwnErrorsLead) {
  const Task task = TextTask();
  Mlp student = Network(task, OutputMap::kTanh, 1.0, Key(11));
  MeasureNormalisation(task, 100, Key(12), BestKernel(), student);
  Imitate(GapFollower{}, task, {.episodes = 450, .epochs = 20}, Key(13), BestKernel(), 2, student);
  EXPECT_GT(SafeRateOf(task, student), 0.95);
}

// How far two networks steer apart, in units of the limit: root mean square over the poses that the
// second one meets.
double Difference(const Task& task, const Mlp& one, const Mlp& other) {
  constexpr int kWorlds = 200;
  const WorldSource worlds = DrawnWorlds(task, Key(78), BestKernel());
  const Policy driver = other;
  std::vector<Episode> episodes(kWorlds);
  std::vector<Trajectory> ways(kWorlds);
  Rollout(task, driver, BestKernel()).Run(worlds, 1, 0, episodes, ways);
  const Lidar lidar(task.lidar);
  Batch batch(1, lidar);
  const Policy judged = one;
  Driver judge(judged, BodyOf(task));
  double squares = 0;
  double count = 0;
  World scratch;
  for (std::size_t world = 0; world < ways.size(); ++world) {
    const World& drawn = worlds(static_cast<std::int64_t>(world), scratch);
    for (std::size_t step = 0; step < ways[world].controls.size(); ++step) {
      Sense(BestKernel(), lidar, static_cast<float>(task.robot.radius), drawn,
            ways[world].poses[step], batch);
      judge.Decide(BestKernel(), lidar, 1, batch);
      const double difference = static_cast<double>(batch.control[0] - ways[world].controls[step]) /
                                ControlLimit(task.robot);
      squares += difference * difference;
      ++count;
    }
  }
  return std::sqrt(squares / count);
}

// There are parameters that do exactly what the teacher does, so the error goes to 0.
TEST(Imitate, ApproachesATeacherOfItsOwnShape) {
  const Task task = ShortTask();
  for (const OutputMap output_map : {OutputMap::kTanh, OutputMap::kClamp}) {
    const Mlp teacher = Network(task, output_map, 1.0, Key(5));
    Mlp student = Network(task, output_map, 0.3, Key(6));
    const double before = Difference(task, student, teacher);
    Imitate(teacher, task, {.episodes = 300, .epochs = 40}, Key(7), BestKernel(), 2, student);
    EXPECT_LT(Difference(task, student, teacher), 0.1 * before) << before;
  }
}

TEST(Imitate, HasTheSameBitsForAnyThreadsAndKernel) {
  Task task = MixedTask();
  task.episode.horizon = 40;
  const Mlp first = Network(task, OutputMap::kTanh, 0.3, Key(8));
  const auto learned = [&](Kernel kernel, int num_threads, Key key) {
    Mlp student = first;
    Imitate(GapFollower{}, task, {.episodes = 200, .epochs = 2}, key, kernel, num_threads, student);
    return student.parameters;
  };
  const std::vector<float> expected = learned(Kernel::kScalar, 1, Key(9));
  EXPECT_NE(expected, first.parameters);
  EXPECT_EQ(learned(Kernel::kScalar, 3, Key(9)), expected);
  EXPECT_EQ(learned(BestKernel(), 1, Key(9)), expected);
  EXPECT_EQ(learned(BestKernel(), 8, Key(9)), expected);
  EXPECT_NE(learned(BestKernel(), 1, Key(10)), expected);
}

}  // namespace
}  // namespace fedgen
