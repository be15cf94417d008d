// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>

#include "fedgen/cli/commands.h"
#include "fedgen/cli/live_view.h"
#include "fedgen/cli/print.h"
#include "fedgen/report/run_pictures.h"
#include "fedgen/report/summary_text.h"
#include "fedgen/run/certify.h"
#include "fedgen/run/local_run.h"

namespace fedgen {
namespace {

// The flags that stand for a key, as overrides.
Result<std::vector<std::string>> OverridesOf(const TrainCommand& command) {
  std::vector<std::string> overrides = command.overrides;
  for (const std::string& given : overrides) {
    const std::string key = given.substr(0, given.find_first_of(" \t="));
    const bool twice = (command.learners > 0 && key == "federation.learners") ||
                       (!command.algorithm.empty() && key == "federation.algorithm");
    if (!twice) continue;
    return Error{ErrorCode::kUsage,
                 fmt::format("--set {}: this key is already set by a flag", given)};
  }
  if (command.learners > 0) {
    overrides.push_back(fmt::format("federation.learners={}", command.learners));
  }
  if (!command.algorithm.empty()) {
    overrides.push_back("federation.algorithm=" + command.algorithm);
  }
  return overrides;
}

Result<LocalRun> StartAs(const TrainCommand& command) {
  const std::vector<std::string> overrides = FEDGEN_TRY(OverridesOf(command));
  Config config = FEDGEN_TRY(LoadConfig(command.config, overrides));
  const std::uint64_t seed = command.seed.value_or(1);
  const std::string stem = std::filesystem::path(command.config).stem().string();
  const std::string directory =
      command.out.empty() ? fmt::format("runs/{}-{}-seed{}", stem,
                                        NameOf(config.training.federation.algorithm), seed)
                          : command.out;
  return StartRun(std::move(config), seed, stem, directory);
}

}  // namespace

Result<void> RunTrain(const TrainCommand& command) {
  const bool resumes = !command.resume.empty();
  if (resumes && (!command.config.empty() || !command.out.empty() || !command.overrides.empty() ||
                  !command.algorithm.empty() || command.learners > 0 || command.seed)) {
    return Error{ErrorCode::kUsage,
                 "--resume: only --threads and --no-figures may be given with it"};
  }
  if (!resumes && command.config.empty()) {
    return Error{ErrorCode::kUsage, "--config or --resume is required"};
  }
  const int num_threads = FEDGEN_TRY(NumThreads(command.threads));
  LocalRun run = FEDGEN_TRY(resumes ? ReopenRun(command.resume) : StartAs(command));
  run.experiment.num_threads = num_threads;
  const RunSummary summary = FEDGEN_TRY(ExecuteWithView(run, resumes));
  Print("{}\n", RunSummaryText(summary));
  if (summary.certificate) Print("certificate\n  {}\n", Summary(*summary.certificate));
  if (!command.no_figures) FEDGEN_TRY(DrawRun({run.files.directory(), 1}));
  Print("\n{}/: policies/best.fgp, certificate.json, summary.json{}\n", run.files.directory(),
        command.no_figures ? "" : ", figures/");
  return {};
}

}  // namespace fedgen
