// SPDX-License-Identifier: Apache-2.0
#include "fedgen/base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace fedgen {
namespace {

Error IoError(const std::string& path, const char* doing) {
  return {ErrorCode::kIo, fmt::format("{}: {}: {}", path, doing, std::strerror(errno))};
}

Error ExistsError(const std::string& path) {
  return {ErrorCode::kExists,
          fmt::format("{}: already exists and was left as it is (--force replaces it)", path)};
}

// Closes a descriptor at the end of the scope.
struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) ::close(value);
  }
};

std::string DirectoryOf(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

Result<std::string> ReadFile(const std::string& path, std::size_t max_bytes) {
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.value < 0) return IoError(path, "cannot open");
  struct stat status{};
  if (::fstat(file.value, &status) != 0) return IoError(path, "cannot read");
  if (S_ISDIR(status.st_mode)) {
    return Error{ErrorCode::kIo, fmt::format("{}: is a directory, not a file", path)};
  }
  std::string bytes;
  char buffer[1 << 16];
  while (true) {
    const ssize_t count = ::read(file.value, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return IoError(path, "cannot read");
    if (count == 0) return bytes;
    bytes.append(buffer, static_cast<std::size_t>(count));
    if (bytes.size() > max_bytes) {
      return Error{ErrorCode::kData,
                   fmt::format("{}: larger than the {} bytes allowed", path, max_bytes)};
    }
  }
}

Result<AtomicFile> AtomicFile::Create(const std::string& path, IfExists if_exists, Access access) {
  if (path.empty()) return Error{ErrorCode::kUsage, "output path is empty"};
  struct stat status{};
  if (::lstat(path.c_str(), &status) == 0) {
    if (if_exists == IfExists::kRefuse && !S_ISDIR(status.st_mode)) return ExistsError(path);
    // Replacing is for files: not for directories, and never for devices, pipes or links to
    // anything.
    if (!S_ISREG(status.st_mode)) {
      const char* what = S_ISDIR(status.st_mode)   ? "is a directory"
                         : S_ISLNK(status.st_mode) ? "is a symbolic link"
                                                   : "is a device or pipe";
      return Error{ErrorCode::kIo, fmt::format("{}: {}, not a file", path, what)};
    }
  } else if (errno != ENOENT) {
    // A name that is too long, or below something that is no directory: said before the work.
    return IoError(path, "cannot create");
  }
  std::error_code code;
  std::filesystem::create_directories(DirectoryOf(path), code);
  if (code) {
    return Error{ErrorCode::kIo, fmt::format("{}: cannot create: {}", path, code.message())};
  }
  // A file without a name vanishes with the program, however that ends.
  const mode_t mode = access == Access::kOwner ? 0600 : 0666;
  const int nameless = ::open(DirectoryOf(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
  if (nameless >= 0) return AtomicFile(path, "", nameless, if_exists);
  if (errno != EOPNOTSUPP && errno != EISDIR) return IoError(path, "cannot create");
  // Some file systems have no nameless files: a temporary name beside the destination then.
  std::string temporary_path = path + ".XXXXXX";
  const int descriptor = ::mkostemp(temporary_path.data(), O_CLOEXEC);
  if (descriptor < 0) return IoError(path, "cannot create");
  // mkostemp makes private files; give ours the rights the user's umask asks for.
  if (access == Access::kUmask) {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    ::fchmod(descriptor, mode & ~mask);
  }
  return AtomicFile(path, temporary_path, descriptor, if_exists);
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_path_(std::exchange(other.temporary_path_, "")),
      descriptor_(std::exchange(other.descriptor_, -1)),
      if_exists_(other.if_exists_) {}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
}

Result<void> AtomicFile::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return IoError(path_, "cannot write");
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<void> AtomicFile::Commit() {
  if (::fsync(descriptor_) != 0) return IoError(path_, "cannot sync");
  // Gives our file a name; fails if the name is taken.
  const auto link_as = [this](const std::string& name) {
    if (!temporary_path_.empty()) return ::link(temporary_path_.c_str(), name.c_str());
    const std::string self = fmt::format("/proc/self/fd/{}", descriptor_);
    return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW);
  };
  if (if_exists_ == IfExists::kRefuse) {
    // A file that appeared meanwhile survives.
    if (link_as(path_) != 0)
      return errno == EEXIST ? ExistsError(path_) : IoError(path_, "cannot create");
  } else {
    if (temporary_path_.empty()) {
      std::string name;
      int attempt = 0;
      int linked = 0;
      do {
        name = fmt::format("{}.{}.{}", path_, ::getpid(), attempt);
        linked = link_as(name);
      } while (linked != 0 && errno == EEXIST && ++attempt < 100);
      if (linked != 0) return IoError(path_, "cannot create");
      temporary_path_ = name;
    }
    if (::rename(temporary_path_.c_str(), path_.c_str()) != 0)
      return IoError(path_, "cannot create");
    temporary_path_.clear();
  }
  if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
  temporary_path_.clear();
  const Descriptor directory{
      ::open(DirectoryOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (directory.value >= 0 && ::fsync(directory.value) != 0) return IoError(path_, "cannot sync");
  return {};
}

Result<void> WriteFileAtomically(const std::string& path, std::string_view bytes,
                                 IfExists if_exists, Access access) {
  Result<AtomicFile> file = AtomicFile::Create(path, if_exists, access);
  if (!file) return file.error();
  if (Result<void> written = file->Write(bytes); !written) return written;
  return file->Commit();
}

Result<void> AppendToFile(const std::string& path, std::string_view bytes, Durable durable) {
  const Descriptor file{
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, mode_t{0666})};
  if (file.value < 0) return IoError(path, "cannot open");
  while (!bytes.empty()) {
    const ssize_t count = ::write(file.value, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return IoError(path, "cannot write");
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  if (durable == Durable::kAtOnce && ::fdatasync(file.value) != 0) {
    return IoError(path, "cannot sync");
  }
  return {};
}

bool IsEmptyDirectory(const std::string& path) {
  std::error_code code;
  const bool is_directory =
      std::filesystem::symlink_status(path, code).type() == std::filesystem::file_type::directory;
  return is_directory && std::filesystem::is_empty(path, code) && !code;
}

}  // namespace fedgen
