// SPDX-License-Identifier: Apache-2.0

// fedgen certify and fedgen verify: both drive the worlds that a certificate is about.

#include "fedgen/run/certify.h"

#include <fmt/format.h>

#include <cmath>

#include "fedgen/base/file.h"
#include "fedgen/base/hash.h"
#include "fedgen/base/text.h"
#include "fedgen/cli/commands.h"
#include "fedgen/cli/print.h"
#include "fedgen/cli/progress.h"
#include "fedgen/run/train.h"

namespace fedgen {
namespace {

// Each world leaves its mean cost behind, and if it has several starts the share of safe ones, once
// more while the bounds are computed.
Result<void> CheckMemoryOf(std::int64_t worlds, const Task& task, double copies = 1) {
  const double numbers = task.world.start.per_world > 1 ? 2 + copies : copies;
  return CheckMemory({{fmt::format("--worlds = {}", worlds), "what each world cost",
                       numbers * sizeof(double) * static_cast<double>(worlds)}},
                     MemoryLimit(), ErrorCode::kUsage);
}

Result<Certificate> DriveAndCertify(const char* verb, const Driving& driving,
                                    const CertifyOptions& options) {
  const Task& task = driving.config.task();
  FEDGEN_TRY(CheckMemoryOf(options.num_worlds, task));
  Progress progress(verb, "episodes", options.num_worlds * task.world.start.per_world);
  return Certify(task, driving.policy, options, [&](std::int64_t done) { progress.Update(done); });
}

// The first number that differs, and what it was recomputed from.
Result<void> Compare(const std::string& path, const Certificate& stated,
                     const Certificate& recomputed) {
  const std::optional<CertificateDifference> difference = FindDifference(stated, recomputed);
  if (!difference) return {};
  std::string source;
  if (difference->field == "policy_sha256") source = " for the policy given";
  if (difference->field == "task_sha256") source = " for the configuration given";
  if (difference->field == "seed") source = " from policy, task and challenge";
  if (stated.program != recomputed.program) {
    source += fmt::format(" (written by {}, this is {})", stated.program, recomputed.program);
  }
  return Error{ErrorCode::kMismatch,
               fmt::format("{}: {} = {}: recomputed {}{}", path, difference->field,
                           difference->stated, difference->recomputed, source)};
}

constexpr const char* kWeaker =
    "a certificate of version 1 is weaker than it looks: its maker could choose the worlds by way "
    "of their number and the confidence. Ask for one of version 2, or test it with --challenge\n";

// What the verifier's own worlds say about the certificate.
Result<void> Test(const VerifyCommand& command, const Certificate& stated, const Driving& driving,
                  const CertifyOptions& options) {
  const Task& task = driving.config.task();
  FEDGEN_TRY(CheckMemoryOf(options.num_worlds, task, 2));
  Result<Challenged> driven = [&] {
    Progress progress("verify", "episodes", options.num_worlds * task.world.start.per_world);
    return Challenge(stated, task, driving.policy, options,
                     [&](std::int64_t done) { progress.Update(done); });
  }();
  const auto& [tally, verdict] = FEDGEN_TRY(std::move(driven));
  const std::string seen = fmt::format(
      "of {} that your word drew {:.4f} were crossed safely (promised >= {:.4f}), at mean cost "
      "{:.4f} (promised <= {:.4f})",
      Counted(options.num_worlds, "world"), SafeRate(tally),
      std::floor(1e4 * stated.safe_arrival) / 1e4, MeanCost(tally),
      std::ceil(1e4 * stated.expected_cost) / 1e4);
  if (verdict.contradicted()) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("{}: contradicted at 1 %: {}", command.certificate, seen)};
  }
  // "a rate of 0.9755 or less, 0.0056 off"
  const auto noticed = [](const char* about, const std::optional<double>& value, double promised,
                          const char* side) {
    if (!value) return std::string("any size goes unnoticed in so few worlds");
    return fmt::format("{}{:.4f} or {}, {:.4f} off, would have been contradicted", about, *value,
                       side, std::abs(*value - promised));
  };
  Print(
      "{}: not contradicted at 1 %: {}\n"
      "with probability {} or more: a true safe arrival rate of {}; an expected cost of {}\n"
      "the numbers in the file were not recomputed: {}\n",
      command.certificate, seen, kChallengePower,
      noticed(verdict.exact ? "" : "about ", verdict.noticed_safe_arrival, stated.safe_arrival,
              "less"),
      noticed("about ", verdict.noticed_expected_cost, stated.expected_cost, "more"),
      stated.challenge_sha256.empty() ? "fedgen verify without --challenge does that"
                                      : "it was made for another word than yours");
  return {};
}

}  // namespace

Result<void> RunCertify(const CertifyCommand& command) {
  CertifyOptions options;
  options.num_worlds = command.worlds;
  options.confidence = command.confidence;
  if (command.challenge) {
    FEDGEN_TRY(CheckChallenge(*command.challenge));
    options.challenge = *command.challenge;
  }
  if (command.output.empty() && !command.hashes) {
    return Error{ErrorCode::kUsage, "--output is required (or --hashes)"};
  }
  const Driving driving = FEDGEN_TRY(PrepareDriving(
      command.config, command.overrides, command.policy, command.anyway, command.threads));
  options.num_threads = driving.num_threads;
  // Before the work: nobody should drive for an hour to learn that the question is not allowed, or
  // that the file is already there.
  Certificate question;
  FEDGEN_TRY(AskQuestion(driving.config.task(), driving.policy, options, question));
  if (command.hashes) {
    Print("policy_sha256 = {}\ntask_sha256 = {}\n", question.policy_sha256, question.task_sha256);
    return {};
  }
  AtomicFile file = FEDGEN_TRY(AtomicFile::Create(command.output, WhatIfExists(command.force)));
  const Certificate certificate = FEDGEN_TRY(DriveAndCertify("certify", driving, options));
  FEDGEN_TRY(file.Write(CertificateToJson(certificate)));
  FEDGEN_TRY(file.Commit());
  Print(
      "{}\n"
      "by the paper's bounds, each alone: safe arrival >= {:.4f} (T2), expected cost J <= {:.4f} "
      "(T1)\n"
      "{}: check it with fedgen verify{}\n",
      Summary(certificate), std::floor(1e4 * certificate.t2_safe_arrival) / 1e4,
      std::ceil(1e4 * certificate.t1_cost_bound) / 1e4, command.output,
      command.challenge ? " --challenge; it counts for whoever chose that word after they had the "
                          "hashes of policy and task"
                        : "; who doubts that it was the only try adds --challenge");
  return {};
}

Result<void> RunVerify(const VerifyCommand& command) {
  const Certificate stated = FEDGEN_TRY(LoadCertificate(command.certificate));
  if (command.challenge) FEDGEN_TRY(CheckChallenge(*command.challenge));
  // The word never comes from the file: it counts only if it is the verifier's own.
  const bool made_for_it =
      command.challenge && stated.challenge_sha256 == Sha256Hex(*command.challenge);
  if (!command.challenge && !stated.challenge_sha256.empty()) {
    return Error{ErrorCode::kUsage,
                 fmt::format("{}: made for a challenge: give the word that you chose with "
                             "--challenge",
                             command.certificate)};
  }
  const Driving driving = FEDGEN_TRY(PrepareDriving(
      command.config, command.overrides, command.policy, command.anyway, command.threads));
  CertifyOptions options;
  options.version = stated.version;
  options.num_worlds = stated.worlds;
  options.confidence = stated.makers_choice ? stated.makers_choice->confidence : stated.confidence;
  if (made_for_it) options.challenge = *command.challenge;
  options.num_threads = driving.num_threads;
  // First what needs no driving: policy, task and seed.
  Certificate question = stated;
  FEDGEN_TRY(AskQuestion(driving.config.task(), driving.policy, options, question));
  if (command.challenge && !made_for_it) {
    // Whatever its worlds were: what counts is which policy and task it speaks about.
    question.challenge_sha256 = stated.challenge_sha256;
    question.seed = stated.seed;
    FEDGEN_TRY(Compare(command.certificate, stated, question));
    options.challenge = *command.challenge;
    // A file must not choose how well it is tested.
    constexpr std::int64_t kLeast = 10'000;
    options.num_worlds = command.worlds.value_or(std::max(kLeast, stated.worlds));
    return Test(command, stated, driving, options);
  }
  if (command.worlds) {
    return Error{
        ErrorCode::kUsage,
        fmt::format("--worlds = {}: {} was made for this challenge and is recomputed as it "
                    "is; another word draws other worlds",
                    *command.worlds, command.certificate)};
  }
  FEDGEN_TRY(Compare(command.certificate, stated, question));
  const Certificate recomputed = FEDGEN_TRY(DriveAndCertify("verify", driving, options));
  FEDGEN_TRY(Compare(command.certificate, stated, recomputed));
  Print("{}: verified, every number recomputed{}\n{}\n{}", command.certificate,
        made_for_it ? " on the worlds of your word" : "", Summary(recomputed),
        stated.version == 1 ? kWeaker : "");
  return {};
}

}  // namespace fedgen
