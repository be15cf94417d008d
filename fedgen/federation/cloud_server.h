// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fedgen/base/result.h"
#include "fedgen/federation/cloud_watcher.h"
#include "fedgen/federation/entry.h"
#include "fedgen/federation/served_run.h"

namespace fedgen {

// A Cloud that learners reach over gRPC, with TLS on both sides. It decodes, asks the loop, and
// encodes; who may speak for whom is decided by the certificate of the connection, for each call
// anew. The files of its identity (identity/tls.h) may be replaced while it runs. It has gRPC's
// health service (grpc.health.v1), for whom the federation knows.

struct CloudServerOptions {
  std::string listen = "127.0.0.1:0";          // host:port; port 0 is one that the kernel chooses
  std::string tls_directory;                   // ca.pem, node.pem, node.key, perhaps crl.pem
  std::chrono::milliseconds look_every{1000};  // at most so often for another crl.pem
  /// How long a message waits for its answer before its sender is told to ask again.
  std::chrono::milliseconds patience{10000};
  SharedSettings shared{};  // what the learners of each run must agree on
  std::size_t max_message_bytes = std::size_t{64} << 20;  // a longer one is refused unread
  /// Told once of each learner that a revocation list says has left; from any thread.
  std::function<void(LearnerId)> on_revoked{};
  CloudWatcher* watcher = nullptr;  // must outlive the server
};

class CloudServer {
 public:
  /// The runs' store must outlive the server, which alone uses it.
  static Result<std::unique_ptr<CloudServer>> Start(const CloudServerOptions& options,
                                                    std::vector<ServedRun> runs);
  /// Graceful: what was heard is saved, those who wait are told that they may ask again, and calls
  /// under way are ended.
  ~CloudServer();
  CloudServer(const CloudServer&) = delete;
  CloudServer& operator=(const CloudServer&) = delete;

  int port() const;

 private:
  struct Parts;  // gRPC's
  explicit CloudServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace fedgen
