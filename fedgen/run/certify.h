// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "fedgen/base/kernel.h"
#include "fedgen/base/result.h"
#include "fedgen/certify/certificate.h"
#include "fedgen/policy/policy.h"
#include "fedgen/rollout/task.h"

namespace fedgen {

// Certification: drives a policy through worlds that nobody chose and says what follows. The
// arithmetic of the bounds is fedgen/certify; here the numbers come from the simulator.

struct CertifyOptions {
  std::int64_t num_worlds = 100'000;  // 1..kMaxCertificateWorlds
  double confidence = 0.99;           // in (0, 1), of both statements together
  int num_threads = 1;                // >= 1; changes no bit
  Kernel kernel = BestKernel();       // changes no bit
  // Instead of the seed that follows from the question (Eq. 42). For tests of the coverage: a
  // certificate with another seed is refused by `fedgen verify`.
  std::optional<std::uint64_t> seed;
};

/// Refuses a --confidence that nobody may ask for (certify/bounds.h).
Result<void> CheckConfidence(double confidence);

/// Fills the question of a certificate: who, where, how many worlds, which seed, and who asks.
/// Leaves what was seen and what follows as it is. Fails if the policy cannot drive in the task or
/// an option is out of range.
Result<void> AskQuestion(const Task& task, const Policy& policy, const CertifyOptions& options,
                         Certificate& certificate);

/// Asks the question and drives. on_progress (may be empty) is called with the number of episodes
/// done, from one thread at a time. The policy must not have been trained or chosen on the stream
/// Stream::kCertification.
Result<Certificate> Certify(const Task& task, const Policy& policy, const CertifyOptions& options,
                            const std::function<void(std::int64_t done)>& on_progress = {});

/// "safe arrival >= 0.9931 and expected cost J <= 0.3391, jointly with 99 % confidence (100,000
/// unseen worlds, 412 failures)". Bounds are rounded to the safe side.
std::string Summary(const Certificate& certificate);

}  // namespace fedgen
