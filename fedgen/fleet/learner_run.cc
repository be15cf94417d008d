// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fleet/learner_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "fedgen/base/file.h"
#include "fedgen/base/version.h"
#include "fedgen/fleet/secret.h"
#include "fedgen/fleet/settings.h"

namespace fedgen {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxSharedBytes = std::size_t{1} << 20;

std::string SharedPath(const std::string& directory) { return directory + "/shared.toml"; }
std::string SecretPath(const std::string& directory) { return directory + "/secret.key"; }

bool Exists(const std::string& path) {
  std::error_code code;
  return fs::exists(path, code);
}

// What the learner expects to share: what its owner has agreed to, or what was shared when it came.
Result<std::string> Expected(const LearnerRunSettings& settings) {
  if (!settings.agreed.empty()) {
    const Config agreed = FEDGEN_TRY(LoadShared(settings.agreed));
    return SharedText(agreed);
  }
  const bool known = !settings.directory.empty() && Exists(SharedPath(settings.directory));
  if (!known) return std::string();
  return ReadFile(SharedPath(settings.directory), kMaxSharedBytes);
}

// Memory for this learner alone.
Result<void> CheckOwnMemory(const Config& config, LearnerId learner, int num_threads) {
  Config own = config;
  own.training.learners = {config.training.learners.at(learner.index())};
  own.num_learners = 1;
  return CheckMemory(MemoryOf(own, num_threads));
}

Result<LearnerRun> Begin(const LearnerRunSettings& settings, const Entered& entered, Config config,
                         const std::string& directory) {
  const Key secret =
      settings.secret.empty() ? DrawSecret() : FEDGEN_TRY(LoadOrDrawSecret(settings.secret));
  std::vector<FileToBegin> begin_with = {{"shared.toml", entered.settings}};
  if (settings.secret.empty()) {
    begin_with.push_back({"secret.key", SecretToText(secret), Access::kOwner});
  }
  LocalRun local = FEDGEN_TRY(StartRun(std::move(config), HomeSeed(secret), entered.run, directory,
                                       OtherBodies::kRefuse, std::move(begin_with)));
  return LearnerRun{
      std::move(local), {settings.learner, secret}, entered.run, settings.certifying, false};
}

// That a directory with a run in it is one to go on with.
Result<void> CheckHome(const LearnerRunSettings& settings, const std::string& directory) {
  if (!Exists(RunFiles(directory).Identity())) return {};
  if (!IsLearnersHome(directory)) {
    return Error{ErrorCode::kExists,
                 fmt::format("--out: {} holds a run of fedgen train and was left as it is; a "
                             "learner of a federation has a directory of its own",
                             directory)};
  }
  if (settings.secret.empty() && !Exists(SecretPath(directory))) {
    return Error{
        ErrorCode::kUsage,
        fmt::format("--secret is required: the run in {} was begun with one elsewhere", directory)};
  }
  return {};
}

Result<LearnerRun> GoOn(const LearnerRunSettings& settings, const Entered& entered, Config config,
                        const std::string& directory) {
  LocalRun local = FEDGEN_TRY(ReopenRun(directory));
  NameKeptPolicies(config);
  const Config& begun = local.experiment.config;
  auto difference =
      FindDifference(OwnText(config, settings.learner), OwnText(begun, settings.learner));
  if (!difference) difference = FindDifference(config.resolved, begun.resolved);
  if (difference) {
    return Error{ErrorCode::kMismatch, fmt::format("{}: {}, as the run in {} was begun",
                                                   settings.own, *difference, directory)};
  }
  const std::string path = settings.secret.empty() ? SecretPath(directory) : settings.secret;
  const Key secret = FEDGEN_TRY(LoadSecret(path));
  if (HomeSeed(secret) != local.identity.seed) {
    return Error{
        ErrorCode::kMismatch,
        fmt::format("{}: is not the secret that the run in {} was begun with", path, directory)};
  }
  return LearnerRun{
      std::move(local), {settings.learner, secret}, entered.run, settings.certifying, true};
}

}  // namespace

bool IsLearnersHome(const std::string& directory) { return Exists(SharedPath(directory)); }

Result<LearnerRun> EnterRun(const LearnerRunSettings& settings, RemoteExchange& exchange) {
  // Before anybody is asked.
  FEDGEN_TRY(CheckOwn(settings.own));
  if (!settings.directory.empty()) FEDGEN_TRY(CheckHome(settings, settings.directory));
  if (!settings.secret.empty() && Exists(settings.secret)) FEDGEN_TRY(LoadSecret(settings.secret));
  const std::string expected = FEDGEN_TRY(Expected(settings));
  const Result<Entered> admitted =
      exchange.Enter(settings.learner, {settings.run, kVersion, expected});
  if (!admitted) {
    if (expected.empty()) return admitted.error();
    return Error{
        admitted.error().code,
        fmt::format("{} (expected here by {})", admitted.error().message,
                    settings.agreed.empty() ? SharedPath(settings.directory) : settings.agreed)};
  }
  const Entered& entered = *admitted;
  Config config = FEDGEN_TRY(LoadOwn(entered.settings, settings.own, settings.learner));
  FEDGEN_TRY(CheckOwnMemory(config, settings.learner, 1));
  const std::string directory =
      settings.directory.empty()
          ? fmt::format("runs/{}-learner{}", entered.run, settings.learner.name())
          : settings.directory;
  if (!Exists(RunFiles(directory).Identity())) {
    return Begin(settings, entered, std::move(config), directory);
  }
  FEDGEN_TRY(CheckHome(settings, directory));
  return GoOn(settings, entered, std::move(config), directory);
}

namespace {

// What the others did not drive is driven here: all of it if this learner races alone.
std::vector<RaceTally> SumParts(const Experiment& experiment, const Finalists& finalists,
                                const RaceAnswer& answer, const std::vector<Racer>& racers) {
  const RaceCourse course = CourseOf(experiment, finalists.seed);
  std::vector<RaceTally> sums(racers.size());
  for (std::size_t part = 0; part < finalists.racers.size(); ++part) {
    const auto heard = std::ranges::find(answer.parts, finalists.racers[part], &RacePart::learner);
    const bool known = heard != answer.parts.end() && heard->tallies.size() == racers.size();
    const std::vector<RaceTally> tallies =
        known ? heard->tallies : DrivePart(course, racers, part, finalists.racers.size(), {});
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i].episodes += tallies[i].episodes;
      sums[i].reached += tallies[i].reached;
      sums[i].cost += tallies[i].cost;
    }
  }
  return sums;
}

// The race of a run whose learners have one task: this learner's part, then everybody's.
Result<void> RaceTogether(const LearnerRun& run, const Finalists& finalists, Exchange& exchange,
                          RunListeners listeners, RunSummary& summary) {
  const Experiment& experiment = run.local.experiment;
  const RaceCourse course = CourseOf(experiment, finalists.seed);
  RaceMessage message;
  message.learner = run.seat.id;
  const auto own = std::ranges::find(finalists.racers, run.seat.id);
  if (own != finalists.racers.end()) {
    const auto part = static_cast<std::size_t>(own - finalists.racers.begin());
    message.tallies = DrivePart(course, summary.race, part, finalists.racers.size(),
                                [&](std::int64_t done, std::int64_t total) {
                                  for (RunListener* listener : listeners) {
                                    listener->OnProgress("race", done, total);
                                  }
                                });
  }
  const RaceAnswer answer = FEDGEN_TRY(exchange.Race({&message, 1}));
  const std::vector<RaceTally> sums = SumParts(experiment, finalists, answer, summary.race);
  for (std::size_t i = 0; i < sums.size(); ++i) summary.race[i].tally = TallyOf(sums[i]);
  summary.winner = FindWinner(experiment.config.prize, sums);
  return {};
}

}  // namespace

Result<RunSummary> Execute(const LearnerRun& run, Exchange& exchange, RunListeners listeners) {
  const RunLock lock = FEDGEN_TRY(RunLock::Take(run.local.files));
  const Experiment& experiment = run.local.experiment;
  const Seat seats[] = {run.seat};
  const Trained trained = FEDGEN_TRY(TrainSeats(run.local, seats, exchange, listeners));
  const Finalists& finalists = trained.finalists;
  RunSummary summary;
  if (finalists.racers.empty()) {
    summary = FEDGEN_TRY(Conclude(experiment, trained.host, finalists, listeners, run.certifying));
  } else {
    summary = SummaryOf(experiment, trained.host, finalists);
    FEDGEN_TRY(RaceTogether(run, finalists, exchange, listeners, summary));
    if (run.certifying == Certifying::kYes) {
      summary.certificate = FEDGEN_TRY(CertifyWinner(experiment, summary, listeners));
    }
  }
  // What holds for all learners together depends on settings that are the others' own.
  std::erase_if(summary.guarantees,
                [](const Guarantee& g) { return g.name != "T1" && g.name != "T2"; });
  summary.config_name = run.run;
  FEDGEN_TRY(WriteResults(run.local, finalists, summary));
  return summary;
}

}  // namespace fedgen
