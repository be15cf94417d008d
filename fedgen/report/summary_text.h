// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "fedgen/run/run_summary.h"

namespace fedgen {

/// Who wins a race was lucky in it more often than not. Intervals of this confidence miss for any
/// of the racers with probability at most 1 %, so they hold for the winner however it was picked.
double RaceConfidence(std::size_t num_racers);

/// Several lines for the terminal: the certificate, how it ended, the race, what is proved.
std::string RunSummaryText(const RunSummary& summary);

}  // namespace fedgen
