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

template <typename Value>
std::optional<std::string> FindDifference(const char* field, const Value& made,
                                          const Value& asked) {
  if (made == asked) return std::nullopt;
  return fmt::format("policy was made with {0} = {1}, policy.{0} = {2}", field, made, asked);
}

std::optional<std::string> FindBodyMismatch(const Mlp& mlp, const Body& body) {
  const auto differences = mlp.made_for ? FindDifferences(*mlp.made_for, body) : std::nullopt;
  if (!differences) return std::nullopt;
  return "policy was made for " + *differences;
}

// Where both are known the body says more: "robot.kind" rather than a limit in two units. Whether
// it can be helped is up to the scale.
std::optional<std::string> FirstOf(std::optional<std::string> scale,
                                   std::optional<std::string> body) {
  if (!body) return scale;
  return *body + (scale ? " (--anyway does not help: the network is scaled for its own)"
                        : " (--anyway allows it)");
}

}  // namespace

std::optional<Policy> BuiltInPolicy(std::string_view name) {
  if (name == "straight") return StraightAhead{};
  if (name == "gap-follower") return GapFollower{};
  return std::nullopt;
}

std::optional<std::string> FindMismatch(const Policy& policy, const Body& body) {
  const Mlp* mlp = std::get_if<Mlp>(&policy);
  if (mlp == nullptr) return std::nullopt;
  auto mismatch =
      FindScaleMismatch(*mlp, body.lidar.beams, body.lidar.range, ControlLimit(body.robot));
  return FirstOf(std::move(mismatch), FindBodyMismatch(*mlp, body));
}

std::optional<std::string> ForgetBody(const Body& body, Mlp& mlp) {
  auto mismatch = FindBodyMismatch(mlp, body);
  if (mismatch) mlp.made_for.reset();
  return mismatch;
}

std::optional<std::string> FindMismatch(const Mlp& mlp, const Mlp& wanted) {
  const auto range_code = [](const Mlp& of) { return NameOf(of.range_code); };
  const auto activation = [](const Mlp& of) { return NameOf(of.activation); };
  const auto output_map = [](const Mlp& of) { return NameOf(of.output_map); };
  for (auto& mismatch : {
           FindScaleMismatch(mlp, wanted.num_beams, wanted.max_range, wanted.control_limit),
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
  if (!wanted.made_for) return std::nullopt;
  return FirstOf(std::nullopt, FindBodyMismatch(mlp, *wanted.made_for));
}

Driver::Driver(const Policy& policy, const Body& body, MlpTrace* trace)
    : policy_(policy),
      trace_(trace),
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
    DecideMlp(kernel, *mlp, last, *workspace_, batch, trace_);
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
