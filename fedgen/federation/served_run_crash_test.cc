// SPDX-License-Identifier: Apache-2.0

// A Cloud that is gone between any two of its writes, while learners go on asking: it comes back
// with all that it acknowledged, and the run ends with the same bytes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <mutex>
#include <thread>

#include "fedgen/base/file_testing.h"
#include "fedgen/federation/served_run.h"
#include "fedgen/federation/wire-inl.h"
#include "fedgen/fuse/federation_testing.h"
#include "fedgen/store/store_testing.h"

namespace fedgen {
namespace {

constexpr std::size_t kMaxPacket = std::size_t{1} << 16;
constexpr std::uint32_t kHosts = 2;
constexpr std::size_t kSnapshotBytes = 1;  // as often as there can be one
// Every message counts: everybody goes on from the mean of all.
const SpreadCase kCase{"crash", {.algorithm = Algorithm::kFedAvg, .rounds = 2}};

ServedSettings Settings() {
  std::vector<LearnerId> ids;
  for (std::uint32_t i = 0; i < kHosts; ++i) ids.emplace_back(i);
  return {"run", kCase.options, ids, 2, 7};
}

// What processes know of each other.
struct Shared {
  int countdown = 0;              // failpoints until the end
  int asked = 0;                  // a Cloud has taken a request that it has not answered
  std::int64_t acknowledged = 0;  // messages
  int lost = 0;                   // a Cloud that came back knew less
};

// A packet: what is wrong behind 'e', a reply behind 'a', or only 'd', the Cloud is down.
void Serve(const std::string& path, int socket, Shared& shared) {
  const auto store = OpenStore(UrlOf(path));
  if (!store) ::_exit(2);
  (*store)->failpoint = [&](std::string_view) {
    if (--shared.countdown == 0) ::_exit(9);
  };
  Result<ServedRun> run = ServedRun::Open(Settings(), **store, kSnapshotBytes);
  if (!run) ::_exit(3);
  if (run->sequence() < shared.acknowledged) shared.lost = 1;
  std::string packet(kMaxPacket, '\0');
  while (true) {
    const ssize_t size = ::recv(socket, packet.data(), packet.size(), 0);
    if (size <= 0) ::_exit(0);
    shared.asked = 1;
    const StepMessage message =
        *StepFromBytes(std::string_view(packet).substr(0, static_cast<std::size_t>(size)));
    Result<std::optional<StepAnswer>> answer = run->Hear(message);
    if (const Result<void> saved = run->Save(); answer && !saved) answer = saved.error();
    run->Tidy();
    if (answer && !*answer) answer = run->AnswerTo(message);
    const std::string reply =
        answer ? "a" + ToWire(*answer).SerializeAsString() : "e" + answer.error().message;
    shared.acknowledged = run->sequence();
    shared.asked = 0;
    if (::send(socket, reply.data(), reply.size(), MSG_NOSIGNAL) < 0) ::_exit(0);
  }
}

// Keeps a Cloud up in a process of its own: one after the other, until nobody asks any more. It has
// one thread, unlike the test, so it may fork.
class Keeper {
 public:
  Keeper(const std::string& path, int countdown) {
    shared_ = new (::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared{.countdown = countdown};
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    pid_ = ::fork();
    EXPECT_GE(pid_, 0);
    if (pid_ == 0) {
      ::close(ends[0]);
      KeepUp(path, ends[1]);
      ::_exit(0);
    }
    ::close(ends[1]);
    socket_ = ends[0];
  }
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;
  ~Keeper() {
    ::close(socket_);
    ::waitpid(pid_, nullptr, 0);
    ::munmap(shared_, sizeof(Shared));
  }

  Result<StepAnswer> Ask(const StepMessage& message) {
    const std::string request = StepToBytes(message);
    while (true) {
      std::string reply(kMaxPacket, '\0');
      {
        const std::lock_guard lock(mutex_);
        if (::send(socket_, request.data(), request.size(), MSG_NOSIGNAL) < 0) break;
        const ssize_t size = ::recv(socket_, reply.data(), reply.size(), 0);
        if (size <= 0) break;
        reply.resize(static_cast<std::size_t>(size));
      }
      if (reply[0] == 'e') return Error{ErrorCode::kMismatch, reply.substr(1)};
      v1::StepReply parsed;
      if (reply[0] == 'a' && parsed.ParseFromString(reply.substr(1))) {
        std::optional<StepAnswer> answer = FEDGEN_TRY(FromWire(parsed));
        if (answer) return *std::move(answer);
      }
      std::this_thread::yield();
    }
    return Error{ErrorCode::kIo, "nobody keeps the Cloud up"};
  }
  const Shared& shared() const { return *shared_; }

 private:
  void KeepUp(const std::string& path, int socket) const {
    while (true) {
      const pid_t cloud = ::fork();
      if (cloud == 0) Serve(path, socket, *shared_);
      int status = 0;
      if (cloud < 0 || ::waitpid(cloud, &status, 0) != cloud) return;
      if (!WIFEXITED(status) || WEXITSTATUS(status) != 9) return;
      if (shared_->asked == 0) continue;
      shared_->asked = 0;
      if (::send(socket, "d", 1, MSG_NOSIGNAL) < 0) return;
    }
  }

  Shared* shared_;
  pid_t pid_ = -1;
  int socket_ = -1;
  std::mutex mutex_;  // guards: the socket; a reply is to the request before it
};

class KeptExchange final : public Exchange {
 public:
  explicit KeptExchange(Keeper& keeper) : keeper_(keeper) {}
  Result<std::vector<Welcome>> Join(std::span<const JoinMessage> m) override {
    return std::vector{FEDGEN_TRY(Ask<Welcome>(m.front()))};
  }
  Result<RoundAnswer> Submit(std::span<const RoundMessage> m) override {
    return Ask<RoundAnswer>(m.front());
  }
  Result<Ending> Close(std::span<const CloseMessage> m) override { return Ask<Ending>(m.front()); }
  Result<Finalists> Finish(std::span<const FinalMessage> m) override {
    return Ask<Finalists>(m.front());
  }
  Result<RaceAnswer> Race(std::span<const RaceMessage> m) override {
    return Ask<RaceAnswer>(m.front());
  }

 private:
  template <typename Answer>
  Result<Answer> Ask(const StepMessage& message) {
    return std::get<Answer>(FEDGEN_TRY(keeper_.Ask(message)));
  }
  Keeper& keeper_;
};

Host MakeHost(std::uint32_t first, std::uint32_t last) {
  std::vector<std::unique_ptr<Learner>> learners;
  for (std::uint32_t i = first; i <= last; ++i) {
    learners.push_back(MakeSpreadLearner(kCase, static_cast<int>(i)));
  }
  return {kCase.options, std::move(learners)};
}

Result<std::string> RunToEnd(Host& host, Exchange& exchange) {
  FEDGEN_TRY(host.Join(exchange));
  while (host.ending() == Ending::kNotYet) FEDGEN_TRY(host.Round(exchange));
  const Finalists finalists = FEDGEN_TRY(host.Finish(exchange));
  const RaceAnswer raced = FEDGEN_TRY(exchange.Race(PartsOfRace(host, finalists)));
  return ToBytes(finalists) + ToBytes(raced);
}

// All that is known at the end, by hosts of one learner and a Cloud that is gone at this failpoint.
std::string RunAround(Keeper& keeper) {
  std::vector<Host> hosts;
  for (std::uint32_t i = 0; i < kHosts; ++i) hosts.push_back(MakeHost(i, i));
  std::vector<std::string> ends(kHosts);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kHosts; ++i) {
    threads.emplace_back([&, i] {
      KeptExchange exchange(keeper);
      const Result<std::string> end = RunToEnd(hosts[i], exchange);
      EXPECT_TRUE(end) << end.error().message;
      if (end) ends[i] = *end;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& end : ends) EXPECT_EQ(end, ends.front());
  return BytesOfLearners({&hosts[0], &hosts[1]}) + ends.front();
}

TEST(ServedRun, SurvivesTheEndOfItsProcessBetweenAnyTwoWrites) {
  Host together = MakeHost(0, kHosts - 1);
  const ServedSettings settings = Settings();
  Cloud cloud(settings.options, settings.learners, settings.race_seed);
  LocalExchange local(cloud);
  const Result<std::string> end = RunToEnd(together, local);
  ASSERT_TRUE(end) << end.error().message;
  const std::string expected = BytesOfLearners({&together}) + *end;

  int failpoint = 1;
  for (bool was_reached = true; was_reached; ++failpoint) {
    SCOPED_TRACE(::testing::Message() << "failpoint " << failpoint);
    const TemporaryDirectory directory;
    const std::string path = directory.Path("cloud.db");
    {
      Keeper keeper(path, failpoint);
      ASSERT_TRUE(RunAround(keeper) == expected);
      EXPECT_EQ(keeper.shared().lost, 0);
      was_reached = keeper.shared().countdown <= 0;
    }
    const auto store = MustOpen(path);
    const ServedRun again = *ServedRun::Open(settings, *store, kSnapshotBytes);
    EXPECT_EQ(ToBytes(again.cloud().state()), ToBytes(cloud.state()));
    ASSERT_FALSE(HasFailure());
  }
  // Three for the beginning, for each of 14 messages, the first of which has a snapshot with it,
  // and for another snapshot.
  EXPECT_GE(failpoint, 3 * (1 + 14 + 1));
}

}  // namespace
}  // namespace fedgen
