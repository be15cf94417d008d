// SPDX-License-Identifier: Apache-2.0
#include "fedgen/identity/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "fedgen/base/file_testing.h"
#include "fedgen/identity/identity_testing.h"

namespace fedgen {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr LearnerId kFirst{0};

class TlsDirectory : public ::testing::Test, protected TemporaryDirectory {
 protected:
  void SetUp() override { WriteTestIdentity(path(), identity_); }
  std::string Load(std::optional<LearnerId> who = kFirst, std::int64_t now = SystemClock()) const {
    const Result<TlsIdentity> loaded = LoadTlsIdentity(path(), who, now);
    return loaded ? loaded->info.serial : loaded.error().message;
  }

  const Authority authority_ = MakeTestAuthority("Acme fleet");
  const TlsIdentity identity_ = MakeTestIdentity(authority_, kFirst);
  const TlsIdentity renewed_ = MakeTestIdentity(authority_, kFirst);
  const std::string serial_ = identity_.info.serial;
};

TEST_F(TlsDirectory, IsLoadedIfAllBelongsTogether) {
  EXPECT_EQ(Load(), serial_);
  EXPECT_EQ(Load(std::nullopt), serial_);
  ASSERT_EQ(::chmod(Path("node.key").c_str(), 0400), 0);
  EXPECT_EQ(Load(), serial_);
  WriteTestList(path(), authority_, {{renewed_.info.serial, SystemClock()}});
  EXPECT_EQ(Load(), serial_);
}

TEST_F(TlsDirectory, SaysWhatIsWrongInOneLine) {
  EXPECT_EQ(Load(LearnerId(1)), Path("node.pem") + ": subject = learner-1: must be learner-2");
  EXPECT_THAT(Load(kFirst, SystemClock() + 8 * 86400), HasSubstr("has expired"));
  for (const mode_t mode : {0640U, 0604U, 0620U, 0601U}) {
    ASSERT_EQ(::chmod(Path("node.key").c_str(), mode), 0);
    EXPECT_EQ(Load(), fmt::format("{0}: permissions = {1:04o}: must be 0600, others have access to "
                                  "the key (chmod 600 {0})",
                                  Path("node.key"), mode));
  }
  WriteTestIdentity(path(), identity_);
  WriteTestList(path(), authority_, {{serial_, SystemClock()}});
  EXPECT_EQ(Load(), fmt::format("{}: serial = {}: was revoked ({})", Path("node.pem"), serial_,
                                Path("crl.pem")));
  WriteTestList(path(), MakeTestAuthority("Acme fleet"), {});
  EXPECT_THAT(Load(), HasSubstr("is the list of another authority"));
  std::filesystem::remove(Path("crl.pem"));
  TlsIdentity mixed = identity_;
  mixed.key = renewed_.key;
  WriteTestIdentity(path(), mixed);
  EXPECT_EQ(Load(), fmt::format("{}: is not the key of {}", Path("node.key"), Path("node.pem")));
  mixed = identity_;
  mixed.authority = MakeTestAuthority("Other fleet").certificate.text;
  WriteTestIdentity(path(), mixed);
  EXPECT_THAT(Load(), HasSubstr("was signed by another authority"));
  for (const char* const name : {"ca.pem", "node.pem", "node.key"}) {
    WriteTestIdentity(path(), identity_);
    std::filesystem::remove(Path(name));
    EXPECT_EQ(Load(), Path(name) + ": cannot open: No such file or directory");
  }
}

TEST_F(TlsDirectory, IsWatchedForARenewedPair) {
  std::vector<std::string> troubles;
  const std::unique_ptr<TlsWatch> watch =
      *TlsWatch::Open(path(), kFirst, [&](const std::string& what) { troubles.push_back(what); });
  const std::shared_ptr<const TlsIdentity> first = watch->Current();
  EXPECT_EQ(first->info.serial, serial_);
  EXPECT_EQ(watch->Current(), first);

  // Half way: the key is new, the certificate still the old one.
  ASSERT_TRUE(
      WriteFileAtomically(Path("node.key"), renewed_.key, IfExists::kReplace, Access::kOwner));
  EXPECT_EQ(watch->Current(), first);
  EXPECT_EQ(watch->Current(), first);
  EXPECT_THAT(troubles,
              ElementsAre(fmt::format("{}: is not the key of {}; certificate {} stays in use",
                                      Path("node.key"), Path("node.pem"), serial_)));
  ASSERT_TRUE(WriteFileAtomically(Path("node.pem"), renewed_.certificate, IfExists::kReplace));
  EXPECT_EQ(watch->Current()->info.serial, renewed_.info.serial);
  EXPECT_EQ(watch->Current()->key, renewed_.key);

  // Somebody else's does not come in by the way.
  WriteTestIdentity(path(), MakeTestIdentity(authority_, LearnerId(1)));
  EXPECT_EQ(watch->Current()->info.serial, renewed_.info.serial);
  EXPECT_THAT(troubles.back(), HasSubstr("must be learner-1"));
}

TEST_F(TlsDirectory, IsNotWatchedIfItIsWrongFromTheStart) {
  EXPECT_FALSE(TlsWatch::Open(path(), LearnerId(1), {}));
  EXPECT_FALSE(TlsWatch::Open(Path("nowhere"), kFirst, {}));
}

}  // namespace
}  // namespace fedgen
