// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <span>

#include "fedgen/base/hash.h"
#include "fedgen/base/text.h"
#include "fedgen/base/version.h"
#include "fedgen/cli/commands.h"
#include "fedgen/cli/live_view.h"
#include "fedgen/cli/print.h"
#include "fedgen/cli/progress.h"
#include "fedgen/fuse/checkpoint.h"
#include "fedgen/policy/policy_file.h"
#include "fedgen/report/summary_text.h"
#include "fedgen/run/certify.h"
#include "fedgen/run/config.h"
#include "fedgen/run/guarantees.h"
#include "fedgen/run/race.h"
#include "fedgen/run/run_files.h"
#include "fedgen/run/run_summary.h"
#include "fedgen/run/run_tables.h"

namespace fedgen {
namespace {

namespace fs = std::filesystem;

// Checkpoints hold four vectors per learner; this is a thousand learners of a large network.
constexpr std::size_t kMaxCheckpointBytes = std::size_t{4} << 30;

/// What a run is: everything that its bytes depend on, and where they go.
struct Run {
  RunFiles files;
  RunIdentity identity;
  Config config;
  Kernel kernel = BestKernel();
  int num_threads = 1;

  Key seed() const { return Key(identity.seed); }
  std::string Fingerprint() const {
    std::string text = fmt::format("{}\n{}", identity.seed, config.resolved);
    for (const LearnerSettings& learner : config.training.learners) {
      if (learner.initial_policy) text += PolicyToBinary(*learner.initial_policy);
    }
    return Sha256Hex(text);
  }
};

MetricsRow MetricsOf(const RoundReport& report, std::size_t learner) {
  const LearnerRound& from = report.learners[learner];
  MetricsRow row;
  row.round = report.round;
  row.learner = static_cast<int>(learner) + 1;
  row.state = from.adopted   ? LearnerPhase::kAdopted
              : from.resting ? LearnerPhase::kResting
              : from.stopped ? LearnerPhase::kStopped
                             : LearnerPhase::kRunning;
  row.y = from.y;
  row.b = from.b;
  if (!from.was_stopped) {
    row.z_norm = from.z_norm;
    row.spread = from.spread;
  }
  row.q = from.threshold;
  row.step = from.step;
  if (from.adopted) row.adopted_from = from.adopted_from + 1;
  row.zeta = from.zeta;
  if (report.incumbent) {
    row.incumbent_learner = report.incumbent->learner + 1;
    row.incumbent_round = report.incumbent->round;
    row.incumbent_y = report.incumbent->y;
    row.incumbent_b = report.incumbent->b;
  }
  row.episodes = from.episodes;
  return row;
}

// How the learners' policies, and the incumbent, do on worlds that play no part in training.
std::string TruthRows(const Run& run, const Federation& federation, int round) {
  const Mlp shape = ShapeOf(run.config.training);
  EvaluateOptions options;
  options.num_worlds = run.config.track_worlds;
  options.starts_per_world = run.config.task().world.start.per_world;
  options.num_threads = run.num_threads;
  options.kernel = run.kernel;
  const WorldSource worlds =
      DrawnWorlds(run.config.task(), run.seed().Fork(Stream::kEvaluation), run.kernel);
  std::string rows;
  const auto add = [&](std::optional<int> learner, const std::vector<float>& theta) {
    const Policy policy = MlpOf(shape, theta);
    const Tally tally = Evaluate(run.config.task(), policy, worlds, options);
    TruthRow row;
    row.round = round;
    row.learner = learner;
    row.worlds = options.num_worlds;
    row.cost = tally.cost_sum / static_cast<double>(tally.episodes);
    row.safe_rate = static_cast<double>(tally.reached) / static_cast<double>(tally.episodes);
    rows += FormatRow(row) + "\n";
  };
  for (const auto& learner : federation.learners()) {
    add(learner->index() + 1, learner->state().search.mu);
  }
  if (const auto incumbent = federation.incumbent()) add(std::nullopt, incumbent->theta);
  return rows;
}

Result<void> SavePolicyOf(const Run& run, const std::string& name, std::span<const float> theta) {
  return SavePolicy(MlpOf(ShapeOf(run.config.training), theta), run.files.Policy(name),
                    IfExists::kReplace);
}

std::string InitialName(std::size_t learner) { return fmt::format("initial-{}", learner + 1); }

Result<void> SaveInitialPolicies(const Run& run,
                                 std::span<const std::vector<float>> initial_thetas) {
  for (std::size_t i = 0; i < initial_thetas.size(); ++i) {
    if (auto saved = SavePolicyOf(run, InitialName(i), initial_thetas[i]); !saved) return saved;
  }
  return {};
}

// Rounds until the run is over. After each: rows, then a checkpoint; a kill in between costs a
// round, which is then run again to the same bytes.
Result<void> RunRounds(const Run& run, Federation& federation, KeptTables& tables) {
  const int num_rounds = run.config.training.federation.rounds;
  LiveView view(num_rounds, federation.round());
  const auto& learners = federation.learners();
  if (federation.round() == 0 && run.config.track_every > 0) {
    const std::string rows = TruthRows(run, federation, 0);
    if (auto done = tables.truth.Append(rows); !done) return done;
  }
  while (federation.FindEnding() == Ending::kNotYet) {
    const auto begin = std::chrono::steady_clock::now();
    const Result<RoundReport> report = federation.Round();
    if (!report) return report.error();
    tables.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    view.Show(*report);
    for (const std::string& remark : report->remarks) PrintError("{}\n", remark);

    std::string rows;
    for (std::size_t i = 0; i < learners.size(); ++i) {
      rows += FormatRow(MetricsOf(*report, i)) + "\n";
    }
    if (auto done = tables.metrics.Append(rows); !done) return done;
    const TimingRow timing{report->round, tables.seconds, report->episodes};
    if (auto done = AppendToFile(run.files.Timing(), FormatRow(timing) + "\n"); !done) return done;
    const bool last = federation.FindEnding() != Ending::kNotYet;
    if (run.config.track_every > 0 && (last || report->round % run.config.track_every == 0)) {
      const std::string truth = TruthRows(run, federation, report->round);
      if (auto done = tables.truth.Append(truth); !done) return done;
    }
    Checkpoint checkpoint = CheckpointOf(federation, run.Fingerprint());
    checkpoint.beside = {tables.metrics.Mark(), tables.truth.Mark()};
    auto done = WriteFileAtomically(run.files.Checkpoint(), CheckpointToBytes(checkpoint),
                                    IfExists::kReplace);
    if (!done) return done;
  }
  view.Finish();
  return {};
}

// The race, the certificate, and everything that is written once.
Result<void> Conclude(const Run& run, const Federation& federation) {
  const Config& config = run.config;
  RunSummary summary;
  summary.program = kVersion;
  summary.config_name = run.identity.config_name;
  summary.seed = run.identity.seed;
  summary.algorithm = config.training.federation.algorithm;
  summary.ending = federation.FindEnding();
  summary.rounds = federation.round();
  summary.episodes = federation.episodes();
  summary.incumbent = federation.incumbent();
  summary.guarantees = WhatHolds(config.training);
  summary.warnings = Warnings(config.training);
  for (Guarantee& guarantee : summary.guarantees) {
    if (guarantee.name != "T4" || federation.FindEnding() == Ending::kSettled) continue;
    guarantee.reason = (guarantee.standing == Standing::kNo ? guarantee.reason + "; " : "") +
                       "the run ended before it had settled";
    guarantee.standing = Standing::kNo;
  }
  for (const auto& learner : federation.learners()) {
    const LearnerState& state = learner->state();
    summary.learners.push_back(state);
    const int number = learner->index() + 1;
    if (state.first_stop > 0) {
      const auto saved =
          SavePolicyOf(run, fmt::format("first-stop-{}", number), state.first_stopped);
      if (!saved) return saved;
    }
    if (auto saved = SavePolicyOf(run, fmt::format("final-{}", number), state.search.mu); !saved) {
      return saved;
    }
  }
  if (summary.incumbent) {
    if (auto saved = SavePolicyOf(run, "incumbent", summary.incumbent->theta); !saved) return saved;
  }

  summary.race = Racers(federation, ShapeOf(config.training));
  EvaluateOptions options;
  options.num_worlds = config.selection_worlds;
  options.starts_per_world = config.task().world.start.per_world;
  summary.race_starts = options.starts_per_world;
  options.num_threads = run.num_threads;
  options.kernel = run.kernel;
  {
    Progress progress("race", "episodes",
                      options.num_worlds * options.starts_per_world *
                          static_cast<std::int64_t>(summary.race.size()));
    summary.winner = Race(
        config.task(), DrawnWorlds(config.task(), run.seed().Fork(Stream::kSelection), run.kernel),
        options, config.prize, summary.race, [&](std::int64_t done) { progress.Update(done); });
  }
  const Mlp& best = summary.race[summary.winner].policy;
  for (const Racer& racer : summary.race) {
    if (racer.name != "average") continue;
    const auto saved = SavePolicy(racer.policy, run.files.Policy("average"), IfExists::kReplace);
    if (!saved) return saved;
  }
  if (auto saved = SavePolicy(best, run.files.Policy("best"), IfExists::kReplace); !saved) {
    return saved;
  }

  CertifyOptions certify;
  certify.num_worlds = config.certificate_worlds;
  certify.confidence = config.confidence;
  certify.num_threads = run.num_threads;
  certify.kernel = run.kernel;
  Progress progress("certify", "episodes", certify.num_worlds * options.starts_per_world);
  const Result<Certificate> certificate =
      Certify(config.task(), best, certify, [&](std::int64_t done) { progress.Update(done); });
  if (!certificate) return certificate.error();
  summary.certificate = *certificate;
  if (auto saved = WriteFileAtomically(run.files.Certificate(), CertificateToJson(*certificate),
                                       IfExists::kReplace);
      !saved) {
    return saved;
  }
  if (auto saved =
          WriteFileAtomically(run.files.Summary(), RunSummaryJson(summary), IfExists::kReplace);
      !saved) {
    return saved;
  }
  Print("{}\ncertificate\n  {}\n", RunSummaryText(summary), Summary(*certificate));
  return {};
}

// Without a checkpoint a run begins again, which is right only if no round was finished. (The rows
// of the first are written before its checkpoint.)
Result<void> CheckNothingIsLost(const RunFiles& files) {
  if (!fs::exists(files.Metrics())) return {};
  const Result<std::vector<MetricsRow>> rows = LoadMetrics(files.Metrics());
  if (!rows || rows->empty() || rows->back().round <= 1) return {};
  return Error{ErrorCode::kData,
               fmt::format("{}: is missing, though {} has {} rounds", files.Checkpoint(),
                           files.Metrics(), rows->back().round)};
}

Result<void> LoadInitialPolicies(Config& config) {
  const Mlp shape = ShapeOf(config.training);
  for (std::size_t i = 0; i < config.initial_policies.size(); ++i) {
    const std::string& path = config.initial_policies[i];
    if (path.empty()) continue;
    Result<Mlp> mlp = LoadPolicy(path);
    if (!mlp) return mlp.error();
    const bool fits =
        mlp->Shape() == shape.Shape() && mlp->num_beams == shape.num_beams &&
        mlp->range_code == shape.range_code && mlp->activation == shape.activation &&
        mlp->output_map == shape.output_map && mlp->max_range == shape.max_range &&
        mlp->control_limit == shape.control_limit && mlp->range_offset == shape.range_offset &&
        mlp->state_inputs == shape.state_inputs && mlp->goal_inputs == shape.goal_inputs;
    if (!fits) {
      return Error{
          ErrorCode::kMismatch,
          fmt::format("{}: a {} network; [policy], [lidar] and [robot] ask for {}, or for other "
                      "inputs, ranges or limits",
                      path, mlp->Shape(), shape.Shape())};
    }
    config.training.learners[i].initial_policy = *std::move(mlp);
  }
  return {};
}

Result<Run> StartRun(const TrainCommand& command) {
  std::vector<std::string> overrides = command.overrides;
  for (const std::string& given : overrides) {
    const std::string key = given.substr(0, given.find_first_of(" \t="));
    const bool twice = (command.learners > 0 && key == "federation.learners") ||
                       (!command.algorithm.empty() && key == "federation.algorithm");
    if (!twice) continue;
    return Error{ErrorCode::kUsage,
                 fmt::format("--set {}: there is a flag for that key, and it is given too", given)};
  }
  if (command.learners > 0) {
    overrides.push_back(fmt::format("federation.learners={}", command.learners));
  }
  if (!command.algorithm.empty()) {
    overrides.push_back("federation.algorithm=" + command.algorithm);
  }
  Result<Config> config = LoadConfig(command.config, overrides);
  if (!config) return config.error();
  if (auto loaded = LoadInitialPolicies(*config); !loaded) return loaded.error();
  const std::uint64_t seed = command.seed.value_or(1);
  const std::string stem = fs::path(command.config).stem().string();
  const std::string directory =
      command.out.empty() ? fmt::format("runs/{}-{}-seed{}", stem,
                                        AlgorithmName(config->training.federation.algorithm), seed)
                          : command.out;
  const RunIdentity identity{seed, stem};
  // The run keeps what it begins with: the files named in the configuration may go or change.
  std::vector<FileToBegin> given;
  for (std::size_t i = 0; i < config->training.learners.size(); ++i) {
    const auto& initial = config->training.learners[i].initial_policy;
    if (initial) given.push_back({InitialName(i), PolicyToBinary(*initial)});
  }
  Result<RunFiles> files = CreateRun(directory, identity, config->resolved, given);
  if (!files) return files.error();
  return Run{*std::move(files), identity, *std::move(config)};
}

Result<Run> ReopenRun(const TrainCommand& command) {
  Result<RunFiles> files = OpenRun(command.resume);
  if (!files) return files.error();
  const Result<RunIdentity> identity = LoadRunIdentity(*files);
  if (!identity) return identity.error();
  Result<Config> config = LoadConfig(files->Config());
  if (!config) return config.error();
  for (std::size_t i = 0; i < config->initial_policies.size(); ++i) {
    if (config->initial_policies[i].empty()) continue;
    config->initial_policies[i] = files->Policy(InitialName(i));
  }
  if (auto loaded = LoadInitialPolicies(*config); !loaded) return loaded.error();
  return Run{*std::move(files), *identity, *std::move(config)};
}

}  // namespace

Result<void> RunTrain(const TrainCommand& command) {
  if (!command.resume.empty() &&
      (!command.config.empty() || !command.out.empty() || !command.overrides.empty() ||
       !command.algorithm.empty() || command.learners > 0 || command.seed)) {
    return Error{ErrorCode::kUsage,
                 "--resume continues a run as it was started: it goes with --threads and "
                 "--no-figures only"};
  }
  if (command.resume.empty() && command.config.empty()) {
    return Error{ErrorCode::kUsage, "--config or --resume is required"};
  }
  const Result<int> num_threads = NumThreads(command.threads);
  if (!num_threads) return num_threads.error();
  Result<Run> run = command.resume.empty() ? StartRun(command) : ReopenRun(command);
  if (!run) return run.error();
  const Result<RunLock> lock = RunLock::Take(run->files);
  if (!lock) return lock.error();
  run->num_threads = *num_threads;

  Federation federation =
      MakeFederation(run->config.training, run->seed(), run->kernel, run->num_threads);
  std::vector<std::vector<float>> initial_thetas;  // [learners], before the run is put where it was
  for (const auto& learner : federation.learners()) {
    initial_thetas.push_back(learner->state().search.mu);
  }
  std::vector<FileMark> marks;
  if (fs::exists(run->files.Checkpoint())) {
    const std::string path = run->files.Checkpoint();
    const Result<std::string> bytes = ReadFile(path, kMaxCheckpointBytes);
    if (!bytes) return bytes.error();
    const Result<Checkpoint> checkpoint = CheckpointFromBytes(*bytes, path);
    if (!checkpoint) return checkpoint.error();
    if (auto done = Restore(*checkpoint, run->Fingerprint(), path, federation); !done) return done;
    marks = checkpoint->beside;
  } else if (auto lost = CheckNothingIsLost(run->files); !lost) {
    return lost;
  }
  Result<KeptTables> tables = run->files.KeepRounds(federation.round(), marks);
  if (!tables) return tables.error();

  // Now that nothing is wrong, what there is to write and to say.
  if (auto saved = SaveInitialPolicies(*run, initial_thetas); !saved) return saved;
  for (const std::string& warning : Warnings(run->config.training)) {
    PrintError("warning: {}\n", warning);
  }
  if (federation.round() > 0) {
    PrintError("{}: going on after round {}\n", run->files.directory(), federation.round());
  } else if (!command.resume.empty()) {
    PrintError("{}: no round was finished, beginning again\n", run->files.directory());
  }
  PrintError("{}: {}, {}, seed {}\n", run->files.directory(),
             Counted(static_cast<std::int64_t>(federation.learners().size()), "learner"),
             Counted(run->config.training.federation.rounds, "round"), run->identity.seed);
  if (auto done = RunRounds(*run, federation, *tables); !done) return done;
  if (auto done = Conclude(*run, federation); !done) return done;
  if (!command.no_figures) {
    if (auto drawn = DrawRun({run->files.directory(), 1}); !drawn) return drawn.error();
  }
  Print("\n{}/: policies/best.fgp, certificate.json, summary.json{}\n", run->files.directory(),
        command.no_figures ? "" : ", figures/");
  return {};
}

}  // namespace fedgen
