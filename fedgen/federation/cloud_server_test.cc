// SPDX-License-Identifier: Apache-2.0

// The doors of a Cloud: who may come in and say what, by a client that says whatever it is told to.

#include "fedgen/federation/cloud_server.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <limits>
#include <mutex>

#include "fedgen/base/file_testing.h"
#include "fedgen/federation/remote_exchange.h"
#include "fedgen/federation/status.h"
#include "fedgen/federation/wire-inl.h"
#include "fedgen/federation/wire.grpc.pb.h"
#include "fedgen/fuse/checkpoint.h"
#include "fedgen/identity/identity_testing.h"

namespace fedgen {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr LearnerId kFirst{0};
constexpr LearnerId kSecond{1};

// One connection, and what came back over it.
class Caller {
 public:
  Caller(int port, const TlsIdentity& tls) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = v1::Federation::NewStub(grpc::CreateCustomChannel(
        fmt::format("127.0.0.1:{}", port),
        grpc::SslCredentials({tls.authority, tls.key, tls.certificate}), arguments));
  }

  grpc::Status Call(const v1::StepRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    reply_.Clear();
    const grpc::Status status = stub_->Exchange(&context, request, &reply_);
    const auto shown = context.auth_context()
                           ? context.auth_context()->FindPropertyValues("x509_pem_cert")
                           : std::vector<grpc::string_ref>();
    if (!shown.empty()) {
      clouds_serial_ =
          ReadCertificate({std::string(shown[0].data(), shown[0].size()), "peer"})->serial;
    }
    return status;
  }
  /// "ok", or what the Cloud says.
  std::string Say(const StepMessage& message, const std::string& run = "run") {
    const grpc::Status status = Call(ToWire(run, message));
    return status.ok() ? "ok" : status.error_message();
  }
  grpc::StatusCode CodeOf(const StepMessage& message, const std::string& run = "run") {
    return Call(ToWire(run, message)).error_code();
  }

  const v1::StepReply& reply() const { return reply_; }
  /// Of the certificate that the Cloud showed.
  const std::string& clouds_serial() const { return clouds_serial_; }

 private:
  std::unique_ptr<v1::Federation::Stub> stub_;
  v1::StepReply reply_;
  std::string clouds_serial_;
};

RoundMessage RoundOf(LearnerId who, int round) {
  Submission submission{who, round, who, 0.5, 0.1, {1, 2}, ""};
  submission.hash = HashOf(submission.theta);
  return {who, round, submission, {}, {}, {}, 10};
}

class CloudDoors : public ::testing::Test, protected TemporaryDirectory {
 protected:
  void SetUp() override { Start({kFirst, kSecond}); }

  void Start(const std::vector<LearnerId>& learners) {
    Stop();
    settings_ = {"run", {.rounds = 3}, learners, 2};
    store_path_ = Path(fmt::format("cloud-{}.db", learners.size()));
    store_ = *OpenStore("sqlite:" + store_path_);
    std::vector<ServedRun> runs;
    runs.push_back(*ServedRun::Open(settings_, *store_));
    CloudServerOptions options;
    options.tls_directory = Path("cloud");
    options.look_every = std::chrono::milliseconds(0);
    options.patience = std::chrono::milliseconds(1);
    options.max_message_bytes = std::size_t{1} << 20;
    options.on_revoked = [this](LearnerId who) {
      const std::lock_guard lock(mutex_);
      revoked_.push_back(who);
    };
    options.watcher = watcher_;
    Result<std::unique_ptr<CloudServer>> server = CloudServer::Start(options, std::move(runs));
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
  }
  void Stop() {
    server_.reset();
    store_.reset();
  }
  // What the Cloud would begin with again.
  std::string Remembered() {
    Stop();
    const std::unique_ptr<Store> store = *OpenStore("sqlite:" + store_path_);
    return BytesOf(*ServedRun::Open(settings_, *store));
  }
  static std::string BytesOf(const ServedRun& run) {
    return CheckpointToBytes(CloudCheckpoint{"", run.cloud().state()});
  }
  /// The state of a Cloud that has heard exactly these.
  std::string StateAfter(const std::vector<StepMessage>& messages) {
    const std::unique_ptr<Store> store = *OpenStore("sqlite:" + Path("expected.db"));
    ServedRun run = *ServedRun::Open(settings_, *store);
    for (const StepMessage& message : messages) EXPECT_TRUE(run.Hear(message));
    return BytesOf(run);
  }
  Caller CallerOf(const TlsIdentity& tls) const { return {server_->port(), tls}; }
  TlsIdentity NewIdentity(LearnerId who) const { return MakeTestIdentity(authority_, who); }

  const Authority authority_ = MakeTestAuthority("test");
  const TlsIdentity first_ = NewIdentity(kFirst), second_ = NewIdentity(kSecond);
  const TlsIdentity clouds_ = NewIdentity(LearnerId::Cloud());
  const std::string directory_ = WriteTestIdentity(Path("cloud"), clouds_);
  CloudWatcher* watcher_ = nullptr;
  ServedSettings settings_;
  std::string store_path_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<CloudServer> server_;
  std::mutex mutex_;  // guards: revoked_
  std::vector<LearnerId> revoked_;
};

const JoinMessage kJoin{kFirst, {1, 2}};
const JoinMessage kSecondJoin{kSecond, {1, 2}};

// Not even heard: TLS ends the connection.
TEST_F(CloudDoors, AreShutToWhomTheAuthorityDoesNotKnow) {
  const Authority rogue = MakeTestAuthority("test");
  TlsIdentity stranger = MakeTestIdentity(rogue, kFirst);
  EXPECT_EQ(CallerOf(stranger).CodeOf(kJoin), grpc::StatusCode::UNAVAILABLE);
  stranger.authority = first_.authority;  // it believes the Cloud, which does not believe it
  EXPECT_EQ(CallerOf(stranger).CodeOf(kJoin), grpc::StatusCode::UNAVAILABLE);
  const TlsIdentity expired = MakeTestIdentity(authority_, kFirst, 1, SystemClock() - 3 * 86400);
  EXPECT_EQ(CallerOf(expired).CodeOf(kJoin), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(CallerOf({first_.authority, "", ""}).CodeOf(kJoin), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(CallerOf(first_).CodeOf(kJoin), grpc::StatusCode::OK);
  EXPECT_EQ(Remembered(), StateAfter({kJoin}));
}

TEST_F(CloudDoors, RefuseEachWithItsReason) {
  Caller first = CallerOf(first_);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(first.Say(kSecondJoin), "learner-1 cannot speak for learner 2");
  EXPECT_EQ(first.CodeOf(kSecondJoin), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(first.Say(JoinMessage{kFirst, {1, 2, 3}}),
              HasSubstr("a policy of 3 parameters, the run has 2"));
  EXPECT_THAT(first.Say(JoinMessage{kFirst, {1, nan}}), HasSubstr("theta: must hold finite"));
  EXPECT_EQ(first.CodeOf(JoinMessage{kFirst, {1, nan}}), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(first.Say(kJoin, "other"), HasSubstr("no run of this name is served here"));
  EXPECT_EQ(first.CodeOf(kJoin, "other"), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(CallerOf(NewIdentity(LearnerId(9))).Say(JoinMessage{LearnerId(9), {1, 2}}),
              HasSubstr("learner 10: is not part of this run"));
  EXPECT_THAT(CallerOf(clouds_).Say(JoinMessage{LearnerId::Cloud(), {1, 2}}),
              HasSubstr("is not part of this run"));
  // The run begins; there is nothing yet to measure in round 3.
  ASSERT_EQ(first.Say(kJoin), "ok");
  ASSERT_EQ(CallerOf(second_).Say(kSecondJoin), "ok");
  EXPECT_THAT(first.Say(RoundOf(kFirst, 3)),
              HasSubstr("learner 1: speaks of a round that has not begun"));
  EXPECT_EQ(first.CodeOf(RoundOf(kFirst, 3)), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Remembered(), StateAfter({kJoin, kSecondJoin}));
}

// Who says which incumbent it has is not told that policy again, and all else is.
TEST_F(CloudDoors, GiveAPolicyOnce) {
  Caller first = CallerOf(first_);
  Caller second = CallerOf(second_);
  ASSERT_EQ(first.Say(kJoin), "ok");
  ASSERT_EQ(second.Say(kSecondJoin), "ok");
  (void)first.Say(RoundOf(kFirst, 1));
  ASSERT_EQ(second.Say(RoundOf(kSecond, 1)), "ok");
  const v1::RoundAnswer whole = second.reply().round();
  ASSERT_EQ(whole.incumbent().theta_size(), 2);
  v1::StepRequest request = ToWire("run", RoundOf(kSecond, 1));
  request.set_holds(whole.incumbent().hash());
  ASSERT_TRUE(second.Call(request).ok());
  v1::RoundAnswer brief = second.reply().round();
  EXPECT_EQ(brief.incumbent().theta_size(), 0);
  *brief.mutable_incumbent()->mutable_theta() = whole.incumbent().theta();
  EXPECT_EQ(brief.SerializeAsString(), whole.SerializeAsString());
  request.set_holds(std::string(64, 'a'));  // another's
  ASSERT_TRUE(second.Call(request).ok());
  EXPECT_EQ(second.reply().round().SerializeAsString(), whole.SerializeAsString());
}

TEST_F(CloudDoors, DoNotReadWhatIsTooLong) {
  Caller first = CallerOf(first_);
  Caller second = CallerOf(second_);
  const JoinMessage huge{kFirst, std::vector<float>(std::size_t{1} << 20)};  // 4 MiB
  EXPECT_EQ(first.CodeOf(huge), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(second.Say(kSecondJoin), "ok");
  EXPECT_EQ(first.Say(kJoin), "ok");  // by the same connection
  EXPECT_EQ(Remembered(), StateAfter({kSecondJoin, kJoin}));
}

TEST_F(CloudDoors, AnswerARepetitionAsBefore) {
  Caller first = CallerOf(first_);
  Caller second = CallerOf(second_);
  ASSERT_EQ(first.Say(kJoin), "ok");
  ASSERT_EQ(second.Say(kSecondJoin), "ok");
  ASSERT_EQ(first.Say(kJoin), "ok");
  const std::string answer = first.reply().SerializeAsString();
  ASSERT_TRUE(first.reply().has_welcome());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(CallerOf(first_).Say(kJoin), "ok");
    EXPECT_EQ(first.Say(kJoin), "ok");
    EXPECT_EQ(first.reply().SerializeAsString(), answer);
  }
  // Bytes that somebody else sends, word for word.
  EXPECT_EQ(second.Say(kJoin), "learner-2 cannot speak for learner 1");
  EXPECT_EQ(second.CodeOf(kJoin), grpc::StatusCode::PERMISSION_DENIED);
  // Other words for what was said.
  EXPECT_THAT(first.Say(JoinMessage{kFirst, {3, 4}}), HasSubstr("something else than before"));
  EXPECT_EQ(Remembered(), StateAfter({kJoin, kSecondJoin}));
}

// ---- Certificates that are taken back or renewed ------------------------------------------------

TEST_F(CloudDoors, AreShutToWhoWasRevoked) {
  Caller open = CallerOf(first_);
  ASSERT_EQ(open.Say(kJoin), "ok");
  const std::int64_t now = SystemClock();
  WriteTestList(Path("cloud"), authority_, {{first_.info.serial, now, kFirst}});
  const std::string refusal = fmt::format("learner-1: its certificate {} was revoked at {}",
                                          first_.info.serial, TimeText(now));
  EXPECT_EQ(open.Say(kJoin), refusal);
  EXPECT_EQ(open.CodeOf(kJoin), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(CallerOf(first_).Say(kJoin), refusal);
  EXPECT_EQ(CallerOf(second_).Say(kSecondJoin), "ok");
  EXPECT_THAT(revoked_, ElementsAre(kFirst));
  // The run has heard of it: nobody waits for that learner any more.
  const ControlMessage revoked{ControlMessage::Kind::kRevoked, kFirst};
  EXPECT_EQ(Remembered(), StateAfter({kJoin, revoked, kSecondJoin}));
}

TEST_F(CloudDoors, DoNotOpenWithADamagedListOrTheWrongFiles) {
  Stop();
  const auto start = [&] {
    CloudServerOptions options;
    options.tls_directory = Path("cloud");
    const Result<std::unique_ptr<CloudServer>> server = CloudServer::Start(options, {});
    return server ? "started" : server.error().message;
  };
  ASSERT_TRUE(WriteFileAtomically(Path("cloud/crl.pem"), "damaged", IfExists::kReplace));
  EXPECT_EQ(start(), Path("cloud/crl.pem") + ": holds no whole revocation list in PEM form");
  WriteTestList(Path("cloud"), authority_, {});
  EXPECT_EQ(start(), "started");
  WriteTestIdentity(Path("cloud"), first_);
  EXPECT_EQ(start(), Path("cloud/node.pem") + ": subject = learner-1: must be cloud");
}

TEST_F(CloudDoors, ShowARenewedCertificateToWhoComesNext) {
  Caller before = CallerOf(first_);
  ASSERT_EQ(before.Say(kJoin), "ok");
  EXPECT_EQ(before.clouds_serial(), clouds_.info.serial);
  const TlsIdentity renewed = NewIdentity(LearnerId::Cloud());
  // The key is there before its certificate; meanwhile the old pair serves.
  ASSERT_TRUE(
      WriteFileAtomically(Path("cloud/node.key"), renewed.key, IfExists::kReplace, Access::kOwner));
  Caller between = CallerOf(first_);
  ASSERT_EQ(between.Say(kJoin), "ok");
  EXPECT_EQ(between.clouds_serial(), clouds_.info.serial);
  ASSERT_TRUE(WriteFileAtomically(Path("cloud/node.pem"), renewed.certificate, IfExists::kReplace));
  Caller after = CallerOf(first_);
  ASSERT_EQ(after.Say(kJoin), "ok");
  EXPECT_EQ(after.clouds_serial(), renewed.info.serial);
  EXPECT_EQ(before.Say(kJoin), "ok");  // connections that are open stay
  EXPECT_EQ(before.clouds_serial(), clouds_.info.serial);
}

RemoteExchangeOptions Towards(int port, const std::string& directory) {
  RemoteExchangeOptions options;
  options.addresses = {fmt::format("127.0.0.1:{}", port)};
  options.run = "run";
  options.tls_directory = directory;
  options.give_up = std::chrono::milliseconds(1);
  return options;
}

// Renewed, and the old certificate taken back at once, while the learner's connection is open.
TEST_F(CloudDoors, StayOpenToALearnerThatRenewsItsCertificate) {
  Start({kFirst});
  RemoteExchange exchange(Towards(server_->port(), WriteTestIdentity(Path("first"), first_)));
  ASSERT_TRUE(exchange.Join({&kJoin, 1}));
  const TlsIdentity renewed = NewIdentity(kFirst);
  WriteTestIdentity(Path("first"), renewed);
  WriteTestList(Path("cloud"), authority_, {{first_.info.serial, SystemClock()}});
  EXPECT_THAT(CallerOf(first_).Say(kJoin), HasSubstr("was revoked"));
  const RoundMessage round = RoundOf(kFirst, 1);
  const Result<RoundAnswer> answer = exchange.Submit({&round, 1});
  ASSERT_TRUE(answer) << answer.error().message;
  WriteTestList(Path("cloud"), authority_,
                {{first_.info.serial, SystemClock()}, {renewed.info.serial, SystemClock()}});
  const CloseMessage close{kFirst, 1, kFirst};
  const Result<Ending> refused = exchange.Close({&close, 1});
  ASSERT_FALSE(refused);
  EXPECT_THAT(
      refused.error().message,
      HasSubstr(fmt::format("learner-1: its certificate {} was revoked", renewed.info.serial)));
  EXPECT_THAT(revoked_, IsEmpty());  // nobody has left, says the list
}

TEST_F(CloudDoors, AreNotEvenTriedWithTheWrongFiles) {
  const auto join = [&](const std::string& directory, std::optional<LearnerId> who) {
    RemoteExchangeOptions options = Towards(server_->port(), directory);
    options.who = who;
    RemoteExchange exchange(options);
    const Result<std::vector<Welcome>> answer = exchange.Join({&kJoin, 1});
    EXPECT_EQ(exchange.num_sent() > 0, answer || answer.error().code == ErrorCode::kIo);
    return answer ? "welcome" : answer.error().message;
  };
  const std::string first = WriteTestIdentity(Path("first"), first_);
  EXPECT_EQ(join(first, kSecond), first + "/node.pem: subject = learner-1: must be learner-2");
  // All is well at home, and the Cloud is another federation's.
  const TlsIdentity stranger = MakeTestIdentity(MakeTestAuthority("other"), kFirst);
  const std::string refused = join(WriteTestIdentity(Path("stranger"), stranger), kFirst);
  EXPECT_THAT(refused, HasSubstr(fmt::format("127.0.0.1:{}: ", server_->port())));
  EXPECT_THAT(refused, HasSubstr("(fedgen doctor)"));
  // It believes the Cloud, which does not believe it.
  TlsIdentity unknown = stranger;
  unknown.authority = first_.authority;
  EXPECT_THAT(CallerOf(unknown).Say(kJoin),
              ::testing::AnyOf(HasSubstr("Socket closed"), HasSubstr("Connection reset"),
                               HasSubstr("andshake")));
}

// ---- How it is doing ----------------------------------------------------------------------------

// Bytes to a method, as a program of any make would send them.
grpc::Status CallRaw(int port, const TlsIdentity& tls, const std::string& method,
                     const std::string& bytes, grpc::ByteBuffer* response) {
  grpc::GenericStub stub(
      grpc::CreateChannel(fmt::format("127.0.0.1:{}", port),
                          grpc::SslCredentials({tls.authority, tls.key, tls.certificate})));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  const grpc::Slice slice(bytes);
  grpc::ByteBuffer request(&slice, 1);
  std::promise<grpc::Status> promise;
  stub.UnaryCall(&context, method, {}, &request, response,
                 [&](const grpc::Status& status) { promise.set_value(status); });
  return promise.get_future().get();
}

TEST_F(CloudDoors, RefuseWhatIsNoMessage) {
  grpc::ByteBuffer response;
  for (const std::string bytes : {"\xff\xff\xff", "\x22\x7f", "no message"}) {
    const grpc::Status status =
        CallRaw(server_->port(), first_, "/fedgen.v1.Federation/Exchange", bytes, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(status.error_message(), "is no message");
  }
  EXPECT_EQ(CallerOf(first_).Say(kJoin), "ok");
}

// 1 is SERVING (grpc.health.v1).
std::string Health(int port, const TlsIdentity& tls) {
  grpc::ByteBuffer response;
  if (!CallRaw(port, tls, "/grpc.health.v1.Health/Check", "", &response).ok()) return "not reached";
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(response.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes == "\x08\x01" ? "serving" : "not serving";
}

TEST_F(CloudDoors, SayThatTheCloudIsWell) {
  EXPECT_EQ(Health(server_->port(), first_), "serving");
  EXPECT_EQ(Health(server_->port(), {first_.authority, "", ""}), "not reached");
}

TEST_F(CloudDoors, TellTheFederationWhereARunIs) {
  const std::string address = fmt::format("127.0.0.1:{}", server_->port());
  const std::string second = WriteTestIdentity(Path("second"), second_);
  ASSERT_EQ(CallerOf(first_).Say(kJoin), "ok");
  Result<CloudStatus> status = FetchStatus(address, second, "");
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(status->peer, "learner-2");
  EXPECT_NEAR(status->now, static_cast<double>(SystemClock()), 60);
  ASSERT_EQ(status->runs.size(), 1U);
  EXPECT_EQ(status->runs[0].progress, (RunProgress{"run", 0, "join", 2, 1}));
  const std::vector<MemberStatus>& members = status->runs[0].members;
  ASSERT_EQ(members.size(), 2U);
  EXPECT_EQ(members[0].learner, kSecond);  // who is awaited comes first
  EXPECT_TRUE(members[0].awaited);
  EXPECT_EQ(members[0].step, -1);
  EXPECT_EQ(members[1].learner, kFirst);
  EXPECT_FALSE(members[1].awaited);
  EXPECT_EQ(members[1].step, 0);
  EXPECT_LT(members[1].silence.value_or(1000), 600);

  ASSERT_EQ(CallerOf(second_).Say(kSecondJoin), "ok");
  ASSERT_EQ(CallerOf(first_).Say(RoundOf(kFirst, 1)), "ok");
  ASSERT_EQ(CallerOf(second_).Say(RoundOf(kSecond, 1)), "ok");
  status = FetchStatus(address, second, "run");
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(status->runs[0].progress, (RunProgress{"run", 0, "close", 2, 2}));
  const Submission incumbent = status->runs[0].incumbent.value_or(Submission{});
  EXPECT_EQ(incumbent.learner, kFirst);
  EXPECT_EQ(incumbent.hash, HashOf(std::vector<float>{1, 2}));
  EXPECT_EQ(FetchStatus(address, second, "other").error().message,
            address + ": no run of this name is served here");
  const TlsIdentity stranger = MakeTestIdentity(MakeTestAuthority("other"), kFirst);
  EXPECT_FALSE(FetchStatus(address, WriteTestIdentity(Path("stranger"), stranger), ""));
  WriteTestList(Path("cloud"), authority_, {{second_.info.serial, SystemClock()}});
  EXPECT_THAT(FetchStatus(address, second, "").error().message, HasSubstr("was revoked"));
}

// Counts what it is told.
class Counting final : public CloudWatcher {
 public:
  void OnCall(std::size_t /*bytes*/) override { ++calls; }
  void OnAnswered(std::size_t /*bytes*/) override { ++answered; }
  void OnRefused(const std::string& peer, const std::string& code,
                 const std::string& reason) override {
    Note(fmt::format("{} {} {}", peer, code, reason));
  }
  void OnSaved(const std::string& /*run*/, std::size_t messages, double seconds) override {
    EXPECT_GE(seconds, 0);
    saved += static_cast<int>(messages);
  }
  void OnProgress(const RunProgress& p) override {
    Note(fmt::format("{} {} {} {}/{}", p.run, p.round, p.phase, p.awaited, p.learners));
  }
  void OnRevoked(LearnerId learner) override { Note("revoked " + learner.name()); }
  void OnTransport(const std::string& /*problem*/) override { ++transport; }
  void OnTrouble(const std::string& trouble) override { Note(trouble); }
  std::vector<std::string> notes() {
    const std::lock_guard lock(mutex_);
    return notes_;
  }

  std::atomic<int> calls = 0, answered = 0, saved = 0, transport = 0;

 private:
  void Note(const std::string& note) {
    const std::lock_guard lock(mutex_);
    notes_.push_back(note);
  }
  std::mutex mutex_;  // guards: notes_
  std::vector<std::string> notes_;
};

TEST_F(CloudDoors, TellAWatcherWhatComesToPass) {
  Counting watcher;
  watcher_ = &watcher;
  Start({kFirst, kSecond});
  ASSERT_EQ(CallerOf(first_).Say(kJoin), "ok");
  ASSERT_NE(CallerOf(first_).Say(kSecondJoin), "ok");
  WriteTestList(Path("cloud"), authority_, {{"00", SystemClock(), LearnerId(8)}});
  ASSERT_EQ(CallerOf(second_).Say(kSecondJoin), "ok");
  ASSERT_NE(CallerOf({first_.authority, "", ""}).Say(kJoin), "ok");
  Stop();
  EXPECT_THAT(watcher.notes(),
              ElementsAre("run 0 join 2/2", "run 0 join 1/2",
                          "learner-1 PERMISSION_DENIED learner-1 cannot speak for learner 2",
                          "revoked 9", "run 0 submit 2/2"));
  EXPECT_EQ(watcher.calls, 3);
  EXPECT_EQ(watcher.answered, 2);
  EXPECT_EQ(watcher.saved, 2);
  EXPECT_GE(watcher.transport, 1);
}

// ---- Crowds -------------------------------------------------------------------------------------

TEST_F(CloudDoors, ServeOthersWhileAThousandStandInThem) {
  constexpr int kHalfOpen = 1000;
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 3 * kHalfOpen);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  ASSERT_GE(files.rlim_cur, 3U * kHalfOpen);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(server_->port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::vector<int> sockets;
  for (int i = 0; i < kHalfOpen; ++i) {
    sockets.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(
        ::connect(sockets.back(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    // Every other one begins to speak TLS and stops.
    const ssize_t length = i % 2 == 0 ? 3 : 0;
    ASSERT_EQ(
        ::send(sockets.back(), "\x16\x03\x01", static_cast<std::size_t>(length), MSG_NOSIGNAL),
        length);
  }
  EXPECT_EQ(CallerOf(first_).Say(kJoin), "ok");
  EXPECT_EQ(CallerOf(second_).Say(kSecondJoin), "ok");
  for (const int socket : sockets) ::close(socket);
  EXPECT_EQ(Remembered(), StateAfter({kJoin, kSecondJoin}));
}

}  // namespace
}  // namespace fedgen
