// SPDX-License-Identifier: Apache-2.0
#include "fedgen/operate/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include "fedgen/operate/cloud_observer.h"

namespace fedgen {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

void TellOfADay(CloudWatcher& watcher) {
  watcher.OnCall(100);
  watcher.OnCall(50);
  watcher.OnCall(50);
  watcher.OnAnswered(30);
  watcher.OnRefused("learner-1", "PERMISSION_DENIED", "no");
  watcher.OnSaved("a", 2, 0.002);
  watcher.OnSaved("a", 1, 0.5);
  watcher.OnNotSaved("a", "full");
  watcher.OnProgress({"a", 3, "close", 8, 5});
  watcher.OnRevoked(LearnerId(2));
  watcher.OnTrouble("crl.pem: is damaged");
}

TEST(Metrics, AreThoseThatWereTold) {
  Metrics metrics;
  TellOfADay(metrics);
  EXPECT_THAT(metrics.Text(),
              AllOf(HasSubstr("fedgen_calls_total 3\n"), HasSubstr("fedgen_calls_open 1\n"),
                    HasSubstr("fedgen_received_bytes_total 200\n"),
                    HasSubstr("fedgen_sent_bytes_total 30\n"),
                    HasSubstr("fedgen_refusals_total{status=\"PERMISSION_DENIED\"} 1\n"),
                    HasSubstr("fedgen_messages_saved_total{run=\"a\"} 3\n"),
                    HasSubstr("fedgen_store_failures_total{run=\"a\"} 1\n")));
  EXPECT_THAT(
      metrics.Text(),
      AllOf(HasSubstr("fedgen_store_write_seconds_bucket{run=\"a\",le=\"0.003\"} 1\n"),
            HasSubstr("fedgen_store_write_seconds_count{run=\"a\"} 2\n"),
            HasSubstr("fedgen_round{run=\"a\"} 3\n"), HasSubstr("fedgen_learners{run=\"a\"} 8\n"),
            HasSubstr("fedgen_learners_awaited{run=\"a\"} 5\n"),
            HasSubstr("fedgen_run_over{run=\"a\"} 0\n"),
            HasSubstr("fedgen_revoked_learners_total 1\n"),
            HasSubstr("fedgen_file_troubles_total 1\n")));
  metrics.OnProgress({"a", 4, "over", 8, 0});
  EXPECT_THAT(metrics.Text(), HasSubstr("fedgen_run_over{run=\"a\"} 1\n"));
}

TEST(MetricsServer, AnswersOneQuestion) {
  Metrics metrics;
  Result<std::unique_ptr<MetricsServer>> server =
      MetricsServer::Start("127.0.0.1:0", [&] { return metrics.Text(); });
  ASSERT_TRUE(server) << server.error().message;
  httplib::Client client("127.0.0.1", (*server)->port());
  const httplib::Result answer = client.Get("/metrics");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(answer->body, HasSubstr("# TYPE fedgen_calls_total counter\n"));
  EXPECT_EQ(client.Get("/")->status, 404);
  EXPECT_EQ(client.Post("/metrics")->status, 405);
  EXPECT_EQ(client.Delete("/metrics")->get_header_value("Allow"), "GET, HEAD");

  const std::string taken = fmt::format("127.0.0.1:{}", (*server)->port());
  const Result<std::unique_ptr<MetricsServer>> second = MetricsServer::Start(taken, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message,
            "--metrics " + taken + ": cannot listen there; is the port taken?");
}

TEST(MetricsServer, WantsHostAndPort) {
  for (const char* const listen :
       {"", "9090", "localhost", "h:", "h:x", "h:70000", "h:08", ":80"}) {
    const Result<std::unique_ptr<MetricsServer>> server = MetricsServer::Start(listen, {});
    ASSERT_FALSE(server) << listen;
    EXPECT_EQ(server.error().message, fmt::format("--metrics = {}: must be HOST:PORT", listen));
  }
}

// ---- Log and metrics together -------------------------------------------------------------------

class ObserverTest : public ::testing::Test {
 protected:
  ObserverTest() { EXPECT_EQ(::pipe(pipe_), 0); }
  ~ObserverTest() override { ::close(pipe_[0]); }
  EventLog Log() const {
    return {pipe_[1], LogForm::kText, [] { return std::chrono::system_clock::time_point(); }};
  }
  std::string Written() {
    ::close(pipe_[1]);
    std::string all(1 << 16, '\0');
    all.resize(static_cast<std::size_t>(::read(pipe_[0], all.data(), all.size())));
    return all;
  }
  int pipe_[2] = {};
};

TEST_F(ObserverTest, TellsBoth) {
  const EventLog log = Log();
  Metrics metrics;
  CloudObserver observer(&log, &metrics);
  TellOfADay(observer);
  observer.OnProgress({"a", 3, "close", 8, 4});  // no line of its own
  observer.OnProgress({"a", 4, "submit", 8, 8});
  observer.OnProgress({"a", 4, "over", 8, 0});
  const std::string head = "1970-01-01 00:00:00.000 ";
  EXPECT_EQ(Written(), head +
                           "warning refused peer=learner-1 status=PERMISSION_DENIED reason=no\n" +
                           head + "error   not_saved run=a problem=full\n" +  //
                           head + "info    run run=a phase=close round=3 learners=8 awaited=5\n" +
                           head + "warning revoked learner=learner-3\n" + head +
                           "warning file problem=\"crl.pem: is damaged\"\n" + head +
                           "info    round run=a round=4\n" + head +
                           "info    run run=a phase=over round=4 learners=8 awaited=0\n");
  EXPECT_THAT(metrics.Text(), HasSubstr("fedgen_calls_total 3\n"));
}

TEST_F(ObserverTest, IsNotFlooded) {
  const EventLog log = Log();
  CloudObserver observer(&log, nullptr);
  for (int i = 0; i < 1000; ++i) observer.OnRefused("learner-1", "NOT_FOUND", "no");
  const std::string text = Written();
  EXPECT_EQ(std::ranges::count(text, '\n'), CloudObserver::kMostPerMinute);
}

}  // namespace
}  // namespace fedgen
