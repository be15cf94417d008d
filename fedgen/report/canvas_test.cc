// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/canvas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <set>

#include "fedgen/report/picture_testing.h"

namespace fedgen {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::uint32_t kWhite = 0xffffff;

std::string Draw(PictureFormat format, double width, double height,
                 const std::function<void(Canvas&)>& draw, std::string_view title = "") {
  Result<Canvas> canvas = Canvas::Make(format, width, height);
  draw(*canvas);
  return *canvas->Finish(title);
}

Pixels DrawPixels(double width, double height, const std::function<void(Canvas&)>& draw) {
  return DecodePng(Draw(PictureFormat::kPng, width, height, draw));
}

TEST(PictureFormat, IsToldByTheEnding) {
  EXPECT_EQ(*PictureFormatOf("a/b.svg"), PictureFormat::kSvg);
  EXPECT_EQ(*PictureFormatOf("b.png"), PictureFormat::kPng);
  for (const char* path : {"picture.jpg", "png", "", "picture.png.gz"}) {
    const Result<PictureFormat> format = PictureFormatOf(path);
    ASSERT_FALSE(format) << path;
    EXPECT_EQ(format.error().code, ErrorCode::kUsage);
    EXPECT_THAT(format.error().message, HasSubstr(".svg or .png"));
  }
}

TEST(Canvas, IsWhitePaperWithTwoPixelsPerUnit) {
  const std::string bytes = Draw(PictureFormat::kPng, 30, 20, [](Canvas&) {});
  EXPECT_THAT(bytes, StartsWith("\x89PNG\r\n\x1a\n"));
  const Pixels pixels = DecodePng(bytes);
  EXPECT_EQ(pixels.width, 60);
  EXPECT_EQ(pixels.height, 40);
  EXPECT_EQ(pixels.Count(kWhite), 60 * 40);
}

TEST(Canvas, InksShapesWhereTheyAre) {
  const Pixels pixels = DrawPixels(40, 40, [](Canvas& canvas) {
    canvas.Box({2, 2, 10, 10}, {.fill = Rgb(0x112233)});
    canvas.Circle({30, 10}, 5, {.fill = Rgb(0x445566), .line = Rgb(0x778899), .line_width = 2});
    const std::array<Point, 3> triangle = {{{2, 20}, {18, 20}, {2, 36}}};
    canvas.Polygon(triangle, {.fill = Rgb(0xaabbcc)});
    canvas.Line({20, 30}, {38, 30}, {.line = Rgb(0x010203), .line_width = 2});
  });
  EXPECT_EQ(pixels.At(14, 14), 0x112233U);
  EXPECT_EQ(pixels.At(30, 14), kWhite);
  EXPECT_EQ(pixels.At(60, 20), 0x445566U);
  EXPECT_EQ(pixels.At(70, 20), 0x778899U);  // the outline, 5 units from the centre
  EXPECT_EQ(pixels.At(10, 50), 0xaabbccU);
  EXPECT_EQ(pixels.At(34, 70), kWhite);  // beyond the triangle's long side
  EXPECT_EQ(pixels.At(58, 60), 0x010203U);
  EXPECT_EQ(pixels.At(58, 66), kWhite);
}

TEST(Canvas, LeavesGapsBetweenDashes) {
  const Pixels pixels = DrawPixels(40, 10, [](Canvas& canvas) {
    canvas.Line({0, 5}, {40, 5}, {.line = Rgb(0), .line_width = 2, .dash = 10, .gap = 10});
  });
  EXPECT_EQ(pixels.At(10, 10), 0U);
  EXPECT_EQ(pixels.At(30, 10), kWhite);
  EXPECT_EQ(pixels.At(50, 10), 0U);
}

TEST(Canvas, ClipsUntilToldOtherwise) {
  const Ink ink = {.fill = Rgb(0)};
  const Pixels pixels = DrawPixels(30, 10, [&](Canvas& canvas) {
    canvas.BeginClip({0, 0, 10, 10});
    canvas.Box({0, 0, 20, 10}, ink);
    canvas.EndClip();
    canvas.Box({25, 0, 5, 10}, ink);
  });
  EXPECT_EQ(pixels.At(10, 10), 0U);
  EXPECT_EQ(pixels.At(30, 10), kWhite);
  EXPECT_EQ(pixels.At(55, 10), 0U);
}

TEST(Canvas, ShowsAnImageFromItsTopLeft) {
  const std::array<Colour, 4> pixels_in = {Rgb(0x100000), Rgb(0x200000), Rgb(0x300000),
                                           Rgb(0x400000)};
  const Pixels pixels =
      DrawPixels(40, 40, [&](Canvas& canvas) { canvas.Image({0, 0, 40, 40}, 2, pixels_in); });
  // Near the middles of the four quarters.
  EXPECT_NEAR(pixels.At(20, 20) >> 16, 0x10, 4);
  EXPECT_NEAR(pixels.At(60, 20) >> 16, 0x20, 4);
  EXPECT_NEAR(pixels.At(20, 60) >> 16, 0x30, 4);
  EXPECT_NEAR(pixels.At(60, 60) >> 16, 0x40, 4);
}

TEST(Canvas, BlendsAGradientFromLeftToRight) {
  const std::array<Colour, 3> colours = {Rgb(0x000000), Rgb(0xffffff), Rgb(0x00ff00)};
  const Pixels pixels =
      DrawPixels(50, 10, [&](Canvas& canvas) { canvas.Gradient({0, 0, 50, 10}, colours); });
  EXPECT_LE(pixels.At(0, 10), 0x060606U);
  EXPECT_EQ(pixels.At(49, 10) & 0xf8f8f8U, 0xf8f8f8U);
  EXPECT_EQ(pixels.At(99, 10) & 0xf8f8f8U, 0x00f800U);
}

// Columns in which anything is drawn: first and last.
std::pair<int, int> InkedColumns(const Pixels& pixels) {
  int first = pixels.width;
  int last = -1;
  for (int x = 0; x < pixels.width; ++x) {
    for (int y = 0; y < pixels.height; ++y) {
      if (pixels.At(x, y) == kWhite) continue;
      first = std::min(first, x);
      last = x;
    }
  }
  return {first, last};
}

TEST(Canvas, AlignsTextByTheShareBeforeThePoint) {
  const Font font = {10};
  const double width = 2 * TextWidth("HHHH", font);  // in pixels
  for (const double align : {0.0, 0.5, 1.0}) {
    const auto [first, last] = InkedColumns(DrawPixels(
        200, 20, [&](Canvas& canvas) { canvas.Text({100, 15}, "HHHH", font, Rgb(0), align); }));
    EXPECT_NEAR(first, 200 - align * width, 4);
    EXPECT_NEAR(last, 200 + (1 - align) * width, 4);
  }
}

TEST(Text, IsCutToItsWidthBetweenLetters) {
  const Font font = {12};
  EXPECT_EQ(FitText("short", font, 100), "short");
  const std::string cut = FitText("\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4", font, 40);
  EXPECT_LE(TextWidth(cut, font), 40);
  EXPECT_THAT(cut, StartsWith("\u00e4\u00e4"));
  EXPECT_THAT(cut, EndsWith("\u00e4\u2026"));
  EXPECT_EQ(FitText("wide", font, 0), "\u2026");
}

void DrawEverything(Canvas& canvas) {
  const std::array<Colour, 2> colours = {Rgb(0x204060), Rgb(0x608040)};
  canvas.BeginClip({0, 0, 90, 90});
  canvas.Image({0, 0, 20, 10}, 2, colours);
  canvas.Image({0, 20, 20, 10}, 1, colours);
  canvas.Gradient({0, 40, 20, 10}, colours);
  canvas.EndClip();
  canvas.Text({40, 40}, "text", {12, true}, Rgb(0), 0.5, 1.0);
  canvas.Circle({60, 60}, 10, {.fill = Rgb(0xff0000), .fill_alpha = 0.5});
}

TEST(Canvas, GivesTheSameBytesForTheSameCalls) {
  for (const PictureFormat format : {PictureFormat::kSvg, PictureFormat::kPng}) {
    const std::string first = Draw(format, 100, 100, DrawEverything, "title");
    Draw(PictureFormat::kSvg, 10, 10, [](Canvas&) {});
    EXPECT_TRUE(first == Draw(format, 100, 100, DrawEverything, "title"));
  }
}

TEST(Canvas, WritesAnSvgWithAReadableTitle) {
  const std::string svg =
      Draw(PictureFormat::kSvg, 120, 80, DrawEverything, "a < b & c\n> \u03c3 id=\"p1\"");
  EXPECT_THAT(svg, StartsWith("<?xml"));
  EXPECT_THAT(svg, HasSubstr("width=\"120px\" height=\"80px\""));
  EXPECT_THAT(svg, HasSubstr("<title>a &lt; b &amp; c &gt; \u03c3 id=\"p1\"</title>"));
  EXPECT_THAT(svg, EndsWith("</svg>\n"));
  const std::string untitled = Draw(PictureFormat::kSvg, 10, 10, DrawEverything);
  EXPECT_EQ(untitled.find("<title>"), std::string::npos);
}

// Renumbering must neither merge two parts nor lose the use of one.
TEST(Canvas, DefinesEachPartOfAnSvgOnceAndUsesOnlyThose) {
  const std::string svg = Draw(PictureFormat::kSvg, 100, 100, DrawEverything);
  std::set<std::string> defined;
  std::set<std::string> used;
  for (std::size_t at = svg.find(" id=\""); at != std::string::npos; at = svg.find(" id=\"", at)) {
    at += 5;
    EXPECT_TRUE(defined.insert(svg.substr(at, svg.find('"', at) - at)).second);
  }
  for (std::size_t at = svg.find('#'); at != std::string::npos; at = svg.find('#', at)) {
    ++at;
    used.insert(svg.substr(at, svg.find_first_of("\")", at) - at));
  }
  EXPECT_GE(used.size(), 5U);  // two images, a clip, a gradient, at least one letter
  EXPECT_TRUE(std::includes(defined.begin(), defined.end(), used.begin(), used.end()));
}

TEST(Canvas, RefusesTextThatIsNotUtf8) {
  for (const PictureFormat format : {PictureFormat::kSvg, PictureFormat::kPng}) {
    Result<Canvas> canvas = Canvas::Make(format, 100, 100);
    ASSERT_TRUE(canvas);
    canvas->Text({10, 10}, "caf\xe9", {12}, Rgb(0));
    const Result<std::string> bytes = canvas->Finish("");
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().code, ErrorCode::kUsage);
    EXPECT_THAT(bytes.error().message, HasSubstr("UTF-8"));
  }
}

TEST(Canvas, RefusesAPngTooLargeToHold) {
  for (const auto& [width, height] : {std::pair(20000.0, 10.0), std::pair(8000.0, 8000.0)}) {
    const Result<Canvas> canvas = Canvas::Make(PictureFormat::kPng, width, height);
    ASSERT_FALSE(canvas);
    EXPECT_EQ(canvas.error().code, ErrorCode::kUsage);
    EXPECT_TRUE(Canvas::Make(PictureFormat::kSvg, width, height));
  }
}

}  // namespace
}  // namespace fedgen
