// SPDX-License-Identifier: Apache-2.0

// What must not allocate: drawing into a world that was drawn into before, and driving.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

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

}  // namespace
}  // namespace fedgen
