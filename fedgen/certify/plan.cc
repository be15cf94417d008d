// SPDX-License-Identifier: Apache-2.0
#include "fedgen/certify/plan.h"

#include <algorithm>
#include <cmath>

#include "fedgen/base/check.h"
#include "fedgen/certify/bounds.h"

namespace fedgen {
namespace {

constexpr std::int64_t kMostFailures = 20'000;
constexpr std::int64_t kMostWorlds = 1'000'000'000'000;

void CheckProbability(const char* name, double value) {
  FEDGEN_CHECK(0 < value && value < 1, "{} = {}", name, value);
}

}  // namespace

double JointConfidence(double confidence) {
  CheckProbability("confidence", confidence);
  return 1 - (1 - confidence) / 2;
}

std::int64_t WorldsNeeded(double safe, double confidence) {
  CheckProbability("safe", safe);
  CheckProbability("confidence", confidence);
  const double log_delta = std::log(1 - confidence);
  const double log_safe = std::log(safe);
  const auto certifies = [&](std::int64_t n) {
    return static_cast<double>(n) * log_safe <= log_delta;
  };
  auto n = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(log_delta / log_safe)));
  // The quotient may have been rounded across an integer.
  while (!certifies(n)) ++n;
  while (n > 1 && certifies(n - 1)) --n;
  return n;
}

std::optional<Plan> WorldsToSucceed(double safe, double confidence, double assume, double power) {
  CheckProbability("safe", safe);
  CheckProbability("confidence", confidence);
  CheckProbability("power", power);
  FEDGEN_CHECK(safe < assume && assume <= 1, "safe = {}, assume = {}", safe, assume);
  const double delta = 1 - confidence;
  std::int64_t n = 0;  // certifies with one failure less
  for (std::int64_t failures = 0; failures <= kMostFailures && n < kMostWorlds; ++failures) {
    // The tooth starts at the least n that certifies with this many failures. The tail falls as n
    // grows: double the stride until it is low enough, then halve.
    std::int64_t fails = n;
    std::int64_t stride = 1;
    while (BinomialAtMost(failures, fails + stride, 1 - safe) > delta) {
      fails += stride;
      stride *= 2;
    }
    n = fails + stride;
    while (n - fails > 1) {
      const std::int64_t middle = fails + (n - fails) / 2;
      (BinomialAtMost(failures, middle, 1 - safe) > delta ? fails : n) = middle;
    }
    const double succeeds = BinomialAtMost(failures, n, 1 - assume);
    if (succeeds >= power) return Plan{n, failures, succeeds};
  }
  return std::nullopt;
}

}  // namespace fedgen
