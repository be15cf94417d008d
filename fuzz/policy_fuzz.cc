// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fedgen/base/check.h"
#include "fedgen/policy/policy_file.h"
#include "fuzz/one_line.h"

// Any bytes are a policy or one line that says why not. A policy that is read has no problem, and
// comes back the same through both forms and, as a network, through version 1.

namespace fedgen {
namespace {

void Check(std::string_view bytes) {
  const Result<Mlp> mlp = ParsePolicy(bytes, "fuzz");
  if (!mlp) {
    FEDGEN_CHECK(IsOneLine(mlp.error().message), "{}", mlp.error().message);
    return;
  }
  FEDGEN_CHECK(!FindProblem(*mlp), "{}", *FindProblem(*mlp));
  const std::string binary = PolicyToBinary(*mlp);
  const std::string json = PolicyToJson(*mlp);
  const Result<Mlp> from_binary = ParsePolicy(binary, "binary");
  FEDGEN_CHECK(from_binary.has_value(), "{}", from_binary.error().message);
  const Result<Mlp> from_json = ParsePolicy(json, "json");
  FEDGEN_CHECK(from_json.has_value(), "{}", from_json.error().message);
  FEDGEN_CHECK(PolicyToJson(*from_binary) == json, "{}", json);
  FEDGEN_CHECK(PolicyToBinary(*from_json) == binary, "{}", json);
  // Version 1 forgets what it was made for, and nothing of what acts.
  const Result<Mlp> from_old = ParsePolicy(PolicyToBinaryV1(*mlp), "version 1");
  FEDGEN_CHECK(from_old.has_value(), "{}", from_old.error().message);
  FEDGEN_CHECK(!from_old->made_for, "{}", json);
  FEDGEN_CHECK(NetworkBytes(*from_old) == NetworkBytes(*mlp), "{}", json);
}

// The same bytes with a right checksum at the end: no fuzzer guesses one.
std::string WithChecksum(std::string_view bytes) {
  std::string fixed(bytes.substr(0, bytes.size() - 4));
  const auto checksum = static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(fixed.data()), fixed.size()));
  for (int shift = 0; shift < 32; shift += 8) {
    fixed += static_cast<char>(static_cast<unsigned char>(checksum >> shift));
  }
  return fixed;
}

}  // namespace
}  // namespace fedgen

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  fedgen::Check(bytes);
  if (bytes.starts_with("FGP") && bytes.size() >= 4) fedgen::Check(fedgen::WithChecksum(bytes));
  return 0;
}
