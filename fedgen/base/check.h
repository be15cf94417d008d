// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>

// FEDGEN_CHECK: our own assumption, always on. A failure is a bug in FedGen, never in its input:
// it prints the offending values and aborts. FEDGEN_DCHECK is the same for hot loops, in Debug and
// sanitizer builds only. Wrong input is an Error (fedgen/base/result.h) instead.

namespace fedgen {

[[noreturn]] void AbortCheck(const char* file, int line, const char* condition,
                             const std::string& why);

}  // namespace fedgen

#define FEDGEN_CHECK(condition, ...) \
  (static_cast<bool>(condition)      \
       ? static_cast<void>(0)        \
       : ::fedgen::AbortCheck(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)))

#ifdef NDEBUG
#define FEDGEN_DCHECK(condition, ...) static_cast<void>(0)
#else
#define FEDGEN_DCHECK(condition, ...) FEDGEN_CHECK(condition, __VA_ARGS__)
#endif
