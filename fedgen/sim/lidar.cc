// SPDX-License-Identifier: Apache-2.0
#include "fedgen/sim/lidar.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fedgen {

std::optional<FieldError> Validate(const LidarOptions& o) {
  if (o.beams < 1 || o.beams > 1024) {
    return FieldError{"beams", fmt::format("{}: must be in 1..1024", o.beams)};
  }
  if (!(o.range > 0 && o.range <= 1e4)) {
    return FieldError{"range", fmt::format("{}: must be in (0, 1e4]", o.range)};
  }
  if (!(o.from_degrees >= -180 && o.from_degrees <= 180)) {
    return FieldError{"from_degrees", fmt::format("{}: must be in [-180, 180]", o.from_degrees)};
  }
  if (!(o.to_degrees >= o.from_degrees && o.to_degrees <= 180)) {
    return FieldError{"to_degrees",
                      fmt::format("{}: must be in [from_degrees, 180]", o.to_degrees)};
  }
  if (o.beams > 1 && o.to_degrees - o.from_degrees < 1e-3) {
    return FieldError{"to_degrees",
                      fmt::format("{}: {} beams need a fan of some width", o.to_degrees, o.beams)};
  }
  return std::nullopt;
}

Lidar::Lidar(const LidarOptions& o)
    : num_beams(o.beams),
      beam_stride(PadToLaneGroup(o.beams)),
      range(static_cast<float>(o.range)),
      cos(static_cast<std::size_t>(beam_stride)),
      sin(static_cast<std::size_t>(beam_stride)),
      fan_cos(static_cast<std::size_t>(beam_stride)),
      fan_sin(static_cast<std::size_t>(beam_stride)) {
  constexpr double kDegree = std::numbers::pi / 180;
  const double from = o.from_degrees * kDegree;
  const double to = o.to_degrees * kDegree;
  const double step = o.beams > 1 ? (to - from) / (o.beams - 1) : 1.0;
  first = static_cast<float>(from);
  spacing = static_cast<float>(step);
  // A disc seen at angle a covers at most [a - pi/2, a + pi/2] unless the robot is inside it; past
  // this width the fan may contain an angle and its alias 2 pi away.
  wraps = std::max(std::fabs(from), std::fabs(to)) > 1.4;
  const double centre = (from + to) / 2;
  centre_cos = static_cast<float>(std::cos(centre));
  centre_sin = static_cast<float>(std::sin(centre));
  half_width = static_cast<float>((to - from) / 2);
  half_width_cos = static_cast<float>(std::cos((to - from) / 2));
  half_width_sin = static_cast<float>(std::sin((to - from) / 2));
  for (int beam = 0; beam < beam_stride; ++beam) {
    const double angle = from + step * std::min(beam, o.beams - 1);
    const auto at = static_cast<std::size_t>(beam);
    cos[at] = static_cast<float>(std::cos(angle));
    sin[at] = static_cast<float>(std::sin(angle));
    fan_cos[at] = static_cast<float>(std::cos(angle - centre));
    fan_sin[at] = static_cast<float>(std::sin(angle - centre));
  }
}

}  // namespace fedgen
