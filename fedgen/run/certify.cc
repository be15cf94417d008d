// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/certify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fedgen/base/hash.h"
#include "fedgen/base/text.h"
#include "fedgen/base/version.h"
#include "fedgen/certify/bounds.h"
#include "fedgen/certify/ladder.h"
#include "fedgen/policy/policy_file.h"
#include "fedgen/rollout/evaluate.h"

namespace fedgen {
namespace {

// What acts in a policy, byte for byte.
std::string PolicyBytes(const Policy& policy, int version) {
  if (const Mlp* mlp = std::get_if<Mlp>(&policy)) {
    return version == 1 ? PolicyToBinaryV1(*mlp) : NetworkBytes(*mlp);
  }
  if (const auto* follower = std::get_if<GapFollower>(&policy)) {
    const auto& [margin, look_ahead, goal_weight, turn_weight, gain] = *follower;
    return fmt::format(
        "gap-follower\nmargin={}\nlook_ahead={}\ngoal_weight={}\nturn_weight={}\ngain={}\n", margin,
        look_ahead, goal_weight, turn_weight, gain);
  }
  return "straight\n";
}

std::string PolicyText(const Policy& policy) {
  if (const Mlp* mlp = std::get_if<Mlp>(&policy)) {
    return fmt::format("{} network, {}", mlp->Shape(),
                       Counted(static_cast<std::int64_t>(mlp->parameters.size()), "parameter"));
  }
  return std::holds_alternative<GapFollower>(policy) ? "gap-follower" : "straight";
}

std::string RobotText(const RobotOptions& robot) {
  const std::string body = fmt::format("radius {} m, {} m/s", robot.radius, robot.speed);
  if (robot.kind == RobotOptions::Kind::kCar) {
    return fmt::format("car, {}, length {} m, steering within {} degrees", body, robot.length,
                       robot.steering_limit_degrees);
  }
  return fmt::format("differential drive, {}, turning within {} rad/s", body,
                     robot.turn_rate_limit);
}

std::string SensorText(const LidarOptions& lidar) {
  return fmt::format("{} from {} to {} degrees, range {} m", Counted(lidar.beams, "beam"),
                     lidar.from_degrees, lidar.to_degrees, lidar.range);
}

}  // namespace

Result<void> CheckConfidence(double confidence) {
  if (IsConfidence(confidence)) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("--confidence = {}: {}", confidence, kConfidenceRule)};
}

Result<void> CheckChallenge(std::string_view challenge) {
  if (IsChallenge(challenge)) return {};
  return Error{ErrorCode::kUsage, fmt::format("--challenge = {}: must be 1 to 500 printable ASCII "
                                              "characters",
                                              Printable(challenge))};
}

std::string PolicyHash(const Policy& policy, int version) {
  return Sha256Hex(PolicyBytes(policy, version));
}

Result<void> AskQuestion(const Task& task, const Policy& policy, const CertifyOptions& options,
                         Certificate& certificate) {
  const bool old = options.version == 1;
  if (old ? options.num_worlds < 1 || options.num_worlds > kMaxCertificateWorlds
          : !IsRung(options.num_worlds)) {
    return Error{ErrorCode::kUsage,
                 fmt::format("--worlds = {}: {}", options.num_worlds, kLadderRule)};
  }
  FEDGEN_TRY(CheckConfidence(options.confidence));
  if (!options.challenge.empty()) FEDGEN_TRY(CheckChallenge(options.challenge));
  if (const auto mismatch = FindMismatch(policy, BodyOf(task))) {
    return Error{ErrorCode::kMismatch, *mismatch};
  }
  certificate.version = options.version;
  certificate.program = kVersion;
  certificate.policy = PolicyText(policy);
  certificate.robot = RobotText(task.robot);
  certificate.sensor = SensorText(task.lidar);
  certificate.policy_sha256 = PolicyHash(policy, options.version);
  certificate.task_sha256 = Sha256Hex(old ? CanonicalTaskV1(task) : CanonicalTask(task));
  certificate.challenge_sha256 = options.challenge.empty() ? "" : Sha256Hex(options.challenge);
  certificate.worlds = options.num_worlds;
  certificate.starts_per_world = task.world.start.per_world;
  if (old) {
    certificate.confidence = options.confidence;
  } else if (options.confidence == kCertificateConfidence) {
    certificate.makers_choice.reset();
  } else if (!certificate.makers_choice ||
             certificate.makers_choice->confidence != options.confidence) {
    certificate.makers_choice = Promise{options.confidence, 0, 1};
  }
  certificate.seed = options.seed.value_or(CertificationSeed(certificate));
  return {};
}

namespace {

// What a policy did in worlds that follow from a seed. The samples are the worlds: the mean cost
// and, if there are several starts, the share of safe ones of each, in order of their index.
struct Drive {
  Tally tally;
  std::vector<double> costs, safe_shares;
};

Drive DriveWorlds(const Task& task, const Policy& policy, std::uint64_t seed,
                  const CertifyOptions& options,
                  const std::function<void(std::int64_t done)>& on_progress) {
  EvaluateOptions evaluate;
  evaluate.num_worlds = options.num_worlds;
  evaluate.starts_per_world = task.world.start.per_world;
  evaluate.num_threads = options.num_threads;
  evaluate.kernel = options.kernel;

  const auto num_worlds = static_cast<std::size_t>(options.num_worlds);
  const int starts = evaluate.starts_per_world;
  Drive drive{{},
              std::vector<double>(num_worlds, 0.0),
              std::vector<double>(starts > 1 ? num_worlds : 0, 0.0)};
  const auto add = [&](std::int64_t index, const Episode& episode) {
    const auto world = static_cast<std::size_t>(index / starts);
    drive.costs[world] += Cost(task.episode, episode);
    if (starts > 1 && episode.outcome == Outcome::kReachedGoal) ++drive.safe_shares[world];
  };
  const Key key = Key(seed).Fork(Stream::kCertification);
  drive.tally =
      Evaluate(task, policy, DrawnWorlds(task, key, options.kernel), evaluate, on_progress, add);
  for (double& cost : drive.costs) cost = std::min(1.0, cost / starts);
  for (double& share : drive.safe_shares) share /= starts;
  return drive;
}

}  // namespace

Result<Certificate> Certify(const Task& task, const Policy& policy, const CertifyOptions& options,
                            const std::function<void(std::int64_t done)>& on_progress) {
  Certificate certificate;
  FEDGEN_TRY(AskQuestion(task, policy, options, certificate));
  const Drive drive = DriveWorlds(task, policy, certificate.seed, options, on_progress);
  const Tally& tally = drive.tally;
  certificate.safe = tally.reached;
  certificate.collided = tally.collided;
  certificate.timed_out = tally.timed_out;
  certificate.mean_cost =
      std::clamp(tally.cost_sum / static_cast<double>(tally.episodes), 0.0, 1.0);
  certificate.outcome_hash = tally.outcome_hash;
  ComputeBounds(drive.costs, drive.safe_shares, certificate);
  return certificate;
}

Result<Challenged> Challenge(const Certificate& certificate, const Task& task, const Policy& policy,
                             const CertifyOptions& options,
                             const std::function<void(std::int64_t done)>& on_progress) {
  if (options.num_worlds < 1 || options.num_worlds > kMaxCertificateWorlds) {
    return Error{ErrorCode::kUsage, fmt::format("--worlds = {}: must be in 1..{}",
                                                options.num_worlds, kMaxCertificateWorlds)};
  }
  FEDGEN_TRY(CheckChallenge(options.challenge));
  const std::uint64_t seed = ChallengeSeed(certificate, options.challenge);
  const Drive drive = DriveWorlds(task, policy, seed, options, on_progress);
  return Challenged{drive.tally, JudgeClaim({certificate.safe_arrival, certificate.expected_cost},
                                            {drive.tally.reached, drive.costs, drive.safe_shares,
                                             task.world.start.per_world})};
}

std::string Summary(const Certificate& c) {
  const auto statements = [](double safe_arrival, double expected_cost) {
    return fmt::format("safe arrival >= {:.4f} and expected cost J <= {:.4f}",
                       std::floor(1e4 * safe_arrival) / 1e4, std::ceil(1e4 * expected_cost) / 1e4);
  };
  const std::string worlds =
      c.starts_per_world == 1 ? Counted(c.worlds, "unseen world")
                              : fmt::format("{} with {} starts each",
                                            Counted(c.worlds, "unseen world"), c.starts_per_world);
  std::string text = fmt::format("{}, jointly with {} confidence ({}, {})",
                                 statements(c.safe_arrival, c.expected_cost), Percent(c.confidence),
                                 worlds, Counted(c.collided + c.timed_out, "failure"));
  if (const auto& choice = c.makers_choice) {
    text += fmt::format("\nthe maker's choice of {} confidence, from the same worlds: {}",
                        Percent(choice->confidence),
                        statements(choice->safe_arrival, choice->expected_cost));
  }
  return text;
}

}  // namespace fedgen
