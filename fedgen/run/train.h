// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fedgen/base/kernel.h"
#include "fedgen/base/result.h"
#include "fedgen/fuse/exchange.h"
#include "fedgen/fuse/host.h"
#include "fedgen/rollout/evaluate.h"
#include "fedgen/run/config.h"
#include "fedgen/run/run_summary.h"

namespace fedgen {

// A run from its first round to its certificate. The loop knows nobody: the terminal's live view,
// the tables, the checkpoints and whatever comes later are listeners.
//
//   Host host = MakeHost(...);
//   const Finalists finalists = FEDGEN_TRY(Train(host, exchange, listeners));
//   const RunSummary summary = FEDGEN_TRY(Conclude(experiment, host, finalists, listeners));

/// Everything that the bytes of a run depend on, and how they are computed.
struct Experiment {
  Config config;
  std::uint64_t seed = 1;        // names everything that is drawn
  Kernel kernel = BestKernel();  // changes no bit
  int num_threads = 1;           // changes no bit

  const TrainingSettings& training() const { return config.training; }
  const Task& task() const { return config.task(); }
  Key key() const { return Key(seed); }
  /// Names the run: a hash of configuration (but for the number of rounds), seed and given initial
  /// policies.
  std::string Fingerprint() const;
  /// How policies are measured in this many worlds of the task.
  EvaluateOptions Evaluation(std::int64_t num_worlds) const;
  /// The worlds of the task that this stream of the seed names.
  WorldSource Worlds(Stream stream) const;
};

/// What policies do in the first `num_worlds` worlds of Stream::kEvaluation, which train and choose
/// nothing. Equal policies are driven once: learners that rest all hold the incumbent.
class UnseenWorlds {
 public:
  UnseenWorlds(const Experiment& experiment, std::int64_t num_worlds);

  const Tally& Measure(std::span<const float> theta);
  std::size_t num_driven() const { return known_.size(); }

 private:
  const Experiment& experiment_;
  EvaluateOptions options_;
  WorldSource worlds_;
  Mlp shape_;
  std::map<std::string, Tally> known_;  // by theta's hash
};

/// A part of the memory that a run needs, and the option that asks for it.
struct MemoryPart {
  std::string option;  // "learner.pairs = 60"
  std::string why;     // "8 learners x 60 directions x 4,052,001 parameters"
  double bytes = 0;    // at least
};

/// The most that this process may have: the machine's memory with its swap, or less if the address
/// space is limited (ulimit -v).
double MemoryLimit();

double TotalBytes(const std::vector<MemoryPart>& parts);

/// "800 MB", "7.8 GB".
std::string BytesText(double bytes);

/// Refuses parts that together are more than the limit, in the name of the largest: "learner.pairs
/// = 60: needs at least 7.8 GB of memory (8 learners x 60 directions x 4,052,001 parameters), 800
/// MB are available".
Result<void> CheckMemory(const std::vector<MemoryPart>& parts, double limit = MemoryLimit(),
                         ErrorCode code = ErrorCode::kConfig);

/// What a run needs of memory at the least, by the options that ask for it. Drawing, reporting and
/// what the libraries take come on top.
std::vector<MemoryPart> MemoryOf(const Config& config, int num_threads);

/// What happens in a run, as it happens. An error ends the run.
class RunListener {
 public:
  RunListener() = default;
  virtual ~RunListener() = default;
  RunListener(const RunListener&) = delete;
  RunListener& operator=(const RunListener&) = delete;

  /// Before the first round here. A run that goes on has host.round() > 0.
  virtual Result<void> OnBegin(const Host& /*host*/) { return {}; }
  /// After a round. `seconds` is what the round took, without the listeners.
  virtual Result<void> OnRound(const Host& /*host*/, const RoundReport& /*report*/,
                               double /*seconds*/) {
    return {};
  }
  /// After the last round.
  virtual Result<void> OnEnd(const Host& /*host*/, const Finalists& /*finalists*/) { return {}; }
  /// During the race, the search for ways and the certification ("race", "search", "certify"), in
  /// episodes.
  virtual void OnProgress(std::string_view /*what*/, std::int64_t /*done*/,
                          std::int64_t /*total*/) {}
};
using RunListeners = std::span<RunListener* const>;

/// Runs rounds until the run is over. A host that has no round behind it joins first.
Result<Finalists> Train(Host& host, Exchange& exchange, RunListeners listeners);

/// A summary of the run before there is a race or a certificate.
RunSummary SummaryOf(const Experiment& experiment, const Host& host, const Finalists& finalists);

/// The certificate of the race's winner in the experiment's task.
Result<Certificate> CertifyWinner(const Experiment& experiment, const RunSummary& summary,
                                  RunListeners listeners);

/// The race of a run in the worlds of this seed's Stream::kSelection.
RaceCourse CourseOf(const Experiment& experiment, std::uint64_t seed);

/// Whether a run ends with a certificate.
enum class Certifying { kYes, kNo };

/// The race, what it is compared with, the certificate of its winner, and what is to be said about
/// the run.
Result<RunSummary> Conclude(const Experiment& experiment, const Host& host,
                            const Finalists& finalists, RunListeners listeners,
                            Certifying certifying = Certifying::kYes);

}  // namespace fedgen
