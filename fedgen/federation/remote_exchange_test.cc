// SPDX-License-Identifier: Apache-2.0

// The federations of fuse/hosts_test.cc over gRPC, TLS and SQLite on loopback: the bytes of one
// process, also when the Cloud goes down and comes back.

#include "fedgen/federation/remote_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "fedgen/base/file_testing.h"
#include "fedgen/federation/cloud_server.h"
#include "fedgen/fuse/checkpoint.h"
#include "fedgen/fuse/federation_testing.h"
#include "fedgen/identity/identity_testing.h"

namespace fedgen {
namespace {

std::vector<LearnerId> AllLearners() {
  std::vector<LearnerId> ids;
  for (std::uint32_t i = 0; i < kSpreadLearners; ++i) ids.emplace_back(i);
  return ids;
}

ServedSettings SettingsOf(const SpreadCase& c) {
  return {"spread", c.options, AllLearners(), 2, 7};
}

// A Cloud on a port of its own that can go down and come back.
class TestCloud {
 public:
  TestCloud(const SpreadCase& c, const Authority& authority, const std::string& store)
      : settings_(SettingsOf(c)), store_path_(store) {
    options_.tls_directory =
        WriteTestIdentity(store + ".tls", MakeTestIdentity(authority, LearnerId::Cloud()));
    options_.patience = std::chrono::milliseconds(200);
    Start();
  }

  void Start() {
    store_ = *OpenStore("sqlite:" + store_path_);
    std::vector<ServedRun> runs;
    runs.push_back(*ServedRun::Open(settings_, *store_));
    Result<std::unique_ptr<CloudServer>> server = CloudServer::Start(options_, std::move(runs));
    FEDGEN_CHECK(server.has_value(), "{}", server.error().message);
    server_ = *std::move(server);
    options_.listen = address();
  }
  void Stop() {
    server_.reset();
    store_.reset();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(server_->port()); }
  /// What the store would begin with again. Requires Stop().
  CloudState Remembered() const {
    const std::unique_ptr<Store> store = *OpenStore("sqlite:" + store_path_);
    return ServedRun::Open(settings_, *store)->cloud().state();
  }

 private:
  ServedSettings settings_;
  std::string store_path_;
  CloudServerOptions options_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<CloudServer> server_;
};

RemoteExchangeOptions Towards(const std::string& address, const std::string& tls_directory) {
  RemoteExchangeOptions options;
  options.addresses = {address};
  options.run = "spread";
  options.tls_directory = tls_directory;
  options.first_pause = std::chrono::milliseconds(2);
  options.longest_pause = std::chrono::milliseconds(50);
  return options;
}

struct Ran {
  std::string learners, finalists, cloud;
};

std::string BytesOf(const CloudState& state) {
  return CheckpointToBytes(CloudCheckpoint{"", state});
}

// All that is known at the end.
Result<std::string> RunToEnd(Host& host, Exchange& exchange,
                             const std::function<void(int)>& after_round = {}) {
  FEDGEN_TRY(host.Join(exchange));
  while (host.ending() == Ending::kNotYet) {
    FEDGEN_TRY(host.Round(exchange));
    if (after_round) after_round(host.round());
  }
  const Finalists finalists = FEDGEN_TRY(host.Finish(exchange));
  const RaceAnswer raced = FEDGEN_TRY(exchange.Race(PartsOfRace(host, finalists)));
  return ToBytes(finalists) + ToBytes(raced);
}

Ran RunInOneProcess(const SpreadCase& c) {
  std::vector<std::unique_ptr<Learner>> learners;
  for (int i = 0; i < kSpreadLearners; ++i) learners.push_back(MakeSpreadLearner(c, i));
  Host host(c.options, std::move(learners));
  Cloud cloud(c.options, AllLearners(), 7);
  LocalExchange exchange(cloud);
  const Result<std::string> finalists = RunToEnd(host, exchange);
  FEDGEN_CHECK(finalists.has_value(), "{}", finalists.error().message);
  return {BytesOfLearners({&host}), *finalists, BytesOf(cloud.state())};
}

// A host of one learner each, and perhaps a Cloud that goes down after every third round of the
// first.
Ran RunOverTls(const SpreadCase& c, const std::string& store, bool restarts) {
  const Authority authority = MakeTestAuthority("test");
  TestCloud cloud(c, authority, store);
  const std::string address = cloud.address();
  std::vector<std::unique_ptr<Host>> hosts;
  std::vector<std::string> finalists(kSpreadLearners);
  for (int i = 0; i < kSpreadLearners; ++i) {
    std::vector<std::unique_ptr<Learner>> one;
    one.push_back(MakeSpreadLearner(c, i));
    hosts.push_back(std::make_unique<Host>(c.options, std::move(one)));
  }
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kSpreadLearners; ++i) {
    threads.emplace_back([&, i] {
      const std::string tls = fmt::format("{}.tls-{}", store, i);
      WriteTestIdentity(tls, MakeTestIdentity(authority, LearnerId(i)));
      RemoteExchange exchange(Towards(address, tls));
      const auto after_round = [&](int round) {
        if (!restarts || i != 0 || round % 3 != 0) return;
        cloud.Stop();
        cloud.Start();
      };
      const Result<std::string> got = RunToEnd(*hosts[i], exchange, after_round);
      ASSERT_TRUE(got) << got.error().message;
      finalists[i] = *got;
    });
  }
  for (std::thread& thread : threads) thread.join();
  cloud.Stop();
  std::vector<const Host*> all;
  for (const auto& host : hosts) all.push_back(host.get());
  for (const std::string& other : finalists) EXPECT_EQ(other, finalists.front());
  return {BytesOfLearners(all), finalists.front(), BytesOf(cloud.Remembered())};
}

class RemoteExchangeTest : public ::testing::TestWithParam<SpreadCase> {};

TEST_P(RemoteExchangeTest, GivesTheBytesOfOneProcess) {
  const TemporaryDirectory directory;
  const Ran expected = RunInOneProcess(GetParam());
  for (const bool restarts : {false, true}) {
    SCOPED_TRACE(restarts ? "the Cloud goes down now and then" : "the Cloud stays");
    const std::string store = directory.Path(restarts ? "down.db" : "up.db");
    const Ran ran = RunOverTls(GetParam(), store, restarts);
    EXPECT_EQ(ran.learners, expected.learners);
    EXPECT_EQ(ran.finalists, expected.finalists);
    EXPECT_EQ(ran.cloud, expected.cloud);
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, RemoteExchangeTest, ::testing::ValuesIn(SpreadCases()),
                         [](const auto& test) { return std::string(test.param.name); });

// A learner that nobody knew at the beginning joins, another leaves, and the run goes on.
TEST(RemoteExchange, JoinsAndLeavesARunThatIsOpen) {
  const TemporaryDirectory directory;
  const SpreadCase c{"open", {.rounds = 3, .open = true}};
  const Authority authority = MakeTestAuthority("test");
  TestCloud cloud(c, authority, directory.Path("cloud.db"));
  const auto exchange_of = [&](std::uint32_t index) {
    const std::string tls = directory.Path(fmt::format("tls-{}", index));
    if (!std::filesystem::exists(tls)) {
      WriteTestIdentity(tls, MakeTestIdentity(authority, LearnerId(index)));
    }
    return std::make_unique<RemoteExchange>(Towards(cloud.address(), tls));
  };
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kSpreadLearners; ++i) {
    threads.emplace_back([&, i] {
      const JoinMessage join{LearnerId(i), {1, 2}};
      EXPECT_TRUE(exchange_of(i)->Join({&join, 1}));
      if (i == 0) return;
      const Result<void> left = exchange_of(i)->Leave(LearnerId(i));
      EXPECT_TRUE(left) << left.error().message;
    });
  }
  for (std::thread& thread : threads) thread.join();
  const JoinMessage late{LearnerId(70), {1, 2}};
  const Result<std::vector<Welcome>> welcome = exchange_of(70)->Join({&late, 1});
  ASSERT_TRUE(welcome) << welcome.error().message;
  EXPECT_EQ(welcome->front().origin, LearnerId(0));
  const RoundMessage rests{LearnerId(0), 1, {}, {}, {}, {}, 7};
  const Result<RoundAnswer> answer = exchange_of(0)->Submit({&rests, 1});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->episodes, 7);
  EXPECT_FALSE(exchange_of(1)->Submit({&rests, 1}));  // it speaks for another
}

}  // namespace
}  // namespace fedgen
