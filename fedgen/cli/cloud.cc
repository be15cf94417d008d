// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <csignal>

#include "fedgen/cli/commands.h"
#include "fedgen/cli/print.h"
#include "fedgen/fleet/cloud_run.h"

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

Result<void> RunCloud(const CloudCommand& command) {
  const CloudRunSettings settings = FEDGEN_TRY(SettingsOf(command));
  const sigset_t ending = BlockEndingSignals();
  const ServingCloud cloud = FEDGEN_TRY(Serve(settings));
  PrintError("serving {} on port {}\n", fmt::join(cloud.runs, ", "), cloud.server->port());
  int signal = 0;
  ::sigwait(&ending, &signal);
  PrintError("ending: learners will ask again\n");
  return {};
}

}  // namespace fedgen
