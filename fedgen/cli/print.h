// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

#include "fedgen/base/result.h"

namespace fedgen {

/// Prints to stdout. Unlike fmt::print it never throws; main() notices at the end if stdout failed.
template <typename... Args>
void Print(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

/// Prints to stderr, for progress and errors. A failure to print there is ignored.
template <typename... Args>
void PrintError(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

/// Whether stderr is a terminal that understands how to move the cursor (TERM is not "dumb").
bool IsTerminal();

// What the program says to the shell; docs/exit-codes.md is the table for users.
enum class ExitCode : int {
  kOk = 0,
  kUsage = 2,
  kConfig = 3,
  kData = 4,
  kMismatch = 5,
  kIo = 6,
  kExists = 7,
  kMissed = 8,
  kUnexpected = 70,  // out of memory, or an unexpected exception of a library
};

ExitCode ExitCodeOf(ErrorCode code);
/// The code of an error that ended a program so; kIo if none does.
ErrorCode ErrorCodeOf(int exit_code);

/// Prints `fedgen: message` to stderr as one line and returns the exit code.
int Complain(const Error& error);

}  // namespace fedgen
