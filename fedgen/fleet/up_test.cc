// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fleet/up.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <thread>

#include "fedgen/base/file.h"
#include "fedgen/base/file_testing.h"

namespace fedgen {
namespace {

void Swallow(int /*signal*/) {}

// What `fedgen up` does: it has a handler of its own, and tells a process to end that it has just
// started. A process that misses this ends by itself, in a second and with code 0.
TEST(StartProcess, LosesNoSignalThatComesAtOnce) {
  const TemporaryDirectory directory;
  const auto before = std::signal(SIGTERM, Swallow);
  for (int turn = 0; turn < 50; ++turn) {
    const Result<int> pid = StartProcess("/bin/sleep", {"1"}, directory.Path("log"));
    ASSERT_TRUE(pid) << pid.error().message;
    ASSERT_EQ(::kill(*pid, SIGTERM), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(*pid, &status, 0), *pid);
    ASSERT_TRUE(WIFSIGNALED(status)) << "turn " << turn << ": missed it, status " << status;
    EXPECT_EQ(WTERMSIG(status), SIGTERM);
  }
  // Who was started has no signal blocked, and this process none either.
  sigset_t blocked;
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &blocked), 0);
  EXPECT_EQ(::sigismember(&blocked, SIGTERM), 0);
  std::signal(SIGTERM, before);
}

TEST(EndProcesses, KillsWhoDoesNotEnd) {
  const TemporaryDirectory directory;
  const std::string log = directory.Path("log");
  const Result<int> deaf =
      StartProcess("/bin/sh", {"-c", "trap '' TERM; echo deaf; exec sleep 1000"}, log);
  const Result<int> obeys = StartProcess("/bin/sleep", {"1000"}, log);
  ASSERT_TRUE(deaf && obeys);
  const auto says_deaf = [&] {
    const Result<std::string> said = ReadFile(log, 100);
    return said && *said == "deaf\n";
  };
  while (!says_deaf()) std::this_thread::yield();
  EndProcesses(std::array{*deaf, *obeys}, std::chrono::milliseconds(100));
  EXPECT_EQ(::kill(*deaf, 0), -1);
  EXPECT_EQ(::kill(*obeys, 0), -1);
}

}  // namespace
}  // namespace fedgen
