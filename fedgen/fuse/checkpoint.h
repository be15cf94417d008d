// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fedgen/base/result.h"
#include "fedgen/fuse/cloud.h"
#include "fedgen/fuse/host.h"

namespace fedgen {

// A host or a Cloud between two rounds, as bytes: everything that the rounds to come depend on. A
// run that is continued from them ends with the same bytes as one that was never interrupted. The
// two are kept apart, since they may live on different machines: a Cloud may be a round ahead of a
// host, which then repeats that round and hears the same answers.
//
// The form is binary, little endian, with a version in front and a SHA-256 behind
// (docs/formats.md). Whatever the bytes, reading ends in a checkpoint whose numbers are finite and
// whose sizes agree with each other, or in one line that says what is wrong.

/// What a file that grows beside the checkpoint held when the checkpoint was taken.
struct FileMark {
  std::string name;         // of the file, without its directory
  std::uint64_t bytes = 0;  // it was this long
  std::string sha256;       // of them, 64 hexadecimal digits

  bool operator==(const FileMark&) const = default;
  friend void Fields(auto& archive, Is<FileMark> auto& m) { archive(m.name, m.bytes, m.sha256); }
};

struct LearnerCheckpoint {
  LearnerId id;
  LearnerState state;
  std::string improver;  // private state of what it improves by

  friend void Fields(auto& archive, Is<LearnerCheckpoint> auto& l) {
    archive(l.id, l.state, l.improver);
  }
};

struct HostCheckpoint {
  std::string fingerprint;  // of configuration, seed and given policies: who may continue
  HostState host;
  std::vector<LearnerCheckpoint> learners;
  std::vector<FileMark> beside;

  friend void Fields(auto& archive, Is<HostCheckpoint> auto& c) {
    archive(c.fingerprint, c.host, c.learners, c.beside);
  }
};

struct CloudCheckpoint {
  std::string fingerprint;
  CloudState cloud;

  friend void Fields(auto& archive, Is<CloudCheckpoint> auto& c) {
    archive(c.fingerprint, c.cloud);
  }
};

/// What a host is now.
HostCheckpoint CheckpointOf(const Host& host, std::string fingerprint);

std::string CheckpointToBytes(const HostCheckpoint& checkpoint);
std::string CheckpointToBytes(const CloudCheckpoint& checkpoint);

/// `name` stands for the file in messages.
Result<HostCheckpoint> HostFromBytes(std::string_view bytes, const std::string& name);
Result<CloudCheckpoint> CloudFromBytes(std::string_view bytes, const std::string& name);
/// The same without magic and checksum, for tests that make malformed bodies.
Result<HostCheckpoint> HostFromBody(std::string_view body, const std::string& name);
Result<CloudCheckpoint> CloudFromBody(std::string_view body, const std::string& name);

/// Puts a host, or a Cloud, of the same settings where the checkpoint was. Refuses a checkpoint of
/// another run, or of learners of another shape.
Result<void> Restore(const HostCheckpoint& checkpoint, const std::string& fingerprint,
                     const std::string& name, Host& host);
Result<void> Restore(const CloudCheckpoint& checkpoint, const std::string& fingerprint,
                     const std::string& name, Cloud& cloud);

/// Whether a checkpoint's fingerprint is the one wanted; `name` is the file's.
Result<void> CheckFingerprint(const std::string& is, const std::string& wanted,
                              const std::string& name);

}  // namespace fedgen
