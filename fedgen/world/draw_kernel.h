// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "fedgen/base/kernel.h"
#include "fedgen/base/random.h"

namespace fedgen {

// The two draws that are long enough to be worth eight lanes: discs and plane waves. Entry i takes
// its words from block first + i of the key, so both kernels and any count agree entry by entry.

/// A box of independent uniform variables: value = low + width * U.
struct UniformTriple {
  float low[3];
  float width[3];
};

/// Writes column c of entry i as low[c] + width[c] * U, for i < count rounded up to eight.
void DrawTriples(Kernel kernel, Key key, std::uint64_t first, int count,
                 const UniformTriple& uniform, float* column0, float* column1, float* column2);

/// The Von Karman strata of Eq. 5. Mode m gets the wave number k0 sqrt((1 - u)^-3 - 1) with u =
/// share (m + U) / num_modes, a uniform direction and a uniform phase. k0 in cycles/m.
void DrawWaves(Kernel kernel, Key key, int num_modes, float k0, float share, float* kx, float* ky,
               float* phase);

}  // namespace fedgen
