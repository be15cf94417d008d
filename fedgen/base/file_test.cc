// SPDX-License-Identifier: Apache-2.0
#include "fedgen/base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <vector>

#include "fedgen/base/file_testing.h"

namespace {

// The system calls on which it depends whether a file survives a power cut, in order: "sync
// <inode>", "link", "rename". The linker puts __wrap_f in the place of f (CMakeLists.txt).
std::vector<std::string> calls;
bool syncing_fails = false;

int Sync(int descriptor, int (*sync)(int)) {
  struct stat status{};
  ::fstat(descriptor, &status);
  calls.push_back("sync " + std::to_string(status.st_ino));
  if (!syncing_fails) return sync(descriptor);
  errno = EIO;
  return -1;
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming): the linker's names
extern "C" {
int __real_fsync(int descriptor);
int __real_fdatasync(int descriptor);
int __real_link(const char* name, const char* new_name);
int __real_linkat(int from, const char* name, int to, const char* new_name, int flags);
int __real_rename(const char* name, const char* new_name);

int __wrap_fsync(int descriptor) { return Sync(descriptor, __real_fsync); }
int __wrap_fdatasync(int descriptor) { return Sync(descriptor, __real_fdatasync); }
int __wrap_link(const char* name, const char* new_name) {
  calls.emplace_back("link");
  return __real_link(name, new_name);
}
int __wrap_linkat(int from, const char* name, int to, const char* new_name, int flags) {
  calls.emplace_back("link");
  return __real_linkat(from, name, to, new_name, flags);
}
int __wrap_rename(const char* name, const char* new_name) {
  calls.emplace_back("rename");
  return __real_rename(name, new_name);
}
}
// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)

namespace fedgen {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class FileTest : public ::testing::Test, protected TemporaryDirectory {
 protected:
  static std::string Contents(const std::string& path) {
    Result<std::string> bytes = ReadFile(path, 1 << 20);
    return bytes ? *bytes : bytes.error().message;
  }
};

// A new file has its bytes on the disc before it has its name, and the name is on the disc before
// anybody hears that all is done: after a power cut there is the old file or the whole new one.
class SyncTest : public FileTest {
 protected:
  SyncTest() { calls.clear(); }
  ~SyncTest() override { syncing_fails = false; }

  static std::string SyncOf(const std::string& path) {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return "sync " + std::to_string(status.st_ino);
  }
};

TEST_F(SyncTest, ComesBeforeAndAfterANewName) {
  ASSERT_TRUE(WriteFileAtomically(Path("new"), "bytes", IfExists::kRefuse));
  EXPECT_THAT(calls, ElementsAre(SyncOf(Path("new")), "link", SyncOf(path())));
}

TEST_F(SyncTest, ComesBeforeAndAfterAReplacement) {
  ASSERT_TRUE(WriteFileAtomically(Path("file"), "old", IfExists::kRefuse));
  calls.clear();
  ASSERT_TRUE(WriteFileAtomically(Path("file"), "new", IfExists::kReplace));
  std::erase(calls, "link");  // of a file without a name, to a temporary one
  EXPECT_THAT(calls, ElementsAre(SyncOf(Path("file")), "rename", SyncOf(path())));
}

TEST_F(SyncTest, ComesAfterTheRowsOfALog) {
  ASSERT_TRUE(AppendToFile(Path("log"), "row\n"));
  EXPECT_THAT(calls, ElementsAre(SyncOf(Path("log"))));
}

TEST_F(SyncTest, FailsLoudly) {
  ASSERT_TRUE(WriteFileAtomically(Path("file"), "old", IfExists::kRefuse));
  syncing_fails = true;
  const std::string problem = Path("file") + ": cannot sync: Input/output error";
  EXPECT_EQ(WriteFileAtomically(Path("file"), "new", IfExists::kReplace).error().message, problem);
  EXPECT_EQ(Contents(Path("file")), "old");
  EXPECT_EQ(AppendToFile(Path("file"), "").error().message, problem);
}

using ReadFileTest = FileTest;
using AtomicFileTest = FileTest;

TEST_F(ReadFileTest, GivesBackEveryByte) {
  std::string bytes;
  for (int n = 0; n < 200000; ++n) bytes.push_back(static_cast<char>(n * 31 >> 3));
  ASSERT_TRUE(WriteFileAtomically(Path("bytes"), bytes, IfExists::kRefuse));
  EXPECT_EQ(Contents(Path("bytes")), bytes);
}

TEST_F(ReadFileTest, AllowsExactlyMaxBytes) {
  ASSERT_TRUE(WriteFileAtomically(Path("ten"), "0123456789", IfExists::kRefuse));
  EXPECT_TRUE(ReadFile(Path("ten"), 10));
  const Result<std::string> larger = ReadFile(Path("ten"), 9);
  ASSERT_FALSE(larger);
  EXPECT_EQ(larger.error().code, ErrorCode::kData);
  EXPECT_EQ(larger.error().message, Path("ten") + ": larger than the 9 bytes allowed");
}

TEST_F(ReadFileTest, NamesAMissingFile) {
  const Result<std::string> missing = ReadFile(Path("missing"), 10);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kIo);
  EXPECT_EQ(missing.error().message, Path("missing") + ": cannot open: No such file or directory");
}

TEST_F(ReadFileTest, RefusesADirectory) {
  const Result<std::string> refused = ReadFile(path(), 10);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kIo);
  EXPECT_EQ(refused.error().message, path() + ": is a directory, not a file");
}

TEST_F(AtomicFileTest, HasItsNameOnlyAfterCommit) {
  Result<AtomicFile> file = AtomicFile::Create(Path("out"), IfExists::kRefuse);
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->Write("first, "));
  ASSERT_TRUE(file->Write("second"));
  EXPECT_FALSE(std::filesystem::exists(Path("out")));
  ASSERT_TRUE(file->Commit());
  EXPECT_EQ(Contents(Path("out")), "first, second");
  EXPECT_THAT(Names(), ElementsAre("out"));
}

TEST_F(AtomicFileTest, LeavesNothingBehindWithoutCommit) {
  {
    Result<AtomicFile> file = AtomicFile::Create(Path("out"), IfExists::kRefuse);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->Write("half a file"));
  }
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(AtomicFileTest, LeavesTheOldFileWithoutCommit) {
  ASSERT_TRUE(WriteFileAtomically(Path("out"), "old", IfExists::kRefuse));
  {
    Result<AtomicFile> file = AtomicFile::Create(Path("out"), IfExists::kReplace);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->Write("new"));
  }
  EXPECT_EQ(Contents(Path("out")), "old");
  EXPECT_THAT(Names(), ElementsAre("out"));
}

TEST_F(AtomicFileTest, RefusesAnExistingFileAtCreate) {
  ASSERT_TRUE(WriteFileAtomically(Path("out"), "old", IfExists::kRefuse));
  const Result<void> refused = WriteFileAtomically(Path("out"), "new", IfExists::kRefuse);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kExists);
  EXPECT_THAT(refused.error().message, HasSubstr(Path("out") + ": already exists"));
  EXPECT_EQ(Contents(Path("out")), "old");
  EXPECT_THAT(Names(), ElementsAre("out"));
}

TEST_F(AtomicFileTest, ReplacesAnExistingFileWhenTold) {
  ASSERT_TRUE(WriteFileAtomically(Path("out"), "old and longer", IfExists::kReplace));
  ASSERT_TRUE(WriteFileAtomically(Path("out"), "new", IfExists::kReplace));
  EXPECT_EQ(Contents(Path("out")), "new");
  EXPECT_THAT(Names(), ElementsAre("out"));
}

// Two programs write the same new file: the second to commit loses, and the first one's bytes stay.
TEST_F(AtomicFileTest, RefusesAFileThatAppearedBeforeCommit) {
  {
    Result<AtomicFile> late = AtomicFile::Create(Path("out"), IfExists::kRefuse);
    ASSERT_TRUE(late);
    ASSERT_TRUE(late->Write("late"));
    ASSERT_TRUE(WriteFileAtomically(Path("out"), "early", IfExists::kRefuse));
    const Result<void> refused = late->Commit();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kExists);
  }
  EXPECT_EQ(Contents(Path("out")), "early");
  EXPECT_THAT(Names(), ElementsAre("out"));
}

TEST_F(AtomicFileTest, DoesNotReplaceADirectoryThatAppearedBeforeCommit) {
  {
    Result<AtomicFile> file = AtomicFile::Create(Path("out"), IfExists::kReplace);
    ASSERT_TRUE(file);
    std::filesystem::create_directory(Path("out"));
    const Result<void> refused = file->Commit();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kIo);
  }
  EXPECT_THAT(Names(), ElementsAre("out"));
}

TEST_F(AtomicFileTest, RefusesADirectoryAsItsPath) {
  for (const IfExists if_exists : {IfExists::kRefuse, IfExists::kReplace}) {
    const Result<AtomicFile> refused = AtomicFile::Create(path(), if_exists);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kIo);
    EXPECT_EQ(refused.error().message, path() + ": is a directory, not a file");
  }
}

// Replacing a device node by a file would break the machine for everybody.
TEST_F(AtomicFileTest, NeverReplacesAPipeOrALink) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink(Path("target"), Path("link"));
  for (const char* name : {"pipe", "link"}) {
    const Result<void> written = WriteFileAtomically(Path(name), "bytes", IfExists::kReplace);
    ASSERT_FALSE(written) << name;
    EXPECT_EQ(written.error().code, ErrorCode::kIo) << name;
  }
  EXPECT_THAT(Names(), UnorderedElementsAre("pipe", "link"));
}

TEST_F(AtomicFileTest, RefusesAnEmptyPath) {
  const Result<AtomicFile> refused = AtomicFile::Create("", IfExists::kRefuse);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
}

// Below a file, and in directories that nobody may write to, not even root.
TEST_F(AtomicFileTest, SaysWhichFileItCannotCreate) {
  ASSERT_TRUE(WriteFileAtomically(Path("file"), "", IfExists::kRefuse));
  for (const std::string& path :
       {Path("file/out"), std::string("/proc/missing/out"), std::string("/proc/fedgen_out")}) {
    const Result<AtomicFile> refused = AtomicFile::Create(path, IfExists::kRefuse);
    ASSERT_FALSE(refused) << path;
    EXPECT_EQ(refused.error().code, ErrorCode::kIo);
    EXPECT_THAT(refused.error().message, HasSubstr(path + ": cannot create: "));
  }
}

TEST_F(AtomicFileTest, MakesMissingDirectories) {
  ASSERT_TRUE(WriteFileAtomically(Path("new/deep/out"), "bytes", IfExists::kRefuse));
  EXPECT_EQ(Contents(Path("new/deep/out")), "bytes");
}

TEST_F(AtomicFileTest, ObeysTheUmask) {
  const mode_t before = ::umask(027);
  const Result<void> written = WriteFileAtomically(Path("out"), "", IfExists::kRefuse);
  ::umask(before);
  ASSERT_TRUE(written);
  struct stat status{};
  ASSERT_EQ(::stat(Path("out").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640U);
}

// The rights of the files below `directory` that this process has open, by their descriptors: a
// file without a name is seen this way too.
std::vector<mode_t> ModesOfOpenFiles(const std::string& directory) {
  std::vector<mode_t> modes;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the iterator's own descriptor
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    struct stat status{};
    if (target.starts_with(directory + "/") && ::stat(entry.path().c_str(), &status) == 0) {
      modes.push_back(status.st_mode & 0777);
    }
  }
  return modes;
}

TEST_F(AtomicFileTest, OfTheOwnerIsUnreadableToOthersBeforeItsFirstByte) {
  const mode_t before = ::umask(0);
  Result<AtomicFile> file = AtomicFile::Create(Path("key"), IfExists::kRefuse, Access::kOwner);
  ::umask(before);
  ASSERT_TRUE(file);
  EXPECT_THAT(ModesOfOpenFiles(path()), ElementsAre(0600U));
  ASSERT_TRUE(file->Write("secret"));
  ASSERT_TRUE(file->Commit());
  struct stat status{};
  ASSERT_EQ(::stat(Path("key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(AtomicFileTest, OfTheOwnerReplacesOneThatOthersCouldRead) {
  ASSERT_TRUE(WriteFileAtomically(Path("key"), "old", IfExists::kRefuse));
  ASSERT_TRUE(WriteFileAtomically(Path("key"), "new", IfExists::kReplace, Access::kOwner));
  struct stat status{};
  ASSERT_EQ(::stat(Path("key").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(AtomicFileTest, RefusesALinkThatLeadsNowhere) {
  std::filesystem::create_symlink(Path("nowhere"), Path("out"));
  const Result<AtomicFile> refused = AtomicFile::Create(Path("out"), IfExists::kRefuse);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kExists);
  EXPECT_FALSE(std::filesystem::exists(Path("nowhere")));
}

TEST_F(AtomicFileTest, BelongsToWhomItIsMovedTo) {
  std::optional<AtomicFile> moved;
  {
    Result<AtomicFile> file = AtomicFile::Create(Path("out"), IfExists::kRefuse);
    ASSERT_TRUE(file);
    moved.emplace(std::move(*file));
  }
  ASSERT_TRUE(moved->Write("moved"));
  ASSERT_TRUE(moved->Commit());
  moved.reset();
  EXPECT_EQ(Contents(Path("out")), "moved");
  EXPECT_THAT(Names(), ElementsAre("out"));
}

TEST(IsEmptyDirectory, IsTrueOfNothingElse) {
  const TemporaryDirectory directory;
  const std::string empty = directory.Path("empty");
  std::filesystem::create_directory(empty);
  EXPECT_TRUE(IsEmptyDirectory(empty));
  std::filesystem::create_directory_symlink(empty, directory.Path("link"));
  EXPECT_FALSE(IsEmptyDirectory(directory.Path("link")));
  EXPECT_FALSE(IsEmptyDirectory(directory.Path("missing")));
  std::filesystem::create_directory(empty + "/inner");
  EXPECT_FALSE(IsEmptyDirectory(empty));
}

}  // namespace
}  // namespace fedgen
