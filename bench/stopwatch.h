// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>

namespace fedgen {

// Seconds since it was made. Contestants on one thread are timed by the processor time of that
// thread, so that being put aside for another program does not count; several threads by the clock
// on the wall.
class Stopwatch {
 public:
  enum class Kind { kThread, kWall };
  explicit Stopwatch(Kind kind)
      : clock_(kind == Kind::kThread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC), begin_(Now()) {}
  double Seconds() const { return Now() - begin_; }

 private:
  double Now() const {
    std::timespec time = {};
    clock_gettime(clock_, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  clockid_t clock_;
  double begin_;  // s
};

}  // namespace fedgen
