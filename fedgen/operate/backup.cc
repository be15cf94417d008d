// SPDX-License-Identifier: Apache-2.0
#include "fedgen/operate/backup.h"

#include <fmt/format.h>

#include <filesystem>

#include "fedgen/store/store.h"

namespace fedgen {

Result<BackupInfo> BackupStore(const std::string& url, const std::string& path) {
  const std::unique_ptr<Store> store = FEDGEN_TRY(OpenStoreForReading(url));
  FEDGEN_TRY(store->Backup(path));
  const std::unique_ptr<Store> copy = FEDGEN_TRY(OpenStoreForReading("sqlite:" + path));
  BackupInfo info;
  for (const RunHeader& run : FEDGEN_TRY(copy->Runs())) {
    FEDGEN_TRY(copy->Load(run.run));
    ++info.runs;
  }
  std::error_code code;
  info.bytes = std::filesystem::file_size(path, code);
  if (code) return Error{ErrorCode::kIo, fmt::format("{}: {}", path, code.message())};
  return info;
}

}  // namespace fedgen
