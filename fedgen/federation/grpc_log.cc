// SPDX-License-Identifier: Apache-2.0
#include "fedgen/federation/grpc_log.h"

#include <grpc/support/log.h>

#include <cstdlib>
#include <mutex>

namespace fedgen {
namespace {

// gRPC's log is the process's, so this is too.
struct Listening {
  std::mutex mutex;  // guards: watcher
  CloudWatcher* watcher = nullptr;
};

Listening& TheListening() {
  static Listening listening;
  return listening;
}

}  // namespace

void KeepGrpcFromStderr() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (std::getenv("GRPC_VERBOSITY") != nullptr) return;
    gpr_set_log_function([](gpr_log_func_args* said) {
      Listening& listening = TheListening();
      const std::lock_guard lock(listening.mutex);
      if (listening.watcher != nullptr) listening.watcher->OnTransport(said->message);
    });
  });
}

void SendGrpcErrorsTo(CloudWatcher& watcher) {
  KeepGrpcFromStderr();
  Listening& listening = TheListening();
  const std::lock_guard lock(listening.mutex);
  listening.watcher = &watcher;
}

void StopSendingGrpcErrorsTo(const CloudWatcher& watcher) {
  Listening& listening = TheListening();
  const std::lock_guard lock(listening.mutex);
  if (listening.watcher == &watcher) listening.watcher = nullptr;
}

}  // namespace fedgen
