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
#include "fedgen/policy/policy_file.h"
#include "fedgen/rollout/evaluate.h"

namespace fedgen {
namespace {

// What a policy is, byte for byte: its .fgp file, or a built-in's name and numbers.
std::string PolicyBytes(const Policy& policy) {
  if (const Mlp* mlp = std::get_if<Mlp>(&policy)) return PolicyToBinary(*mlp);
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

Result<void> AskQuestion(const Task& task, const Policy& policy, const CertifyOptions& options,
                         Certificate& certificate) {
  if (options.num_worlds < 1 || options.num_worlds > kMaxCertificateWorlds) {
    return Error{ErrorCode::kUsage, fmt::format("--worlds = {}: must be in 1..{}",
                                                options.num_worlds, kMaxCertificateWorlds)};
  }
  if (auto checked = CheckConfidence(options.confidence); !checked) return checked;
  if (const auto mismatch = FindMismatch(policy, task.lidar, task.robot)) {
    return Error{ErrorCode::kMismatch, *mismatch};
  }
  certificate.program = kVersion;
  certificate.policy = PolicyText(policy);
  certificate.robot = RobotText(task.robot);
  certificate.sensor = SensorText(task.lidar);
  certificate.policy_sha256 = Sha256Hex(PolicyBytes(policy));
  certificate.task_sha256 = Sha256Hex(CanonicalTask(task));
  certificate.worlds = options.num_worlds;
  certificate.starts_per_world = task.world.start.per_world;
  certificate.confidence = options.confidence;
  certificate.seed = options.seed.value_or(CertificationSeed(certificate));
  return {};
}

Result<Certificate> Certify(const Task& task, const Policy& policy, const CertifyOptions& options,
                            const std::function<void(std::int64_t done)>& on_progress) {
  Certificate certificate;
  if (const Result<void> asked = AskQuestion(task, policy, options, certificate); !asked) {
    return asked.error();
  }
  EvaluateOptions evaluate;
  evaluate.num_worlds = certificate.worlds;
  evaluate.starts_per_world = certificate.starts_per_world;
  evaluate.num_threads = options.num_threads;
  evaluate.kernel = options.kernel;

  // The samples are the worlds: the mean cost and the share of safe starts of each.
  const auto num_worlds = static_cast<std::size_t>(certificate.worlds);
  const int starts = certificate.starts_per_world;
  std::vector<double> costs(num_worlds, 0.0);
  std::vector<double> safe_shares(starts > 1 ? num_worlds : 0, 0.0);
  const auto add = [&](std::int64_t index, const Episode& episode) {
    const auto world = static_cast<std::size_t>(index / starts);
    costs[world] += Cost(task.episode, episode);
    if (starts > 1 && episode.outcome == Outcome::kReachedGoal) ++safe_shares[world];
  };
  const Key key = Key(certificate.seed).Fork(Stream::kCertification);
  const Tally tally =
      Evaluate(task, policy, DrawnWorlds(task, key, options.kernel), evaluate, on_progress, add);
  for (double& cost : costs) cost = std::min(1.0, cost / starts);
  for (double& share : safe_shares) share /= starts;

  certificate.safe = tally.reached;
  certificate.collided = tally.collided;
  certificate.timed_out = tally.timed_out;
  certificate.mean_cost =
      std::clamp(tally.cost_sum / static_cast<double>(tally.episodes), 0.0, 1.0);
  certificate.outcome_hash = tally.outcome_hash;
  ComputeBounds(costs, safe_shares, certificate);
  return certificate;
}

namespace {

// Confidence is never rounded up to certainty.
std::string PercentOf(double confidence) {
  const std::string text = fmt::format("{:.8g}", 100 * confidence);
  return text == "100" ? "more than 99.999999" : text;
}

}  // namespace

std::string Summary(const Certificate& c) {
  const std::string worlds =
      c.starts_per_world == 1 ? Counted(c.worlds, "unseen world")
                              : fmt::format("{} with {} starts each",
                                            Counted(c.worlds, "unseen world"), c.starts_per_world);
  return fmt::format(
      "safe arrival >= {:.4f} and expected cost J <= {:.4f}, jointly with {} % confidence "
      "({}, {})",
      std::floor(1e4 * c.safe_arrival) / 1e4, std::ceil(1e4 * c.expected_cost) / 1e4,
      PercentOf(c.confidence), worlds, Counted(c.collided + c.timed_out, "failure"));
}

}  // namespace fedgen
