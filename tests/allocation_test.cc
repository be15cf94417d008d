// SPDX-License-Identifier: Apache-2.0

// What must not allocate: drawing into a world that was drawn into before, driving, the passes
// through networks that learn, and samples that are learned from.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "fedgen/learn/network_kernel.h"
#include "fedgen/learn/policy_gradient_testing.h"
#include "fedgen/rollout/rollout.h"
#include "tests/tasks.h"

namespace {

std::atomic<std::int64_t> g_num_allocations{0};

[[gnu::noinline]] void* Allocate(std::size_t size, std::size_t alignment) {
  ++g_num_allocations;
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (memory == nullptr) std::abort();
  return memory;
}

// Out of line, so that the compiler does not see free() meet new.
[[gnu::noinline]] void Release(void* memory) { std::free(memory); }

}  // namespace

// The forms without nothrow; those call these.
void* operator new(std::size_t size) { return Allocate(size, alignof(std::max_align_t)); }
void* operator new[](std::size_t size) { return Allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { Release(memory); }
void operator delete[](void* memory) noexcept { Release(memory); }
void operator delete(void* memory, std::size_t) noexcept { Release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { Release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { Release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { Release(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { Release(memory); }

namespace fedgen {
namespace {

template <typename Work>
std::int64_t CountAllocations(const Work& work) {
  const std::int64_t before = g_num_allocations;
  work();
  return g_num_allocations - before;
}

// Without a reader, a compiler may leave out an allocation.
const void* volatile g_reader = nullptr;

TEST(CountAllocations, CountsPlainAndAlignedOnes) {
  EXPECT_EQ(CountAllocations([] { g_reader = std::vector<float>(100).data(); }), 1);
  EXPECT_EQ(CountAllocations([] { g_reader = AlignedVector<float>(100).data(); }), 1);
  EXPECT_EQ(CountAllocations([] { g_reader = std::make_unique<int[]>(100).get(); }), 1);
  EXPECT_EQ(CountAllocations([] {}), 0);
}

TEST(DrawWorld, DoesNotAllocateInAWorldItDrewBefore) {
  for (const Task& task : {TextTask(), TablesTask(), MixedTask()}) {
    for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
      World world;
      const auto draw = [&] {
        for (std::uint64_t w = 0; w < 200; ++w)
          DrawWorld(task.world, task.robot.radius, Key(1).Fork(w), kernel, world);
      };
      EXPECT_GT(CountAllocations(draw), 0);
      EXPECT_EQ(CountAllocations(draw), 0);
    }
  }
}

TEST(Rollout, DoesNotAllocateWhileItDrives) {
  for (const Task& task : {TextTask(), TablesTask(), MixedTask()}) {
    const int starts = task.world.start.per_world;
    std::vector<World> worlds(8);
    for (std::size_t w = 0; w < worlds.size(); ++w) {
      DrawWorld(task.world, task.robot.radius, Key(2).Fork(w), BestKernel(), worlds[w]);
    }
    const WorldSource given = GivenWorlds(worlds);
    std::vector<Episode> episodes(worlds.size() * static_cast<std::size_t>(starts));
    for (const Policy& policy : {Policy(StraightAhead{}), Policy(GapFollower{}),
                                 RandomTextNet(task, Key(3)), RandomTablesNet(task, Key(4))}) {
      for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
        Rollout rollout(task, policy, kernel, 16);
        const auto drive = [&] { rollout.Run(given, starts, 0, episodes); };
        drive();
        EXPECT_EQ(CountAllocations(drive), 0);
      }
    }
  }
}

// Nor do worlds that are drawn as they are used, once every scratch world has held a large one.
TEST(Rollout, DoesNotAllocateForDrawnWorldsThatFit) {
  const Task task = TextTask();
  const Policy policy = StraightAhead{};
  const WorldSource drawn = DrawnWorlds(task, Key(5), BestKernel());
  Rollout rollout(task, policy, BestKernel(), 16);
  std::vector<Episode> episodes(500);
  EXPECT_GT(CountAllocations([&] { rollout.Run(drawn, 1, 0, episodes); }), 0);
  EXPECT_EQ(CountAllocations([&] { rollout.Run(drawn, 1, 500, episodes); }), 0);
}

TEST(Network, DoesNotAllocateAfterItIsMade) {
  for (const Activation activation : {Activation::kRelu, Activation::kTanh}) {
    const NetworkShape shape{{26, 32, 9, 1}, activation};
    const std::vector<float> parameters(NumParameters(shape), 0.1F);
    constexpr int kStride = 32;
    const AlignedVector<float> inputs(NetworkWorkspace::kRows * kStride, 0.5F);
    const InputRows rows{inputs.data(), kStride, NetworkWorkspace::kRows};
    std::vector<float> outputs(NetworkWorkspace::kRows);
    std::vector<float> gradient(parameters.size());
    PackedNetwork network(shape);
    NetworkWorkspace workspace(shape);
    for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
      EXPECT_EQ(CountAllocations([&] {
                  network.Pack(parameters);
                  Forward(kernel, network, rows, workspace, outputs);
                  Backward(kernel, network, rows, outputs, workspace, gradient);
                }),
                0);
    }
  }
}

// A round of learning allocates per step of the optimiser, never per sample: three times, for the
// loop over a minibatch (OrderedParallelFor).
TEST(PolicyGradient, AllocatesNothingForSamples) {
  Task task = TextTask();
  task.episode.horizon = 40;
  for (const int episodes : {32, 128}) {
    Given given;
    given.net = std::get<Mlp>(RandomTextNet(task, Key(6)));
    given.settings.grounds = {{task, 1, episodes}};
    given.settings.options.epochs = 5;
    given.settings.options.minibatch = 1000000;
    given.settings.step.step = 1e-3;
    given.settings.optimizer.kind = OptimizerOptions::Kind::kAdam;
    given.settings.stop.rule = StopOptions::Rule::kNever;
    given.settings.kernel = BestKernel();
    PolicyGradient learner = given.Make();
    std::vector<float> theta = ThetaOf(given.net);
    Round(learner, 1, Key(7), theta);
    learner.Measure(1, 10, theta, Key(7).Fork(1).Fork(0));
    EXPECT_LE(CountAllocations([&] { learner.Improve(1, 10, Key(8), theta); }), 5 * 3)
        << given.experience->steps.size() << " samples";
  }
}

}  // namespace
}  // namespace fedgen
