// SPDX-License-Identifier: Apache-2.0
#include "fedgen/operate/doctor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

#include "fedgen/base/file.h"
#include "fedgen/base/text.h"
#include "fedgen/base/version.h"
#include "fedgen/federation/status.h"
#include "fedgen/identity/tls.h"
#include "fedgen/operate/backup.h"
#include "fedgen/store/store.h"

namespace fedgen {
namespace {

constexpr std::int64_t kDay = 86400;

// What a message speaks of, and what helps then. The first that fits counts.
struct Cure {
  std::string_view words;
  std::string_view remedy;
};

std::string RemedyOf(const std::string& problem, std::span<const Cure> cures) {
  for (const Cure& cure : cures) {
    if (problem.find(cure.words) != std::string::npos) return std::string(cure.remedy);
  }
  return "";
}

// ---- Certificates -------------------------------------------------------------------------------

constexpr Cure kIdentityCures[] = {
    {"Permission denied", "run it as the user to whom the file belongs, or give it to this user"},
    {"node.key: cannot open",
     "make a key and a request with `fedgen pki request`, and have the request signed"},
    {"cannot open",
     "put node.pem and ca.pem beside node.key; the operator sends both (`fedgen pki sign`)"},
    {"permissions =", "`chmod 600` it; if others may have read it, request and sign anew"},
    {"is not the key of",
     "put the key beside it that the request was made with, or request and sign anew"},
    {"was signed by another authority", "take ca.pem and node.pem from the same authority"},
    {"is the list of another authority", "take crl.pem and ca.pem from the same authority"},
    {"was revoked", "ask the operator why; a new key and a new certificate are needed"},
    {"crl.pem", "copy the authority's crl.pem there again"},
    {"subject =", "choose the directory, or the --id, that belong together"},
    {"has expired",
     "renew: `fedgen pki request` in a new directory, `fedgen pki sign --again`; or "
     "set this machine's clock"},
    {"is not valid yet", "set this machine's clock"},
    {"PEM form", "copy the file again, whole"},
};

std::optional<CertificateInfo> CheckCertificates(const DoctorOptions& options, std::int64_t now,
                                                 std::vector<Finding>& findings) {
  constexpr std::int64_t kSoon = 30;  // days
  const std::string& directory = options.tls_directory;
  const Result<TlsIdentity> tls = LoadTlsIdentity(directory, options.who, now);
  if (!tls) {
    const std::string& problem = tls.error().message;
    findings.push_back({"certificate", Health::kBad, problem, RemedyOf(problem, kIdentityCures)});
    return std::nullopt;
  }
  const CertificateInfo& info = tls->info;
  const LearnerId who = info.peer.value_or(LearnerId());  // what was loaded has a name
  const std::int64_t days = (info.not_after - now) / kDay;
  const std::string found =
      fmt::format("{}/node.pem: {}, until {}, {} left", directory, CommonNameOf(who),
                  TimeText(info.not_after), Counted(days, "day"));
  if (days < kSoon) {
    findings.push_back({"certificate", Health::kWarning, found,
                        "renew it soon: `fedgen pki request` in a new directory, `fedgen pki sign "
                        "--again`; nothing need be restarted"});
  } else {
    findings.push_back({"certificate", Health::kOk, found});
  }
  const std::string list = directory + "/crl.pem";
  if (who.is_cloud() && !StampOf(list).exists()) {
    findings.push_back({"revocations", Health::kWarning, list + ": is missing: nobody is revoked",
                        "copy the authority's crl.pem there; a running Cloud reads it"});
  }
  return info;
}

// ---- The Cloud ----------------------------------------------------------------------------------

constexpr Cure kCloudCures[] = {
    {"was revoked", "ask the operator why; a new key and a new certificate are needed"},
    {"expired at", "renew this certificate"},
    {"of another host",
     "dial a name that the Cloud's certificate has, or sign it again with --host"},
    {"doctor",
     "compare ca.pem at both ends (`fedgen pki show`): they must be one authority's; is "
     "it a Cloud that listens there?"},
    {"nobody listens", "start `fedgen cloud` there, or correct the address"},
    {"no such host", "correct the name, or mend the name service"},
    {"no answer in time", "let the port through the firewall, or correct the address"},
    {"cannot be reached", "correct the address, or mend the network"},
    {"timed out", "let the port through the firewall, or correct the address"},
};

void CheckClock(double theirs, std::int64_t now, const std::string& cloud,
                std::vector<Finding>& findings) {
  constexpr double kMostSeconds = 60;
  const double ahead = static_cast<double>(now) - theirs;
  const std::string found = fmt::format("{:.0f} s {} the Cloud's at {}", std::abs(ahead),
                                        ahead >= 0 ? "ahead of" : "behind", cloud);
  if (std::abs(ahead) <= kMostSeconds) {
    findings.push_back({"clock", Health::kOk, found});
    return;
  }
  // Certificates begin an hour early; beyond that a new one would be refused.
  const bool bad = std::abs(ahead) > static_cast<double>(kClockSkew);
  findings.push_back({"clock", bad ? Health::kBad : Health::kWarning, found,
                      "set the clocks by network time (`timedatectl set-ntp true`)"});
}

void CheckCloud(const std::string& address, const DoctorOptions& options, std::int64_t now,
                std::vector<Finding>& findings) {
  const Result<CloudStatus> status = FetchStatus(address, options.tls_directory, "");
  if (!status) {
    const std::string& problem = status.error().message;
    findings.push_back({"cloud", Health::kBad, problem, RemedyOf(problem, kCloudCures)});
    return;
  }
  const std::string found =
      fmt::format("{}: {}, {}", address, Printable(status->version),
                  Counted(static_cast<std::int64_t>(status->runs.size()), "run"));
  if (status->version == kVersion) {
    findings.push_back({"cloud", Health::kOk, found});
  } else {
    findings.push_back({"cloud", Health::kWarning, fmt::format("{}; this is {}", found, kVersion),
                        "install the same version at both ends"});
  }
  CheckClock(status->now, now, address, findings);
}

// ---- This machine -------------------------------------------------------------------------------

constexpr Cure kListenCures[] = {
    {"in use", "`ss -ltnp` says who has the port; stop it, or choose another"},
    {"Cannot assign", "choose an address of this machine, or 0.0.0.0 for all"},
    {"Permission denied", "choose a port above 1023"},
    {"not known", "correct the name"},
};

}  // namespace

std::string TryToListen(const std::string& listen) {
  const std::size_t colon = listen.rfind(':');
  if (colon == std::string::npos) return "must be HOST:PORT";
  std::string host = listen.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(host.c_str(), listen.c_str() + colon + 1, &wanted, &found);
  if (code != 0) return ::gai_strerror(code);
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> freed(found, ::freeaddrinfo);
  const int socket = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return std::strerror(errno);
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  const bool bound =
      ::bind(socket, found->ai_addr, found->ai_addrlen) == 0 && ::listen(socket, 1) == 0;
  const std::string problem = bound ? "" : std::strerror(errno);
  ::close(socket);
  return problem;
}

namespace {

void CheckListen(const std::string& listen, std::vector<Finding>& findings) {
  const std::string problem = TryToListen(listen);
  if (problem.empty()) {
    findings.push_back({"listen", Health::kOk, listen + ": is free"});
  } else {
    findings.push_back({"listen", Health::kBad, fmt::format("{}: {}", listen, problem),
                        RemedyOf(problem, kListenCures)});
  }
}

constexpr Cure kStoreCures[] = {
    {"in use by another process", "one Cloud at a time has a store: stop the other (`fuser`)"},
    {"its owner moves it up", "nothing: the Cloud moves it up when it starts; back it up before"},
    {"a newer FedGen", "install that version, or restore a backup"},
    {"damaged", "restore the last backup, if learners have not gone on since it was made"},
    {"not a database", "restore the last backup, if learners have not gone on since it was made"},
    {"not a store", "choose another path"},
    {"ermission", "let the Cloud's user read and write the file and its directory"},
    {"must be sqlite:PATH", "write sqlite:/var/lib/fedgen/cloud.db, say"},
};

void CheckDisk(const std::string& directory, std::vector<Finding>& findings) {
  constexpr std::uint64_t kLittle = std::uint64_t{1} << 30;
  constexpr std::uint64_t kNothing = std::uint64_t{100} << 20;
  struct statvfs disk{};
  if (::statvfs(directory.c_str(), &disk) != 0) {
    findings.push_back({"disk", Health::kBad,
                        fmt::format("{}: {}", directory, std::strerror(errno)),
                        "make the directory, for the Cloud's user"});
    return;
  }
  const std::uint64_t left = std::uint64_t{disk.f_bavail} * disk.f_frsize;
  const std::string found =
      fmt::format("{}: {} MiB left", directory, Grouped(static_cast<std::int64_t>(left >> 20)));
  if (left >= kLittle) {
    findings.push_back({"disk", Health::kOk, found});
  } else {
    findings.push_back({"disk", left < kNothing ? Health::kBad : Health::kWarning, found,
                        "make space; a Cloud with a full disk waits, and goes on when there is"});
  }
}

// What of a store can be said without changing it.
Result<std::size_t> LookAtStore(const std::string& url) {
  std::size_t num_runs = 0;
  {
    const std::unique_ptr<Store> store = FEDGEN_TRY(OpenStoreForReading(url));
    num_runs = FEDGEN_TRY(ReadAllRuns(*store));
  }
  // Its schema is ours, so that becoming the owner for a moment changes nothing; it looks for
  // damage.
  FEDGEN_TRY(OpenStore(url));
  return num_runs;
}

void CheckStore(const DoctorOptions& options, std::vector<Finding>& findings) {
  constexpr std::string_view kScheme = "sqlite:";
  const std::string& url = options.store;
  const std::string path = url.starts_with(kScheme) ? url.substr(kScheme.size()) : "";
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const std::string directory = parent.empty() ? "." : parent;
  if (!path.empty()) CheckDisk(directory, findings);
  if (!path.empty() && !StampOf(path).exists()) {
    if (::access(directory.c_str(), W_OK | X_OK) == 0) {
      findings.push_back({"store", Health::kOk, path + ": is not there yet, and can be made"});
    } else {
      const std::string problem = fmt::format("{}: {}", directory, std::strerror(errno));
      findings.push_back({"store", Health::kBad, problem,
                          "make the directory, and let the Cloud's user write there"});
    }
    return;
  }
  const Result<std::size_t> runs = LookAtStore(url);
  if (runs) {
    findings.push_back(
        {"store", Health::kOk,
         fmt::format("{}: {}", path, Counted(static_cast<std::int64_t>(*runs), "run"))});
    return;
  }
  const std::string& problem = runs.error().message;
  const bool waits = problem.find("its owner moves it up") != std::string::npos;
  // While the Cloud runs, its store is in use; that is bad for who wants to start another.
  const bool serves =
      problem.find("in use by another process") != std::string::npos && options.listen.empty();
  findings.push_back({"store", waits || serves ? Health::kWarning : Health::kBad, problem,
                      RemedyOf(problem, kStoreCures)});
}

void CheckFile(const std::string& path, std::vector<Finding>& findings) {
  constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
  const Result<std::string> text = ReadFile(path, kMaxBytes);
  if (text) {
    findings.push_back({"file", Health::kOk, path + ": can be read"});
  } else {
    findings.push_back(
        {"file", Health::kBad, text.error().message, "correct the path, or let this user read it"});
  }
}

}  // namespace

std::vector<Finding> Diagnose(const DoctorOptions& options) {
  std::vector<Finding> findings;
  const std::int64_t now = options.now.value_or(SystemClock());
  if (!options.tls_directory.empty()) {
    const std::optional<CertificateInfo> mine = CheckCertificates(options, now, findings);
    for (const std::string& cloud : options.clouds) {
      // Nobody is reached with a bad certificate; what is wrong with it was said.
      if (mine) CheckCloud(cloud, options, now, findings);
    }
  }
  if (!options.listen.empty()) CheckListen(options.listen, findings);
  if (!options.store.empty()) CheckStore(options, findings);
  for (const std::string& path : options.files) CheckFile(path, findings);
  return findings;
}

std::string FindingsText(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    const char* const mark = finding.health == Health::kOk        ? "ok"
                             : finding.health == Health::kWarning ? "warning"
                                                                  : "bad";
    text += fmt::format("{:<8} {:<12} {}\n", mark, finding.what, finding.found);
    if (!finding.remedy.empty()) text += fmt::format("{:<21} -> {}\n", "", finding.remedy);
  }
  return text;
}

}  // namespace fedgen
