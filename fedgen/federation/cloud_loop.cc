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

CloudLoop::CloudLoop(std::vector<ServedRun> runs, Duration patience) : patience_(patience) {
  for (ServedRun& run : runs) {
    std::string name = run.name();
    runs_.emplace(std::move(name), Served{std::move(run)});
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
      if (posted_.size() == 1) changed_.notify_one();  // for those before it has woken up already
      return;
    }
  }
  Refuse(call);
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
  }
  // Nobody has been told of what is not saved now; but who comes back need not say it again.
  for (auto& [name, served] : runs_) static_cast<void>(served.run.Save());
  Dismiss();
}

// What has come; waits for it, but no longer than the first of those who wait has patience.
std::vector<StepCall> CloudLoop::Take() {
  auto until = std::chrono::steady_clock::time_point::max();
  for (const auto& [name, served] : runs_) {
    if (!served.waiting.empty()) until = std::min(until, served.waiting.front().until);
  }
  const auto something = [this] { return ending_ || !posted_.empty(); };
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
    Served& served = found->second;
    const Result<void> heard = served.run.Hear(call.message);
    if (heard) {
      served.due |= served.run.MayAnswer(call.message);
      served.waiting.push_back({std::move(call), until});
    } else {
      call.reply(heard.error());
    }
  }
}

// Nobody is answered before what was heard is on the disk.
void CloudLoop::Answer(Served& served, std::chrono::steady_clock::time_point now) {
  const bool impatient = !served.waiting.empty() && served.waiting.front().until <= now;
  if (!served.due && !impatient && served.run.unsaved_bytes() < kMostUnsaved) return;
  served.due = false;
  const Result<void> saved = served.run.Save();
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

void CloudLoop::Dismiss() {
  for (auto& [name, served] : runs_) {
    for (const Waiting& waiting : served.waiting) Refuse(waiting.call);
    served.waiting.clear();
  }
}

}  // namespace fedgen
