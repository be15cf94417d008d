// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/campaign.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <set>
#include <sstream>

#include "fedgen/base/file.h"
#include "fedgen/base/hash.h"
#include "fedgen/base/version.h"
#include "fedgen/learn/navigation.h"
#include "fedgen/run/race.h"
#include "fedgen/run/train.h"

namespace fedgen {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMarker = "{\"format\":\"fedgen-reproduce\",\"version\":1}\n";
constexpr std::size_t kMaxSettingsBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxOutcomeBytes = std::size_t{1} << 24;

Result<void> MakeDirectory(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) {
    return Error{ErrorCode::kIo,
                 fmt::format("{}: cannot make directory: {}", directory, error.message())};
  }
  return {};
}

bool HoldsSomething(const std::string& directory) {
  std::error_code error;
  return fs::exists(directory, error) && !fs::is_empty(directory, error);
}

std::int64_t EpisodesOf(const Part& part) {
  return EpisodesPerRound(part.config.training) * part.config.training.federation.rounds;
}

}  // namespace

Error LeftAsItIs(const std::string& directory, const std::string& what) {
  return {ErrorCode::kExists,
          fmt::format("{}: holds {} and was left as it is; choose another directory with --out",
                      directory, what)};
}

Result<Campaign> Campaign::Open(const std::string& directory, int num_threads,
                                ExperimentSettings settings) {
  const std::string marker = directory + "/reproduce.json";
  std::error_code error;
  if (HoldsSomething(directory)) {
    const Result<std::string> text = ReadFile(marker, kMarker.size());
    if (!text || *text != kMarker) {
      return Error{ErrorCode::kExists,
                   fmt::format("{}: is not empty and was not made by fedgen reproduce", directory)};
    }
  }
  Campaign campaign(directory, num_threads, std::move(settings));
  for (const auto& [experiment, ignored] : campaign.settings_) {
    if (auto same = campaign.CheckSettings(experiment); !same) return same.error();
  }
  if (auto made = MakeDirectory(directory + "/cache"); !made) return made.error();
  if (!fs::exists(marker, error)) {
    auto written = WriteFileAtomically(marker, kMarker, IfExists::kReplace);
    if (!written) return written.error();
  }
  return campaign;
}

Result<void> Campaign::CheckSettings(const std::string& experiment) const {
  std::error_code error;
  const std::string path = SettingsFile(experiment);
  if (!fs::exists(path, error)) {
    if (!HoldsSomething(PathOf(experiment))) return {};
    return LeftAsItIs(PathOf(experiment), "results of unknown settings");
  }
  const Result<std::string> text = ReadFile(path, kMaxSettingsBytes);
  if (!text) return text.error();
  if (*text == settings_.at(experiment)) return {};
  // The first line that differs says enough.
  std::istringstream then(*text), now(settings_.at(experiment));
  std::string line_then, line_now;
  while (line_then == line_now && std::getline(now, line_now)) {
    if (!std::getline(then, line_then)) line_then = "(no such line)";
  }
  const std::size_t value = line_now.find(" = ");
  const bool same_key =
      value != std::string::npos && line_then.compare(0, value + 3, line_now, 0, value + 3) == 0;
  return LeftAsItIs(PathOf(experiment),
                    fmt::format("results with {}, now {},", line_then,
                                same_key ? line_now.substr(value + 3) : line_now));
}

Result<std::string> Campaign::Directory(const std::string& experiment) const {
  std::string directory = PathOf(experiment);
  if (auto made = MakeDirectory(directory); !made) return made.error();
  const auto written =
      WriteFileAtomically(SettingsFile(experiment), settings_.at(experiment), IfExists::kReplace);
  if (!written) return written.error();
  return directory;
}

Result<void> Campaign::Write(const std::string& experiment, const std::string& name,
                             const std::string& text) const {
  const Result<std::string> directory = Directory(experiment);
  if (!directory) return directory.error();
  return WriteFileAtomically(*directory + "/" + name, text, IfExists::kReplace);
}

std::string Campaign::CacheFile(const Part& part) const {
  const std::string question =
      fmt::format("{}\nseed {}, worlds {}, stages {}, race {}\n{}", kVersion, part.seed,
                  part.worlds, part.stages, part.race, part.config.resolved);
  return fmt::format("{}/cache/{}.txt", directory_, Sha256Hex(question).substr(0, 32));
}

namespace {

// Measures policies where a part asks for it, and tells how far the run is.
class PartListener final : public RunListener {
 public:
  PartListener(const Part& part, const Experiment& experiment,
               const std::function<void(int round)>& on_round)
      : part_(part), unseen_(experiment, part.worlds), on_round_(on_round) {
    outcome_.starts_per_world = experiment.task().world.start.per_world;
  }

  Tally Measure(const std::vector<float>& theta) { return unseen_.Measure(theta); }
  RunOutcome& outcome() { return outcome_; }

  Result<void> OnBegin(const Host& host) override {
    for (const auto& learner : host.learners()) {
      LearnerOutcome& of_learner = outcome_.learners.emplace_back();
      of_learner.bias = learner->options().bias;
      if (part_.stages) of_learner.initial = Measure(learner->state().theta);
    }
    return {};
  }
  Result<void> OnRound(const Host& /*host*/, const RoundReport& report, double seconds) override {
    outcome_.seconds += seconds;
    on_round_(report.round);
    return {};
  }
  Result<void> OnEnd(const Host& host, const Finalists& /*finalists*/) override {
    outcome_.rounds = host.round();
    outcome_.episodes = host.episodes();
    for (std::size_t i = 0; i < outcome_.learners.size(); ++i) {
      const LearnerState& state = host.learners()[i]->state();
      LearnerOutcome& of_learner = outcome_.learners[i];
      of_learner.first_stop = state.first_stop;
      of_learner.adoptions = state.adoptions;
      of_learner.final = Measure(state.theta);
      if (!part_.stages) continue;
      of_learner.local = state.first_stop > 0 ? Measure(state.first_stopped) : of_learner.final;
    }
    return {};
  }

 private:
  const Part& part_;
  UnseenWorlds unseen_;
  const std::function<void(int round)>& on_round_;
  RunOutcome outcome_;
};

}  // namespace

Result<RunOutcome> Campaign::RunPart(const Part& part,
                                     const std::function<void(int round)>& on_round) const {
  const Experiment experiment{part.config, part.seed, BestKernel(), num_threads_};
  Host host = MakeHost(experiment.training(), SeatsOf(experiment.training(), experiment.key()),
                       experiment.kernel, num_threads_);
  Cloud cloud = MakeCloud(experiment.training());
  LocalExchange exchange(cloud);
  PartListener listener(part, experiment, on_round);
  RunListener* const listeners[] = {&listener};
  const Finalists finalists = FEDGEN_TRY(Train(host, exchange, listeners));
  if (part.race) {
    std::vector<Racer> racers = Racers(finalists, ShapeOf(experiment.training()));
    const RaceResult race =
        Race(experiment.task(), experiment.Worlds(Stream::kSelection),
             experiment.Evaluation(part.config.selection_worlds), part.config.prize, racers, {});
    listener.outcome().winner = listener.Measure(ThetaOf(racers[race.winner].policy));
  }
  return std::move(listener.outcome());
}

std::optional<RunOutcome> Campaign::FindOutcome(const Part& part) const {
  const Result<std::string> text = ReadFile(CacheFile(part), kMaxOutcomeBytes);
  return text ? RunOutcomeFromText(*text) : std::nullopt;
}

Result<std::vector<RunOutcome>> Campaign::Run(const std::string& experiment,
                                              const std::vector<Part>& parts,
                                              const CampaignListener& listener) const {
  std::int64_t total = 0;
  std::set<std::string> missing;  // parts may ask the same question
  std::size_t num_known = 0;
  for (const Part& part : parts) {
    for (const std::string& path : part.config.initial_policies) {
      if (path.empty()) continue;
      return Error{ErrorCode::kConfig,
                   fmt::format("learners.initial_policy = {}: must not be given: fedgen reproduce "
                               "draws initial policies at random",
                               path)};
    }
    if (FindOutcome(part)) {
      ++num_known;
    } else if (missing.insert(CacheFile(part)).second) {
      total += EpisodesOf(part);
    }
  }
  if (listener.on_begin) listener.on_begin(experiment, num_known, parts.size(), total);
  std::int64_t done = 0;
  std::size_t num_done = 0;
  std::vector<RunOutcome> results;
  for (const Part& part : parts) {
    // Also finds what an earlier part of these has just answered.
    if (std::optional<RunOutcome> found = FindOutcome(part)) {
      results.push_back(*std::move(found));
      continue;
    }
    const std::int64_t per_round = EpisodesPerRound(part.config.training);
    Result<RunOutcome> outcome = RunPart(part, [&](int round) {
      if (listener.on_progress) listener.on_progress(done + round * per_round);
    });
    if (!outcome) return outcome.error();
    const auto kept =
        WriteFileAtomically(CacheFile(part), RunOutcomeToText(*outcome), IfExists::kReplace);
    if (!kept) return kept.error();
    done += EpisodesOf(part);
    ++num_done;
    if (listener.on_part) listener.on_part(part, *outcome, num_done, missing.size(), done);
    results.push_back(*std::move(outcome));
  }
  return results;
}

}  // namespace fedgen
