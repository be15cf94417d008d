// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "fedgen/base/result.h"

namespace fedgen {

/// Who one end of a connection is, and whom it believes, as PEM texts.
struct TlsIdentity {
  std::string authority;    // ca.pem: who may vouch for others
  std::string certificate;  // node.pem: what the authority says of this end
  std::string key;          // node.key: the proof; stays on its machine
};

/// From a directory with ca.pem, node.pem and node.key. A key that others can read is refused.
Result<TlsIdentity> LoadTlsIdentity(const std::string& directory);

}  // namespace fedgen
