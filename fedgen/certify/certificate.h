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
// probability at least 99 % over the draw of the worlds (Eq. 40):
//   - safe arrival in a new world of the task has probability at least `safe_arrival`;
//   - the expected cost E[J] in a new world of the task is at most `expected_cost`.
// It assumes that the policy was fixed before the worlds were drawn, and it speaks about this task
// only: these worlds, this robot, this sensor, as simulated.
//
// What its maker cannot choose (Eq. 42): the worlds are the first n of one stream whose seed is a
// hash of what acts in policy and task, n is a rung of the ladder (fedgen/certify/ladder.h), and
// the 99 % line always stands; another confidence is arithmetic on the same counts and stands below
// it as the maker's choice.
// What its maker can still do: certify many nearly equal policies or tasks and show the best. The
// file says so (kCertificateNote). The cure is a word that the verifier chooses: with a challenge
// the seed hashes that too.
//
// Version 1 let confidence and any n choose the worlds; it is read, recomputed and said to be
// weaker.

enum class BoundMethod : std::uint8_t {
  kClopperPearson,  // one start per world: safe or not, exact
  kBetting,         // any number in [0, 1] per world (Eq. 39)
};
std::string_view BoundMethodName(BoundMethod method);

/// Of the line that every certificate has.
inline constexpr double kCertificateConfidence = 0.99;

/// What every certificate of version 2 says about itself.
inline constexpr std::string_view kCertificateNote =
    "Holds for a policy and task that were fixed before these worlds were drawn. Whoever tries "
    "many "
    "nearly equal policies or tasks and shows the luckiest can beat it: give the maker a word of "
    "your own once you have policy_sha256 and task_sha256 (fedgen certify --challenge), or draw "
    "worlds of your own (fedgen verify --challenge).";

/// The two statements at one confidence.
struct Promise {
  double confidence = 0;
  double safe_arrival = 0;
  double expected_cost = 1;
};

struct Certificate {
  int version = 2;

  // Who wrote it. Not part of what is verified.
  std::string program;  // "fedgen 0.1.0"

  // The question.
  std::string policy, robot, sensor;  // for people
  std::string policy_sha256;          // of what acts in the policy (fedgen/run/certify.h)
  std::string task_sha256;            // of CanonicalTask (fedgen/rollout/task.h)
  std::string challenge_sha256;       // of the verifier's word; empty if there was none
  std::int64_t worlds = 100;          // n: a rung; in version 1 any in 1..kMaxCertificateWorlds
  std::int32_t starts_per_world = 1;  // 1..10000
  std::uint64_t seed = 0;             // Eq. 42; worlds are Key(seed).Fork(kCertification).Fork(w)

  // What was seen, over worlds * starts_per_world episodes.
  std::int64_t safe = 0, collided = 0, timed_out = 0;
  double mean_cost = 0;            // in [0, 1]
  std::uint64_t outcome_hash = 0;  // of every episode (fedgen/rollout/evaluate.h)

  // What follows, both statements together.
  double confidence = kCertificateConfidence;  // in version 1 any that IsConfidence() allows
  double risk_share = 1;                       // of 1 - confidence, that n owns; 1 in version 1
  double safe_arrival = 0;                     // at least
  BoundMethod safe_arrival_method = BoundMethod::kClopperPearson;
  double expected_cost = 1;  // at most
  BoundMethod expected_cost_method = BoundMethod::kBetting;

  // What the paper's bounds say about the same data with gamma = risk_share (1 - confidence), each
  // by itself.
  double t1_cost_bound = 1;    // Eq. 32
  double t2_safe_arrival = 0;  // Eq. 33

  // The statements at another confidence, as arithmetic on the same counts, if the maker wants one.
  std::optional<Promise> makers_choice;
};

/// A word that a verifier may choose: 1 to 500 printable characters.
bool IsChallenge(std::string_view text);

/// The seed that policy, task and challenge lead to; in version 1 policy, task, n and confidence
/// (Eq. 42).
std::uint64_t CertificationSeed(const Certificate& certificate);

/// The seed of the worlds that a verifier draws against a certificate. It hashes the same three
/// under another title, so that a maker who knows the word has still not driven these worlds.
std::uint64_t ChallengeSeed(const Certificate& certificate, std::string_view challenge);

/// Fills what follows from what was seen (Eq. 40): from the counts, the mean cost, and for each
/// world in order of its index the mean cost over its starts and the share of its starts that
/// arrived safely. `safe_shares` is read only if there are several starts per world; with one the
/// count says it all. Of makers_choice the confidence must be set.
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
