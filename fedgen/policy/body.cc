// SPDX-License-Identifier: Apache-2.0
#include "fedgen/policy/body.h"

#include <map>

namespace fedgen {

std::optional<FieldError> Validate(const Body& body) {
  if (auto error = Validate(body.lidar)) return FieldError{"lidar." + error->field, error->problem};
  if (auto error = Validate(body.robot)) return FieldError{"robot." + error->field, error->problem};
  if (kTimeStep.Contains(body.time_step)) return std::nullopt;
  return FieldError{"episode.time_step",
                    fmt::format("{}: must be {}", body.time_step, kTimeStep.Text())};
}

std::optional<std::string> FindDifferences(const Body& made_for, const Body& body) {
  std::string text;
  const auto add = [&text](const std::string& key, const auto& made, const auto& asked) {
    if (made == asked) return;
    text += fmt::format("{}{} = {}, configured {}", text.empty() ? "" : "; ", key, made, asked);
  };
  add("lidar.beams", made_for.lidar.beams, body.lidar.beams);
  add("robot.kind", NameOf(made_for.robot.kind), NameOf(body.robot.kind));
  std::map<std::string, double> asked;
  VisitNumbers(body, [&](const std::string& group, const std::string& name, double number) {
    asked[group + "." + name] = number;
  });
  VisitNumbers(made_for, [&](const std::string& group, const std::string& name, double number) {
    // Robots of two kinds have numbers that only one of them has.
    const auto found = asked.find(group + "." + name);
    if (found != asked.end()) add(found->first, number, found->second);
  });
  if (text.empty()) return std::nullopt;
  return text;
}

}  // namespace fedgen
