// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <ranges>
#include <thread>
#include <utility>
#include <vector>

#include "fedgen/base/file.h"
#include "fedgen/base/text.h"
#include "fedgen/cli/commands.h"
#include "fedgen/cli/print.h"
#include "fedgen/cli/progress.h"
#include "fedgen/federation/run_log.h"
#include "fedgen/federation/status.h"
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
  AddPaceTo(overrides, command.patience, command.async);
  return LoadConfig(command.config, overrides);
}

volatile std::sig_atomic_t interrupted = 0;
void OnInterrupt(int signal) { interrupted = signal; }

// How far the run is, as the Cloud tells: a line that is redrawn on a terminal, and in a log one
// now and then.
class UpView {
 public:
  UpView(const Federation& federation, int port, int num_rounds)
      : address_(fmt::format("127.0.0.1:{}", port)),
        tls_(federation.directory + "/tls/cloud"),
        num_rounds_(num_rounds),
        terminal_(IsTerminal()),
        begin_(Clock::now()) {}
  ~UpView() { Wipe(); }
  UpView(const UpView&) = delete;
  UpView& operator=(const UpView&) = delete;

  void Look() {
    if (Clock::now() - looked_ < std::chrono::milliseconds(terminal_ ? 300 : 1000)) return;
    looked_ = Clock::now();
    const Result<CloudStatus> status =
        FetchStatus(address_, tls_, "", std::chrono::milliseconds(1000));
    if (!status || status->runs.size() != 1) return;
    const RunStatus& run = status->runs.front();
    if (terminal_) {
      Wipe();
      PrintError("{}", FitLine(Line(run), StderrSize().columns));
      drawn_ = true;
    } else if (run.progress.round >= next_round_ || run.progress.phase != phase_) {
      const bool telling = run.progress.phase != "submit" && run.progress.phase != "close";
      if (run.progress.round >= next_round_ || telling) PrintError("{}\n", Line(run));
      next_round_ = run.progress.round + std::max(1, num_rounds_ / 10);
    }
    phase_ = run.progress.phase;
  }
  void Wipe() {
    if (std::exchange(drawn_, false)) PrintError("\r\033[K");
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::string Line(const RunStatus& run) const {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    const int round = run.progress.round;
    std::string line = fmt::format("round {}/{}", round, num_rounds_);
    if (run.progress.phase == "submit" || run.progress.phase == "close") {
      if (round > 0) {
        line +=
            fmt::format(", at most {} left", DurationText(seconds / round * (num_rounds_ - round)));
      }
    } else {
      line += ", " + run.progress.phase;
    }
    if (run.incumbent) {
      line += fmt::format("; best: learner {}, round {}, y {:.3f} +- {:.3f}",
                          run.incumbent->learner.name(), run.incumbent->round, run.incumbent->y,
                          run.incumbent->b);
    }
    return line;
  }

  std::string address_, tls_, phase_;
  int num_rounds_;
  bool terminal_, drawn_ = false;
  int next_round_ = 0;
  Clock::time_point begin_, looked_{};
};

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
  Result<void> Wait(UpView& view) {
    while (NumLearners() > 0) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG);
      if (interrupted != 0) return Error{ErrorCode::kIo, "interrupted"};
      if (pid <= 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        view.Look();
        continue;
      }
      const auto found = running_.find(static_cast<int>(pid));
      if (found == running_.end()) continue;
      const Child child = found->second;
      running_.erase(found);
      // A Cloud that is told to end does so in order.
      const bool was_told = child.name == "cloud" && !WIFSIGNALED(status) && status == 0;
      if (WIFSIGNALED(status) || was_told) {
        view.Wipe();
        FEDGEN_TRY(Start(child.name, child.words));
        PrintError("{} was {}: started again, process {}\n", child.name,
                   was_told ? "told to end" : fmt::format("ended by signal {}", WTERMSIG(status)),
                   newest_);
      } else if (WEXITSTATUS(status) != 0) {
        return Error{ErrorCodeOf(WEXITSTATUS(status)),
                     fmt::format("{}: {} (exit code {}; all of it in {})", child.name,
                                 LastError(child), WEXITSTATUS(status), LogOf(child.name))};
      }
    }
    return {};
  }

  void EndAll() {
    const auto processes = std::views::keys(running_);
    // A kill loses nothing, so nobody is waited for long.
    EndProcesses(std::vector<int>(processes.begin(), processes.end()), std::chrono::seconds(10));
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
  // What a process said of why it ended, without what is older in its log.
  std::string LastError(const Child& child) const {
    std::ifstream file(LogOf(child.name));
    file.seekg(static_cast<std::streamoff>(child.log_begin));
    constexpr std::string_view kName = "fedgen: ";
    std::string error = "said nothing";
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(kName)) error = line.substr(kName.size());
    }
    return error;
  }
  Result<void> Start(const std::string& name, const std::vector<std::string>& words) {
    std::error_code none;
    const std::uintmax_t size = std::filesystem::file_size(LogOf(name), none);
    const int pid = FEDGEN_TRY(StartProcess(program_, words, LogOf(name)));
    running_[pid] = {name, words, pid, none ? 0 : size};
    newest_ = pid;
    return {};
  }

  Federation federation_;
  std::string program_;
  int port_, threads_;
  std::map<int, Child> running_;  // by pid
  int newest_ = 0;                // pid
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

// What happened, for fedgen train --replay.
Result<void> WriteLog(const Federation& federation) {
  const std::string home = federation.directory + "/cloud";
  const std::unique_ptr<Store> store =
      FEDGEN_TRY(OpenStoreForReading(fmt::format("sqlite:{}/cloud.db", home)));
  const RunLog log = FEDGEN_TRY(ReadRunLog(*store, "run"));
  return WriteFileAtomically(home + "/log.jsonl", LogToText(log), IfExists::kReplace);
}

Result<void> CertifyWinnerOf(const Federation& federation, const Config& config, const Mlp& winner,
                             int num_threads) {
  CertifyOptions options;
  options.num_worlds = config.certificate_worlds;
  options.confidence = config.confidence;
  options.num_threads = num_threads;
  Progress progress("certify", "episodes",
                    options.num_worlds * config.task().world.start.per_world);
  const Certificate certificate = FEDGEN_TRY(
      Certify(config.task(), winner, options, [&](std::int64_t done) { progress.Update(done); }));
  progress.Wipe();
  FEDGEN_TRY(WriteFileAtomically(federation.directory + "/certificate.json",
                                 CertificateToJson(certificate), IfExists::kReplace));
  Print("{}\n", Summary(certificate));
  return {};
}

// As a shell reads it back. A certificate is for whoever starts learners by hand.
std::string Sentence(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,";
  std::string sentence = "fedgen";
  for (const std::string& word : words) {
    if (word == "--no-certificate") continue;
    const bool plain = word.find_first_not_of(kPlain) == std::string::npos;
    std::string quoted;
    for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    sentence += plain ? " " + word : " '" + quoted + "'";
  }
  return sentence;
}

Result<FoundFederation> PrepareOrFind(const UpCommand& command) {
  if (!command.resume.empty()) {
    if (!command.config.empty() || !command.out.empty() || !command.overrides.empty() ||
        !command.algorithm.empty() || command.learners > 0 || command.seed || command.async ||
        command.patience || command.prepare_only) {
      return Error{ErrorCode::kUsage,
                   "--resume: only --threads and --no-certificate may be given with it"};
    }
    return FindFederation(command.resume);
  }
  if (command.config.empty()) {
    return Error{ErrorCode::kUsage, "--config or --resume is required"};
  }
  Config config = FEDGEN_TRY(ConfigOf(command));
  FEDGEN_TRY(CheckHasCloud(config, command.algorithm.empty() ? command.config : "--algorithm"));
  const std::uint64_t seed = command.seed.value_or(1);
  const std::string stem = std::filesystem::path(command.config).stem().string();
  const std::string directory =
      command.out.empty() ? fmt::format("runs/{}-up-seed{}", stem, seed) : command.out;
  const Federation federation = FEDGEN_TRY(PrepareFederation(config, seed, directory));
  return FoundFederation{federation, std::move(config)};
}

}  // namespace

Result<void> RunUp(const UpCommand& command) {
  const int num_threads = FEDGEN_TRY(NumThreads(command.threads));
  const FoundFederation found = FEDGEN_TRY(PrepareOrFind(command));
  const Federation& federation = found.federation;
  const Config& config = found.config;
  const std::string& directory = federation.directory;
  const int port = FEDGEN_TRY(FindFreePort());
  if (command.prepare_only) {
    Print("{}\n", Sentence(CloudWords(federation, port)));
    for (int learner = 1; learner <= federation.num_learners; ++learner) {
      Print("{}\n", Sentence(LearnerWords(federation, learner, port)));
    }
    return {};
  }
  const RunLock lock = FEDGEN_TRY(LockFederation(federation));
  std::signal(SIGINT, OnInterrupt);
  std::signal(SIGTERM, OnInterrupt);
  Processes processes(federation, std::filesystem::read_symlink("/proc/self/exe").string(), port,
                      num_threads);
  FEDGEN_TRY(processes.StartAll());
  PrintError("{}: a Cloud and {}, each a process of its own; what they say is in {}/*.log\n",
             directory, Counted(federation.num_learners, "learner"), directory);
  for (const auto& [pid, child] : processes.running()) {
    PrintError("  {:<10}  process {}{}\n", child.name, pid,
               child.name == "cloud" ? fmt::format(", 127.0.0.1:{} (kill it: it comes back, and "
                                                   "nothing is lost)",
                                                   port)
                                     : "");
  }
  UpView view(federation, port, config.training.federation.rounds);
  const Result<void> ended = processes.Wait(view);
  view.Wipe();
  if (interrupted != 0) {
    processes.EndAll();
    PrintError("fedgen: interrupted: fedgen up --resume {} goes on\n", directory);
    std::signal(interrupted, SIG_DFL);
    ::raise(interrupted);  // the program ends as if nobody had caught it
  }
  if (!ended) return ended.error();
  processes.EndAll();
  FEDGEN_TRY(WriteLog(federation));
  const std::optional<Mlp> winner = FEDGEN_TRY(TakeWinner(federation));
  if (!winner) {
    Print(
        "learners have tasks of their own: the winner of each is {}/learner-*/policies/best.fgp\n",
        directory);
    return {};
  }
  if (!command.no_certificate) {
    FEDGEN_TRY(CertifyWinnerOf(federation, config, *winner, num_threads));
  }
  Print("\n{}/: policies/best.fgp{}, learner-*/, cloud/log.jsonl\n", directory,
        command.no_certificate ? "" : ", certificate.json");
  return {};
}

}  // namespace fedgen
