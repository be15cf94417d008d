// SPDX-License-Identifier: Apache-2.0

// Key::Block for kLanes consecutive indices at once: the same words, by the same Philox4x32-10
// rounds (Eq. 1). The test compares it with Random123, word for word.
//
// Include after <hwy/foreach_target.h>; it is compiled once per target.

#if defined(FEDGEN_BASE_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEDGEN_BASE_PHILOX_INL_H_
#undef FEDGEN_BASE_PHILOX_INL_H_
#else
#define FEDGEN_BASE_PHILOX_INL_H_
#endif

#include <cstdint>

#include "fedgen/base/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fedgen {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2

using WordTag = hn::FixedTag<std::uint32_t, 8>;
using Words = hn::Vec<WordTag>;

HWY_INLINE Words SetWord(std::uint32_t word) { return hn::Set(WordTag(), word); }
HWY_INLINE Words Iota(std::uint32_t first) { return hn::Iota(WordTag(), first); }
using hn::Xor;

/// Low and high words of the 64-bit products.
HWY_INLINE void MulLowHigh(Words a, std::uint32_t factor, Words& low, Words& high) {
  const hn::Repartition<std::uint64_t, WordTag> d64;
  const Words m = SetWord(factor);
  const auto even = hn::MulEven(a, m);
  const auto odd = hn::MulEven(hn::BitCast(WordTag(), hn::ShiftRight<32>(hn::BitCast(d64, a))), m);
  low = hn::OddEven(hn::BitCast(WordTag(), hn::ShiftLeft<32>(odd)), hn::BitCast(WordTag(), even));
  high = hn::OddEven(hn::BitCast(WordTag(), odd), hn::BitCast(WordTag(), hn::ShiftRight<32>(even)));
}

/// UnitFloat of each lane.
HWY_INLINE F UnitFloats(Words words) {
  const auto mantissa = hn::BitCast(IntTag(), hn::ShiftRight<8>(words));
  return hn::ConvertTo(FloatTag(), mantissa) * Set(0x1p-24f);
}

#else

using Words = std::uint32_t;

inline Words SetWord(std::uint32_t word) { return word; }
inline Words Iota(std::uint32_t first) { return first; }
inline Words Xor(Words a, Words b) { return a ^ b; }

inline void MulLowHigh(Words a, std::uint32_t factor, Words& low, Words& high) {
  const std::uint64_t product = static_cast<std::uint64_t>(a) * factor;
  low = static_cast<std::uint32_t>(product);
  high = static_cast<std::uint32_t>(product >> 32);
}

inline F UnitFloats(Words words) { return static_cast<float>(words >> 8) * 0x1p-24f; }

#endif

struct WordBlock {
  Words w0, w1, w2, w3;
};

/// Lane i holds Key(key_bits).Block(first + i). The low word of first + kLanes must not overflow.
HWY_INLINE WordBlock PhiloxBlocks(std::uint64_t key_bits, std::uint64_t first) {
  Words c0 = Iota(static_cast<std::uint32_t>(first));
  Words c1 = SetWord(static_cast<std::uint32_t>(first >> 32));
  Words c2 = SetWord(0);
  Words c3 = SetWord(0);
  auto k0 = static_cast<std::uint32_t>(key_bits);
  auto k1 = static_cast<std::uint32_t>(key_bits >> 32);
  for (int round = 0; round < 10; ++round) {
    Words low0, high0, low1, high1;
    MulLowHigh(c0, 0xD2511F53U, low0, high0);
    MulLowHigh(c2, 0xCD9E8D57U, low1, high1);
    const Words next0 = Xor(Xor(high1, c1), SetWord(k0));
    const Words next2 = Xor(Xor(high0, c3), SetWord(k1));
    c0 = next0;
    c1 = low1;
    c2 = next2;
    c3 = low0;
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return {c0, c1, c2, c3};
}

}  // namespace HWY_NAMESPACE
}  // namespace fedgen
HWY_AFTER_NAMESPACE();

#endif  // FEDGEN_BASE_PHILOX_INL_H_
