// SPDX-License-Identifier: Apache-2.0
#include "fedgen/identity/authority.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "fedgen/base/file.h"
#include "fedgen/base/json-inl.h"
#include "fedgen/base/text.h"

namespace fedgen {
namespace {

// The order of writes. The index is the truth, and it is written before anything that follows from
// it is given away:
//
//   signing    index, then the copy in issued/, then the caller's file. Killed in between, the
//              index has a certificate that nobody got; the number is taken, --again signs anew.
//              The other way round there would be a valid certificate that `revoke --learner` does
//              not find.
//   revoking   index, then crl.pem, which is made of the whole index. Killed in between, the list
//              lacks a line; the same command again writes it, and so does any later revocation.
//              The other way round the next list would be made without it: what was revoked would
//              be valid again.

constexpr std::size_t kMaxIndexBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxPemBytes = std::size_t{16} << 20;
constexpr int kIndexVersion = 1;
constexpr const char* kIndexFormat = "fedgen-issued";

std::string IndexPath(const std::string& directory) { return directory + "/issued/index.jsonl"; }

// ---- Files --------------------------------------------------------------------------------------

Result<Pem> ReadPem(const std::string& path) {
  return Pem{FEDGEN_TRY(ReadFile(path, kMaxPemBytes)), path};
}

// A key that is lost cannot be made again, so there is no --force here.
Error KeyExists(const std::string& path) {
  return {ErrorCode::kExists,
          fmt::format("{}: already exists and is never replaced; choose another directory", path)};
}

Result<void> WriteNew(const std::string& path, const std::string& text, Access access) {
  Result<void> written = WriteFileAtomically(path, text, IfExists::kRefuse, access);
  if (!written && written.error().code == ErrorCode::kExists) return KeyExists(path);
  return written;
}

// Nothing is written if one of these is there.
Result<void> RefuseExisting(const std::string& directory, std::span<const char* const> names) {
  for (const char* const name : names) {
    const std::string path = fmt::format("{}/{}", directory, name);
    struct stat status{};
    if (::lstat(path.c_str(), &status) == 0) return KeyExists(path);
  }
  return {};
}

// Two that sign at once would both read the index, and the second would write over the line of the
// first. The lock goes with the process.
class DirectoryLock {
 public:
  static Result<DirectoryLock> Take(const std::string& directory) {
    const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) {
      return Error{ErrorCode::kIo,
                   fmt::format("{}: cannot open: {}", directory, std::strerror(errno))};
    }
    DirectoryLock lock(descriptor);
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      const bool taken = errno == EWOULDBLOCK;
      return Error{ErrorCode::kIo, fmt::format("{}: {}", directory,
                                               taken ? "another process works on this authority"
                                                     : std::strerror(errno))};
    }
    return lock;
  }
  DirectoryLock(DirectoryLock&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  DirectoryLock& operator=(DirectoryLock&&) = delete;
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;
  ~DirectoryLock() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

 private:
  explicit DirectoryLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

// ---- The index ----------------------------------------------------------------------------------

Problem ReadHex(const Json& json, std::size_t least, std::size_t most, std::string& value) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (json.is_string()) value = json.get<std::string>();
  if (!json.is_string() || value.size() < least || value.size() > most ||
      !std::ranges::all_of(value, is_digit)) {
    return fmt::format("{}: must be {} hexadecimal digits", Describe(json), least);
  }
  return std::nullopt;
}

Problem ReadHash(const Json& json, std::string& value) {
  constexpr std::size_t kDigits = 64;
  return ReadHex(json, kDigits, kDigits, value);
}

// Ours have 32 digits; another program with our key may have given up to 20 bytes.
Problem ReadSerial(const Json& json, std::string& value) { return ReadHex(json, 32, 40, value); }

Problem ReadTime(const Json& json, std::int64_t& value) {
  constexpr std::int64_t kLatest = 253402300799;  // the end of the year 9999
  return ReadInt(json, 0, kLatest, value);
}

Problem ReadWho(const Json& json, LearnerId& who) {
  if (json.is_string()) {
    if (const Result<LearnerId> peer = PeerOf(json.get<std::string>())) {
      who = *peer;
      return std::nullopt;
    }
  }
  return fmt::format("{}: must be cloud or learner-N", Describe(json));
}

Problem ReadLine(std::string_view line, IssuedCertificate& issued) {
  Json json;
  if (Problem problem = ParseJson(line, {}, json)) return problem;
  if (Problem problem = CheckFields(
          json, "", {"serial", "name", "not_before", "not_after", "certificate", "key", "revoked"}))
    return problem;
  const auto at = [](const char* field, const Problem& problem) -> Problem {
    return problem ? Problem(fmt::format("{} = {}", field, *problem)) : std::nullopt;
  };
  Problem problem = at("serial", ReadSerial(json["serial"], issued.serial));
  if (!problem) problem = at("name", ReadWho(json["name"], issued.who));
  if (!problem) problem = at("not_before", ReadTime(json["not_before"], issued.not_before));
  if (!problem) problem = at("not_after", ReadTime(json["not_after"], issued.not_after));
  if (!problem) problem = at("certificate", ReadHash(json["certificate"], issued.fingerprint));
  if (!problem) problem = at("key", ReadHash(json["key"], issued.key));
  if (!problem && !json["revoked"].is_null()) {
    problem = at("revoked", ReadTime(json["revoked"], issued.revoked.emplace()));
  }
  return problem;
}

std::string IndexText(const std::vector<IssuedCertificate>& index) {
  std::string text =
      fmt::format("{{\"format\": \"{}\", \"version\": {}}}\n", kIndexFormat, kIndexVersion);
  for (const IssuedCertificate& one : index) {
    text += fmt::format(
        "{{\"serial\": \"{}\", \"name\": \"{}\", \"not_before\": {}, \"not_after\": {}, "
        "\"certificate\": \"{}\", \"key\": \"{}\", \"revoked\": {}}}\n",
        one.serial, CommonNameOf(one.who), one.not_before, one.not_after, one.fingerprint, one.key,
        one.revoked ? fmt::format("{}", *one.revoked) : "null");
  }
  return text;
}

Result<void> WriteIndex(const std::string& directory, const std::vector<IssuedCertificate>& index) {
  const std::string text = IndexText(index);
  // Nothing is written that the next command could not read.
  FEDGEN_TRY(ParseIndex(text, IndexPath(directory)));
  return WriteFileAtomically(IndexPath(directory), text, IfExists::kReplace);
}

Result<Authority> LoadAuthority(const std::string& directory) {
  return Authority{FEDGEN_TRY(ReadPem(directory + "/ca.key")),
                   FEDGEN_TRY(ReadPem(directory + "/ca.pem"))};
}

IssuedCertificate LineOf(const CertificateInfo& info, LearnerId who) {
  return {who, info.serial, info.not_before, info.not_after, info.fingerprint, info.key};
}

// Whether a key and a name may be joined by another certificate.
Result<void> CheckNew(const std::vector<IssuedCertificate>& index, LearnerId who,
                      const std::string& key, const Pem& request, IfIssued if_issued,
                      std::int64_t now) {
  for (const IssuedCertificate& one : index) {
    if (one.key == key && one.revoked) {
      return Error{ErrorCode::kMismatch,
                   fmt::format("{}: key = {}: was revoked with certificate {}, a new key is needed",
                               request.name, key, one.serial)};
    }
    if (one.key == key && one.who != who) {
      return Error{ErrorCode::kMismatch,
                   fmt::format("{}: key = {}: is the key of {}, everybody needs one of their own",
                               request.name, key, CommonNameOf(one.who))};
    }
    if (one.who == who && !one.revoked && one.not_after > now && if_issued == IfIssued::kRefuse) {
      return Error{ErrorCode::kExists,
                   fmt::format("{}: has certificate {} until {} (--again signs another)",
                               CommonNameOf(who), one.serial, TimeText(one.not_after))};
    }
  }
  return {};
}

// Marks lines as revoked and brings index and list to disk, in this order.
Result<std::vector<IssuedCertificate>> RevokeLines(const std::string& directory,
                                                   std::vector<IssuedCertificate> index,
                                                   const auto& is_meant, std::int64_t now) {
  const Authority authority = FEDGEN_TRY(LoadAuthority(directory));
  std::vector<IssuedCertificate> fresh;
  for (IssuedCertificate& one : index) {
    if (!is_meant(one) || one.revoked) continue;
    one.revoked = now;
    fresh.push_back(one);
  }
  std::set<LearnerId> staying;  // who has another certificate
  for (const IssuedCertificate& one : index) {
    if (!one.revoked && one.not_after > now) staying.insert(one.who);
  }
  std::vector<Revocation> revoked;
  for (const IssuedCertificate& one : index) {
    if (!one.revoked) continue;
    revoked.push_back({one.serial, *one.revoked});
    if (!staying.contains(one.who)) revoked.back().gone = one.who;
  }
  // Made before the first write: a key that does not fit is found while nothing has changed.
  const std::string list = FEDGEN_TRY(MakeRevocationList(authority, revoked, now));
  FEDGEN_TRY(WriteIndex(directory, index));
  FEDGEN_TRY(WriteFileAtomically(directory + "/crl.pem", list, IfExists::kReplace));
  return fresh;
}

}  // namespace

Result<CertificateInfo> CreateAuthority(const std::string& directory, const std::string& name,
                                        std::int64_t now) {
  constexpr const char* kNames[] = {"ca.key", "ca.pem", "crl.pem", "issued/index.jsonl"};
  FEDGEN_TRY(RefuseExisting(directory, kNames));
  const Authority authority = FEDGEN_TRY(MakeAuthority(name, kAuthorityDays, now));
  const std::string list = FEDGEN_TRY(MakeRevocationList(authority, {}, now));
  // The key is first: of two that begin at once, one has it and the other stops here.
  FEDGEN_TRY(WriteNew(directory + "/ca.key", authority.key.text, Access::kOwner));
  FEDGEN_TRY(WriteNew(IndexPath(directory), IndexText({}), Access::kUmask));
  FEDGEN_TRY(WriteNew(directory + "/crl.pem", list, Access::kUmask));
  FEDGEN_TRY(WriteNew(directory + "/ca.pem", authority.certificate.text, Access::kUmask));
  return ReadCertificate(authority.certificate);
}

Result<std::vector<IssuedCertificate>> ParseIndex(std::string_view text, const std::string& name) {
  std::vector<IssuedCertificate> index;
  std::set<std::string> serials;
  for (int number = 1; !text.empty() || number == 1; ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const auto error = [&](const std::string& problem) {
      return Error{ErrorCode::kData, fmt::format("{}:{}: {}", name, number, problem)};
    };
    if (end == std::string_view::npos) return error("must end in a line break, the file was cut");
    text.remove_prefix(end + 1);
    if (number == 1) {
      Json json;
      if (const Problem problem = ParseJson(line, {}, json)) return error(*problem);
      if (const Problem problem = CheckFormat(json, kIndexFormat, kIndexVersion)) {
        return error(*problem);
      }
      continue;
    }
    IssuedCertificate issued;
    if (const Problem problem = ReadLine(line, issued)) return error(*problem);
    if (!serials.insert(issued.serial).second) {
      return error(fmt::format("serial = {}: given twice", issued.serial));
    }
    index.push_back(std::move(issued));
  }
  return index;
}

Result<std::vector<IssuedCertificate>> ReadIndex(const std::string& directory) {
  const std::string path = IndexPath(directory);
  return ParseIndex(FEDGEN_TRY(ReadFile(path, kMaxIndexBytes)), path);
}

Result<std::string> SignRequest(const std::string& directory, const Pem& request,
                                const Identity& identity, int days, IfIssued if_issued,
                                std::int64_t now) {
  const DirectoryLock lock = FEDGEN_TRY(DirectoryLock::Take(directory));
  std::vector<IssuedCertificate> index = FEDGEN_TRY(ReadIndex(directory));
  const RequestInfo asked = FEDGEN_TRY(ReadRequest(request));
  FEDGEN_TRY(CheckNew(index, identity.who, asked.key, request, if_issued, now));
  const Authority authority = FEDGEN_TRY(LoadAuthority(directory));
  std::string certificate = FEDGEN_TRY(Sign(authority, request, identity, days, now));
  const CertificateInfo info = FEDGEN_TRY(ReadCertificate({certificate, "new certificate"}));
  index.push_back(LineOf(info, identity.who));
  FEDGEN_TRY(WriteIndex(directory, index));
  FEDGEN_TRY(WriteFileAtomically(fmt::format("{}/issued/{}.pem", directory, info.serial),
                                 certificate, IfExists::kRefuse));
  return certificate;
}

Result<std::vector<IssuedCertificate>> RevokePeer(const std::string& directory, LearnerId who,
                                                  std::int64_t now) {
  const DirectoryLock lock = FEDGEN_TRY(DirectoryLock::Take(directory));
  std::vector<IssuedCertificate> index = FEDGEN_TRY(ReadIndex(directory));
  // Expired ones too: a clock that is late would still take them.
  const auto is_meant = [&](const IssuedCertificate& one) { return one.who == who; };
  if (std::ranges::none_of(index, is_meant)) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("{}: {} has no certificate", IndexPath(directory), CommonNameOf(who))};
  }
  return RevokeLines(directory, std::move(index), is_meant, now);
}

Result<std::vector<IssuedCertificate>> RevokeCertificate(const std::string& directory,
                                                         const Pem& certificate, std::int64_t now) {
  const DirectoryLock lock = FEDGEN_TRY(DirectoryLock::Take(directory));
  std::vector<IssuedCertificate> index = FEDGEN_TRY(ReadIndex(directory));
  const Pem authority = FEDGEN_TRY(ReadPem(directory + "/ca.pem"));
  const CertificateInfo info = FEDGEN_TRY(ReadIssued(certificate, authority));
  if (!info.peer) {
    return Error{ErrorCode::kMismatch, fmt::format("{}: subject = {}: must be cloud or learner-N",
                                                   certificate.name, info.subject)};
  }
  const auto is_meant = [&](const IssuedCertificate& one) { return one.serial == info.serial; };
  if (std::ranges::none_of(index, is_meant)) index.push_back(LineOf(info, *info.peer));
  return RevokeLines(directory, std::move(index), is_meant, now);
}

Result<RequestInfo> WriteRequest(const std::string& directory, const Identity& asked) {
  const NewRequest made = FEDGEN_TRY(MakeRequest(asked));
  // The key is first: a request that is there is that of the key that is there.
  FEDGEN_TRY(WriteNew(directory + "/node.key", made.key, Access::kOwner));
  const std::string path = directory + "/node.csr";
  FEDGEN_TRY(WriteFileAtomically(path, made.request, IfExists::kReplace));
  return ReadRequest({made.request, path});
}

Result<void> MakeThrowAway(const std::string& directory, int num_learners, std::int64_t now,
                           int days) {
  FEDGEN_CHECK(num_learners >= 0, "{} learners", num_learners);
  constexpr const char* kNames[] = {"ca.pem", "crl.pem"};
  FEDGEN_TRY(RefuseExisting(directory, kNames));
  const Authority authority = FEDGEN_TRY(MakeAuthority("throw-away", days, now));
  const std::string list = FEDGEN_TRY(MakeRevocationList(authority, {}, now));
  for (int number = 0; number <= num_learners; ++number) {
    Identity identity{LearnerId::Cloud(), {"localhost", "127.0.0.1", "::1"}};
    if (number > 0) identity = {LearnerId(static_cast<std::uint32_t>(number - 1)), {}};
    const NewRequest node = FEDGEN_TRY(MakeRequest(identity));
    const std::string certificate =
        FEDGEN_TRY(Sign(authority, {node.request, "node.csr"}, identity, days, now));
    const std::string home = fmt::format("{}/{}", directory, CommonNameOf(identity.who));
    FEDGEN_TRY(WriteNew(home + "/node.key", node.key, Access::kOwner));
    FEDGEN_TRY(WriteNew(home + "/node.pem", certificate, Access::kUmask));
    FEDGEN_TRY(WriteNew(home + "/ca.pem", authority.certificate.text, Access::kUmask));
  }
  FEDGEN_TRY(WriteNew(directory + "/cloud/crl.pem", list, Access::kUmask));
  // ca.pem is last: where it is, the set is whole.
  FEDGEN_TRY(WriteNew(directory + "/crl.pem", list, Access::kUmask));
  return WriteNew(directory + "/ca.pem", authority.certificate.text, Access::kUmask);
}

}  // namespace fedgen
