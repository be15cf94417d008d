// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/normal_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fedgen/learn/normal_kernel.cc"
#include <hwy/foreach_target.h>
//
#include "fedgen/base/lanes-inl.h"
#include "fedgen/base/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fedgen {
namespace HWY_NAMESPACE {

// Two uniform numbers become two normal ones. 1 - U is in (0, 1], where the logarithm is finite.
HWY_INLINE void StorePair(Words radius_word, Words angle_word, float* first, float* second) {
  const F radius = Sqrt(Max(Set(-2.0f) * Log(Set(1.0f) - UnitFloats(radius_word)), Set(0.0f)));
  const SinCosResult angle = SinCos(UnitFloats(angle_word) * Set(6.2831853f));
  Store(radius * angle.cos, first);
  Store(radius * angle.sin, second);
}

// Block i of the key gives the entries i, i + B, i + 2 B and i + 3 B, where B is a quarter of the
// size: so that lanes write next to each other.
void DrawNormalsLanes(std::uint64_t key, std::size_t size, float* values) {
  const std::size_t quarter = size / 4;
  for (std::size_t block = 0; block < quarter; block += kLanes) {
    const WordBlock words = PhiloxBlocks(key, block);
    float* at = values + block;
    StorePair(words.w0, words.w1, at, at + quarter);
    StorePair(words.w2, words.w3, at + 2 * quarter, at + 3 * quarter);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fedgen
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "fedgen/base/check.h"

namespace fedgen {

void DrawNormals(Kernel kernel, Key key, std::span<float> values) {
  FEDGEN_CHECK(values.size() % 32 == 0, "size {}", values.size());
  FEDGEN_LANES_DISPATCH(kernel, DrawNormalsLanes)(key.bits(), values.size(), values.data());
}

}  // namespace fedgen
#endif
