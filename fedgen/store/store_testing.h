// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fedgen/base/hash.h"
#include "fedgen/base/random.h"
#include "fedgen/store/store.h"
#include "fuzz/one_line.h"

namespace fedgen {

// For tests: messages and snapshots that are known by their number, and stores that must open.

constexpr int kLearners = 3;

// All that is random about message s is drawn at s, so that a process that is gone need not tell
// what it wrote. Sizes reach over several pages of SQLite.
inline StoredMessage MessageOf(std::int64_t sequence) {
  const auto index = static_cast<std::uint64_t>(sequence);
  const Key key = Key(5).Fork(index);
  StoredMessage message;
  message.sequence = sequence;
  message.learner = LearnerId(static_cast<std::uint32_t>(sequence % kLearners));
  message.step = static_cast<int>(sequence);
  const int words = UniformInt(key.Block(0)[0], 1, 3000);
  for (int w = 0; w < words; w += 4) {
    for (const std::uint32_t word : key.Block(static_cast<std::uint64_t>(w) + 1)) {
      for (const int shift : {0, 8, 16, 24}) {
        message.bytes.push_back(static_cast<char>(word >> shift));
      }
    }
  }
  message.hash = Sha256Hex(message.bytes);
  if (sequence % 2 == 0) message.y = UnitFloat(key.Block(0)[1]);
  if (sequence % 3 == 0) message.b = UnitFloat(key.Block(0)[2]);
  return message;
}

inline std::vector<StoredMessage> MessagesFrom(std::int64_t first, std::int64_t last) {
  std::vector<StoredMessage> messages;
  for (std::int64_t s = first; s <= last; ++s) messages.push_back(MessageOf(s));
  return messages;
}

inline std::string SnapshotOf(std::int64_t sequence) {
  return fmt::format("state {} {}", sequence, std::string(20'000, static_cast<char>(sequence)));
}

inline StoredMessage WithoutBytes(StoredMessage message) {
  message.bytes.clear();
  return message;
}

inline std::string UrlOf(const std::string& path) { return "sqlite:" + path; }

inline std::unique_ptr<Store> MustOpen(const std::string& path) {
  Result<std::unique_ptr<Store>> store = OpenStore(UrlOf(path));
  EXPECT_TRUE(store) << store.error().message;
  return store ? *std::move(store) : nullptr;
}

inline void ExpectError(const auto& result, ErrorCode code, const std::string& text) {
  ASSERT_FALSE(result) << text;
  EXPECT_EQ(static_cast<int>(result.error().code), static_cast<int>(code))
      << result.error().message;
  EXPECT_THAT(result.error().message, ::testing::HasSubstr(text));
  EXPECT_TRUE(IsOneLine(result.error().message)) << result.error().message;
}

inline void ExpectOk(const auto& result) {
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
}

inline StoredRun LoadRun(Store& store, const std::string& run = "r") {
  const Result<std::optional<StoredRun>> stored = store.Load(run);
  EXPECT_TRUE(stored && *stored) << (stored ? "no run" : stored.error().message);
  return stored && *stored ? **stored : StoredRun{};
}

}  // namespace fedgen
