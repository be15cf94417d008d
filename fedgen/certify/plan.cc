// SPDX-License-Identifier: Apache-2.0
#include "fedgen/certify/plan.h"

#include "fedgen/base/check.h"
#include "fedgen/certify/bounds.h"
#include "fedgen/certify/ladder.h"

namespace fedgen {

std::vector<PlanRow> PlanRungs(double safe, double confidence, double assume) {
  FEDGEN_CHECK(0 < safe && safe < assume && assume <= 1, "safe = {}, assume = {}", safe, assume);
  std::vector<PlanRow> rows;
  rows.reserve(kLadder.size());
  for (const Rung& rung : kLadder) {
    const double risk = StatementRisk(rung.worlds, confidence);
    // The tail grows with the failures: the most that certify lie in [certifies, too_many).
    std::int64_t certifies = -1, too_many = rung.worlds;
    while (too_many - certifies > 1) {
      const std::int64_t middle = certifies + (too_many - certifies) / 2;
      (BinomialAtMost(middle, rung.worlds, 1 - safe) <= risk ? certifies : too_many) = middle;
    }
    if (certifies < 0) continue;
    rows.push_back({rung.worlds, certifies, BinomialAtMost(certifies, rung.worlds, 1 - assume)});
  }
  return rows;
}

}  // namespace fedgen
