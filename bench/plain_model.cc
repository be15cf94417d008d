// SPDX-License-Identifier: Apache-2.0
#include "bench/plain_model.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "fedgen/base/check.h"

namespace fedgen {

PlainRobot::PlainRobot(const Pose& start)
    : x(start.x),
      y(start.y),
      heading(start.heading),
      cos(std::cos(start.heading)),
      sin(std::sin(start.heading)) {}

PlainNetwork::PlainNetwork(const Mlp& mlp)
    : mlp_(mlp),
      activations_(static_cast<std::size_t>(mlp.widest_layer())),
      sums_(static_cast<std::size_t>(mlp.widest_layer())) {
  FEDGEN_CHECK(!mlp.goal_inputs, "the plain network has no goal inputs");
  std::size_t offset = 0;
  for (int layer = 0; layer < mlp.num_layers(); ++layer) {
    const auto num_inputs = static_cast<std::size_t>(mlp.layer_inputs(layer));
    const auto num_outputs = static_cast<std::size_t>(mlp.layer_outputs(layer));
    for (std::size_t input = 0; input < num_inputs; ++input) {
      for (std::size_t output = 0; output < num_outputs; ++output) {
        weights_.push_back(mlp.parameters[offset + output * num_inputs + input]);
      }
    }
    offset += num_inputs * num_outputs;
    for (std::size_t output = 0; output < num_outputs; ++output) {
      weights_.push_back(mlp.parameters[offset + output]);
    }
    offset += num_outputs;
  }
}

float PlainNetwork::Decide(const PlainRobot& robot, std::span<const float> ranges) {
  // Encode (Eq. 12).
  float* inputs = activations_.data();
  float* sums = sums_.data();
  std::size_t count = 0;
  if (mlp_.state_inputs) {
    inputs[count++] = robot.x;
    inputs[count++] = robot.y;
    inputs[count++] = robot.sin;
    inputs[count++] = robot.cos;
  }
  switch (mlp_.range_code) {
    case RangeCode::kRaw:
      for (const float range : ranges) inputs[count++] = range;
      break;
    case RangeCode::kScaled:
      for (const float range : ranges) inputs[count++] = range / mlp_.max_range;
      break;
    case RangeCode::kInverse:
      for (const float range : ranges) inputs[count++] = 1.0F / (range + mlp_.range_offset);
      break;
  }
  for (std::size_t input = 0; input < count; ++input) {
    inputs[input] = inputs[input] * mlp_.input_scale[input] + mlp_.input_shift[input];
  }

  // Layers (Eq. 11).
  const float* weights = weights_.data();
  for (int layer = 0; layer < mlp_.num_layers(); ++layer) {
    const int num_inputs = mlp_.layer_inputs(layer);
    const int num_outputs = mlp_.layer_outputs(layer);
    const float* biases = weights + num_inputs * num_outputs;
    for (int output = 0; output < num_outputs; ++output) sums[output] = biases[output];
    for (int input = 0; input < num_inputs; ++input) {
      const float value = inputs[input];
      for (int output = 0; output < num_outputs; ++output) {
        sums[output] += value * weights[input * num_outputs + output];
      }
    }
    if (layer + 1 < mlp_.num_layers()) {
      for (int output = 0; output < num_outputs; ++output) {
        sums[output] = mlp_.activation == Activation::kRelu ? std::max(sums[output], 0.0F)
                                                            : std::tanh(sums[output]);
      }
    }
    weights = biases + num_outputs;
    std::swap(inputs, sums);
  }

  // Control (Eq. 13).
  const float limit = mlp_.control_limit;
  return mlp_.output_map == OutputMap::kTanh ? limit * std::tanh(inputs[0])
                                             : std::clamp(inputs[0], -limit, limit);
}

float PlainPush(const Disturbance& push, Key noise_key, const PlainRobot& robot) {
  switch (push.kind) {
    case Disturbance::Kind::kNone:
      return 0;
    case Disturbance::Kind::kVonKarman: {
      constexpr float kTwoPi = 2 * std::numbers::pi_v<float>;
      float sum = 0;
      for (std::size_t mode = 0; mode < push.kx.size(); ++mode) {
        sum += std::cos(kTwoPi *
                        (push.kx[mode] * robot.x + push.ky[mode] * robot.y + push.phase[mode]));
      }
      return push.amplitude * sum;
    }
    case Disturbance::Kind::kUniformNoise: {
      // Step t has word t mod 4 of block t / 4.
      const auto step = static_cast<std::uint64_t>(robot.step);
      const std::uint32_t word = noise_key.Block(step / 4)[step % 4];
      return push.half_width * (2 * UnitFloat(word) - 1);
    }
  }
  return 0;
}

void PlainAdvance(const Task& task, float control, const Disturbance& push, Key noise_key,
                  PlainRobot& robot) {
  const auto limit = static_cast<float>(ControlLimit(task.robot));
  const auto speed = static_cast<float>(task.robot.speed);
  const auto time_step = static_cast<float>(task.episode.time_step);
  const float u = std::clamp(control, -limit, limit);
  const float turn_rate = task.robot.kind == RobotOptions::Kind::kCar
                              ? std::tan(u) / static_cast<float>(task.robot.length)
                              : u;
  const float d = PlainPush(push, noise_key, robot);
  robot.x += time_step * (speed * robot.cos + push.gain[0] * d);
  robot.y += time_step * (speed * robot.sin + push.gain[1] * d);
  robot.heading += time_step * (turn_rate + push.gain[2] * d);
  robot.cos = std::cos(robot.heading);
  robot.sin = std::sin(robot.heading);
  ++robot.step;
}

bool PlainHasEnded(const Task& task, const Goal& goal, const PlainRobot& robot, bool touches,
                   Episode& episode) {
  const float outside = goal.kind == Goal::Kind::kHalfPlane
                            ? goal.offset - (goal.normal_x * robot.x + goal.normal_y * robot.y)
                            : std::hypot(goal.x - robot.x, goal.y - robot.y) - goal.radius;
  const bool arrived = outside <= -goal.depth;
  if (!touches && !arrived && robot.step < task.episode.horizon) return false;
  episode.steps = robot.step;
  episode.goal_distance = std::max(outside, 0.0F);
  episode.outcome = touches   ? Outcome::kCollided
                    : arrived ? Outcome::kReachedGoal
                              : Outcome::kTimedOut;
  return true;
}

}  // namespace fedgen
