// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fleet/secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "fedgen/base/file.h"
#include "fedgen/base/file_testing.h"

namespace fedgen {
namespace {

using ::testing::HasSubstr;

TEST(Secret, IsDrawnOnceAndKeptForItsOwnerAlone) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("secret.key");
  const Result<Key> drawn = LoadOrDrawSecret(path);
  ASSERT_TRUE(drawn) << drawn.error().message;
  EXPECT_EQ(*LoadOrDrawSecret(path), *drawn);
  EXPECT_EQ(*LoadSecret(path), *drawn);
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_FALSE(*LoadOrDrawSecret(directory.Path("other.key")) == *drawn);
}

TEST(Secret, IsRefusedIfOthersMayReadItOrIfItIsNone) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("secret.key");
  ASSERT_TRUE(WriteFileAtomically(path, SecretToText(Key(7)), IfExists::kReplace, Access::kOwner));
  EXPECT_EQ(*LoadSecret(path), Key(7));
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  EXPECT_THAT(LoadSecret(path).error().message, HasSubstr("only its owner may read it"));
  for (const char* text :
       {"", "7\n", "000000000000000g\n", "0000000000000007", "00000000000000070\n"}) {
    ASSERT_TRUE(WriteFileAtomically(path, text, IfExists::kReplace, Access::kOwner));
    EXPECT_THAT(LoadSecret(path).error().message, HasSubstr("must hold 16 hexadecimal digits"))
        << text;
  }
  // A directory that others may read is no secret that others may read.
  const std::string folder = directory.Path("folder");
  ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(folder.c_str(), 0755), 0);
  EXPECT_EQ(LoadSecret(folder).error().message, folder + ": is a directory, not a file");
}

// Eq. 1's forks can be undone by who tries all keys; a hash cannot.
TEST(Secret, GivesASeedThatIsNotAForkOfIt) {
  EXPECT_NE(HomeSeed(Key(7)), Key(7).bits());
  EXPECT_EQ(HomeSeed(Key(7)), HomeSeed(Key(7)));
  EXPECT_NE(HomeSeed(Key(7)), HomeSeed(Key(8)));
}

}  // namespace
}  // namespace fedgen
