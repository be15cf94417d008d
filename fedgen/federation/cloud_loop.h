// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fedgen/federation/served_run.h"

namespace fedgen {

// One thread that serves all runs of a Cloud: takes the messages that have come, hears them, saves
// them by one write per run, and answers. It knows no transport.
//
// Group commit: what cannot be answered yet, because others are still to be heard, need not be on
// the disk yet. It is written when somebody is to be told something, and some of it before, so that
// the last of many learners does not wait for the messages of all.
//
// A message that cannot be answered yet waits for its step to be complete, at most `patience`; then
// its sender is told to ask again.

struct StepCall {
  std::string run;
  StepMessage message;
  /// Called once, from the loop's thread: an answer, nothing (ask again), or what is wrong.
  std::function<void(Result<std::optional<StepAnswer>>)> reply;
};

class CloudLoop {
 public:
  using Duration = std::chrono::steady_clock::duration;

  /// Takes the runs; their store must outlive the loop, which alone uses it from now on.
  CloudLoop(std::vector<ServedRun> runs, Duration patience);
  ~CloudLoop() { Stop(); }
  CloudLoop(const CloudLoop&) = delete;
  CloudLoop& operator=(const CloudLoop&) = delete;

  /// From any thread.
  void Post(StepCall call);
  /// Hears what has come, tells everybody who waits that the Cloud goes down, and ends the thread.
  /// Whoever posts later is told the same.
  void Stop();

  /// What waits for others is written when it is so much.
  static constexpr std::size_t kMostUnsaved = std::size_t{256} << 10;

 private:
  struct Waiting {
    StepCall call;
    std::chrono::steady_clock::time_point until;
  };
  struct Served {
    ServedRun run;
    std::list<Waiting> waiting{};  // who has been heard and not been answered, oldest first
    bool due = false;              // one of them can be answered
  };

  void Work();
  std::vector<StepCall> Take();
  void HearAll(std::vector<StepCall> calls);
  static void Answer(Served& served, std::chrono::steady_clock::time_point now);
  void Dismiss();

  Duration patience_;
  std::map<std::string, Served> runs_;  // the thread's own
  std::mutex mutex_;                    // guards: posted_, ending_
  std::condition_variable changed_;
  std::vector<StepCall> posted_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace fedgen
