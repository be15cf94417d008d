// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fedgen/base/result.h"
#include "fedgen/run/experiment.h"
#include "fedgen/run/race.h"

namespace fedgen {

// An experiment as a TOML file (docs/configuration.md lists every key). Every key has a default and
// may be left out; an unknown key, a wrong type or a value out of range is an error that names the
// file, the line, the key and the rule. Keys, ranges and help are described beside each struct
// (fedgen/base/option.h); those of this one in fedgen/run/config_options.cc.

inline constexpr int kMaxLearners = 1000;

struct Config {
  TrainingSettings training;         // task, network, federation, learners
  double initial_half_width = 0.02;  // of a new network's weights (DrawParameters)
  std::string imitate;               // name or file of the teacher; empty: none
  LearnerSettings learner;           // what [learner] says of all
  int num_learners = 8;
  int learner_tables = 0;                     // entries of [[learners]], the first learners'
  std::vector<std::string> initial_policies;  // [num_learners] files of theta_0; empty: drawn
  int track_every = 0;             // rounds between looks at the truth (truth.csv); 0 for never
  double track_growth = 1;         // 1..100; times as late comes the next one at least (IsDue)
  int track_worlds = 1000;         // worlds of each look
  int selection_worlds = 10000;    // on which the finals race
  Prize prize = Prize::kCost;      // for what
  int certificate_worlds = 30000;  // on which the winner is certified; a rung of the ladder
  double confidence = 0.99;        // of the certificate; another one adds a line

  std::string resolved;   // all of the above as TOML; reading it gives the same configuration
  std::string directory;  // of the file it came from: relative paths in it begin there

  const Task& task() const { return training.task; }
};

/// Writes `resolved` anew, after something else of the configuration was changed.
void Resolve(Config& config);

/// Gives a run another number of rounds and leaves everything that is done in a round as it is: a
/// schedule that was to arrive with the run's last round still arrives in that one.
void SetRounds(int rounds, Config& config);

/// Reads a configuration from text; `name` stands for the file in messages. Each override is
/// `key=value` in TOML's own spelling (strings may go without quotes) and replaces what the text
/// says.
Result<Config> ParseConfig(std::string_view text, const std::string& name,
                           std::span<const std::string> overrides = {});

/// The same from values that were read already. The line of a value says where it came from: of
/// the file `name`, 0 for --set, kSharedLine for what a federation shares.
Result<Config> ReadConfig(OptionValue root, const std::string& name);
inline constexpr int kSharedLine = -1;

/// Whether an override sets this key, however it is spelled: `federation.rounds` is set by
/// `federation.rounds=3` and by `federation = {rounds = 3}`.
bool Sets(const std::string& override_text, std::string_view key);

Result<Config> LoadConfig(const std::string& path, std::span<const std::string> overrides = {});

}  // namespace fedgen
