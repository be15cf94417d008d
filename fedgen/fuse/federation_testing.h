// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fedgen/fuse/cloud.h"
#include "fedgen/fuse/host.h"
#include "fedgen/learn/analytic_testing.h"
#include "fedgen/learn/estimator.h"
#include "fedgen/learn/gradient_search.h"

namespace fedgen {

// Federations that several tests share.

/// What a learner of the tests can be told: all of both.
struct TestLearnerOptions : LearnerOptions, GradientSearchOptions {};

/// A learner on its own objective; it draws from seed.Fork(Stream::kLearner).Fork(index) as those
/// of SeatsOf do.
inline std::unique_ptr<Learner> MakeTestLearner(int index, const TestLearnerOptions& options,
                                                std::unique_ptr<Objective> objective,
                                                std::vector<float> theta, Key seed) {
  std::vector<float> sigma(theta.size(), 0.1F);
  const auto number = static_cast<std::uint32_t>(index);
  return std::make_unique<Learner>(
      LearnerId(number), options,
      std::make_unique<GradientSearch>(options, std::move(objective), std::move(sigma)),
      std::move(theta), seed.Fork(Stream::kLearner).Fork(number));
}

/// The private state of a learner that MakeTestLearner made.
inline const GradientSearchState& SearchOf(const Learner& learner) {
  return dynamic_cast<const GradientSearch&>(learner.improver()).state();
}

inline Cloud MakeTestCloud(const FederationOptions& options,
                           const std::vector<std::unique_ptr<Learner>>& learners) {
  std::vector<LearnerId> ids;
  for (const auto& learner : learners) ids.push_back(learner->id());
  return {options, ids};
}

/// An objective that says what a function says.
class Scripted final : public Objective {
 public:
  using Script = std::function<Measurement(const Search&, Key)>;
  explicit Scripted(Script script) : script_(std::move(script)) {}
  Measurement Measure(const Search& search, Key key) override { return script_(search, key); }
  Value MeasureValue(std::span<const float> mu, std::int64_t worlds, Key key) override {
    const Measurement m = script_({{mu.begin(), mu.end()}, {}}, key);
    return {m.y, 0, worlds, m.episodes};
  }

 private:
  Script script_;
};

/// The same answer everywhere.
inline std::unique_ptr<Objective> Always(double y, double z, double z_sigma = 0) {
  return std::make_unique<Scripted>([=](const Search& search, Key) {
    Measurement m;
    m.y = y;
    m.z_mu.assign(search.mu.size(), z);
    m.z_sigma.assign(search.mu.size(), z_sigma);
    m.episodes = 10;
    return m;
  });
}

inline TestLearnerOptions WithBias(double b) {
  TestLearnerOptions options;
  options.bias = b;
  options.stop.threshold = 1;
  return options;
}

/// A submission of this learner about some other policy.
inline Submission From(std::uint32_t learner, double y, double b) {
  Submission s;
  s.learner = LearnerId(learner);
  s.round = 1;
  s.origin = LearnerId(learner);
  s.y = y;
  s.b = b;
  s.theta = {42};
  s.hash = HashOf(s.theta);
  return s;
}

/// All learners of a run, a Cloud, and the exchange between them. Joins before its first round.
class Federation {
 public:
  Federation(const FederationOptions& options, std::vector<std::unique_ptr<Learner>> learners)
      : cloud_(std::make_unique<Cloud>(MakeTestCloud(options, learners))),
        host_(options, std::move(learners)) {}

  Federation(std::unique_ptr<Cloud> cloud, Host host)
      : cloud_(std::move(cloud)), host_(std::move(host)) {}

  void Join() {
    LocalExchange exchange(*cloud_);
    const Result<void> joined = host_.Join(exchange);
    FEDGEN_CHECK(joined.has_value(), "{}", joined.error().message);
  }
  Result<RoundReport> Round() {
    if (cloud_->state().step == 0) Join();
    LocalExchange exchange(*cloud_);
    return host_.Round(exchange);
  }
  /// Another round though the run is over, to see that nothing happens in it.
  Result<RoundReport> RoundAfterTheEnd() {
    CloudState state = cloud_->state();
    state.ending = Ending::kNotYet;
    cloud_->set_state(std::move(state));
    return Round();
  }
  Result<Finalists> Finish() {
    LocalExchange exchange(*cloud_);
    return host_.Finish(exchange);
  }

  Ending ending() const { return host_.ending(); }
  std::int64_t episodes() const { return host_.episodes(); }
  const std::vector<std::unique_ptr<Learner>>& learners() const { return host_.learners(); }
  Host& host() { return host_; }
  const Host& host() const { return host_; }
  Cloud& cloud() { return *cloud_; }
  const Cloud& cloud() const { return *cloud_; }

 private:
  std::unique_ptr<Cloud> cloud_;
  Host host_;
};

/// Learners of one analytic function that begin uniformly in a cube.
inline Federation MakeAnalyticFederation(const FederationOptions& options,
                                         const TestLearnerOptions& learner,
                                         const AnalyticFunction& f, int num_worlds,
                                         int num_learners, double half_width, Key seed) {
  std::vector<std::unique_ptr<Learner>> learners;
  for (int index = 0; index < num_learners; ++index) {
    const Key key = seed.Fork(Stream::kInitialPolicy).Fork(static_cast<std::uint64_t>(index));
    learners.push_back(MakeTestLearner(index, learner, MakeAnalyticObjective(f, num_worlds),
                                       UniformTheta(key, f.kappa.size(), half_width), seed));
  }
  return {options, std::move(learners)};
}

// ---- Learners that are spread over hosts: the same bytes, however they reach each other. ----

inline constexpr int kSpreadLearners = 8;

struct SpreadCase {
  const char* name;
  FederationOptions options;
  bool stock = false;
  bool rest = false;
};

inline std::vector<SpreadCase> SpreadCases() {
  return {{"fedgen", {.rounds = 60}},
          {"fedgen_stock", {.rounds = 60}, true},
          {"fedgen_rest", {.rounds = 60}, true, true},
          {"fedgen_averages", {.rounds = 40, .average_every = 3}, true},
          {"fedgen_budget", {.rounds = 60, .episodes = 9000}},
          {"fedavg", {.algorithm = Algorithm::kFedAvg, .rounds = 30}},
          {"local", {.algorithm = Algorithm::kLocal, .rounds = 20}}};
}

inline std::unique_ptr<Learner> MakeSpreadLearner(const SpreadCase& c, int index) {
  TestLearnerOptions options;
  options.bias = 0.06;
  options.step.step = 0.3;
  options.sigma_rate = 1;
  options.optimizer.kind = OptimizerOptions::Kind::kAdam;
  options.stop.threshold = 0.25;
  if (c.options.algorithm == Algorithm::kFedAvg) options.stop.rule = StopOptions::Rule::kNever;
  if (c.stock) {
    options.stock_every = 7;
    options.stock_worlds = 400;
    options.candidate_worlds = 400;
  }
  options.rest = c.rest;
  options.task = std::string(64, 'a');
  EstimatorOptions estimator;
  estimator.pairs = 6;
  // Two learners share their beginning, so that origins differ from learners.
  const auto begins_as = static_cast<std::uint64_t>(index == 5 ? 2 : index);
  return MakeTestLearner(
      index, options,
      MakeEstimator(estimator, MakeAnalyticCosts(ThreeWells(), 10), Kernel::kScalar, 1),
      UniformTheta(Key(4).Fork(begins_as), 2, 3), Key(11));
}

/// What the learners of a host say after the finish, as if they had driven: numbers of their own.
inline std::vector<RaceMessage> PartsOfRace(const Host& host, const Finalists& finalists) {
  std::vector<RaceMessage> messages;
  for (const auto& learner : host.learners()) {
    const std::int64_t number = learner->id().number();
    RaceMessage& message = messages.emplace_back(RaceMessage{learner->id(), {}});
    if (std::ranges::count(finalists.racers, learner->id()) == 0) continue;
    for (std::size_t policy = 0; policy < finalists.finals.size(); ++policy) {
      message.tallies.push_back({10 * number, static_cast<std::int64_t>(policy), number});
    }
  }
  return messages;
}

/// All that the learners of these hosts remember, in the order of their numbers.
inline std::string BytesOfLearners(const std::vector<const Host*>& hosts) {
  std::map<LearnerId, const Learner*> learners;
  for (const Host* host : hosts) {
    for (const auto& learner : host->learners()) learners[learner->id()] = learner.get();
  }
  Writer writer;
  for (const auto& [id, learner] : learners) {
    writer(learner->state(), learner->improver().SaveState());
  }
  return writer.Take();
}

}  // namespace fedgen
