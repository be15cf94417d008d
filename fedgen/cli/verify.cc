// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "fedgen/cli/commands.h"
#include "fedgen/cli/print.h"
#include "fedgen/cli/progress.h"
#include "fedgen/run/certify.h"

namespace fedgen {
namespace {

// What does not agree, as a person needs it to see who is wrong.
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

Result<void> RunVerify(const VerifyCommand& command) {
  const Result<Certificate> stated = LoadCertificate(command.certificate);
  if (!stated) return stated.error();
  const Result<Driving> driving =
      PrepareDriving(command.config, command.overrides, command.policy, command.threads);
  if (!driving) return driving.error();
  const auto& [config, policy, num_threads] = *driving;
  const Task& task = config.task();
  CertifyOptions options;
  options.num_worlds = stated->worlds;
  options.confidence = stated->confidence;
  options.num_threads = num_threads;

  // The question first: it needs no driving.
  Certificate question = *stated;
  if (Result<void> asked = AskQuestion(task, policy, options, question); !asked) return asked;
  if (Result<void> same = Compare(command.certificate, *stated, question); !same) return same;

  Progress progress("verify", "episodes", stated->worlds * stated->starts_per_world);
  const Result<Certificate> recomputed =
      Certify(task, policy, options, [&](std::int64_t done) { progress.Update(done); });
  if (!recomputed) return recomputed.error();
  if (Result<void> same = Compare(command.certificate, *stated, *recomputed); !same) return same;
  Print("{}: verified, every number recomputed\n{}\n", command.certificate, Summary(*recomputed));
  return {};
}

}  // namespace fedgen
