// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "fedgen/base/file.h"
#include "fedgen/base/hash.h"
#include "fedgen/base/result.h"
#include "fedgen/fuse/checkpoint.h"

namespace fedgen {

// The directory of a training run: its layout, its beginning, and its clean-up after a kill.
//
//   run.json          seed and name: what config.toml does not hold
//   config.toml       the resolved configuration; another number of rounds extends the run
//   host.fgc          the learners after their last complete round
//   cloud.fgc         the Cloud then, or a round later
//   metrics.csv, truth.csv, timing.csv    rows that grow (run/run_tables.h)
//   policies/given-*.fgp                  initial policies that the configuration names
//   policies/*.fgp, certificate.json, summary.json, figures/    written at the end
//
// Everything but timing.csv depends on the configuration and the seed only.

// Checkpoints hold four vectors per learner; this is a thousand learners of a large network.
inline constexpr std::size_t kMaxCheckpointBytes = std::size_t{4} << 30;

/// What a run's config.toml does not hold: run.json.
struct RunIdentity {
  std::uint64_t seed = 1;
  std::string config_name;  // the file it was started with, for people
};

std::string RunIdentityToJson(const RunIdentity& identity);
Result<RunIdentity> ParseRunIdentity(std::string_view text, const std::string& name);

/// A table of a run as it grows, and what a checkpoint says about it. Costs as much as the rows
/// that are appended: the file is not read again.
class GrowingTable {
 public:
  /// A table at `path` that holds this text.
  GrowingTable(std::string path, std::string_view text);

  Result<void> Append(std::string_view rows);
  FileMark Mark() const;

 private:
  std::string path_;
  std::uint64_t bytes_ = 0;
  RunningSha256 hash_;
};

struct KeptTables {
  GrowingTable metrics, truth;
  double seconds;  // of training until then
};

class RunFiles {
 public:
  explicit RunFiles(std::string directory) : directory_(std::move(directory)) {}

  const std::string& directory() const { return directory_; }
  std::string Identity() const { return directory_ + "/run.json"; }
  std::string Config() const { return directory_ + "/config.toml"; }
  std::string HostCheckpoint() const { return directory_ + "/host.fgc"; }
  std::string CloudCheckpoint() const { return directory_ + "/cloud.fgc"; }
  /// Of runs that an older program began.
  std::string OldCheckpoint() const { return directory_ + "/checkpoint.fgc"; }
  std::string Metrics() const { return directory_ + "/metrics.csv"; }
  std::string Truth() const { return directory_ + "/truth.csv"; }
  std::string Timing() const { return directory_ + "/timing.csv"; }
  std::string Summary() const { return directory_ + "/summary.json"; }
  std::string Certificate() const { return directory_ + "/certificate.json"; }
  std::string Policy(const std::string& name) const {
    return directory_ + "/policies/" + name + ".fgp";
  }
  std::string Figure(const std::string& name) const { return directory_ + "/figures/" + name; }

  /// Makes the tables what they were after `round`: drops rows of later rounds and a half-written
  /// last row, and gives a table that is missing its header. `marks` (FileMarks of metrics.csv and
  /// truth.csv, or none for a run that began without them) say what the tables held then: one that
  /// does not begin with just that is an error, and nothing is touched.
  Result<KeptTables> KeepRounds(int round, std::span<const FileMark> marks) const;

  /// Whether the tables begin as they were marked after `round`; KeepRounds would refuse others.
  Result<void> CheckTables(int round, std::span<const FileMark> marks) const;
  /// The mark that a table of a run would have without its rows of `round`, the last.
  Result<FileMark> MarkWithout(int round, const FileMark& mark) const;

 private:
  std::string directory_;
};

/// What a run begins with besides: a policy, a secret.
struct FileToBegin {
  std::string name;  // in the run's directory: "policies/given-1.fgp"
  std::string bytes;
  Access access = Access::kUmask;
};

/// Makes the directory with run.json, config.toml and these files in it, all at once; refuses one
/// that exists.
Result<RunFiles> CreateRun(const std::string& directory, const RunIdentity& identity,
                           const std::string& resolved_config,
                           std::span<const FileToBegin> begin_with = {});

/// A directory that CreateRun made.
Result<RunFiles> OpenRun(const std::string& directory);

/// metrics.csv and truth.csv as the run's last checkpoint vouches for them; rows of a round that
/// was cut short are left out. An error if a table was altered, or if there is no checkpoint.
struct VouchedTables {
  std::string metrics, truth;
};
Result<VouchedTables> LoadVouchedTables(const RunFiles& files, const std::string& fingerprint);

/// Removes what a killed program left half-written. Only for the holder of the run's lock: the half
/// may be another process's.
Result<void> RemoveLeftovers(const RunFiles& files);

Result<RunIdentity> LoadRunIdentity(const RunFiles& files);

/// Holds a run for this process alone until it ends, however it ends.
class RunLock {
 public:
  /// Refuses a run that another process holds.
  static Result<RunLock> Take(const RunFiles& files);
  /// The same by a file that is there, of this directory.
  static Result<RunLock> Take(const std::string& path, const std::string& directory);
  RunLock(RunLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  RunLock& operator=(RunLock&&) = delete;
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
  ~RunLock();

 private:
  explicit RunLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace fedgen
