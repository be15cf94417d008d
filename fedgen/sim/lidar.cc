// SPDX-License-Identifier: Apache-2.0
#include "fedgen/sim/lidar.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fedgen {

void Describe(OptionVisitor& visitor, LidarOptions& options) {
  static constexpr std::array<std::string_view, 2> kFans = {"symmetric", "one-sided"};
  auto& [beams, range, from_degrees, to_degrees] = options;
  visitor.Preset({"fan", "",
                  "Both angles by name: -60 to 60 degrees, or the paper's literal -60 to "
                  "-3, which sees one side only."},
                 kFans, {"from_degrees", "to_degrees"}, [&options](std::size_t fan) {
                   const LidarOptions& named = fan == 0 ? kSymmetricFan : kOneSidedFan;
                   options.from_degrees = named.from_degrees;
                   options.to_degrees = named.to_degrees;
                 });
  visitor.Integer({"beams", "", "How many distances it measures, evenly across the fan."}, beams,
                  {1, 1024});
  // A smaller range would be 0 in a policy's file, which has floats.
  visitor.Number({"range", "m", "How far it sees."}, range, Closed(0.001, 1e4));
  visitor.Number({"from_degrees", "degrees", "The first beam, from the heading counter-clockwise."},
                 from_degrees, Closed(-180, 180));
  visitor.Number({"to_degrees", "degrees", "The last beam; not before the first."}, to_degrees,
                 Closed(-180, 180));
}

std::optional<FieldError> Validate(const LidarOptions& o) {
  if (auto error = CheckRanges(o)) return error;
  if (o.to_degrees < o.from_degrees) {
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
