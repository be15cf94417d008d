// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace fedgen {

// Random numbers addressed by what is drawn, never by when.
//
// A Key names a stream; Fork(i) names its i-th child; Block(i) is the i-th block of four random
// 32-bit words under it (Philox4x32-10, docs/math.md Eq. 1). There is no state, so any thread may
// draw any number in any order and get the same bits:
//
//   const Key world_key = Key(seed).Fork(Stream::kEvaluation).Fork(world);
//   const float x = UnitFloat(world_key.Block(disc)[0]);
//
// Forks and blocks live in different halves of the counter space, so a child's name is never one of
// its parent's draws.

/// Separate uses of one seed. What trains or selects never certifies: the streams share no key.
enum class Stream : std::uint64_t {
  kTraining = 1,
  kSelection = 2,
  kAudit = 3,
  kCertification = 4,
  kEvaluation = 5,
  kInitialPolicy = 6,
  kLearner = 7,      // private seeds of learners that live in one process
  kImprovement = 8,  // what a learner draws to improve, besides measuring
};

using RandomBlock = std::array<std::uint32_t, 4>;

class Key {
 public:
  constexpr Key() = default;
  explicit constexpr Key(std::uint64_t bits) : bits_(bits) {}

  Key Fork(std::uint64_t index) const;
  Key Fork(Stream stream) const { return Fork(static_cast<std::uint64_t>(stream)); }
  RandomBlock Block(std::uint64_t index) const;

  std::uint64_t bits() const { return bits_; }
  bool operator==(const Key&) const = default;

 private:
  std::uint64_t bits_ = 0;
};

/// Uniform on the 2^24 multiples of 2^-24 in [0, 1).
inline float UnitFloat(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

/// Uniform on {low, ..., high}; the bias of the multiply-shift is below (high - low + 1) 2^-32.
inline int UniformInt(std::uint32_t word, int low, int high) {
  const std::uint64_t span = static_cast<std::uint64_t>(static_cast<std::int64_t>(high) - low) + 1;
  return low + static_cast<int>((word * span) >> 32);
}

}  // namespace fedgen
