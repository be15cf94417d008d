// SPDX-License-Identifier: Apache-2.0
#include "fedgen/operate/metrics.h"

#include <fmt/format.h>
#include <httplib.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>

#include <atomic>
#include <charconv>
#include <thread>
#include <utility>

namespace fedgen {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Registry;

prometheus::Family<Counter>& Counters(Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

prometheus::Family<Gauge>& Gauges(Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

const Histogram::BucketBoundaries& WriteSeconds() {
  static const Histogram::BucketBoundaries bounds{0.0003, 0.001, 0.003, 0.01, 0.03,
                                                  0.1,    0.3,   1,     3,    10};
  return bounds;
}

}  // namespace

// Metrics without a label are looked up once; those of a run when they are told of, a few times a
// round.
struct Metrics::Families {
  Registry registry;
  Counter& calls = Counters(registry, "fedgen_calls_total", "Calls that came in").Add({});
  Gauge& open = Gauges(registry, "fedgen_calls_open", "Calls that wait for their answer").Add({});
  Counter& bytes_in =
      Counters(registry, "fedgen_received_bytes_total", "Bytes of messages that came in").Add({});
  Counter& bytes_out =
      Counters(registry, "fedgen_sent_bytes_total", "Bytes of answers that went out").Add({});
  Counter& left_out =
      Counters(registry, "fedgen_left_out_total", "Times that a silent learner was left out")
          .Add({});
  Counter& revoked =
      Counters(registry, "fedgen_revoked_learners_total", "Learners that a list says have left")
          .Add({});
  Counter& transport = Counters(registry, "fedgen_transport_errors_total",
                                "Errors of gRPC, such as handshakes with strangers")
                           .Add({});
  Counter& troubles =
      Counters(registry, "fedgen_file_troubles_total", "Certificates and lists that are not good")
          .Add({});
  prometheus::Family<Counter>& refusals =
      Counters(registry, "fedgen_refusals_total", "Calls that were refused, by status");
  prometheus::Family<Counter>& submissions =
      Counters(registry, "fedgen_messages_saved_total", "Messages of learners on the disk");
  prometheus::Family<Counter>& failures =
      Counters(registry, "fedgen_store_failures_total", "Writes of the store that failed");
  prometheus::Family<Histogram>& writes = prometheus::BuildHistogram()
                                              .Name("fedgen_store_write_seconds")
                                              .Help("Duration of the store's writes")
                                              .Register(registry);
  prometheus::Family<Counter>& steps =
      Counters(registry, "fedgen_progress_total", "Times that somebody was heard or a step ended");
  prometheus::Family<Gauge>& round = Gauges(registry, "fedgen_round", "The last closed round");
  prometheus::Family<Gauge>& learners = Gauges(registry, "fedgen_learners", "Learners of the run");
  prometheus::Family<Gauge>& awaited =
      Gauges(registry, "fedgen_learners_awaited", "Learners still to be heard in this step");
  prometheus::Family<Gauge>& over = Gauges(registry, "fedgen_run_over", "1 after the end");
};

// What has not happened yet is 0, not missing: an alert on its rate works from the beginning.
Metrics::Metrics() : families_(std::make_unique<Families>()) {
  for (const char* status : {"UNAVAILABLE", "INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED",
                             "FAILED_PRECONDITION"}) {
    families_->refusals.Add({{"status", status}});
  }
}
Metrics::~Metrics() = default;

void Metrics::OnCall(std::size_t bytes) {
  families_->calls.Increment();
  families_->open.Increment();
  families_->bytes_in.Increment(static_cast<double>(bytes));
}

void Metrics::OnAnswered(std::size_t bytes) {
  families_->open.Decrement();
  families_->bytes_out.Increment(static_cast<double>(bytes));
}

void Metrics::OnRefused(const std::string& /*peer*/, const std::string& code,
                        const std::string& /*reason*/) {
  families_->open.Decrement();
  families_->refusals.Add({{"status", code}}).Increment();
}

void Metrics::OnSaved(const std::string& run, std::size_t messages, double seconds) {
  families_->submissions.Add({{"run", run}}).Increment(static_cast<double>(messages));
  families_->writes.Add({{"run", run}}, WriteSeconds()).Observe(seconds);
}

void Metrics::OnNotSaved(const std::string& run, const std::string& /*problem*/) {
  families_->failures.Add({{"run", run}}).Increment();
}

void Metrics::OnProgress(const RunProgress& progress) {
  const prometheus::Labels run{{"run", progress.run}};
  families_->steps.Add(run).Increment();
  families_->submissions.Add(run);
  families_->failures.Add(run);
  families_->writes.Add(run, WriteSeconds());
  families_->round.Add(run).Set(progress.round);
  families_->learners.Add(run).Set(static_cast<double>(progress.learners));
  families_->awaited.Add(run).Set(static_cast<double>(progress.awaited));
  families_->over.Add(run).Set(progress.phase == "over" ? 1 : 0);
}

void Metrics::OnLeftOut(const std::string& /*run*/, LearnerId /*learner*/, int /*round*/) {
  families_->left_out.Increment();
}
void Metrics::OnRevoked(LearnerId /*learner*/) { families_->revoked.Increment(); }

void Metrics::OnTransport(const std::string& /*problem*/) { families_->transport.Increment(); }

void Metrics::OnTrouble(const std::string& /*trouble*/) { families_->troubles.Increment(); }

std::string Metrics::Text() const {
  return prometheus::TextSerializer().Serialize(families_->registry.Collect());
}

struct MetricsServer::Parts {
  httplib::Server server;
  int port = 0;
  std::atomic<bool> ended = false;
  std::thread thread;
};

MetricsServer::MetricsServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

MetricsServer::~MetricsServer() {
  parts_->server.stop();
  parts_->thread.join();
}

int MetricsServer::port() const { return parts_->port; }

Result<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& listen,
                                                            std::function<std::string()> text) {
  const std::size_t colon = listen.rfind(':');
  int port = -1;
  if (colon != std::string::npos) {
    std::from_chars(listen.data() + colon + 1, listen.data() + listen.size(), port);
  }
  constexpr int kMostPort = 65535;
  if (colon == 0 || port < 0 || port > kMostPort ||
      listen.substr(colon + 1) != std::to_string(port)) {
    return Error{ErrorCode::kUsage, fmt::format("--metrics = {}: must be HOST:PORT", listen)};
  }
  auto parts = std::make_unique<Parts>();
  // A connection has a thread. One that says nothing is let go soon, so that a few of them do not
  // keep the next who asks for long.
  parts->server.new_task_queue = [] { return new httplib::ThreadPool(8); };  // NOLINT: httplib's
  parts->server.set_read_timeout(1);
  parts->server.set_keep_alive_timeout(1);
  // Not httplib's own, which would share the port with whoever has it.
  parts->server.set_socket_options([](int socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  parts->server.set_keep_alive_max_count(10);
  parts->server.Get("/metrics", [text = std::move(text)](const httplib::Request& /*request*/,
                                                         httplib::Response& response) {
    response.set_content(text(), "text/plain; version=0.0.4; charset=utf-8");
  });
  const auto only_read = [](const httplib::Request& /*request*/, httplib::Response& response) {
    response.status = 405;
    response.set_header("Allow", "GET, HEAD");
  };
  parts->server.Post("/metrics", only_read).Put("/metrics", only_read);
  parts->server.Patch("/metrics", only_read).Delete("/metrics", only_read);
  const std::string host = listen.substr(0, colon);
  if (port == 0) {
    parts->port = parts->server.bind_to_any_port(host);
  } else if (parts->server.bind_to_port(host, port)) {
    parts->port = port;
  }
  if (parts->port <= 0) {
    return Error{ErrorCode::kIo,
                 fmt::format("--metrics {}: cannot listen there; is the port taken?", listen)};
  }
  parts->thread = std::thread([all = parts.get()] {
    all->server.listen_after_bind();
    all->ended = true;
  });
  // A server that does not listen yet cannot be stopped.
  while (!parts->server.is_running() && !parts->ended) std::this_thread::yield();
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(parts)));
}

}  // namespace fedgen
