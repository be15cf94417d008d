// SPDX-License-Identifier: Apache-2.0
#include "fedgen/rollout/task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <type_traits>

namespace fedgen {
namespace {

// Collects `part.name=value` lines. Doubles are written in the shortest form that reads back the
// same.
class Lines {
 public:
  explicit Lines(std::string& text) : text_(text) {}

  /// The fields of one part: Put("robot", "speed", speed, "radius", radius).
  template <typename Value, typename... Rest>
  void Put(std::string_view part, std::string_view name, const Value& value, const Rest&... rest) {
    Field(fmt::format("{}.{}", part, name), value);
    if constexpr (sizeof...(rest) > 0) Put(part, rest...);
  }

 private:
  void Field(std::string_view name, double value) { Write(name, fmt::format("{}", value)); }
  void Field(std::string_view name, int value) { Write(name, fmt::format("{}", value)); }
  void Field(std::string_view name, const Interval& value) {
    Write(name, fmt::format("{},{}", value.low, value.high));
  }
  void Field(std::string_view name, const CountInterval& value) {
    Write(name, fmt::format("{},{}", value.low, value.high));
  }
  template <std::size_t kSize>
  void Field(std::string_view name, const std::array<double, kSize>& values) {
    Write(name, fmt::format("{}", fmt::join(values, ",")));
  }
  template <std::size_t kSize>
  void Field(std::string_view name, const std::vector<std::array<double, kSize>>& rows) {
    Field(fmt::format("{}.size", name), static_cast<int>(rows.size()));
    for (std::size_t row = 0; row < rows.size(); ++row) {
      Field(fmt::format("{}[{}]", name, row), rows[row]);
    }
  }
  template <typename Enum>
    requires std::is_enum_v<Enum>
  void Field(std::string_view name, Enum value) {
    Field(name, static_cast<int>(value));
  }

  void Write(std::string_view name, const std::string& value) {
    text_ += fmt::format("{}={}\n", name, value);
  }
  std::string& text_;
};

}  // namespace

std::optional<FieldError> Validate(const EpisodeOptions& o) {
  if (!(o.time_step > 0 && o.time_step <= 10)) {
    return FieldError{"time_step", fmt::format("{}: must be in (0, 10]", o.time_step)};
  }
  if (o.horizon < 1 || o.horizon > 1000000) {
    return FieldError{"horizon", fmt::format("{}: must be in 1..1000000", o.horizon)};
  }
  if (!(o.cost_rate > 0 && o.cost_rate <= 100)) {
    return FieldError{"cost_rate", fmt::format("{}: must be in (0, 100]", o.cost_rate)};
  }
  return std::nullopt;
}

// Each struct is taken apart by a structured binding, which stops compiling when a field is added:
// nothing can be forgotten here.
std::string CanonicalTask(const Task& task) {
  std::string text = "fedgen-task 1\n";
  Lines lines(text);
  const auto& [world, robot, lidar, episode] = task;
  const auto& [walls, boxes, discs, random_discs, random_boxes, goal, start, disturbance] = world;
  lines.Put("world", "walls", walls, "boxes", boxes, "discs", discs);
  {
    const auto& [count, x, y, radius] = random_discs;
    lines.Put("world.random_discs", "count", count, "x", x, "y", y, "radius", radius);
  }
  {
    const auto& [count, x, y, half_x, half_y, heading_degrees] = random_boxes;
    lines.Put("world.random_boxes", "count", count, "x", x, "y", y, "half_x", half_x, "half_y",
              half_y, "heading_degrees", heading_degrees);
  }
  {
    const auto& [kind, normal, offset, x, y, radius, depth] = goal;
    lines.Put("world.goal", "kind", kind, "normal", normal, "offset", offset, "x", x, "y", y,
              "radius", radius, "depth", depth);
  }
  {
    const auto& [x, y, heading_degrees, per_world, clearance] = start;
    lines.Put("world.start", "x", x, "y", y, "heading_degrees", heading_degrees, "per_world",
              per_world, "clearance", clearance);
  }
  {
    const auto& [kind, gain, intensity, length_scale, shortest_wavelength, modes, half_width] =
        disturbance;
    lines.Put("world.disturbance", "kind", kind, "gain", gain, "intensity", intensity,
              "length_scale", length_scale, "shortest_wavelength", shortest_wavelength, "modes",
              modes, "half_width", half_width);
  }
  {
    const auto& [kind, speed, radius, length, steering_limit_degrees, turn_rate_limit] = robot;
    lines.Put("robot", "kind", kind, "speed", speed, "radius", radius, "length", length,
              "steering_limit_degrees", steering_limit_degrees, "turn_rate_limit", turn_rate_limit);
  }
  {
    const auto& [beams, range, from_degrees, to_degrees] = lidar;
    lines.Put("lidar", "beams", beams, "range", range, "from_degrees", from_degrees, "to_degrees",
              to_degrees);
  }
  {
    const auto& [time_step, horizon, cost_rate, clock] = episode;
    lines.Put("episode", "time_step", time_step, "horizon", horizon, "cost_rate", cost_rate,
              "clock", clock);
  }
  return text;
}

}  // namespace fedgen
