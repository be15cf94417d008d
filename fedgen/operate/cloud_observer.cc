// SPDX-License-Identifier: Apache-2.0
#include "fedgen/operate/cloud_observer.h"

#include "fedgen/identity/pki.h"

namespace fedgen {

bool CloudObserver::MayComplain() {
  if (log_ == nullptr) return false;
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  if (now - minute_ > std::chrono::minutes(1)) {
    minute_ = now;
    complaints_ = 0;
  }
  return ++complaints_ <= kMostPerMinute;
}

void CloudObserver::OnCall(std::size_t bytes) {
  if (metrics_ != nullptr) metrics_->OnCall(bytes);
}

void CloudObserver::OnAnswered(std::size_t bytes) {
  if (metrics_ != nullptr) metrics_->OnAnswered(bytes);
}

void CloudObserver::OnRefused(const std::string& peer, const std::string& code,
                              const std::string& reason) {
  if (metrics_ != nullptr) metrics_->OnRefused(peer, code, reason);
  if (MayComplain()) {
    log_->Write(LogLevel::kWarning, "refused",
                {{"peer", peer}, {"status", code}, {"reason", reason}});
  }
}

void CloudObserver::OnSaved(const std::string& run, std::size_t messages, double seconds) {
  if (metrics_ != nullptr) metrics_->OnSaved(run, messages, seconds);
}

void CloudObserver::OnNotSaved(const std::string& run, const std::string& problem) {
  if (metrics_ != nullptr) metrics_->OnNotSaved(run, problem);
  if (MayComplain()) {
    log_->Write(LogLevel::kError, "not_saved", {{"run", run}, {"problem", problem}});
  }
}

// A line for each round, and for the beginning and the end of a run.
void CloudObserver::OnProgress(const RunProgress& progress) {
  if (metrics_ != nullptr) metrics_->OnProgress(progress);
  if (log_ == nullptr) return;
  RunProgress before;
  {
    const std::lock_guard lock(mutex_);
    before = std::exchange(last_[progress.run], progress);
  }
  const auto in_rounds = [](const RunProgress& p) {
    return p.phase == "submit" || p.phase == "close";
  };
  if (in_rounds(before) && progress.round > before.round) {
    log_->Write(LogLevel::kInfo, "round", {{"run", progress.run}, {"round", progress.round}});
  }
  if (before.phase != progress.phase && !(in_rounds(before) && in_rounds(progress))) {
    log_->Write(LogLevel::kInfo, "run",
                {{"run", progress.run},
                 {"phase", progress.phase},
                 {"round", progress.round},
                 {"learners", progress.learners},
                 {"awaited", progress.awaited}});
  }
}

void CloudObserver::OnLeftOut(const std::string& run, LearnerId learner, int round) {
  if (metrics_ != nullptr) metrics_->OnLeftOut(run, learner, round);
  if (log_ != nullptr) {
    log_->Write(LogLevel::kWarning, "left_out",
                {{"run", run}, {"learner", CommonNameOf(learner)}, {"round", round}});
  }
}

void CloudObserver::OnRevoked(LearnerId learner) {
  if (metrics_ != nullptr) metrics_->OnRevoked(learner);
  if (log_ != nullptr) {
    log_->Write(LogLevel::kWarning, "revoked", {{"learner", CommonNameOf(learner)}});
  }
}

void CloudObserver::OnTransport(const std::string& problem) {
  if (metrics_ != nullptr) metrics_->OnTransport(problem);
  if (MayComplain()) log_->Write(LogLevel::kWarning, "transport", {{"problem", problem}});
}

void CloudObserver::OnTrouble(const std::string& trouble) {
  if (metrics_ != nullptr) metrics_->OnTrouble(trouble);
  if (MayComplain()) log_->Write(LogLevel::kWarning, "file", {{"problem", trouble}});
}

}  // namespace fedgen
