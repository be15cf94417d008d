// SPDX-License-Identifier: Apache-2.0
#include "fedgen/learn/policy_gradient.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "fedgen/base/archive.h"
#include "fedgen/base/check.h"
#include "fedgen/base/parallel.h"

namespace fedgen {

void Fields(auto& archive, Is<OptimizerState> auto& s) { archive(s.steps, s.first, s.second); }
void Fields(auto& archive, Is<StopState> auto& s) { archive(s.recent, s.threshold); }
void Fields(auto& archive, Is<PolicyGradientState> auto& s) {
  archive(s.search, s.average, s.averaged, s.optimizer, s.critic, s.critic_optimizer, s.critic_fits,
          s.stop, s.hard);
}

namespace {

// Where practice lives under a round's key: beyond any number of learners, whose pooled
// measurements are under 0, 1, 2, ...
constexpr std::uint64_t kPractice = std::uint64_t{1} << 32;
// Under the key of a ground's practice.
enum : std::uint64_t { kWorlds = 0, kNoise = 1 };
// Under the key of an improvement.
enum : std::uint64_t { kShuffles = 0, kRefit = 1 };

constexpr std::size_t kEpisodesAtOnce = 128;  // that a thread judges
constexpr OptimizerOptions kCriticOptimizer = {OptimizerOptions::Kind::kAdam};

// Brings a gradient down to the limit; 0 is no limit.
void LimitNorm(double limit, std::span<double> gradient) {
  const double norm = Norm(gradient);
  if (limit <= 0 || norm <= limit) return;
  for (double& value : gradient) value *= limit / norm;
}

// How many of the worlds of a practice are hard ones, if so many are kept.
std::size_t NumHard(const PolicyGradientOptions& options, std::size_t kept, std::size_t worlds) {
  return std::min(kept, static_cast<std::size_t>(options.hard_share * static_cast<double>(worlds)));
}

CountInterval Crowded(CountInterval count, double crowding) {
  const auto more = [&](int n) { return static_cast<int>(std::lround(n * crowding)); };
  return {more(count.low), more(count.high)};
}

}  // namespace

void Describe(OptionVisitor& visitor, PolicyGradientOptions& options) {
  auto& [method, episodes, noise, last_noise, discount, trace, epochs, minibatch, clip, normalise,
         norm_limit, averaging, critic_hidden, critic_step, refit_epochs, time_weight,
         failure_weight, way, crowding, hard_share] = options;
  const bool ppo = method == PolicyGradientOptions::Method::kPpo;
  visitor.Choice({"method", "",
                  "Several careful steps on a round's samples (ppo), or one step down an unbiased "
                  "estimate, as in Algorithm 1, in the true task with noise as it is (plain): the "
                  "options marked ppo are not for that."},
                 method);
  visitor.Integer({"episodes", "",
                   "How many it practises with noise in a round, besides those that measure y."},
                  episodes, {1, 1000000});
  visitor.Number(
      {"noise", "", "Standard deviation of the noise on the network's output in practice."}, noise,
      Closed(1e-4, 100));
  visitor.Number(
      ActsIf(ppo, {"last_noise", "", "ppo: the same in the last round of the schedule."}),
      last_noise, Closed(1e-4, 100));
  visitor.Number(
      ActsIf(ppo, {"discount", "", "ppo: how much a reward counts one step earlier (Eq. 47)."}),
      discount, Above(0, 1));
  visitor.Number(
      ActsIf(ppo, {"trace", "",
                   "ppo: how far a surprise reaches back, lambda: 0 trusts the critic, 1 the "
                   "episodes (Eq. 47)."}),
      trace, Closed(0, 1));
  visitor.Integer({"epochs", "", "Passes over a round's samples (plain: of the critic only)."},
                  epochs, {1, 1000});
  visitor.Integer({"minibatch", "samples", "How many make a step."}, minibatch, {1, 100000000});
  visitor.Number(
      ActsIf(ppo, {"clip", "",
                   "ppo: how much likelier or less likely a control may get before its sample "
                   "stops to count; 0 for no limit (Eq. 49)."}),
      clip, Closed(0, 1));
  visitor.Flag(ActsIf(ppo, {"normalise", "",
                            "ppo: whether advantages are brought to mean 0 and deviation 1."}),
               normalise);
  visitor.Number(
      ActsIf(ppo, {"norm_limit", "", "ppo: the longest gradient of a step; 0 for no limit."}),
      norm_limit, Closed(0, 1e6));
  visitor.Number(
      ActsIf(ppo,
             {"averaging", "",
              "ppo: the policy that is measured and shared is an average over rounds, in which "
              "the past has this share; 0 for none."}),
      averaging, {0, 1, false, true});
  visitor.Integers({"critic_hidden", "", "Sizes of the hidden layers of the private critic."},
                   critic_hidden, {1, 4096}, 16);
  visitor.Number({"critic_step", "", "Its step in round 1 (Adam); falls as the policy's does."},
                 critic_step, Above(0, 10));
  visitor.Integer(
      ActsIf(ppo, {"refit_epochs", "",
                   "ppo: passes of the critic alone, at the start and after an adoption."}),
      refit_epochs, {0, 1000});
  visitor.Number(
      ActsIf(ppo, {"time_weight", "", "ppo: what time costs in practice, against J (Eq. 46)."}),
      time_weight, Closed(0, 1e3));
  visitor.Number(
      ActsIf(ppo, {"failure_weight", "",
                   "ppo: what a collision or a time-out costs in practice, against J (Eq. 46)."}),
      failure_weight, Closed(0, 1e3));
  visitor.Flag(
      ActsIf(ppo,
             {"way", "",
              "ppo: whether practice rewards progress along the way around obstacles (Eq. 45), "
              "not straight to the goal."}),
      way);
  visitor.Number(
      ActsIf(ppo, {"crowding", "",
                   "ppo: so many times as many random discs and boxes stand in the worlds of "
                   "practice."}),
      crowding, Closed(0, 10));
  visitor.Number(
      ActsIf(ppo, {"hard_share", "",
                   "ppo: the share of the worlds of practice that are earlier ones in which it "
                   "failed."}),
      hard_share, Closed(0, 1));
}

Task PracticeTask(const Task& task, const TrainingCost& cost,
                  const PolicyGradientOptions& options) {
  Task practised = task;
  if (options.method == PolicyGradientOptions::Method::kPlain) return practised;
  practised.robot.radius += cost.margin;
  practised.world.random_discs.count =
      Crowded(practised.world.random_discs.count, options.crowding);
  practised.world.random_boxes.count =
      Crowded(practised.world.random_boxes.count, options.crowding);
  return practised;
}

PolicyGradient::PolicyGradient(PolicyGradientSettings settings, const Mlp& shape,
                               std::unique_ptr<Objective> objective,
                               std::shared_ptr<Experience> experience, Key key)
    : settings_(std::move(settings)),
      policy_(shape),
      objective_(std::move(objective)),
      experience_(std::move(experience)) {
  policy_shape_ = NetworkShapeOf(shape);
  critic_shape_.activation = Activation::kRelu;
  critic_shape_.sizes.push_back(shape.num_inputs() + Experience::kCriticInputs);
  std::ranges::copy(settings_.options.critic_hidden, std::back_inserter(critic_shape_.sizes));
  critic_shape_.sizes.push_back(1);
  for (const PracticeGround& ground : settings_.grounds) {
    tasks_.push_back(PracticeTask(ground.task, settings_.cost, settings_.options));
  }
  // The critic begins as a policy of its shape does: weights that keep the size of what comes in,
  // but for the last layer, so that it expects little at first.
  Mlp drawn;
  drawn.state_inputs = false;
  drawn.num_beams = critic_shape_.sizes.front();
  drawn.hidden = settings_.options.critic_hidden;
  drawn.parameters.resize(NumParameters(drawn));
  DrawParameters(key, 1.0, drawn);
  const auto last = static_cast<std::size_t>(drawn.layer_inputs(drawn.num_layers() - 1)) + 1;
  for (std::size_t at = drawn.parameters.size() - last; at < drawn.parameters.size(); ++at) {
    drawn.parameters[at] *= 0.1F;
  }
  state_.critic = std::move(drawn.parameters);
  state_.hard.resize(settings_.grounds.size());
  networks_ = std::make_unique<ActorCritic>(policy_shape_, critic_shape_, settings_.kernel,
                                            settings_.num_threads);
}

bool PolicyGradient::NeedsGradient() const {
  return plain() || settings_.stop.rule == StopOptions::Rule::kGradient ||
         settings_.stop.rule == StopOptions::Rule::kAuto;
}

double PolicyGradient::NoiseOf(int k, int num_rounds) const {
  const auto& [noise, last] = std::pair(settings_.options.noise, settings_.options.last_noise);
  if (plain()) return noise;
  return StepSize({.step = noise,
                   .schedule = StepOptions::Schedule::kGeometric,
                   .last = last,
                   .rounds = settings_.step.rounds},
                  k, num_rounds);
}

RewardOptions PolicyGradient::Reward() const {
  if (plain()) return {.distance_weight = 0};
  const PolicyGradientOptions& o = settings_.options;
  return {settings_.cost.distance_weight, o.time_weight, o.failure_weight, o.way};
}

// If theta is not what this improver left, the search goes on from it.
void PolicyGradient::Follow(std::span<const float> theta) {
  const std::size_t frozen = 2 * policy_.input_scale.size();
  const auto parameters = theta.subspan(frozen);
  policy_ = MlpOf(policy_, theta);
  if (!std::ranges::equal(parameters, state_.average)) {
    state_.search.assign(parameters.begin(), parameters.end());
    state_.average = state_.search;
    state_.averaged = 0;
  }
  policy_.parameters = state_.search;
}

Look PolicyGradient::Measure(int k, int num_rounds, std::span<const float> theta, Key key) {
  std::int64_t num_worlds = 0;
  for (const PracticeGround& ground : settings_.grounds) num_worlds += ground.worlds;
  const Value value = objective_->MeasureValue(theta, num_worlds, key);
  Look look;
  look.y = value.y;
  look.episodes = value.episodes;

  Follow(theta);
  // A critic that does not fit yet learns from these episodes before it judges them.
  const bool fits = plain() || state_.critic_fits;
  if (fits) networks_->SetCritic(state_.critic);
  look.episodes += Practise(k, num_rounds, key.Fork(kPractice), fits);
  if (!fits) {
    FitCritic(settings_.options.refit_epochs, settings_.options.critic_step,
              key.Fork(kPractice).Fork(kRefit));
    networks_->SetCritic(state_.critic);
    ForEpisodes([this](const PracticeGround& ground, std::size_t first, std::size_t count,
                       int worker) { Judge(ground, first, count, worker); });
  }
  measurement_ = {};
  measurement_.y = value.y;
  if (NeedsGradient()) {
    EstimateGradient();
    const double norm = Norm(measurement_.z_mu);
    look.z_norm = norm;
    look.spread = measurement_.spread;
    look.threshold = ThresholdFor(settings_.stop, measurement_, state_.stop);
    // A threshold that will stop the learner before it has moved.
    const bool automatic = settings_.stop.rule == StopOptions::Rule::kAuto;
    const bool first = automatic ? !state_.stop.threshold : k == 1;
    const double threshold = look.threshold.value_or(0);
    if (first && norm < threshold) {
      look.remark =
          automatic
              ? fmt::format(
                    "stops at once: |z| = {:.3g} is below q = 4 x spread = {:.3g}; more episodes "
                    "in a round (learner.policy_gradient.episodes) lower the spread",
                    norm, threshold)
              : fmt::format(
                    "stops at once: |z| = {:.3g} is below learner.threshold = {:.3g}; with "
                    "learner.stop = \"never\" it would learn",
                    norm, threshold);
    }
  }
  return look;
}

// Drives with noise through fresh worlds, and through some that failed before; judges on the way.
std::int64_t PolicyGradient::Practise(int k, int num_rounds, Key key, bool judge) {
  noise_ = NoiseOf(k, num_rounds);
  Experience::Shape shape;
  for (const PracticeGround& ground : settings_.grounds) {
    shape.episodes += ground.episodes;
    shape.horizon = std::max(shape.horizon, ground.task.episode.horizon);
  }
  shape.num_inputs = policy_.num_inputs();
  experience_->Reset(shape);

  std::size_t first = 0;
  for (std::size_t index = 0; index < settings_.grounds.size(); ++index) {
    const Key ground_key = key.Fork(index);
    const Task& task = tasks_[index];
    const int starts = task.world.start.per_world;
    const auto num_worlds =
        static_cast<std::size_t>((settings_.grounds[index].episodes + starts - 1) / starts);
    const std::vector<std::uint64_t>& hard = state_.hard[index];
    const std::size_t num_hard = NumHard(settings_.options, hard.size(), num_worlds);
    std::vector<Key> keys(num_worlds);
    for (std::size_t world = 0; world < num_worlds; ++world) {
      keys[world] = world < num_hard ? Key(hard[world]) : ground_key.Fork(kWorlds).Fork(world);
    }
    Practice practice;
    practice.task = &task;
    practice.policy = &policy_;
    practice.worlds =
        WorldSource([&](std::int64_t world, int start, World& scratch) -> const World& {
          DrawWorld(task.world, task.robot.radius, keys[static_cast<std::size_t>(world)],
                    settings_.kernel, scratch, start);
          return scratch;
        });
    practice.first = first;
    practice.episodes = settings_.grounds[index].episodes;
    practice.noise = noise_;
    practice.noise_key = ground_key.Fork(kNoise);
    practice.way = Reward().way;
    practice.kernel = settings_.kernel;
    practice.num_threads = settings_.num_threads;
    if (judge) {
      practice.on_driven = [this, index](std::size_t begin, std::size_t count, int worker) {
        Judge(settings_.grounds[index], begin, count, worker);
      };
    }
    Explore(practice, *experience_);
    KeepHardWorlds(index, first, keys);
    first += static_cast<std::size_t>(practice.episodes);
  }
  experience_->ListSteps();
  practised_ = true;
  return static_cast<std::int64_t>(first);
}

// The newest worlds in which an episode failed, as many as a round could use.
void PolicyGradient::KeepHardWorlds(std::size_t ground, std::size_t first,
                                    std::span<const Key> keys) {
  if (plain() || settings_.options.hard_share <= 0) return;
  const auto starts = static_cast<std::size_t>(tasks_[ground].world.start.per_world);
  const auto num_episodes = static_cast<std::size_t>(settings_.grounds[ground].episodes);
  std::vector<std::uint64_t> failed;
  for (std::size_t episode = 0; episode < num_episodes; ++episode) {
    if (experience_->episodes[first + episode].outcome == Outcome::kReachedGoal) continue;
    const std::uint64_t bits = keys[episode / starts].bits();
    if (failed.empty() || failed.back() != bits) failed.push_back(bits);
  }
  std::vector<std::uint64_t>& hard = state_.hard[ground];
  const std::size_t num_hard = NumHard(settings_.options, hard.size(), keys.size());
  hard.erase(hard.begin(), hard.begin() + static_cast<std::ptrdiff_t>(num_hard));
  hard.insert(hard.begin(), failed.begin(), failed.end());
  hard.resize(std::min(hard.size(), keys.size()));
}

// How much better it went than expected.
void PolicyGradient::Credit(const PracticeGround& ground, std::size_t first, std::size_t count,
                            double trace) {
  GiveCredit(Reward(), ground.task.episode, plain() ? 1 : settings_.options.discount, trace, first,
             count, *experience_);
}

// What the critic expected, and how much better it went than that.
void PolicyGradient::Judge(const PracticeGround& ground, std::size_t first, std::size_t count,
                           int worker) {
  networks_->Value(first, count, worker, *experience_);
  Credit(ground, first, count, plain() ? 1 : settings_.options.trace);
}

// All episodes, some at a time, on all threads.
void PolicyGradient::ForEpisodes(const EpisodesWork& work) const {
  std::size_t first = 0;
  for (const PracticeGround& ground : settings_.grounds) {
    const auto episodes = static_cast<std::size_t>(ground.episodes);
    ParallelFor(static_cast<std::int64_t>((episodes + kEpisodesAtOnce - 1) / kEpisodesAtOnce),
                settings_.num_threads, [&](std::int64_t task, int worker) {
                  const std::size_t begin = static_cast<std::size_t>(task) * kEpisodesAtOnce;
                  work(ground, first + begin, std::min(kEpisodesAtOnce, episodes - begin), worker);
                });
    first += episodes;
  }
}

// The critic alone, to what the episodes really gave.
void PolicyGradient::FitCritic(int epochs, double step, Key key) {
  std::ranges::fill(experience_->values, 0.0F);
  ForEpisodes([this](const PracticeGround& ground, std::size_t first, std::size_t count, int) {
    Credit(ground, first, count, 1);
  });
  for (int epoch = 0; epoch < epochs; ++epoch) {
    TakeSteps(0, step, key.Fork(static_cast<std::uint64_t>(epoch)));
  }
  state_.critic_fits = true;
}

// z: the mean over worlds of what their episodes say about the gradient of the noisy policy's cost
// (Eq. 48), and its spread over worlds.
void PolicyGradient::EstimateGradient() {
  networks_->SetPolicy(state_.search);
  ActorCritic::WorldGradients gradients;
  std::size_t first = 0;
  for (std::size_t index = 0; index < settings_.grounds.size(); ++index) {
    const auto episodes = static_cast<std::size_t>(settings_.grounds[index].episodes);
    networks_->AddWorlds(*experience_, first, episodes,
                         static_cast<std::size_t>(tasks_[index].world.start.per_world),
                         static_cast<float>(noise_), gradients);
    first += episodes;
  }
  auto& [sum, squares, worlds] = gradients;
  const auto n = static_cast<double>(worlds);
  for (double& value : sum) value /= n;
  const double norm = Norm(sum);
  measurement_.spread =
      worlds > 1 ? std::sqrt(std::max(0.0, squares / n - norm * norm) / (n - 1)) : 0;
  measurement_.z_mu = std::move(sum);
}

void PolicyGradient::NormaliseAdvantages() {
  Experience& experience = *experience_;
  double sum = 0;
  double squares = 0;
  for (const std::uint32_t step : experience.steps) {
    const auto advantage = static_cast<double>(experience.notes[step].advantage);
    sum += advantage;
    squares += advantage * advantage;
  }
  const auto n = static_cast<double>(experience.steps.size());
  const double mean = sum / n;
  const double deviation = std::sqrt(std::max(0.0, squares / n - mean * mean));
  const auto shift = static_cast<float>(mean);
  const auto scale = static_cast<float>(1 / (deviation + 1e-8));
  for (const std::uint32_t step : experience.steps) {
    experience.notes[step].advantage = (experience.notes[step].advantage - shift) * scale;
  }
}

// One pass over the samples in random order. Without a step for the policy only the critic learns.
void PolicyGradient::TakeSteps(double step, double critic_step, Key key) {
  const PolicyGradientOptions& options = settings_.options;
  shuffled_.reserve(experience_->steps.capacity());  // once for all rounds
  shuffled_ = experience_->steps;
  Shuffle(key, shuffled_);
  const std::size_t num_samples = shuffled_.size();
  if (num_samples == 0) return;  // every episode was over at its start
  std::optional<ActorCritic::Clipped> loss;
  if (step > 0) {
    loss = {static_cast<float>(noise_), options.clip > 0 ? static_cast<float>(options.clip)
                                                         : std::numeric_limits<float>::infinity()};
  }
  const std::size_t num_steps =
      std::max<std::size_t>(1, num_samples / static_cast<std::size_t>(options.minibatch));
  const double limit = plain() ? 0 : options.norm_limit;
  for (std::size_t index = 0; index < num_steps; ++index) {
    const std::size_t begin = num_samples * index / num_steps;
    const std::size_t end = num_samples * (index + 1) / num_steps;
    networks_->SetPolicy(state_.search);
    networks_->SetCritic(state_.critic);
    networks_->Differentiate(*experience_, std::span(shuffled_).subspan(begin, end - begin), loss);
    if (loss) {
      LimitNorm(limit, networks_->policy_gradient());
      Descend(settings_.optimizer, networks_->policy_gradient(), step, state_.optimizer,
              state_.search);
    }
    LimitNorm(limit, networks_->critic_gradient());
    Descend(kCriticOptimizer, networks_->critic_gradient(), critic_step, state_.critic_optimizer,
            state_.critic);
  }
}

Step PolicyGradient::Improve(int k, int num_rounds, Key key, std::span<float> theta) {
  FEDGEN_CHECK(practised_, "nothing was measured in round {}", k);
  practised_ = false;
  if (ShouldStop(settings_.stop, measurement_, state_.stop)) return {.moved = false};
  const PolicyGradientOptions& options = settings_.options;
  const double step = StepLength(k, num_rounds);
  const double critic_step = options.critic_step * step / settings_.step.step;
  if (plain()) {
    Descend(settings_.optimizer, measurement_.z_mu, step, state_.optimizer, state_.search);
    // For later rounds: a baseline that knew this round's episodes would bias z.
    FitCritic(options.epochs, critic_step, key.Fork(kRefit));
    std::ranges::copy(state_.search, theta.end() - std::ssize(state_.search));
    state_.average = state_.search;
    return {.moved = true};
  }
  if (options.normalise) NormaliseAdvantages();
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    TakeSteps(step, critic_step, key.Fork(kShuffles).Fork(static_cast<std::uint64_t>(epoch)));
  }
  Average(theta);
  return {.moved = true};
}

// The first rounds count less: after n rounds at most a share of (n + 1) / (n + 10) of the average
// stays.
void PolicyGradient::Average(std::span<float> theta) {
  const auto n = static_cast<double>(++state_.averaged);
  const double keep = std::min(settings_.options.averaging, (n + 1) / (n + 10));
  for (std::size_t at = 0; at < state_.average.size(); ++at) {
    const auto now = static_cast<double>(state_.search[at]);
    const auto before = static_cast<double>(state_.average[at]);
    state_.average[at] = static_cast<float>(now + keep * (before - now));
  }
  std::ranges::copy(state_.average, theta.end() - std::ssize(state_.average));
}

double PolicyGradient::StepLength(int k, int num_rounds) const {
  return StepSize(settings_.step, k, num_rounds);
}

Value PolicyGradient::MeasureValue(std::span<const float> theta, std::int64_t worlds, Key key) {
  return objective_->MeasureValue(theta, worlds, key);
}

void PolicyGradient::Restart() {
  state_.search.clear();
  state_.average.clear();
  state_.averaged = 0;
  state_.optimizer = {};
  state_.critic_optimizer = {};
  state_.critic_fits = false;
  state_.stop.recent.clear();
  practised_ = false;
}

std::string PolicyGradient::SaveState() const { return ToBytes(state_); }

Result<void> PolicyGradient::LoadState(std::string_view bytes, std::size_t num_parameters) {
  PolicyGradientState state;
  Reader reader(bytes);
  reader(state);
  reader.Finish();
  const std::size_t num_searched = num_parameters - 2 * policy_.input_scale.size();
  const auto fits = [](const auto& values, std::size_t size) {
    return values.empty() || values.size() == size;
  };
  if (num_searched != policy_.parameters.size() || !fits(state.search, num_searched) ||
      state.average.size() != state.search.size() || !fits(state.optimizer.first, num_searched) ||
      !fits(state.optimizer.second, num_searched)) {
    reader.Fail("the search has another number of parameters than the policy");
  }
  const std::size_t num_critic = NumParameters(critic_shape_);
  if (state.critic.size() != num_critic || !fits(state.critic_optimizer.first, num_critic) ||
      !fits(state.critic_optimizer.second, num_critic)) {
    reader.Fail("the critic has another number of parameters than configured");
  }
  if (state.hard.size() != settings_.grounds.size() || state.averaged < 0 ||
      state.optimizer.steps < 0 || state.critic_optimizer.steps < 0) {
    reader.Fail("a number of steps is negative, or a list is too long");
  }
  if (!reader.problem().empty()) return Error{ErrorCode::kData, reader.problem()};
  state_ = std::move(state);
  practised_ = false;
  return {};
}

}  // namespace fedgen
