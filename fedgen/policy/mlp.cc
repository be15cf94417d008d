// SPDX-License-Identifier: Apache-2.0
#include "fedgen/policy/mlp.h"

#include <algorithm>
#include <cmath>

namespace fedgen {
namespace {

constexpr std::size_t kMaxHiddenLayers = 16;
constexpr int kMaxWidth = 4096;

std::optional<std::string> FindSizeProblem(std::span<const int> hidden) {
  if (hidden.size() > kMaxHiddenLayers) {
    return fmt::format("{} layers: at most {}", hidden.size(), kMaxHiddenLayers);
  }
  for (const int size : hidden) {
    if (size < 1 || size > kMaxWidth) return fmt::format("{}: must be in 1..{}", size, kMaxWidth);
  }
  return std::nullopt;
}

std::optional<std::string> FindNonFinite(const char* name, std::span<const float> values) {
  for (std::size_t index = 0; index < values.size(); ++index) {
    if (!std::isfinite(values[index])) {
      return fmt::format("{}[{}] = {}: must be finite", name, index, values[index]);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<FieldError> Validate(const MlpOptions& options) {
  if (auto problem = FindSizeProblem(options.hidden)) return FieldError{"hidden", *problem};
  if (!(options.range_offset > 0 && options.range_offset <= 1e3)) {
    return FieldError{"range_offset", fmt::format("{}: must be in (0, 1e3]", options.range_offset)};
  }
  return std::nullopt;
}

int Mlp::widest_layer() const {
  int widest = num_inputs();
  for (const int size : hidden) widest = std::max(widest, size);
  return widest;
}

std::string Mlp::Shape() const {
  std::string shape = fmt::format("{}", num_inputs());
  for (const int size : hidden) shape += fmt::format("-{}", size);
  return shape + "-1";
}

std::size_t NumParameters(const Mlp& mlp) {
  std::size_t count = 0;
  for (int layer = 0; layer < mlp.num_layers(); ++layer) {
    count += static_cast<std::size_t>(mlp.layer_inputs(layer) + 1) *
             static_cast<std::size_t>(mlp.layer_outputs(layer));
  }
  return count;
}

Mlp MakeMlp(const MlpOptions& options, int num_beams, double max_range, double control_limit) {
  Mlp mlp;
  mlp.num_beams = num_beams;
  mlp.max_range = static_cast<float>(max_range);
  mlp.control_limit = static_cast<float>(control_limit);
  mlp.state_inputs = options.state_inputs;
  mlp.goal_inputs = options.goal_inputs;
  mlp.range_code = options.range_code;
  mlp.range_offset = static_cast<float>(options.range_offset);
  mlp.activation = options.activation;
  mlp.output_map = options.output_map;
  mlp.hidden = options.hidden;
  mlp.input_scale.assign(static_cast<std::size_t>(mlp.num_inputs()), 1.0F);
  mlp.input_shift.assign(static_cast<std::size_t>(mlp.num_inputs()), 0.0F);
  mlp.parameters.assign(NumParameters(mlp), 0.0F);
  return mlp;
}

void DrawParameters(Key key, double half_width, Mlp& mlp) {
  std::size_t parameter = 0;
  for (int layer = 0; layer < mlp.num_layers(); ++layer) {
    const auto num_weights = static_cast<std::size_t>(mlp.layer_inputs(layer)) *
                             static_cast<std::size_t>(mlp.layer_outputs(layer));
    const auto bound = static_cast<float>(half_width * std::sqrt(3.0 / mlp.layer_inputs(layer)));
    for (std::size_t weight = 0; weight < num_weights; ++weight, ++parameter) {
      const float unit = UnitFloat(key.Block(parameter)[0]);
      mlp.parameters[parameter] = bound * (2.0F * unit - 1.0F);
    }
    for (int bias = 0; bias < mlp.layer_outputs(layer); ++bias) mlp.parameters[parameter++] = 0.0F;
  }
}

std::optional<std::string> FindProblem(const Mlp& mlp) {
  if (mlp.num_beams < 1 || mlp.num_beams > 1024) {
    return fmt::format("beams = {}: must be in 1..1024", mlp.num_beams);
  }
  const auto in_range = [](float value) { return value > 0.0F && value <= 1e4F; };
  if (!in_range(mlp.max_range)) {
    return fmt::format("max_range = {}: must be in (0, 1e4]", mlp.max_range);
  }
  if (!in_range(mlp.control_limit)) {
    return fmt::format("control_limit = {}: must be in (0, 1e4]", mlp.control_limit);
  }
  if (!in_range(mlp.range_offset)) {
    return fmt::format("range_offset = {}: must be in (0, 1e4]", mlp.range_offset);
  }
  if (auto problem = FindSizeProblem(mlp.hidden)) return "hidden = " + *problem;
  const auto num_inputs = static_cast<std::size_t>(mlp.num_inputs());
  if (mlp.input_scale.size() != num_inputs || mlp.input_shift.size() != num_inputs) {
    return fmt::format("input_scale has {} and input_shift {} numbers: must be {} each",
                       mlp.input_scale.size(), mlp.input_shift.size(), num_inputs);
  }
  if (mlp.parameters.size() != NumParameters(mlp)) {
    return fmt::format("{} parameters: a {} network has {}", mlp.parameters.size(), mlp.Shape(),
                       NumParameters(mlp));
  }
  if (auto problem = FindNonFinite("input_scale", mlp.input_scale)) return problem;
  if (auto problem = FindNonFinite("input_shift", mlp.input_shift)) return problem;
  return FindNonFinite("parameters", mlp.parameters);
}

}  // namespace fedgen
