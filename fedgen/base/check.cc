// SPDX-License-Identifier: Apache-2.0
#include "fedgen/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace fedgen {

void AbortCheck(const char* file, int line, const char* condition, const std::string& why) {
  std::fprintf(stderr, "fedgen: %s:%d: check failed: %s: %s\n", file, line, condition, why.c_str());
  std::abort();
}

}  // namespace fedgen
