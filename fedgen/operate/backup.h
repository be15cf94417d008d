// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "fedgen/base/result.h"
#include "fedgen/store/store.h"

namespace fedgen {

struct BackupInfo {
  std::size_t bytes = 0;
  std::size_t runs = 0;
};

/// Reads all that a Cloud would, and says how many runs there are; kData if something is damaged.
Result<std::size_t> ReadAllRuns(Store& store);

/// Copies a Cloud's store to a new file, while the Cloud goes on, and reads the copy: `sqlite:COPY`
/// can be served from there on. A path that exists is left as it is; a store that is damaged is not
/// copied.
Result<BackupInfo> BackupStore(const std::string& url, const std::string& path);

}  // namespace fedgen
