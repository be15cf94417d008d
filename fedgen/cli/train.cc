// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "fedgen/base/file.h"
#include "fedgen/base/text.h"
#include "fedgen/cli/commands.h"
#include "fedgen/cli/live_view.h"
#include "fedgen/cli/print.h"
#include "fedgen/fleet/learner_run.h"
#include "fedgen/fleet/replay_run.h"
#include "fedgen/report/run_pictures.h"
#include "fedgen/report/summary_text.h"
#include "fedgen/run/local_run.h"

namespace fedgen {
namespace {

// The flags that stand for a key, as overrides.
Result<std::vector<std::string>> OverridesOf(const TrainCommand& command) {
  std::vector<std::string> overrides = command.overrides;
  for (const std::string& given : overrides) {
    const bool twice = (command.learners > 0 && Sets(given, "federation.learners")) ||
                       (!command.algorithm.empty() && Sets(given, "federation.algorithm"));
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

// What an interrupted run says on its way out. A signal handler may do little more than write, so
// the text is ready before.
std::string farewell;

void BidFarewell(int signal) {
  (void)!::write(STDERR_FILENO, farewell.data(), farewell.size());
  ::raise(signal);  // the action is the default again: the program ends as if nobody had caught it
}

class Farewell {
 public:
  explicit Farewell(const std::string& directory) {
    farewell = fmt::format("{}fedgen: interrupted: fedgen train --resume {} goes on\n",
                           ::isatty(STDERR_FILENO) == 1 ? "\n" : "", directory);
    struct sigaction action{};
    action.sa_handler = BidFarewell;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    for (const int signal : kSignals) {
      struct sigaction before{};
      ::sigaction(signal, nullptr, &before);
      if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
    }
  }
  ~Farewell() {
    for (const int signal : kSignals) {
      struct sigaction now{};
      ::sigaction(signal, nullptr, &now);
      if (now.sa_handler == BidFarewell) ::signal(signal, SIG_DFL);
    }
  }
  Farewell(const Farewell&) = delete;
  Farewell& operator=(const Farewell&) = delete;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM};
};

Result<RunSummary> ExecuteOrSayHowToResume(const LocalRun& run, bool resumes) {
  const Farewell farewell_of_run(run.files.directory());
  return ExecuteWithView(run, resumes);
}

Result<LocalRun> StartAs(const TrainCommand& command, int num_threads) {
  const std::vector<std::string> overrides = FEDGEN_TRY(OverridesOf(command));
  Config config = FEDGEN_TRY(LoadConfig(command.config, overrides));
  FEDGEN_TRY(CheckMemory(MemoryOf(config, num_threads)));
  const std::uint64_t seed = command.seed.value_or(1);
  const std::string stem = std::filesystem::path(command.config).stem().string();
  const std::string directory =
      command.out.empty() ? fmt::format("runs/{}-{}-seed{}", stem,
                                        NameOf(config.training.federation.algorithm), seed)
                          : command.out;
  return StartRun(std::move(config), seed, stem, directory,
                  command.anyway ? OtherBodies::kAllow : OtherBodies::kRefuse);
}

}  // namespace

namespace {

// A federation of fedgen up once more, in this process.
Result<void> RunReplay(const TrainCommand& command) {
  if (command.config.empty() || command.out.empty() || !command.resume.empty()) {
    return Error{ErrorCode::kUsage, "--replay: needs --config, --seed and --out as fedgen up had"};
  }
  ReplaySettings settings;
  const std::vector<std::string> overrides = FEDGEN_TRY(OverridesOf(command));
  settings.config = FEDGEN_TRY(LoadConfig(command.config, overrides));
  settings.seed = command.seed.value_or(1);
  const std::string text = FEDGEN_TRY(ReadFile(command.replay, std::size_t{1} << 30));
  settings.log = FEDGEN_TRY(LogFromText(text, command.replay));
  settings.log_name = command.replay;
  settings.directory = command.out;
  settings.num_threads = FEDGEN_TRY(NumThreads(command.threads));
  settings.kernel = FEDGEN_TRY(KernelFromName(command.kernel));
  const int learners = FEDGEN_TRY(Replay(settings));
  Print("{}: {} and {} once more; policies and checkpoints in learner-*/ have the bytes of then\n",
        command.out, Counted(static_cast<std::int64_t>(settings.log.events.size()), "event"),
        Counted(learners, "learner"));
  return {};
}

}  // namespace

Result<void> RunTrain(const TrainCommand& command) {
  if (!command.replay.empty()) return RunReplay(command);
  const bool resumes = !command.resume.empty();
  if (resumes &&
      (!command.config.empty() || !command.out.empty() || !command.overrides.empty() ||
       !command.algorithm.empty() || command.learners > 0 || command.seed || command.anyway)) {
    return Error{
        ErrorCode::kUsage,
        "--resume: only --rounds, --threads, --kernel and --no-figures may be given with it"};
  }
  if (!resumes && command.rounds > 0) {
    return Error{ErrorCode::kUsage,
                 "--rounds: goes with --resume; --set federation.rounds=N is for a new run"};
  }
  if (!resumes && command.config.empty()) {
    return Error{ErrorCode::kUsage, "--config or --resume is required"};
  }
  if (resumes && IsLearnersHome(command.resume)) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("{}: is a learner's of a federation: fedgen learner --out {} goes on "
                             "with it, or fedgen up --resume with all",
                             command.resume, command.resume)};
  }
  const int num_threads = FEDGEN_TRY(NumThreads(command.threads));
  const Kernel kernel = FEDGEN_TRY(KernelFromName(command.kernel));
  LocalRun run = FEDGEN_TRY(resumes ? ReopenRun(command.resume, command.rounds)
                                    : StartAs(command, num_threads));
  for (const std::string& warning : run.warnings) PrintError("warning: {}\n", warning);
  run.experiment.num_threads = num_threads;
  run.experiment.kernel = kernel;
  if (resumes) FEDGEN_TRY(CheckMemory(MemoryOf(run.experiment.config, num_threads)));
  const RunSummary summary = FEDGEN_TRY(ExecuteOrSayHowToResume(run, resumes));
  Print("{}", RunSummaryText(summary));
  if (!command.no_figures) FEDGEN_TRY(DrawRun({run.files.directory(), 1}));
  Print("\n{}/: policies/best.fgp, certificate.json, summary.json{}\n", run.files.directory(),
        command.no_figures ? "" : ", figures/");
  return {};
}

Result<void> RunPlot(const PlotCommand& command) {
  const std::vector<std::string> written =
      FEDGEN_TRY(DrawRun({command.directory, command.learner}));
  for (const std::string& path : written) Print("{}\n", path);
  return {};
}

}  // namespace fedgen
