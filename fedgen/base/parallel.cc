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
  // Sequentially consistent: notify_one looks whether anybody sleeps, and must not look before the
  // new state can be seen by who is about to sleep, or nobody would ever wake that thread.
  void Set(State state) {
    state_.store(state, std::memory_order_seq_cst);
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

// Runs job(worker) for each worker at the same time, the first on the caller's thread. The job
// catches what it throws; fail() keeps the exception that is being handled and makes the jobs end.
void RunOnThreads(int num_workers, const Job& job, const std::function<void()>& fail) {
  std::vector<std::unique_ptr<Helper>> helpers;
  try {
    helpers.reserve(static_cast<std::size_t>(num_workers));
    for (int worker = 1; worker < num_workers; ++worker) {
      helpers.push_back(Helpers::Kept().Take());
      helpers.back()->Start(job, worker);
    }
  } catch (...) {  // no memory for another thread
    fail();
  }
  if (num_workers > 0) job(0);
  for (std::unique_ptr<Helper>& helper : helpers) {
    helper->Wait();
    Helpers::Kept().Return(std::move(helper));
  }
}

int NumWorkers(std::int64_t num_tasks, int num_threads) {
  return static_cast<int>(std::min<std::int64_t>(num_threads, num_tasks));
}

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

void ParallelFor(std::int64_t num_tasks, int num_threads,
                 const std::function<void(std::int64_t, int)>& work) {
  FEDGEN_CHECK(num_threads >= 1, "threads {}", num_threads);
  std::atomic<std::int64_t> next_task = 0;
  std::mutex mutex;            // guards: failure
  std::exception_ptr failure;  // the first that was thrown
  const auto fail = [&] {
    const std::lock_guard lock(mutex);
    if (!failure) failure = std::current_exception();
    next_task = num_tasks;
  };
  const auto run = [&](int worker) {
    try {
      for (std::int64_t task = next_task++; task < num_tasks; task = next_task++) {
        work(task, worker);
      }
    } catch (...) {
      fail();
    }
  };
  RunOnThreads(NumWorkers(num_tasks, num_threads), std::ref(run), std::ref(fail));
  if (failure) std::rethrow_exception(failure);
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

  // Finishes the oldest task if it is worked, and every worked one after it.
  const auto finish_worked = [&](std::unique_lock<std::mutex>& lock) {
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
  };
  const auto take_and_work = [&](int worker) {
    std::unique_lock lock(mutex);
    while (true) {
      if (worker == 0 || next_task == next_to_finish + window) finish_worked(lock);
      slot_freed.wait(
          lock, [&] { return next_task >= num_tasks || next_task < next_to_finish + window; });
      if (next_task >= num_tasks) return;
      const std::int64_t task = next_task++;
      lock.unlock();
      work(task, worker);
      lock.lock();
      worked[slot(task)] = true;
    }
  };
  const auto fail = [&] {
    const std::lock_guard lock(mutex);
    if (!failure) failure = std::current_exception();
    next_task = num_tasks;
    slot_freed.notify_all();
  };
  const auto run = [&](int worker) {
    try {
      take_and_work(worker);
    } catch (...) {
      fail();
    }
  };
  RunOnThreads(NumWorkers(num_tasks, num_threads), std::ref(run), std::ref(fail));
  std::unique_lock lock(mutex);
  if (!failure) finish_worked(lock);  // what others worked last
  if (failure) std::rethrow_exception(failure);
}

}  // namespace fedgen
