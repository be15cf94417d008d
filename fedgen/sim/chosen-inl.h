// SPDX-License-Identifier: Apache-2.0

// Some of eight lanes, written side by side: how the fast kernel makes lists without a branch.
//
// Include after <hwy/foreach_target.h>; it is compiled once per target, and empty for the twin.

#if defined(FEDGEN_SIM_CHOSEN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEDGEN_SIM_CHOSEN_INL_H_
#undef FEDGEN_SIM_CHOSEN_INL_H_
#else
#define FEDGEN_SIM_CHOSEN_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "fedgen/base/lanes-inl.h"

#if HWY_TARGET == HWY_AVX2
HWY_BEFORE_NAMESPACE();
namespace fedgen {
namespace HWY_NAMESPACE {

/// For each set of eight lanes, which lane comes first, second, ... (Highway 1.0 has Compress for
/// this, but g++ 12 copies its table to the stack at every call.)
struct CompressTable {
  constexpr CompressTable() {
    for (std::size_t mask = 0; mask < 256; ++mask) {
      int count = 0;
      for (std::size_t lane = 0; lane < 8; ++lane) {
        if ((mask >> lane & 1) != 0) lanes[mask][count++] = static_cast<std::uint8_t>(lane);
      }
    }
  }
  alignas(64) std::uint8_t lanes[256][8] = {};
};
inline constexpr CompressTable kCompressTable;

/// Some of eight lanes, to be written side by side.
class Chosen {
 public:
  HWY_INLINE explicit Chosen(std::uint32_t bits) : bits_(bits) {
    const hn::FixedTag<std::uint8_t, 8> d8;
    lanes_ = hn::PromoteTo(IntTag(), hn::Load(d8, kCompressTable.lanes[bits]));
  }
  HWY_INLINE int count() const { return __builtin_popcount(bits_); }
  /// Writes the chosen lanes from `to` on; eight numbers are overwritten.
  HWY_INLINE void Append(F v, float* to) const {
    const FloatTag d;
    hn::StoreU(hn::TableLookupLanes(v, hn::IndicesFromVec(d, lanes_)), d, to);
  }
  HWY_INLINE void Append(hn::Vec<IntTag> v, std::int32_t* to) const {
    const IntTag di;
    hn::StoreU(hn::TableLookupLanes(v, hn::IndicesFromVec(di, lanes_)), di, to);
  }

 private:
  std::uint32_t bits_;
  hn::Vec<IntTag> lanes_;
};

/// 0, 1, ..., 7.
HWY_INLINE hn::Vec<IntTag> Count() {
  alignas(32) static constexpr std::int32_t kCount[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  return hn::Load(IntTag(), kCount);
}

HWY_INLINE std::uint32_t Bits(Mask mask) {
  return static_cast<std::uint32_t>(hn::detail::BitsFromMask(mask));
}

}  // namespace HWY_NAMESPACE
}  // namespace fedgen
HWY_AFTER_NAMESPACE();
#endif

#endif  // FEDGEN_SIM_CHOSEN_INL_H_
