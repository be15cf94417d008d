// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>

#include "fedgen/base/file.h"
#include "fedgen/base/text.h"
#include "fedgen/cli/commands.h"
#include "fedgen/cli/print.h"
#include "fedgen/federation/run_log.h"
#include "fedgen/federation/status.h"
#include "fedgen/fleet/cloud_run.h"
#include "fedgen/operate/backup.h"
#include "fedgen/operate/cloud_observer.h"
#include "fedgen/operate/doctor.h"
#include "fedgen/operate/event_log.h"
#include "fedgen/operate/metrics.h"
#include "fedgen/operate/status_text.h"

namespace fedgen {
namespace {

Result<CloudRunSettings> SettingsOf(const CloudCommand& command) {
  const auto needed = [](const char* flag) {
    return Error{ErrorCode::kUsage, fmt::format("{} is required (see fedgen cloud --help)", flag)};
  };
  if (command.listen.empty()) return needed("--listen");
  if (command.tls.empty()) return needed("--tls");
  if (command.runs.empty()) return needed("--run");
  if (command.store.empty()) return needed("--store");
  CloudRunSettings settings;
  settings.runs = command.runs;
  settings.overrides = command.overrides;
  AddPaceTo(settings.overrides, command.patience, command.async);
  settings.store = command.store;
  settings.seed = command.seed;
  settings.server.listen = command.listen;
  settings.server.tls_directory = command.tls;
  return settings;
}

// Signals that end the program gracefully are taken by whoever waits for them.
sigset_t BlockEndingSignals() {
  sigset_t ending;
  ::sigemptyset(&ending);
  ::sigaddset(&ending, SIGTERM);
  ::sigaddset(&ending, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  return ending;
}

}  // namespace

void AddPaceTo(std::vector<std::string>& overrides, std::optional<double> patience, bool async) {
  if (patience) overrides.push_back(fmt::format("federation.patience={}", *patience));
  if (async) overrides.emplace_back("federation.async=true");
}

LogForm LogFormOf(const std::string& log) {
  if (log.empty()) return IsTerminal() ? LogForm::kText : LogForm::kJson;
  return log == "text" ? LogForm::kText : LogForm::kJson;
}

Result<void> RunCloud(const CloudCommand& command) {
  CloudRunSettings settings = FEDGEN_TRY(SettingsOf(command));
  if (const std::string problem = TryToListen(command.listen); !problem.empty()) {
    return Error{ErrorCode::kIo, fmt::format("--listen {}: {}", command.listen, problem)};
  }
  const sigset_t ending = BlockEndingSignals();
  const EventLog log(STDERR_FILENO, LogFormOf(command.log));
  Metrics metrics;
  CloudObserver observer(&log, &metrics);
  settings.server.watcher = &observer;
  std::unique_ptr<MetricsServer> metrics_server;
  if (!command.metrics.empty()) {
    metrics_server =
        FEDGEN_TRY(MetricsServer::Start(command.metrics, [&] { return metrics.Text(); }));
  }
  {
    const ServingCloud cloud = FEDGEN_TRY(Serve(settings));
    log.Write(
        LogLevel::kInfo, "serving",
        {{"runs", fmt::format("{}", fmt::join(cloud.runs, ", "))}, {"port", cloud.server->port()}});
    int signal = 0;
    ::sigwait(&ending, &signal);
    log.Write(LogLevel::kInfo, "ending", {{"signal", signal}});
  }
  log.Write(LogLevel::kInfo, "ended");
  return {};
}

Result<void> RunCloudStatus(const CloudStatusCommand& command) {
  Result<CloudStatus> status = Error{ErrorCode::kUsage, "--cloud is empty"};
  for (const std::string& address : command.cloud) {
    status = FetchStatus(address, command.tls, command.run);
    if (status) break;
  }
  if (!status) return status.error();
  Print("{}", command.json ? StatusJson(*status) : StatusText(*status));
  return {};
}

Result<void> RunCloudBackup(const CloudBackupCommand& command) {
  const BackupInfo info = FEDGEN_TRY(BackupStore(command.store, command.output));
  Print("{}: {}, {}\n", command.output, Counted(static_cast<std::int64_t>(info.runs), "run"),
        Counted(static_cast<std::int64_t>(info.bytes), "byte"));
  return {};
}

Result<void> RunCloudLog(const CloudLogCommand& command) {
  const std::unique_ptr<Store> store = FEDGEN_TRY(OpenStoreForReading(command.store));
  const RunLog log = FEDGEN_TRY(ReadRunLog(*store, command.run));
  FEDGEN_TRY(WriteFileAtomically(command.output, LogToText(log), WhatIfExists(command.force)));
  Print("{}: {}\n", command.output, Counted(static_cast<std::int64_t>(log.events.size()), "event"));
  return {};
}

}  // namespace fedgen
