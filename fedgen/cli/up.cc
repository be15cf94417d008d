// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <thread>

#include "fedgen/base/file.h"
#include "fedgen/base/text.h"
#include "fedgen/cli/commands.h"
#include "fedgen/cli/print.h"
#include "fedgen/cli/progress.h"
#include "fedgen/fleet/settings.h"
#include "fedgen/fleet/up.h"
#include "fedgen/policy/policy_file.h"
#include "fedgen/run/certify.h"
#include "fedgen/run/experiment.h"

namespace fedgen {
namespace {

constexpr std::size_t kMaxPolicyBytes = std::size_t{1} << 30;

Result<Config> ConfigOf(const UpCommand& command) {
  std::vector<std::string> overrides = command.overrides;
  if (command.learners > 0) {
    overrides.push_back(fmt::format("federation.learners={}", command.learners));
  }
  if (!command.algorithm.empty()) overrides.push_back("federation.algorithm=" + command.algorithm);
  return LoadConfig(command.config, overrides);
}

volatile std::sig_atomic_t interrupted = 0;
void OnInterrupt(int /*signal*/) { interrupted = 1; }

// The processes of a federation, kept running until each has ended by itself.
class Processes {
 public:
  Processes(Federation federation, std::string program, int port, int threads)
      : federation_(std::move(federation)),
        program_(std::move(program)),
        port_(port),
        threads_(threads) {}
  ~Processes() { EndAll(); }
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  Result<void> StartAll() {
    FEDGEN_TRY(Start("cloud", CloudWords(federation_, port_)));
    for (int learner = 1; learner <= federation_.num_learners; ++learner) {
      std::vector<std::string> words = LearnerWords(federation_, learner, port_);
      words.insert(words.end(), {"--threads", std::to_string(threads_)});
      FEDGEN_TRY(Start(fmt::format("learner-{}", learner), words));
    }
    return {};
  }

  /// Waits until every learner is done. Who was killed is started again; who ends with an error
  /// ends the whole.
  Result<void> Wait() {
    while (NumLearners() > 0) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, 0);
      if (interrupted != 0) return Error{ErrorCode::kIo, "interrupted"};
      if (pid < 0) continue;
      const auto found = running_.find(static_cast<int>(pid));
      if (found == running_.end()) continue;
      const Child child = found->second;
      running_.erase(found);
      if (WIFSIGNALED(status)) {
        PrintError("{} was ended by signal {}; starting it again\n", child.name, WTERMSIG(status));
        FEDGEN_TRY(Start(child.name, child.words));
      } else if (WEXITSTATUS(status) != 0 || child.name == "cloud") {
        return Error{ErrorCode::kIo, fmt::format("{} ended with exit code {}: see {}", child.name,
                                                 WEXITSTATUS(status), LogOf(child.name))};
      }
    }
    return {};
  }

  void EndAll() {
    for (const auto& [pid, child] : running_) ::kill(pid, SIGTERM);
    for (const auto& [pid, child] : running_) ::waitpid(pid, nullptr, 0);
    running_.clear();
  }

  const std::map<int, Child>& running() const { return running_; }

 private:
  std::string LogOf(const std::string& name) const {
    return fmt::format("{}/{}.log", federation_.directory, name);
  }
  std::size_t NumLearners() const {
    std::size_t count = 0;
    for (const auto& [pid, child] : running_) count += child.name == "cloud" ? 0 : 1;
    return count;
  }
  Result<void> Start(const std::string& name, const std::vector<std::string>& words) {
    const int pid = FEDGEN_TRY(StartProcess(program_, words, LogOf(name)));
    running_[pid] = {name, words, pid};
    return {};
  }

  Federation federation_;
  std::string program_;
  int port_, threads_;
  std::map<int, Child> running_;  // by pid
};

// Where all learners have one task they must have the same winner: it becomes the run's.
Result<std::optional<Mlp>> TakeWinner(const Federation& federation) {
  std::string winner;
  for (int learner = 1; learner <= federation.num_learners; ++learner) {
    const std::string path =
        fmt::format("{}/learner-{}/policies/best.fgp", federation.directory, learner);
    std::string bytes = FEDGEN_TRY(ReadFile(path, kMaxPolicyBytes));
    if (learner == 1) {
      winner = std::move(bytes);
    } else if (bytes != winner) {
      return std::optional<Mlp>();
    }
  }
  const std::string path = federation.directory + "/policies/best.fgp";
  FEDGEN_TRY(WriteFileAtomically(path, winner, IfExists::kReplace));
  return std::optional<Mlp>(FEDGEN_TRY(LoadPolicy(path)));
}

Result<void> CertifyWinnerOf(const Federation& federation, const Config& config, const Mlp& winner,
                             int num_threads) {
  CertifyOptions options;
  options.num_worlds = config.certificate_worlds;
  options.confidence = config.confidence;
  options.num_threads = num_threads;
  Progress progress("certify", "episodes",
                    options.num_worlds * config.task().world.start.per_world);
  const Certificate certificate =
      FEDGEN_TRY(Certify(config.task(), winner, options,
                         [&](std::int64_t done) { progress.Update(done); }));
  progress.Wipe();
  FEDGEN_TRY(WriteFileAtomically(federation.directory + "/certificate.json",
                                 CertificateToJson(certificate), IfExists::kReplace));
  Print("{}\n", Summary(certificate));
  return {};
}

std::string Sentence(const std::string& program, const std::vector<std::string>& words) {
  return fmt::format("{} {}", program, fmt::join(words, " "));
}

}  // namespace

Result<void> RunUp(const UpCommand& command) {
  const Config config = FEDGEN_TRY(ConfigOf(command));
  const int num_threads = FEDGEN_TRY(NumThreads(command.threads));
  const std::uint64_t seed = command.seed.value_or(1);
  const std::string stem = std::filesystem::path(command.config).stem().string();
  const std::string directory =
      command.out.empty() ? fmt::format("runs/{}-up-seed{}", stem, seed) : command.out;
  const Federation federation = FEDGEN_TRY(PrepareFederation(config, seed, directory));
  const int port = FEDGEN_TRY(FindFreePort());
  if (command.prepare_only) {
    Print("{}\n", Sentence("fedgen", CloudWords(federation, port)));
    for (int learner = 1; learner <= federation.num_learners; ++learner) {
      Print("{}\n", Sentence("fedgen", LearnerWords(federation, learner, port)));
    }
    return {};
  }
  std::signal(SIGINT, OnInterrupt);
  std::signal(SIGTERM, OnInterrupt);
  Processes processes(federation, std::filesystem::read_symlink("/proc/self/exe").string(), port,
                      num_threads);
  FEDGEN_TRY(processes.StartAll());
  for (const auto& [pid, child] : processes.running()) {
    PrintError("{:<12} process {}\n", child.name, pid);
  }
  FEDGEN_TRY(processes.Wait());
  processes.EndAll();
  const std::optional<Mlp> winner = FEDGEN_TRY(TakeWinner(federation));
  if (!winner) {
    Print("learners have tasks of their own: the winner of each is {}/learner-*/policies/best.fgp\n",
          directory);
    return {};
  }
  if (!command.no_certificate) {
    FEDGEN_TRY(CertifyWinnerOf(federation, config, *winner, num_threads));
  }
  Print("{}/: policies/best.fgp, certificate.json, learner-*/, cloud/\n", directory);
  return {};
}

}  // namespace fedgen
