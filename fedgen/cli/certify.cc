// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "fedgen/base/file.h"
#include "fedgen/cli/commands.h"
#include "fedgen/cli/print.h"
#include "fedgen/cli/progress.h"
#include "fedgen/run/certify.h"

namespace fedgen {

Result<void> RunCertify(const CertifyCommand& command) {
  const Result<Driving> driving =
      PrepareDriving(command.config, command.overrides, command.policy, command.threads);
  if (!driving) return driving.error();
  const auto& [config, policy, num_threads] = *driving;
  const Task& task = config.task();
  CertifyOptions options;
  options.num_worlds = command.worlds;
  options.confidence = command.confidence;
  options.num_threads = num_threads;
  // Before the work: nobody drives for an hour to learn that the file is already there.
  Result<AtomicFile> file =
      AtomicFile::Create(command.output, command.force ? IfExists::kReplace : IfExists::kRefuse);
  if (!file) return file.error();

  Progress progress("certify", "episodes", options.num_worlds * task.world.start.per_world);
  const Result<Certificate> certificate =
      Certify(task, policy, options, [&](std::int64_t done) { progress.Update(done); });
  if (!certificate) return certificate.error();
  if (Result<void> written = file->Write(CertificateToJson(*certificate)); !written) {
    return written;
  }
  if (Result<void> committed = file->Commit(); !committed) return committed;
  Print(
      "{}\n"
      "by the paper's bounds, each alone: safe arrival >= {:.4f} (T2), expected cost J <= {:.4f} "
      "(T1)\n"
      "{}: check it with fedgen verify\n",
      Summary(*certificate), std::floor(1e4 * certificate->t2_safe_arrival) / 1e4,
      std::ceil(1e4 * certificate->t1_cost_bound) / 1e4, command.output);
  return {};
}

}  // namespace fedgen
