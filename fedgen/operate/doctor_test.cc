// SPDX-License-Identifier: Apache-2.0
#include "fedgen/operate/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "fedgen/base/file_testing.h"
#include "fedgen/federation/cloud_server.h"
#include "fedgen/identity/identity_testing.h"
#include "fedgen/store/store_testing.h"

namespace fedgen {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr LearnerId kThird{2};

// One of them, as "bad: what was found -> what helps".
std::string TextOf(const Finding& finding) {
  const char* const health = finding.health == Health::kOk        ? "ok"
                             : finding.health == Health::kWarning ? "warning"
                                                                  : "bad";
  return fmt::format("{} {}: {} -> {}", health, finding.what, finding.found, finding.remedy);
}

std::vector<std::string> TextsOf(const DoctorOptions& options) {
  std::vector<std::string> texts;
  for (const Finding& finding : Diagnose(options)) texts.push_back(TextOf(finding));
  return texts;
}

class Doctor : public ::testing::Test, protected TemporaryDirectory {
 protected:
  void SetUp() override {
    options_.tls_directory = WriteTestIdentity(Path("third"), third_);
    options_.who = kThird;
  }
  // A Cloud of an authority, with this list, at a port of 127.0.0.1.
  std::unique_ptr<CloudServer> StartCloud(const Authority& authority,
                                          const std::vector<Revocation>& revoked = {},
                                          const std::string& host = "127.0.0.1") {
    const std::string directory = Path("cloud");
    WriteTestIdentity(directory, MakeTestIdentity(authority, LearnerId::Cloud()));
    WriteTestList(directory, authority, revoked);
    CloudServerOptions options;
    options.tls_directory = directory;
    options.listen = host + ":0";
    Result<std::unique_ptr<CloudServer>> server = CloudServer::Start(options, {});
    EXPECT_TRUE(server) << server.error().message;
    return *std::move(server);
  }
  static std::string AddressOf(const CloudServer& server, const std::string& host = "127.0.0.1") {
    return fmt::format("{}:{}", host, server.port());
  }
  // What it says of the certificates of a learner with these files.
  std::string OfCertificate(const TlsIdentity& tls) {
    WriteTestIdentity(Path("third"), tls);
    const std::vector<std::string> texts = TextsOf(options_);
    EXPECT_EQ(texts.size(), 1U);
    return texts.front();
  }

  const Authority authority_ = MakeTestAuthority("Acme fleet");
  const TlsIdentity third_ = MakeTestIdentity(authority_, kThird, 20);
  DoctorOptions options_;
};

TEST_F(Doctor, FindsAllWell) {
  const Authority lasting = *MakeAuthority("Acme fleet", 400, SystemClock());
  WriteTestIdentity(Path("third"), MakeTestIdentity(lasting, kThird, 365));
  const std::unique_ptr<CloudServer> cloud = StartCloud(lasting);
  options_.clouds = {AddressOf(*cloud)};
  options_.listen = "127.0.0.1:0";
  options_.store = "sqlite:" + Path("new.db");
  options_.files = {Path("third/ca.pem")};
  const std::vector<std::string> texts = TextsOf(options_);
  for (const std::string& text : texts) EXPECT_THAT(text, StartsWith("ok "));
  EXPECT_EQ(texts.size(), 7U);
  EXPECT_FALSE(std::filesystem::exists(Path("new.db")));  // it changes nothing
}

// ---- Certificates -------------------------------------------------------------------------------

TEST_F(Doctor, KnowsBadCertificates) {
  EXPECT_THAT(OfCertificate(third_), AllOf(StartsWith("warning certificate: "),
                                           HasSubstr(" days left"), HasSubstr("-> renew it soon")));
  const TlsIdentity expired = MakeTestIdentity(authority_, kThird, 1, SystemClock() - 3 * 86400);
  EXPECT_THAT(OfCertificate(expired), AllOf(StartsWith("bad certificate: "),
                                            HasSubstr("has expired"), HasSubstr("-> renew")));
  TlsIdentity mixed = third_;
  mixed.key = expired.key;
  EXPECT_THAT(OfCertificate(mixed), AllOf(StartsWith("bad "), HasSubstr("is not the key of"),
                                          HasSubstr("-> put the key beside it")));
  mixed = third_;
  mixed.authority = MakeTestAuthority("Other fleet").certificate.text;
  EXPECT_THAT(OfCertificate(mixed),
              AllOf(StartsWith("bad "), HasSubstr("was signed by another authority"),
                    HasSubstr("-> take ca.pem and node.pem from the same authority")));
  EXPECT_THAT(OfCertificate(MakeTestIdentity(authority_, LearnerId(3))),
              AllOf(StartsWith("bad "), HasSubstr("subject = learner-4: must be learner-3"),
                    HasSubstr("--id")));
  mixed = third_;
  mixed.certificate.resize(100);
  EXPECT_THAT(OfCertificate(mixed), AllOf(StartsWith("bad "), HasSubstr("-> copy the file again")));
  WriteTestList(Path("third"), authority_, {{third_.info.serial, SystemClock()}});
  EXPECT_THAT(OfCertificate(third_), AllOf(StartsWith("bad "), HasSubstr("was revoked"),
                                           HasSubstr("-> ask the operator why")));
}

TEST_F(Doctor, KnowsMissingFilesAndOpenKeys) {
  ASSERT_EQ(::chmod(Path("third/node.key").c_str(), 0644), 0);
  EXPECT_THAT(TextsOf(options_).front(),
              AllOf(StartsWith("bad "), HasSubstr("permissions = 0644"), HasSubstr("chmod 600")));
  for (const auto& [name, remedy] : {std::pair("ca.pem", "the operator sends both"),
                                     std::pair("node.pem", "the operator sends both"),
                                     std::pair("node.key", "fedgen pki request")}) {
    WriteTestIdentity(Path("third"), third_);
    std::filesystem::remove(Path(std::string("third/") + name));
    EXPECT_THAT(TextsOf(options_).front(),
                AllOf(StartsWith("bad "), HasSubstr(name), HasSubstr(remedy)));
  }
  WriteTestIdentity(Path("third"), MakeTestIdentity(authority_, LearnerId::Cloud()));
  options_.who = LearnerId::Cloud();
  EXPECT_THAT(TextsOf(options_).back(),
              AllOf(StartsWith("warning revocations: "), HasSubstr("crl.pem: is missing")));
}

// ---- The Cloud ----------------------------------------------------------------------------------

TEST_F(Doctor, KnowsWhyTheCloudIsNotReached) {
  const auto of_cloud = [&](const std::string& address) {
    options_.clouds = {address};
    return TextsOf(options_).back();
  };
  std::unique_ptr<CloudServer> cloud =
      StartCloud(authority_, {{third_.info.serial, SystemClock()}});
  EXPECT_THAT(of_cloud(AddressOf(*cloud)),
              AllOf(StartsWith("bad cloud: "), HasSubstr("learner-3: its certificate"),
                    HasSubstr("was revoked"), HasSubstr("-> ask the operator")));
  const std::string gone = AddressOf(*cloud);
  cloud.reset();
  EXPECT_THAT(of_cloud(gone), AllOf(StartsWith("bad cloud: "), HasSubstr("nobody listens there"),
                                    HasSubstr("-> start `fedgen cloud` there")));
  // Another address of this machine than the certificate names.
  cloud = StartCloud(authority_, {}, "127.0.0.2");
  EXPECT_THAT(of_cloud(AddressOf(*cloud, "127.0.0.2")),
              AllOf(StartsWith("bad cloud: "), HasSubstr("-> dial a name that the Cloud's")));
  cloud = StartCloud(MakeTestAuthority("Other fleet"));
  EXPECT_THAT(of_cloud(AddressOf(*cloud)),
              AllOf(StartsWith("bad cloud: "), HasSubstr("-> compare ca.pem at both ends")));
}

TEST_F(Doctor, ComparesClocks) {
  const std::unique_ptr<CloudServer> cloud = StartCloud(authority_);
  options_.clouds = {AddressOf(*cloud)};
  const auto of_clock = [&](std::int64_t ahead) {
    options_.now = SystemClock() + ahead;
    return TextsOf(options_).back();
  };
  EXPECT_THAT(of_clock(0), StartsWith("ok clock: "));
  EXPECT_THAT(of_clock(300), AllOf(StartsWith("warning clock: "), HasSubstr("s ahead of"),
                                   HasSubstr("timedatectl")));
  EXPECT_THAT(of_clock(-300), AllOf(StartsWith("warning clock: "), HasSubstr("s behind")));
  EXPECT_THAT(of_clock(7200), StartsWith("bad clock: "));
}

// ---- This machine -------------------------------------------------------------------------------

TEST_F(Doctor, KnowsPortsThatAreTaken) {
  const std::unique_ptr<CloudServer> cloud = StartCloud(authority_);
  DoctorOptions options;
  const auto of_port = [&](const std::string& listen) {
    options.listen = listen;
    return TextsOf(options).back();
  };
  EXPECT_THAT(of_port("127.0.0.1:0"), StartsWith("ok listen: "));
  EXPECT_THAT(of_port(AddressOf(*cloud)),
              AllOf(StartsWith("bad listen: "), HasSubstr("in use"), HasSubstr("-> `ss -ltnp`")));
  EXPECT_THAT(of_port("192.0.2.1:0"),
              AllOf(StartsWith("bad listen: "), HasSubstr("-> choose an address of this machine")));
  EXPECT_THAT(of_port("here"), AllOf(StartsWith("bad listen: "), HasSubstr("must be HOST:PORT")));
}

TEST_F(Doctor, KnowsStoresThatCannotBeServed) {
  DoctorOptions options;
  const auto of_store = [&](const std::string& url) {
    options.store = url;
    return TextsOf(options).back();
  };
  const std::string url = "sqlite:" + Path("cloud.db");
  EXPECT_THAT(of_store(url), AllOf(StartsWith("ok store: "), HasSubstr("can be made")));
  std::unique_ptr<Store> store = *OpenStore(url);
  ASSERT_TRUE(store->Begin({"r", "settings"}));
  EXPECT_THAT(of_store(url),
              AllOf(StartsWith("warning store: "), HasSubstr("in use by another process")));
  options.listen = "127.0.0.1:0";  // for a second Cloud that is worse
  EXPECT_THAT(of_store(url), AllOf(StartsWith("bad store: "), HasSubstr("-> one Cloud at a time")));
  store.reset();
  EXPECT_THAT(of_store(url), AllOf(StartsWith("ok store: "), HasSubstr("1 run")));
  ASSERT_TRUE((*OpenStore(url))->Append("r", MessagesFrom(1, 3)));
  std::string bytes = *ReadFile(Path("cloud.db"), std::size_t{1} << 30);
  const std::size_t at = bytes.find(MessageOf(2).bytes.substr(0, 16));
  ASSERT_NE(at, std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 1);
  ASSERT_TRUE(WriteFileAtomically(Path("cloud.db"), bytes, IfExists::kReplace));
  EXPECT_THAT(of_store(url), AllOf(StartsWith("bad store: "), HasSubstr("r: is damaged"),
                                   HasSubstr("-> restore the last backup")));
  ASSERT_TRUE(WriteFileAtomically(Path("other"), std::string(5000, 'x'), IfExists::kRefuse));
  EXPECT_THAT(of_store("sqlite:" + Path("other")),
              AllOf(StartsWith("bad store: "), HasSubstr("-> restore the last backup")));
  EXPECT_THAT(of_store("sqlite:" + Path("no/where.db")), StartsWith("bad store: "));
  EXPECT_THAT(of_store("postgres:x"),
              AllOf(StartsWith("bad store: "), HasSubstr("-> write sqlite:")));
  options.files = {Path("RUN.toml")};
  EXPECT_THAT(TextsOf(options).back(),
              AllOf(StartsWith("bad file: "), HasSubstr("RUN.toml: cannot open")));
}

TEST(FindingsText, HasALineForEachAndOneForItsRemedy) {
  EXPECT_EQ(FindingsText({{"clock", Health::kOk, "0 s ahead"},
                          {"store", Health::kBad, "x.db: is damaged", "restore the last backup"}}),
            "ok       clock        0 s ahead\n"
            "bad      store        x.db: is damaged\n"
            "                      -> restore the last backup\n");
}

}  // namespace
}  // namespace fedgen
