// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "fedgen/federation/cloud_watcher.h"
#include "fedgen/operate/event_log.h"
#include "fedgen/operate/metrics.h"

namespace fedgen {

/// Writes down what a Cloud does and counts it. Either may be missing; both must outlive it.
///
/// Refusals, failed writes and bad files have at most kMostPerMinute lines together: whoever wants
/// to fill the disk that way does not. The metrics count all of them.
class CloudObserver final : public CloudWatcher {
 public:
  CloudObserver(const EventLog* log, Metrics* metrics) : log_(log), metrics_(metrics) {}

  void OnCall(std::size_t bytes) override;
  void OnAnswered(std::size_t bytes) override;
  void OnRefused(const std::string& peer, const std::string& code,
                 const std::string& reason) override;
  void OnSaved(const std::string& run, std::size_t messages, double seconds) override;
  void OnNotSaved(const std::string& run, const std::string& problem) override;
  void OnProgress(const RunProgress& progress) override;
  void OnLeftOut(const std::string& run, LearnerId learner, int round) override;
  void OnRevoked(LearnerId learner) override;
  void OnTransport(const std::string& problem) override;
  void OnTrouble(const std::string& trouble) override;

  static constexpr int kMostPerMinute = 60;

 private:
  bool MayComplain();

  const EventLog* log_;
  Metrics* metrics_;
  std::mutex mutex_;  // guards what follows
  std::map<std::string, RunProgress> last_;
  std::chrono::steady_clock::time_point minute_{};  // when it began
  int complaints_ = 0;                              // in it
};

}  // namespace fedgen
