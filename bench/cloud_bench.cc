// SPDX-License-Identifier: Apache-2.0
#include "bench/cloud_bench.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "bench/load_client.h"
#include "bench/load_server.h"
#include "fedgen/base/file.h"
#include "fedgen/identity/pki.h"
#include "fedgen/identity/tls.h"

namespace fedgen {
namespace {

constexpr std::uint64_t kParameters = 1361;  // of 24-20-20-20-1, the text's network
constexpr double kAim = 0.60;                // of the echo's rate

// A directory of this run, gone with it.
class Scratch {
 public:
  static Result<Scratch> Make(const std::string& parent) {
    std::string path = parent + "/fedgen-bench-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) {
      return Error{ErrorCode::kIo, fmt::format("{}: cannot make a directory there", parent)};
    }
    return Scratch(path);
  }
  Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  std::string Path(const std::string& name) const { return path_ + "/" + name; }

 private:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Everybody's certificates.
struct People {
  std::string server;  // directory of the Cloud's identity
  std::vector<TlsIdentity> learners;
};

Result<TlsIdentity> MakeIdentity(const Authority& authority, LearnerId who) {
  const Identity identity{
      who, who.is_cloud() ? std::vector<std::string>{"127.0.0.1"} : std::vector<std::string>{}};
  const NewRequest made = FEDGEN_TRY(MakeRequest(identity));
  const std::string certificate =
      FEDGEN_TRY(Sign(authority, {made.request, "request"}, identity, 7, SystemClock()));
  return TlsIdentity{authority.certificate.text, certificate, made.key};
}

Result<void> WriteIdentity(const std::string& directory, const TlsIdentity& tls) {
  std::error_code code;
  std::filesystem::create_directory(directory, code);
  FEDGEN_TRY(WriteFileAtomically(directory + "/ca.pem", tls.authority, IfExists::kRefuse));
  FEDGEN_TRY(WriteFileAtomically(directory + "/node.pem", tls.certificate, IfExists::kRefuse));
  return WriteFileAtomically(directory + "/node.key", tls.key, IfExists::kRefuse, Access::kOwner);
}

Result<People> MakePeople(std::uint32_t learners, const std::string& directory) {
  const Authority authority = FEDGEN_TRY(MakeAuthority("fedgen-bench", 30, SystemClock()));
  const TlsIdentity server = FEDGEN_TRY(MakeIdentity(authority, LearnerId::Cloud()));
  FEDGEN_TRY(WriteIdentity(directory, server));
  People people;
  people.server = directory;
  for (std::uint32_t index = 0; index < learners; ++index) {
    people.learners.push_back(FEDGEN_TRY(MakeIdentity(authority, LearnerId(index))));
  }
  return people;
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double Mebibytes(std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

struct TurnRow {
  double rate = 0;    // requests/s
  double middle = 0;  // s, the median until an answer
  double tail = 0;    // s, 99 % are answered before
  double server = 0;  // s of the processor for a request
  double client = 0;
};

// One contestant, and what was measured of it.
struct Contestant {
  const char* name;
  ServerProcess& server;
  LoadClient client;
  std::vector<TurnRow> turns{};

  Result<void> Turn(int rounds) {
    const double before = server.CpuSeconds();
    const LoadTurn turn = FEDGEN_TRY(client.Rounds(rounds));
    const auto requests = static_cast<double>(turn.requests);
    turns.push_back({turn.per_second(), turn.Percentile(0.5), turn.Percentile(0.99),
                     (server.CpuSeconds() - before) / requests, turn.cpu_seconds / requests});
    fmt::print("  ");
    Print(turns.back());
    return {};
  }
  TurnRow Medians() const {
    TurnRow row;
    for (double TurnRow::* field :
         {&TurnRow::rate, &TurnRow::middle, &TurnRow::tail, &TurnRow::server, &TurnRow::client}) {
      std::vector<double> values;
      for (const TurnRow& turn : turns) values.push_back(turn.*field);
      row.*field = Median(std::move(values));
    }
    return row;
  }
  void Print(const TurnRow& row) const {
    fmt::print(
        "{:<12} {:>6.0f} requests/s   p50 {:>6.2f} ms   p99 {:>6.2f} ms   processor time for a "
        "request: server {:>5.1f}, client {:>4.1f} us\n",
        name, row.rate, 1e3 * row.middle, 1e3 * row.tail, 1e6 * row.server, 1e6 * row.client);
    std::fflush(stdout);
  }
};

struct LoadSize {
  std::uint32_t learners;
  int turns;
  int rounds;  // in a turn
  std::uint32_t runs;
};

struct LoadServers {
  People people;
  ServerProcess echo, waiting, cloud, whole;
};

Result<LoadServers> StartLoad(const LoadSize& size, const Scratch& scratch) {
  People people = FEDGEN_TRY(MakePeople(size.learners, scratch.Path("load-tls")));
  ServerProcess echo = FEDGEN_TRY(ServerProcess::Start({ServerKind::kEcho, people.server}));
  ServerProcess waiting =
      FEDGEN_TRY(ServerProcess::Start({ServerKind::kWaitingEcho, people.server, size.learners}));
  const auto start_cloud = [&](const char* store) {
    return ServerProcess::Start({ServerKind::kCloud, people.server, size.learners, size.runs,
                                 kParameters, scratch.Path(store)});
  };
  ServerProcess cloud = FEDGEN_TRY(start_cloud("load.db"));
  ServerProcess whole = FEDGEN_TRY(start_cloud("whole.db"));
  return LoadServers{std::move(people), std::move(echo), std::move(waiting), std::move(cloud),
                     std::move(whole)};
}

// Turn by turn, so that what else the machine does hits all alike.
double RatioOf(const Contestant& a, const Contestant& b) {
  std::vector<double> ratios;
  for (std::size_t turn = 0; turn < a.turns.size(); ++turn) {
    ratios.push_back(a.turns[turn].rate / b.turns[turn].rate);
  }
  fmt::print("{} / {} = {:.2f} in the middle of the turns ({:.2f} to {:.2f})", a.name, b.name,
             Median(ratios), std::ranges::min(ratios), std::ranges::max(ratios));
  return Median(ratios);
}

Result<void> RunLoad(const LoadSize& size, LoadServers& servers) {
  fmt::print(
      "load: {} learners in {}, one request each under way, {} floats a submission, mutual TLS, {} "
      "turns of {} requests\n",
      size.learners, size.runs == 1 ? "one run" : fmt::format("{} runs", size.runs), kParameters,
      size.turns, 2 * size.rounds * static_cast<int>(size.learners));
  const auto contestant = [&](const char* name, ServerProcess& server, LoadKind kind) {
    return Contestant{
        name, server,
        LoadClient(server.port(), kind, servers.people.learners, kParameters, size.runs)};
  };
  Contestant echo = contestant("echo", servers.echo, LoadKind::kEcho);
  Contestant waiting = contestant("waiting echo", servers.waiting, LoadKind::kEcho);
  Contestant cloud = contestant("Cloud", servers.cloud, LoadKind::kCloud);
  Contestant whole = contestant("whole Cloud", servers.whole, LoadKind::kWholeCloud);
  const auto all = {&echo, &waiting, &cloud, &whole};
  for (Contestant* one : all) {
    FEDGEN_TRY(one->client.Join());
    FEDGEN_TRY(one->client.Rounds(20));  // to get warm
  }
  const std::int64_t before = servers.cloud.Resident();
  for (int turn = 0; turn < size.turns; ++turn) {
    for (Contestant* one : all) FEDGEN_TRY(one->Turn(size.rounds));
  }
  fmt::print("medians\n");
  for (const Contestant* one : all) one->Print(one->Medians());
  const double ratio = RatioOf(cloud, echo);
  fmt::print("; the aim is at least {:.2f}: {}\n", kAim, ratio >= kAim ? "reached" : "missed");
  RatioOf(whole, echo);
  fmt::print(": if every answer brings the incumbent's policy, as the echo does\n");
  RatioOf(waiting, echo);
  fmt::print(": what it costs to wait for everybody\n");
  RatioOf(cloud, waiting);
  fmt::print("\n");
  const TurnRow bare = echo.Medians();
  const TurnRow ours = cloud.Medians();
  fmt::print("processor time of both ends, echo / Cloud = {:.2f}\n",
             (bare.server + bare.client) / (ours.server + ours.client));
  const std::int64_t after = servers.cloud.Resident();
  fmt::print(
      "memory of the Cloud over {} submissions: {:.1f} MiB before, {:.1f} MiB after ({:+} bytes), "
      "at most {:.1f} MiB\n\n",
      static_cast<std::int64_t>(size.learners) * size.rounds * size.turns, Mebibytes(before),
      Mebibytes(after), after - before, Mebibytes(servers.cloud.MostResident()));
  return {};
}

struct Crowd {
  People people;
  std::int64_t idle;  // bytes, before anybody came
  ServerProcess cloud;
};

Result<Crowd> StartCrowd(std::uint32_t learners, const Scratch& scratch) {
  People people = FEDGEN_TRY(MakePeople(learners, scratch.Path("learners-tls")));
  ServerProcess cloud = FEDGEN_TRY(ServerProcess::Start(
      {ServerKind::kCloud, people.server, learners, 1, kParameters, scratch.Path("learners.db")}));
  const std::int64_t idle = cloud.Resident();
  return Crowd{std::move(people), idle, std::move(cloud)};
}

Result<void> RunCrowd(int rounds, const Crowd& crowd) {
  const auto learners = static_cast<std::int64_t>(crowd.people.learners.size());
  LoadClient client(crowd.cloud.port(), LoadKind::kCloud, crowd.people.learners, kParameters, 1);
  const LoadTurn join = FEDGEN_TRY(client.Join());
  fmt::print(
      "learners: {} with certificates and connections of their own; connected and joined in {:.2f} "
      "s\n",
      learners, join.seconds);
  const LoadTurn turn = FEDGEN_TRY(client.Rounds(rounds));
  fmt::print(
      "{} rounds: all {} requests were answered, in {:.2f} s ({:.0f} requests/s, p50 {:.1f} ms, "
      "p99 {:.1f} ms)\n",
      rounds, turn.requests, turn.seconds, turn.per_second(), 1e3 * turn.Percentile(0.5),
      1e3 * turn.Percentile(0.99));
  const std::int64_t now = crowd.cloud.Resident();
  fmt::print(
      "memory of the Cloud: {:.1f} MiB before, {:.1f} MiB after: {:.0f} KiB a connection\n\n",
      Mebibytes(crowd.idle), Mebibytes(now),
      static_cast<double>(now - crowd.idle) / 1024 / static_cast<double>(learners));
  return {};
}

// A connection is a file to the kernel, at both ends.
void AllowManyFiles() {
  rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace

Result<void> RunCloudBench(const CloudBenchOptions& options) {
  const auto wanted = [&](const char* part) {
    return options.part == "all" || options.part == part;
  };
  const auto runs = static_cast<std::uint32_t>(options.runs);
  const LoadSize size = options.quick ? LoadSize{64, 3, 40, runs} : LoadSize{256, 15, 34, runs};
  AllowManyFiles();
  const Scratch scratch = FEDGEN_TRY(Scratch::Make(options.directory));
  // All servers begin before this process has used gRPC.
  std::optional<LoadServers> load;
  std::optional<Crowd> crowd;
  if (wanted("load")) load.emplace(FEDGEN_TRY(StartLoad(size, scratch)));
  if (wanted("learners"))
    crowd.emplace(FEDGEN_TRY(StartCrowd(options.quick ? 100 : 1000, scratch)));
  if (load) FEDGEN_TRY(RunLoad(size, *load));
  load.reset();
  if (crowd) FEDGEN_TRY(RunCrowd(options.quick ? 5 : 20, *crowd));
  crowd.reset();
  if (wanted("state")) FEDGEN_TRY(RunCloudStateBench(options.quick, scratch.Path("state.db")));
  return {};
}

}  // namespace fedgen
