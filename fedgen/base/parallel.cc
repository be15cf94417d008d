// SPDX-License-Identifier: Apache-2.0
#include "fedgen/base/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "fedgen/base/check.h"

namespace fedgen {
namespace {

using Job = std::function<void(int worker)>;

// A thread that stays when its job is done. Starting a thread takes about as long as the work
// between two steps of a small network, of which a round has dozens.
class Helper {
 public:
  Helper() : thread_([this] { Serve(); }) {}
  ~Helper() {
    Wait();
    Set(kQuit);
  }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  /// The job must outlive Wait().
  void Start(const Job& job, int worker) {
    job_ = &job;
    worker_ = worker;
    Set(kBusy);
  }
  void Wait() { WaitWhile(kBusy); }

 private:
  enum State : int { kIdle, kBusy, kQuit };

  void Serve() {
    for (WaitWhile(kIdle); state_.load(std::memory_order_acquire) != kQuit; WaitWhile(kIdle)) {
      (*job_)(worker_);
      Set(kIdle);
    }
  }
  void Set(State state) {
    state_.store(state, std::memory_order_release);
    state_.notify_one();
  }
  // Looks for some tens of microseconds before it sleeps: waking a thread takes longer than that.
  void WaitWhile(State state) const {
    constexpr int kLooks = 2000;
    for (int look = 0; look < kLooks; ++look) {
      if (state_.load(std::memory_order_acquire) != state) return;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    state_.wait(state, std::memory_order_acquire);
  }

  std::atomic<int> state_ = kIdle;
  const Job* job_ = nullptr;  // these two are written while idle, read while busy
  int worker_ = 0;
  std::jthread thread_;  // the last member: it begins when all others are there
};

// The helpers that have nothing to do. How many threads work at a time is up to who calls; these
// are only kept from one call to the next.
class Helpers {
 public:
  std::unique_ptr<Helper> Take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<Helper>();
    std::unique_ptr<Helper> helper = std::move(idle_.back());
    idle_.pop_back();
    return helper;
  }
  void Return(std::unique_ptr<Helper> helper) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(helper));
  }
  static Helpers& Kept() {
    static Helpers kept;
    return kept;
  }

 private:
  std::mutex mutex_;  // guards: idle_
  std::vector<std::unique_ptr<Helper>> idle_;
};

}  // namespace

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
  const Job job = std::ref(run);
  std::vector<std::unique_ptr<Helper>> helpers;
  try {
    helpers.reserve(static_cast<std::size_t>(num_workers));
    for (int worker = 1; worker < num_workers; ++worker) {
      helpers.push_back(Helpers::Kept().Take());
      helpers.back()->Start(job, worker);
    }
  } catch (...) {  // no memory for another thread
    std::unique_lock lock(mutex, std::defer_lock);
    fail(lock);
  }
  if (num_workers > 0) run(0);
  for (std::unique_ptr<Helper>& helper : helpers) {
    helper->Wait();
    Helpers::Kept().Return(std::move(helper));
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace fedgen
