// SPDX-License-Identifier: Apache-2.0
#include "fedgen/world/world_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "fedgen/base/file.h"
#include "fedgen/base/file_testing.h"
#include "fedgen/base/kernel.h"
#include "fedgen/world/distribution.h"

namespace fedgen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kPoint = 0;  // m, the radius of a robot without extent

// ---------------------------------------------------------------------------------- bits

template <typename Floats>
std::vector<std::uint32_t> Bits(const Floats& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

std::vector<std::uint32_t> Bits(const WallSet& walls) {
  std::vector<std::uint32_t> bits;
  for (const auto* column :
       {&walls.x, &walls.y, &walls.dx, &walls.dy, &walls.length, &walls.inverse_length2}) {
    for (const std::uint32_t word : Bits(*column)) bits.push_back(word);
  }
  return bits;
}

// Everything a simulation reads of a world, as words. The numbers of the other kinds of goal and
// disturbance are left out: no file keeps them and nothing reads them.
std::vector<std::vector<std::uint32_t>> Bits(const World& world) {
  std::vector<std::vector<std::uint32_t>> bits = {Bits(world.discs.x), Bits(world.discs.y),
                                                  Bits(world.discs.radius), Bits(world.walls),
                                                  Bits(world.box_edges)};
  for (const Box& box : world.boxes) {
    bits.push_back(Bits(std::array{box.x, box.y, box.half_x, box.half_y, box.heading}));
  }
  const Goal& goal = world.goal;
  bits.push_back({static_cast<std::uint32_t>(goal.kind)});
  bits.push_back(Bits(goal.kind == Goal::Kind::kHalfPlane
                          ? std::array{goal.normal_x, goal.normal_y, goal.offset, goal.depth}
                          : std::array{goal.x, goal.y, goal.radius, goal.depth}));
  for (const Pose& start : world.starts) {
    bits.push_back(Bits(std::array{start.x, start.y, start.heading}));
  }
  const Disturbance& push = world.disturbance;
  bits.push_back({static_cast<std::uint32_t>(push.kind),
                  static_cast<std::uint32_t>(push.key.bits() >> 32),
                  static_cast<std::uint32_t>(push.key.bits())});
  if (push.kind != Disturbance::Kind::kNone) bits.push_back(Bits(push.gain));
  if (push.kind == Disturbance::Kind::kUniformNoise)
    bits.push_back(Bits(std::array{push.half_width}));
  if (push.kind == Disturbance::Kind::kVonKarman) {
    bits.push_back(Bits(
        std::array{push.intensity, push.length_scale, push.shortest_wavelength, push.amplitude}));
    bits.insert(bits.end(), {Bits(push.kx), Bits(push.ky), Bits(push.phase)});
  }
  return bits;
}

// ---------------------------------------------------------------------------------- worlds

// Everything a world can have, in numbers that no short decimal gives exactly.
WorldDistribution RichDistribution() {
  WorldDistribution d;
  d.walls = {{-7.1, 0.1, -7.3, 12.7}, {7.1, 0.3, 1e4, 1e-3}, {0.0, 1.0, -0.0, 2.0}};
  d.boxes = {{20.3, 20.7, 0.1, 0.7, 0.3}};
  d.discs = {{30.1, 30.9, 0.123}};
  d.random_discs = {{3, 9}, {-5, 5}, {2, 10}, {0.1, 0.25}};
  d.random_boxes = {{1, 4}, {-5, 5}, {12, 20}, {0.2, 0.5}, {0.3, 0.6}, {-170, 170}};
  d.goal.normal = {0.3, 1.7};
  d.goal.offset = {9.1, 10.3};
  d.goal.x = {-3, 3};
  d.goal.y = {10, 11};
  d.goal.radius = {0.3, 0.7};
  d.goal.depth = 0.1;
  d.start.x = {-2, 2};
  d.start.y = {0, 1};
  d.start.heading_degrees = {60, 120};
  d.start.per_world = 3;
  d.disturbance.gain = {0.9, -0.3, 0.7};
  return d;
}

World Draw(const WorldDistribution& distribution, std::uint64_t seed) {
  EXPECT_FALSE(Validate(distribution).has_value());
  World world;
  DrawWorld(distribution, 0, Key(seed), BestKernel(), world);
  return world;
}

// The shortest world a person can write.
constexpr const char* kPlainWorld =
    R"({"goal":{"disc":{"x":0,"y":5,"radius":1}},"starts":[[0,0,1.5]]})";

// A world with one part of the plain one replaced or added.
std::string WorldWith(const std::string& parts) {
  const std::string goal = R"("goal":{"disc":{"x":0,"y":5,"radius":1}},)";
  return "{" + goal + R"("starts":[[0,0,1.5]],)" + parts + "}";
}

std::string WorldWithGoal(const std::string& goal) {
  return R"({"starts":[[0,0,1.5]],"goal":)" + goal + "}";
}

std::string VonKarman(const std::string& intensity, const std::string& length_scale,
                      const std::string& shortest, const std::string& modes,
                      const std::string& key = R"("0x0123456789abcdef")") {
  return WorldWith(R"("disturbance":{"kind":"von-karman","intensity":)" + intensity +
                   R"(,"length_scale":)" + length_scale + R"(,"shortest_wavelength":)" + shortest +
                   R"(,"modes":)" + modes + R"(,"key":)" + key + "}");
}

World ParseGood(const std::string& line) {
  Result<World> world = ParseWorld(line, "w:2");
  EXPECT_TRUE(world.has_value()) << world.error().message;
  return world ? *world : World{};
}

// The message of a line that must be refused.
std::string Problem(const std::string& line) {
  const Result<World> world = ParseWorld(line, "w:2");
  if (world) return "(no error)";
  EXPECT_EQ(world.error().code, ErrorCode::kData);
  return world.error().message;
}

std::string FileProblem(const std::string& text, double robot_radius = kPoint) {
  const Result<std::vector<World>> worlds = ParseWorlds(text, "w", robot_radius);
  if (worlds) return "(no error)";
  EXPECT_EQ(worlds.error().code, ErrorCode::kData);
  return worlds.error().message;
}

std::string File(const std::string& lines) { return WorldFileHeader() + "\n" + lines; }

// ---------------------------------------------------------------------------------- round trips

class WorldFileRoundTrip
    : public ::testing::TestWithParam<std::tuple<Goal::Kind, Disturbance::Kind>> {};

TEST_P(WorldFileRoundTrip, KeepsEveryBitOfDrawnWorlds) {
  WorldDistribution distribution = RichDistribution();
  distribution.goal.kind = std::get<0>(GetParam());
  distribution.disturbance.kind = std::get<1>(GetParam());
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const World drawn = Draw(distribution, seed);
    const std::string line = WorldToJson(drawn);
    const World read = ParseGood(line);
    ASSERT_EQ(Bits(read), Bits(drawn)) << line;
    ASSERT_EQ(WorldToJson(read), line);
  }
}

INSTANTIATE_TEST_SUITE_P(
    EveryKind, WorldFileRoundTrip,
    ::testing::Combine(::testing::Values(Goal::Kind::kHalfPlane, Goal::Kind::kDisc),
                       ::testing::Values(Disturbance::Kind::kNone, Disturbance::Kind::kVonKarman,
                                         Disturbance::Kind::kUniformNoise)));

TEST(WorldFile, KeepsTheExtentOfWallsFromEverySize) {
  // A world keeps one end and the rounded extent of a wall; a file has both ends. Coordinates of
  // sizes from 1e-6 to 1e6 make the extent round in every way, ties included.
  World world;
  world.starts.resize(1);
  const Key key(7);
  const auto coordinate = [](std::uint32_t size_word, std::uint32_t word) {
    const double size = std::pow(10.0, 12 * static_cast<double>(UnitFloat(size_word)) - 6);
    return static_cast<float>(size * (2 * static_cast<double>(UnitFloat(word)) - 1));
  };
  for (std::uint64_t batch = 0; batch < 100; ++batch) {
    world.ClearObstacles();
    for (std::uint64_t wall = 0; wall < 1000; ++wall) {
      const RandomBlock a = key.Fork(batch).Block(2 * wall);
      const RandomBlock b = key.Fork(batch).Block(2 * wall + 1);
      const float x0 = coordinate(a[0], a[1]);
      const float x1 = coordinate(a[2], a[3]);
      const float y0 = coordinate(b[0], b[1]);
      world.walls.Add(x0, y0, x1, y0 > 0 ? y0 - 1 : y0 + 1);
    }
    ASSERT_EQ(Bits(ParseGood(WorldToJson(world)).walls), Bits(world.walls)) << "batch " << batch;
  }
}

TEST(WorldFile, KeepsAWallWhoseExtentRoundsPastTheLargestCoordinate) {
  // 1e6 - (-999999.9375) = 1999999.9375 lies half way between floats and becomes 2000000; adding
  // that to the first end gives 1000000.0625, which no file may hold. 1e6 has the same extent.
  World world;
  world.starts.resize(1);
  world.walls.Add(-999999.9375F, 0, 1e6F, 1);
  ASSERT_EQ(world.walls.dx[0], 2e6F);
  EXPECT_EQ(Bits(ParseGood(WorldToJson(world)).walls), Bits(world.walls));
}

TEST(WorldFile, KeepsUnitNormalsAsTheyAre) {
  // Floats nearest to (cos, sin) have length 1 up to 1e-7 only; dividing by it would change some.
  World world;
  world.starts.resize(1);
  for (int angle = 0; angle < 1000; ++angle) {
    world.goal.normal_x = static_cast<float>(std::cos(0.00628 * angle));
    world.goal.normal_y = static_cast<float>(std::sin(0.00628 * angle));
    ASSERT_EQ(Bits(ParseGood(WorldToJson(world))), Bits(world)) << "angle " << angle;
  }
}

TEST(WorldFile, ReadsAWholeFileOfDrawnWorlds) {
  WorldDistribution distribution = RichDistribution();
  distribution.disturbance.kind = Disturbance::Kind::kVonKarman;
  std::string text = WorldFileHeader() + "\n";
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    text += WorldToJson(Draw(distribution, seed)) + "\n";
  }
  const Result<std::vector<World>> worlds = ParseWorlds(text, "w", kPoint);
  ASSERT_TRUE(worlds) << worlds.error().message;
  ASSERT_EQ(worlds->size(), 5u);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    EXPECT_EQ(Bits((*worlds)[seed]), Bits(Draw(distribution, seed)));
  }
}

TEST(WorldFile, LoadsWhatWasSaved) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("worlds.jsonl");
  ASSERT_TRUE(WriteFileAtomically(path, File(kPlainWorld), IfExists::kRefuse));
  const Result<std::vector<World>> worlds = LoadWorlds(path, kPoint);
  EXPECT_TRUE(worlds.has_value());
  const Result<std::vector<World>> missing = LoadWorlds(directory.Path("other.jsonl"), kPoint);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kIo);
}

TEST(WorldFile, WritesTheDocumentedSchema) {
  World world;
  world.discs.Add(0.5F, 2, 0.25F);
  world.walls.Add(-1, 0, -1, 4);
  world.AddBox({3, 3, 0.5F, 1, 0});
  world.goal.offset = 8;
  world.starts.push_back({0, 0, 1.5F});
  world.disturbance.key = Key(0xABC);
  EXPECT_EQ(
      WorldToJson(world),
      R"({"discs":[[0.5,2.0,0.25]],"walls":[[-1.0,0.0,-1.0,4.0]],"boxes":[[3.0,3.0,0.5,1.0,0.0]],)"
      R"("goal":{"half_plane":{"normal":[0.0,1.0],"offset":8.0,"depth":0.0}},)"
      R"("starts":[[0.0,0.0,1.5]],"disturbance":{"kind":"none","key":"0x0000000000000abc"}})");
  world.disturbance.kind = Disturbance::Kind::kUniformNoise;
  world.disturbance.half_width = 0.5F;
  EXPECT_THAT(WorldToJson(world),
              HasSubstr(R"("disturbance":{"kind":"uniform-noise","gain":[1.0,0.0,0.0],)"
                        R"("half_width":0.5,"key":"0x0000000000000abc"}})"));
  world.disturbance.kind = Disturbance::Kind::kVonKarman;
  world.disturbance.intensity = 0.125F;
  SynthesizeField(8, BestKernel(), world.disturbance);
  EXPECT_THAT(WorldToJson(world),
              HasSubstr(R"("disturbance":{"kind":"von-karman","gain":[1.0,0.0,0.0],)"
                        R"("intensity":0.125,"length_scale":1.0,"shortest_wavelength":1.0,)"
                        R"("modes":8,"key":"0x0000000000000abc"}})"));
}

// ---------------------------------------------------------------------------------- by hand

TEST(WorldFile, LeavesOutWhatIsNotGiven) {
  const World world = ParseGood(kPlainWorld);
  EXPECT_EQ(world.discs.size() + world.walls.size(), 0);
  EXPECT_TRUE(world.boxes.empty());
  EXPECT_EQ(world.goal.depth, 0);
  EXPECT_EQ(world.disturbance.kind, Disturbance::Kind::kNone);
  EXPECT_EQ(world.disturbance.key, Key());
  EXPECT_EQ(world.starts, (std::vector<Pose>{{0, 0, 1.5F}}));
}

TEST(WorldFile, MakesATypedNormalAUnitVector) {
  // |(0.7071, 0.7071)| = 0.99999 is a unit vector to a person, not to the distance to the goal.
  const Goal goal =
      ParseGood(WorldWithGoal(R"({"half_plane":{"normal":[0.7071,0.7071],"offset":1}})")).goal;
  EXPECT_NEAR(std::hypot(goal.normal_x, goal.normal_y), 1, 1e-7);
  EXPECT_EQ(goal.normal_x, goal.normal_y);
}

TEST(WorldFile, AllowsBlankLinesAtTheEndOnly) {
  EXPECT_TRUE(ParseWorlds(File(kPlainWorld), "w", kPoint));
  EXPECT_TRUE(ParseWorlds(File(kPlainWorld) + "\n", "w", kPoint));
  EXPECT_TRUE(ParseWorlds(File(kPlainWorld) + "\r\n \n\n", "w", kPoint));
  EXPECT_EQ(FileProblem(File(std::string("\n") + kPlainWorld)), "w:2: a blank line between worlds");
}

TEST(WorldFile, AcceptsTheLimitsThemselves) {
  EXPECT_EQ(ParseGood(WorldWith(R"("discs":[[1e6,-1e6,1e6]])")).discs.size(), 1);
  EXPECT_EQ(ParseGood(WorldWith(R"("walls":[[0,0,0.0010001,0]])")).walls.size(), 1);
  EXPECT_EQ(ParseGood(VonKarman("0", "1e-3", "0.001", "4096")).disturbance.kx.size(), 4096u);
  EXPECT_EQ(ParseGood(VonKarman("1e6", "1e6", "0.001", "8")).disturbance.kx.size(), 8u);
  EXPECT_EQ(ParseGood(VonKarman("1", "1", "1", "8", R"("0xFFFFFFFFFFFFFFFF")")).disturbance.key,
            Key(~std::uint64_t{0}));
}

// ---------------------------------------------------------------------------------- files

TEST(WorldFile, RefusesFilesThatAreNotWorldFiles) {
  const std::string first_line =
      R"( (the first line must be {"format":"fedgen-worlds","version":1}))";
  EXPECT_EQ(FileProblem(""),
            R"(w: empty, the first line must be {"format":"fedgen-worlds","version":1})");
  EXPECT_EQ(FileProblem(" \n\r\n"),
            R"(w: empty, the first line must be {"format":"fedgen-worlds","version":1})");
  EXPECT_EQ(FileProblem(WorldFileHeader() + "\n"), "w: no worlds after the first line");
  EXPECT_EQ(FileProblem(kPlainWorld),
            R"(w:1: format: missing, must be "fedgen-worlds")" + first_line);
  EXPECT_EQ(FileProblem(R"({"format":"fedgen-policy","version":1})"),
            R"(w:1: format = "fedgen-policy": must be "fedgen-worlds")" + first_line);
  EXPECT_EQ(FileProblem(R"({"format":"fedgen-worlds"})"),
            "w:1: version: missing, must be 1" + first_line);
  EXPECT_EQ(FileProblem(R"({"format":"fedgen-worlds","version":2,"new":0})"),
            "w:1: version = 2: this program reads version 1" + first_line);
  EXPECT_EQ(FileProblem(R"({"format":"fedgen-worlds","version":"1"})"),
            R"(w:1: version = "1": this program reads version 1)" + first_line);
  EXPECT_EQ(FileProblem(R"({"format":"fedgen-worlds","version":1,"versio":1})"),
            "w:1: versio: unknown key, did you mean version?" + first_line);
  EXPECT_EQ(FileProblem("[1]"), "w:1: [1]: must be an object" + first_line);
  EXPECT_EQ(FileProblem("\x89PNG"), "w:1: column 1: not valid JSON" + first_line);
}

TEST(WorldFile, NamesTheLine) {
  EXPECT_EQ(FileProblem(File(std::string(kPlainWorld) + "\n" + kPlainWorld + "\n{}\n")),
            "w:4: goal: missing");
}

TEST(WorldFile, RefusesLinesOfDifferentNumbersOfStarts) {
  const std::string two =
      R"({"goal":{"disc":{"x":0,"y":5,"radius":1}},"starts":[[0,0,0],[1,0,0]]})";
  EXPECT_EQ(FileProblem(File(std::string(kPlainWorld) + "\n" + two)),
            "w:3: starts = [2 entries]: must be 1, as in line 2");
}

TEST(WorldFile, RefusesLongLines) {
  // The 4 MiB are bytes of the line without its end.
  std::string line(std::size_t{4} << 20, ' ');
  line.replace(0, std::string(kPlainWorld).size(), kPlainWorld);
  EXPECT_TRUE(ParseWorld(line, "w:2"));
  EXPECT_EQ(Problem(line + " "), "w:2: a line of 4194305 bytes: must be at most 4194304");
  EXPECT_THAT(FileProblem(line + " 1"), HasSubstr("w:1: a line of 4194306 bytes"));
}

TEST(WorldFile, RefusesStartsThatTouchAnObstacle) {
  const std::string disc = R"("discs":[[0,1,0.75]])";  // 0.25 m from the start at the origin
  EXPECT_TRUE(ParseWorlds(File(WorldWith(disc)), "w", 0.25));
  EXPECT_EQ(FileProblem(File(WorldWith(disc)), 0.27),
            "w:2: starts[0] = [0, 0]: inside or touching an obstacle (clearance 0.25 m, the robot "
            "needs 0.27 m)");
  EXPECT_EQ(FileProblem(File(WorldWith(R"("boxes":[[0.5,0.1,0.75,1,0]])"))),
            "w:2: starts[0] = [0, 0]: inside or touching an obstacle (clearance -0.25 m, the robot "
            "needs 0 m)");
}

// ---------------------------------------------------------------------------------- lines

TEST(WorldFile, RefusesWhatIsNotJson) {
  EXPECT_EQ(Problem(""), "w:2: column 1: the JSON ends too early");
  EXPECT_EQ(Problem(R"({"discs":[)"), "w:2: column 11: the JSON ends too early");
  EXPECT_EQ(Problem(R"({"discs":[,)"), R"(w:2: column 11: not valid JSON after '{"discs":[')");
  EXPECT_EQ(Problem("{'goal': 1}"), "w:2: column 2: not valid JSON after '{'");
  EXPECT_EQ(Problem(std::string(kPlainWorld) + "x"),
            R"(w:2: column 64: not valid JSON after 'ius":1}},"starts":[[0,0,1.5]]}')");
  EXPECT_EQ(Problem(WorldWith(R"("discs":[[NaN,0,1]])")),
            R"(w:2: column 74: not valid JSON after 'starts":[[0,0,1.5]],"discs":[[')");
  EXPECT_EQ(Problem(WorldWith(R"("discs":[[1e999,0,1]])")),
            "w:2: column 78: 1e999: number too large");
  EXPECT_EQ(Problem(std::string("{}\0{}", 5)), "w:2: byte 3: zero bytes are not JSON");
  EXPECT_EQ(Problem("{\"\xff\":1}"), "w:2: column 3: not valid JSON after '{\"'");
}

TEST(WorldFile, RefusesDocumentsThatCostTooMuch) {
  EXPECT_EQ(Problem(std::string(1'000'000, '[')), "w:2: nested more than 8 levels deep");
  std::string many = R"({"discs":[0)";
  for (int value = 0; value < 100'000; ++value) many += ",0";
  EXPECT_EQ(Problem(many + "]}"), "w:2: more than 100000 values");
}

TEST(WorldFile, RefusesUnknownMissingAndRepeatedFields) {
  EXPECT_EQ(Problem("7"), "w:2: 7: must be an object");
  EXPECT_EQ(Problem("{}"), "w:2: goal: missing");
  EXPECT_EQ(Problem(R"({"goal":{"disc":{"x":0,"y":5,"radius":1}}})"), "w:2: starts: missing");
  EXPECT_EQ(Problem(WorldWith(R"("dics":[])")), "w:2: dics: unknown key, did you mean discs?");
  EXPECT_EQ(Problem(WorldWith(R"("discs":[],"discs":[])")), "w:2: discs: given twice");
  EXPECT_EQ(Problem(WorldWithGoal(R"({"disc":{"x":0,"x":0}})")), "w:2: x: given twice");
}

TEST(WorldFile, RefusesBadObstacles) {
  EXPECT_EQ(Problem(WorldWith(R"("discs":[[0,1,1],[0,1,1],[0,1,1],[0,1,-0.1]])")),
            "w:2: discs[3][2] = -0.1: must be > 0");
  EXPECT_EQ(Problem(WorldWith(R"("discs":5)")),
            "w:2: discs = 5: must be an array of [x, y, radius]");
  EXPECT_EQ(Problem(WorldWith(R"("discs":[[1,2]])")),
            "w:2: discs[0] = [1, 2]: must be [x, y, radius]");
  EXPECT_EQ(Problem(WorldWith(R"("discs":[{"x":1}])")),
            "w:2: discs[0] = {1 fields}: must be [x, y, radius]");
  EXPECT_EQ(Problem(WorldWith(R"("discs":[[1,null,1]])")),
            "w:2: discs[0][1] = null: must be a number");
  EXPECT_EQ(Problem(WorldWith(R"("discs":[[1,"2",1]])")),
            R"(w:2: discs[0][1] = "2": must be a number)");
  EXPECT_EQ(Problem(WorldWith(R"("discs":[[1,2,1e-60]])")),
            "w:2: discs[0][2] = 1e-60: must be > 0");
  EXPECT_EQ(Problem(WorldWith(R"("discs":[[1000001,2,1]])")),
            "w:2: discs[0][0] = 1000001: must be at most 1e6 in size");
  EXPECT_EQ(Problem(WorldWith(R"("discs":[[1,-1e300,1]])")),
            "w:2: discs[0][1] = -1e+300: must fit a 32-bit float");
  EXPECT_EQ(Problem(WorldWith(R"("walls":[[5,5,5,5.0005]])")),
            "w:2: walls[0] = [5, 5, 5, 5.0005]: must be at least 1e-3 m long");
  EXPECT_EQ(Problem(WorldWith(R"("boxes":[[5,5,1,0,0]])")), "w:2: boxes[0][3] = 0: must be > 0");
  // Floats near 1e6 are 1/16 apart, so corners 0.02 m from each other are the same point.
  EXPECT_EQ(Problem(WorldWith(R"("boxes":[[1e6,5,0.01,1,0]])")),
            "w:2: boxes[0] = [1000000, 5, 0.01, 1, 0]: too small for 32-bit coordinates");
  std::string many = R"("walls":[)";
  for (int wall = 0; wall < 1000; ++wall) many += "[0,1,2,3],";
  EXPECT_EQ(Problem(WorldWith(many + "[0,1,2,3]]")),
            "w:2: walls = [1001 entries]: must be at most 1000");
}

TEST(WorldFile, RefusesBadGoals) {
  EXPECT_EQ(Problem(WorldWithGoal("[]")), "w:2: goal = []: must be an object");
  EXPECT_EQ(Problem(WorldWithGoal("{}")),
            "w:2: goal = {0 fields}: must be either a half_plane or a disc");
  EXPECT_EQ(Problem(WorldWithGoal(R"({"disc":{},"half_plane":{}})")),
            "w:2: goal = {2 fields}: must be either a half_plane or a disc");
  EXPECT_EQ(Problem(WorldWithGoal(R"({"halfplane":{}})")),
            "w:2: goal.halfplane: unknown key, did you mean half_plane?");
  EXPECT_EQ(Problem(WorldWithGoal(R"({"disc":{"x":0,"y":0,"radus":1}})")),
            "w:2: goal.disc.radus: unknown key, did you mean radius?");
  EXPECT_EQ(Problem(WorldWithGoal(R"({"disc":{"x":0,"y":0}})")), "w:2: goal.disc.radius: missing");
  EXPECT_EQ(Problem(WorldWithGoal(R"({"disc":{"x":0,"y":0,"radius":0}})")),
            "w:2: goal.disc.radius = 0: must be > 0");
  EXPECT_EQ(Problem(WorldWithGoal(R"({"disc":{"x":0,"y":0,"radius":1,"depth":-1}})")),
            "w:2: goal.disc.depth = -1: must be >= 0");
  EXPECT_EQ(Problem(WorldWithGoal(R"({"half_plane":{"normal":[0,1]}})")),
            "w:2: goal.half_plane.offset: missing");
  EXPECT_EQ(Problem(WorldWithGoal(R"({"half_plane":{"normal":[1,1],"offset":1}})")),
            "w:2: goal.half_plane.normal = [1, 1]: must have length 1 within 1e-3, has 1.414");
  EXPECT_EQ(Problem(WorldWithGoal(R"({"half_plane":{"normal":[0,0],"offset":1}})")),
            "w:2: goal.half_plane.normal = [0, 0]: must have length 1 within 1e-3, has 0");
  EXPECT_EQ(Problem(WorldWithGoal(R"({"half_plane":{"normal":1,"offset":1}})")),
            "w:2: goal.half_plane.normal = 1: must be [x, y]");
  EXPECT_EQ(Problem(WorldWithGoal(R"({"half_plane":{"normal":[0,true],"offset":1}})")),
            "w:2: goal.half_plane.normal[1] = true: must be a number");
}

TEST(WorldFile, RefusesBadStarts) {
  const std::string goal = R"({"goal":{"disc":{"x":0,"y":5,"radius":1}},"starts":)";
  EXPECT_EQ(Problem(goal + "[]}"), "w:2: starts = []: must be at least one");
  EXPECT_EQ(Problem(goal + "{}}"), "w:2: starts = {0 fields}: must be an array of [x, y, heading]");
  EXPECT_EQ(Problem(goal + "[[0,0]]}"), "w:2: starts[0] = [0, 0]: must be [x, y, heading]");
  std::string many = "[";
  for (int start = 0; start < 10000; ++start) many += "[0,0,0],";
  EXPECT_EQ(Problem(goal + many + "[0,0,0]]}"),
            "w:2: starts = [10001 entries]: must be at most 10000");
}

TEST(WorldFile, RefusesBadDisturbances) {
  EXPECT_EQ(Problem(WorldWith(R"("disturbance":"none")")),
            R"(w:2: disturbance = "none": must be an object)");
  EXPECT_EQ(Problem(WorldWith(R"("disturbance":{})")), "w:2: disturbance.kind: missing");
  EXPECT_EQ(
      Problem(WorldWith(R"("disturbance":{"kind":"vonkarman"})")),
      R"(w:2: disturbance.kind = "vonkarman": must be one of none, von-karman, uniform-noise, )"
      "did you mean von-karman?");
  EXPECT_EQ(Problem(WorldWith(R"("disturbance":{"kind":3})")),
            "w:2: disturbance.kind = 3: must be one of none, von-karman, uniform-noise");
  EXPECT_EQ(Problem(WorldWith(R"("disturbance":{"kind":"none","gain":[1,0,0]})")),
            "w:2: disturbance.gain: unknown key");
  EXPECT_EQ(Problem(WorldWith(R"("disturbance":{"kind":"none","key":5})")),
            "w:2: disturbance.key = 5: must be 0x and 16 hexadecimal digits");
  for (const char* key :
       {"", "0x", "0x123456789abcdef", "0x0123456789abcdefg", "0x0123456789abcdeg",
        "0123456789abcdef12", "0x-123456789abcdef", "0X0123456789abcdef"}) {
    EXPECT_EQ(
        Problem(WorldWith(fmt::format(R"("disturbance":{{"kind":"none","key":"{}"}})", key))),
        fmt::format(R"(w:2: disturbance.key = "{}": must be 0x and 16 hexadecimal digits)", key));
  }
  EXPECT_EQ(Problem(WorldWith(R"("disturbance":{"kind":"uniform-noise","half_width":1})")),
            "w:2: disturbance.key: missing");
  EXPECT_EQ(Problem(WorldWith(R"("disturbance":{"kind":"uniform-noise","half_width":-1,)"
                              R"("key":"0x0123456789abcdef"})")),
            "w:2: disturbance.half_width = -1: must be >= 0");
  EXPECT_EQ(Problem(WorldWith(R"("disturbance":{"kind":"uniform-noise","half_width":1,)"
                              R"("gain":[1,0],"key":"0x0123456789abcdef"})")),
            "w:2: disturbance.gain = [1, 0]: must be [x', y', heading']");
  EXPECT_EQ(Problem(VonKarman("-1", "1", "1", "8")),
            "w:2: disturbance.intensity = -1: must be >= 0");
  EXPECT_EQ(Problem(VonKarman("1", "0", "1", "8")),
            "w:2: disturbance.length_scale = 0: must be > 0");
  EXPECT_EQ(Problem(VonKarman("1", "1", "0.0009", "8")),
            "w:2: disturbance.shortest_wavelength = 0.0009: must be >= 0.001");
  for (const char* modes : {"0", "7", "12", "4104", "8.0", "-8", "18446744073709551608", "\"8\""}) {
    const std::string problem = Problem(VonKarman("1", "1", "1", modes));
    EXPECT_THAT(problem, HasSubstr("w:2: disturbance.modes = "));
    EXPECT_THAT(problem, HasSubstr(": must be a multiple of 8 in 8..4096"));
  }
  // k0 = 1 / (2 pi 1.339 L) is beyond a float for L = 1e-40.
  EXPECT_EQ(Problem(VonKarman("1", "1e-40", "1", "8")),
            "w:2: disturbance.length_scale = 1e-40: too small for 32-bit wave numbers");
}

TEST(WorldFile, QuotesHostileTextShortAndPrintable) {
  const std::string escape = R"(\u001b[2J\u0007\u202e)";
  EXPECT_EQ(Problem("{\"" + escape + "\":1}"), R"(w:2: \x1b[2J\x07\xe2\x80\xae: unknown key)");
  const std::string key_message = Problem("{\"" + std::string(3'000'000, 'k') + "\":1}");
  EXPECT_EQ(key_message, "w:2: " + std::string(40, 'k') + "...: unknown key");
  const std::string twice = "\"" + std::string(1000, 'k') + "\":1";
  EXPECT_EQ(Problem("{" + twice + "," + twice + "}"),
            "w:2: " + std::string(40, 'k') + "...: given twice");
  EXPECT_EQ(
      Problem(WorldWith(R"("disturbance":{"kind":")" + escape + "\"}")),
      R"(w:2: disturbance.kind = "\x1b[2J\x07\xe2\x80\xae": must be one of none, von-karman, )"
      "uniform-noise");
  EXPECT_LT(Problem("{\"a\":" + std::string(1000, '9') + "}").size(), 120u);
  EXPECT_THAT(Problem("{\"a\": \x1b[2J"), Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace fedgen
