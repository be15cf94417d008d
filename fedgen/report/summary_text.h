// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "fedgen/run/run_summary.h"

namespace fedgen {

/// Several lines for the terminal: how it ended, the race, the guarantees, the certificate.
std::string RunSummaryText(const RunSummary& summary);

}  // namespace fedgen
