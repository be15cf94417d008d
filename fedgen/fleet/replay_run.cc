// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fleet/replay_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "fedgen/base/file.h"
#include "fedgen/base/text.h"
#include "fedgen/federation/replay_exchange.h"
#include "fedgen/fleet/cloud_run.h"
#include "fedgen/fleet/learner_run.h"
#include "fedgen/fleet/secret.h"
#include "fedgen/fleet/settings.h"

namespace fedgen {
namespace {

// Everybody who ever joined.
std::set<LearnerId> LearnersOf(const RunLog& log) {
  std::set<LearnerId> learners;
  for (const LogEvent& event : log.events) {
    if (event.step == 0 && !event.learner.is_cloud()) learners.insert(event.learner);
  }
  return learners;
}

Result<LearnerRun> RunOf(const ReplaySettings& settings, const KeptSettings& kept,
                         LearnerId learner) {
  const Key secret = Key(settings.seed).Fork(Stream::kLearner).Fork(learner.index());
  Config config = FEDGEN_TRY(
      ParseOwn(kept.shared, OwnText(settings.config, learner), "the configuration", learner));
  LocalRun local =
      FEDGEN_TRY(StartRun(std::move(config), HomeSeed(secret), settings.log.header.run,
                          fmt::format("{}/learner-{}", settings.directory, learner.name()),
                          OtherBodies::kRefuse, {{"shared.toml", kept.shared}}));
  local.experiment.num_threads = settings.num_threads;
  local.experiment.kernel = settings.kernel;
  return LearnerRun{
      std::move(local), {learner, secret}, settings.log.header.run, Certifying::kNo, false};
}

}  // namespace

namespace {

// The log's own pace goes; everything else that all share must be as the log says.
Result<void> CheckShared(const ReplaySettings& settings, const Config& logged,
                         const std::string& shared) {
  Config config = settings.config;
  FederationOptions& given = config.training.federation;
  const FederationOptions& had = logged.training.federation;
  given.patience = had.patience;
  given.async = had.async;
  Resolve(config);
  const std::optional<std::string> difference = FindDifference(SharedText(config), shared);
  if (!difference) return {};
  return Error{ErrorCode::kMismatch,
               fmt::format("{}, as {} has it", *difference, settings.log_name)};
}

Result<int> ReplayInto(const ReplaySettings& settings);

}  // namespace

// What fails leaves nothing behind.
Result<int> Replay(const ReplaySettings& settings) {
  std::error_code code;
  if (std::filesystem::exists(settings.directory, code) && !IsEmptyDirectory(settings.directory)) {
    return Error{ErrorCode::kExists,
                 fmt::format("{}: already exists and was left as it is", settings.directory)};
  }
  ReplaySettings filling = settings;
  filling.directory = fmt::format("{}.{}.0", settings.directory, ::getpid());
  Result<int> done = ReplayInto(filling);
  if (done) {
    std::filesystem::rename(filling.directory, settings.directory, code);
    if (code) done = Error{ErrorCode::kIo, settings.directory + ": " + code.message()};
  }
  if (!done) std::filesystem::remove_all(filling.directory, code);
  return done;
}

namespace {

Result<int> ReplayInto(const ReplaySettings& settings) {
  const std::optional<KeptSettings> kept = KeptFromText(settings.log.header.settings);
  if (!kept) {
    return Error{ErrorCode::kData,
                 fmt::format("{}:1: settings: are of another program", settings.log_name)};
  }
  const Config shared =
      FEDGEN_TRY(ParseShared(kept->shared, fmt::format("{}:1: settings", settings.log_name)));
  FEDGEN_TRY(CheckShared(settings, shared, kept->shared));
  std::vector<LearnerId> first;
  for (const Seat& seat : SeatsOf(shared.training, Key())) first.push_back(seat.id);
  Cloud cloud(FederationOf(shared.training), first, kept->seed);
  ReplayExchange exchange(settings.log, settings.log_name, cloud);
  std::vector<LearnerRun> runs;
  for (const LearnerId learner : LearnersOf(settings.log)) {
    runs.push_back(FEDGEN_TRY(RunOf(settings, *kept, learner)));
  }
  const Error too_early{
      ErrorCode::kData,
      fmt::format("{}: ends after {}, before the run did: fedgen cloud log writes all of it when "
                  "the run is over",
                  settings.log_name,
                  Counted(static_cast<std::int64_t>(settings.log.events.size()), "event"))};
  if (runs.empty()) return too_early;
  std::vector<Result<RunSummary>> ended(runs.size(), Error{ErrorCode::kIo, "not run"});
  std::vector<std::thread> threads;
  threads.reserve(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    threads.emplace_back([&, i] {
      ended[i] = Execute(runs[i], exchange, {});
      if (!ended[i] && ended[i].error().code != ErrorCode::kMissed) {
        exchange.GiveUp(ended[i].error());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  int at_the_end = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (ended[i]) {
      ++at_the_end;
      continue;
    }
    if (ended[i].error().code != ErrorCode::kMissed) return ended[i].error();
    const Member* member = FindMember(cloud.state().members, runs[i].seat.id);
    if (member == nullptr || member->presence != Presence::kPresent) continue;
    return too_early;
  }
  FEDGEN_TRY(exchange.CheckAllHeard());
  return at_the_end;
}

}  // namespace
}  // namespace fedgen
