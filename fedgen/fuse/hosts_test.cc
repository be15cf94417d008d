// SPDX-License-Identifier: Apache-2.0

// The same federation as one host of eight learners, two of four and eight of one, around an
// exchange that delays, repeats and reorders messages: the same bytes.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "fedgen/base/hash.h"
#include "fedgen/fuse/checkpoint.h"
#include "fedgen/fuse/federation_testing.h"

namespace fedgen {
namespace {

constexpr int kLearners = kSpreadLearners;

// A network of hosts around one Cloud. Nothing is delivered while a host computes; when all wait,
// messages are taken from the heap in an order that the seed draws. Some stay behind for later,
// some are delivered again, also long after their round.
class Network {
 public:
  Network(Cloud& cloud, int num_hosts, std::uint64_t seed)
      : cloud_(cloud), num_hosts_(num_hosts), key_(seed) {}

  // Puts messages on the heap and waits until `answer` has one.
  template <typename Message, typename Answer>
  Answer Send(std::span<const Message> messages, const std::function<Answer()>& answer) {
    std::unique_lock lock(mutex_);
    for (const Message& message : messages) {
      heap_.push_back({fmt::format("{:08}-{}", StepOf(message), Sha256Hex(ToBytes(message))),
                       [this, message] { return cloud_.Receive(message); }});
    }
    while (true) {
      if (Answer got = answer()) return got;
      if (++num_waiting_ < num_hosts_) {
        changed_.wait(lock, [&, seen = num_deliveries_] { return num_deliveries_ != seen; });
        continue;
      }
      // Everybody has looked since the last delivery and found nothing.
      Deliver();
      num_waiting_ = 0;
      ++num_deliveries_;
      changed_.notify_all();
    }
  }

  std::int64_t num_repeated() const { return num_repeated_; }

 private:
  struct Parcel {
    std::string name;  // sorts the heap, so that only the seed decides
    std::function<Result<bool>()> deliver;
  };

  static int StepOf(const JoinMessage& /*m*/) { return 0; }
  static int StepOf(const RoundMessage& m) { return 2 * m.round - 1; }
  static int StepOf(const CloseMessage& m) { return 2 * m.round; }
  static int StepOf(const FinalMessage& m) { return 1'000'000 + m.final.round; }
  static int StepOf(const RaceMessage& /*m*/) { return 2'000'000; }

  int Draw(int low, int high) { return UniformInt(key_.Block(draws_++)[0], low, high); }

  void Deliver() {
    std::ranges::sort(heap_, {}, &Parcel::name);
    for (int count = Draw(1, 3 * kLearners); count > 0; --count) {
      if (!heap_.empty() && Draw(0, 3) != 0) {
        const auto at = heap_.begin() + Draw(0, static_cast<int>(heap_.size()) - 1);
        Hand(*at);
        old_.push_back(*at);
        heap_.erase(at);
      } else if (!old_.empty()) {
        ++num_repeated_;
        Hand(old_[static_cast<std::size_t>(Draw(0, static_cast<int>(old_.size()) - 1))]);
      }
    }
  }

  void Hand(const Parcel& parcel) {
    const Result<bool> received = parcel.deliver();
    EXPECT_TRUE(received) << received.error().message;
  }

  Cloud& cloud_;
  int num_hosts_;
  Key key_;
  std::uint64_t draws_ = 0;
  std::mutex mutex_;  // guards: everything below, and the Cloud
  std::condition_variable changed_;
  int num_waiting_ = 0;
  std::vector<Parcel> heap_, old_;
  std::int64_t num_deliveries_ = 0, num_repeated_ = 0;

  friend class NetworkExchange;
};

class NetworkExchange final : public Exchange {
 public:
  explicit NetworkExchange(Network& network) : network_(network) {}

  Result<std::vector<Welcome>> Join(std::span<const JoinMessage> messages) override {
    const LearnerId first = messages.front().learner;
    (void)network_.Send<JoinMessage, std::optional<Welcome>>(
        messages, [&] { return network_.cloud_.WelcomeOf(first); });
    const std::lock_guard lock(network_.mutex_);
    std::vector<Welcome> welcomes;
    for (const JoinMessage& m : messages) {
      welcomes.push_back(*network_.cloud_.WelcomeOf(m.learner));
    }
    return welcomes;
  }
  Result<RoundAnswer> Submit(std::span<const RoundMessage> messages) override {
    return *network_.Send<RoundMessage, std::optional<RoundAnswer>>(
        messages, [&, first = messages.front()] {
          return network_.cloud_.AnswerTo(first.learner, first.round);
        });
  }
  Result<Ending> Close(std::span<const CloseMessage> messages) override {
    return *network_.Send<CloseMessage, std::optional<Ending>>(
        messages, [&] { return network_.cloud_.EndingAfter(messages.front().round); });
  }
  Result<Finalists> Finish(std::span<const FinalMessage> messages) override {
    return *network_.Send<FinalMessage, std::optional<Finalists>>(
        messages, [&] { return network_.cloud_.FindFinalists(); });
  }
  Result<RaceAnswer> Race(std::span<const RaceMessage> messages) override {
    return *network_.Send<RaceMessage, std::optional<RaceAnswer>>(
        messages, [&] { return network_.cloud_.FindRaceAnswer(); });
  }

 private:
  Network& network_;
};

struct Ran {
  std::string learners;  // all states, by id
  std::string finalists;
  std::string cloud;
  int rounds = 0, adoptions = 0;
  std::int64_t repeated = 0;
};

// Runs to the end with learners split into hosts of this size.
Ran RunToEnd(const SpreadCase& c, int host_size, std::uint64_t seed) {
  std::vector<LearnerId> ids;
  for (std::uint32_t i = 0; i < kLearners; ++i) ids.emplace_back(i);
  std::ranges::reverse(ids);  // the Cloud does not care
  Cloud cloud(c.options, ids, 7);
  std::vector<std::unique_ptr<Host>> hosts;
  for (int first = 0; first < kLearners; first += host_size) {
    std::vector<std::unique_ptr<Learner>> learners;
    for (int i = first; i < first + host_size; ++i) learners.push_back(MakeSpreadLearner(c, i));
    hosts.push_back(std::make_unique<Host>(c.options, std::move(learners)));
  }
  Network network(cloud, static_cast<int>(hosts.size()), seed);
  std::vector<std::string> finalists(hosts.size());
  std::vector<std::thread> threads;
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    threads.emplace_back([&, h] {
      NetworkExchange exchange(network);
      ASSERT_TRUE(hosts[h]->Join(exchange));
      while (hosts[h]->ending() == Ending::kNotYet) ASSERT_TRUE(hosts[h]->Round(exchange));
      const Finalists known = *hosts[h]->Finish(exchange);
      const Result<RaceAnswer> raced = exchange.Race(PartsOfRace(*hosts[h], known));
      finalists[h] = ToBytes(known) + ToBytes(*raced);
    });
  }
  for (std::thread& thread : threads) thread.join();
  Ran ran;
  std::vector<const Host*> all;
  for (const auto& host : hosts) {
    all.push_back(host.get());
    for (const auto& learner : host->learners()) ran.adoptions += learner->state().adoptions;
  }
  ran.learners = BytesOfLearners(all);
  ran.finalists = finalists.front();
  for (const std::string& other : finalists) EXPECT_EQ(other, ran.finalists);
  ran.cloud = CheckpointToBytes(CloudCheckpoint{"", cloud.state()});
  ran.rounds = hosts.front()->round();
  ran.repeated = network.num_repeated();
  return ran;
}

class HostsTest : public ::testing::TestWithParam<SpreadCase> {};

TEST_P(HostsTest, GiveTheSameBytesHoweverLearnersAreSpread) {
  const SpreadCase& c = GetParam();
  const Ran together = RunToEnd(c, kLearners, 1);
  std::int64_t repeated = 0;
  for (const int host_size : {8, 4, 1}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(::testing::Message() << "hosts of " << host_size << ", seed " << seed);
      const Ran ran = RunToEnd(c, host_size, 100 * static_cast<std::uint64_t>(host_size) + seed);
      ASSERT_EQ(ran.rounds, together.rounds);
      ASSERT_EQ(ran.learners, together.learners);
      ASSERT_EQ(ran.finalists, together.finalists);
      ASSERT_EQ(ran.cloud, together.cloud);
      repeated += ran.repeated;
    }
  }
  EXPECT_GT(repeated, 1000);
  if (c.options.algorithm == Algorithm::kFedGen) {
    EXPECT_GT(together.adoptions, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, HostsTest, ::testing::ValuesIn(SpreadCases()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace fedgen
