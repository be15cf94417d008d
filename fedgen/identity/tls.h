// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "fedgen/base/result.h"
#include "fedgen/identity/pki.h"

namespace fedgen {

// What one end of a connection needs, in a directory:
//
//   ca.pem      who may vouch for others
//   node.pem    what the authority says of this end
//   node.key    the proof; stays on its machine
//   crl.pem     what the authority has taken back: at the Cloud; it need not be there
//
// The files may be replaced while they are in use, which is how certificates are renewed.

/// Who one end of a connection is, and whom it believes, as PEM texts.
struct TlsIdentity {
  std::string authority;
  std::string certificate;
  std::string key;
  CertificateInfo info{};  // of the certificate
};

/// Seconds since 1970, UTC, by the clock of this machine.
std::int64_t SystemClock();

/// Reads and checks a directory: the pair belongs together, is this authority's, valid `now`, not
/// revoked by a list that is there, and `who`'s; nobody but its owner has access to the key. The
/// error is one line that says which of these is not so.
Result<TlsIdentity> LoadTlsIdentity(const std::string& directory, std::optional<LearnerId> who,
                                    std::int64_t now);

/// Told of what is wrong with a file that was replaced; what was in force stays so. From any
/// thread.
using TlsTrouble = std::function<void(const std::string& trouble)>;

/// Tells whether a file is still the one that it was; all zero if there is none.
struct FileStamp {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  std::int64_t changed = 0;  // ns

  bool exists() const { return inode != 0; }
  bool operator==(const FileStamp&) const = default;
};
FileStamp StampOf(const std::string& path);

// The identity in a directory, as it is now. Thread-safe.
//
// Key and certificate are two files, and one is replaced before the other. Meanwhile, and whenever
// what is there does not pass LoadTlsIdentity, the last good identity stays.
class TlsWatch {
 public:
  static Result<std::unique_ptr<TlsWatch>> Open(std::string directory, std::optional<LearnerId> who,
                                                TlsTrouble on_trouble);
  /// Another pointer than before if the files have been replaced by others that belong together.
  std::shared_ptr<const TlsIdentity> Current();

 private:
  using Stamps = std::array<FileStamp, 3>;
  TlsWatch(std::string directory, std::optional<LearnerId> who, TlsTrouble on_trouble)
      : directory_(std::move(directory)), who_(who), on_trouble_(std::move(on_trouble)) {}
  Stamps Look() const;

  const std::string directory_;
  const std::optional<LearnerId> who_;
  const TlsTrouble on_trouble_;
  std::mutex mutex_;  // guards what follows
  Stamps seen_{};
  std::shared_ptr<const TlsIdentity> current_;
};

}  // namespace fedgen
