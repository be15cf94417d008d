// SPDX-License-Identifier: Apache-2.0
#include "fedgen/identity/authority.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "fedgen/base/file.h"
#include "fedgen/base/file_testing.h"
#include "fedgen/identity/tls.h"

namespace fedgen {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

constexpr std::int64_t kNow = 1'800'000'000;  // 2027-01-15 08:00:00 UTC
constexpr std::int64_t kDay = 86400;
constexpr LearnerId kFirst{0};
constexpr LearnerId kSecond{1};

std::string ProblemOf(const auto& result) { return result ? "none" : result.error().message; }

class AuthorityTest : public ::testing::Test, protected TemporaryDirectory {
 protected:
  AuthorityTest() : ca_(Path("ca")) {
    EXPECT_TRUE(CreateAuthority(ca_, "Acme fleet", kNow));
    std::signal(SIGXFSZ, SIG_IGN);
  }

  std::string File(const std::string& name) const {
    const Result<std::string> bytes = ReadFile(Path(name), 1 << 20);
    return bytes ? *bytes : bytes.error().message;
  }

  mode_t ModeOf(const std::string& name) const {
    struct stat status{};
    EXPECT_EQ(::stat(Path(name).c_str(), &status), 0) << name;
    return status.st_mode & 0777;
  }

  static Pem NewRequestOf(LearnerId who) { return {MakeRequest({who, {}})->request, "node.csr"}; }

  Result<std::string> SignFor(LearnerId who, const Pem& request,
                              IfIssued if_issued = IfIssued::kRefuse,
                              std::int64_t now = kNow) const {
    return SignRequest(ca_, request, {who, {}}, 365, if_issued, now);
  }

  Pem Joined(LearnerId who, IfIssued if_issued = IfIssued::kRefuse) const {
    return {*SignFor(who, NewRequestOf(who), if_issued), "node.pem"};
  }

  // What the Cloud would say of a certificate, by the files of the authority.
  std::string Check(const Pem& certificate) const {
    return ProblemOf(CheckCertificate(certificate, {File("ca/ca.pem"), "ca.pem"},
                                      Pem{File("ca/crl.pem"), "crl.pem"}, std::nullopt, kNow));
  }

  const std::string ca_;
};

// ---- init ---------------------------------------------------------------------------------------

TEST_F(AuthorityTest, ConsistsOfFourFilesAndKeepsItsKeyToItself) {
  EXPECT_THAT(Names(), ElementsAre("ca"));
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(ca_)) {
    if (entry.is_regular_file()) names.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(names, UnorderedElementsAre("ca.key", "ca.pem", "crl.pem", "index.jsonl"));
  EXPECT_EQ(ModeOf("ca/ca.key"), 0600U);
  EXPECT_THAT(*ReadIndex(ca_), IsEmpty());
  EXPECT_THAT(ReadRevocationList({File("ca/crl.pem"), "crl.pem"})->revoked, IsEmpty());
}

// Also where the operator keeps ca.key elsewhere.
TEST_F(AuthorityTest, IsNeverReplaced) {
  for (const char* const name : {"ca.key", "ca.pem", "crl.pem", "issued/index.jsonl"}) {
    const std::string directory = Path(std::string("only_") + name);
    ASSERT_TRUE(WriteFileAtomically(directory + "/" + name, "precious", IfExists::kRefuse));
    const Result<CertificateInfo> made = CreateAuthority(directory, "Again", kNow);
    ASSERT_FALSE(made) << name;
    EXPECT_EQ(made.error().code, ErrorCode::kExists);
    EXPECT_EQ(made.error().message,
              directory + "/" + name +
                  ": already exists and is never replaced; choose another directory");
    EXPECT_EQ(*ReadFile(directory + "/" + name, 100), "precious");
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      files += entry.is_regular_file() ? 1 : 0;
    }
    EXPECT_EQ(files, 1U) << name;
  }
}

// ---- sign ---------------------------------------------------------------------------------------

TEST_F(AuthorityTest, RemembersWhatItSigned) {
  const Pem first = Joined(kFirst);
  const Pem cloud{*SignRequest(ca_, NewRequestOf(kFirst), {LearnerId::Cloud(), {"localhost"}}, 10,
                               IfIssued::kRefuse, kNow + 5),
                  "node.pem"};
  const std::vector<IssuedCertificate> index = *ReadIndex(ca_);
  ASSERT_THAT(index, SizeIs(2));
  const CertificateInfo info = *ReadCertificate(cloud);
  EXPECT_EQ(index[1], (IssuedCertificate{LearnerId::Cloud(),
                                         info.serial,
                                         info.not_before,
                                         info.not_after,
                                         info.fingerprint,
                                         info.key,
                                         {}}));
  EXPECT_EQ(index[0].who, kFirst);
  EXPECT_EQ(File("ca/issued/" + index[0].serial + ".pem"), first.text);
  EXPECT_EQ(Check(first), "none");
  EXPECT_EQ(Check(cloud), "none");
}

TEST_F(AuthorityTest, GivesALearnerASecondCertificateOnlyWhenTold) {
  const std::string serial = ReadCertificate(Joined(kFirst))->serial;
  const Result<std::string> refused = SignFor(kFirst, NewRequestOf(kFirst));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kExists);
  EXPECT_EQ(refused.error().message, "learner-1: has certificate " + serial +
                                         " until 2028-01-15 08:00:00 UTC (--again signs another)");
  EXPECT_THAT(*ReadIndex(ca_), SizeIs(1));
  EXPECT_TRUE(SignFor(kSecond, NewRequestOf(kSecond)));
  EXPECT_TRUE(SignFor(kFirst, NewRequestOf(kFirst), IfIssued::kAgain));
  EXPECT_THAT(*ReadIndex(ca_), SizeIs(3));
}

TEST_F(AuthorityTest, SignsForALearnerWhoseCertificateHasEnded) {
  Joined(kFirst);
  Joined(kSecond);
  EXPECT_FALSE(SignFor(kFirst, NewRequestOf(kFirst), IfIssued::kRefuse, kNow + 365 * kDay - 1));
  EXPECT_TRUE(SignFor(kFirst, NewRequestOf(kFirst), IfIssued::kRefuse, kNow + 365 * kDay));
  ASSERT_TRUE(RevokePeer(ca_, kSecond, kNow));
  EXPECT_TRUE(SignFor(kSecond, NewRequestOf(kSecond)));
}

TEST_F(AuthorityTest, SignsAKeyForOnePeerOnly) {
  const Pem request = NewRequestOf(kFirst);
  ASSERT_TRUE(SignFor(kFirst, request));
  EXPECT_TRUE(SignFor(kFirst, request, IfIssued::kAgain));
  const Result<std::string> copied = SignFor(kSecond, request, IfIssued::kAgain);
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().message, "node.csr: key = " + ReadRequest(request)->key +
                                        ": is the key of learner-1, everybody needs one of their "
                                        "own");
}

// The request of a stolen key is still around; signing it again would undo the revocation.
TEST_F(AuthorityTest, NeverSignsARevokedKeyAgain) {
  const Pem request = NewRequestOf(kFirst);
  ASSERT_TRUE(SignFor(kFirst, request));
  ASSERT_TRUE(RevokePeer(ca_, kFirst, kNow));
  for (const IfIssued if_issued : {IfIssued::kRefuse, IfIssued::kAgain}) {
    const Result<std::string> refused = SignFor(kFirst, request, if_issued);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr(": was revoked with certificate "));
  }
  EXPECT_THAT(*ReadIndex(ca_), SizeIs(1));
}

TEST_F(AuthorityTest, ChangesNothingForABadRequest) {
  const std::string before = File("ca/issued/index.jsonl");
  EXPECT_FALSE(SignFor(kFirst, {"nonsense", "node.csr"}));
  EXPECT_FALSE(SignRequest(ca_, NewRequestOf(kFirst), {kFirst, {}}, 0, IfIssued::kRefuse, kNow));
  EXPECT_EQ(File("ca/issued/index.jsonl"), before);
}

TEST_F(AuthorityTest, IsWorkedOnByOneProcessAtATime) {
  const Pem certificate = Joined(kFirst);
  const int other = ::open(ca_.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(other, LOCK_SH | LOCK_NB), 0);  // not even one that only reads
  const std::string problem = ca_ + ": another process works on this authority";
  EXPECT_EQ(ProblemOf(SignFor(kSecond, NewRequestOf(kSecond))), problem);
  EXPECT_EQ(ProblemOf(RevokePeer(ca_, kFirst, kNow)), problem);
  EXPECT_EQ(ProblemOf(RevokeCertificate(ca_, certificate, kNow)), problem);
  ::close(other);
  EXPECT_TRUE(SignFor(kSecond, NewRequestOf(kSecond)));
}

// ---- revoke -------------------------------------------------------------------------------------

TEST_F(AuthorityTest, TakesBackAllCertificatesOfALearner) {
  const Pem old_one = Joined(kFirst);
  const Pem new_one = Joined(kFirst, IfIssued::kAgain);
  const Pem other = Joined(kSecond);
  EXPECT_THAT(*RevokePeer(ca_, kFirst, kNow), SizeIs(2));
  EXPECT_THAT(Check(old_one), HasSubstr(": was revoked"));
  EXPECT_THAT(Check(new_one), HasSubstr(": was revoked"));
  EXPECT_EQ(Check(other), "none");
  EXPECT_EQ(ReadIndex(ca_)->at(0).revoked, kNow);
  EXPECT_EQ(ReadIndex(ca_)->at(2).revoked, std::nullopt);
  EXPECT_THAT(*RevokePeer(ca_, kFirst, kNow + 9), IsEmpty());
  EXPECT_EQ(ReadIndex(ca_)->at(0).revoked, kNow);  // when it was revoked first
}

// How the old one of a renewal ends.
TEST_F(AuthorityTest, TakesBackOneCertificate) {
  const Pem old_one = Joined(kFirst);
  const Pem new_one = Joined(kFirst, IfIssued::kAgain);
  EXPECT_THAT(*RevokeCertificate(ca_, old_one, kNow), SizeIs(1));
  EXPECT_THAT(Check(old_one), HasSubstr(": was revoked"));
  EXPECT_EQ(Check(new_one), "none");
}

TEST_F(AuthorityTest, TakesBackWhatItsIndexHasLost) {
  const std::string before = File("ca/issued/index.jsonl");
  const Pem lost = Joined(kFirst);
  ASSERT_TRUE(WriteFileAtomically(ca_ + "/issued/index.jsonl", before, IfExists::kReplace));
  EXPECT_FALSE(RevokePeer(ca_, kFirst, kNow));
  EXPECT_THAT(*RevokeCertificate(ca_, lost, kNow), SizeIs(1));
  EXPECT_THAT(Check(lost), HasSubstr(": was revoked"));
  EXPECT_THAT(*ReadIndex(ca_), SizeIs(1));
}

TEST_F(AuthorityTest, TakesBackNothingThatIsNotItsOwn) {
  ASSERT_TRUE(CreateAuthority(Path("other"), "Acme fleet", kNow));
  const Pem stranger{
      *SignRequest(Path("other"), NewRequestOf(kFirst), {kFirst, {}}, 1, IfIssued::kRefuse, kNow),
      "node.pem"};
  EXPECT_EQ(
      ProblemOf(RevokeCertificate(ca_, stranger, kNow)),
      "node.pem: issuer = Acme fleet: was signed by another authority than " + ca_ + "/ca.pem");
  EXPECT_EQ(ProblemOf(RevokePeer(ca_, kFirst, kNow)),
            ca_ + "/issued/index.jsonl: learner-1 has no certificate");
  EXPECT_EQ(ProblemOf(RevokeCertificate(ca_, {File("ca/ca.pem"), "ca.pem"}, kNow)),
            "ca.pem: subject = Acme fleet: must be cloud or learner-N");
}

// ---- Killed halfway -----------------------------------------------------------------------------

// A directory in the place of crl.pem stops a revocation after its first write, as a kill would.
// What the index knows must be in every later list.
TEST_F(AuthorityTest, ForgetsNoRevocationWhenKilledBeforeTheList) {
  const Pem first = Joined(kFirst);
  const Pem second = Joined(kSecond);
  const std::string list = File("ca/crl.pem");
  std::filesystem::remove(ca_ + "/crl.pem");
  std::filesystem::create_directory(ca_ + "/crl.pem");
  ASSERT_FALSE(RevokePeer(ca_, kFirst, kNow));
  EXPECT_EQ(ReadIndex(ca_)->at(0).revoked, kNow);

  // Another learner's revocation brings the first one's along.
  std::filesystem::remove(ca_ + "/crl.pem");
  ASSERT_TRUE(WriteFileAtomically(ca_ + "/crl.pem", list, IfExists::kRefuse));
  EXPECT_EQ(Check(first), "none");
  ASSERT_TRUE(RevokePeer(ca_, kSecond, kNow));
  EXPECT_THAT(Check(first), HasSubstr(": was revoked"));
  EXPECT_THAT(Check(second), HasSubstr(": was revoked"));

  // And so does the same command again.
  ASSERT_TRUE(WriteFileAtomically(ca_ + "/crl.pem", list, IfExists::kReplace));
  ASSERT_TRUE(RevokePeer(ca_, kFirst, kNow));
  EXPECT_THAT(Check(first), HasSubstr(": was revoked"));
}

// With a limit on the size of files between a certificate's and the index's, only the index cannot
// be written: then no certificate may have left the authority, not even to issued/.
TEST_F(AuthorityTest, LetsNoCertificateOutBeforeTheIndexHasIt) {
  for (std::uint32_t index = 0; index < 8; ++index) Joined(LearnerId(index));
  const auto num_copies = [&] {
    const std::filesystem::directory_iterator files(ca_ + "/issued");
    return std::count_if(begin(files), end(files),
                         [](const auto& entry) { return entry.path().extension() == ".pem"; });
  };
  const std::string largest = Joined(LearnerId(8)).text;
  const std::string nine = File("ca/issued/index.jsonl");
  ASSERT_GT(nine.size(), 2 * largest.size());
  rlimit old_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const Pem request = NewRequestOf(LearnerId(9));
  const rlimit limit{largest.size() + 100, old_limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const Result<std::string> signed_one = SignFor(LearnerId(9), request);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  ASSERT_FALSE(signed_one);
  EXPECT_THAT(signed_one.error().message, HasSubstr("index.jsonl: cannot write: File too large"));
  EXPECT_EQ(num_copies(), 9);
  EXPECT_EQ(File("ca/issued/index.jsonl"), nine);
}

// Killed after the index was written: the copy is missing, and all else works.
TEST_F(AuthorityTest, CanRevokeACertificateThatWasKilledOnItsWayOut) {
  const Pem certificate = Joined(kFirst);
  std::filesystem::remove(ca_ + "/issued/" + ReadCertificate(certificate)->serial + ".pem");
  EXPECT_FALSE(SignFor(kFirst, NewRequestOf(kFirst)));
  EXPECT_TRUE(SignFor(kFirst, NewRequestOf(kFirst), IfIssued::kAgain));
  EXPECT_THAT(*RevokePeer(ca_, kFirst, kNow), SizeIs(2));
  EXPECT_THAT(Check(certificate), HasSubstr(": was revoked"));
}

// ---- The index as a file ------------------------------------------------------------------------

TEST_F(AuthorityTest, RefusesAnIndexThatWasCutAnywhereButAtALine) {
  Joined(kFirst);
  Joined(kSecond);
  ASSERT_TRUE(RevokePeer(ca_, kSecond, kNow));
  const std::string text = File("ca/issued/index.jsonl");
  for (std::size_t size = 0; size < text.size(); ++size) {
    const Result<std::vector<IssuedCertificate>> index = ParseIndex(text.substr(0, size), "i");
    EXPECT_EQ(index.has_value(), size > 0 && text[size - 1] == '\n') << size;
    if (!index) {
      EXPECT_THAT(index.error().message, StartsWith("i:"));
      EXPECT_EQ(index.error().message.find('\n'), std::string::npos);
    }
  }
}

TEST(ParseIndex, NamesLineAndField) {
  const std::string head = "{\"format\": \"fedgen-issued\", \"version\": 1}\n";
  const std::string hash(64, 'a');
  const auto line = [&](const std::string& serial, const std::string& name,
                        const std::string& not_after, const std::string& key,
                        const std::string& revoked) {
    return fmt::format(
        "{{\"serial\": {}, \"name\": {}, \"not_before\": 1, \"not_after\": {}, \"certificate\": "
        "\"{}\", \"key\": {}, \"revoked\": {}}}\n",
        serial, name, not_after, hash, key, revoked);
  };
  const std::string serial = "\"" + std::string(32, '0') + "\"";
  const std::string key = "\"" + hash + "\"";
  const auto problem = [&](const std::string& text) {
    return ProblemOf(ParseIndex(head + text, "i"));
  };
  const std::string good = line(serial, "\"learner-1\"", "2", key, "null");
  EXPECT_EQ(problem(good), "none");
  EXPECT_EQ(problem(line(serial, "\"cloud\"", "2", key, "7")), "none");
  EXPECT_EQ(problem(good + good), "i:3: serial = " + std::string(32, '0') + ": given twice");
  EXPECT_EQ(problem(line("\"0g\"", "\"cloud\"", "2", key, "null")),
            "i:2: serial = \"0g\": must be 32 hexadecimal digits");
  EXPECT_EQ(problem(line("7", "\"cloud\"", "2", key, "null")),
            "i:2: serial = 7: must be 32 hexadecimal digits");
  EXPECT_EQ(problem(line(serial, "\"learner-01\"", "2", key, "null")),
            "i:2: name = \"learner-01\": must be cloud or learner-N");
  EXPECT_EQ(problem(line(serial, "\"learner-4294967296\"", "2", key, "null")),
            "i:2: name = \"learner-4294967296\": must be cloud or learner-N");
  EXPECT_EQ(problem(line(serial, "3", "2", key, "null")),
            "i:2: name = 3: must be cloud or learner-N");
  EXPECT_EQ(problem(line(serial, "\"cloud\"", "-1", key, "null")),
            "i:2: not_after = -1: must be an integer in 0..253402300799");
  EXPECT_EQ(problem(line(serial, "\"cloud\"", "2", "\"\"", "null")),
            "i:2: key = \"\": must be 64 hexadecimal digits");
  EXPECT_EQ(problem(line(serial, "\"cloud\"", "2", key, "true")),
            "i:2: revoked = true: must be an integer in 0..253402300799");
  EXPECT_THAT(problem("{}\n"), StartsWith("i:2: "));
  EXPECT_THAT(problem("\n"), StartsWith("i:2: "));
  EXPECT_THAT(ProblemOf(ParseIndex("{\"format\": \"fedgen-issued\", \"version\": 2}\n", "i")),
              StartsWith("i:1: version = 2"));
  EXPECT_EQ(ProblemOf(ParseIndex("", "i")), "i:1: must end in a line break, the file was cut");
}

// A renewed learner is still there; one without a certificate has left.
TEST_F(AuthorityTest, SaysInItsListWhoHasLeft) {
  const Pem old = Joined(kFirst);
  const Pem renewed = Joined(kFirst, IfIssued::kAgain);
  const Pem second = Joined(kSecond);
  const auto gone = [&] {
    std::vector<std::optional<LearnerId>> all;
    const auto list = ReadRevocationList({File("ca/crl.pem"), "crl.pem"});
    for (const Revocation& one : list->revoked) all.push_back(one.gone);
    return all;
  };
  ASSERT_TRUE(RevokeCertificate(ca_, old, kNow + 1));
  EXPECT_THAT(gone(), ElementsAre(std::nullopt));
  ASSERT_TRUE(RevokePeer(ca_, kSecond, kNow + 2));
  EXPECT_THAT(gone(), UnorderedElementsAre(std::nullopt, kSecond));
  ASSERT_TRUE(RevokeCertificate(ca_, renewed, kNow + 3));
  EXPECT_THAT(gone(), UnorderedElementsAre(kFirst, kFirst, kSecond));
}

// ---- Nodes --------------------------------------------------------------------------------------

TEST_F(AuthorityTest, IsAskedByANodeThatKeepsItsKey) {
  const mode_t before = ::umask(0);
  const Result<RequestInfo> asked = WriteRequest(Path("node"), {kFirst, {}});
  ::umask(before);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->subject, "learner-1");
  EXPECT_EQ(ModeOf("node/node.key"), 0600U);
  const std::string key = File("node/node.key");
  const std::string request = File("node/node.csr");
  EXPECT_EQ(request.find("PRIVATE"), std::string::npos);

  const Result<RequestInfo> again = WriteRequest(Path("node"), {kFirst, {}});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kExists);
  EXPECT_THAT(again.error().message, StartsWith(Path("node/node.key") + ": already exists"));
  EXPECT_EQ(File("node/node.key"), key);
  EXPECT_EQ(File("node/node.csr"), request);
}

TEST_F(AuthorityTest, CanBeThrownAway) {
  const std::string home = Path("up");
  ASSERT_TRUE(MakeThrowAway(home, 2, kNow));
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(home)) {
    if (entry.is_regular_file()) {
      names.push_back(std::filesystem::relative(entry.path(), home).string());
    }
  }
  EXPECT_THAT(names,
              UnorderedElementsAre("ca.pem", "crl.pem", "cloud/ca.pem", "cloud/crl.pem",
                                   "cloud/node.key", "cloud/node.pem", "learner-1/ca.pem",
                                   "learner-1/node.key", "learner-1/node.pem", "learner-2/ca.pem",
                                   "learner-2/node.key", "learner-2/node.pem"));
  for (const LearnerId who : {LearnerId::Cloud(), kFirst, kSecond}) {
    EXPECT_EQ(ProblemOf(LoadTlsIdentity(home + "/" + CommonNameOf(who), who, kNow)), "none");
  }
  EXPECT_THAT(ReadCertificate({File("up/cloud/node.pem"), "node.pem"})->hosts,
              ElementsAre("localhost", "127.0.0.1", "::1"));
  const std::string before = File("up/learner-1/node.key");
  EXPECT_EQ(MakeThrowAway(home, 2, kNow).error().code, ErrorCode::kExists);
  EXPECT_EQ(File("up/learner-1/node.key"), before);
}

}  // namespace
}  // namespace fedgen
