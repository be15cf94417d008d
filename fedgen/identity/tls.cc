// SPDX-License-Identifier: Apache-2.0
#include "fedgen/identity/tls.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "fedgen/base/file.h"

namespace fedgen {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{16} << 20;

Result<Pem> ReadPem(const std::string& path) {
  return Pem{FEDGEN_TRY(ReadFile(path, kMaxBytes)), path};
}

Result<void> CheckAccess(const std::string& key) {
  struct stat status{};
  if (::stat(key.c_str(), &status) != 0) {
    return Error{ErrorCode::kIo, fmt::format("{}: cannot open: {}", key, std::strerror(errno))};
  }
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) == 0) return {};
  return Error{ErrorCode::kMismatch,
               fmt::format("{0}: permissions = {1:04o}: must be 0600, others have access to the "
                           "key (chmod 600 {0})",
                           key, status.st_mode & 07777U)};
}

}  // namespace

std::int64_t SystemClock() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since).count();
}

Result<TlsIdentity> LoadTlsIdentity(const std::string& directory, std::optional<LearnerId> who,
                                    std::int64_t now) {
  const std::string list = directory + "/crl.pem";
  FEDGEN_TRY(CheckAccess(directory + "/node.key"));
  const Pem key = FEDGEN_TRY(ReadPem(directory + "/node.key"));
  const Pem certificate = FEDGEN_TRY(ReadPem(directory + "/node.pem"));
  const Pem authority = FEDGEN_TRY(ReadPem(directory + "/ca.pem"));
  std::optional<Pem> revocations;
  if (StampOf(list).exists()) revocations = FEDGEN_TRY(ReadPem(list));
  CertificateInfo info = FEDGEN_TRY(CheckPair(key, certificate, authority, revocations, who, now));
  return TlsIdentity{authority.text, certificate.text, key.text, std::move(info)};
}

FileStamp StampOf(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return {};
  constexpr std::int64_t kSecond = 1'000'000'000;
  return {status.st_dev, status.st_ino, status.st_size,
          status.st_mtim.tv_sec * kSecond + status.st_mtim.tv_nsec};
}

Result<std::unique_ptr<TlsWatch>> TlsWatch::Open(std::string directory,
                                                 std::optional<LearnerId> who,
                                                 TlsTrouble on_trouble) {
  std::unique_ptr<TlsWatch> watch(new TlsWatch(std::move(directory), who, std::move(on_trouble)));
  watch->seen_ = watch->Look();
  TlsIdentity identity = FEDGEN_TRY(LoadTlsIdentity(watch->directory_, who, SystemClock()));
  watch->current_ = std::make_shared<const TlsIdentity>(std::move(identity));
  return watch;
}

TlsWatch::Stamps TlsWatch::Look() const {
  return {StampOf(directory_ + "/ca.pem"), StampOf(directory_ + "/node.pem"),
          StampOf(directory_ + "/node.key")};
}

// The stamps are taken first: a file that is replaced while it is read will be read again.
std::shared_ptr<const TlsIdentity> TlsWatch::Current() {
  const std::lock_guard lock(mutex_);
  const Stamps now = Look();
  if (now == seen_) return current_;
  seen_ = now;
  Result<TlsIdentity> renewed = LoadTlsIdentity(directory_, who_, SystemClock());
  if (renewed) {
    current_ = std::make_shared<const TlsIdentity>(*std::move(renewed));
  } else if (on_trouble_) {
    on_trouble_(fmt::format("{}; certificate {} stays in use", renewed.error().message,
                            current_->info.serial));
  }
  return current_;
}

}  // namespace fedgen
