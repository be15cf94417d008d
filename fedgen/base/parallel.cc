// SPDX-License-Identifier: Apache-2.0
#include "fedgen/base/parallel.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "fedgen/base/check.h"

namespace fedgen {

Result<int> DefaultNumThreads() {
  if (const char* text = std::getenv("FEDGEN_NUM_THREADS"); text != nullptr && *text != '\0') {
    int value = 0;
    const char* end = text + std::strlen(text);
    const auto [parsed_to, error] = std::from_chars(text, end, value);
    if (error == std::errc() && parsed_to == end && value >= 1 && value <= kMaxThreads) {
      return value;
    }
    return Error{
        ErrorCode::kUsage,
        fmt::format("FEDGEN_NUM_THREADS = {:.60}: must be an integer in 1..{}", text, kMaxThreads)};
  }
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

void OrderedParallelFor(std::int64_t num_tasks, int num_threads, int window,
                        const std::function<void(std::int64_t, int)>& work,
                        const std::function<void(std::int64_t)>& finish) {
  FEDGEN_CHECK(num_threads >= 1 && window >= num_threads, "threads {}, window {}", num_threads,
               window);
  std::mutex mutex;  // guards: next_task, next_to_finish, worked, finishing, failure
  std::condition_variable slot_freed;
  std::int64_t next_task = 0;
  std::int64_t next_to_finish = 0;
  bool finishing = false;
  std::exception_ptr failure;  // the first that was thrown
  std::vector<bool> worked(static_cast<std::size_t>(window), false);
  const auto slot = [window](std::int64_t task) { return static_cast<std::size_t>(task % window); };

  const auto take_and_work = [&](int worker, std::unique_lock<std::mutex>& lock) {
    while (true) {
      slot_freed.wait(
          lock, [&] { return next_task >= num_tasks || next_task < next_to_finish + window; });
      if (next_task >= num_tasks) return;
      const std::int64_t task = next_task++;
      lock.unlock();
      work(task, worker);
      lock.lock();
      worked[slot(task)] = true;
      // Whoever completes the oldest unfinished task finishes it and every completed one after it.
      while (!finishing && next_to_finish < num_tasks && worked[slot(next_to_finish)]) {
        finishing = true;
        const std::int64_t oldest = next_to_finish;
        lock.unlock();
        finish(oldest);
        lock.lock();
        finishing = false;
        worked[slot(oldest)] = false;
        next_to_finish = oldest + 1;
        slot_freed.notify_all();
      }
    }
  };
  // Keeps the exception that is being handled, and lets nobody take another task.
  const auto fail = [&](std::unique_lock<std::mutex>& lock) {
    if (!lock.owns_lock()) lock.lock();
    if (!failure) failure = std::current_exception();
    next_task = num_tasks;
    slot_freed.notify_all();
  };
  const auto run = [&](int worker) {
    std::unique_lock lock(mutex);
    try {
      take_and_work(worker, lock);
    } catch (...) {
      fail(lock);
    }
  };

  const int num_workers = static_cast<int>(std::min<std::int64_t>(num_threads, num_tasks));
  std::vector<std::jthread> threads;
  try {
    for (int worker = 1; worker < num_workers; ++worker) threads.emplace_back(run, worker);
  } catch (...) {  // no memory for another thread
    std::unique_lock lock(mutex, std::defer_lock);
    fail(lock);
  }
  if (num_workers > 0) run(0);
  threads.clear();  // joins
  if (failure) std::rethrow_exception(failure);
}

}  // namespace fedgen
