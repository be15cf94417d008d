// SPDX-License-Identifier: Apache-2.0
#include "fedgen/world/world_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

#include "fedgen/base/file.h"
#include "fedgen/base/json-inl.h"
#include "fedgen/base/kernel.h"
#include "fedgen/world/distribution.h"

namespace fedgen {
namespace {

constexpr const char* kFormat = "fedgen-worlds";
constexpr int kVersion = 1;
constexpr std::size_t kMaxLineBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxObstacles = 1000;  // of each kind
constexpr std::size_t kMaxStarts = 10000;
constexpr float kLargest = 1e6F;        // of any number
constexpr double kShortestWall = 1e-3;  // m
constexpr double kShortestWave = 1e-3;  // m

// ---------------------------------------------------------------------------------- writing

// A document that keeps its fields in the order they are written. A float goes in as the double of
// the same value and comes out with enough digits for it, so it is read back bit for bit.
using OrderedJson = nlohmann::ordered_json;

std::string KeyText(Key key) { return fmt::format("0x{:016x}", key.bits()); }

// The far end of a wall whose near end is `from` and whose extent was rounded to `extent`. There is
// an end e with e - from == extent, since the wall was made from one, and from + extent is such an
// end too, with two exceptions: 0 + -0 is +0, and the sum may round past the largest coordinate
// although e did not. In that case all numbers between the two have the same extent.
float FarEnd(float from, float extent) {
  if (from == 0) return extent;
  const float end = from + extent;
  const float inside = std::clamp(end, -kLargest, kLargest);
  return inside - from == extent ? inside : end;
}

OrderedJson GoalToJson(const Goal& goal) {
  OrderedJson region;
  if (goal.kind == Goal::Kind::kHalfPlane) {
    region["normal"] = {goal.normal_x, goal.normal_y};
    region["offset"] = goal.offset;
  } else {
    region["x"] = goal.x;
    region["y"] = goal.y;
    region["radius"] = goal.radius;
  }
  region["depth"] = goal.depth;
  OrderedJson json;
  json[goal.kind == Goal::Kind::kHalfPlane ? "half_plane" : "disc"] = std::move(region);
  return json;
}

OrderedJson DisturbanceToJson(const Disturbance& push) {
  OrderedJson json;
  json["kind"] = NameOf(push.kind);
  if (push.kind != Disturbance::Kind::kNone) json["gain"] = push.gain;
  if (push.kind == Disturbance::Kind::kVonKarman) {
    json["intensity"] = push.intensity;
    json["length_scale"] = push.length_scale;
    json["shortest_wavelength"] = push.shortest_wavelength;
    json["modes"] = push.kx.size();
  }
  if (push.kind == Disturbance::Kind::kUniformNoise) json["half_width"] = push.half_width;
  json["key"] = KeyText(push.key);
  return json;
}

// ---------------------------------------------------------------------------------- reading

enum class Sign : std::uint8_t { kAny, kNotNegative, kPositive };

// A float of allowed sign and size, as `value: rule` if it is not. The rule holds for the value
// after rounding: a radius of 1e-60 is 0.
Problem ReadNumber(const Json& json, Sign sign, float& value) {
  if (Problem problem = ReadFloat(json, value)) return problem;
  if (sign == Sign::kPositive && !(value > 0)) return Describe(json) + ": must be > 0";
  if (sign == Sign::kNotNegative && !(value >= 0)) return Describe(json) + ": must be >= 0";
  if (std::fabs(value) > kLargest) return Describe(json) + ": must be at most 1e6 in size";
  return std::nullopt;
}

// A number that is a field of an object. It stays as it is if the field is not there.
Problem ReadField(const Json& object, const std::string& path, const char* field, Sign sign,
                  float& value) {
  const Json* const json = FindField(object, field);
  if (json == nullptr) return std::nullopt;
  const Problem problem = ReadNumber(*json, sign, value);
  if (!problem) return std::nullopt;
  return fmt::format("{} = {}", FieldPath(path, field), *problem);
}

// Several numbers in a row, written as an array.
template <std::size_t N>
Problem ReadRow(const Json& json, const char* shape, const std::array<Sign, N>& signs,
                std::array<float, N>& row, const std::string& path) {
  if (!json.is_array() || json.size() != N) {
    return fmt::format("{} = {}: must be {}", path, Describe(json), shape);
  }
  for (std::size_t column = 0; column < N; ++column) {
    if (const Problem problem = ReadNumber(json[column], signs[column], row[column])) {
      return fmt::format("{}[{}] = {}", path, column, *problem);
    }
  }
  return std::nullopt;
}

// An array of rows; `add` puts each into the world or says what is wrong with it. The path of a row
// is put together only for a message: reading it without one first is what a good row costs.
template <std::size_t N, typename Add>
Problem ReadRows(const Json& world, const char* field, const char* shape, std::size_t max_rows,
                 const std::array<Sign, N>& signs, const Add& add) {
  const Json* const rows = FindField(world, field);
  if (rows == nullptr) return std::nullopt;
  if (!rows->is_array()) {
    return fmt::format("{} = {}: must be an array of {}", field, Describe(*rows), shape);
  }
  if (rows->size() > max_rows) {
    return fmt::format("{} = [{} entries]: must be at most {}", field, rows->size(), max_rows);
  }
  for (std::size_t row = 0; row < rows->size(); ++row) {
    std::array<float, N> numbers{};
    if (ReadRow<N>((*rows)[row], shape, signs, numbers, "")) {
      return ReadRow<N>((*rows)[row], shape, signs, numbers, fmt::format("{}[{}]", field, row));
    }
    if (const Problem problem = add(numbers)) {
      return fmt::format("{}[{}] = {}: {}", field, row, Describe((*rows)[row]), *problem);
    }
  }
  return std::nullopt;
}

Problem ReadObstacles(const Json& json, World& world) {
  constexpr Sign kAny = Sign::kAny;
  constexpr Sign kPositive = Sign::kPositive;
  const auto add_disc = [&world](const std::array<float, 3>& disc) -> Problem {
    world.discs.Add(disc[0], disc[1], disc[2]);
    return std::nullopt;
  };
  const auto add_wall = [&world](const std::array<float, 4>& wall) -> Problem {
    if (std::hypot(static_cast<double>(wall[2] - wall[0]), static_cast<double>(wall[3] - wall[1])) <
        kShortestWall) {
      return "must be at least 1e-3 m long";
    }
    world.walls.Add(wall[0], wall[1], wall[2], wall[3]);
    return std::nullopt;
  };
  const auto add_box = [&world](const std::array<float, 5>& box) -> Problem {
    world.AddBox({box[0], box[1], box[2], box[3], box[4]});
    // Far from the origin, or very small, two corners may round to the same point.
    const auto& inverse_length2 = world.box_edges.inverse_length2;
    const auto end = inverse_length2.begin() + world.box_edges.size();
    if (!std::all_of(end - 4, end, [](float value) { return std::isfinite(value); })) {
      return "too small for 32-bit coordinates";
    }
    return std::nullopt;
  };
  if (Problem problem = ReadRows<3>(json, "discs", "[x, y, radius]", kMaxObstacles,
                                    {kAny, kAny, kPositive}, add_disc)) {
    return problem;
  }
  if (Problem problem = ReadRows<4>(json, "walls", "[x0, y0, x1, y1]", kMaxObstacles,
                                    {kAny, kAny, kAny, kAny}, add_wall)) {
    return problem;
  }
  return ReadRows<5>(json, "boxes", "[x, y, half_x, half_y, heading]", kMaxObstacles,
                     {kAny, kAny, kPositive, kPositive, kAny}, add_box);
}

Problem ReadHalfPlane(const Json& json, Goal& goal) {
  const std::string path = "goal.half_plane";
  goal.kind = Goal::Kind::kHalfPlane;
  if (Problem problem = CheckFields(json, path, {"normal", "offset"}, {"depth"})) return problem;
  const Json& normal_json = *FindField(json, "normal");
  std::array<float, 2> normal{};
  if (Problem problem =
          ReadRow<2>(normal_json, "[x, y]", {Sign::kAny, Sign::kAny}, normal, path + ".normal")) {
    return problem;
  }
  // A written normal is a unit vector up to rounding and must come back as it was; one typed with a
  // few digits is made a unit vector.
  const double length = std::hypot(static_cast<double>(normal[0]), static_cast<double>(normal[1]));
  if (std::fabs(length - 1) > 1e-3) {
    return fmt::format("{}.normal = {}: must have length 1 within 1e-3, has {:.4g}", path,
                       Describe(normal_json), length);
  }
  const double scale = std::fabs(length - 1) > 1e-6 ? 1 / length : 1;
  goal.normal_x = static_cast<float>(normal[0] * scale);
  goal.normal_y = static_cast<float>(normal[1] * scale);
  if (Problem problem = ReadField(json, path, "offset", Sign::kAny, goal.offset)) return problem;
  return ReadField(json, path, "depth", Sign::kNotNegative, goal.depth);
}

Problem ReadGoalDisc(const Json& json, Goal& goal) {
  const std::string path = "goal.disc";
  goal.kind = Goal::Kind::kDisc;
  if (Problem problem = CheckFields(json, path, {"x", "y", "radius"}, {"depth"})) return problem;
  if (Problem problem = ReadField(json, path, "x", Sign::kAny, goal.x)) return problem;
  if (Problem problem = ReadField(json, path, "y", Sign::kAny, goal.y)) return problem;
  if (Problem problem = ReadField(json, path, "radius", Sign::kPositive, goal.radius)) {
    return problem;
  }
  return ReadField(json, path, "depth", Sign::kNotNegative, goal.depth);
}

Problem ReadGoal(const Json& json, Goal& goal) {
  if (Problem problem = CheckFields(json, "goal", {}, {"half_plane", "disc"})) return problem;
  if (json.size() != 1) {
    return fmt::format("goal = {}: must be either a half_plane or a disc", Describe(json));
  }
  const Json* const half_plane = FindField(json, "half_plane");
  return half_plane != nullptr ? ReadHalfPlane(*half_plane, goal)
                               : ReadGoalDisc(*FindField(json, "disc"), goal);
}

Problem ReadStarts(const Json& json, World& world) {
  const auto add_start = [&world](const std::array<float, 3>& start) -> Problem {
    world.starts.push_back({start[0], start[1], start[2]});
    return std::nullopt;
  };
  if (Problem problem = ReadRows<3>(json, "starts", "[x, y, heading]", kMaxStarts,
                                    {Sign::kAny, Sign::kAny, Sign::kAny}, add_start)) {
    return problem;
  }
  if (world.starts.empty()) return "starts = []: must be at least one";
  return std::nullopt;
}

// "0x" and 16 hexadecimal digits; numbers would lose bits in readers that only know doubles.
Problem ReadKey(const Json& disturbance, Key& key) {
  constexpr std::size_t kDigits = 16;
  const Json* const json = FindField(disturbance, "key");
  if (json == nullptr) return std::nullopt;
  std::uint64_t bits = 0;
  if (json->is_string()) {
    const auto& text = json->get_ref<const std::string&>();
    const char* const last = text.data() + text.size();
    if (text.size() == 2 + kDigits && text.starts_with("0x") &&
        std::from_chars(text.data() + 2, last, bits, 16).ptr == last) {
      key = Key(bits);
      return std::nullopt;
    }
  }
  return fmt::format("disturbance.key = {}: must be 0x and {} hexadecimal digits", Describe(*json),
                     kDigits);
}

Problem ReadGain(const Json& disturbance, std::array<float, 3>& gain) {
  const Json* const json = FindField(disturbance, "gain");
  if (json == nullptr) return std::nullopt;
  return ReadRow<3>(*json, "[x', y', heading']", {Sign::kAny, Sign::kAny, Sign::kAny}, gain,
                    "disturbance.gain");
}

Problem ReadVonKarman(const Json& json, Disturbance& push) {
  const std::string path = "disturbance";
  if (Problem problem = CheckFields(
          json, path, {"kind", "intensity", "length_scale", "shortest_wavelength", "modes", "key"},
          {"gain"})) {
    return problem;
  }
  if (Problem problem = ReadGain(json, push.gain)) return problem;
  if (Problem problem = ReadField(json, path, "intensity", Sign::kNotNegative, push.intensity)) {
    return problem;
  }
  if (Problem problem = ReadField(json, path, "length_scale", Sign::kPositive, push.length_scale)) {
    return problem;
  }
  if (Problem problem =
          ReadField(json, path, "shortest_wavelength", Sign::kPositive, push.shortest_wavelength)) {
    return problem;
  }
  if (push.shortest_wavelength < static_cast<float>(kShortestWave)) {
    return fmt::format("{}.shortest_wavelength = {}: must be >= 0.001", path,
                       Describe(*FindField(json, "shortest_wavelength")));
  }
  const Json& modes_json = *FindField(json, "modes");
  int modes = 0;
  if (ReadInt(modes_json, kLaneGroup, 4096, modes) || modes % kLaneGroup != 0) {
    return fmt::format("{}.modes = {}: must be a multiple of {} in {}..4096", path,
                       Describe(modes_json), kLaneGroup, kLaneGroup);
  }
  if (Problem problem = ReadKey(json, push.key)) return problem;

  // Both kernels draw the same bits, so the fastest is as good as the one that drew the world.
  SynthesizeField(modes, BestKernel(), push);
  const auto finite = [](float value) { return std::isfinite(value); };
  if (!std::all_of(push.kx.begin(), push.kx.end(), finite) ||
      !std::all_of(push.ky.begin(), push.ky.end(), finite)) {
    return fmt::format("{}.length_scale = {}: too small for 32-bit wave numbers", path,
                       Describe(*FindField(json, "length_scale")));
  }
  return std::nullopt;
}

Problem ReadUniformNoise(const Json& json, Disturbance& push) {
  if (Problem problem = CheckFields(json, "disturbance", {"kind", "half_width", "key"}, {"gain"})) {
    return problem;
  }
  if (Problem problem = ReadGain(json, push.gain)) return problem;
  if (Problem problem =
          ReadField(json, "disturbance", "half_width", Sign::kNotNegative, push.half_width)) {
    return problem;
  }
  return ReadKey(json, push.key);
}

Problem ReadDisturbance(const Json& world, Disturbance& push) {
  const Json* const json = FindField(world, "disturbance");
  if (json == nullptr) return std::nullopt;
  if (!json->is_object()) return CheckFields(*json, "disturbance", {});
  const Json* const kind_json = FindField(*json, "kind");
  if (kind_json == nullptr) return "disturbance.kind: missing";
  if (const Problem problem = ReadEnum(*kind_json, kWords<Disturbance::Kind>, push.kind)) {
    return "disturbance.kind = " + *problem;
  }
  switch (push.kind) {
    case Disturbance::Kind::kVonKarman:
      return ReadVonKarman(*json, push);
    case Disturbance::Kind::kUniformNoise:
      return ReadUniformNoise(*json, push);
    case Disturbance::Kind::kNone:
      break;
  }
  if (Problem problem = CheckFields(*json, "disturbance", {"kind"}, {"key"})) return problem;
  return ReadKey(*json, push.key);
}

Problem ReadWorld(std::string_view line, World& world) {
  if (line.size() > kMaxLineBytes) {
    return fmt::format("a line of {} bytes: must be at most {}", line.size(), kMaxLineBytes);
  }
  Json json;
  if (Problem problem = ParseJson(line, JsonLimits{}, json)) return problem;
  if (Problem problem =
          CheckFields(json, "", {"goal", "starts"}, {"discs", "walls", "boxes", "disturbance"})) {
    return problem;
  }
  if (Problem problem = ReadObstacles(json, world)) return problem;
  if (Problem problem = ReadGoal(*FindField(json, "goal"), world.goal)) return problem;
  if (Problem problem = ReadStarts(json, world)) return problem;
  return ReadDisturbance(json, world.disturbance);
}

Problem CheckHeader(std::string_view line) {
  if (line.size() > kMaxLineBytes) {
    return fmt::format("a line of {} bytes: must be at most {}", line.size(), kMaxLineBytes);
  }
  Json json;
  Problem problem = ParseJson(line, JsonLimits{}, json);
  if (!problem) problem = CheckFormat(json, kFormat, kVersion);
  if (!problem) problem = CheckFields(json, "", {"format", "version"});
  if (problem) *problem += fmt::format(" (the first line must be {})", WorldFileHeader());
  return problem;
}

Problem CheckStarts(const World& world, double robot_radius) {
  for (std::size_t index = 0; index < world.starts.size(); ++index) {
    const Pose& start = world.starts[index];
    const double clearance = Clearance(world, start.x, start.y);
    if (clearance < robot_radius) {
      return fmt::format(
          "starts[{}] = [{}, {}]: inside or touching an obstacle (clearance {:.4g} m, the robot "
          "needs {:.4g} m)",
          index, start.x, start.y, clearance, robot_radius);
    }
  }
  return std::nullopt;
}

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::string_view WithoutTrailingBlanks(std::string_view text) {
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

// Takes the first line off the text.
std::string_view TakeLine(std::string_view& text) {
  const std::size_t length = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, length);
  text.remove_prefix(std::min(length + 1, text.size()));
  return line;
}

}  // namespace

std::string WorldFileHeader() {
  return fmt::format("{{\"format\":\"{}\",\"version\":{}}}", kFormat, kVersion);
}

std::string WorldToJson(const World& world) {
  OrderedJson discs = OrderedJson::array();
  for (int disc = 0; disc < world.discs.size(); ++disc) {
    const auto index = static_cast<std::size_t>(disc);
    discs.push_back({world.discs.x[index], world.discs.y[index], world.discs.radius[index]});
  }
  OrderedJson walls = OrderedJson::array();
  for (int wall = 0; wall < world.walls.size(); ++wall) {
    const auto index = static_cast<std::size_t>(wall);
    walls.push_back({world.walls.x[index], world.walls.y[index],
                     FarEnd(world.walls.x[index], world.walls.dx[index]),
                     FarEnd(world.walls.y[index], world.walls.dy[index])});
  }
  OrderedJson boxes = OrderedJson::array();
  for (const Box& box : world.boxes) {
    boxes.push_back({box.x, box.y, box.half_x, box.half_y, box.heading});
  }
  OrderedJson starts = OrderedJson::array();
  for (const Pose& start : world.starts) starts.push_back({start.x, start.y, start.heading});

  OrderedJson json;
  json["discs"] = std::move(discs);
  json["walls"] = std::move(walls);
  json["boxes"] = std::move(boxes);
  json["goal"] = GoalToJson(world.goal);
  json["starts"] = std::move(starts);
  json["disturbance"] = DisturbanceToJson(world.disturbance);
  return json.dump();
}

Result<World> ParseWorld(std::string_view line, const std::string& where) {
  World world;
  if (const Problem problem = ReadWorld(line, world)) {
    return Error{ErrorCode::kData, fmt::format("{}: {}", where, *problem)};
  }
  return world;
}

Result<std::vector<World>> ParseWorlds(std::string_view text, const std::string& name,
                                       double robot_radius) {
  const auto refuse = [](const std::string& where, const std::string& problem) {
    return Error{ErrorCode::kData, fmt::format("{}: {}", where, problem)};
  };
  std::string_view rest = WithoutTrailingBlanks(text);
  if (rest.empty()) {
    return refuse(name, fmt::format("empty, the first line must be {}", WorldFileHeader()));
  }
  if (const Problem problem = CheckHeader(TakeLine(rest))) return refuse(name + ":1", *problem);
  if (rest.empty()) return refuse(name, "no worlds after the first line");

  std::vector<World> worlds;
  for (int line_number = 2; !rest.empty(); ++line_number) {
    const std::string where = fmt::format("{}:{}", name, line_number);
    const std::string_view line = TakeLine(rest);
    if (WithoutTrailingBlanks(line).empty()) return refuse(where, "a blank line between worlds");
    Result<World> world = ParseWorld(line, where);
    if (!world) return world.error();
    if (const Problem problem = CheckStarts(*world, robot_radius)) return refuse(where, *problem);
    if (!worlds.empty() && world->starts.size() != worlds.front().starts.size()) {
      return refuse(where, fmt::format("starts = [{} entries]: must be {}, as in line 2",
                                       world->starts.size(), worlds.front().starts.size()));
    }
    worlds.push_back(*std::move(world));
  }
  return worlds;
}

Result<std::vector<World>> LoadWorlds(const std::string& path, double robot_radius) {
  const Result<std::string> text = ReadFile(path, kMaxWorldFileBytes);
  if (!text) return text.error();
  return ParseWorlds(*text, path, robot_radius);
}

}  // namespace fedgen
