// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/train.h"

#include <fmt/format.h>

#include <chrono>

#include "fedgen/base/hash.h"
#include "fedgen/base/version.h"
#include "fedgen/policy/policy_file.h"
#include "fedgen/run/certify.h"
#include "fedgen/run/guarantees.h"
#include "fedgen/run/race.h"

namespace fedgen {

std::string Experiment::Fingerprint() const {
  std::string text = fmt::format("{}\n{}", seed, config.resolved);
  for (const LearnerSettings& learner : training().learners) {
    if (learner.initial_policy) text += PolicyToBinary(*learner.initial_policy);
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

Result<RunSummary> Conclude(const Experiment& experiment, const Host& host,
                            const Finalists& finalists, RunListeners listeners) {
  const Config& config = experiment.config;
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
  const EvaluateOptions race = experiment.Evaluation(config.selection_worlds);
  summary.race_starts = race.starts_per_world;
  const auto tell = [&](std::string_view what, std::int64_t done, std::int64_t total) {
    for (RunListener* listener : listeners) listener->OnProgress(what, done, total);
  };
  const std::int64_t racing =
      race.num_worlds * race.starts_per_world * static_cast<std::int64_t>(summary.race.size());
  summary.winner =
      Race(experiment.task(), experiment.Worlds(Stream::kSelection), race, config.prize,
           summary.race, [&](std::int64_t done) { tell("race", done, racing); });

  CertifyOptions certify;
  certify.num_worlds = config.certificate_worlds;
  certify.confidence = config.confidence;
  certify.num_threads = experiment.num_threads;
  certify.kernel = experiment.kernel;
  const std::int64_t driving = certify.num_worlds * race.starts_per_world;
  summary.certificate =
      FEDGEN_TRY(Certify(experiment.task(), summary.race[summary.winner].policy, certify,
                         [&](std::int64_t done) { tell("certify", done, driving); }));
  return summary;
}

}  // namespace fedgen
