// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "fedgen/base/result.h"

namespace fedgen {

// Parallelism is an argument, never a global: who calls says how many threads.

inline constexpr int kMaxThreads = 1024;

/// The threads to use when nobody says: FEDGEN_NUM_THREADS, or the cores this process may run on if
/// it is not set or empty. Anything but an integer in 1..kMaxThreads there is a usage error.
Result<int> DefaultNumThreads();

/// Calls work(task, worker) once for each task in [0, num_tasks) on num_threads threads (the caller
/// is one of them), in no order that anybody may rely on: a task writes to a place of its own.
/// A worker index in [0, num_threads) is used by one thread at a time, so it can own a workspace.
///
/// If work throws (only libraries do: out of memory), no further task begins, all threads end, and
/// the first exception leaves this call.
///
/// Threads are kept from one call to the next, so a call costs microseconds, not a thread's start.
void ParallelFor(std::int64_t num_tasks, int num_threads,
                 const std::function<void(std::int64_t task, int worker)>& work);

/// The same where results are summed: then calls finish(task) for each task in increasing order of
/// task, never two at once, which is what makes reductions independent of the number of threads.
/// At most window tasks are worked but unfinished, so what they hold is bounded; task % window
/// names a slot that is free again when finish(task) has returned. Requires window >= num_threads.
/// Threads wait for each other where it is near num_threads and tasks differ in length.
///
/// The caller's thread finishes, so that what it sums stays in its cache; another does only if it
/// had to wait for a slot otherwise.
void OrderedParallelFor(std::int64_t num_tasks, int num_threads, int window,
                        const std::function<void(std::int64_t task, int worker)>& work,
                        const std::function<void(std::int64_t task)>& finish);

}  // namespace fedgen
