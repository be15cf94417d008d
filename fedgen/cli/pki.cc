// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <vector>

#include "fedgen/base/file.h"
#include "fedgen/base/text.h"
#include "fedgen/cli/commands.h"
#include "fedgen/cli/print.h"
#include "fedgen/identity/authority.h"
#include "fedgen/identity/pki.h"
#include "fedgen/identity/tls.h"

namespace fedgen {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20;

Result<Pem> ReadPem(const std::string& path) {
  return Pem{FEDGEN_TRY(ReadFile(path, kMaxFileBytes)), path};
}

// --learner and --cloud exclude each other already.
Result<LearnerId> WhoOf(const PkiPeer& peer) {
  if (peer.cloud) return LearnerId::Cloud();
  if (peer.learner == 0) return Error{ErrorCode::kUsage, "one of --learner and --cloud is needed"};
  return LearnerId(peer.learner - 1);
}

// A key as two people compare it by telephone: in groups of four digits.
std::string KeyText(const std::string& key) {
  std::string text;
  for (std::size_t at = 0; at < key.size(); at += 4) {
    text += (at == 0 ? "" : " ") + key.substr(at, 4);
  }
  return text;
}

std::string HostsText(const std::vector<std::string>& hosts) {
  return hosts.empty() ? "none" : fmt::format("{}", fmt::join(hosts, ", "));
}

Result<void> ShowCertificate(const Pem& pem) {
  const CertificateInfo info = FEDGEN_TRY(ReadCertificate(pem));
  Print(
      "{}: a certificate\n"
      "  subject      {}\n"
      "  issuer       {}\n"
      "  from         {}\n"
      "  until        {}\n"
      "  hosts        {}\n"
      "  serial       {}\n"
      "  fingerprint  {} (SHA-256 of the certificate)\n"
      "  key          {} (SHA-256 of the public key)\n",
      pem.name, info.subject, info.issuer, TimeText(info.not_before), TimeText(info.not_after),
      HostsText(info.hosts), info.serial, info.fingerprint, KeyText(info.key));
  return {};
}

Result<void> ShowRequest(const Pem& pem) {
  const RequestInfo info = FEDGEN_TRY(ReadRequest(pem));
  Print(
      "{}: a request; the authority decides what of it is granted\n"
      "  subject      {}\n"
      "  hosts        {}\n"
      "  key          {} (SHA-256 of the public key)\n",
      pem.name, info.subject, HostsText(info.hosts), KeyText(info.key));
  return {};
}

Result<void> ShowRevocationList(const Pem& pem) {
  const RevocationListInfo info = FEDGEN_TRY(ReadRevocationList(pem));
  Print(
      "{}: a revocation list\n"
      "  issuer       {}\n"
      "  from         {}\n"
      "  until        {}\n"
      "  revoked      {}\n",
      pem.name, info.issuer, TimeText(info.made), TimeText(info.until),
      Counted(static_cast<std::int64_t>(info.revoked.size()), "certificate"));
  for (const Revocation& one : info.revoked) {
    Print("  {:13}{} at {}\n", "", one.serial, TimeText(one.time));
  }
  return {};
}

}  // namespace

Result<void> RunPkiInit(const PkiInitCommand& command) {
  const CertificateInfo made =
      FEDGEN_TRY(CreateAuthority(command.directory, command.name, SystemClock()));
  Print(
      "{0}: authority {1}, until {2}\n"
      "  ca.key   keep it to yourself, and a copy in a safe place\n"
      "  ca.pem   give it to everybody; its fingerprint is\n"
      "           {3}\n"
      "  crl.pem  give it to the Cloud, now and after each revocation\n",
      command.directory, made.subject, TimeText(made.not_after), made.fingerprint);
  return {};
}

Result<void> RunPkiRequest(const PkiRequestCommand& command) {
  const Identity asked{FEDGEN_TRY(WhoOf(command.peer)), command.peer.hosts};
  const RequestInfo made = FEDGEN_TRY(WriteRequest(command.directory, asked));
  Print(
      "{0}: request of {1}\n"
      "  node.key  stays here\n"
      "  node.csr  send it to the operator, and read these digits to them by telephone:\n"
      "            {2}\n",
      command.directory, made.subject, KeyText(made.key));
  return {};
}

Result<void> RunPkiSign(const PkiSignCommand& command) {
  const Identity identity{FEDGEN_TRY(WhoOf(command.peer)), command.peer.hosts};
  const Pem request = FEDGEN_TRY(ReadPem(command.request));
  const RequestInfo asked = FEDGEN_TRY(ReadRequest(request));
  // An output that cannot be written is found before anything is signed.
  AtomicFile output = FEDGEN_TRY(AtomicFile::Create(command.output, WhatIfExists(command.force)));
  const IfIssued if_issued = command.again ? IfIssued::kAgain : IfIssued::kRefuse;
  const std::string certificate = FEDGEN_TRY(
      SignRequest(command.directory, request, identity, command.days, if_issued, SystemClock()));
  FEDGEN_TRY(output.Write(certificate));
  FEDGEN_TRY(output.Commit());
  const CertificateInfo info = FEDGEN_TRY(ReadCertificate({certificate, command.output}));
  if (asked.subject != info.subject) {
    PrintError("fedgen: warning: {}: asks for {}, the certificate says {}\n", command.request,
               asked.subject, info.subject);
  }
  Print(
      "{}: certificate of {}, until {}\n"
      "  hosts  {}\n"
      "  key    {}\n"
      "         (the same digits that `fedgen pki request` printed? if not, revoke it)\n",
      command.output, info.subject, TimeText(info.not_after), HostsText(info.hosts),
      KeyText(info.key));
  return {};
}

Result<void> RunPkiRevoke(const PkiRevokeCommand& command) {
  const bool by_peer = command.peer.cloud || command.peer.learner != 0;
  if (by_peer == !command.certificate.empty()) {
    return Error{ErrorCode::kUsage, "one of --learner, --cloud and a certificate is needed"};
  }
  std::vector<IssuedCertificate> revoked;
  if (by_peer) {
    const LearnerId who = FEDGEN_TRY(WhoOf(command.peer));
    revoked = FEDGEN_TRY(RevokePeer(command.directory, who, SystemClock()));
  } else {
    const Pem certificate = FEDGEN_TRY(ReadPem(command.certificate));
    revoked = FEDGEN_TRY(RevokeCertificate(command.directory, certificate, SystemClock()));
  }
  for (const IssuedCertificate& one : revoked) {
    Print("revoked certificate {} of {}\n", one.serial, CommonNameOf(one.who));
  }
  if (revoked.empty()) Print("revoked before; the list was written again\n");
  Print("{}/crl.pem: give it to the Cloud\n", command.directory);
  return {};
}

Result<void> RunPkiShow(const PkiShowCommand& command) {
  const Pem pem = FEDGEN_TRY(ReadPem(command.file));
  const auto holds = [&](const char* label) {
    return pem.text.find(fmt::format("-----BEGIN {}-----", label)) != std::string::npos;
  };
  if (pem.text.find("PRIVATE KEY-----") != std::string::npos) {
    return Error{ErrorCode::kUsage,
                 fmt::format("{}: is a private key; nothing of it is shown", command.file)};
  }
  if (holds("CERTIFICATE REQUEST")) return ShowRequest(pem);
  if (holds("X509 CRL")) return ShowRevocationList(pem);
  return ShowCertificate(pem);
}

}  // namespace fedgen
