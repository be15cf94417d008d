// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "fedgen/base/kernel.h"
#include "fedgen/base/result.h"
#include "fedgen/certify/certificate.h"
#include "fedgen/certify/challenge.h"
#include "fedgen/policy/policy.h"
#include "fedgen/rollout/evaluate.h"
#include "fedgen/rollout/task.h"

namespace fedgen {

// Certification: drives a policy through worlds that nobody chose and says what follows. The
// arithmetic of the bounds is fedgen/certify; here the numbers come from the simulator.

struct CertifyOptions {
  int version = 2;                    // 1 only to check a certificate of version 1
  std::int64_t num_worlds = 100'000;  // a rung of the ladder (certify/ladder.h)
  double confidence = 0.99;           // if another one: of a second line, the maker's choice
  std::string challenge;              // the verifier's word; empty: none
  int num_threads = 1;                // >= 1; changes no bit
  Kernel kernel = BestKernel();       // changes no bit
  // Instead of the seed that follows from the question (Eq. 42). For tests of the coverage: a
  // certificate with another seed is refused by `fedgen verify`.
  std::optional<std::uint64_t> seed;
};

/// Refuses a --confidence that nobody may ask for (certify/bounds.h).
Result<void> CheckConfidence(double confidence);

/// Refuses a --challenge that is not one line of text (certify/certificate.h).
Result<void> CheckChallenge(std::string_view challenge);

/// What acts in a policy, as SHA-256: of the network as it drives (policy/policy_file.h), or of a
/// built-in's name and numbers. Version 1: of its .fgp file.
std::string PolicyHash(const Policy& policy, int version = 2);

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

/// What a verifier saw under a word of their own (Eq. 44).
struct Challenged {
  Tally tally;
  ChallengeVerdict verdict;
};

/// Drives `num_worlds` worlds that follow from the policy, the task and the verifier's word, and
/// judges what the certificate promises. Of the options num_worlds (any from 1 to
/// kMaxCertificateWorlds), challenge, threads and kernel count. Policy and task must be those that
/// the certificate names.
Result<Challenged> Challenge(const Certificate& certificate, const Task& task, const Policy& policy,
                             const CertifyOptions& options,
                             const std::function<void(std::int64_t done)>& on_progress = {});

/// "safe arrival >= 0.9931 and expected cost J <= 0.3391, jointly with 99 % confidence (100,000
/// unseen worlds, 569 failures)", bounds rounded to the safe side; a second line if the maker chose
/// another confidence.
std::string Summary(const Certificate& certificate);

}  // namespace fedgen
