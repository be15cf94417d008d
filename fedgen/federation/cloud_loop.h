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

// Serves all runs of a Cloud, one thread at a time: takes the messages that have come, hears them,
// saves them by one write per run, and answers. It knows no transport.
//
// Whoever brings a message does what there is to do, unless another thread is at it: that one takes
// it along, until somebody was answered; then the next goes on. A thread of the loop's own would be
// woken for most messages, and what a thread that is not gRPC's sends costs gRPC more; a Cloud
// under load lost a quarter of its rate. The loop's own thread only minds the clock.
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
  /// Called once, by one thread at a time: an answer, nothing (ask again), or what is wrong. It may
  /// post.
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

  /// From any thread; others may be answered by it before it returns.
  void Post(StepCall call);
  /// Tells where the runs are, soon; nothing if the Cloud goes down. From any thread.
  using StatusReply = std::function<void(std::optional<std::vector<RunStatus>>)>;
  void PostStatus(StatusReply reply);
  /// Refuses this learner in all runs from now on, and waits for it no more. From any thread.
  void Revoke(LearnerId learner);
  /// Hears what has come, tells everybody who waits that the Cloud goes down, and ends the thread.
  /// Whoever posts later is told the same. Not from a reply.
  void Stop();

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

  // What has come since the loop looked last.
  struct Brought {
    std::vector<StepCall> calls;
    std::vector<StatusReply> asking;
    std::vector<LearnerId> revoked;

    bool empty() const { return calls.empty() && asking.empty() && revoked.empty(); }
  };

  template <typename T>
  bool Bring(std::vector<T> Brought::* where, T& what);
  void Work();
  void WorkOnce();
  bool Rest();
  void MindTheClock();
  TimePoint NextEnd() const;
  void HearAll(std::vector<StepCall> calls);
  Result<void> Save(ServedRun& run) const;
  void LeaveOutSilent(Served& served, TimePoint now) const;
  void Answer(Served& served, TimePoint now);
  void Reply(const StepCall& call, Result<std::optional<StepAnswer>> answer);
  static void Watch(Served& served, TimePoint now);
  void TellStatus(const std::vector<StatusReply>& asking);
  void Dismiss();

  Duration patience_;
  CloudWatcher* watcher_;
  std::map<std::string, Served> runs_;  // of whoever works
  bool has_answered_ = false;           // so, since it began or left the rest to others
  std::mutex mutex_;                    // guards: all below
  std::condition_variable changed_;
  Brought brought_;
  bool working_ = false;  // somebody does
  bool ending_ = false;
  TimePoint next_ = TimePoint::max();    // when there is something to do, though nobody comes
  TimePoint minded_ = TimePoint::max();  // until when the loop's own thread sleeps
  std::thread thread_;
};

}  // namespace fedgen
