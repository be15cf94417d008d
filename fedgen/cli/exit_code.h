// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fedgen/base/result.h"

namespace fedgen {

// What the program says to the shell; docs/exit-codes.md is the table for users.
enum class ExitCode : int {
  kOk = 0,
  kUsage = 2,
  kConfig = 3,
  kData = 4,
  kMismatch = 5,
  kIo = 6,
  kExists = 7,
  kUnexpected = 70,  // out of memory, or an exception of a library that nobody caught
};

ExitCode ExitCodeOf(ErrorCode code);

/// Prints `fedgen: message` to stderr as one line and returns the exit code.
int Complain(const Error& error);

}  // namespace fedgen
