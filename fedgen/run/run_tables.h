// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fedgen/base/result.h"
#include "fedgen/fuse/host.h"

namespace fedgen {

// What a training run leaves behind, in tables: what was learned (metrics.csv), what it is really
// worth (truth.csv), and what it cost (timing.csv).
//
// Each is a CSV file without quotes: the header line below, then one row per line, every line ended
// by a newline. Numbers have the fewest digits that give the same double back; what was not
// measured is empty, yes is 1 and no is 0. Rows are sorted, with no two for the same thing.
// Learners are numbered from 1; `average` is the Cloud's own candidate. Round k is the k-th
// exchange with the Cloud; round 0 in truth and timing is before the first.
//
// Reading is strict: another header, a missing or unknown column, a number out of its range, rows
// out of order or a last line without its newline is a kData error `file:line: column = value:
// rule`. Limits: 256 MiB a file, 4 KiB a line.

inline constexpr std::size_t kMaxRunFileBytes = std::size_t{256} << 20;

inline constexpr std::string_view kMetricsHeader =
    "round,learner,state,took_stock,kept_policy,y,b,z_norm,q,spread,step,adopted_from,zeta,"
    "incumbent_learner,incumbent_round,incumbent_y,incumbent_b,episodes";

/// One learner in one round, sorted by round and then learner.
struct MetricsRow {
  int round = 1;    // >= 1
  int learner = 1;  // >= 1
  LearnerPhase state = LearnerPhase::kRunning;
  bool took_stock = false;            // y and b are of many more worlds than usual (Eq. 43)
  bool kept_policy = false;           // the policy after this round is the one before
  double y = 1;                       // mean cost it measured, in [0, 1]
  double b = 0;                       // its bias: the cost is at most y + b (T1); >= 0
  std::optional<double> z_norm = {};  // norm of the gradient estimate, >= 0; none if not measured
  std::optional<double> q = {};       // threshold of z_norm, >= 0; none if it did not decide
  std::optional<double> spread = {};  // of the gradient estimate, >= 0; none if not measured
  double step = 0;                    // length factor of the gradient step, >= 0; 0 for no step
  std::optional<LearnerId> adopted_from = {};  // given if and only if kAdopted
  double zeta = 1;                             // y of what it adopted last, in [0, 1]; 1 before
  LearnerId incumbent_learner;                 // which submitted the incumbent after this round
  int incumbent_round = 1;                     // and when, in 1..round
  double incumbent_y = 1;                      // in [0, 1]
  double incumbent_b = 0;                      // >= 0
  std::int64_t episodes = 0;                   // training episodes of this learner so far, >= 0

  bool operator==(const MetricsRow&) const = default;
};

inline constexpr std::string_view kTruthHeader = "round,learner,worlds,starts,cost,safe_rate";

/// What a policy does in fresh worlds, which trained and chose nothing. Sorted by round, then
/// learners by number, then the incumbent.
struct TruthRow {
  int round = 0;                    // >= 0: the policy after this round
  std::optional<int> learner = {};  // >= 1; none for the incumbent
  std::int64_t worlds = 1;          // >= 1
  int starts = 1;                   // in each of them, >= 1
  double cost = 1;                  // mean J, in [0, 1]
  double safe_rate = 0;             // share of safe arrivals, in [0, 1]

  bool operator==(const TruthRow&) const = default;
};

inline constexpr std::string_view kTimingHeader = "round,seconds,episodes";

/// What the run took until the end of a round. Rounds increase; the others never fall.
struct TimingRow {
  int round = 0;              // >= 0
  double seconds = 0;         // of training, without evaluation, >= 0
  std::int64_t episodes = 0;  // of all learners, >= 0

  bool operator==(const TimingRow&) const = default;
};

/// A row as one line, without the newline. Requires a row within the ranges above.
std::string FormatRow(const MetricsRow& row);
std::string FormatRow(const TruthRow& row);
std::string FormatRow(const TimingRow& row);

/// Reads a whole table; `name` stands for the file in messages.
Result<std::vector<MetricsRow>> ParseMetrics(std::string_view text, const std::string& name);
Result<std::vector<TruthRow>> ParseTruth(std::string_view text, const std::string& name);
Result<std::vector<TimingRow>> ParseTiming(std::string_view text, const std::string& name);

/// The same from a file.
Result<std::vector<MetricsRow>> LoadMetrics(const std::string& path);
Result<std::vector<TruthRow>> LoadTruth(const std::string& path);
Result<std::vector<TimingRow>> LoadTiming(const std::string& path);

}  // namespace fedgen
