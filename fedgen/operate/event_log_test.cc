// SPDX-License-Identifier: Apache-2.0
#include "fedgen/operate/event_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <thread>
#include <vector>

#include "fedgen/base/file.h"
#include "fedgen/base/file_testing.h"
#include "fedgen/base/json-inl.h"

namespace fedgen {
namespace {

class EventLogTest : public ::testing::Test, protected TemporaryDirectory {
 protected:
  EventLogTest()
      : file_(::open(Path("log").c_str(), O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600)) {}
  ~EventLogTest() override { ::close(file_); }
  EventLog Log(LogForm form) const {
    return {file_, form,
            [] { return std::chrono::system_clock::time_point(std::chrono::milliseconds(1500)); }};
  }
  std::string Written() const { return *ReadFile(Path("log"), 1 << 22); }

  const int file_;
};

TEST_F(EventLogTest, WritesLinesForPeople) {
  const EventLog log = Log(LogForm::kText);
  log.Write(LogLevel::kInfo, "round", {{"run", "a"}, {"round", 12}, {"seconds", 0.25}});
  log.Write(LogLevel::kWarning, "refused", {{"reason", "says \x1b[2J\nmore"}, {"peer", ""}});
  EXPECT_EQ(
      Written(),
      "1970-01-01 00:00:01.500 info    round run=a round=12 seconds=0.25\n"
      "1970-01-01 00:00:01.500 warning refused reason=\"says \\x1b[2J\\x0amore\" peer=\"\"\n");
}

TEST_F(EventLogTest, WritesLinesForPrograms) {
  const EventLog log = Log(LogForm::kJson);
  log.Write(LogLevel::kError, "stop",
            {{"why", "\"\n\xff\x1b"},
             {"cost", std::numeric_limits<double>::quiet_NaN()},
             {"bytes", std::numeric_limits<std::int64_t>::max()}});
  const std::string line = Written();
  EXPECT_EQ(line,
            "{\"time\":\"1970-01-01T00:00:01.500Z\",\"level\":\"error\",\"event\":\"stop\","
            "\"why\":\"\\\"\\n\\ufffd\\u001b\",\"cost\":null,\"bytes\":9223372036854775807}\n");
  Json json;
  EXPECT_FALSE(ParseJson(line, {}, json));
}

TEST_F(EventLogTest, KeepsLinesOfManyThreadsWhole) {
  const EventLog log = Log(LogForm::kJson);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        log.Write(LogLevel::kInfo, "call", {{"text", std::string(2000, 'x')}});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = Written();
  EXPECT_EQ(std::ranges::count(text, '\n'), 800);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    EXPECT_EQ(text.substr(at, end - at), text.substr(0, text.find('\n')));
    at = end + 1;
  }
}

TEST_F(EventLogTest, DoesNotMindAClosedDescriptor) {
  const EventLog log(-1, LogForm::kText);
  log.Write(LogLevel::kInfo, "nobody hears it");
}

}  // namespace
}  // namespace fedgen
