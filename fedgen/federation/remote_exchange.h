// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fedgen/federation/entry.h"
#include "fedgen/federation/steps.h"
#include "fedgen/fuse/exchange.h"
#include "fedgen/identity/tls.h"

namespace fedgen {

class TlsWatch;

// The exchange of a host whose Cloud is somewhere else: gRPC, with TLS on both sides.
//
// A message is sent until it is answered. The Cloud may be down, restarted, slow or elsewhere: the
// same message goes out again after a pause that grows and is never twice the same, to the next of
// its addresses. What the Cloud refuses is an error at once: another try would be refused too.
//
// The files of its identity (identity/tls.h) are checked before the first connection. They may be
// replaced later: the next message goes out by a new connection.

struct RemoteExchangeOptions {
  std::vector<std::string> addresses;         // host:port of the Cloud, at least one
  std::string run;                            // its name; empty before Enter()
  std::string tls_directory;                  // ca.pem, node.pem, node.key
  std::optional<LearnerId> who{};             // whose certificate it must be; none: anybody's
  std::chrono::milliseconds deadline{30000};  // of one try
  std::chrono::milliseconds first_pause{50};  // before the second try, about
  std::chrono::milliseconds longest_pause{5000};
  /// After so long without an answer it is an error; 0 for never.
  std::chrono::milliseconds give_up{0};
  /// Told when a try came to nothing and another one follows, or when files of the identity were
  /// replaced by others that are not good: what was wrong. From any thread.
  std::function<void(const std::string& trouble)> on_trouble{};
};

class RemoteExchange final : public Exchange {
 public:
  explicit RemoteExchange(RemoteExchangeOptions options);
  ~RemoteExchange() override;

  /// Before anything else: what all participants of the run share. From then on the run is the one
  /// that was entered.
  Result<Entered> Enter(LearnerId learner, const Entry& entry);

  Result<std::vector<Welcome>> Join(std::span<const JoinMessage> messages) override;
  Result<RoundAnswer> Submit(std::span<const RoundMessage> messages) override;
  Result<Ending> Close(std::span<const CloseMessage> messages) override;
  Result<Finalists> Finish(std::span<const FinalMessage> messages) override;
  Result<RaceAnswer> Race(std::span<const RaceMessage> messages) override;
  /// Tells the Cloud that this learner need not be waited for any more.
  Result<void> Leave(LearnerId learner);

  /// Messages that were sent, and their bytes, so far: repetitions too, without what TLS and HTTP/2
  /// add.
  std::int64_t num_sent() const { return num_sent_; }
  std::int64_t bytes_sent() const { return bytes_sent_; }

 private:
  struct Channels;  // gRPC's
  Result<std::shared_ptr<Channels>> Connect();
  Result<StepAnswer> Ask(const StepMessage& message);
  Result<StepAnswer> WithTheta(StepAnswer answer);
  template <typename Call>
  Result<void> Persist(std::size_t bytes, const Call& call);
  template <typename Answer, typename Message>
  Result<std::vector<Answer>> AskAll(std::span<const Message> messages);
  std::chrono::nanoseconds PauseAfter(int tries) const;

  RemoteExchangeOptions options_;
  // The incumbent that the Cloud told last; it leaves out a theta that is here already.
  struct Held {
    std::string hash;
    std::vector<float> theta;
  };
  std::mutex mutex_;  // guards: watch_, channels_, held_
  std::unique_ptr<TlsWatch> watch_;
  std::shared_ptr<Channels> channels_;
  Held held_;
  std::atomic<std::size_t> address_ = 0;  // the one that answered last
  std::atomic<std::int64_t> num_sent_ = 0, bytes_sent_ = 0;
};

}  // namespace fedgen
