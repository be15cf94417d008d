// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fedgen/base/file.h"
#include "fedgen/base/result.h"

namespace fedgen {

// What is promised about a policy, with everything needed to check it (docs/formats.md).
//
// A certificate says: a policy (named by its hash) was driven through n worlds of a task (named by
// its hash) that nobody had seen, with these counts, and so two statements hold jointly with
// probability at least `confidence` over the draw of the worlds (Eq. 40):
//   - safe arrival in a new world of the task has probability at least `safe_arrival`;
//   - the expected cost E[J] in a new world of the task is at most `expected_cost`.
// Each spends half the risk. It assumes that the policy was fixed before the worlds were drawn and
// that n was fixed beforehand, and it speaks about this task only: these worlds, this robot, this
// sensor, as simulated.
//
// The worlds follow from the question (Eq. 42): their seed is a hash of policy, task, n and
// confidence, so nobody chooses them, and anybody can drive them again. This does not stop someone
// who certifies many variants of a policy, or many n, and shows the best: it makes every try cost
// a whole certification, and changes the policy's hash or n.

enum class BoundMethod : std::uint8_t {
  kClopperPearson,  // one start per world: safe or not, exact
  kBetting,         // any number in [0, 1] per world (Eq. 39)
};
std::string_view BoundMethodName(BoundMethod method);

struct Certificate {
  // Who wrote it. Not part of what is verified.
  std::string program;  // "fedgen 0.1.0"

  // The question.
  std::string policy, robot, sensor;  // for people
  std::string policy_sha256;          // of the bytes of the .fgp file, or of a built-in's name
  std::string task_sha256;            // of CanonicalTask (fedgen/rollout/task.h)
  std::int64_t worlds = 1;            // n, 1..kMaxCertificateWorlds
  std::int32_t starts_per_world = 1;  // 1..10000
  double confidence = 0.99;           // of both statements together, in (0, 1)
  std::uint64_t seed = 0;             // Eq. 42; worlds are Key(seed).Fork(kCertification).Fork(w)

  // What was seen, over worlds * starts_per_world episodes.
  std::int64_t safe = 0, collided = 0, timed_out = 0;
  double mean_cost = 0;            // in [0, 1]
  std::uint64_t outcome_hash = 0;  // of every episode (fedgen/rollout/evaluate.h)

  // What follows.
  double safe_arrival = 0;  // at least
  BoundMethod safe_arrival_method = BoundMethod::kClopperPearson;
  double expected_cost = 1;  // at most
  BoundMethod expected_cost_method = BoundMethod::kBetting;

  // What the paper's bounds say about the same data with gamma = 1 - confidence, each by itself.
  double t1_cost_bound = 1;    // Eq. 32
  double t2_safe_arrival = 0;  // Eq. 33
};

/// Keeps the memory of a certification below 2 GB.
inline constexpr std::int64_t kMaxCertificateWorlds = 100'000'000;

/// The seed that policy, task, n and confidence lead to (Eq. 42).
std::uint64_t CertificationSeed(const Certificate& certificate);

/// Fills what follows from what was seen (Eq. 40): from the counts, the mean cost, and for each
/// world in order of its index the mean cost over its starts and the share of its starts that
/// arrived safely. `safe_shares` is read only if there are several starts per world; with one the
/// count says it all.
void ComputeBounds(std::span<const double> costs, std::span<const double> safe_shares,
                   Certificate& certificate);

/// The first field in which two certificates differ, with both values as the file spells them;
/// nothing if they agree in all but `program`.
struct CertificateDifference {
  std::string field, stated, recomputed;
};
std::optional<CertificateDifference> FindDifference(const Certificate& stated,
                                                    const Certificate& recomputed);

/// One field per line. Numbers come back bit for bit.
std::string CertificateToJson(const Certificate& certificate);

/// Reads any text: ends in a certificate whose fields are each in range, or in one line that names
/// the field. Whether the numbers are true is not asked here.
Result<Certificate> ParseCertificate(std::string_view text, const std::string& name);
Result<Certificate> LoadCertificate(const std::string& path);

}  // namespace fedgen
