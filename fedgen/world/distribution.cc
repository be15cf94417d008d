// SPDX-License-Identifier: Apache-2.0
#include "fedgen/world/distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>
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

constexpr std::uint64_t kMaxStartAttempts = 64;

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

Pose DrawStart(const StartDistribution& distribution, double clearance, std::uint64_t index,
               Key key, const World& world) {
  Pose freest;
  double most_room = -std::numeric_limits<double>::infinity();
  for (std::uint64_t attempt = 0; attempt < kMaxStartAttempts; ++attempt) {
    const RandomBlock block = key.Block(Address(Draw::kStart, index * kMaxStartAttempts + attempt));
    const Pose start = {Uniform(distribution.x, block[0]), Uniform(distribution.y, block[1]),
                        Radians(Uniform(distribution.heading_degrees, block[2]))};
    if (IsConstant(distribution)) return start;
    const double room = Clearance(world, start.x, start.y);
    if (room > clearance) return start;
    if (room > most_room) freest = start;
    most_room = std::max(most_room, room);
  }
  return freest;
}

void DrawStarts(const StartDistribution& distribution, double robot_radius, Key key, int only,
                World& world) {
  const double clearance = std::max(distribution.clearance, robot_radius);
  world.starts.resize(static_cast<std::size_t>(distribution.per_world));
  const std::size_t first = only == kEveryStart ? 0 : static_cast<std::size_t>(only);
  const std::size_t last = only == kEveryStart ? world.starts.size() : first + 1;
  for (std::size_t index = first; index < last; ++index) {
    world.starts[index] = DrawStart(distribution, clearance, index, key, world);
  }
}

// Within 10 km of the origin a float still tells millimetres apart.
constexpr NumberRange kCoordinate = Closed(-1e4, 1e4);  // m, or degrees
constexpr NumberRange kSize = Closed(0.001, 1e4);       // m
constexpr CountRange kCount = {0, 1000};

}  // namespace

void Describe(OptionVisitor& visitor, DiscDistribution& discs) {
  auto& [count, x, y, radius] = discs;
  visitor.Drawn({"count", "", "How many discs are drawn; both ends of [low, high] are."}, count,
                kCount);
  visitor.Drawn(ActsIf(count.high > 0, {"x", "m", "Where their centres lie."}), x, kCoordinate);
  visitor.Drawn(ActsIf(count.high > 0, {"y", "m", "Where their centres lie."}), y, kCoordinate);
  visitor.Drawn(ActsIf(count.high > 0, {"radius", "m", "How large they are."}), radius, kSize);
}

void Describe(OptionVisitor& visitor, BoxDistribution& boxes) {
  auto& [count, x, y, half_x, half_y, heading_degrees] = boxes;
  visitor.Drawn({"count", "", "How many boxes are drawn; both ends of [low, high] are."}, count,
                kCount);
  visitor.Drawn(ActsIf(count.high > 0, {"x", "m", "Where their centres lie."}), x, kCoordinate);
  visitor.Drawn(ActsIf(count.high > 0, {"y", "m", "Where their centres lie."}), y, kCoordinate);
  visitor.Drawn(ActsIf(count.high > 0, {"half_x", "m", "Half of the first side."}), half_x, kSize);
  visitor.Drawn(ActsIf(count.high > 0, {"half_y", "m", "Half of the second side."}), half_y, kSize);
  visitor.Drawn(ActsIf(count.high > 0, {"heading_degrees", "degrees",
                                        "Where the first side points, from the x axis."}),
                heading_degrees, kCoordinate);
}

void Describe(OptionVisitor& visitor, GoalDistribution& goal) {
  auto& [kind, normal, offset, x, y, radius, depth] = goal;
  visitor.Choice({"kind", "", "The region to reach: all beyond a line (half-plane), or a disc."},
                 kind);
  const bool disc = kind == Goal::Kind::kDisc;
  visitor.Numbers(ActsIf(!disc, {"normal", "",
                                 "Half plane: points into the goal, which is where normal . p >= "
                                 "offset. It is made a unit vector."}),
                  normal, Closed(-1e6, 1e6));
  visitor.Drawn(
      ActsIf(!disc, {"offset", "m", "Half plane: how far along the normal the goal begins."}),
      offset, kCoordinate);
  visitor.Drawn(ActsIf(disc, {"x", "m", "Disc: its centre."}), x, kCoordinate);
  visitor.Drawn(ActsIf(disc, {"y", "m", "Disc: its centre."}), y, kCoordinate);
  visitor.Drawn(ActsIf(disc, {"radius", "m", "Disc: its radius."}), radius, kSize);
  visitor.Number({"depth", "m",
                  "How far inside the region the robot's centre must be to have "
                  "arrived. Less than the radius of a disc."},
                 depth, Closed(0, 1e6));
}

void Describe(OptionVisitor& visitor, StartDistribution& start) {
  auto& [x, y, heading_degrees, per_world, clearance] = start;
  visitor.Drawn({"x", "m", "Where the robot starts."}, x, kCoordinate);
  visitor.Drawn({"y", "m", "Where the robot starts."}, y, kCoordinate);
  visitor.Drawn({"heading_degrees", "degrees", "Where it looks, from the x axis: 90 is up."},
                heading_degrees, kCoordinate);
  visitor.Integer({"per_world", "", "How many starts are drawn in each world; each is an episode."},
                  per_world, {1, 10000});
  visitor.Number(
      ActsIf(
          !IsConstant(start),
          {"clearance", "m",
           "A drawn start nearer to an obstacle than this, or than the robot's radius, is "
           "drawn again, up to 64 times. If none leaves that much room, the one that leaves most "
           "stays; where the robot touches an obstacle there, its episode is a collision at "
           "once."}),
      clearance, Closed(0, 1e6));
}

void Describe(OptionVisitor& visitor, DisturbanceOptions& push) {
  auto& [kind, gain, intensity, length_scale, shortest_wavelength, modes, half_width] = push;
  visitor.Choice({"kind", "",
                  "What pushes the robot off its way: nothing, a field over the plane "
                  "drawn once a world (von-karman), or fresh noise at every step (Eq. 5)."},
                 kind);
  const bool field = kind == Disturbance::Kind::kVonKarman;
  visitor.Numbers(ActsIf(kind != Disturbance::Kind::kNone,
                         {"gain", "", "The push's share on the rates of x, y and heading."}),
                  gain, Closed(-1e6, 1e6));
  visitor.Number(ActsIf(field, {"intensity", "m/s", "Von Karman: standard deviation of the push."}),
                 intensity, Closed(0, 1e6));
  visitor.Number(
      ActsIf(field, {"length_scale", "m", "Von Karman: how far apart pushes are still alike."}),
      length_scale, Closed(0.001, 1e6));
  visitor.Number(
      ActsIf(field, {"shortest_wavelength", "m", "Von Karman: the field has nothing finer."}),
      shortest_wavelength, Closed(0.001, 1e6));
  visitor.Integer(
      ActsIf(field, {"modes", "", "Von Karman: how many plane waves are added up in each world."}),
      modes, {8, 4096, 8});
  visitor.Number(ActsIf(kind == Disturbance::Kind::kUniformNoise,
                        {"half_width", "m/s", "Uniform noise: the push is at most this."}),
                 half_width, Closed(0, 1e6));
}

void Describe(OptionVisitor& visitor, WorldDistribution& distribution) {
  auto& [walls, boxes, discs, random_discs, random_boxes, goal, start, disturbance] = distribution;
  constexpr OptionColumn kX = {"x", kCoordinate}, kY = {"y", kCoordinate};
  visitor.Rows<4>(
      {"walls", "m", "Thin walls that stand in every world, each at least 1 mm long."}, walls,
      {{{"x0", kCoordinate}, {"y0", kCoordinate}, {"x1", kCoordinate}, {"y1", kCoordinate}}});
  visitor.Rows<5>(
      {"boxes", "m", "Solid boxes that stand in every world."}, boxes,
      {{kX, kY, {"half_x", kSize}, {"half_y", kSize}, {"heading_degrees", kCoordinate}}});
  visitor.Rows<3>({"discs", "m", "Solid discs that stand in every world."}, discs,
                  {{kX, kY, {"radius", kSize}}});
  DescribeGroup(visitor, "random_discs", random_discs);
  DescribeGroup(visitor, "random_boxes", random_boxes);
  DescribeGroup(visitor, "goal", goal);
  DescribeGroup(visitor, "start", start);
  DescribeGroup(visitor, "disturbance", disturbance);
}

bool IsEmpty(const WorldDistribution& d) {
  return d.walls.empty() && d.boxes.empty() && d.discs.empty() && d.random_discs.count.high == 0 &&
         d.random_boxes.count.high == 0;
}

std::optional<FieldError> Validate(const WorldDistribution& d) {
  if (auto error = CheckRanges(d)) return error;
  for (std::size_t row = 0; row < d.walls.size(); ++row) {
    // As the floats that the wall will be.
    const auto f = [](double value) { return static_cast<double>(static_cast<float>(value)); };
    if (std::hypot(f(d.walls[row][2]) - f(d.walls[row][0]),
                   f(d.walls[row][3]) - f(d.walls[row][1])) < 1e-3) {
      return FieldError{fmt::format("walls[{}]", row), "shorter than 1e-3 m: must have two ends"};
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

void DrawWorld(const WorldDistribution& d, double robot_radius, Key key, Kernel kernel,
               World& world, int start) {
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
  DrawStarts(d.start, robot_radius, key, start, world);

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
