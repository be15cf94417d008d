// SPDX-License-Identifier: Apache-2.0
#include "bench/load_client.h"

#include <fmt/format.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "bench/load_server.h"
#include "bench/stopwatch.h"
#include "fedgen/base/random.h"
#include "fedgen/federation/wire-inl.h"

namespace fedgen {
namespace {

constexpr std::chrono::minutes kDeadline{5};  // of one request: a server that hangs is noticed

grpc::ByteBuffer BufferOf(const std::string& run, const StepMessage& message,
                          const std::string& holds = "") {
  v1::StepRequest request = ToWire(run, message);
  request.set_holds(holds);
  const grpc::Slice slice(request.SerializeAsString());
  return {&slice, 1};
}

std::vector<float> ThetaOf(LearnerId id, std::uint64_t num_parameters) {
  const Key key = Key(12).Fork(id.index());
  std::vector<float> theta;
  for (std::uint64_t at = 0; at < num_parameters; ++at) {
    theta.push_back(2 * UnitFloat(key.Block(at)[0]) - 1);
  }
  return theta;
}

// The first byte of an answer tells its kind: the number of the field of StepReply, and a length
// that follows. An echo begins with the name of the run, field 1, which is "ask again" in an
// answer.
constexpr char FirstByteOf(int field) { return static_cast<char>(field << 3 | 2); }

char FirstByte(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok() || slices.empty() || slices.front().size() == 0) return 0;
  return static_cast<char>(*slices.front().begin());
}

double OwnCpuSeconds() {
  std::timespec time = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// What learners do together.
struct Turn {
  std::mutex mutex;  // guards: everything here
  std::condition_variable done;
  std::size_t running = 0;
  std::optional<Error> problem;

  void End(const std::optional<Error>& trouble) {
    const std::lock_guard lock(mutex);
    if (trouble && !problem) problem = trouble;
    if (--running == 0) done.notify_one();
  }
};

// One learner. Between turns it waits; in one it sends the next request when the last is answered,
// from whatever thread gRPC tells it that.
class Talker {
 public:
  Talker(LearnerId id, std::string run, std::string incumbent, int port, bool is_echo,
         const TlsIdentity& tls, std::uint64_t num_parameters)
      : id_(id),
        run_(std::move(run)),
        is_echo_(is_echo),
        theta_(ThetaOf(id, num_parameters)),
        hash_(HashOf(theta_)),
        incumbent_(std::move(incumbent)) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    stub_.emplace(grpc::CreateCustomChannel(
        fmt::format("127.0.0.1:{}", port),
        grpc::SslCredentials({tls.authority, tls.key, tls.certificate}), arguments));
  }

  // Makes the messages of a turn, which then need only be sent.
  void PrepareJoin() {
    messages_.push_back({BufferOf(run_, JoinMessage{id_, theta_}), FirstByteOf(2)});
  }
  void PrepareRounds(int rounds) {
    for (int last = round_ + rounds; round_ < last;) {
      RoundMessage submit;
      submit.learner = id_;
      submit.round = ++round_;
      // A little better each round, as learners are.
      submit.submission =
          Submission{id_, round_, id_, 0.5 + 0.5 / (1 + round_), 0.01, theta_, hash_};
      submit.episodes = round_;
      const std::string holds = round_ > 1 ? incumbent_ : "";
      messages_.push_back({BufferOf(run_, submit, holds), FirstByteOf(3)});
      messages_.push_back({BufferOf(run_, CloseMessage{id_, round_, id_}), FirstByteOf(4)});
    }
  }

  void Begin(Turn& turn) {
    turn_ = &turn;
    latencies_.clear();
    latencies_.reserve(messages_.size());
    Next();
  }
  const std::vector<double>& latencies() const { return latencies_; }

 private:
  struct Message {
    grpc::ByteBuffer bytes;
    char answer = 0;  // its first byte
  };

  void Next() {
    if (messages_.empty()) return turn_->End({});
    context_.emplace();
    context_->set_deadline(std::chrono::system_clock::now() + kDeadline);
    context_->set_wait_for_ready(true);
    clock_.emplace(Stopwatch::Kind::kWall);
    stub_->UnaryCall(&*context_, "/fedgen.v1.Federation/Exchange", {}, &messages_.front().bytes,
                     &reply_, [this](const grpc::Status& status) { Take(status); });
  }
  void Take(const grpc::Status& status) {
    latencies_.push_back(clock_->Seconds());
    const char expected = is_echo_ ? FirstByteOf(1) : messages_.front().answer;
    if (!status.ok() || FirstByte(reply_) != expected) {
      messages_.clear();
      return turn_->End(Error{
          ErrorCode::kIo,
          fmt::format("learner {}: {}", id_.name(),
                      status.ok() ? "got an answer to another question" : status.error_message())});
    }
    messages_.pop_front();
    Next();
  }

  LearnerId id_;
  std::string run_;
  bool is_echo_;
  std::vector<float> theta_;
  std::string hash_;
  std::string incumbent_;  // hash of the policy that every round is answered with, or not said
  int round_ = 0;
  std::deque<Message> messages_;
  std::optional<grpc::GenericStub> stub_;
  std::optional<grpc::ClientContext> context_;
  grpc::ByteBuffer reply_;
  std::optional<Stopwatch> clock_;
  Turn* turn_ = nullptr;
  std::vector<double> latencies_;
};

}  // namespace

double LoadTurn::Percentile(double share) const {
  const auto at = static_cast<std::size_t>(share * static_cast<double>(latencies.size()));
  return latencies[std::min(at, latencies.size() - 1)];
}

struct LoadClient::Parts {
  std::deque<Talker> talkers;

  Result<LoadTurn> Run() {
    Turn turn;
    turn.running = talkers.size();
    LoadTurn result;
    const double before = OwnCpuSeconds();
    const Stopwatch clock(Stopwatch::Kind::kWall);
    for (Talker& talker : talkers) talker.Begin(turn);
    {
      std::unique_lock lock(turn.mutex);
      turn.done.wait(lock, [&] { return turn.running == 0; });
    }
    result.seconds = clock.Seconds();
    result.cpu_seconds = OwnCpuSeconds() - before;
    if (turn.problem) return *turn.problem;
    for (const Talker& talker : talkers) {
      const std::vector<double>& own = talker.latencies();
      result.latencies.insert(result.latencies.end(), own.begin(), own.end());
    }
    std::ranges::sort(result.latencies);
    result.requests = static_cast<std::int64_t>(result.latencies.size());
    return result;
  }
};

LoadClient::LoadClient(int port, LoadKind kind, const std::vector<TlsIdentity>& identities,
                       std::uint64_t num_parameters, std::uint32_t runs)
    : parts_(std::make_unique<Parts>()) {
  std::uint32_t index = 0;
  std::map<std::string, std::string> incumbents;  // of each run: its first learner's policy
  for (const TlsIdentity& tls : identities) {
    const LearnerId id(index++);
    const std::string run = LoadRunOf(id, runs);
    if (!incumbents.contains(run)) {
      const bool says_it = kind != LoadKind::kWholeCloud;
      incumbents[run] = says_it ? HashOf(ThetaOf(id, num_parameters)) : "";
    }
    parts_->talkers.emplace_back(id, run, incumbents[run], port, kind == LoadKind::kEcho, tls,
                                 num_parameters);
  }
}

LoadClient::~LoadClient() = default;
LoadClient::LoadClient(LoadClient&&) noexcept = default;

Result<LoadTurn> LoadClient::Join() {
  for (Talker& talker : parts_->talkers) talker.PrepareJoin();
  return parts_->Run();
}

Result<LoadTurn> LoadClient::Rounds(int rounds) {
  for (Talker& talker : parts_->talkers) talker.PrepareRounds(rounds);
  return parts_->Run();
}

}  // namespace fedgen
