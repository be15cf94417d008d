// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fleet/up.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

#include "fedgen/base/file.h"
#include "fedgen/fleet/secret.h"
#include "fedgen/fleet/settings.h"
#include "fedgen/identity/authority.h"
#include "fedgen/identity/tls.h"
#include "fedgen/run/experiment.h"
#include "fedgen/run/run_files.h"

namespace fedgen {
namespace {

namespace fs = std::filesystem;

Error SystemError(const std::string& what) {
  return {ErrorCode::kIo, fmt::format("{}: {}", what, std::strerror(errno))};
}

Result<void> WriteNew(const std::string& path, const std::string& text,
                      Access access = Access::kUmask) {
  return WriteFileAtomically(path, text, IfExists::kRefuse, access);
}

std::string IdentityPath(const std::string& directory) { return directory + "/federation.json"; }

std::string NodeOf(int learner) { return fmt::format("learner-{}", learner); }

// Paths in a configuration begin at its own file, which the federation's files are not.
void NamePoliciesFromAnywhere(Config& config) {
  const auto absolute = [&](std::string& path) {
    if (!path.empty()) path = fs::absolute(fs::path(config.directory) / path).string();
  };
  for (std::string& path : config.initial_policies) absolute(path);
  if (!config.imitate.empty() && !BuiltInPolicy(config.imitate)) absolute(config.imitate);
  Resolve(config);
}

// All of a federation's files, in a directory that is not its own yet.
Result<void> Fill(const Config& config, std::uint64_t seed, const std::string& directory) {
  FEDGEN_TRY(WriteNew(directory + "/config.toml", config.resolved));
  FEDGEN_TRY(WriteNew(IdentityPath(directory), RunIdentityToJson({seed, "federation"})));
  FEDGEN_TRY(WriteNew(directory + "/run.toml", SharedText(config)));
  for (const Seat& seat : SeatsOf(config.training, Key(seed))) {
    const std::string node = NodeOf(static_cast<int>(seat.id.number()));
    FEDGEN_TRY(WriteNew(fmt::format("{}/mine/{}.toml", directory, node), OwnText(config, seat.id)));
    FEDGEN_TRY(WriteNew(fmt::format("{}/secrets/{}.key", directory, node),
                        SecretToText(seat.secret), Access::kOwner));
  }
  FEDGEN_TRY(MakeThrowAway(directory + "/tls", config.num_learners, SystemClock()));
  std::error_code code;
  fs::create_directories(directory + "/cloud", code);
  if (code) return Error{ErrorCode::kIo, fmt::format("{}/cloud: {}", directory, code.message())};
  return {};
}

}  // namespace

Result<Federation> PrepareFederation(const Config& config, std::uint64_t seed,
                                     const std::string& directory) {
  std::error_code code;
  if (fs::exists(directory, code) && !IsEmptyDirectory(directory)) {
    return Error{
        ErrorCode::kExists,
        fmt::format(
            "{}: already exists and was left as it is{}", directory,
            fs::exists(IdentityPath(directory), code) ? " (--resume goes on with it)" : "")};
  }
  Config anywhere = config;
  NamePoliciesFromAnywhere(anywhere);
  FEDGEN_TRY(ParseShared(SharedText(anywhere), "run.toml"));
  // Filled under another name, so that it is either there or not.
  const std::string filling = fmt::format("{}.{}.0", directory, ::getpid());
  Result<void> done = Fill(anywhere, seed, filling);
  if (done) {
    fs::rename(filling, directory, code);
    if (code) done = Error{ErrorCode::kIo, fmt::format("{}: {}", directory, code.message())};
  }
  if (!done) {
    fs::remove_all(filling, code);
    return done.error();
  }
  return Federation{directory, config.num_learners, seed};
}

Result<FoundFederation> FindFederation(const std::string& directory) {
  const std::string path = IdentityPath(directory);
  std::error_code code;
  if (!fs::exists(path, code)) {
    return Error{
        ErrorCode::kIo,
        fmt::format("{}: holds no federation of fedgen up (no federation.json)", directory)};
  }
  const std::string text = FEDGEN_TRY(ReadFile(path, std::size_t{1} << 20));
  const RunIdentity identity = FEDGEN_TRY(ParseRunIdentity(text, path));
  Config config = FEDGEN_TRY(LoadConfig(directory + "/config.toml"));
  const Federation federation{directory, config.num_learners, identity.seed};
  return FoundFederation{federation, std::move(config)};
}

Result<RunLock> LockFederation(const Federation& federation) {
  return RunLock::Take(IdentityPath(federation.directory), federation.directory);
}

std::vector<std::string> CloudWords(const Federation& federation, int port) {
  const std::string& directory = federation.directory;
  return {"cloud",
          "--listen",
          fmt::format("127.0.0.1:{}", port),
          "--tls",
          directory + "/tls/cloud",
          "--run",
          directory + "/run.toml",
          "--store",
          fmt::format("sqlite:{}/cloud/cloud.db", directory),
          "--seed",
          std::to_string(federation.seed)};
}

std::vector<std::string> LearnerWords(const Federation& federation, int learner, int port) {
  const std::string& directory = federation.directory;
  const std::string node = NodeOf(learner);
  return {"learner",
          "--cloud",
          fmt::format("127.0.0.1:{}", port),
          "--tls",
          fmt::format("{}/tls/{}", directory, node),
          "--id",
          std::to_string(learner),
          "--config",
          fmt::format("{}/mine/{}.toml", directory, node),
          "--secret",
          fmt::format("{}/secrets/{}.key", directory, node),
          "--out",
          fmt::format("{}/{}", directory, node),
          "--no-certificate"};
}

Result<int> StartProcess(const std::string& program, const std::vector<std::string>& words,
                         const std::string& log) {
  const int output = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (output < 0) return SystemError(log);
  std::vector<char*> arguments;
  std::vector<std::string> all = {program};
  all.insert(all.end(), words.begin(), words.end());
  arguments.reserve(all.size() + 1);
  for (std::string& word : all) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  // A signal that comes between fork and exec waits for exec: here it would meet this program's
  // handler, and be lost.
  sigset_t all_signals, before;
  ::sigfillset(&all_signals);
  ::pthread_sigmask(SIG_SETMASK, &all_signals, &before);
  const pid_t pid = ::fork();
  if (pid != 0) ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    ::close(output);
    return SystemError("cannot start a process");
  }
  if (pid == 0) {
    // Between fork and exec: system calls only. Who started it may be gone already.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
    const int null = ::open("/dev/null", O_RDONLY);
    if (::getppid() != parent || ::dup2(null, STDIN_FILENO) < 0 ||
        ::dup2(output, STDOUT_FILENO) < 0 || ::dup2(output, STDERR_FILENO) < 0) {
      ::_exit(127);
    }
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execv(program.c_str(), arguments.data());
    ::_exit(127);
  }
  ::close(output);
  return static_cast<int>(pid);
}

void EndProcesses(std::span<const int> processes, std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPause{5};
  for (const int pid : processes) ::kill(pid, SIGTERM);
  const Clock::time_point late = Clock::now() + patience;
  for (const int pid : processes) {
    pid_t ended = 0;
    while ((ended = ::waitpid(pid, nullptr, WNOHANG)) == 0 && Clock::now() < late) {
      std::this_thread::sleep_for(kPause);
    }
    if (ended != 0) continue;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

Result<int> FindFreePort() {
  const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return SystemError("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const bool found = ::bind(probe, generic, size) == 0 && ::getsockname(probe, generic, &size) == 0;
  ::close(probe);
  if (!found) return SystemError("127.0.0.1: no free port");
  return static_cast<int>(ntohs(address.sin_port));
}

}  // namespace fedgen
