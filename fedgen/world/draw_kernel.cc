// SPDX-License-Identifier: Apache-2.0
#include "fedgen/world/draw_kernel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fedgen/world/draw_kernel.cc"
#include <hwy/foreach_target.h>
//
#include "fedgen/base/lanes-inl.h"
#include "fedgen/base/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fedgen {
namespace HWY_NAMESPACE {

void DrawTriplesLanes(std::uint64_t key, std::uint64_t first, int count,
                      const UniformTriple& uniform, float* column0, float* column1,
                      float* column2) {
  for (int entry = 0; entry < count; entry += kLanes) {
    const WordBlock words = PhiloxBlocks(key, first + static_cast<std::uint64_t>(entry));
    Store(Fma(Set(uniform.width[0]), UnitFloats(words.w0), Set(uniform.low[0])), column0 + entry);
    Store(Fma(Set(uniform.width[1]), UnitFloats(words.w1), Set(uniform.low[1])), column1 + entry);
    Store(Fma(Set(uniform.width[2]), UnitFloats(words.w2), Set(uniform.low[2])), column2 + entry);
  }
}

void DrawWavesLanes(std::uint64_t key, int num_modes, float k0, float share, float* kx, float* ky,
                    float* phase) {
  float stratum[kLanes];
  for (int mode = 0; mode < num_modes; mode += kLanes) {
    const WordBlock words = PhiloxBlocks(key, static_cast<std::uint64_t>(mode));
    for (int lane = 0; lane < kLanes; ++lane) stratum[lane] = static_cast<float>(mode + lane);
    const F u = (LoadUnaligned(stratum) + UnitFloats(words.w0)) *
                Set(share / static_cast<float>(num_modes));
    const F inverse = Set(1.0f) / (Set(1.0f) - u);
    const F k = Set(k0) * Sqrt(Max(Fma(inverse * inverse, inverse, Set(-1.0f)), Set(0.0f)));
    const SinCosResult direction = SinCos(UnitFloats(words.w1) * Set(6.2831853f));
    Store(k * direction.cos, kx + mode);
    Store(k * direction.sin, ky + mode);
    Store(UnitFloats(words.w2), phase + mode);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fedgen
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fedgen {

void DrawTriples(Kernel kernel, Key key, std::uint64_t first, int count,
                 const UniformTriple& uniform, float* column0, float* column1, float* column2) {
  FEDGEN_LANES_DISPATCH(kernel, DrawTriplesLanes)
  (key.bits(), first, count, uniform, column0, column1, column2);
}

void DrawWaves(Kernel kernel, Key key, int num_modes, float k0, float share, float* kx, float* ky,
               float* phase) {
  FEDGEN_LANES_DISPATCH(kernel, DrawWavesLanes)(key.bits(), num_modes, k0, share, kx, ky, phase);
}

}  // namespace fedgen
#endif
