// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fedgen/identity/tls.h"

namespace fedgen {

// Whether the other end of a connection may still speak. TLS asks once, when it connects; this is
// asked for every call, so that a revocation works on connections that are open, and it costs a
// look into a table.
//
// The revocation list is read again when its file has been replaced. One that is damaged, of
// another authority or older than the one in force is reported and changes nothing.

struct PeerCheckOptions {
  std::string directory;                        // ca.pem and crl.pem, which need not be there
  std::chrono::milliseconds look_every{1000};   // at most so often is the list's file looked at
  std::function<void(LearnerId)> on_revoked{};  // told once of everybody whom a list says is gone
  TlsTrouble on_trouble{};
};

/// Thread-safe.
class PeerCheck {
 public:
  /// Reads the list; one that is there and damaged is an error.
  static Result<std::unique_ptr<PeerCheck>> Open(PeerCheckOptions options);

  /// Whose certificate it is, a PEM text that TLS has found to be signed by the authority.
  /// kMismatch if it names nobody, was revoked or has expired.
  Result<LearnerId> Check(std::string_view certificate, std::int64_t now);

 private:
  struct Peer {
    LearnerId who;
    std::string serial;
    std::int64_t not_after = 0;
  };
  explicit PeerCheck(PeerCheckOptions options) : options_(std::move(options)) {}
  Result<void> ReadList();
  void LookAgain();
  Result<const Peer*> Known(std::string_view certificate);

  const PeerCheckOptions options_;
  std::mutex mutex_;  // guards what follows
  std::chrono::steady_clock::time_point next_look_{};
  FileStamp seen_{};
  std::int64_t made_ = 0;                        // when the list in force was
  std::map<std::string, std::int64_t> revoked_;  // serial, and since when
  std::set<LearnerId> gone_;
  std::vector<LearnerId> untold_;                   // on_revoked has not heard of them
  std::map<std::string, Peer, std::less<>> peers_;  // by certificate
};

}  // namespace fedgen
