// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "fedgen/base/text.h"
#include "fedgen/cli/commands.h"
#include "fedgen/cli/print.h"
#include "fedgen/policy/policy_file.h"
#include "fedgen/run/certify.h"
#include "fedgen/run/config.h"

namespace fedgen {
namespace {

// The ending says which form is written.
Result<void> CheckEnding(const std::string& path) {
  if (path.ends_with(".fgp") || path.ends_with(".json")) return {};
  return Error{ErrorCode::kUsage, fmt::format("{}: a policy file must end in .fgp or .json", path)};
}

std::string NetworkText(const Mlp& mlp) {
  return fmt::format("{} network, {}", mlp.Shape(),
                     Counted(static_cast<std::int64_t>(mlp.parameters.size()), "parameter"));
}

std::string_view RangeCodeText(const Mlp& mlp) {
  switch (mlp.range_code) {
    case RangeCode::kRaw:
      return "distance in m";
    case RangeCode::kScaled:
      return "distance / range";
    case RangeCode::kInverse:
      return "1 / (distance + offset)";
  }
  return "";
}

// A line for each group of keys.
std::string MadeForText(const Mlp& mlp) {
  const std::string beams = Counted(mlp.num_beams, "beam");
  if (!mlp.made_for) {
    return fmt::format("a lidar with {} and a range of {} m; the file does not say more", beams,
                       mlp.max_range);
  }
  std::map<std::string, std::string> groups = {
      {"lidar", beams}, {"robot", std::string(NameOf(mlp.made_for->robot.kind))}};
  VisitNumbers(*mlp.made_for, [&](const char* group, const char* name, double number) {
    std::string& text = groups[group];
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, number);
  });
  return fmt::format("lidar: {}\n{:17}robot: {}\n{:17}episode: {}", groups["lidar"], "",
                     groups["robot"], "", groups["episode"]);
}

}  // namespace

Result<void> RunPolicyNew(const PolicyNewCommand& command) {
  FEDGEN_TRY(CheckEnding(command.output));
  const Config config = FEDGEN_TRY(LoadConfig(command.config, command.overrides));
  if (config.training.normalisation != Normalisation::kNone || !config.imitate.empty()) {
    PrintError(
        "warning: policy.normalisation and policy.imitate are a learner's to carry out, when a run "
        "begins: this policy has neither\n");
  }
  Mlp mlp = ShapeOf(config.training);
  DrawParameters(Key(command.seed).Fork(Stream::kInitialPolicy), config.initial_half_width, mlp);
  FEDGEN_TRY(SavePolicy(mlp, command.output, WhatIfExists(command.force)));
  Print("{}: {}\n", command.output, NetworkText(mlp));
  return {};
}

Result<void> RunPolicyShow(const PolicyShowCommand& command) {
  const Mlp mlp = FEDGEN_TRY(LoadPolicy(command.policy));
  if (command.json) {
    Print("{}\n", PolicyToJson(mlp));
    return {};
  }
  const auto [low, high] = std::minmax_element(mlp.parameters.begin(), mlp.parameters.end());
  double squares = 0;
  for (const float value : mlp.parameters) squares += static_cast<double>(value) * value;
  std::string inputs;
  if (mlp.state_inputs) inputs += "x, y, sin heading, cos heading; ";
  if (mlp.goal_inputs) inputs += "distance to the goal ahead and to the left; ";
  inputs += fmt::format("{} as {}", Counted(mlp.num_beams, "beam"), RangeCodeText(mlp));
  if (mlp.range_code == RangeCode::kInverse) inputs += fmt::format(" ({} m)", mlp.range_offset);
  const bool identity =
      std::all_of(mlp.input_scale.begin(), mlp.input_scale.end(), [](float v) { return v == 1; }) &&
      std::all_of(mlp.input_shift.begin(), mlp.input_shift.end(), [](float v) { return v == 0; });
  Print(
      "{}\n"
      "  network        {}, {}, {}\n"
      "  inputs         {}\n"
      "  normalisation  {}\n"
      "  made for       {}\n"
      "  output         {}, a control within +-{:.6g}\n"
      "  parameters     from {:.4g} to {:.4g}, root mean square {:.4g}\n"
      "  hash           {} (by which certificates name it)\n",
      command.policy, mlp.Shape(), NameOf(mlp.activation),
      Counted(static_cast<std::int64_t>(mlp.parameters.size()), "parameter"), inputs,
      identity ? "none" : "one scale and shift per input", MadeForText(mlp),
      mlp.output_map == OutputMap::kTanh ? "tanh" : "clamped", mlp.control_limit, *low, *high,
      std::sqrt(squares / static_cast<double>(mlp.parameters.size())), PolicyHash(mlp));
  return {};
}

Result<void> RunPolicyConvert(const PolicyConvertCommand& command) {
  FEDGEN_TRY(CheckEnding(command.output));
  const Mlp mlp = FEDGEN_TRY(LoadPolicy(command.input));
  FEDGEN_TRY(SavePolicy(mlp, command.output, WhatIfExists(command.force)));
  Print("{}: {}\n", command.output, NetworkText(mlp));
  return {};
}

}  // namespace fedgen
