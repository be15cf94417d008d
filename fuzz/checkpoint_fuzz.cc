// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fedgen/base/check.h"
#include "fedgen/fuse/checkpoint.h"
#include "fuzz/one_line.h"

// Any bytes are a checkpoint or one line that says why not. A checkpoint that is read comes back
// the same. Inputs are bodies: no fuzzer guesses a SHA-256.

namespace fedgen {
namespace {

void CheckError(const Result<Checkpoint>& result) {
  FEDGEN_CHECK(IsOneLine(result.error().message), "{}", result.error().message);
}

void Check(std::string_view bytes) {
  const Result<Checkpoint> file = CheckpointFromBytes(bytes, "fuzz");
  if (!file) CheckError(file);
  const Result<Checkpoint> checkpoint = CheckpointFromBody(bytes, "fuzz");
  if (!checkpoint) return CheckError(checkpoint);
  const std::string written = CheckpointToBytes(*checkpoint);
  const Result<Checkpoint> back = CheckpointFromBytes(written, "back");
  FEDGEN_CHECK(back.has_value(), "{}", back.error().message);
  FEDGEN_CHECK(CheckpointToBytes(*back) == written, "{} bytes", written.size());
}

}  // namespace
}  // namespace fedgen

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fedgen::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
