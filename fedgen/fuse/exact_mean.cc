// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fuse/exact_mean.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "fedgen/base/check.h"

namespace fedgen {
namespace {

constexpr int kLimbBits = 32;
constexpr int kLeastExponent = -149;  // of the smallest float above 0
constexpr int kMantissaBits = 24;

// Brings every limb but the last into [0, 2^32); the sign ends in the last.
template <typename Limbs>
void Carry(Limbs& limbs) {
  std::int64_t carry = 0;
  for (std::size_t i = 0; i + 1 < limbs.size(); ++i) {
    const std::int64_t sum = limbs[i] + carry;
    limbs[i] = sum & 0xffffffff;
    carry = sum >> kLimbBits;  // rounds down
  }
  limbs.back() += carry;
}

}  // namespace

void ExactMean::Add(std::span<const float> values) {
  if (count_++ == 0) sums_.assign(values.size(), Limbs{});
  FEDGEN_CHECK(values.size() == sums_.size(), "policies of {} and {} parameters", values.size(),
               sums_.size());
  for (std::size_t index = 0; index < values.size(); ++index) {
    const auto bits = std::bit_cast<std::uint32_t>(values[index]);
    const int exponent = static_cast<int>(bits >> 23 & 0xff);
    const std::uint64_t mantissa = (bits & 0x7fffff) | (exponent > 0 ? 0x800000U : 0U);
    // |value| = mantissa 2^shift 2^-149, which touches two limbs.
    const int shift = exponent > 0 ? exponent - 1 : 0;
    const std::uint64_t placed = mantissa << (shift % kLimbBits);
    const std::int64_t sign = bits >> 31 != 0 ? -1 : 1;
    const auto limb = static_cast<std::size_t>(shift / kLimbBits);
    sums_[index][limb] += sign * static_cast<std::int64_t>(placed & 0xffffffff);
    sums_[index][limb + 1] += sign * static_cast<std::int64_t>(placed >> kLimbBits);
  }
}

std::vector<float> ExactMean::Mean() const {
  FEDGEN_CHECK(count_ > 0, "the mean of no policy");
  std::vector<float> mean;
  mean.reserve(sums_.size());
  for (const Limbs& sum : sums_) mean.push_back(MeanOf(sum, static_cast<std::uint64_t>(count_)));
  return mean;
}

float ExactMean::MeanOf(Limbs sum, std::uint64_t count) {
  Carry(sum);
  const bool negative = sum.back() < 0;
  if (negative) {
    for (std::int64_t& limb : sum) limb = -limb;
    Carry(sum);
  }
  // Long division by the count, from the top: the quotient in units of 2^-149, and what is left.
  std::array<std::uint64_t, kLimbs> quotient{};
  std::uint64_t rest = 0;
  for (std::size_t i = kLimbs; i-- > 0;) {
    const std::uint64_t digit = rest << kLimbBits | static_cast<std::uint64_t>(sum[i]);
    quotient[i] = digit / count;
    rest = digit % count;
  }
  int top = -1;  // the highest bit
  for (std::size_t i = 0; i < kLimbs; ++i) {
    if (quotient[i] != 0) {
      top = static_cast<int>(i) * kLimbBits + static_cast<int>(std::bit_width(quotient[i])) - 1;
    }
  }
  const auto bit = [&](int at) {
    return quotient[static_cast<std::size_t>(at / kLimbBits)] >> (at % kLimbBits) & 1;
  };
  // The mantissa are the 24 highest bits (fewer near 0); what is below them decides the rounding.
  const int lowest = std::max(0, top - kMantissaBits + 1);
  std::uint64_t mantissa = 0;
  for (int at = top; at >= lowest; --at) mantissa = mantissa << 1 | bit(at);
  bool half = false, more = false;  // at least half a unit; more than what `half` says
  if (lowest > 0) {
    half = bit(lowest - 1) != 0;
    more = rest != 0;
    for (int at = lowest - 2; at >= 0; --at) more = more || bit(at) != 0;
  } else {
    half = 2 * rest >= count;
    more = 2 * rest > count;
  }
  if (half && (more || mantissa % 2 == 1)) ++mantissa;
  const double size = std::ldexp(static_cast<double>(mantissa), lowest + kLeastExponent);
  return static_cast<float>(negative ? -size : size);
}

}  // namespace fedgen
