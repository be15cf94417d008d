// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fedgen/base/aligned.h"
#include "fedgen/base/option.h"
#include "fedgen/base/random.h"
#include "fedgen/policy/body.h"

namespace fedgen {

// What the robot decides: a multi-layer perceptron from what it senses to its control (Eq. 11).
//
// A policy is complete in itself: how the sensors become inputs, the frozen normalisation of the
// inputs, the layers, and how the output becomes a control are all part of it, and of its file. So
// is the body that it was made for.

/// How ranges become inputs (Eq. 12).
enum class RangeCode : std::uint8_t {
  kRaw,      // r, in m
  kScaled,   // r / max_range
  kInverse,  // 1 / (r + offset), in 1/m
};
template <>
inline constexpr auto kWords<RangeCode> = Words("raw", "scaled", "inverse");

enum class Activation : std::uint8_t { kRelu, kTanh };
template <>
inline constexpr auto kWords<Activation> = Words("relu", "tanh");

/// How the network's output o becomes the control u (Eq. 13).
enum class OutputMap : std::uint8_t {
  kClamp,  // u = min(max(o, -limit), limit)
  kTanh,   // u = limit tanh(o)
};
template <>
inline constexpr auto kWords<OutputMap> = Words("clamp", "tanh");

struct MlpOptions {
  std::vector<int> hidden = {20, 20, 20};  // sizes of the hidden layers
  Activation activation = Activation::kRelu;
  bool state_inputs = true;  // x, y, sin heading, cos heading
  bool goal_inputs = false;  // forward and left to the goal's nearest point, m
  RangeCode range_code = RangeCode::kScaled;
  double range_offset = 0.1;  // m; kInverse only
  OutputMap output_map = OutputMap::kTanh;
};

void Describe(OptionVisitor& visitor, MlpOptions& options);

struct Mlp {
  // What its numbers are scaled for.
  int num_beams = 0;        // of the lidar
  float max_range = 0;      // m, of the lidar
  float control_limit = 0;  // rad or rad/s, of the robot

  // How inputs are encoded: x, y, sin, cos (if state), forward, left (if goal), then the beams.
  bool state_inputs = true;
  bool goal_inputs = false;
  RangeCode range_code = RangeCode::kScaled;
  float range_offset = 0.1F;  // m
  Activation activation = Activation::kRelu;
  OutputMap output_map = OutputMap::kTanh;

  std::vector<int> hidden;         // sizes of the hidden layers
  std::vector<float> input_scale;  // [num_inputs] frozen: input = raw * scale + shift
  std::vector<float> input_shift;  // [num_inputs]
  // Layer after layer: weights [outputs][inputs], then biases [outputs]. This is theta.
  std::vector<float> parameters;

  // The body it was made for, if known (a file of version 1 does not say). Driving does not read
  // it: it is there so that another body is noticed. Its beams, range and control limit are those
  // above.
  std::optional<Body> made_for;

  int num_inputs() const { return (state_inputs ? 4 : 0) + (goal_inputs ? 2 : 0) + num_beams; }
  int num_layers() const { return static_cast<int>(hidden.size()) + 1; }
  int layer_inputs(int layer) const {
    return layer == 0 ? num_inputs() : hidden[static_cast<std::size_t>(layer - 1)];
  }
  int layer_outputs(int layer) const {
    return layer + 1 == num_layers() ? 1 : hidden[static_cast<std::size_t>(layer)];
  }
  int widest_layer() const;

  /// "24-20-20-20-1"
  std::string Shape() const;
};

/// How many parameters a network of this shape has.
std::size_t NumParameters(const Mlp& mlp);

/// A network with all parameters 0 and the identity as normalisation.
Mlp MakeMlp(const MlpOptions& options, int num_beams, double max_range, double control_limit);
/// The same, for a body that it keeps in mind.
Mlp MakeMlp(const MlpOptions& options, const Body& made_for);

/// Sets every weight to U(-half_width, half_width) sqrt(3 / inputs) and every bias to 0: with
/// half_width 1 a layer keeps the size of its inputs.
void DrawParameters(Key key, double half_width, Mlp& mlp);

/// Nothing if the network's numbers are scaled for these beams, this range (m) and this control
/// limit; otherwise which are not: "policy reads 20 beams, lidar.beams = 24".
std::optional<std::string> FindScaleMismatch(const Mlp& mlp, int beams, double range, double limit);

/// What is wrong with a network that came from a file: sizes that do not add up, numbers that are
/// not finite or out of range. Its parts may have any content.
std::optional<std::string> FindProblem(const Mlp& mlp);

}  // namespace fedgen
