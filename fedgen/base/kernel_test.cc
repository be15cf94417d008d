// SPDX-License-Identifier: Apache-2.0
#include "fedgen/base/kernel.h"

#include <gtest/gtest.h>

namespace fedgen {
namespace {

TEST(Kernel, ComesBackFromItsName) {
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    const Result<Kernel> named = KernelFromName(KernelName(kernel));
    ASSERT_TRUE(named);
    EXPECT_EQ(*named, kernel);
  }
  EXPECT_EQ(KernelName(Kernel::kScalar), "scalar");
  EXPECT_EQ(KernelName(Kernel::kSimd), "simd");
}

TEST(Kernel, IsTheBestOneForAuto) { EXPECT_EQ(*KernelFromName("auto"), BestKernel()); }

TEST(Kernel, IsRefusedByNameWhereItCannotRun) {
  const Result<Kernel> simd = KernelFromName("simd");
  EXPECT_EQ(simd.has_value(), BestKernel() == Kernel::kSimd);
}

TEST(Kernel, RefusesAnUnknownName) {
  for (const char* name : {"", "SIMD", "avx2", "scalar "}) {
    const Result<Kernel> refused = KernelFromName(name);
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
    EXPECT_EQ(refused.error().message,
              fmt::format("--kernel = {}: must be auto, scalar or simd", name));
  }
}

}  // namespace
}  // namespace fedgen
