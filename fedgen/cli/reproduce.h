// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "fedgen/cli/commands.h"
#include "fedgen/run/campaign.h"

namespace fedgen {

// The experiments behind `fedgen reproduce`. Each runs its parts in the campaign, prints its result
// and writes it into its own directory. --quick stands for the same with few rounds and worlds:
// whether it works, not what comes out.

/// The configuration of the command (or the experiment's own, if it names none) with the command's
/// overrides, the quick ones if it is quick, and these.
Result<Config> LoadExperiment(const ReproduceCommand& command, const std::string& default_config,
                              const std::vector<std::string>& overrides);

/// Runs the parts and tells on stderr how far they are.
Result<std::vector<RunOutcome>> RunParts(const Campaign& campaign, const std::string& experiment,
                                         const std::vector<Part>& parts);

/// "paper-tables, seed 1", and that it is quick if so.
std::string SourceText(const ReproduceCommand& command, const std::string& default_config);

/// --seeds, or 2 if quick, or what the experiment wants.
int NumSeeds(const ReproduceCommand& command, int wanted);

inline constexpr char kPaperTablesConfig[] = "configs/paper-tables.toml";
inline constexpr char kComparisonConfig[] = "configs/default.toml";
inline constexpr int kTable2Seeds = 5;
inline constexpr int kTradeoffSeeds = 3;
inline constexpr int kComparisonSeeds = 5;

Result<void> ReproduceTradeoffs(const ReproduceCommand& command, const Campaign& campaign);
Result<void> ReproduceComparison(const ReproduceCommand& command, const Campaign& campaign);

}  // namespace fedgen
