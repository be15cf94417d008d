// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "fedgen/base/result.h"
#include "fedgen/federation/cloud_watcher.h"

namespace fedgen {

// Figures of a Cloud in the text form of Prometheus (docs/operating.md lists them).

/// Thread-safe.
class Metrics final : public CloudWatcher {
 public:
  Metrics();
  ~Metrics() override;

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

  std::string Text() const;

 private:
  struct Families;  // prometheus-cpp's
  std::unique_ptr<Families> families_;
};

/// Answers GET /metrics with a text, over plain HTTP: for an address that only the operator
/// reaches. It tells names of runs and figures, nothing else.
class MetricsServer {
 public:
  /// `listen` is host:port; port 0 is one that the kernel chooses.
  static Result<std::unique_ptr<MetricsServer>> Start(const std::string& listen,
                                                      std::function<std::string()> text);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  int port() const;

 private:
  struct Parts;  // cpp-httplib's
  explicit MetricsServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace fedgen
