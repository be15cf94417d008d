// SPDX-License-Identifier: Apache-2.0
#include "fedgen/federation/cloud_server.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <optional>
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

// A learner speaks for itself only: what to tell somebody else.
std::optional<grpc::Status> FindImpostor(const grpc::CallbackServerContext& context,
                                         std::uint32_t learner) {
  const std::string peer = NameOfPeer(context);
  if (peer == CommonNameOf(LearnerId(learner))) return std::nullopt;
  return grpc::Status(
      grpc::StatusCode::PERMISSION_DENIED,
      fmt::format("{} cannot speak for learner {}", peer, LearnerId(learner).name()));
}

class Service final : public v1::Federation::CallbackService {
 public:
  Service(CloudLoop& loop, SharedSettings shared) : loop_(loop), shared_(std::move(shared)) {}

  grpc::ServerUnaryReactor* Enter(grpc::CallbackServerContext* context,
                                  const v1::EnterRequest* request,
                                  v1::EnterReply* reply) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    if (const auto refused = FindImpostor(*context, request->learner())) {
      reactor->Finish(*refused);
      return reactor;
    }
    const Result<Entered> entered =
        fedgen::Enter(shared_, {request->run(), request->version(), request->settings()});
    if (entered) {
      reply->set_run(entered->run);
      reply->set_settings(entered->settings);
    }
    reactor->Finish(entered ? grpc::Status::OK : StatusOf(entered.error()));
    return reactor;
  }

  grpc::ServerUnaryReactor* Exchange(grpc::CallbackServerContext* context,
                                     const v1::StepRequest* request,
                                     v1::StepReply* reply) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    if (const auto refused = FindImpostor(*context, request->learner())) {
      reactor->Finish(*refused);
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
  SharedSettings shared_;
};

}  // namespace

struct CloudServer::Parts {
  Parts(std::vector<ServedRun> runs, const CloudServerOptions& options)
      : loop(std::move(runs), options.patience), service(loop, options.shared) {}

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
  auto parts = std::make_unique<Parts>(std::move(runs), options);
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
