// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fedgen/base/result.h"
#include "fedgen/identity/tls.h"

namespace fedgen {

// Many learners that do nothing but talk: each has a certificate and a connection of its own and
// one request under way at any time. What they say is what learners of Algorithm 1 say (a policy in
// submit, then close, then the next round), made before the clock starts; answers are not decoded,
// only looked at.

struct LoadTurn {
  std::int64_t requests = 0;
  double seconds = 0;
  double cpu_seconds = 0;           // of the client
  std::vector<double> latencies{};  // s, in ascending order

  double per_second() const { return static_cast<double>(requests) / seconds; }
  /// 0.5 is the median. Requires a request.
  double Percentile(double share) const;
};

/// Whom it talks to.
enum class LoadKind {
  kEcho,
  kCloud,       // learners say which incumbent they have, and are not told its policy again
  kWholeCloud,  // learners that were just started: they say nothing, and are told all
};

class LoadClient {
 public:
  /// Learner i has identities[i]; policies have num_parameters each.
  LoadClient(int port, LoadKind kind, const std::vector<TlsIdentity>& identities,
             std::uint64_t num_parameters, std::uint32_t runs);
  ~LoadClient();
  LoadClient(LoadClient&&) noexcept;
  LoadClient(const LoadClient&) = delete;
  LoadClient& operator=(const LoadClient&) = delete;
  LoadClient& operator=(LoadClient&&) = delete;

  /// Connects and joins. A request a learner.
  Result<LoadTurn> Join();
  /// Two requests a learner and round.
  Result<LoadTurn> Rounds(int rounds);

 private:
  struct Parts;  // gRPC's
  std::unique_ptr<Parts> parts_;
};

}  // namespace fedgen
