// SPDX-License-Identifier: Apache-2.0
#include "fedgen/operate/backup.h"

#include <fmt/format.h>

#include <filesystem>

namespace fedgen {

Result<std::size_t> ReadAllRuns(Store& store) {
  std::size_t num_runs = 0;
  for (const RunHeader& run : FEDGEN_TRY(store.Runs())) {
    FEDGEN_TRY(store.Load(run.run));
    ++num_runs;
  }
  return num_runs;
}

Result<BackupInfo> BackupStore(const std::string& url, const std::string& path) {
  const std::unique_ptr<Store> store = FEDGEN_TRY(OpenStoreForReading(url));
  FEDGEN_TRY(ReadAllRuns(*store));  // a copy of what is damaged is no backup
  FEDGEN_TRY(store->Backup(path));
  std::error_code code;
  BackupInfo info;
  {
    const std::unique_ptr<Store> copy = FEDGEN_TRY(OpenStoreForReading("sqlite:" + path));
    const Result<std::size_t> runs = ReadAllRuns(*copy);
    if (!runs) {
      std::filesystem::remove(path, code);
      return runs.error();
    }
    info.runs = *runs;
  }
  info.bytes = std::filesystem::file_size(path, code);
  if (code) return Error{ErrorCode::kIo, fmt::format("{}: {}", path, code.message())};
  return info;
}

}  // namespace fedgen
