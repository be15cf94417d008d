// SPDX-License-Identifier: Apache-2.0

// fedgen certify and fedgen verify: both drive the worlds that a certificate is about.

#include "fedgen/run/certify.h"

#include <fmt/format.h>

#include <cmath>

#include "fedgen/base/file.h"
#include "fedgen/cli/commands.h"
#include "fedgen/cli/print.h"
#include "fedgen/cli/progress.h"

namespace fedgen {
namespace {

CertifyOptions OptionsOf(std::int64_t worlds, double confidence, int num_threads) {
  CertifyOptions options;
  options.num_worlds = worlds;
  options.confidence = confidence;
  options.num_threads = num_threads;
  return options;
}

Result<Certificate> DriveAndCertify(const char* verb, const Driving& driving,
                                    const CertifyOptions& options) {
  const Task& task = driving.config.task();
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
  if (difference->field == "seed") source = " from policy, task, worlds and confidence";
  if (stated.program != recomputed.program) {
    source += fmt::format(" (written by {}, this is {})", stated.program, recomputed.program);
  }
  return Error{ErrorCode::kMismatch,
               fmt::format("{}: {} = {}: recomputed {}{}", path, difference->field,
                           difference->stated, difference->recomputed, source)};
}

}  // namespace

Result<void> RunCertify(const CertifyCommand& command) {
  const Driving driving = FEDGEN_TRY(
      PrepareDriving(command.config, command.overrides, command.policy, command.threads));
  // Before the work: nobody should drive for an hour to learn that the file is already there.
  AtomicFile file = FEDGEN_TRY(AtomicFile::Create(command.output, WhatIfExists(command.force)));
  const Certificate certificate = FEDGEN_TRY(DriveAndCertify(
      "certify", driving, OptionsOf(command.worlds, command.confidence, driving.num_threads)));
  FEDGEN_TRY(file.Write(CertificateToJson(certificate)));
  FEDGEN_TRY(file.Commit());
  Print(
      "{}\n"
      "by the paper's bounds, each alone: safe arrival >= {:.4f} (T2), expected cost J <= {:.4f} "
      "(T1)\n"
      "{}: check it with fedgen verify\n",
      Summary(certificate), std::floor(1e4 * certificate.t2_safe_arrival) / 1e4,
      std::ceil(1e4 * certificate.t1_cost_bound) / 1e4, command.output);
  return {};
}

Result<void> RunVerify(const VerifyCommand& command) {
  const Certificate stated = FEDGEN_TRY(LoadCertificate(command.certificate));
  const Driving driving = FEDGEN_TRY(
      PrepareDriving(command.config, command.overrides, command.policy, command.threads));
  const CertifyOptions options = OptionsOf(stated.worlds, stated.confidence, driving.num_threads);
  // First what needs no driving: policy, task and seed.
  Certificate question = stated;
  FEDGEN_TRY(AskQuestion(driving.config.task(), driving.policy, options, question));
  FEDGEN_TRY(Compare(command.certificate, stated, question));

  const Certificate recomputed = FEDGEN_TRY(DriveAndCertify("verify", driving, options));
  FEDGEN_TRY(Compare(command.certificate, stated, recomputed));
  Print("{}: verified, every number recomputed\n{}\n", command.certificate, Summary(recomputed));
  return {};
}

}  // namespace fedgen
