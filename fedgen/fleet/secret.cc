// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fleet/secret.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <random>

#include "fedgen/base/file.h"
#include "fedgen/base/hash.h"

namespace fedgen {
namespace {

constexpr std::size_t kDigits = 16;

std::uint64_t FromHex(const std::string& digits) {
  std::uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

}  // namespace

Key DrawSecret() {
  std::random_device system;  // the kernel's
  const std::uint64_t high = system();
  return Key(high << 32 | system());
}

std::string SecretToText(Key secret) { return fmt::format("{:016x}\n", secret.bits()); }

Result<Key> LoadSecret(const std::string& path) {
  struct stat status{};
  const bool is_file = ::stat(path.c_str(), &status) == 0 && !S_ISDIR(status.st_mode);
  if (is_file && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("{}: permissions = {:o}: only its owner may read it (chmod 600)", path,
                             status.st_mode & 07777U)};
  }
  const std::string text = FEDGEN_TRY(ReadFile(path, 1 << 10));
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (text.size() != kDigits + 1 || text.back() != '\n' ||
      !std::all_of(text.begin(), text.end() - 1, is_digit)) {
    return Error{ErrorCode::kData,
                 fmt::format("{}: must hold {} hexadecimal digits and a newline", path, kDigits)};
  }
  return Key(FromHex(text.substr(0, kDigits)));
}

Result<Key> LoadOrDrawSecret(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) {
    FEDGEN_TRY(
        WriteFileAtomically(path, SecretToText(DrawSecret()), IfExists::kRefuse, Access::kOwner));
  }
  return LoadSecret(path);
}

std::uint64_t HomeSeed(Key secret) {
  return FromHex(Sha256Hex("fedgen at home " + SecretToText(secret)).substr(0, kDigits));
}

}  // namespace fedgen
