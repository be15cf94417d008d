// SPDX-License-Identifier: Apache-2.0

// fedgen-kernel-bench: what each kernel costs alone, in slot-steps (one robot, one step) per
// second.
//
// Robots stand where a trained policy brought them, each at a random step of its own episode, since
// the cost of looking around depends on what is near.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/bench_task.h"
#include "fedgen/policy/mlp_kernel.h"
#include "fedgen/policy/policy_file.h"
#include "fedgen/rollout/rollout.h"
#include "fedgen/sim/move_kernel.h"
#include "fedgen/sim/observe_kernel.h"

namespace fedgen {
namespace {

/// A batch of robots on their way.
struct Scene {
  Scene(std::string_view net, Mlp the_mlp);

  Task task;
  Mlp mlp;
  Lidar lidar;
  Batch batch;
  MlpWorkspace workspace;
  std::vector<World> worlds;  // [num_slots]
  int num_slots() const { return batch.capacity; }
};

Scene::Scene(std::string_view net, Mlp the_mlp)
    : task(BenchTask(net)),
      mlp(std::move(the_mlp)),
      lidar(task.lidar),
      batch(Rollout::kDefaultSlots, lidar),
      workspace(mlp),
      worlds(static_cast<std::size_t>(batch.capacity)) {
  const Key key = Key(1).Fork(Stream::kEvaluation);
  const WorldSource source = DrawnWorlds(task, key, BestKernel());
  for (std::size_t world = 0; world < worlds.size(); ++world) {
    source(static_cast<std::int64_t>(world), worlds[world]);
  }
  const Policy policy = mlp;
  std::vector<Episode> episodes(worlds.size());
  std::vector<Trajectory> ways(worlds.size());
  Rollout(task, policy, BestKernel()).Run(GivenWorlds(worlds), 1, 0, episodes, ways);
  for (int slot = 0; slot < num_slots(); ++slot) {
    const auto at = static_cast<std::size_t>(slot);
    const int step = UniformInt(key.Block(at)[0], 0, std::max(0, episodes[at].steps - 1));
    batch.Place(slot, worlds[at], ways[at].poses[static_cast<std::size_t>(step)], key.Fork(at));
    batch.step[at] = step;
  }
  FaceHeading(BestKernel(), 0, num_slots(), batch);
  Observe(BestKernel(), lidar, static_cast<float>(task.robot.radius), 0, num_slots(), batch);
}

using Body = void (*)(Kernel kernel, Scene& scene);

void ObserveOnce(Kernel kernel, Scene& scene) {
  Observe(kernel, scene.lidar, static_cast<float>(scene.task.robot.radius), 0, scene.num_slots(),
          scene.batch);
}

void DecideOnce(Kernel kernel, Scene& scene) {
  DecideMlp(kernel, scene.mlp, scene.num_slots(), scene.workspace, scene.batch);
}

// Steps go on, since noise is drawn for many of them at once.
void DisturbOnce(Kernel kernel, Scene& scene) {
  Disturb(kernel, scene.num_slots(), scene.batch);
  for (auto& step : scene.batch.step) ++step;
}

// Straight ahead, for ever: what a robot meets is of no concern here.
void AdvanceOnce(Kernel kernel, Scene& scene) {
  Advance(kernel, scene.task.robot, static_cast<float>(scene.task.episode.time_step),
          scene.num_slots(), scene.batch);
}

void DrawOnce(Kernel kernel, Scene& scene) {
  const Key key = Key(1).Fork(Stream::kTraining);
  std::uint64_t number = 0;
  for (World& world : scene.worlds) {
    DrawWorld(scene.task.world, scene.task.robot.radius, key.Fork(number++), kernel, world);
  }
}

void Register(const std::string& name, Kernel kernel, Body body, std::string_view net,
              const Mlp& mlp) {
  benchmark::RegisterBenchmark(fmt::format("{}/{}/{}", name, net, KernelName(kernel)).c_str(),
                               [kernel, body, net, mlp](benchmark::State& state) {
                                 Scene scene(net, mlp);
                                 for (auto _ : state) {
                                   body(kernel, scene);
                                   benchmark::ClobberMemory();
                                 }
                                 state.SetItemsProcessed(state.iterations() * scene.num_slots());
                               });
}

int Main(int argc, char** argv) {
  std::vector<Kernel> kernels = {Kernel::kScalar};
  if (BestKernel() != Kernel::kScalar) kernels.insert(kernels.begin(), BestKernel());
  const std::pair<const char*, Body> bodies[] = {{"Observe", ObserveOnce},
                                                 {"DecideMlp", DecideOnce},
                                                 {"Disturb", DisturbOnce},
                                                 {"Advance", AdvanceOnce},
                                                 {"DrawWorld", DrawOnce}};
  for (const auto& [name, body] : bodies) {
    for (const std::string_view net : kBenchNets) {
      const Result<Mlp> mlp = LoadPolicy(BenchPolicyPath(net));
      if (!mlp) {
        fmt::print(stderr, "fedgen-kernel-bench: {}\n", mlp.error().message);
        return 1;
      }
      for (const Kernel kernel : kernels) Register(name, kernel, body, net, *mlp);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace fedgen

int main(int argc, char** argv) { return fedgen::Main(argc, argv); }
