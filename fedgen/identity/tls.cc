// SPDX-License-Identifier: Apache-2.0
#include "fedgen/identity/tls.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include "fedgen/base/file.h"

namespace fedgen {

Result<TlsIdentity> LoadTlsIdentity(const std::string& directory) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
  const std::string key = directory + "/node.key";
  struct stat status{};
  if (::stat(key.c_str(), &status) == 0 && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("{}: permissions = {:o}: only its owner may read it (chmod 600)", key,
                             status.st_mode & 07777U)};
  }
  TlsIdentity identity;
  identity.authority = FEDGEN_TRY(ReadFile(directory + "/ca.pem", kMaxBytes));
  identity.certificate = FEDGEN_TRY(ReadFile(directory + "/node.pem", kMaxBytes));
  identity.key = FEDGEN_TRY(ReadFile(key, kMaxBytes));
  return identity;
}

}  // namespace fedgen
