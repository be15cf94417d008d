// SPDX-License-Identifier: Apache-2.0

// One spelling of a formula, two widths.
//
// A *_kernel.cc file is compiled twice by Highway's foreach_target: for AVX2, where F is eight
// floats, and for the processor's baseline, where F is one float and every operation is the plain
// C++ one. Each operation below rounds once, in the same way, in both: fused multiply-add is
// explicit, nothing is contracted, square root and division are IEEE. So a formula written in F
// gives the same bits for both widths, and the baseline build is the scalar twin that --kernel
// scalar runs.
//
// Include after <hwy/foreach_target.h>; it is compiled once per target.

#if defined(FEDGEN_BASE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FEDGEN_BASE_LANES_INL_H_
#undef FEDGEN_BASE_LANES_INL_H_
#else
#define FEDGEN_BASE_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace fedgen {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2

namespace hn = hwy::HWY_NAMESPACE;
using FloatTag = hn::FixedTag<float, 8>;
using IntTag = hn::FixedTag<std::int32_t, 8>;
using F = hn::Vec<FloatTag>;
using Mask = hn::Mask<FloatTag>;
inline constexpr int kLanes = 8;

HWY_INLINE F Set(float value) { return hn::Set(FloatTag(), value); }
HWY_INLINE F Load(const float* p) { return hn::Load(FloatTag(), p); }
HWY_INLINE F LoadUnaligned(const float* p) { return hn::LoadU(FloatTag(), p); }
HWY_INLINE void Store(F v, float* p) { hn::Store(v, FloatTag(), p); }

template <typename V>
HWY_INLINE V Fma(V a, V b, V c) {  // a b + c
  return hn::MulAdd(a, b, c);
}
template <typename V>
HWY_INLINE V NegFma(V a, V b, V c) {  // c - a b
  return hn::NegMulAdd(a, b, c);
}
// Found by name lookup on their arguments anyway; Round is to nearest, ties to even.
using hn::Abs;
using hn::And;
using hn::Floor;
using hn::Max;
using hn::Min;
using hn::Or;
using hn::Round;
using hn::Sqrt;
HWY_INLINE F Select(Mask mask, F yes, F no) { return hn::IfThenElse(mask, yes, no); }
HWY_INLINE bool Any(Mask mask) { return !hn::AllFalse(FloatTag(), mask); }

/// A number within 13 % of 1 / a, for a in [1e-30, 1e30]: the exponent negated, the mantissa nearly
/// so.
HWY_INLINE F RoughReciprocal(F a) {
  const IntTag di;
  return hn::BitCast(FloatTag(), hn::Set(di, 0x7EF311C7) - hn::BitCast(di, a));
}

/// a = mantissa 2^exponent with the mantissa in [1, 2), for a normal a > 0.
HWY_INLINE void SplitExponent(F a, F& exponent, F& mantissa) {
  const IntTag di;
  const auto bits = hn::BitCast(di, a);
  exponent = hn::ConvertTo(FloatTag(), hn::ShiftRight<23>(bits) - hn::Set(di, 127));
  mantissa = hn::BitCast(FloatTag(),
                         hn::Or(hn::And(bits, hn::Set(di, 0x007FFFFF)), hn::Set(di, 0x3F800000)));
}

/// 2^n for an integer-valued n in [-126, 127].
HWY_INLINE F PowerOfTwo(F n) {
  const IntTag di;
  const auto biased = hn::ConvertTo(di, n) + hn::Set(di, 127);
  return hn::BitCast(FloatTag(), hn::ShiftLeft<23>(biased));
}

#else  // the scalar twin

using F = float;
using Mask = bool;
inline constexpr int kLanes = 1;

inline F Set(float value) { return value; }
inline F Load(const float* p) { return *p; }
inline F LoadUnaligned(const float* p) { return *p; }
inline void Store(F v, float* p) { *p = v; }

inline F Fma(F a, F b, F c) { return std::fma(a, b, c); }
inline F NegFma(F a, F b, F c) { return std::fma(-a, b, c); }
inline F Sqrt(F a) { return std::sqrt(a); }
inline F Min(F a, F b) { return a < b ? a : b; }  // as minps: b if either is NaN
inline F Max(F a, F b) { return a > b ? a : b; }
inline F Abs(F a) { return std::fabs(a); }
inline F Round(F a) { return std::nearbyint(a); }
inline F Floor(F a) { return std::floor(a); }
inline F Select(Mask mask, F yes, F no) { return mask ? yes : no; }
inline Mask And(Mask a, Mask b) { return a && b; }
inline Mask Or(Mask a, Mask b) { return a || b; }
inline bool Any(Mask mask) { return mask; }

inline F RoughReciprocal(F a) {
  return std::bit_cast<float>(0x7EF311C7U - std::bit_cast<std::uint32_t>(a));
}

inline void SplitExponent(F a, F& exponent, F& mantissa) {
  const auto bits = std::bit_cast<std::int32_t>(a);
  exponent = static_cast<float>((bits >> 23) - 127);
  mantissa = std::bit_cast<float>((bits & 0x007FFFFF) | 0x3F800000);
}

inline F PowerOfTwo(F n) {
  return std::bit_cast<float>((static_cast<std::int32_t>(n) + 127) << 23);
}

#endif

HWY_INLINE F Clamp(F value, F low, F high) { return Min(Max(value, low), high); }

// ---- Functions of one real, ours so that no library version changes a bit (Eq. 2) ----

/// 1 / a for a in [1e-30, 1e30], with a relative error below 3e-7: three Newton steps, which take
/// half the time of a division and, unlike the processor's own estimate, are the same everywhere.
HWY_INLINE F Reciprocal(F a) {
  const F two = Set(2.0f);
  F r = RoughReciprocal(a);
  r = r * NegFma(a, r, two);
  r = r * NegFma(a, r, two);
  return r * NegFma(a, r, two);
}

struct SinCosResult {
  F sin, cos;
};

/// Sine and cosine of x (rad), |x| <= 1e4. Absolute error below 2e-7 for |x| <= 100.
HWY_INLINE SinCosResult SinCos(F x) {
  // x = quadrant pi/2 + r with |r| <= pi/4; pi/2 is split in two so that the reduction is exact
  // enough where it cancels.
  const F quadrant = Round(x * Set(0.636619772f));
  F r = NegFma(quadrant, Set(1.5707963705062866f), x);
  r = NegFma(quadrant, Set(-4.371139000186241e-08f), r);
  const F r2 = r * r;
  // Taylor series; the first term left out is below 1e-9 at |r| = pi/4.
  F s = Fma(r2, Set(2.7557319e-06f), Set(-1.9841270e-04f));
  s = Fma(r2, s, Set(8.3333333e-03f));
  s = Fma(r2, s, Set(-1.6666667e-01f));
  s = Fma(r2 * r, s, r);
  F c = Fma(r2, Set(-2.7557319e-07f), Set(2.4801587e-05f));
  c = Fma(r2, c, Set(-1.3888889e-03f));
  c = Fma(r2, c, Set(4.1666667e-02f));
  c = Fma(r2, c, Set(-0.5f));
  c = Fma(r2, c, Set(1.0f));
  // quadrant mod 4 = 0: (s, c); 1: (c, -s); 2: (-s, -c); 3: (-c, s).
  const F phase = NegFma(Floor(quadrant * Set(0.25f)), Set(4.0f), quadrant);
  const Mask odd = Or(phase == Set(1.0f), phase == Set(3.0f));
  const F first = Select(odd, c, s);
  const F second = Select(odd, s, c);
  const Mask negative_sin = phase > Set(1.5f);
  const Mask negative_cos = And(phase > Set(0.5f), phase < Set(2.5f));
  return {Select(negative_sin, Set(0.0f) - first, first),
          Select(negative_cos, Set(0.0f) - second, second)};
}

/// e^x with x clamped to [-87, 87]. Relative error below 3e-7.
HWY_INLINE F Exp(F x) {
  x = Clamp(x, Set(-87.0f), Set(87.0f));
  const F n = Round(x * Set(1.44269504f));
  F r = NegFma(n, Set(0.693145752f), x);
  r = NegFma(n, Set(1.42860677e-06f), r);
  F p = Fma(r, Set(1.9841270e-04f), Set(1.3888889e-03f));
  p = Fma(r, p, Set(8.3333333e-03f));
  p = Fma(r, p, Set(4.1666667e-02f));
  p = Fma(r, p, Set(1.6666667e-01f));
  p = Fma(r, p, Set(0.5f));
  p = Fma(r, p, Set(1.0f));
  p = Fma(r, p, Set(1.0f));
  return p * PowerOfTwo(n);
}

/// Natural logarithm of a normal a > 0. Error below 3e-7, relative or absolute.
HWY_INLINE F Log(F a) {
  F exponent, m;
  SplitExponent(a, exponent, m);
  // Bring m into [sqrt(1/2), sqrt(2)), then log m = 2 atanh s with s = (m - 1) / (m + 1), |s| <
  // 0.172.
  const Mask large = m > Set(1.41421356f);
  m = Select(large, m * Set(0.5f), m);
  exponent = Select(large, exponent + Set(1.0f), exponent);
  const F s = (m - Set(1.0f)) / (m + Set(1.0f));
  const F s2 = s * s;
  F p = Fma(s2, Set(2.2222222e-01f), Set(2.8571429e-01f));
  p = Fma(s2, p, Set(0.4f));
  p = Fma(s2, p, Set(6.6666667e-01f));
  p = Fma(s2 * s, p, s + s);
  return Fma(exponent, Set(6.9314718e-01f), p);
}

/// tanh x = 1 - 2 / (e^{2x} + 1). Absolute error below 3e-7.
HWY_INLINE F Tanh(F x) {
  const F e = Exp(Clamp(x, Set(-20.0f), Set(20.0f)) * Set(2.0f));
  return Set(1.0f) - Set(2.0f) / (e + Set(1.0f));
}

}  // namespace HWY_NAMESPACE
}  // namespace fedgen
HWY_AFTER_NAMESPACE();

// The function compiled for the wanted kernel; use it below HWY_ONCE, inside namespace fedgen.
#ifndef FEDGEN_LANES_DISPATCH
#if HWY_TARGETS & HWY_AVX2
#define FEDGEN_LANES_DISPATCH(kernel, function) \
  ((kernel) == ::fedgen::Kernel::kSimd ? &N_AVX2::function : &HWY_STATIC_DISPATCH(function))
#else
#define FEDGEN_LANES_DISPATCH(kernel, function) \
  (static_cast<void>(kernel), &HWY_STATIC_DISPATCH(function))
#endif
#endif

#endif  // FEDGEN_BASE_LANES_INL_H_
