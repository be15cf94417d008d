// SPDX-License-Identifier: Apache-2.0
#include "fedgen/policy/mlp.h"

#include <algorithm>
#include <cmath>

namespace fedgen {
namespace {

void VisitHidden(OptionVisitor& visitor, std::vector<int>& hidden) {
  visitor.Integers({"hidden", "", "Sizes of the hidden layers of a new policy."}, hidden, {1, 4096},
                   16);
}

std::optional<std::string> FindNonFinite(const char* name, std::span<const float> values) {
  for (std::size_t index = 0; index < values.size(); ++index) {
    if (!std::isfinite(values[index])) {
      return fmt::format("{}[{}] = {}: must be finite", name, index, values[index]);
    }
  }
  return std::nullopt;
}

// The body it was made for must be one, and the one that its numbers are scaled for.
std::optional<std::string> FindBodyProblem(const Mlp& mlp) {
  if (!mlp.made_for) return std::nullopt;
  if (const auto error = Validate(*mlp.made_for)) {
    return fmt::format("made_for.{} = {}", error->field, error->problem);
  }
  const auto& [lidar, robot, time_step] = *mlp.made_for;
  auto mismatch = FindScaleMismatch(mlp, lidar.beams, lidar.range, ControlLimit(robot));
  if (mismatch) return "made_for: " + *mismatch;
  return std::nullopt;
}

}  // namespace

std::optional<std::string> FindScaleMismatch(const Mlp& mlp, int beams, double range,
                                             double limit) {
  if (mlp.num_beams != beams) {
    return fmt::format("policy reads {} beams, lidar.beams = {}", mlp.num_beams, beams);
  }
  if (mlp.max_range != static_cast<float>(range)) {
    return fmt::format("policy expects a range of {} m, lidar.range = {}", mlp.max_range,
                       static_cast<float>(range));
  }
  if (std::fabs(mlp.control_limit - static_cast<float>(limit)) >
      1e-5F * static_cast<float>(limit)) {
    return fmt::format("policy steers within +-{:.6g}, the robot within +-{:.6g}",
                       mlp.control_limit, limit);
  }
  return std::nullopt;
}

void Describe(OptionVisitor& visitor, MlpOptions& options) {
  auto& [hidden, activation, state_inputs, goal_inputs, range_code, range_offset, output_map] =
      options;
  VisitHidden(visitor, hidden);
  visitor.Choice({"activation", "", "What follows each hidden layer."}, activation);
  visitor.Flag({"state_inputs", "", "Whether it sees x, y, and sine and cosine of the heading."},
               state_inputs);
  visitor.Flag({"goal_inputs", "", "Whether it sees how far forward and to the left the goal is."},
               goal_inputs);
  visitor.Choice({"range_code", "",
                  "How it sees a distance r: as it is, as r / lidar.range, or as "
                  "1 / (r + range_offset) (Eq. 12)."},
                 range_code);
  // A smaller offset would be 0 in a policy's file, which has floats.
  visitor.Number({"range_offset", "m", "Inverse ranges only: keeps them finite."}, range_offset,
                 Closed(1e-6, 1e3));
  visitor.Choice({"output_map", "",
                  "How the network's output becomes a control within the robot's "
                  "limit: cut off, or by tanh (Eq. 13)."},
                 output_map);
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

Mlp MakeMlp(const MlpOptions& options, const Body& made_for) {
  Mlp mlp =
      MakeMlp(options, made_for.lidar.beams, made_for.lidar.range, ControlLimit(made_for.robot));
  mlp.made_for = made_for;
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
  RangeCheck check;
  std::vector<int> hidden = mlp.hidden;
  VisitHidden(check, hidden);
  if (check.error) return "hidden = " + check.error->problem;
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
  if (auto problem = FindNonFinite("parameters", mlp.parameters)) return problem;
  return FindBodyProblem(mlp);
}

}  // namespace fedgen
