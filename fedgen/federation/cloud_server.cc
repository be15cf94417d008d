// SPDX-License-Identifier: Apache-2.0
#include "fedgen/federation/cloud_server.h"

#include <fmt/format.h>
#include <grpc/grpc_security.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "fedgen/base/check.h"
#include "fedgen/base/version.h"
#include "fedgen/federation/cloud_loop.h"
#include "fedgen/federation/grpc_log.h"
#include "fedgen/federation/wire-inl.h"
#include "fedgen/federation/wire.grpc.pb.h"
#include "fedgen/identity/peers.h"
#include "fedgen/identity/tls.h"

namespace fedgen {
namespace {

// What went wrong, for the other side. What may be tried again is kUnavailable.
grpc::Status GrpcStatusOf(const Error& error) {
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

// As gRPC's documents call it; those that are used here.
std::string CodeText(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::UNAVAILABLE:
      return "UNAVAILABLE";
    case grpc::StatusCode::INVALID_ARGUMENT:
      return "INVALID_ARGUMENT";
    case grpc::StatusCode::NOT_FOUND:
      return "NOT_FOUND";
    case grpc::StatusCode::PERMISSION_DENIED:
      return "PERMISSION_DENIED";
    default:
      return "FAILED_PRECONDITION";
  }
}

// The name in the certificate that the connection was made with, for the log.
std::string NameOfPeer(const grpc::CallbackServerContext& context) {
  const auto names = context.auth_context()->FindPropertyValues(GRPC_X509_CN_PROPERTY_NAME);
  return names.size() == 1 ? std::string(names[0].data(), names[0].size()) : context.peer();
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

// Exchange gets and gives bytes: what the Cloud answers in a round is the same for everybody, so it
// is encoded once, and of the finals of all there is one copy, however many learners wait for them.
using ServiceBase =
    v1::Federation::WithRawCallbackMethod_Exchange<v1::Federation::WithCallbackMethod_Enter<
        v1::Federation::WithCallbackMethod_Status<v1::Federation::Service>>>;

class Service final : public ServiceBase {
 public:
  Service(CloudLoop& loop, PeerCheck& peers, CloudWatcher& watcher, SharedSettings shared)
      : loop_(loop), peers_(peers), watcher_(watcher), shared_(std::move(shared)) {}

  grpc::ServerUnaryReactor* Enter(grpc::CallbackServerContext* context,
                                  const v1::EnterRequest* request, v1::EnterReply* reply) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    watcher_.OnCall(request->ByteSizeLong());
    const LearnerId speaker(request->learner());
    if (!SpeaksForItself(*context, speaker, reactor)) return reactor;
    const Result<Entered> entered =
        fedgen::Enter(shared_, {request->run(), request->version(), request->settings()});
    if (!entered) {
      Refuse(reactor, CommonNameOf(speaker), GrpcStatusOf(entered.error()));
      return reactor;
    }
    reply->set_run(entered->run);
    reply->set_settings(entered->settings);
    watcher_.OnAnswered(reply->ByteSizeLong());
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  grpc::ServerUnaryReactor* Exchange(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* bytes,
                                     grpc::ByteBuffer* reply) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    watcher_.OnCall(bytes->Length());
    v1::StepRequest request;
    grpc::ByteBuffer parsed = *bytes;  // another reference to them
    if (!grpc::SerializationTraits<v1::StepRequest>::Deserialize(&parsed, &request).ok()) {
      Refuse(reactor, NameOfPeer(*context), {grpc::StatusCode::INVALID_ARGUMENT, "is no message"});
      return reactor;
    }
    const LearnerId speaker(request.learner());
    if (!SpeaksForItself(*context, speaker, reactor)) return reactor;
    Result<StepMessage> message = FromWire(request);
    if (!message) {
      Refuse(reactor, CommonNameOf(speaker), GrpcStatusOf(message.error()));
      return reactor;
    }
    loop_.Post({request.run(), *std::move(message),
                [this, speaker, reactor, reply,
                 holds = request.holds()](Result<std::optional<StepAnswer>> answer) {
                  if (!answer) {
                    return Refuse(reactor, CommonNameOf(speaker), GrpcStatusOf(answer.error()));
                  }
                  *reply = Encoded(*std::move(answer), holds);
                  watcher_.OnAnswered(reply->Length());
                  reactor->Finish(grpc::Status::OK);
                }});
    return reactor;
  }

  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext* context,
                                   const v1::StatusRequest* request,
                                   v1::StatusReply* reply) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    watcher_.OnCall(request->ByteSizeLong());
    const Result<LearnerId> peer = PeerOf(*context);
    if (!peer) {
      Refuse(reactor, NameOfPeer(*context),
             {grpc::StatusCode::PERMISSION_DENIED, peer.error().message});
      return reactor;
    }
    loop_.PostStatus(
        [this, who = *peer, request, reactor, reply](std::optional<std::vector<RunStatus>> runs) {
          Result<CloudStatus> status = Describe(who, request->run(), std::move(runs));
          if (!status) return Refuse(reactor, CommonNameOf(who), GrpcStatusOf(status.error()));
          *reply = ToWire(*status);
          watcher_.OnAnswered(reply->ByteSizeLong());
          reactor->Finish(grpc::Status::OK);
        });
    return reactor;
  }

 private:
  // Whose certificate the connection was made with, if it is still good.
  Result<LearnerId> PeerOf(const grpc::CallbackServerContext& context) {
    const auto shown = context.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
    if (shown.size() != 1) return Error{ErrorCode::kMismatch, "no certificate was shown"};
    return peers_.Check({shown[0].data(), shown[0].size()}, SystemClock());
  }

  // Whether the certificate is the speaker's own; if not, the call is refused.
  bool SpeaksForItself(const grpc::CallbackServerContext& context, LearnerId speaker,
                       grpc::ServerUnaryReactor* reactor) {
    const Result<LearnerId> peer = PeerOf(context);
    if (peer && *peer == speaker) {
      const std::lock_guard lock(mutex_);
      heard_[speaker] = std::chrono::steady_clock::now();
      return true;
    }
    Refuse(
        reactor, NameOfPeer(context),
        {grpc::StatusCode::PERMISSION_DENIED,
         peer ? fmt::format("{} cannot speak for learner {}", CommonNameOf(*peer), speaker.name())
              : peer.error().message});
    return false;
  }

  // An answer, and its bytes.
  struct EncodedAnswer {
    std::optional<StepAnswer> answer;
    grpc::ByteBuffer bytes;
  };

  // By one thread at a time, as the loop answers.
  const grpc::ByteBuffer& Encoded(std::optional<StepAnswer> answer, const std::string& holds) {
    auto* const round = answer ? std::get_if<RoundAnswer>(&*answer) : nullptr;
    const bool is_held = round != nullptr && round->incumbent && round->incumbent->hash == holds;
    if (is_held) round->incumbent->theta.clear();
    EncodedAnswer& last = is_held ? last_without_theta_ : last_;
    if (last.bytes.Valid() && answer == last.answer) return last.bytes;
    last.answer = std::move(answer);
    last.bytes.Clear();
    bool is_own = false;
    const grpc::Status done = grpc::SerializationTraits<v1::StepReply>::Serialize(
        ToWire(last.answer), &last.bytes, &is_own);
    FEDGEN_CHECK(done.ok(), "an answer has no bytes: {}", done.error_message());
    return last.bytes;
  }

  void Refuse(grpc::ServerUnaryReactor* reactor, const std::string& peer,
              const grpc::Status& status) {
    watcher_.OnRefused(peer, CodeText(status.error_code()), status.error_message());
    reactor->Finish(status);
  }

  // What the loop knows of the runs, and what is known here: who was heard when.
  Result<CloudStatus> Describe(LearnerId asker, const std::string& run,
                               std::optional<std::vector<RunStatus>> runs) {
    if (!runs) return Error{ErrorCode::kIo, "the Cloud is going down"};
    const std::chrono::duration<double> since_1970 =
        std::chrono::system_clock::now().time_since_epoch();
    CloudStatus status{since_1970.count(), kVersion, CommonNameOf(asker), *std::move(runs)};
    std::erase_if(status.runs,
                  [&](const RunStatus& one) { return !run.empty() && one.progress.run != run; });
    if (status.runs.empty() && !run.empty()) {
      return Error{ErrorCode::kUsage, "no run of this name is served here"};
    }
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard lock(mutex_);
    for (RunStatus& one : status.runs) {
      for (MemberStatus& member : one.members) {
        const auto found = heard_.find(member.learner);
        if (found == heard_.end()) continue;
        member.silence = std::chrono::duration<double>(now - found->second).count();
      }
    }
    return status;
  }

  CloudLoop& loop_;
  PeerCheck& peers_;
  CloudWatcher& watcher_;
  SharedSettings shared_;
  std::mutex mutex_;  // guards: heard_
  std::map<LearnerId, std::chrono::steady_clock::time_point> heard_;
  EncodedAnswer last_, last_without_theta_;
};

// Against who would use up the Cloud, and for connections that died without a word.
void SetLimits(grpc::ServerBuilder& builder, const CloudServerOptions& options) {
  constexpr int kSecond = 1000;  // ms
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_message_bytes));
  // A learner has one call at a time; a host of many has many.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1000);
  // Whoever connects and does not finish the handshake is let go after a while.
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 20 * kSecond);
  // Clients may ask for a sign of life every 5 s; they do so every 20 s.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5 * kSecond);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60 * kSecond);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20 * kSecond);
  // A learner that computes for longer connects again.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, 3600 * kSecond);
  // Somebody else may not share the port: learners would reach either.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

}  // namespace

struct CloudServer::Parts {
  Parts(std::vector<ServedRun> runs, const CloudServerOptions& options, CloudWatcher& told,
        std::unique_ptr<PeerCheck> checked, std::unique_ptr<TlsWatch> watch)
      : watcher(told),
        loop(std::move(runs), options.patience, &told),
        peers(std::move(checked)),
        service(loop, *peers, told, options.shared),
        credentials(std::make_shared<WatchedCredentials>(std::move(watch))) {
    SendGrpcErrorsTo(watcher);
  }

  ~Parts() { StopSendingGrpcErrorsTo(watcher); }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  CloudWatcher& watcher;
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
  constexpr std::chrono::seconds kForTheLastWords{2};
  if (auto* health = parts_->server->GetHealthCheckService()) health->SetServingStatus(false);
  parts_->loop.Stop();
  parts_->server->Shutdown(std::chrono::system_clock::now() + kForTheLastWords);
  parts_->server->Wait();
}

int CloudServer::port() const { return parts_->port; }

Result<std::unique_ptr<CloudServer>> CloudServer::Start(const CloudServerOptions& options,
                                                        std::vector<ServedRun> runs) {
  static CloudWatcher nobody;
  CloudWatcher& watcher = options.watcher != nullptr ? *options.watcher : nobody;
  const TlsTrouble on_trouble = [&watcher](const std::string& what) { watcher.OnTrouble(what); };
  // The loop comes after the list, which may name somebody at once.
  const auto loop = std::make_shared<std::atomic<CloudLoop*>>(nullptr);
  const auto on_revoked = [&watcher, loop, told = options.on_revoked](LearnerId who) {
    watcher.OnRevoked(who);
    if (CloudLoop* const waits = *loop) waits->Revoke(who);
    if (told) told(who);
  };
  std::unique_ptr<TlsWatch> watch =
      FEDGEN_TRY(TlsWatch::Open(options.tls_directory, LearnerId::Cloud(), on_trouble));
  std::unique_ptr<PeerCheck> peers = FEDGEN_TRY(
      PeerCheck::Open({options.tls_directory, options.look_every, on_revoked, on_trouble}));
  auto parts = std::make_unique<Parts>(std::move(runs), options, watcher, std::move(peers),
                                       std::move(watch));
  *loop = &parts->loop;
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(options.listen, parts->credentials, &parts->port);
  builder.RegisterService(&parts->service);
  SetLimits(builder, options);
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
