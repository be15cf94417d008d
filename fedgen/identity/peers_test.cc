// SPDX-License-Identifier: Apache-2.0
#include "fedgen/identity/peers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "fedgen/base/file_testing.h"
#include "fedgen/identity/identity_testing.h"

namespace fedgen {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr LearnerId kThird{2};

class PeerCheckTest : public ::testing::Test, protected TemporaryDirectory {
 protected:
  void SetUp() override {
    ASSERT_TRUE(
        WriteFileAtomically(Path("ca.pem"), authority_.certificate.text, IfExists::kRefuse));
  }
  Result<std::unique_ptr<PeerCheck>> Open() {
    PeerCheckOptions options;
    options.directory = path();
    options.look_every = std::chrono::milliseconds(0);
    options.on_revoked = [this](LearnerId who) { revoked_.push_back(who); };
    options.on_trouble = [this](const std::string& what) { troubles_.push_back(what); };
    return PeerCheck::Open(options);
  }
  static std::string Say(PeerCheck& check, const TlsIdentity& peer,
                         std::int64_t now = SystemClock()) {
    const Result<LearnerId> who = check.Check(peer.certificate, now);
    return who ? CommonNameOf(*who) : who.error().message;
  }

  const Authority authority_ = MakeTestAuthority("Acme fleet");
  const TlsIdentity third_ = MakeTestIdentity(authority_, kThird);
  const std::int64_t now_ = SystemClock();
  std::vector<LearnerId> revoked_;
  std::vector<std::string> troubles_;
};

TEST_F(PeerCheckTest, NamesWhoeverIsNotRevoked) {
  const std::unique_ptr<PeerCheck> check = *Open();  // without a list
  EXPECT_EQ(Say(*check, third_), "learner-3");
  EXPECT_EQ(Say(*check, MakeTestIdentity(authority_, LearnerId::Cloud())), "cloud");
  EXPECT_EQ(Say(*check, third_, now_ + 8 * 86400),
            fmt::format("learner-3: its certificate {} expired at {}", third_.info.serial,
                        TimeText(third_.info.not_after)));
  EXPECT_THAT(Say(*check, {"", authority_.certificate.text, ""}), HasSubstr("must be cloud or"));
  EXPECT_FALSE(check->Check("", now_));
  EXPECT_THAT(troubles_, IsEmpty());
}

TEST_F(PeerCheckTest, ReadsAListThatComesLater) {
  const std::unique_ptr<PeerCheck> check = *Open();
  const TlsIdentity renewed = MakeTestIdentity(authority_, kThird);
  EXPECT_EQ(Say(*check, third_), "learner-3");
  WriteTestList(path(), authority_, {{third_.info.serial, now_}});
  EXPECT_EQ(Say(*check, third_), fmt::format("learner-3: its certificate {} was revoked at {}",
                                             third_.info.serial, TimeText(now_)));
  EXPECT_EQ(Say(*check, renewed), "learner-3");
  EXPECT_THAT(revoked_, IsEmpty());  // it has another certificate
  WriteTestList(path(), authority_,
                {{third_.info.serial, now_, kThird}, {renewed.info.serial, now_, kThird}});
  EXPECT_THAT(Say(*check, renewed), HasSubstr("was revoked"));
  EXPECT_THAT(revoked_, ElementsAre(kThird));
  EXPECT_THAT(Say(*check, renewed), HasSubstr("was revoked"));
  EXPECT_THAT(revoked_, ElementsAre(kThird));
}

// While the Cloud was down, say: nobody has seen that certificate.
TEST_F(PeerCheckTest, TellsOfThoseWhoAreGoneFromTheStart) {
  WriteTestList(path(), authority_, {{third_.info.serial, now_, kThird}});
  const std::unique_ptr<PeerCheck> check = *Open();
  EXPECT_EQ(Say(*check, MakeTestIdentity(authority_, LearnerId(0))), "learner-1");
  EXPECT_THAT(revoked_, ElementsAre(kThird));
}

TEST_F(PeerCheckTest, KeepsTheLastGoodList) {
  WriteTestList(path(), authority_, {{third_.info.serial, now_}}, now_);
  const std::unique_ptr<PeerCheck> check = *Open();
  const auto expect_trouble = [&](const std::string& text) {
    EXPECT_THAT(Say(*check, third_), HasSubstr("was revoked"));
    ASSERT_FALSE(troubles_.empty()) << text;
    EXPECT_THAT(troubles_.back(), HasSubstr(text));
    EXPECT_THAT(troubles_.back(), HasSubstr("1 revocations stay in force"));
    troubles_.clear();
    EXPECT_THAT(Say(*check, third_), HasSubstr("was revoked"));
    EXPECT_THAT(troubles_, IsEmpty());  // said once
  };
  ASSERT_TRUE(WriteFileAtomically(Path("crl.pem"), "damaged", IfExists::kReplace));
  expect_trouble("holds no whole revocation list");
  WriteTestList(path(), MakeTestAuthority("Acme fleet"), {});
  expect_trouble("is the list of another authority");
  WriteTestList(path(), authority_, {}, now_ - 60);
  expect_trouble("is older than the list in force");
  std::filesystem::remove(Path("crl.pem"));
  expect_trouble("No such file");
}

TEST_F(PeerCheckTest, DoesNotBeginWithADamagedList) {
  ASSERT_TRUE(WriteFileAtomically(Path("crl.pem"), "damaged", IfExists::kRefuse));
  const Result<std::unique_ptr<PeerCheck>> check = Open();
  ASSERT_FALSE(check);
  EXPECT_EQ(check.error().message,
            Path("crl.pem") + ": holds no whole revocation list in PEM form");
}

}  // namespace
}  // namespace fedgen
