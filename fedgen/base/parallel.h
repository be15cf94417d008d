// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace fedgen {

// Parallelism is an argument, never a global: who calls says how many threads.

/// The threads to use when nobody says: FEDGEN_NUM_THREADS if it is a positive integer, otherwise
/// the cores this process may run on.
int DefaultNumThreads();

/// Calls work(task, worker) once for each task in [0, num_tasks) on num_threads threads (the caller
/// is one of them), then finish(task) for each task in increasing order of task, never two at once.
/// A worker index in [0, num_threads) is used by one thread at a time, so it can own a workspace.
/// At most window tasks are worked but unfinished, so what they hold is bounded; task % window
/// names a slot that is free again when finish(task) has returned. Requires window >= num_threads.
///
/// The order of finish is what makes reductions independent of the number of threads.
void OrderedParallelFor(std::int64_t num_tasks, int num_threads, int window,
                        const std::function<void(std::int64_t task, int worker)>& work,
                        const std::function<void(std::int64_t task)>& finish);

}  // namespace fedgen
