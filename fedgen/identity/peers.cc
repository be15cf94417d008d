// SPDX-License-Identifier: Apache-2.0
#include "fedgen/identity/peers.h"

#include <fmt/format.h>

#include <utility>

#include "fedgen/base/file.h"

namespace fedgen {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
constexpr std::size_t kMostPeers = 100'000;  // in the table, some 1 kB each

}  // namespace

Result<std::unique_ptr<PeerCheck>> PeerCheck::Open(PeerCheckOptions options) {
  std::unique_ptr<PeerCheck> check(new PeerCheck(std::move(options)));
  check->seen_ = StampOf(check->options_.directory + "/crl.pem");
  if (check->seen_.exists()) FEDGEN_TRY(check->ReadList());
  return check;
}

Result<void> PeerCheck::ReadList() {
  const std::string path = options_.directory + "/crl.pem";
  const std::string authority = options_.directory + "/ca.pem";
  const Pem text{FEDGEN_TRY(ReadFile(path, kMaxBytes)), path};
  const Pem issuer{FEDGEN_TRY(ReadFile(authority, kMaxBytes)), authority};
  const RevocationListInfo list = FEDGEN_TRY(ReadIssuedList(text, issuer));
  if (list.made < made_) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("{}: made = {}: is older than the list in force, of {}", path,
                             TimeText(list.made), TimeText(made_))};
  }
  made_ = list.made;
  revoked_.clear();
  for (const Revocation& one : list.revoked) {
    revoked_.emplace(one.serial, one.time);
    if (one.gone && gone_.insert(*one.gone).second) untold_.push_back(*one.gone);
  }
  return {};
}

void PeerCheck::LookAgain() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_look_) return;
  next_look_ = now + options_.look_every;
  const std::string path = options_.directory + "/crl.pem";
  const FileStamp stamp = StampOf(path);
  if (stamp == seen_) return;
  seen_ = stamp;
  const Result<void> read = ReadList();
  if (!read && options_.on_trouble) {
    options_.on_trouble(
        fmt::format("{}; {} revocations stay in force", read.error().message, revoked_.size()));
  }
}

Result<const PeerCheck::Peer*> PeerCheck::Known(std::string_view certificate) {
  const auto found = peers_.find(certificate);
  if (found != peers_.end()) return &found->second;
  const CertificateInfo info =
      FEDGEN_TRY(ReadCertificate({std::string(certificate), "the peer's certificate"}));
  if (!info.peer) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("the peer's certificate: subject = {}: must be cloud or learner-N",
                             info.subject)};
  }
  if (peers_.size() >= kMostPeers) peers_.clear();
  const Peer peer{*info.peer, info.serial, info.not_after};
  return &peers_.emplace(certificate, peer).first->second;
}

Result<LearnerId> PeerCheck::Check(std::string_view certificate, std::int64_t now) {
  std::vector<LearnerId> untold;
  const Result<LearnerId> allowed = [&]() -> Result<LearnerId> {
    const std::lock_guard lock(mutex_);
    LookAgain();
    untold = std::exchange(untold_, {});
    const Peer& peer = *FEDGEN_TRY(Known(certificate));
    const auto revoked = revoked_.find(peer.serial);
    if (revoked != revoked_.end()) {
      return Error{ErrorCode::kMismatch,
                   fmt::format("{}: its certificate {} was revoked at {}", CommonNameOf(peer.who),
                               peer.serial, TimeText(revoked->second))};
    }
    if (peer.not_after < now) {
      return Error{ErrorCode::kMismatch,
                   fmt::format("{}: its certificate {} expired at {}", CommonNameOf(peer.who),
                               peer.serial, TimeText(peer.not_after))};
    }
    return peer.who;
  }();
  if (options_.on_revoked) {
    for (const LearnerId who : untold) options_.on_revoked(who);
  }
  return allowed;
}

}  // namespace fedgen
