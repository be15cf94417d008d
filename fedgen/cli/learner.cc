// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "fedgen/base/text.h"
#include "fedgen/base/version.h"
#include "fedgen/cli/commands.h"
#include "fedgen/cli/live_view.h"
#include "fedgen/cli/print.h"
#include "fedgen/fleet/learner_run.h"
#include "fedgen/operate/event_log.h"
#include "fedgen/report/summary_text.h"

namespace fedgen {
namespace {

RemoteExchangeOptions ExchangeOf(const LearnerCommand& command, const EventLog& log, LogForm form) {
  RemoteExchangeOptions options;
  options.addresses = command.cloud;
  options.run = command.run;
  options.tls_directory = command.tls;
  options.who = LearnerId(static_cast<std::uint32_t>(command.id - 1));
  options.deadline = std::chrono::milliseconds(std::llround(1000 * command.deadline));
  // A run goes on for as long as it takes; who only says good-bye wants to know whether it was
  // heard.
  if (command.leave) options.give_up = options.deadline;
  options.on_trouble = [&log, form](const std::string& trouble) {
    if (form == LogForm::kJson)
      return log.Write(LogLevel::kWarning, "trouble", {{"text", trouble}});
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

// Whether it will not speak in rounds any more, and hears of the end.
bool WaitsForTheEnd(const Host& host) {
  return !host.options().async && host.ending() == Ending::kNotYet &&
         host.learners().front()->resting();
}

// What goes over the wire: told for people as often as the view speaks.
class Traffic final : public RunListener {
 public:
  explicit Traffic(const RemoteExchange& exchange) : exchange_(exchange) {}

  Result<void> OnRound(const Host& host, const RoundReport& report, double /*seconds*/) override {
    const bool last = report.ending != Ending::kNotYet;
    ++rounds_;
    if (WaitsForTheEnd(host)) {
      PrintError("resting from round {} on: it has the best policy known, and hears of the end\n",
                 report.round + 1);
    }
    if (IsTerminal() || (!last && rounds_ < std::max(1, host.options().rounds / 20))) return {};
    const std::int64_t bytes = exchange_.bytes_sent();
    PrintError("{}: sent {} a round\n", Counted(rounds_, "round"),
               Counted((bytes - bytes_before_) / rounds_, "byte"));
    bytes_before_ = bytes;
    rounds_ = 0;
    return {};
  }

 private:
  const RemoteExchange& exchange_;
  std::int64_t bytes_before_ = 0;
  int rounds_ = 0;  // since it last spoke
};

// The same and all else for programs.
class LearnerLog final : public RunListener {
 public:
  LearnerLog(const EventLog& log, const LearnerRun& run, const RemoteExchange& exchange)
      : log_(log), run_(run), exchange_(exchange) {}

  Result<void> OnBegin(const Host& host) override {
    log_.Write(LogLevel::kInfo, host.round() == 0 ? "begins" : "goes on",
               {{"run", run_.run},
                {"learner", std::int64_t{run_.seat.id.number()}},
                {"round", host.round()},
                {"rounds", host.options().rounds},
                {"directory", run_.local.files.directory()}});
    return {};
  }
  Result<void> OnRound(const Host& host, const RoundReport& report, double seconds) override {
    const std::int64_t bytes = exchange_.bytes_sent();
    const LearnerRound& own = report.learners.front();
    log_.Write(LogLevel::kInfo, "round",
               {{"round", report.round},
                {"state", std::string(NameOf(own.phase))},
                {"y", own.y},
                {"b", own.b},
                {"incumbent", report.incumbent ? report.incumbent->hash : ""},
                {"seconds", seconds},
                {"bytes", bytes - bytes_before_}});
    for (const std::string& remark : report.remarks) {
      log_.Write(LogLevel::kWarning, "remark", {{"text", remark}});
    }
    if (WaitsForTheEnd(host)) {
      log_.Write(LogLevel::kInfo, "rests", {{"from", report.round + 1}});
    }
    bytes_before_ = bytes;
    return {};
  }
  Result<void> OnEnd(const Host& host, const Finalists& finalists) override {
    log_.Write(LogLevel::kInfo, "trained",
               {{"round", host.round()},
                {"finalists", static_cast<std::int64_t>(finalists.finals.size())}});
    return {};
  }

 private:
  const EventLog& log_;
  const LearnerRun& run_;
  const RemoteExchange& exchange_;
  std::int64_t bytes_before_ = 0;
};

}  // namespace

Result<void> RunLearner(const LearnerCommand& command) {
  const int num_threads = FEDGEN_TRY(NumThreads(command.threads));
  const Kernel kernel = FEDGEN_TRY(KernelFromName(command.kernel));
  const LogForm form = LogFormOf(command.log);
  const EventLog log(STDERR_FILENO, form);
  RemoteExchange exchange(ExchangeOf(command, log, form));
  if (command.leave) {
    const LearnerId learner = SettingsOf(command).learner;
    FEDGEN_TRY(exchange.Enter(learner, {command.run, kVersion, ""}));
    FEDGEN_TRY(exchange.Leave(learner));
    Print("learner {} has left: nobody waits for it any more\n", learner.name());
    return {};
  }
  LearnerRun run = FEDGEN_TRY(EnterRun(SettingsOf(command), exchange));
  for (const std::string& warning : run.local.warnings) PrintError("warning: {}\n", warning);
  run.local.experiment.num_threads = num_threads;
  run.local.experiment.kernel = kernel;
  const auto view = MakeTerminalView(run.local, run.resumed);
  Traffic traffic(exchange);
  LearnerLog events(log, run, exchange);
  std::vector<RunListener*> listeners = {view.get(), &traffic};
  if (form == LogForm::kJson) listeners = {&events};
  const RunSummary summary = FEDGEN_TRY(Execute(run, exchange, listeners));
  if (form == LogForm::kJson) {
    log.Write(LogLevel::kInfo, "done",
              {{"winner", summary.race[summary.winner].name},
               {"messages", exchange.num_sent()},
               {"bytes", exchange.bytes_sent()}});
    return {};
  }
  Print("{}\n{} sent in {}\n{}/: policies/best.fgp, summary.json{}\n", RunSummaryText(summary),
        Counted(exchange.bytes_sent(), "byte"), Counted(exchange.num_sent(), "message"),
        run.local.files.directory(), summary.certificate ? ", certificate.json" : "");
  return {};
}

}  // namespace fedgen
