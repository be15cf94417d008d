// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "fedgen/base/kernel.h"
#include "fedgen/policy/body.h"
#include "fedgen/policy/mlp.h"
#include "fedgen/policy/mlp_kernel.h"
#include "fedgen/sim/batch.h"

namespace fedgen {

// A policy is a learned network, or one of two built-in ones that need no file: `straight` never
// steers (the paper's initial policies do about that), `gap-follower` is a reactive baseline.

struct StraightAhead {};

/// Drives towards the direction that stays free longest, preferring the goal's (docs/math.md Eq.
/// 14). Every beam that sees an obstacle is a point that the robot's disc, grown by a margin, must
/// miss.
/// The numbers were tuned on the tables', the text's and the random-start world together.
struct GapFollower {
  double margin = 0.066;       // m, added to the robot's radius
  double look_ahead = 9.0;     // m; free distance beyond this, or beyond the goal, counts no more
  double goal_weight = 0.113;  // worth of facing the goal, against a free look_ahead
  double turn_weight = 0.05;   // cost of turning by 1 rad
  double gain = 1.0;           // share of the way to the chosen direction turned in one step
};

using Policy = std::variant<Mlp, StraightAhead, GapFollower>;

/// `straight` or `gap-follower`; nothing for any other name.
std::optional<Policy> BuiltInPolicy(std::string_view name);

/// Nothing if the policy was made for this body, as far as it knows; otherwise why not, in one
/// line: "policy reads 20 beams, lidar.beams = 24". Without `made_for` a network knows its beams,
/// range and control limit only.
std::optional<std::string> FindMismatch(const Policy& policy, const Body& body);

/// Lets a network drive a body that it was not made for, as far as its numbers are scaled for it:
/// it forgets what it was made for. Returns what differs, for a warning: "policy was made for
/// robot.speed = 2.5, configured 3". If nothing does, it forgets nothing.
std::optional<std::string> ForgetBody(const Body& body, Mlp& mlp);

/// Nothing if two networks differ in their numbers only, so that the parameters of one mean the
/// same in the other, and were made for one body; otherwise the first difference, by the key of the
/// configuration that asks for the wanted one: "policy was made with range_code = raw,
/// policy.range_code = inverse".
std::optional<std::string> FindMismatch(const Mlp& mlp, const Mlp& wanted);

/// A policy ready to drive: the policy, its workspace, and what it needs of the body. The policy
/// must outlive it.
class Driver {
 public:
  /// With a trace, which must outlive it and have room for the batch, a network writes there what
  /// it sees and says.
  Driver(const Policy& policy, const Body& body, MlpTrace* trace = nullptr);
  /// Writes control for slots [0, last). Does not allocate.
  void Decide(Kernel kernel, const Lidar& lidar, int last, Batch& batch);

 private:
  const Policy& policy_;
  std::optional<MlpWorkspace> workspace_;
  MlpTrace* trace_;
  float robot_radius_;   // m
  float control_limit_;  // rad or rad/s
  float full_turn_;      // rad turned in one step at the control limit
};

}  // namespace fedgen
