// SPDX-License-Identifier: Apache-2.0
#include "fedgen/operate/backup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "fedgen/base/file.h"
#include "fedgen/base/file_testing.h"
#include "fedgen/store/store_testing.h"

namespace fedgen {
namespace {

TEST(BackupStore, CopiesAStoreThatIsInUse) {
  const TemporaryDirectory directory;
  const std::unique_ptr<Store> store = MustOpen(directory.Path("cloud.db"));
  ASSERT_TRUE(store->Begin({"r", "settings"}));
  ASSERT_TRUE(store->Append("r", MessagesFrom(1, 20)));
  const std::string url = UrlOf(directory.Path("cloud.db"));
  const Result<BackupInfo> info = BackupStore(url, directory.Path("copy.db"));
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->runs, 1U);
  EXPECT_GT(info->bytes, 20'000U);
  for (const char* beside : {"copy.db-wal", "copy.db-shm", "copy.db-journal"}) {
    EXPECT_FALSE(std::filesystem::exists(directory.Path(beside))) << beside;
  }
  EXPECT_EQ(LoadRun(*MustOpen(directory.Path("copy.db"))).messages, MessagesFrom(1, 20));
  ExpectError(BackupStore(url, directory.Path("copy.db")), ErrorCode::kExists, "copy.db");
  ExpectError(BackupStore(UrlOf(directory.Path("none.db")), directory.Path("c.db")), ErrorCode::kIo,
              "none.db");
}

TEST(BackupStore, CopiesNothingThatIsDamaged) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("cloud.db");
  {
    const std::unique_ptr<Store> store = MustOpen(path);
    ASSERT_TRUE(store->Begin({"r", "settings"}));
    ASSERT_TRUE(store->Append("r", MessagesFrom(1, 20)));
  }
  std::string bytes = *ReadFile(path, std::size_t{1} << 30);
  const std::size_t at = bytes.find(MessageOf(3).bytes.substr(0, 16));
  ASSERT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  ASSERT_TRUE(WriteFileAtomically(path, bytes, IfExists::kReplace));
  ExpectError(BackupStore(UrlOf(path), directory.Path("copy.db")), ErrorCode::kData,
              "cloud.db: r: is damaged: message 3");
  EXPECT_FALSE(std::filesystem::exists(directory.Path("copy.db")));
}

}  // namespace
}  // namespace fedgen
