// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "fedgen/base/archive.h"

namespace fedgen {

// The mean of policies that come in any order: the sum is exact, so the order does not matter, and
// the mean is rounded once, to the nearest float (ties to even).
//
// Every float is a whole number of 2^-149, below 2^277 in size. A sum holds it in nine limbs of 32
// bits, each in an int64 that takes 2^31 additions before it could overflow. Adding is per limb, so
// sums of sums are sums.
class ExactMean {
 public:
  /// Requires as many numbers as were added before, all finite; at most 2^31 vectors.
  void Add(std::span<const float> values);
  /// The mean of what was added. Requires at least one vector.
  std::vector<float> Mean() const;

  std::int64_t count() const { return count_; }
  std::size_t size() const { return sums_.size(); }
  bool operator==(const ExactMean&) const = default;
  friend void Fields(auto& archive, Is<ExactMean> auto& m) { archive(m.count_, m.sums_); }

 private:
  static constexpr std::size_t kLimbs = 9;
  using Limbs = std::array<std::int64_t, kLimbs>;  // value = sum of limb[i] 2^(32 i - 149)

  static float MeanOf(Limbs sum, std::uint64_t count);

  std::int64_t count_ = 0;
  std::vector<Limbs> sums_;  // [num_parameters]
};

}  // namespace fedgen
