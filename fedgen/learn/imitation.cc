// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/imitation.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "fedgen/base/parallel.h"
#include "fedgen/learn/network_kernel.h"
#include "fedgen/learn/optimizer.h"
#include "fedgen/rollout/rollout.h"

namespace fedgen {
namespace {

constexpr int kLessons = 3;
constexpr std::size_t kRows = NetworkWorkspace::kRows;
// Of the control limit: errors larger than this all weigh the same (Eq. 52).
constexpr float kTolerance = 0.2F;
constexpr std::size_t kMinibatch = 2 * kRows;  // samples of a step
constexpr OptimizerOptions kAdam = {OptimizerOptions::Kind::kAdam};
constexpr StepOptions kStep = {
    .step = 1e-2, .schedule = StepOptions::Schedule::kGeometric, .last = 1e-4};

// Under the key of an imitation.
enum : std::uint64_t { kWorlds = 0, kShuffles = 1 };

// Drives episodes of a lesson and keeps what the student saw and the teacher would do: one for each
// thread.
class Observer final : public RolloutWatcher {
 public:
  Observer(const Lesson& lesson, Kernel kernel, Experience& experience)
      : kernel_(kernel),
        starts_(lesson.task->world.start.per_world),
        lidar_(lesson.task->lidar),
        student_(*lesson.student),
        trace_(*lesson.student, Rollout::kDefaultSlots),
        rollout_(*lesson.task, student_, kernel, Rollout::kDefaultSlots, &trace_),
        teacher_(*lesson.teacher, BodyOf(*lesson.task)),
        teacher_drives_(lesson.teacher_drives),
        controls_(static_cast<std::size_t>(Rollout::kDefaultSlots)),
        experience_(experience) {}

  void Run(const WorldSource& worlds, std::int64_t first, std::size_t count) {
    first_ = static_cast<std::size_t>(first);
    rollout_.Run(worlds, starts_, first, std::span(experience_.episodes).subspan(first_, count), {},
                 this);
  }

  void OnBegin(std::int64_t /*episode*/) override {}

  void OnDecided(std::span<const std::int64_t> episode_of, Batch& batch) override {
    const auto num_slots = static_cast<std::ptrdiff_t>(episode_of.size());
    std::copy_n(batch.control.begin(), num_slots, controls_.begin());
    teacher_.Decide(kernel_, lidar_, static_cast<int>(num_slots), batch);
    for (std::size_t slot = 0; slot < episode_of.size(); ++slot) {
      const std::size_t step =
          experience_.FirstStep(first_ + static_cast<std::size_t>(episode_of[slot])) +
          static_cast<std::size_t>(batch.step[slot]);
      const float* seen = trace_.inputs.data() + slot * static_cast<std::size_t>(trace_.stride);
      std::copy_n(seen, experience_.shape().num_inputs, experience_.row(step));
      experience_.notes[step].target = batch.control[slot];
    }
    if (!teacher_drives_) std::copy_n(controls_.begin(), num_slots, batch.control.begin());
  }

  void OnEnd(std::int64_t /*episode*/, const Episode& /*outcome*/, const Batch& /*batch*/,
             std::size_t /*slot*/) override {}

 private:
  Kernel kernel_;
  int starts_;
  Lidar lidar_;
  Policy student_;
  MlpTrace trace_;
  Rollout rollout_;
  Driver teacher_;
  bool teacher_drives_;
  std::vector<float> controls_;  // [slots] the student's
  Experience& experience_;       // targets: the teacher's controls
  std::size_t first_ = 0;        // episode of the run's first
};

// What the passes over the samples work with.
class Fit {
 public:
  Fit(const Task& task, Kernel kernel, int num_threads, const Experience& experience, Mlp& student)
      : kernel_(kernel),
        num_threads_(num_threads),
        experience_(experience),
        student_(student),
        network_(NetworkShapeOf(student)),
        blocks_(2 * static_cast<std::size_t>(num_threads),
                std::vector<float>(student.parameters.size())),
        sum_(student.parameters.size()) {
    const Lidar lidar(task.lidar);
    for (int i = 0; i < num_threads; ++i) workers_.emplace_back(network_.shape(), lidar);
  }

  // One pass over the samples in random order.
  void Pass(double step, Key key) {
    order_ = experience_.steps;
    Shuffle(key, order_);
    const std::size_t num_steps = std::max<std::size_t>(1, order_.size() / kMinibatch);
    for (std::size_t index = 0; index < num_steps; ++index) {
      const std::size_t begin = order_.size() * index / num_steps;
      const std::size_t end = order_.size() * (index + 1) / num_steps;
      network_.Pack(student_.parameters);
      std::ranges::fill(sum_, 0.0);
      OrderedParallelFor(
          static_cast<std::int64_t>((end - begin + kRows - 1) / kRows), num_threads_,
          static_cast<int>(blocks_.size()),
          [&](std::int64_t task, int worker) {
            const std::size_t at = begin + static_cast<std::size_t>(task) * kRows;
            Differentiate(std::span(order_).subspan(at, std::min(kRows, end - at)),
                          workers_[static_cast<std::size_t>(worker)], SlotOf(task));
          },
          [&](std::int64_t task) {
            const std::vector<float>& block = SlotOf(task);
            for (std::size_t at = 0; at < sum_.size(); ++at) {
              sum_[at] += static_cast<double>(block[at]);
            }
          });
      for (double& value : sum_) value /= static_cast<double>(end - begin);
      Descend(kAdam, sum_, step, memory_, student_.parameters);
    }
  }

 private:
  struct Worker {
    Worker(const NetworkShape& shape, const Lidar& lidar)
        : pass(shape), outputs(kRows), gradients(kRows), batch(kRows, lidar) {}
    NetworkWorkspace pass;
    AlignedVector<float> rows;     // [kRows][row_stride] gathered samples
    AlignedVector<float> outputs;  // [kRows]
    std::vector<float> gradients;  // [kRows] for outputs
    Batch batch;                   // for its controls only
  };

  std::vector<float>& SlotOf(std::int64_t task) {
    return blocks_[static_cast<std::size_t>(task) % blocks_.size()];
  }

  // Eq. 52 for the samples with these indices.
  void Differentiate(std::span<const std::uint32_t> samples, Worker& worker,
                     std::vector<float>& gradient) {
    const std::size_t count = samples.size();
    const InputRows rows = experience_.Gather(kernel_, samples, worker.rows);
    Forward(kernel_, network_, rows, worker.pass, std::span(worker.outputs).first(count));
    OutputsToControls(kernel_, student_, static_cast<int>(count), worker.outputs, worker.batch);
    const float scale = 1.0F / (kTolerance * student_.control_limit);
    for (std::size_t row = 0; row < count; ++row) {
      worker.gradients[row] =
          std::clamp((worker.batch.control[row] - experience_.notes[samples[row]].target) * scale,
                     -1.0F, 1.0F);
    }
    Backward(kernel_, network_, rows, std::span(worker.gradients).first(count), worker.pass,
             gradient);
  }

  Kernel kernel_;
  int num_threads_;
  const Experience& experience_;
  Mlp& student_;
  PackedNetwork network_;
  std::vector<Worker> workers_;             // [threads]
  std::vector<std::vector<float>> blocks_;  // [window] what a block of samples adds
  std::vector<double> sum_;                 // of a step, over its blocks in order
  std::vector<std::uint32_t> order_;
  OptimizerState memory_;
};

}  // namespace

void Attend(const Lesson& lesson, const WorldSource& worlds, Kernel kernel, int num_threads,
            Experience& experience) {
  constexpr std::int64_t kEpisodesAtOnce = 64;
  std::vector<std::unique_ptr<Observer>> observers(static_cast<std::size_t>(num_threads));
  ParallelFor((lesson.end - lesson.begin + kEpisodesAtOnce - 1) / kEpisodesAtOnce, num_threads,
              [&](std::int64_t chunk, int worker) {
                std::unique_ptr<Observer>& observer = observers[static_cast<std::size_t>(worker)];
                if (!observer) observer = std::make_unique<Observer>(lesson, kernel, experience);
                const std::int64_t first = lesson.begin + chunk * kEpisodesAtOnce;
                observer->Run(
                    worlds, first,
                    static_cast<std::size_t>(std::min(kEpisodesAtOnce, lesson.end - first)));
              });
}

void Imitate(const Policy& teacher, const Task& task, const ImitationOptions& options, Key key,
             Kernel kernel, int num_threads, Mlp& student) {
  const WorldSource worlds = DrawnWorlds(task, key.Fork(kWorlds), kernel);
  Experience experience;
  experience.Reset({options.episodes, task.episode.horizon, student.num_inputs()});
  Fit fit(task, kernel, num_threads, experience, student);
  int epoch = 0;
  for (int lesson = 0; lesson < kLessons; ++lesson) {
    Attend({.task = &task,
            .teacher = &teacher,
            .student = &student,
            .teacher_drives = lesson == 0,
            .begin = std::int64_t{options.episodes} * lesson / kLessons,
            .end = std::int64_t{options.episodes} * (lesson + 1) / kLessons},
           worlds, kernel, num_threads, experience);
    experience.ListSteps();
    for (int pass = 0; pass < options.epochs; ++pass, ++epoch) {
      fit.Pass(StepSize(kStep, epoch + 1, kLessons * options.epochs),
               key.Fork(kShuffles).Fork(static_cast<std::uint64_t>(epoch)));
    }
  }
}

}  // namespace fedgen
