// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "fedgen/base/result.h"

namespace fedgen {

// Files that are either whole or not there.

/// The bytes of a file, or an error naming it. Refuses directories and files over max_bytes.
Result<std::string> ReadFile(const std::string& path, std::size_t max_bytes);

enum class IfExists { kRefuse, kReplace };

/// Who may read a new file: those whom the user's umask lets, or its owner alone (0600), from its
/// first byte on. The latter is for keys.
enum class Access { kUmask, kOwner };

// A file that has no name yet. Commit() syncs it and gives it its name in one step; without
// Commit(), or if the program is killed, it vanishes and the destination stays as it was. With
// kRefuse an existing destination is an error at Create() and, should it appear meanwhile, at
// Commit(): nothing is ever overwritten by accident. Directories that are missing above the
// destination are made.
class AtomicFile {
 public:
  static Result<AtomicFile> Create(const std::string& path, IfExists if_exists,
                                   Access access = Access::kUmask);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  Result<void> Write(std::string_view bytes);
  Result<void> Commit();

 private:
  AtomicFile(std::string path, std::string temporary_path, int descriptor, IfExists if_exists)
      : path_(std::move(path)),
        temporary_path_(std::move(temporary_path)),
        descriptor_(descriptor),
        if_exists_(if_exists) {}

  std::string path_;
  std::string temporary_path_;  // empty for a file without a name
  int descriptor_ = -1;
  IfExists if_exists_ = IfExists::kRefuse;
};

/// Create, Write and Commit in one call.
Result<void> WriteFileAtomically(const std::string& path, std::string_view bytes,
                                 IfExists if_exists, Access access = Access::kUmask);

/// A directory (no link to one) with nothing in it: as good as none for whoever makes it.
bool IsEmptyDirectory(const std::string& path);

enum class Durable { kAtOnce, kSoon };  // kSoon: when the system sees fit

/// Appends to a file, creating it if need be, and syncs it. For logs: a file that grows row by row
/// and may end in half a row if the program is killed meanwhile.
Result<void> AppendToFile(const std::string& path, std::string_view bytes,
                          Durable durable = Durable::kAtOnce);

}  // namespace fedgen
