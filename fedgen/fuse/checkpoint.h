// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fedgen/base/result.h"
#include "fedgen/fuse/federation.h"

namespace fedgen {

// A run between two rounds, as bytes: everything that the rounds to come depend on. A run that is
// continued from it ends with the same bytes as one that was never interrupted.
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
};

struct Checkpoint {
  std::string fingerprint;  // of configuration, seed and given policies: who may continue
  FederationState federation;
  std::vector<LearnerState> learners;
  std::vector<FileMark> beside;

  bool operator==(const Checkpoint&) const = default;
};

/// What a federation is now.
Checkpoint CheckpointOf(const Federation& federation, std::string fingerprint);

std::string CheckpointToBytes(const Checkpoint& checkpoint);
Result<Checkpoint> CheckpointFromBytes(std::string_view bytes, const std::string& name);
/// The same without the checksum, for tests that make malformed bodies.
Result<Checkpoint> CheckpointFromBody(std::string_view body, const std::string& name);

/// Puts a federation of the same settings where the checkpoint was. Refuses a checkpoint of another
/// run, or of learners of another shape.
Result<void> Restore(const Checkpoint& checkpoint, const std::string& fingerprint,
                     const std::string& name, Federation& federation);

}  // namespace fedgen
