// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "fedgen/base/result.h"
#include "fedgen/fuse/knowledge.h"

namespace fedgen {

// Servers to be loaded, each in a process of its own, so that its memory and processor time are its
// own too.

/// A bare echo takes bytes and gives the same bytes back, by the same callback interface of gRPC,
/// the same TLS and under the same method name as a Cloud. It decodes nothing and keeps nothing.
enum class ServerKind { kEcho, kCloud };

struct ServerOptions {
  ServerKind kind = ServerKind::kEcho;
  std::string tls_directory{};  // of the Cloud's identity
  // Of the Cloud: runs that share the learners 1..learners evenly, in a store of their own.
  std::uint32_t learners = 1;
  std::uint32_t runs = 1;
  std::uint64_t num_parameters = 0;
  std::string store{};  // path of the file
};

/// The run that a learner is in.
std::string LoadRunOf(LearnerId learner, std::uint32_t runs);

/// A child process that serves on a port of loopback until this goes.
class ServerProcess {
 public:
  /// Must be called before this process has used gRPC, whose threads a fork leaves behind.
  static Result<ServerProcess> Start(const ServerOptions& options);
  ServerProcess(ServerProcess&& other) noexcept;
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ServerProcess& operator=(ServerProcess&&) = delete;
  ~ServerProcess();

  int port() const { return port_; }
  /// Memory that it holds now, and the most so far, in bytes.
  std::int64_t Resident() const { return Status("VmRSS:"); }
  std::int64_t MostResident() const { return Status("VmHWM:"); }
  /// Processor time that it has used, in seconds.
  double CpuSeconds() const;

 private:
  ServerProcess(pid_t process, int lifeline, int port)
      : process_(process), lifeline_(lifeline), port_(port) {}
  std::int64_t Status(const std::string& field) const;

  pid_t process_;
  int lifeline_;  // the child ends when this is closed
  int port_;
};

}  // namespace fedgen
