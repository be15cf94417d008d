// SPDX-License-Identifier: Apache-2.0
#include "fedgen/federation/cloud_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace fedgen {
namespace {

void Refuse(const StepCall& call) { call.reply(Error{ErrorCode::kIo, "the Cloud is going down"}); }

}  // namespace

CloudLoop::CloudLoop(std::vector<ServedRun> runs, Duration patience, CloudWatcher* watcher)
    : patience_(patience), watcher_(watcher) {
  for (ServedRun& run : runs) {
    std::string name = run.name();
    if (watcher_ != nullptr) watcher_->OnProgress(ProgressOf(run));
    RunProgress told = ProgressOf(run);
    runs_.emplace(std::move(name), Served{std::move(run), {}, std::move(told)});
  }
  thread_ = std::thread([this] { Work(); });
}

void CloudLoop::Stop() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void CloudLoop::Post(StepCall call) {
  {
    const std::lock_guard lock(mutex_);
    if (!ending_) {
      posted_.push_back(std::move(call));
      changed_.notify_one();
      return;
    }
  }
  Refuse(call);
}

void CloudLoop::PostStatus(StatusReply reply) {
  {
    const std::lock_guard lock(mutex_);
    if (!ending_) {
      asking_.push_back(std::move(reply));
      changed_.notify_one();
      return;
    }
  }
  reply(std::nullopt);
}

void CloudLoop::Work() {
  while (true) {
    std::vector<StepCall> calls = Take();
    {
      const std::lock_guard lock(mutex_);
      if (ending_ && calls.empty() && posted_.empty()) break;
    }
    HearAll(std::move(calls));
    const auto now = std::chrono::steady_clock::now();
    for (auto& [name, served] : runs_) Answer(served, now);
    TellStatus();
  }
  TellStatus();
  Dismiss();
}

// What has come; waits for it, but no longer than the first of those who wait has patience.
std::vector<StepCall> CloudLoop::Take() {
  auto until = std::chrono::steady_clock::time_point::max();
  for (const auto& [name, served] : runs_) {
    if (!served.waiting.empty()) until = std::min(until, served.waiting.front().until);
  }
  const auto something = [this] { return ending_ || !posted_.empty() || !asking_.empty(); };
  std::unique_lock lock(mutex_);
  if (until == std::chrono::steady_clock::time_point::max()) {
    changed_.wait(lock, something);
  } else {
    changed_.wait_until(lock, until, something);
  }
  return std::exchange(posted_, {});
}

void CloudLoop::HearAll(std::vector<StepCall> calls) {
  const auto until = std::chrono::steady_clock::now() + patience_;
  for (StepCall& call : calls) {
    const auto found = runs_.find(call.run);
    if (found == runs_.end()) {
      call.reply(Error{ErrorCode::kUsage, "no run of this name is served here"});
      continue;
    }
    const Result<void> heard = found->second.run.Hear(call.message);
    if (heard) {
      found->second.waiting.push_back({std::move(call), until});
    } else {
      call.reply(heard.error());
    }
  }
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
void CloudLoop::Answer(Served& served, std::chrono::steady_clock::time_point now) const {
  const Result<void> saved = Save(served.run);
  if (watcher_ != nullptr) {
    if (RunProgress progress = ProgressOf(served.run); progress != served.told) {
      watcher_->OnProgress(progress);
      served.told = std::move(progress);
    }
  }
  for (auto at = served.waiting.begin(); at != served.waiting.end();) {
    Result<std::optional<StepAnswer>> answer = std::optional<StepAnswer>();
    if (!saved) {
      answer = saved.error();
    } else {
      answer = served.run.AnswerTo(at->call.message);
      if (!*answer && at->until > now) {
        ++at;
        continue;
      }
    }
    at->call.reply(std::move(answer));
    at = served.waiting.erase(at);
  }
}

void CloudLoop::TellStatus() {
  std::vector<StatusReply> asking;
  {
    const std::lock_guard lock(mutex_);
    asking = std::exchange(asking_, {});
  }
  if (asking.empty()) return;
  std::vector<RunStatus> all;
  all.reserve(runs_.size());
  for (const auto& [name, served] : runs_) all.push_back(StatusOf(served.run));
  for (const StatusReply& reply : asking) reply(all);
}

void CloudLoop::Dismiss() {
  for (auto& [name, served] : runs_) {
    for (const Waiting& waiting : served.waiting) Refuse(waiting.call);
    served.waiting.clear();
  }
}

}  // namespace fedgen
