// SPDX-License-Identifier: Apache-2.0
#include "fedgen/policy/policy.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace fedgen {
namespace {

// Eq. 14 for one robot. Plain float arithmetic, so both kernels share it bit for bit.
float FollowGap(const GapFollower& follower, const Lidar& lidar, const float* ranges,
                float robot_radius, float goal_forward, float goal_left) {
  constexpr int kMaxBeams = 1024;
  float forward[kMaxBeams];
  float left[kMaxBeams];
  int num_points = 0;
  for (int index = 0; index < lidar.num_beams; ++index) {
    const auto beam = static_cast<std::size_t>(index);
    forward[num_points] = ranges[beam] * lidar.cos[beam];
    left[num_points] = ranges[beam] * lidar.sin[beam];
    num_points += ranges[beam] < lidar.range ? 1 : 0;
  }
  const float reach = robot_radius + static_cast<float>(follower.margin);
  const float reach2 = reach * reach;
  const float to_goal = std::sqrt(goal_forward * goal_forward + goal_left * goal_left);
  const float goal_scale = to_goal > 0 ? static_cast<float>(follower.goal_weight) / to_goal : 0;
  // What lies behind the goal does not matter.
  const float look_ahead = std::min(static_cast<float>(follower.look_ahead), to_goal + reach);
  float best_score = -1e9F;
  float best_angle = 0;
  for (int candidate = 0; candidate < lidar.num_beams; ++candidate) {
    const float c = lidar.cos[static_cast<std::size_t>(candidate)];
    const float s = lidar.sin[static_cast<std::size_t>(candidate)];
    float free = look_ahead;
    for (int point = 0; point < num_points; ++point) {
      const float along = forward[point] * c + left[point] * s;
      const float across = left[point] * c - forward[point] * s;
      const float inside = reach2 - across * across;
      if (inside > 0 && along > 0) free = std::min(free, along - std::sqrt(inside));
    }
    const float angle = lidar.first + lidar.spacing * static_cast<float>(candidate);
    const float score = std::max(free, 0.0F) / look_ahead +
                        goal_scale * (goal_forward * c + goal_left * s) -
                        static_cast<float>(follower.turn_weight) * std::fabs(angle);
    if (score > best_score) {
      best_score = score;
      best_angle = angle;
    }
  }
  return best_angle;
}

// What a network was made for, against what it should drive: beams, m, rad or rad/s.
std::optional<std::string> FindBodyMismatch(const Mlp& mlp, int beams, float range, float limit) {
  if (mlp.num_beams != beams) {
    return fmt::format("policy reads {} beams, lidar.beams = {}", mlp.num_beams, beams);
  }
  if (mlp.max_range != range) {
    return fmt::format("policy expects a range of {} m, lidar.range = {}", mlp.max_range, range);
  }
  if (std::fabs(mlp.control_limit - limit) > 1e-5F * limit) {
    return fmt::format("policy steers within +-{:.6g}, the robot within +-{:.6g}",
                       mlp.control_limit, limit);
  }
  return std::nullopt;
}

template <typename Value>
std::optional<std::string> FindDifference(const char* field, const Value& made,
                                          const Value& asked) {
  if (made == asked) return std::nullopt;
  return fmt::format("policy was made with {0} = {1}, policy.{0} = {2}", field, made, asked);
}
}  // namespace

std::optional<Policy> BuiltInPolicy(std::string_view name) {
  if (name == "straight") return StraightAhead{};
  if (name == "gap-follower") return GapFollower{};
  return std::nullopt;
}

std::optional<std::string> FindMismatch(const Policy& policy, const LidarOptions& lidar,
                                        const RobotOptions& robot) {
  const Mlp* mlp = std::get_if<Mlp>(&policy);
  if (mlp == nullptr) return std::nullopt;
  return FindBodyMismatch(*mlp, lidar.beams, static_cast<float>(lidar.range),
                          static_cast<float>(ControlLimit(robot)));
}

std::optional<std::string> FindMismatch(const Mlp& mlp, const Mlp& wanted) {
  const auto range_code = [](const Mlp& of) { return NameOf(of.range_code); };
  const auto activation = [](const Mlp& of) { return NameOf(of.activation); };
  const auto output_map = [](const Mlp& of) { return NameOf(of.output_map); };
  for (auto& mismatch : {
           FindBodyMismatch(mlp, wanted.num_beams, wanted.max_range, wanted.control_limit),
           FindDifference("hidden", mlp.hidden, wanted.hidden),
           FindDifference("activation", activation(mlp), activation(wanted)),
           FindDifference("state_inputs", mlp.state_inputs, wanted.state_inputs),
           FindDifference("goal_inputs", mlp.goal_inputs, wanted.goal_inputs),
           FindDifference("range_code", range_code(mlp), range_code(wanted)),
           FindDifference("range_offset", mlp.range_offset, wanted.range_offset),
           FindDifference("output_map", output_map(mlp), output_map(wanted)),
       }) {
    if (mismatch) return mismatch;
  }
  return std::nullopt;
}

Driver::Driver(const Policy& policy, const Body& body)
    : policy_(policy),
      robot_radius_(static_cast<float>(body.robot.radius)),
      control_limit_(static_cast<float>(ControlLimit(body.robot))) {
  if (const Mlp* mlp = std::get_if<Mlp>(&policy)) workspace_.emplace(*mlp);
  const double limit = ControlLimit(body.robot);
  const double turn_rate =
      body.robot.kind == RobotOptions::Kind::kCar ? std::tan(limit) / body.robot.length : limit;
  full_turn_ = static_cast<float>(turn_rate * body.time_step);
}

void Driver::Decide(Kernel kernel, const Lidar& lidar, int last, Batch& batch) {
  if (const Mlp* mlp = std::get_if<Mlp>(&policy_); mlp != nullptr && workspace_) {
    DecideMlp(kernel, *mlp, last, *workspace_, batch);
    return;
  }
  const auto* follower = std::get_if<GapFollower>(&policy_);
  for (std::size_t slot = 0; slot < static_cast<std::size_t>(last); ++slot) {
    float share = 0;  // of the control limit
    if (follower != nullptr) {
      const float* ranges =
          batch.ranges.data() + slot * static_cast<std::size_t>(batch.beam_stride);
      const float angle = FollowGap(*follower, lidar, ranges, robot_radius_,
                                    batch.goal_forward[slot], batch.goal_left[slot]);
      share = std::clamp(static_cast<float>(follower->gain) * angle / full_turn_, -1.0F, 1.0F);
    }
    batch.control[slot] = share * control_limit_;
  }
}

}  // namespace fedgen
