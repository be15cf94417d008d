// SPDX-License-Identifier: Apache-2.0
#include "bench/load_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "fedgen/federation/cloud_server.h"
#include "fedgen/federation/wire.grpc.pb.h"
#include "fedgen/identity/tls.h"

namespace fedgen {
namespace {

class EchoService final
    : public v1::Federation::WithRawCallbackMethod_Exchange<v1::Federation::Service> {
 public:
  grpc::ServerUnaryReactor* Exchange(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* reply) override {
    *reply = *request;
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

// Blocks until the other end of the lifeline is closed.
void WaitForEnd(int lifeline) {
  char byte = 0;
  while (::read(lifeline, &byte, 1) > 0) {
  }
}

void Tell(int lifeline, int port) {
  if (::write(lifeline, &port, sizeof port) != sizeof port) ::_exit(1);
}

Result<void> ServeEcho(const ServerOptions& options, int lifeline) {
  grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  const TlsIdentity identity =
      FEDGEN_TRY(LoadTlsIdentity(options.tls_directory, LearnerId::Cloud(), SystemClock()));
  tls.pem_root_certs = identity.authority;
  tls.pem_key_cert_pairs.push_back({identity.key, identity.certificate});
  EchoService service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(tls), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (!server) return Error{ErrorCode::kIo, "the echo cannot listen on 127.0.0.1"};
  Tell(lifeline, port);
  WaitForEnd(lifeline);
  server->Shutdown(std::chrono::system_clock::now());
  return {};
}

Result<void> ServeCloud(const ServerOptions& options, int lifeline) {
  const std::unique_ptr<Store> store = FEDGEN_TRY(OpenStore("sqlite:" + options.store));
  std::vector<ServedRun> runs;
  for (std::uint32_t first = 0; first < options.runs; ++first) {
    ServedSettings settings;
    settings.run = LoadRunOf(LearnerId(first), options.runs);
    settings.options.rounds = 10'000'000;
    for (std::uint32_t index = first; index < options.learners; index += options.runs) {
      settings.learners.emplace_back(index);
    }
    settings.num_parameters = options.num_parameters;
    runs.push_back(FEDGEN_TRY(ServedRun::Open(settings, *store)));
  }
  CloudServerOptions serving;
  serving.tls_directory = options.tls_directory;
  serving.patience = std::chrono::minutes(10);  // nobody is told to ask again
  const std::unique_ptr<CloudServer> server =
      FEDGEN_TRY(CloudServer::Start(serving, std::move(runs)));
  Tell(lifeline, server->port());
  WaitForEnd(lifeline);
  return {};
}

[[noreturn]] void Serve(const ServerOptions& options, int lifeline) {
  const Result<void> served = options.kind == ServerKind::kEcho ? ServeEcho(options, lifeline)
                                                                : ServeCloud(options, lifeline);
  if (!served) fmt::print(stderr, "{}\n", served.error().message);
  ::_exit(served ? 0 : 1);
}

}  // namespace

std::string LoadRunOf(LearnerId learner, std::uint32_t runs) {
  return fmt::format("load-{}", learner.index() % runs);
}

Result<ServerProcess> ServerProcess::Start(const ServerOptions& options) {
  int ends[2] = {};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return Error{ErrorCode::kIo, "no socket for a server process"};
  }
  const pid_t process = ::fork();
  if (process < 0) return Error{ErrorCode::kIo, "cannot fork a server process"};
  if (process == 0) {
    ::close(ends[0]);
    Serve(options, ends[1]);
  }
  ::close(ends[1]);
  int port = 0;
  if (::read(ends[0], &port, sizeof port) != sizeof port) {
    ::close(ends[0]);
    ::waitpid(process, nullptr, 0);
    return Error{ErrorCode::kIo, "a server process did not start"};
  }
  return ServerProcess(process, ends[0], port);
}

ServerProcess::ServerProcess(ServerProcess&& other) noexcept
    : process_(std::exchange(other.process_, -1)), lifeline_(other.lifeline_), port_(other.port_) {}

ServerProcess::~ServerProcess() {
  if (process_ < 0) return;
  // A later child has a copy of the lifeline, so that closing ours would not be noticed.
  ::shutdown(lifeline_, SHUT_RDWR);
  ::close(lifeline_);
  ::waitpid(process_, nullptr, 0);
}

std::int64_t ServerProcess::Status(const std::string& field) const {
  std::ifstream file(fmt::format("/proc/{}/status", process_));
  std::string word;
  while (file >> word) {
    std::int64_t kibibytes = 0;
    if (word == field && file >> kibibytes) return kibibytes * 1024;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

double ServerProcess::CpuSeconds() const {
  clockid_t clock = 0;
  std::timespec time = {};
  if (::clock_getcpuclockid(process_, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace fedgen
