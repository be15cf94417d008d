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

template <typename Checkpoint>
using From = Result<Checkpoint> (*)(std::string_view, const std::string&);

template <typename Checkpoint>
void Check(std::string_view input, From<Checkpoint> from_bytes, From<Checkpoint> from_body) {
  const Result<Checkpoint> file = from_bytes(input, "fuzz");
  if (!file) FEDGEN_CHECK(IsOneLine(file.error().message), "{}", file.error().message);
  const Result<Checkpoint> checkpoint = from_body(input, "fuzz");
  if (!checkpoint) {
    FEDGEN_CHECK(IsOneLine(checkpoint.error().message), "{}", checkpoint.error().message);
    return;
  }
  const std::string written = CheckpointToBytes(*checkpoint);
  const Result<Checkpoint> back = from_bytes(written, "back");
  FEDGEN_CHECK(back.has_value(), "{}", back.error().message);
  FEDGEN_CHECK(CheckpointToBytes(*back) == written, "{} bytes", written.size());
}

}  // namespace
}  // namespace fedgen

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  fedgen::Check(input, fedgen::HostFromBytes, fedgen::HostFromBody);
  fedgen::Check(input, fedgen::CloudFromBytes, fedgen::CloudFromBody);
  return 0;
}
