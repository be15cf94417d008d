// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/figure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numbers>

#include "fedgen/base/file_testing.h"
#include "fedgen/report/picture_testing.h"

namespace fedgen {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Colours of figure.cc and world_drawing.h that nothing else is drawn in.
constexpr std::uint32_t kObstacle = 0xdc4a41;
constexpr std::uint32_t kWall = 0x3d4247;
constexpr std::uint32_t kStart = 0x1fd0e3;
constexpr std::uint32_t kCrash = 0x7d0c12;
constexpr std::uint32_t kBeam = 0x0b8fa0;
constexpr std::uint32_t kFirstPath = 0x1f5fc4;
constexpr std::uint32_t kSecondPath = 0xe08e00;

class Figure : public ::testing::Test, protected TemporaryDirectory {
 protected:
  std::string Save(const std::vector<Panel>& panels, const FigureOptions& options,
                   const std::string& name) const {
    const Result<void> saved = SaveFigure(panels, options, Path(name), IfExists::kReplace);
    EXPECT_TRUE(saved) << (saved ? "" : saved.error().message);
    return *ReadFile(Path(name), 100'000'000);
  }

  Pixels SavePixels(const std::vector<Panel>& panels, const FigureOptions& options = {}) const {
    return DecodePng(Save(panels, options, "picture.png"));
  }
};

// Ten metres square, from a start below to a goal above.
World Square() {
  World world;
  world.walls.Add(-5, 0, -5, 10);
  world.walls.Add(5, 0, 5, 10);
  world.walls.Add(-5, 0, 5, 0);
  world.starts.push_back({0, 1, std::numbers::pi_v<float> / 2});
  return world;
}

DrawnPath Ahead(Outcome outcome, float x, float end_y = 6, const std::string& label = "") {
  DrawnPath path;
  for (int step = 0; step <= 100; ++step) {
    path.trajectory.poses.push_back(
        {x, 1 + (end_y - 1) * static_cast<float>(step) / 100, std::numbers::pi_v<float> / 2});
  }
  path.outcome = outcome;
  path.label = label;
  return path;
}

TEST_F(Figure, IsAPng) {
  const World world = Square();
  const std::string bytes = Save({{&world, "world 0", {}}}, {.title = "A world"}, "a.png");
  EXPECT_THAT(bytes, StartsWith("\x89PNG\r\n\x1a\n"));
  const Pixels pixels = DecodePng(bytes);
  // One column of 440 units, margins and axis: 534 units at two pixels each.
  EXPECT_EQ(pixels.width, 1068);
  EXPECT_GT(pixels.height, 800);
  EXPECT_GT(pixels.Count(kStart), 0);
  EXPECT_GT(pixels.Count(0xffffff), pixels.width * pixels.height / 2);
}

TEST_F(Figure, IsAnSvg) {
  const World world = Square();
  const std::string bytes = Save({{&world, "world 0", {}}}, {.title = "Worlds & paths"}, "a.svg");
  EXPECT_THAT(bytes, StartsWith("<?xml"));
  EXPECT_THAT(bytes, HasSubstr("<title>Worlds &amp; paths</title>"));
  EXPECT_THAT(bytes, EndsWith("</svg>\n"));
}

TEST_F(Figure, HasTheSameBytesEachTime) {
  World world = Square();
  world.discs.Add(1, 5, 0.25F);
  world.AddBox({-2, 4, 0.5F, 0.3F, 0.4F});
  world.disturbance.kind = Disturbance::Kind::kVonKarman;
  world.disturbance.intensity = 0.115F;
  world.disturbance.shortest_wavelength = 0.25F;
  SynthesizeField(32, Kernel::kScalar, world.disturbance);
  const Lidar lidar(kSymmetricFan);
  const std::vector<Panel> panels(2, {&world, "world", {Ahead(Outcome::kCollided, 0)}});
  const FigureOptions options = {.title = "Twice", .lidar = &lidar};
  for (const char* name : {"a.png", "a.svg"}) {
    const std::string first = Save(panels, options, name);
    EXPECT_TRUE(first == Save(panels, options, name)) << name;
  }
}

TEST_F(Figure, DoesNotOverwriteUnlessTold) {
  const World world = Square();
  const std::vector<Panel> panels = {{&world, "", {}}};
  ASSERT_TRUE(WriteFileAtomically(Path("a.svg"), "precious", IfExists::kRefuse));
  const Result<void> saved = SaveFigure(panels, {}, Path("a.svg"), IfExists::kRefuse);
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().code, ErrorCode::kExists);
  EXPECT_EQ(*ReadFile(Path("a.svg"), 100), "precious");
  EXPECT_TRUE(SaveFigure(panels, {}, Path("a.svg"), IfExists::kReplace));
  EXPECT_THAT(*ReadFile(Path("a.svg"), 1'000'000), StartsWith("<?xml"));
  EXPECT_THAT(Names(), ::testing::ElementsAre("a.svg"));
}

TEST_F(Figure, LeavesNothingBehindWhenItFails) {
  const World world = Square();
  const std::vector<Panel> one = {{&world, "", {}}};
  const auto code = [&](const std::vector<Panel>& panels, const FigureOptions& options,
                        const std::string& path) {
    const Result<void> saved = SaveFigure(panels, options, path, IfExists::kReplace);
    EXPECT_FALSE(saved);
    EXPECT_THAT(saved.error().message, HasSubstr(path));
    return saved.error().code;
  };
  EXPECT_EQ(code(one, {}, Path("a.jpg")), ErrorCode::kUsage);
  EXPECT_EQ(code(one, {.title = "caf\xe9"}, Path("a.svg")), ErrorCode::kUsage);
  const std::vector<Panel> tower(200, one.front());
  EXPECT_EQ(code(tower, {.columns = 1}, Path("a.png")), ErrorCode::kUsage);
  EXPECT_EQ(code(one, {}, "/proc/missing/a.png"), ErrorCode::kIo);
  EXPECT_THAT(Names(), ::testing::IsEmpty());
  // A file is not a directory, not even for a user who may write anywhere.
  ASSERT_TRUE(WriteFileAtomically(Path("file"), "", IfExists::kRefuse));
  EXPECT_EQ(code(one, {}, Path("file/a.png")), ErrorCode::kIo);
  EXPECT_THAT(Names(), ::testing::ElementsAre("file"));
}

// Pixels of a disc's colour grow with the square of its radius: (9 - 4) / (4 - 1) from radius to
// radius, whatever the legend adds to each.
TEST_F(Figure, DrawsObstaclesToScale) {
  const auto count = [&](float radius) {
    World world = Square();
    world.discs.Add(0, 5, radius);
    return static_cast<double>(SavePixels({{&world, "", {}}}).Count(kObstacle));
  };
  const double one = count(0.5F);
  const double two = count(1.0F);
  const double three = count(1.5F);
  EXPECT_NEAR((three - two) / (two - one), 5.0 / 3, 0.03);
}

TEST_F(Figure, DrawsABoxAsLargeTurnedAsStraight) {
  const auto count = [&](float heading) {
    World world = Square();
    world.AddBox({0, 5, 1, 0.5F, heading});
    return static_cast<double>(SavePixels({{&world, "", {}}}).Count(kObstacle));
  };
  EXPECT_NEAR(count(0.5F) / count(0), 1, 0.03);
}

TEST_F(Figure, NamesOnlyWhatIsThere) {
  World empty;
  empty.starts.push_back({0, 1, 0});
  empty.goal.offset = 5;
  const Pixels pixels = SavePixels({{&empty, "", {}}});
  for (const std::uint32_t colour : {kObstacle, kWall, kCrash, kBeam, kFirstPath}) {
    EXPECT_EQ(pixels.Count(colour), 0) << std::hex << colour;
  }
}

TEST_F(Figure, MarksHowAPathEnded) {
  const World world = Square();
  const auto draw = [&](Outcome outcome) {
    return SavePixels({{&world, "", {Ahead(outcome, 0)}}});
  };
  const Pixels reached = draw(Outcome::kReachedGoal);
  const Pixels collided = draw(Outcome::kCollided);
  const Pixels timed_out = draw(Outcome::kTimedOut);
  EXPECT_GT(collided.Count(kCrash), 0);
  EXPECT_EQ(reached.Count(kCrash), 0);
  EXPECT_EQ(timed_out.Count(kCrash), 0);
  EXPECT_GT(timed_out.Count(kFirstPath), reached.Count(kFirstPath));  // the ring of the hollow mark
  EXPECT_GT(reached.Count(0x1e9e4a), timed_out.Count(0x1e9e4a));      // the green dot
}

TEST_F(Figure, GivesEachLabelItsColourInAllPanels) {
  const World world = Square();
  const DrawnPath a = Ahead(Outcome::kReachedGoal, -1, 10, "a");
  const DrawnPath also_a = Ahead(Outcome::kReachedGoal, 1, 10, "a");
  const DrawnPath b = Ahead(Outcome::kReachedGoal, 1, 10, "b");
  const Pixels same = SavePixels({{&world, "", {a}}, {&world, "", {also_a}}});
  EXPECT_GT(same.Count(kFirstPath), 0);
  EXPECT_EQ(same.Count(kSecondPath), 0);
  const Pixels different = SavePixels({{&world, "", {a}}, {&world, "", {b}}});
  EXPECT_GT(different.Count(kFirstPath), 0);
  EXPECT_GT(different.Count(kSecondPath), 0);
}

// A dot per beam that something stops: three beams, the middle one of which meets the disc, then
// all.
TEST_F(Figure, DotsTheBeamsThatAreStopped) {
  const Lidar lidar({.beams = 3, .range = 3, .from_degrees = -45, .to_degrees = 45});
  const FigureOptions options = {.lidar = &lidar};
  const auto count = [&](bool ahead, bool aside) {
    World world = Square();
    if (ahead) world.discs.Add(0, 3, 0.3F);
    if (aside) world.discs.Add(-1.5F, 2.5F, 0.3F);
    if (aside) world.discs.Add(1.5F, 2.5F, 0.3F);
    return SavePixels({{&world, "", {}}}, options).Count(kBeam);
  };
  const auto legend = count(false, false);
  const auto one = count(true, false) - legend;
  const auto three = count(true, true) - legend;
  EXPECT_GT(one, 0);
  EXPECT_GT(three, 2 * one);
}

TEST_F(Figure, ShowsTheFieldUnlessToldNotTo) {
  const World calm = Square();
  World windy = Square();
  windy.disturbance.kind = Disturbance::Kind::kVonKarman;
  windy.disturbance.amplitude = 0.5F;  // one mode, at its crest everywhere: d = +0.5 m/s
  windy.disturbance.kx = {0};
  windy.disturbance.ky = {0};
  windy.disturbance.phase = {0};
  const Pixels with = SavePixels({{&windy, "", {}}});
  EXPECT_GT(with.Count(0xfce0b3), with.width * with.height / 3);  // the strongest colour
  const std::string without = Save({{&windy, "", {}}}, {.draw_field = false}, "a.png");
  EXPECT_TRUE(without == Save({{&calm, "", {}}}, {}, "b.png"));
}

TEST_F(Figure, CutsAPathThatStraysFar) {
  const World world = Square();
  const auto save = [&](float end_y) {
    return Save({{&world, "", {Ahead(Outcome::kTimedOut, 0, end_y)}}}, {}, "a.png");
  };
  EXPECT_TRUE(save(1e3F) == save(1e5F));
}

// The view encloses the goal: its colour is in the picture wherever the half plane begins.
TEST_F(Figure, ShowsTheBorderOfEveryHalfPlane) {
  for (const auto& [normal_x, normal_y, offset] :
       {std::array<float, 3>{0, 1, 25}, {1, 0, 12}, {-0.6F, 0.8F, 14}, {0, -1, 3}}) {
    World world = Square();
    world.goal.normal_x = normal_x;
    world.goal.normal_y = normal_y;
    world.goal.offset = offset;
    const Pixels pixels = SavePixels({{&world, "", {}}});
    // The legend's short line is about 40 x 4 pixels.
    EXPECT_GT(pixels.Count(0x1e9e4a), 400) << normal_x << ", " << normal_y;
  }
}

}  // namespace
}  // namespace fedgen
