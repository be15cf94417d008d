// SPDX-License-Identifier: Apache-2.0
#include "fedgen/federation/cloud_server.h"

#include <fmt/format.h>
#include <grpc/grpc_security.h>
#include <grpcpp/grpcpp.h>

#include <mutex>
#include <utility>

#include "fedgen/federation/cloud_loop.h"
#include "fedgen/federation/wire-inl.h"
#include "fedgen/federation/wire.grpc.pb.h"
#include "fedgen/identity/peers.h"
#include "fedgen/identity/tls.h"

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

// Credentials that ask for the pair of files at each handshake: connections that are open keep
// theirs, and new ones have what is in the directory. gRPC has this in C only.
class WatchedCredentials final : public grpc::ServerCredentials {
 public:
  explicit WatchedCredentials(std::unique_ptr<TlsWatch> watch)
      : watch_(std::move(watch)),
        credentials_(grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(
                GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, Fetch, this))) {}
  ~WatchedCredentials() override { grpc_server_credentials_release(credentials_); }
  WatchedCredentials(const WatchedCredentials&) = delete;
  WatchedCredentials& operator=(const WatchedCredentials&) = delete;

  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    auto* const credentials = static_cast<WatchedCredentials*>(self);
    const std::lock_guard lock(credentials->mutex_);
    const std::shared_ptr<const TlsIdentity> tls = credentials->watch_->Current();
    if (tls == credentials->given_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    credentials->given_ = tls;
    const grpc_ssl_pem_key_cert_pair pair{tls->key.c_str(), tls->certificate.c_str()};
    *config = grpc_ssl_server_certificate_config_create(tls->authority.c_str(), &pair, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  std::unique_ptr<TlsWatch> watch_;
  std::mutex mutex_;                          // guards: given_
  std::shared_ptr<const TlsIdentity> given_;  // to gRPC, last
  grpc_server_credentials* credentials_;
};

class Service final : public v1::Federation::CallbackService {
 public:
  Service(CloudLoop& loop, PeerCheck& peers, SharedSettings shared)
      : loop_(loop), peers_(peers), shared_(std::move(shared)) {}

  grpc::ServerUnaryReactor* Enter(grpc::CallbackServerContext* context,
                                  const v1::EnterRequest* request,
                                  v1::EnterReply* reply) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    if (const Result<void> allowed = CheckSpeaker(*context, LearnerId(request->learner()));
        !allowed) {
      reactor->Finish({grpc::StatusCode::PERMISSION_DENIED, allowed.error().message});
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
    if (const Result<void> allowed = CheckSpeaker(*context, LearnerId(request->learner()));
        !allowed) {
      reactor->Finish({grpc::StatusCode::PERMISSION_DENIED, allowed.error().message});
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
  // Whether the certificate that the connection was made with is the speaker's, and still good.
  Result<void> CheckSpeaker(const grpc::CallbackServerContext& context, LearnerId speaker) {
    const auto shown = context.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
    if (shown.size() != 1) return Error{ErrorCode::kMismatch, "no certificate was shown"};
    const LearnerId peer =
        FEDGEN_TRY(peers_.Check({shown[0].data(), shown[0].size()}, SystemClock()));
    if (peer == speaker) return {};
    return Error{ErrorCode::kMismatch,
                 fmt::format("{} cannot speak for learner {}", CommonNameOf(peer), speaker.name())};
  }

  CloudLoop& loop_;
  PeerCheck& peers_;
  SharedSettings shared_;
};

}  // namespace

struct CloudServer::Parts {
  Parts(std::vector<ServedRun> runs, const CloudServerOptions& options,
        std::unique_ptr<PeerCheck> checked, std::unique_ptr<TlsWatch> watch)
      : loop(std::move(runs), options.patience),
        peers(std::move(checked)),
        service(loop, *peers, options.shared),
        credentials(std::make_shared<WatchedCredentials>(std::move(watch))) {}

  CloudLoop loop;
  std::unique_ptr<PeerCheck> peers;
  Service service;
  std::shared_ptr<WatchedCredentials> credentials;  // gRPC calls it until the server is gone
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
  std::unique_ptr<TlsWatch> watch =
      FEDGEN_TRY(TlsWatch::Open(options.tls_directory, LearnerId::Cloud(), options.on_trouble));
  std::unique_ptr<PeerCheck> peers = FEDGEN_TRY(PeerCheck::Open(
      {options.tls_directory, options.look_every, options.on_revoked, options.on_trouble}));
  auto parts = std::make_unique<Parts>(std::move(runs), options, std::move(peers),
                                       std::move(watch));
  grpc::ServerBuilder builder;
  builder.AddListeningPort(options.listen, parts->credentials, &parts->port);
  builder.RegisterService(&parts->service);
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
  // Whoever connects and does not finish the handshake is let go after a while.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 20000);
  // Somebody else may not share the port: learners would reach either.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  parts->server = builder.BuildAndStart();
  if (!parts->server || parts->port == 0) {
    return Error{ErrorCode::kIo,
                 fmt::format("--listen {}: cannot listen there; is the port taken, or the "
                             "address another machine's?",
                             options.listen)};
  }
  return std::unique_ptr<CloudServer>(new CloudServer(std::move(parts)));
}

}  // namespace fedgen
