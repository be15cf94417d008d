// SPDX-License-Identifier: Apache-2.0
#include "fedgen/world/distribution.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "fedgen/world/draw_kernel.h"

namespace fedgen {
namespace {

// Addresses of the draws below a world's key: one block of four words each.
enum class Draw : std::uint64_t {
  kCounts = 1,
  kDisc = 2,
  kBox = 3,
  kGoal = 4,
  kStart = 5,
  kDisturbance = 6,
};

constexpr int kMaxStartAttempts = 64;

std::uint64_t Address(Draw draw, std::uint64_t index = 0) {
  return (static_cast<std::uint64_t>(draw) << 48) | index;
}

float Uniform(const Interval& interval, std::uint32_t word) {
  return static_cast<float>(interval.low +
                            (interval.high - interval.low) * static_cast<double>(UnitFloat(word)));
}

float Radians(float degrees) {
  return static_cast<float>(static_cast<double>(degrees) * (std::numbers::pi / 180));
}

Goal DrawGoal(const GoalDistribution& distribution, Key key) {
  const RandomBlock block = key.Block(Address(Draw::kGoal));
  Goal goal;
  goal.kind = distribution.kind;
  const double length = std::hypot(distribution.normal[0], distribution.normal[1]);
  goal.normal_x = static_cast<float>(distribution.normal[0] / length);
  goal.normal_y = static_cast<float>(distribution.normal[1] / length);
  goal.offset = Uniform(distribution.offset, block[0]);
  goal.x = Uniform(distribution.x, block[1]);
  goal.y = Uniform(distribution.y, block[2]);
  goal.radius = Uniform(distribution.radius, block[3]);
  goal.depth = static_cast<float>(distribution.depth);
  return goal;
}

bool IsConstant(const StartDistribution& start) {
  return start.x.low == start.x.high && start.y.low == start.y.high;
}

void DrawStarts(const StartDistribution& distribution, Key key, World& world) {
  world.starts.resize(static_cast<std::size_t>(distribution.per_world));
  for (std::size_t index = 0; index < world.starts.size(); ++index) {
    Pose& start = world.starts[index];
    for (int attempt = 0; attempt < kMaxStartAttempts; ++attempt) {
      const RandomBlock block = key.Block(
          Address(Draw::kStart, index * kMaxStartAttempts + static_cast<std::uint64_t>(attempt)));
      start.x = Uniform(distribution.x, block[0]);
      start.y = Uniform(distribution.y, block[1]);
      start.heading = Radians(Uniform(distribution.heading_degrees, block[2]));
      if (IsConstant(distribution) || Clearance(world, start.x, start.y) > distribution.clearance) {
        break;
      }
    }
  }
}

// The first rule an interval breaks, if any.
std::optional<FieldError> CheckInterval(const std::string& field, const Interval& interval,
                                        bool positive) {
  const std::string value = interval.low == interval.high
                                ? fmt::format("{}", interval.low)
                                : fmt::format("[{}, {}]", interval.low, interval.high);
  // Within 10 km of the origin a float still tells millimetres apart.
  constexpr double kLargest = 1e4;
  if (!(std::fabs(interval.low) <= kLargest && std::fabs(interval.high) <= kLargest)) {
    return FieldError{field, value + ": must be finite and at most 1e4 in size"};
  }
  if (interval.low > interval.high) return FieldError{field, value + ": low end above high end"};
  if (positive && interval.low <= 0) return FieldError{field, value + ": must be > 0"};
  if (positive && interval.low < 0.001) return FieldError{field, value + ": must be >= 0.001"};
  return std::nullopt;
}

std::optional<FieldError> CheckCount(const std::string& field, const CountInterval& count) {
  if (count.low < 0 || count.high < count.low || count.high > 1000) {
    return FieldError{
        field, fmt::format("[{}, {}]: must be 0 <= low <= high <= 1000", count.low, count.high)};
  }
  return std::nullopt;
}

std::optional<FieldError> CheckNumber(const std::string& field, double value, bool holds,
                                      const char* rule) {
  if (holds && std::fabs(value) <= 1e6) return std::nullopt;
  return FieldError{field, fmt::format("{}: {}", value, holds ? "must be at most 1e6" : rule)};
}

template <std::size_t N>
std::optional<FieldError> CheckFixed(const char* field,
                                     const std::vector<std::array<double, N>>& rows,
                                     const std::array<bool, N>& positive) {
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t column = 0; column < N; ++column) {
      if (auto error = CheckInterval(fmt::format("{}[{}][{}]", field, row, column),
                                     {rows[row][column], rows[row][column]}, positive[column])) {
        return error;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<FieldError> Validate(const WorldDistribution& d) {
  const DisturbanceOptions& push = d.disturbance;
  for (const auto& error : {
           CheckFixed<4>("walls", d.walls, {}),
           CheckFixed<5>("boxes", d.boxes, {false, false, true, true, false}),
           CheckFixed<3>("discs", d.discs, {false, false, true}),
           CheckCount("random_discs.count", d.random_discs.count),
           CheckInterval("random_discs.x", d.random_discs.x, false),
           CheckInterval("random_discs.y", d.random_discs.y, false),
           CheckInterval("random_discs.radius", d.random_discs.radius, true),
           CheckCount("random_boxes.count", d.random_boxes.count),
           CheckInterval("random_boxes.x", d.random_boxes.x, false),
           CheckInterval("random_boxes.y", d.random_boxes.y, false),
           CheckInterval("random_boxes.half_x", d.random_boxes.half_x, true),
           CheckInterval("random_boxes.half_y", d.random_boxes.half_y, true),
           CheckInterval("random_boxes.heading_degrees", d.random_boxes.heading_degrees, false),
           CheckInterval("goal.offset", d.goal.offset, false),
           CheckInterval("goal.x", d.goal.x, false),
           CheckInterval("goal.y", d.goal.y, false),
           CheckInterval("goal.radius", d.goal.radius, true),
           CheckNumber("goal.depth", d.goal.depth, d.goal.depth >= 0, "must be >= 0"),
           CheckInterval("start.x", d.start.x, false),
           CheckInterval("start.y", d.start.y, false),
           CheckInterval("start.heading_degrees", d.start.heading_degrees, false),
           CheckNumber("start.per_world", d.start.per_world,
                       d.start.per_world >= 1 && d.start.per_world <= 10000, "must be in 1..10000"),
           CheckNumber("start.clearance", d.start.clearance, d.start.clearance >= 0,
                       "must be >= 0"),
           CheckNumber("disturbance.intensity", push.intensity, push.intensity >= 0,
                       "must be >= 0"),
           CheckNumber("disturbance.length_scale", push.length_scale, push.length_scale >= 0.001,
                       "must be >= 0.001"),
           CheckNumber("disturbance.shortest_wavelength", push.shortest_wavelength,
                       push.shortest_wavelength >= 0.001, "must be >= 0.001"),
           CheckNumber("disturbance.modes", push.modes,
                       push.modes >= 8 && push.modes <= 4096 && push.modes % 8 == 0,
                       "must be a multiple of 8 in 8..4096"),
           CheckNumber("disturbance.half_width", push.half_width, push.half_width >= 0,
                       "must be >= 0"),
       }) {
    if (error) return error;
  }
  for (std::size_t row = 0; row < d.walls.size(); ++row) {
    // As the floats that the wall will be.
    const auto f = [](double value) { return static_cast<double>(static_cast<float>(value)); };
    if (std::hypot(f(d.walls[row][2]) - f(d.walls[row][0]),
                   f(d.walls[row][3]) - f(d.walls[row][1])) < 1e-3) {
      return FieldError{fmt::format("walls[{}]", row), "shorter than 1e-3 m: must have two ends"};
    }
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (auto error = CheckNumber(fmt::format("disturbance.gain[{}]", axis), push.gain[axis],
                                 std::isfinite(push.gain[axis]), "must be finite")) {
      return error;
    }
  }
  if (d.goal.kind == Goal::Kind::kDisc && d.goal.depth >= d.goal.radius.low) {
    return FieldError{"goal.depth", fmt::format("{}: must be below goal.radius, or nobody arrives",
                                                d.goal.depth)};
  }
  const double normal_length = std::hypot(d.goal.normal[0], d.goal.normal[1]);
  if (!(normal_length > 1e-6 && normal_length < 1e6)) {
    return FieldError{"goal.normal", fmt::format("[{}, {}]: must have a direction",
                                                 d.goal.normal[0], d.goal.normal[1])};
  }
  return std::nullopt;
}

void DrawWorld(const WorldDistribution& d, Key key, Kernel kernel, World& world) {
  world.ClearObstacles();
  const auto f = [](double value) { return static_cast<float>(value); };
  const RandomBlock counts = key.Block(Address(Draw::kCounts));

  // Obstacles: each drawn one has its own block of words.
  const int num_random = UniformInt(counts[0], d.random_discs.count.low, d.random_discs.count.high);
  const DiscDistribution& random = d.random_discs;
  world.discs.Resize(num_random);
  DrawTriples(kernel, key, Address(Draw::kDisc), num_random,
              {{f(random.x.low), f(random.y.low), f(random.radius.low)},
               {f(random.x.high - random.x.low), f(random.y.high - random.y.low),
                f(random.radius.high - random.radius.low)}},
              world.discs.x.data(), world.discs.y.data(), world.discs.radius.data());
  world.discs.Resize(num_random);  // the kernel filled the padding too: make it far away again
  for (const auto& [x, y, radius] : d.discs) world.discs.Add(f(x), f(y), f(radius));
  for (const auto& [x0, y0, x1, y1] : d.walls) world.walls.Add(f(x0), f(y0), f(x1), f(y1));
  for (const auto& [x, y, half_x, half_y, heading] : d.boxes) {
    world.AddBox({f(x), f(y), f(half_x), f(half_y), Radians(f(heading))});
  }
  const int num_boxes = UniformInt(counts[1], d.random_boxes.count.low, d.random_boxes.count.high);
  for (std::uint64_t draw = 0; draw < static_cast<std::uint64_t>(num_boxes); ++draw) {
    const RandomBlock block = key.Block(Address(Draw::kBox, 2 * draw));
    const RandomBlock more = key.Block(Address(Draw::kBox, 2 * draw + 1));
    world.AddBox({Uniform(d.random_boxes.x, block[0]), Uniform(d.random_boxes.y, block[1]),
                  Uniform(d.random_boxes.half_x, block[2]),
                  Uniform(d.random_boxes.half_y, block[3]),
                  Radians(Uniform(d.random_boxes.heading_degrees, more[0]))});
  }

  world.goal = DrawGoal(d.goal, key);
  DrawStarts(d.start, key, world);

  Disturbance& push = world.disturbance;
  push.kind = d.disturbance.kind;
  for (std::size_t axis = 0; axis < 3; ++axis) push.gain[axis] = f(d.disturbance.gain[axis]);
  push.key = key.Fork(Address(Draw::kDisturbance));
  push.intensity = f(d.disturbance.intensity);
  push.length_scale = f(d.disturbance.length_scale);
  push.shortest_wavelength = f(d.disturbance.shortest_wavelength);
  push.half_width = f(d.disturbance.half_width);
  SynthesizeField(push.kind == Disturbance::Kind::kVonKarman ? d.disturbance.modes : 0, kernel,
                  push);
}

// Equal-energy strata of the radial spectrum (Eq. 5). With k0 = 1 / (1.339 L), the share of the
// variance at wave numbers below k is F(k) = 1 - (1 + (k / k0)^2)^(-1/3), cut off at the shortest
// wavelength and rescaled; each of the modes carries intensity^2 / num_modes.
void SynthesizeField(int num_modes, Kernel kernel, Disturbance& push) {
  const auto size = static_cast<std::size_t>(num_modes);
  push.kx.resize(size);
  push.ky.resize(size);
  push.phase.resize(size);
  push.amplitude = 0;
  if (num_modes == 0) return;
  constexpr double kTwoPi = 2 * std::numbers::pi;
  const double k0 = 1 / (1.339 * static_cast<double>(push.length_scale) * kTwoPi);  // cycles/m
  const double cutoff = 1 / (static_cast<double>(push.shortest_wavelength) * k0);
  const double share = 1 - 1 / std::cbrt(1 + cutoff * cutoff);
  push.amplitude =
      static_cast<float>(static_cast<double>(push.intensity) * std::sqrt(2.0 / num_modes));
  DrawWaves(kernel, push.key, num_modes, static_cast<float>(k0), static_cast<float>(share),
            push.kx.data(), push.ky.data(), push.phase.data());
}

}  // namespace fedgen
