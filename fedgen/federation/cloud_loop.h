// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "fedgen/federation/served_run.h"
#include "fedgen/federation/status.h"

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
//
// The loop has the clock of its runs too. Where a run's patience (FederationOptions) is limited, it
// begins when somebody waits in a step, and who is silent when it is over is left out. In an
// asynchronous run it begins anew with everything that is heard.

struct StepCall {
  std::string run;
  StepMessage message;
  /// Called once, from the loop's thread: an answer, nothing (ask again), or what is wrong.
  std::function<void(Result<std::optional<StepAnswer>>)> reply;
};

class CloudLoop {
 public:
  using Duration = std::chrono::steady_clock::duration;
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Takes the runs; their store must outlive the loop, which alone uses it from now on. So must
  /// the watcher, if there is one.
  CloudLoop(std::vector<ServedRun> runs, Duration patience, CloudWatcher* watcher = nullptr);
  ~CloudLoop() { Stop(); }
  CloudLoop(const CloudLoop&) = delete;
  CloudLoop& operator=(const CloudLoop&) = delete;

  /// From any thread.
  void Post(StepCall call);
  /// Tells where the runs are, soon, from the loop's thread; nothing if the Cloud goes down. From
  /// any thread.
  using StatusReply = std::function<void(std::optional<std::vector<RunStatus>>)>;
  void PostStatus(StatusReply reply);
  /// Refuses this learner in all runs from now on, and waits for it no more. From any thread.
  void Revoke(LearnerId learner);
  /// Hears what has come, tells everybody who waits that the Cloud goes down, and ends the thread.
  /// Whoever posts later is told the same.
  void Stop();

  /// What waits for others is written when it is so much.
  static constexpr std::size_t kMostUnsaved = std::size_t{1} << 20;

 private:
  struct Waiting {
    StepCall call;
    TimePoint until;
    std::optional<StepAnswer> answer;  // once what was heard is on the disk
  };
  struct Served {
    ServedRun run;
    std::list<Waiting> waiting{};  // who has been heard and not been answered, oldest first
    bool due = false;              // one of them can be answered
    RunProgress told{};            // to the watcher, last
    // What the run is doing, and since when somebody waits for it.
    int step = 0;
    std::int64_t sequence = 0;
    std::optional<TimePoint> since{};

    bool has_gone_on() const;
    /// When those who are silent are left out.
    std::optional<TimePoint> End() const;
  };

  void Work();
  std::vector<StepCall> Take();
  void HearAll(std::vector<StepCall> calls);
  Result<void> Save(ServedRun& run) const;
  void LeaveOutSilent(Served& served, TimePoint now) const;
  void Answer(Served& served, TimePoint now) const;
  static void Watch(Served& served, TimePoint now);
  void TellStatus();
  void Dismiss();

  Duration patience_;
  CloudWatcher* watcher_;
  std::map<std::string, Served> runs_;  // the thread's own
  std::mutex mutex_;                    // guards: posted_, asking_, revoked_, ending_
  std::condition_variable changed_;
  std::vector<StepCall> posted_;
  std::vector<StatusReply> asking_;
  std::vector<LearnerId> revoked_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace fedgen
