// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/train.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>

#include "fedgen/base/hash.h"
#include "fedgen/base/text.h"
#include "fedgen/base/version.h"
#include "fedgen/learn/navigation.h"
#include "fedgen/policy/policy_file.h"
#include "fedgen/run/certify.h"
#include "fedgen/run/guarantees.h"
#include "fedgen/run/race.h"

namespace fedgen {

std::string Experiment::Fingerprint() const {
  // The number of rounds may change (SetRounds), and changes nothing that was done.
  Config any_rounds = config;
  SetRounds(1, any_rounds);
  std::string text = fmt::format("{}\n{}", seed, any_rounds.resolved);
  for (const LearnerSettings& learner : training().learners) {
    if (learner.initial_policy) text += PolicyToBinaryV1(*learner.initial_policy);
  }
  if (const std::optional<Policy>& teacher = training().teacher) {
    if (const Mlp* network = std::get_if<Mlp>(&*teacher)) text += PolicyToBinaryV1(*network);
  }
  return Sha256Hex(text);
}

EvaluateOptions Experiment::Evaluation(std::int64_t num_worlds) const {
  EvaluateOptions options;
  options.num_worlds = num_worlds;
  options.starts_per_world = task().world.start.per_world;
  options.num_threads = num_threads;
  options.kernel = kernel;
  return options;
}

WorldSource Experiment::Worlds(Stream stream) const {
  return DrawnWorlds(task(), key().Fork(stream), kernel);
}

UnseenWorlds::UnseenWorlds(const Experiment& experiment, std::int64_t num_worlds)
    : experiment_(experiment),
      options_(experiment.Evaluation(num_worlds)),
      worlds_(experiment.Worlds(Stream::kEvaluation)),
      shape_(ShapeOf(experiment.training())) {}

const Tally& UnseenWorlds::Measure(std::span<const float> theta) {
  const auto [place, is_new] = known_.try_emplace(HashOf(theta));
  if (is_new) {
    const Policy policy = MlpOf(shape_, theta);
    place->second = Evaluate(experiment_.task(), policy, worlds_, options_);
  }
  return place->second;
}

double MemoryLimit() {
  double limit = std::numeric_limits<double>::infinity();
  struct sysinfo machine{};
  if (::sysinfo(&machine) == 0) {
    limit = static_cast<double>(machine.mem_unit) *
            (static_cast<double>(machine.totalram) + static_cast<double>(machine.totalswap));
  }
  struct rlimit space{};
  if (::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
    limit = std::min(limit, static_cast<double>(space.rlim_cur));
  }
  return limit;
}

double TotalBytes(const std::vector<MemoryPart>& parts) {
  double bytes = 0;
  for (const MemoryPart& part : parts) bytes += part.bytes;
  return bytes;
}

std::string BytesText(double bytes) {
  return bytes < 1e9 ? fmt::format("{:.0f} MB", bytes / 1e6)
                     : fmt::format("{:.1f} GB", bytes / 1e9);
}

Result<void> CheckMemory(const std::vector<MemoryPart>& parts, double limit, ErrorCode code) {
  const double bytes = TotalBytes(parts);
  if (bytes <= limit) return {};
  const MemoryPart& largest = *std::ranges::max_element(parts, {}, &MemoryPart::bytes);
  return Error{code, fmt::format("{}: needs at least {} of memory ({}), {} are available",
                                 largest.option, BytesText(bytes), largest.why, BytesText(limit))};
}

namespace {

// Steps that are kept while a learner looks at them (learn/experience.h).
MemoryPart ExperiencePart(std::string_view option, int episodes, int horizon, int num_inputs) {
  const double bytes = Experience::Bytes({episodes, horizon, num_inputs});
  const double numbers = Experience::Bytes({1, 1, num_inputs}) / sizeof(float);
  return {fmt::format("{} = {}", option, episodes),
          fmt::format("{} x {} x {:.0f} numbers", Counted(episodes, "episode"),
                      Counted(horizon, "step"), numbers),
          bytes};
}

// What learners by policy gradients need: the host's one record of steps, and each one's critic.
// That one is kept, packed twice, summed and remembered twice in double: 9 copies, and 2 more for
// each thread.
std::vector<MemoryPart> PolicyGradientParts(const std::vector<LearnerSettings>& learners,
                                            int horizon, int num_inputs, int num_threads) {
  int most_episodes = 0;
  double critics = 0;
  std::int64_t num_critics = 0;
  std::vector<int> first_hidden;
  for (const LearnerSettings& learner : learners) {
    if (!ByPolicyGradient(learner)) continue;
    most_episodes = std::max(most_episodes, learner.policy_gradient.episodes);
    NetworkShape critic{{num_inputs + Experience::kCriticInputs}};
    std::ranges::copy(learner.policy_gradient.critic_hidden, std::back_inserter(critic.sizes));
    critic.sizes.push_back(1);
    critics += static_cast<double>(NumParameters(critic)) * sizeof(float) * (9 + 2 * num_threads);
    if (num_critics++ == 0) first_hidden = learner.policy_gradient.critic_hidden;
  }
  return {
      ExperiencePart("learner.policy_gradient.episodes", most_episodes, horizon, num_inputs),
      {fmt::format("learner.policy_gradient.critic_hidden = [{}]", fmt::join(first_hidden, ", ")),
       fmt::format("{}, each with several copies of its parameters",
                   Counted(num_critics, "critic")),
       critics}};
}

}  // namespace

std::vector<MemoryPart> MemoryOf(const Config& config, int num_threads) {
  const TrainingSettings& training = config.training;
  const std::vector<LearnerSettings> learners = LearnersOf(training);
  const auto num_learners = static_cast<std::int64_t>(learners.size());
  const auto threads = static_cast<double>(num_threads);
  const Mlp shape = ShapeOf(training);
  const std::size_t num_parameters = shape.parameters.size() + 2 * shape.input_scale.size();
  const std::string parameters = Counted(static_cast<std::int64_t>(num_parameters), "parameter");
  const double theta_bytes = sizeof(float) * static_cast<double>(num_parameters);

  // A learner keeps its directions from round to round, and theta, sigma, where sigma began, the
  // network's shape, the submission, and z of mu and sigma in double: 9 times theta; Adam and
  // ClipUp remember two numbers and one in double. A thread drives a network and keeps its theta.
  // One by policy gradients has no sigma and no directions, but where its search is, an average of
  // that, and sums of gradients: 11 times theta, and 2 more for each thread.
  std::int64_t num_searching = 0;  // with directions
  std::int64_t most_pairs = 0;
  double copies = 2 * threads;  // of theta
  double directions = 0;
  double worlds = 0;
  std::int64_t most_episodes = 0;
  for (const LearnerSettings& learner : learners) {
    const std::int64_t starts = TaskOf(training, learner).world.start.per_world;
    const auto optimizer = learner.optimizer.kind;
    copies += optimizer == OptimizerOptions::Kind::kAdam     ? 4
              : optimizer == OptimizerOptions::Kind::kClipUp ? 2
                                                             : 0;
    copies += ByPolicyGradient(learner) ? 11 + 2 * threads : 9;
    most_episodes = std::max(most_episodes, learner.worlds * starts);
    if (!ByPolicyGradient(learner)) {
      ++num_searching;
      most_pairs = std::max<std::int64_t>(most_pairs, learner.estimator.pairs);
      directions += static_cast<double>(learner.estimator.pairs) * theta_bytes;
    }
    worlds += static_cast<double>(learner.worlds) *
              static_cast<double>(sizeof(World) + static_cast<std::size_t>(starts) * sizeof(Pose));
  }
  const double certificate = sizeof(double) * static_cast<double>(config.certificate_worlds);
  // A bit each for the winner, for somebody and for a baseline.
  const double race = 3.0 / 8 * static_cast<double>(config.selection_worlds) *
                      static_cast<double>(config.task().world.start.per_world);
  std::vector<MemoryPart> parts = {
      {fmt::format("policy.hidden = [{}]", fmt::join(training.policy.hidden, ", ")),
       fmt::format("{} and {}, each with several copies of {}", Counted(num_learners, "learner"),
                   Counted(num_threads, "thread"), parameters),
       copies * theta_bytes},
      {fmt::format("learner.worlds = {}", learners.front().worlds),
       fmt::format("{} x {}, and {} of {} each", Counted(num_learners, "learner"),
                   Counted(learners.front().worlds, "world"), Counted(num_threads, "thread"),
                   Counted(most_episodes, "episode")),
       worlds + threads * static_cast<double>(most_episodes) * sizeof(Episode)},
      {fmt::format("federation.certificate_worlds = {}", config.certificate_worlds),
       "a cost for each of them", certificate},
      {fmt::format("federation.selection_worlds = {}", config.selection_worlds),
       "who arrived in which of them", race},
  };
  if (num_searching > 0) {
    parts.push_back({fmt::format("learner.pairs = {}", most_pairs),
                     fmt::format("{} x {} x {}", Counted(num_searching, "learner"),
                                 Counted(most_pairs, "direction"), parameters),
                     directions});
  }
  const int horizon = training.task.episode.horizon;
  if (num_searching < num_learners) {
    for (MemoryPart& part :
         PolicyGradientParts(learners, horizon, shape.num_inputs(), num_threads)) {
      parts.push_back(std::move(part));
    }
  }
  if (!config.imitate.empty()) {
    parts.push_back(ExperiencePart("policy.imitation_episodes", training.imitation.episodes,
                                   horizon, shape.num_inputs()));
  }
  return parts;
}

Result<Finalists> Train(Host& host, Exchange& exchange, RunListeners listeners) {
  using Clock = std::chrono::steady_clock;
  if (host.round() == 0) FEDGEN_TRY(host.Join(exchange));
  for (RunListener* listener : listeners) FEDGEN_TRY(listener->OnBegin(host));
  while (host.ending() == Ending::kNotYet) {
    const auto begin = Clock::now();
    const RoundReport report = FEDGEN_TRY(host.Round(exchange));
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    for (RunListener* listener : listeners) {
      FEDGEN_TRY(listener->OnRound(host, report, seconds));
    }
  }
  Finalists finalists = FEDGEN_TRY(host.Finish(exchange));
  for (RunListener* listener : listeners) FEDGEN_TRY(listener->OnEnd(host, finalists));
  return finalists;
}

namespace {

// The statements of the paper that hold, now that it is known how the run ended.
std::vector<Guarantee> GuaranteesOf(const Experiment& experiment, Ending ending) {
  std::vector<Guarantee> guarantees = WhatHolds(experiment.training());
  for (Guarantee& guarantee : guarantees) {
    if (guarantee.name != "T4" || ending == Ending::kSettled) continue;
    guarantee.reason = (guarantee.standing == Standing::kNo ? guarantee.reason + "; " : "") +
                       "the run ended before all learners had stopped";
    guarantee.standing = Standing::kNo;
  }
  return guarantees;
}

}  // namespace

RunSummary SummaryOf(const Experiment& experiment, const Host& host, const Finalists& finalists) {
  RunSummary summary;
  summary.program = kVersion;
  summary.seed = experiment.seed;
  summary.algorithm = host.options().algorithm;
  summary.ending = host.ending();
  summary.rounds = host.round();
  summary.episodes = host.episodes();
  summary.incumbent = finalists.incumbent;
  for (const auto& learner : host.learners()) summary.learners.push_back(learner->state());
  summary.guarantees = GuaranteesOf(experiment, host.ending());
  summary.warnings = Warnings(experiment.training());
  summary.race = Racers(finalists, ShapeOf(experiment.training()));
  summary.race_starts = experiment.task().world.start.per_world;
  return summary;
}

namespace {

void Tell(RunListeners listeners, std::string_view what, std::int64_t done, std::int64_t total) {
  for (RunListener* listener : listeners) listener->OnProgress(what, done, total);
}

}  // namespace

Result<Certificate> CertifyWinner(const Experiment& experiment, const RunSummary& summary,
                                  RunListeners listeners) {
  CertifyOptions certify;
  certify.num_worlds = experiment.config.certificate_worlds;
  certify.confidence = experiment.config.confidence;
  certify.num_threads = experiment.num_threads;
  certify.kernel = experiment.kernel;
  const std::int64_t driving = certify.num_worlds * summary.race_starts;
  return Certify(experiment.task(), summary.race[summary.winner].policy, certify,
                 [&](std::int64_t done) { Tell(listeners, "certify", done, driving); });
}

RaceCourse CourseOf(const Experiment& experiment, std::uint64_t seed) {
  return {experiment.task(),
          DrawnWorlds(experiment.task(), Key(seed).Fork(Stream::kSelection), experiment.kernel),
          experiment.Evaluation(experiment.config.selection_worlds)};
}

Result<RunSummary> Conclude(const Experiment& experiment, const Host& host,
                            const Finalists& finalists, RunListeners listeners,
                            Certifying certifying) {
  const Config& config = experiment.config;
  RunSummary summary = SummaryOf(experiment, host, finalists);
  const EvaluateOptions race = experiment.Evaluation(config.selection_worlds);
  const std::int64_t episodes = race.num_worlds * race.starts_per_world;
  const auto num_racers = static_cast<std::int64_t>(summary.race.size());
  const std::int64_t racing =
      episodes * (num_racers + static_cast<std::int64_t>(Baselines::kDrivers.size()));
  const WorldSource worlds = experiment.Worlds(Stream::kSelection);
  const RaceResult result = Race(experiment.task(), worlds, race, config.prize, summary.race,
                                 [&](std::int64_t done) { Tell(listeners, "race", done, racing); });
  summary.winner = result.winner;
  summary.baselines = MeasureBaselines(
      experiment.task(), worlds, race, result, summary.race.size(),
      [&](std::int64_t done) { Tell(listeners, "race", episodes * num_racers + done, racing); },
      [&](std::int64_t done, std::int64_t total) { Tell(listeners, "search", done, total); });
  if (certifying == Certifying::kYes) {
    summary.certificate = FEDGEN_TRY(CertifyWinner(experiment, summary, listeners));
  }
  return summary;
}

}  // namespace fedgen
