// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fedgen/base/result.h"
#include "fedgen/cli/commands.h"
#include "fedgen/run/campaign.h"
#include "fedgen/run/config.h"
#include "fedgen/run/run_files.h"

namespace fedgen {

// The experiments behind `fedgen reproduce`, and what they share. Each runs its parts in the
// campaign, prints its result and writes it into its own directory. --quick does the same with few
// rounds and worlds: it shows that an experiment works, not what it comes to.
//
// reproduce.cc has the paper's experiments, reproduce_comparison.cc those that compare.

/// How many checks an experiment has made, and how many of them its results miss.
struct Checked {
  int made = 0;
  int missed = 0;
};

struct NamedExperiment {
  std::string name;                  // also of its directory
  std::vector<std::string> configs;  // that it reads; --config replaces the only one
  std::function<Result<Checked>(const ReproduceCommand&, const Campaign&)> run;
  int seeds = 0;                 // that it wants; 0 if it has one and cannot have more
  std::uint64_t first_seed = 1;  // without --seed
  std::string whole = {};        // the experiment that it is a part of, which runs it; or empty
  std::vector<std::string> sets = {};  // keys that it sets, so nobody else may
};

/// Comparisons of algorithms and of estimators.
std::vector<NamedExperiment> ComparisonExperiments();

/// The configuration of the command, or the experiment's own if the command names none, with the
/// overrides of the command, of --quick and of the experiment.
Result<Config> LoadExperiment(const ReproduceCommand& command, const std::string& default_config,
                              const std::vector<std::string>& overrides);

/// "paper-tables".
std::string ConfigName(const ReproduceCommand& command, const std::string& default_config);

/// The same, the overrides, and a note if it is quick.
std::string SourceText(const ReproduceCommand& command, const std::string& default_config);

/// --seeds, or 2 if quick, or what the experiment wants.
int NumSeeds(const ReproduceCommand& command, int wanted);

/// The index-th seed from --seed on, or from the experiment's own first.
std::uint64_t SeedOf(const ReproduceCommand& command, int index, std::uint64_t first = 1);

/// On how many worlds a policy is measured.
std::int64_t NumWorlds(const ReproduceCommand& command, std::int64_t wanted = 10000);

/// A run; its name is `what` and its seed.
Part MakePart(Config config, std::uint64_t seed, const std::string& what, std::int64_t worlds);

/// Runs the parts and reports progress on stderr.
Result<std::vector<RunOutcome>> RunParts(const Campaign& campaign, const std::string& experiment,
                                         const std::vector<Part>& parts);

/// Writes both forms of a table into the experiment's directory and prints the text.
Result<void> Publish(const Campaign& campaign, const std::string& name, const std::string& text,
                     const std::string& csv);

/// A whole run in the directory `name` of the experiment, with everything that `fedgen train`
/// writes. One of the same configuration and seed goes on where it was; any other is left as it is.
Result<RunFiles> TrainInside(const Campaign& campaign, const std::string& experiment,
                             const std::string& name, const Config& config,
                             const RunIdentity& identity);

}  // namespace fedgen
