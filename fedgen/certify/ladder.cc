// SPDX-License-Identifier: Apache-2.0
#include "fedgen/certify/ladder.h"

#include "fedgen/base/check.h"

namespace fedgen {

double RiskShare(std::int64_t worlds) {
  for (const Rung& rung : kLadder) {
    if (rung.worlds == worlds) return static_cast<double>(rung.share) / kShares;
  }
  FEDGEN_CHECK(false, "{} worlds: not a rung", worlds);
  return 0;
}

double StatementRisk(std::int64_t worlds, double confidence) {
  FEDGEN_CHECK(0 < confidence && confidence < 1, "confidence = {}", confidence);
  return (1 - confidence) / 2 * RiskShare(worlds);
}

}  // namespace fedgen
