// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fedgen/base/result.h"
#include "fedgen/run/config.h"
#include "fedgen/run/run_outcome.h"

namespace fedgen {

// Many training runs whose outcomes become one table, in a directory of their own.
//
//   reproduce.json    says who made the directory
//   cache/            the outcome of each finished run, named by all that it depends on
//   <experiment>/     results, and settings.txt: what they are results of
//
// An experiment that is run again with the same settings replaces its results by themselves. With
// other settings it is refused before anything is run: what took hours is not lost to a --quick.
//
// A campaign that was killed goes on where it was: runs that finished are read from the cache. A
// file there that is not whole is as good as none.

/// One training run, and what is measured at its end.
struct Part {
  std::string name;  // for people: "4 learners, seed 2"
  Config config;
  std::uint64_t seed = 1;
  std::int64_t worlds = 10000;  // on which each policy is measured (Stream::kEvaluation)
  bool stages = false;          // measure initial and first stopped policies as well
  bool race = false;            // find the best final (Stream::kSelection), and measure it
};

/// What a campaign tells while it runs. Each may be empty.
struct CampaignListener {
  /// Before the first run: how many of the parts have outcomes already, and how many episodes the
  /// others take at most.
  std::function<void(const std::string& experiment, std::size_t num_known, std::size_t num_parts,
                     std::int64_t num_episodes)>
      on_begin;
  /// After each round: how many of those episodes are behind it.
  std::function<void(std::int64_t episodes)> on_progress;
  /// After each run: which of how many it was.
  std::function<void(const Part& part, const RunOutcome& outcome, std::size_t number,
                     std::size_t num_missing, std::int64_t episodes)>
      on_part;
};

/// The complaint about a directory that holds something else.
Error LeftAsItIs(const std::string& directory, const std::string& what);

/// The settings of each experiment that will be run, as lines `key = value`.
using ExperimentSettings = std::map<std::string, std::string>;

class Campaign {
 public:
  /// Makes the directory, or takes up one that a campaign made. Refuses any other that is not
  /// empty, and one that holds results of other settings of these experiments.
  static Result<Campaign> Open(const std::string& directory, int num_threads,
                               ExperimentSettings settings);

  /// The outcomes of the parts, in order.
  Result<std::vector<RunOutcome>> Run(const std::string& experiment, const std::vector<Part>& parts,
                                      const CampaignListener& listener) const;

  /// Writes (or replaces) `experiment`/`name`.
  Result<void> Write(const std::string& experiment, const std::string& name,
                     const std::string& text) const;
  /// The directory of an experiment, which is made, with its settings in it.
  Result<std::string> Directory(const std::string& experiment) const;
  /// Where that is.
  std::string PathOf(const std::string& experiment) const { return directory_ + "/" + experiment; }

  int num_threads() const { return num_threads_; }

 private:
  Campaign(std::string directory, int num_threads, ExperimentSettings settings)
      : directory_(std::move(directory)),
        num_threads_(num_threads),
        settings_(std::move(settings)) {}
  std::string SettingsFile(const std::string& experiment) const {
    return PathOf(experiment) + "/settings.txt";
  }
  Result<void> CheckSettings(const std::string& experiment) const;
  std::string CacheFile(const Part& part) const;
  std::optional<RunOutcome> FindOutcome(const Part& part) const;
  Result<RunOutcome> RunPart(const Part& part,
                             const std::function<void(int round)>& on_round) const;

  std::string directory_;
  int num_threads_;
  ExperimentSettings settings_;
};

}  // namespace fedgen
