// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "fedgen/base/text.h"
#include "fedgen/cli/commands.h"
#include "fedgen/cli/live_view.h"
#include "fedgen/cli/print.h"
#include "fedgen/fleet/learner_run.h"
#include "fedgen/report/summary_text.h"

namespace fedgen {
namespace {

RemoteExchangeOptions ExchangeOf(const LearnerCommand& command) {
  RemoteExchangeOptions options;
  options.addresses = command.cloud;
  options.run = command.run;
  options.tls_directory = command.tls;
  options.who = LearnerId(static_cast<std::uint32_t>(command.id - 1));
  options.deadline = std::chrono::milliseconds(std::llround(1000 * command.deadline));
  options.on_trouble = [](const std::string& trouble) {
    PrintError("{}; trying again\n", Printable(trouble, 300));
  };
  return options;
}

LearnerRunSettings SettingsOf(const LearnerCommand& command) {
  LearnerRunSettings settings;
  settings.learner = LearnerId(static_cast<std::uint32_t>(command.id - 1));
  settings.run = command.run;
  settings.own = command.config;
  settings.agreed = command.agreed;
  settings.directory = command.out;
  settings.secret = command.secret;
  if (command.no_certificate) settings.certifying = Certifying::kNo;
  return settings;
}

// What goes over the wire, round by round.
class Traffic final : public RunListener {
 public:
  explicit Traffic(const RemoteExchange& exchange) : exchange_(exchange) {}

  Result<void> OnRound(const Host& /*host*/, const RoundReport& report,
                       double /*seconds*/) override {
    const std::int64_t bytes = exchange_.bytes_sent();
    PrintError("round {}: sent {}\n", report.round, Counted(bytes - bytes_before_, "byte"));
    bytes_before_ = bytes;
    return {};
  }

 private:
  const RemoteExchange& exchange_;
  std::int64_t bytes_before_ = 0;
};

}  // namespace

Result<void> RunLearner(const LearnerCommand& command) {
  const int num_threads = FEDGEN_TRY(NumThreads(command.threads));
  const Kernel kernel = FEDGEN_TRY(KernelFromName(command.kernel));
  RemoteExchange exchange(ExchangeOf(command));
  LearnerRun run = FEDGEN_TRY(EnterRun(SettingsOf(command), exchange));
  for (const std::string& warning : run.local.warnings) PrintError("warning: {}\n", warning);
  run.local.experiment.num_threads = num_threads;
  run.local.experiment.kernel = kernel;
  const auto view = MakeTerminalView(run.local, run.resumed);
  Traffic traffic(exchange);
  RunListener* const listeners[] = {view.get(), &traffic};
  const RunSummary summary = FEDGEN_TRY(Execute(run, exchange, listeners));
  Print("{}\n{} sent in {}\n{}/: policies/best.fgp, summary.json\n", RunSummaryText(summary),
        Counted(exchange.bytes_sent(), "byte"), Counted(exchange.num_sent(), "message"),
        run.local.files.directory());
  return {};
}

}  // namespace fedgen
