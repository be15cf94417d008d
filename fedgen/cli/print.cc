// SPDX-License-Identifier: Apache-2.0
#include "fedgen/cli/print.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace fedgen {

bool IsTerminal() {
  const char* const kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && kind != nullptr && *kind != '\0' &&
         std::string_view(kind) != "dumb";
}

ExitCode ExitCodeOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
      return ExitCode::kUsage;
    case ErrorCode::kConfig:
      return ExitCode::kConfig;
    case ErrorCode::kData:
      return ExitCode::kData;
    case ErrorCode::kMismatch:
      return ExitCode::kMismatch;
    case ErrorCode::kIo:
      return ExitCode::kIo;
    case ErrorCode::kExists:
      return ExitCode::kExists;
    case ErrorCode::kMissed:
      return ExitCode::kMissed;
  }
  return ExitCode::kUsage;
}

ErrorCode ErrorCodeOf(int exit_code) {
  for (const ErrorCode code : {ErrorCode::kUsage, ErrorCode::kConfig, ErrorCode::kData,
                               ErrorCode::kMismatch, ErrorCode::kExists, ErrorCode::kMissed}) {
    if (static_cast<int>(ExitCodeOf(code)) == exit_code) return code;
  }
  return ErrorCode::kIo;
}

int Complain(const Error& error) {
  // File names and values may hold anything; a message stays one harmless line.
  std::string line = error.message;
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  PrintError("fedgen: {}\n", line);
  return static_cast<int>(ExitCodeOf(error.code));
}

}  // namespace fedgen
