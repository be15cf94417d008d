// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/local_run.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "fedgen/base/file.h"
#include "fedgen/base/text.h"
#include "fedgen/fuse/checkpoint.h"
#include "fedgen/learn/navigation.h"
#include "fedgen/policy/policy.h"
#include "fedgen/policy/policy_file.h"
#include "fedgen/run/experiment.h"
#include "fedgen/run/race.h"
#include "fedgen/run/run_tables.h"

namespace fedgen {
namespace {

namespace fs = std::filesystem;

std::string InitialName(LearnerId learner) { return "initial-" + learner.name(); }
constexpr const char* kTeacherName = "teacher";
std::string GivenName(LearnerId learner) { return "given-" + learner.name(); }
std::string KeptPolicy(const std::string& name) { return fmt::format("policies/{}.fgp", name); }

Result<void> SavePolicyOf(const LocalRun& run, const std::string& name,
                          std::span<const float> theta) {
  return SavePolicy(MlpOf(ShapeOf(run.experiment.training()), theta), run.files.Policy(name),
                    IfExists::kReplace);
}

MetricsRow MetricsOf(const RoundReport& report, const LearnerRound& from) {
  MetricsRow row;
  row.round = report.round;
  row.learner = static_cast<int>(from.learner.number());
  row.state = from.phase;
  row.took_stock = from.took_stock;
  row.kept_policy = from.kept_policy;
  row.y = from.y;
  row.b = from.b;
  row.z_norm = from.z_norm;
  row.spread = from.spread;
  row.q = from.threshold;
  row.step = from.step;
  row.adopted_from = from.adopted_from;
  row.zeta = from.zeta;
  if (report.incumbent) {
    row.incumbent_learner = report.incumbent->learner;
    row.incumbent_round = report.incumbent->round;
    row.incumbent_y = report.incumbent->y;
    row.incumbent_b = report.incumbent->b;
  }
  row.episodes = from.episodes;
  return row;
}

// The Cloud, if it lives here, then the host.
Result<void> SaveCheckpoints(const RunFiles& files, const std::string& fingerprint,
                             const Host& host, const Cloud* cloud, std::vector<FileMark> beside) {
  if (cloud != nullptr) {
    const CloudCheckpoint of_cloud{fingerprint, cloud->state()};
    FEDGEN_TRY(WriteFileAtomically(files.CloudCheckpoint(), CheckpointToBytes(of_cloud),
                                   IfExists::kReplace));
  }
  HostCheckpoint of_host = CheckpointOf(host, fingerprint);
  of_host.beside = std::move(beside);
  return WriteFileAtomically(files.HostCheckpoint(), CheckpointToBytes(of_host),
                             IfExists::kReplace);
}

// Whether the truth is looked at in this round, be it the last one or not. Requires that it is
// looked at now and then.
bool IsLookDue(const Config& config, int round) {
  return IsDue(round, config.track_every, config.track_growth);
}

// Writes down what happens: rows, then the Cloud, then the host. A kill in between costs a round,
// which the host then repeats to the same bytes; a Cloud that is ahead of it gives the same
// answers.
class Recorder final : public RunListener {
 public:
  /// `cloud`: null if it lives elsewhere. `initial`: the policies that the learners begin with if
  /// the Cloud says nothing else.
  Recorder(const LocalRun& run, const Cloud* cloud, std::vector<std::vector<float>> initial,
           KeptTables& tables)
      : run_(run),
        fingerprint_(run.experiment.Fingerprint()),
        cloud_(cloud),
        initial_(std::move(initial)),
        tables_(tables) {}

  Result<void> OnBegin(const Host& host) override {
    for (std::size_t i = 0; i < initial_.size(); ++i) {
      FEDGEN_TRY(SaveInitial(host, *host.learners()[i], initial_[i]));
    }
    if (host.round() > 0) return {};
    if (run_.experiment.config.track_every > 0) {
      FEDGEN_TRY(tables_.truth.Append(TruthRows(host, std::nullopt)));
    }
    return {};
  }

  Result<void> OnRound(const Host& host, const RoundReport& report, double seconds) override {
    std::string rows;
    for (const LearnerRound& row : report.learners) {
      rows += FormatRow(MetricsOf(report, row)) + "\n";
    }
    FEDGEN_TRY(tables_.metrics.Append(rows));
    tables_.seconds += seconds;
    const TimingRow timing{report.round, tables_.seconds, report.episodes};
    // Nothing depends on it, so a power cut may cost its last rows.
    FEDGEN_TRY(AppendToFile(run_.files.Timing(), FormatRow(timing) + "\n", Durable::kSoon));
    const Config& config = run_.experiment.config;
    if (config.track_every > 0 &&
        (report.ending != Ending::kNotYet || IsLookDue(config, report.round))) {
      FEDGEN_TRY(tables_.truth.Append(TruthRows(host, report.incumbent)));
    }
    return SaveCheckpoints(run_.files, fingerprint_, host, cloud_,
                           {tables_.metrics.Mark(), tables_.truth.Mark()});
  }

  Result<void> OnEnd(const Host& host, const Finalists& finalists) override {
    for (const auto& learner : host.learners()) {
      const LearnerState& state = learner->state();
      if (state.first_stop > 0) {
        FEDGEN_TRY(SavePolicyOf(run_, "first-stop-" + learner->id().name(), state.first_stopped));
      }
      FEDGEN_TRY(SavePolicyOf(run_, "final-" + learner->id().name(), state.theta));
    }
    if (finalists.incumbent) {
      FEDGEN_TRY(SavePolicyOf(run_, "incumbent", finalists.incumbent->theta));
    }
    return {};
  }

 private:
  // Where a learner began. One that goes on has moved since, and a file that is gone is made again,
  // if it is known: in federated averaging it is the Cloud who knows.
  Result<void> SaveInitial(const Host& host, const Learner& learner,
                           const std::vector<float>& drawn) const {
    const std::string name = InitialName(learner.id());
    if (host.round() == 0) return SavePolicyOf(run_, name, learner.state().theta);
    if (fs::exists(run_.files.Policy(name))) return {};
    const bool averages = host.options().algorithm == Algorithm::kFedAvg;
    if (averages && cloud_ == nullptr) return {};
    const std::optional<Welcome> welcome =
        averages ? cloud_->WelcomeOf(learner.id()) : std::nullopt;
    return SavePolicyOf(run_, name, welcome ? welcome->start : drawn);
  }

  // How the learners' policies, and the incumbent, do on worlds that play no part in training.
  std::string TruthRows(const Host& host, const std::optional<Submission>& incumbent) const {
    const Experiment& experiment = run_.experiment;
    UnseenWorlds unseen(experiment, experiment.config.track_worlds);
    std::string rows;
    const auto add = [&](std::optional<int> learner, const std::vector<float>& theta) {
      const Tally& tally = unseen.Measure(theta);
      TruthRow row;
      row.round = host.round();
      row.learner = learner;
      row.worlds = experiment.config.track_worlds;
      row.starts = experiment.task().world.start.per_world;
      row.cost = MeanCost(tally);
      row.safe_rate = SafeRate(tally);
      rows += FormatRow(row) + "\n";
    };
    // In a federation the policy that everybody holds is looked at by whose it is.
    const bool alone = cloud_ == nullptr;
    for (const auto& learner : host.learners()) {
      if (alone && learner->resting()) continue;
      add(static_cast<int>(learner->id().number()), learner->state().theta);
    }
    const bool ours = incumbent && (!alone || host.Find(incumbent->learner) != nullptr);
    if (ours) add(std::nullopt, incumbent->theta);
    return rows;
  }

  const LocalRun& run_;
  std::string fingerprint_;
  const Cloud* cloud_;
  std::vector<std::vector<float>> initial_;  // [learners] theta
  KeptTables& tables_;
};

// Reads a policy that the configuration names. One of another body forgets it, if that is allowed.
Result<Mlp> LoadGivenPolicy(const std::string& path, OtherBodies other_bodies, const Config& config,
                            GivenPolicies& given) {
  Mlp mlp = FEDGEN_TRY(LoadPolicy(path));
  if (other_bodies == OtherBodies::kAllow) {
    const auto differs = ForgetBody(BodyOf(config.task()), mlp);
    if (differs) given.warnings.push_back(fmt::format("{}: {}", path, *differs));
  }
  return mlp;
}

// Whom drawn policies imitate: somebody known by name, or a network of any shape.
Result<void> LoadTeacher(OtherBodies other_bodies, Config& config, GivenPolicies& given) {
  if (config.imitate.empty()) return {};
  config.training.teacher = BuiltInPolicy(config.imitate);
  if (config.training.teacher) return {};
  const std::string path = fs::path(config.directory) / config.imitate;
  Result<Mlp> teacher = LoadGivenPolicy(path, other_bodies, config, given);
  if (!teacher) {
    if (fs::exists(path)) return teacher.error();
    return Error{teacher.error().code,
                 fmt::format("{} (policy.imitate names no built-in policy: straight, gap-follower)",
                             teacher.error().message)};
  }
  if (const auto mismatch = FindMismatch(Policy(*teacher), BodyOf(config.task()))) {
    return Error{ErrorCode::kMismatch, fmt::format("{}: {}", path, *mismatch)};
  }
  given.teacher = *teacher;
  config.training.teacher = *std::move(teacher);
  return {};
}

}  // namespace

Result<GivenPolicies> LoadGivenPolicies(OtherBodies other_bodies, Config& config) {
  const Mlp shape = ShapeOf(config.training);
  GivenPolicies given;
  FEDGEN_TRY(LoadTeacher(other_bodies, config, given));
  for (std::size_t i = 0; i < config.initial_policies.size(); ++i) {
    if (config.initial_policies[i].empty()) continue;
    const std::string path = fs::path(config.directory) / config.initial_policies[i];
    Mlp mlp = FEDGEN_TRY(LoadGivenPolicy(path, other_bodies, config, given));
    if (const auto mismatch = FindMismatch(mlp, shape)) {
      return Error{ErrorCode::kMismatch, fmt::format("{}: {}", path, *mismatch)};
    }
    given.policies[static_cast<std::uint32_t>(i)] = mlp;
    mlp.made_for = shape.made_for;
    config.training.learners[i].initial_policy = std::move(mlp);
  }
  return given;
}

namespace {

// Without a checkpoint a run begins again, which is right only if no round was finished. (The rows
// of the first are written before its checkpoint.)
Result<void> CheckNothingIsLost(const RunFiles& files) {
  if (fs::exists(files.CloudCheckpoint())) {
    const std::string path = files.CloudCheckpoint();
    const std::string bytes = FEDGEN_TRY(ReadFile(path, kMaxCheckpointBytes));
    const CloudState cloud = FEDGEN_TRY(CloudFromBytes(bytes, path)).cloud;
    if (cloud.step > 3) {
      return Error{ErrorCode::kData, fmt::format("{}: is missing, but {} is of a later round",
                                                 files.HostCheckpoint(), path)};
    }
  }
  if (!fs::exists(files.Metrics())) return {};
  const Result<std::vector<MetricsRow>> rows = LoadMetrics(files.Metrics());
  if (!rows || rows->empty() || rows->back().round <= 1) return {};
  return Error{ErrorCode::kData,
               fmt::format("{}: is missing, but {} holds {} rounds", files.HostCheckpoint(),
                           files.Metrics(), rows->back().round)};
}

// Rounds that are done stay done. A run that goes on has another round to do.
Result<void> CheckRounds(const LocalRun& run, int done, bool over) {
  const int rounds = run.experiment.training().federation.rounds;
  const int least = over ? done : done + 1;
  if (rounds >= least) return {};
  const std::string where =
      run.extended ? "--rounds" : fmt::format("{}: federation.rounds", run.files.Config());
  return Error{run.extended ? ErrorCode::kUsage : ErrorCode::kConfig,
               fmt::format("{} = {}: must be at least {}, the run has done {}", where, rounds,
                           least, Counted(done, "round"))};
}

// Puts the host where the run was, and returns what the tables held then; nothing if no round was
// finished.
Result<std::vector<FileMark>> ResumeHost(const LocalRun& run, Host& host) {
  const std::string path = run.files.HostCheckpoint();
  if (!fs::exists(path)) {
    if (fs::exists(run.files.OldCheckpoint())) {
      return Error{ErrorCode::kData,
                   fmt::format("{}: is of an older version: a run is continued by the program "
                               "that began it",
                               run.files.OldCheckpoint())};
    }
    FEDGEN_TRY(CheckNothingIsLost(run.files));
    return std::vector<FileMark>();
  }
  const std::string bytes = FEDGEN_TRY(ReadFile(path, kMaxCheckpointBytes));
  const HostCheckpoint checkpoint = FEDGEN_TRY(HostFromBytes(bytes, path));
  FEDGEN_TRY(Restore(checkpoint, run.experiment.Fingerprint(), path, host));
  return checkpoint.beside;
}

// The same with the Cloud, which may be a round ahead.
Result<std::vector<FileMark>> Resume(const LocalRun& run, Host& host, Cloud& cloud) {
  const bool is_new = !fs::exists(run.files.HostCheckpoint());
  std::vector<FileMark> marks = FEDGEN_TRY(ResumeHost(run, host));
  if (is_new) return marks;
  const std::string path = run.files.CloudCheckpoint();
  const std::string bytes = FEDGEN_TRY(ReadFile(path, kMaxCheckpointBytes));
  const CloudCheckpoint checkpoint = FEDGEN_TRY(CloudFromBytes(bytes, path));
  FEDGEN_TRY(Restore(checkpoint, run.experiment.Fingerprint(), path, cloud));
  const int ahead = cloud.round() - host.round();
  if (ahead < 0 || ahead > 1) {
    return Error{ErrorCode::kData,
                 fmt::format("{}: is of round {}, {} of round {}: they are not of one run",
                             run.files.HostCheckpoint(), host.round(), path, cloud.round())};
  }
  FEDGEN_TRY(CheckRounds(run, cloud.round(), checkpoint.cloud.ending != Ending::kNotYet));
  return marks;
}

// Another number of rounds: config.toml says so first, then the checkpoints whether the run is
// over. After a kill in between, a run with the new number finds checkpoints that say otherwise,
// and comes here again. The policies are looked at when a run ends; if it goes on instead, those
// rows go, as a run with this many rounds would not have them. Tables are cut (KeepRounds) only
// after the host's checkpoint expects it.
Result<void> ChangeRounds(const LocalRun& run, Host& host, const Cloud& cloud,
                          std::vector<FileMark>& marks) {
  const bool abreast = host.round() > 0 && host.round() == cloud.round();
  const Ending ending = abreast ? cloud.state().ending : host.ending();
  if (!run.extended && ending == host.ending()) return {};
  FEDGEN_TRY(run.files.CheckTables(host.round(), marks));
  if (run.extended) {
    FEDGEN_TRY(WriteFileAtomically(run.files.Config(), run.experiment.config.resolved,
                                   IfExists::kReplace));
  }
  if (ending == host.ending()) return {};
  const Config& config = run.experiment.config;
  const bool looked_at_the_end = config.track_every > 0 && !IsLookDue(config, host.round());
  if (ending == Ending::kNotYet && looked_at_the_end) {
    for (FileMark& mark : marks) {
      if (mark.name == fs::path(run.files.Truth()).filename()) {
        mark = FEDGEN_TRY(run.files.MarkWithout(host.round(), mark));
      }
    }
  }
  HostState state = host.state();
  state.ending = ending;
  host.set_state(std::move(state));
  return SaveCheckpoints(run.files, run.experiment.Fingerprint(), host, &cloud, marks);
}

}  // namespace

void NameKeptPolicies(Config& config) {
  for (std::size_t i = 0; i < config.initial_policies.size(); ++i) {
    if (config.initial_policies[i].empty()) continue;
    config.initial_policies[i] = KeptPolicy(GivenName(LearnerId(static_cast<std::uint32_t>(i))));
  }
  if (!config.imitate.empty() && !BuiltInPolicy(config.imitate)) {
    config.imitate = KeptPolicy(kTeacherName);
  }
  Resolve(config);
}

Result<LocalRun> StartRun(Config config, std::uint64_t seed, const std::string& config_name,
                          const std::string& directory, OtherBodies other_bodies,
                          std::vector<FileToBegin> begin_with) {
  GivenPolicies given = FEDGEN_TRY(LoadGivenPolicies(other_bodies, config));
  const RunIdentity identity{seed, config_name};
  // The run keeps what it begins with: the files named in the configuration may go or change.
  for (const auto& [learner, policy] : given.policies) {
    begin_with.push_back({KeptPolicy(GivenName(LearnerId(learner))), PolicyToBinary(policy)});
  }
  if (given.teacher) {
    begin_with.push_back({KeptPolicy(kTeacherName), PolicyToBinary(*given.teacher)});
  }
  NameKeptPolicies(config);
  RunFiles files = FEDGEN_TRY(CreateRun(directory, identity, config.resolved, begin_with));
  return LocalRun{
      std::move(files), identity, {std::move(config), seed}, false, std::move(given.warnings)};
}

namespace {

// The schedules of a learner that come to an end.
std::vector<std::string> WhatArrives(const LearnerSettings& learner) {
  std::vector<std::string> what;
  if (learner.step.schedule == StepOptions::Schedule::kGeometric) {
    what.emplace_back("the step arrives at learner.last_step");
  }
  if (ByPolicyGradient(learner) &&
      learner.policy_gradient.method == PolicyGradientOptions::Method::kPpo) {
    what.emplace_back("the noise arrives at learner.policy_gradient.last_noise");
  }
  return what;
}

}  // namespace

Result<LocalRun> ReopenRun(const std::string& directory, int rounds) {
  RunFiles files = FEDGEN_TRY(OpenRun(directory));
  const RunIdentity identity = FEDGEN_TRY(LoadRunIdentity(files));
  Config config = FEDGEN_TRY(LoadConfig(files.Config()));
  FEDGEN_TRY(LoadGivenPolicies(OtherBodies::kRefuse, config));
  const bool extended = rounds > 0 && rounds != config.training.federation.rounds;
  if (extended) SetRounds(rounds, config);
  std::vector<std::string> warnings;
  if (const int arrives = config.learner.step.rounds; extended && 0 < arrives && arrives < rounds) {
    for (const std::string& what : WhatArrives(config.learner)) {
      warnings.push_back(
          fmt::format("{} in round {} and stays there (learner.schedule_rounds)", what, arrives));
    }
  }
  return LocalRun{std::move(files),
                  identity,
                  {std::move(config), identity.seed},
                  extended,
                  std::move(warnings)};
}

namespace {

std::vector<std::vector<float>> PoliciesOf(const Host& host) {
  std::vector<std::vector<float>> policies;
  policies.reserve(host.learners().size());
  for (const auto& learner : host.learners()) policies.push_back(learner->state().theta);
  return policies;
}

Result<Finalists> TrainRecorded(const LocalRun& run, Exchange& exchange, const Cloud* cloud,
                                std::vector<std::vector<float>> initial,
                                const std::vector<FileMark>& marks, RunListeners listeners,
                                Host& host) {
  KeptTables tables = FEDGEN_TRY(run.files.KeepRounds(host.round(), marks));
  Recorder recorder(run, cloud, std::move(initial), tables);
  std::vector<RunListener*> all = {&recorder};
  all.insert(all.end(), listeners.begin(), listeners.end());
  return Train(host, exchange, all);
}

}  // namespace

Result<Trained> TrainSeats(const LocalRun& run, std::span<const Seat> seats, Exchange& exchange,
                           RunListeners listeners) {
  FEDGEN_TRY(RemoveLeftovers(run.files));
  const Experiment& experiment = run.experiment;
  Host host = MakeHost(experiment.training(), seats, experiment.kernel, experiment.num_threads);
  std::vector<std::vector<float>> initial = PoliciesOf(host);
  const std::vector<FileMark> marks = FEDGEN_TRY(ResumeHost(run, host));
  Finalists finalists =
      FEDGEN_TRY(TrainRecorded(run, exchange, nullptr, std::move(initial), marks, listeners, host));
  return Trained{std::move(host), std::move(finalists)};
}

Result<void> WriteResults(const LocalRun& run, const Finalists& finalists,
                          const RunSummary& summary) {
  std::error_code absent;
  fs::remove(run.files.Policy("average"), absent);  // of an end that was not the end
  for (const Racer& racer : summary.race) {
    if (racer.name == "average") FEDGEN_TRY(SavePolicyOf(run, racer.name, finalists.average));
  }
  FEDGEN_TRY(SavePolicy(summary.race[summary.winner].policy, run.files.Policy("best"),
                        IfExists::kReplace));
  if (summary.certificate) {
    FEDGEN_TRY(WriteFileAtomically(run.files.Certificate(), CertificateToJson(*summary.certificate),
                                   IfExists::kReplace));
  }
  return WriteFileAtomically(run.files.Summary(), RunSummaryJson(summary), IfExists::kReplace);
}

Result<RunSummary> Execute(const LocalRun& run, RunListeners listeners) {
  const RunLock lock = FEDGEN_TRY(RunLock::Take(run.files));
  FEDGEN_TRY(RemoveLeftovers(run.files));
  const Experiment& experiment = run.experiment;
  const std::vector<Seat> seats = SeatsOf(experiment.training(), experiment.key());
  Host host = MakeHost(experiment.training(), seats, experiment.kernel, experiment.num_threads);
  Cloud cloud = MakeCloud(experiment.training());
  std::vector<std::vector<float>> initial = PoliciesOf(host);
  std::vector<FileMark> marks = FEDGEN_TRY(Resume(run, host, cloud));
  FEDGEN_TRY(ChangeRounds(run, host, cloud, marks));

  LocalExchange exchange(cloud);
  const Finalists finalists =
      FEDGEN_TRY(TrainRecorded(run, exchange, &cloud, std::move(initial), marks, listeners, host));
  RunSummary summary = FEDGEN_TRY(Conclude(experiment, host, finalists, listeners));
  summary.config_name = run.identity.config_name;
  FEDGEN_TRY(WriteResults(run, finalists, summary));
  return summary;
}

}  // namespace fedgen
