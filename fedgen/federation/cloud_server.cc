// SPDX-License-Identifier: Apache-2.0
#include "fedgen/federation/cloud_server.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <utility>

#include "fedgen/federation/cloud_loop.h"
#include "fedgen/identity/pki.h"
#include "fedgen/federation/wire-inl.h"
#include "fedgen/federation/wire.grpc.pb.h"

namespace fedgen {
namespace {

// What went wrong, for the other side. What may be tried again is kUnavailable.
grpc::Status StatusOf(const Error& error) {
  switch (error.code) {
    case ErrorCode::kIo:
      return {grpc::StatusCode::UNAVAILABLE, error.message};
    case ErrorCode::kData:
    case ErrorCode::kConfig:
      return {grpc::StatusCode::INVALID_ARGUMENT, error.message};
    case ErrorCode::kUsage:
      return {grpc::StatusCode::NOT_FOUND, error.message};
    case ErrorCode::kMismatch:
    case ErrorCode::kExists:
    case ErrorCode::kMissed:
      break;
  }
  return {grpc::StatusCode::FAILED_PRECONDITION, error.message};
}

// The name in the certificate that the connection was made with.
std::string NameOfPeer(const grpc::CallbackServerContext& context) {
  const auto names = context.auth_context()->FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME);
  return names.size() == 1 ? std::string(names[0].data(), names[0].size()) : "";
}

class Service final : public v1::Federation::CallbackService {
 public:
  explicit Service(CloudLoop& loop) : loop_(loop) {}

  grpc::ServerUnaryReactor* Exchange(grpc::CallbackServerContext* context,
                                     const v1::StepRequest* request,
                                     v1::StepReply* reply) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const std::string peer = NameOfPeer(*context);
    if (peer != CommonNameOf(LearnerId(request->learner()))) {
      reactor->Finish(
          {grpc::StatusCode::PERMISSION_DENIED, fmt::format("{} cannot speak for learner {}", peer,
                                                            LearnerId(request->learner()).name())});
      return reactor;
    }
    Result<StepMessage> message = FromWire(*request);
    if (!message) {
      reactor->Finish(StatusOf(message.error()));
      return reactor;
    }
    loop_.Post({request->run(), *std::move(message),
                [reactor, reply](Result<std::optional<StepAnswer>> answer) {
                  if (!answer) return reactor->Finish(StatusOf(answer.error()));
                  *reply = ToWire(*answer);
                  reactor->Finish(grpc::Status::OK);
                }});
    return reactor;
  }

 private:
  CloudLoop& loop_;
};

}  // namespace

struct CloudServer::Parts {
  Parts(std::vector<ServedRun> runs, std::chrono::milliseconds patience)
      : loop(std::move(runs), patience), service(loop) {}

  CloudLoop loop;
  Service service;
  std::unique_ptr<grpc::Server> server;
  int port = 0;
};

CloudServer::CloudServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

// The loop stops first: it answers everybody who waits, for whom gRPC would wait.
CloudServer::~CloudServer() {
  parts_->loop.Stop();
  parts_->server->Shutdown(std::chrono::system_clock::now());
  parts_->server->Wait();
}

int CloudServer::port() const { return parts_->port; }

Result<std::unique_ptr<CloudServer>> CloudServer::Start(const CloudServerOptions& options,
                                                        std::vector<ServedRun> runs) {
  auto parts = std::make_unique<Parts>(std::move(runs), options.patience);
  grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  tls.pem_root_certs = options.tls.authority;
  tls.pem_key_cert_pairs.push_back({options.tls.key, options.tls.certificate});
  grpc::ServerBuilder builder;
  builder.AddListeningPort(options.listen, grpc::SslServerCredentials(tls), &parts->port);
  builder.RegisterService(&parts->service);
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
  // Somebody else may not share the port: learners would reach either.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  parts->server = builder.BuildAndStart();
  if (!parts->server || parts->port == 0) {
    return Error{ErrorCode::kIo,
                 fmt::format("--listen {}: cannot listen there; is the port taken, or the "
                             "certificate not one?",
                             options.listen)};
  }
  return std::unique_ptr<CloudServer>(new CloudServer(std::move(parts)));
}

}  // namespace fedgen
