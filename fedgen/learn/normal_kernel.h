// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "fedgen/base/aligned.h"
#include "fedgen/base/kernel.h"
#include "fedgen/base/random.h"

namespace fedgen {

/// Fills values with independent N(0, 1) numbers (Box and Muller's pairs). Entry i of a key depends
/// on the key, on i and on the size. The size is a multiple of 32 (PaddedNormals).
void DrawNormals(Kernel kernel, Key key, std::span<float> values);

/// The smallest size that DrawNormals can fill and that has room for `count` values.
inline std::size_t PaddedNormals(std::size_t count) { return (count + 31) / 32 * 32; }

}  // namespace fedgen
