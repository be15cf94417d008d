// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "fedgen/base/result.h"

namespace fedgen {

struct BackupInfo {
  std::size_t bytes = 0;
  std::size_t runs = 0;
};

/// Copies a Cloud's store to a new file, while the Cloud goes on, and reads the copy: `sqlite:COPY`
/// can be served from there on. A path that exists is left as it is.
Result<BackupInfo> BackupStore(const std::string& url, const std::string& path);

}  // namespace fedgen
