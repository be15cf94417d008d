// SPDX-License-Identifier: Apache-2.0
#include "fedgen/federation/cloud_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace fedgen {
namespace {

const Error kGoingDown{ErrorCode::kIo, "the Cloud is going down"};

}  // namespace

CloudLoop::CloudLoop(std::vector<ServedRun> runs, Duration patience, CloudWatcher* watcher)
    : patience_(patience), watcher_(watcher) {
  for (ServedRun& run : runs) {
    std::string name = run.name();
    if (watcher_ != nullptr) watcher_->OnProgress(ProgressOf(run));
    RunProgress told = ProgressOf(run);
    Served served{std::move(run)};
    served.told = std::move(told);
    runs_.emplace(std::move(name), std::move(served));
  }
  thread_ = std::thread([this] { MindTheClock(); });
}

// Nobody has been told of what is not saved then; but who comes back need not say it again.
void CloudLoop::Stop() {
  {
    std::unique_lock lock(mutex_);
    ending_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !working_; });
  }
  if (thread_.joinable()) thread_.join();
  WorkOnce();  // what was left to others
  for (auto& [name, served] : runs_) (void)Save(served.run);
  Dismiss();
}

// Leaves something to be done, and says whether the loop took it. Whoever finds nobody at work does
// it, and what else comes meanwhile.
template <typename T>
bool CloudLoop::Bring(std::vector<T> Brought::* where, T& what) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return false;
    (brought_.*where).push_back(std::move(what));
    if (working_) return true;
    working_ = true;
  }
  Work();
  return true;
}

void CloudLoop::Post(StepCall call) {
  if (!Bring(&Brought::calls, call)) call.reply(kGoingDown);
}

void CloudLoop::PostStatus(StatusReply reply) {
  if (!Bring(&Brought::asking, reply)) reply(std::nullopt);
}

void CloudLoop::Revoke(LearnerId learner) { (void)Bring(&Brought::revoked, learner); }

void CloudLoop::Work() {
  do {
    WorkOnce();
  } while (!Rest());
}

void CloudLoop::WorkOnce() {
  Brought brought;
  {
    const std::lock_guard lock(mutex_);
    brought = std::exchange(brought_, {});
  }
  for (auto& [name, served] : runs_) {
    for (const LearnerId learner : brought.revoked) (void)served.run.Revoke(learner);
  }
  HearAll(std::move(brought.calls));
  const TimePoint now = std::chrono::steady_clock::now();
  for (auto& [name, served] : runs_) {
    LeaveOutSilent(served, now);
    Answer(served, now);
    served.run.Tidy();  // while those who were answered are busy
    Watch(served, now);
  }
  TellStatus(brought.asking);
}

// Ends the work when there is none, or somebody was answered: that may be who works, whose answer
// is sent when it returns (gRPC waits for its call to be taken). Then the next who comes goes on,
// or the loop's own thread.
bool CloudLoop::Rest() {
  const TimePoint next = NextEnd();
  const std::lock_guard lock(mutex_);
  const bool is_done = brought_.empty();
  const bool has_answered = std::exchange(has_answered_, false);
  if (!is_done && !has_answered) return false;
  working_ = false;
  next_ = is_done ? next : TimePoint::min();
  if (ending_ || next_ < minded_) changed_.notify_all();
  return true;
}

// Works when the time has come for it and nobody else is there. While somebody is, the next time is
// told at the end of that.
void CloudLoop::MindTheClock() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (!working_ && next_ <= std::chrono::steady_clock::now()) {
      working_ = true;
      lock.unlock();
      Work();
      lock.lock();
      continue;
    }
    minded_ = working_ ? TimePoint::max() : next_;
    if (minded_ == TimePoint::max()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, minded_);
    }
  }
}

std::optional<CloudLoop::TimePoint> CloudLoop::Served::End() const {
  const double patience = run.cloud().options().patience;
  if (patience <= 0 || !since) return std::nullopt;
  return *since + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(patience));
}

// When the first of those who wait has no more patience, or a run has none.
CloudLoop::TimePoint CloudLoop::NextEnd() const {
  TimePoint next = TimePoint::max();
  for (const auto& [name, served] : runs_) {
    if (!served.waiting.empty()) next = std::min(next, served.waiting.front().until);
    next = std::min(next, served.End().value_or(TimePoint::max()));
  }
  return next;
}

void CloudLoop::HearAll(std::vector<StepCall> calls) {
  const TimePoint until = std::chrono::steady_clock::now() + patience_;
  for (StepCall& call : calls) {
    const auto found = runs_.find(call.run);
    if (found == runs_.end()) {
      Reply(call, Error{ErrorCode::kUsage, "no run of this name is served here"});
      continue;
    }
    Served& served = found->second;
    Result<std::optional<StepAnswer>> heard = served.run.Hear(call.message);
    if (heard) {
      served.due |= heard->has_value();
      served.waiting.push_back({std::move(call), until, *std::move(heard)});
    } else {
      Reply(call, heard.error());
    }
  }
}

// Patience begins anew with each step, or, where there are none, with all that is heard.
bool CloudLoop::Served::has_gone_on() const {
  const Cloud& cloud = run.cloud();
  return step != cloud.state().step || (cloud.options().async && sequence != run.sequence());
}

// Patience is over: the run goes on without those whom it still waits for.
void CloudLoop::LeaveOutSilent(Served& served, TimePoint now) const {
  const std::optional<TimePoint> end = served.End();
  if (!end || now < *end || served.has_gone_on()) return;
  for (const LearnerId learner : served.run.cloud().Silent()) {
    if (served.run.cloud().state().step != served.step) break;  // the last was left out
    const int round = served.run.cloud().round() + 1;
    if (served.run.LeaveOut(learner) && watcher_ != nullptr) {
      watcher_->OnLeftOut(served.run.name(), learner, round);
    }
  }
  served.since.reset();
}

// Since when somebody waits, after everybody was answered who can be.
void CloudLoop::Watch(Served& served, TimePoint now) {
  const CloudState& state = served.run.cloud().state();
  if (served.has_gone_on()) served.since.reset();
  served.step = state.step;
  served.sequence = served.run.sequence();
  if (served.since || served.run.cloud().options().patience <= 0) return;
  // Who rests waits for the end, not for this step.
  const bool somebody_waits = std::ranges::any_of(served.waiting, [&](const Waiting& waiting) {
    return !served.run.cloud().IsResting(SpeakerOf(waiting.call.message));
  });
  if (state.heard > 0 || somebody_waits) served.since = now;
}

Result<void> CloudLoop::Save(ServedRun& run) const {
  const std::size_t messages = run.num_unsaved();
  const auto begin = std::chrono::steady_clock::now();
  Result<void> saved = run.Save();
  if (watcher_ == nullptr || messages == 0) return saved;
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  if (saved) {
    watcher_->OnSaved(run.name(), messages, taken.count());
  } else {
    watcher_->OnNotSaved(run.name(), saved.error().message);
  }
  return saved;
}

// Nobody is answered before what was heard is on the disk.
void CloudLoop::Answer(Served& served, TimePoint now) {
  const bool impatient = !served.waiting.empty() && served.waiting.front().until <= now;
  const bool later =
      !served.due && !impatient && !served.has_gone_on() && !served.run.has_much_to_save();
  const Result<void> saved = later ? Result<void>() : Save(served.run);
  if (watcher_ != nullptr && saved) {
    if (RunProgress progress = ProgressOf(served.run); progress != served.told) {
      watcher_->OnProgress(progress);
      served.told = std::move(progress);
    }
  }
  if (later) return;
  served.due = false;
  for (auto at = served.waiting.begin(); at != served.waiting.end();) {
    if (!saved) {
      Reply(at->call, saved.error());
    } else {
      if (!at->answer) at->answer = served.run.AnswerTo(at->call.message);
      if (!at->answer && at->until > now) {
        ++at;
        continue;
      }
      Reply(at->call, std::move(at->answer));
    }
    at = served.waiting.erase(at);
  }
}

void CloudLoop::Reply(const StepCall& call, Result<std::optional<StepAnswer>> answer) {
  call.reply(std::move(answer));
  has_answered_ = true;
}

void CloudLoop::TellStatus(const std::vector<StatusReply>& asking) {
  if (asking.empty()) return;
  has_answered_ = true;
  std::vector<RunStatus> all;
  all.reserve(runs_.size());
  for (const auto& [name, served] : runs_) all.push_back(StatusOf(served.run));
  for (const StatusReply& reply : asking) reply(all);
}

void CloudLoop::Dismiss() {
  for (auto& [name, served] : runs_) {
    for (const Waiting& waiting : served.waiting) waiting.call.reply(kGoingDown);
    served.waiting.clear();
  }
}

}  // namespace fedgen
