// SPDX-License-Identifier: Apache-2.0
#include "fedgen/base/kernel.h"

#include <hwy/highway.h>

namespace fedgen {
namespace {

// Asked once: in a virtual machine each question to the processor takes microseconds.
bool SimdRunsHere() {
  static const bool runs = (hwy::SupportedTargets() & HWY_AVX2) != 0;
  return runs;
}

}  // namespace

Kernel BestKernel() { return SimdRunsHere() ? Kernel::kSimd : Kernel::kScalar; }

Result<Kernel> KernelFromName(std::string_view name) {
  if (name == "auto") return BestKernel();
  if (name == "scalar") return Kernel::kScalar;
  if (name == "simd") {
    if (SimdRunsHere()) return Kernel::kSimd;
    return Error{ErrorCode::kUsage, "--kernel = simd: this processor has no AVX2 and FMA"};
  }
  return Error{ErrorCode::kUsage, fmt::format("--kernel = {}: must be auto, scalar or simd", name)};
}

std::string_view KernelName(Kernel kernel) { return kernel == Kernel::kScalar ? "scalar" : "simd"; }

}  // namespace fedgen
