// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "fedgen/base/result.h"

namespace fedgen {

// Which compiled form of the kernels runs. Both give the same bits; the scalar twin is the plain
// reading of the formulas and runs on any processor.

enum class Kernel {
  kScalar,  // one number at a time, nothing skipped
  kSimd,    // eight at a time (AVX2 and FMA), far obstacles skipped
};

/// The fastest form this processor can run.
Kernel BestKernel();

/// "auto", "scalar" or "simd". An unknown name, or one this processor cannot run, is a usage error.
Result<Kernel> KernelFromName(std::string_view name);

std::string_view KernelName(Kernel kernel);

}  // namespace fedgen
