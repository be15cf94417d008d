// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/legend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedgen/report/picture_testing.h"

namespace fedgen {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

constexpr std::uint32_t kRedPixel = 0xff0000;

// A red square as high as it is wide.
LegendEntry Square(const std::string& text, double width) {
  return {text, width, [width](Point left, Canvas& canvas) {
            canvas.Box({left.x, left.y - width / 2, width, width}, {.fill = Rgb(kRedPixel)});
          }};
}

// Where the entry after this one begins if it is in the same line.
double Next(const LegendEntry& entry) {
  return PlaceLegend({entry, Square("next", 10)}, 1e6)[1].left.x;
}

TEST(Legend, FillsLinesFromTheLeft) {
  const LegendEntry a = Square("first", 10);
  const LegendEntry b = Square("second", 40);
  const std::vector<PlacedEntry> legend = PlaceLegend({a, b}, Next(a) + Next(b));
  EXPECT_EQ(legend[0].left.x, 0);
  EXPECT_EQ(legend[1].left.x, Next(a));
  EXPECT_EQ(legend[1].left.y, legend[0].left.y);
  EXPECT_EQ(LegendHeight(legend), 2 * legend[0].left.y);
  // Wide enough for each but not for both.
  const std::vector<PlacedEntry> wrapped = PlaceLegend({a, b}, Next(b));
  EXPECT_EQ(wrapped[1].left.x, 0);
  EXPECT_EQ(wrapped[1].left.y, 3 * wrapped[0].left.y);
  EXPECT_EQ(wrapped[1].entry.text, "second");
  EXPECT_EQ(LegendHeight(wrapped), 2 * LegendHeight(legend));
}

TEST(Legend, CutsATextThatIsLongerThanALine) {
  const LegendEntry entry = Square("a text that is longer than a line", 10);
  const std::vector<PlacedEntry> legend = PlaceLegend({entry, Square("b", 10)}, 100);
  EXPECT_THAT(legend[0].entry.text, StartsWith("a text"));
  EXPECT_THAT(legend[0].entry.text, EndsWith("\u2026"));
  EXPECT_LE(TextWidth(legend[0].entry.text, {10.5}), 90);
  EXPECT_EQ(legend[0].left.x, 0);
  EXPECT_GT(legend[1].left.y, legend[0].left.y);
}

TEST(Legend, TakesNoPlaceWithoutEntries) { EXPECT_EQ(LegendHeight(PlaceLegend({}, 100)), 0); }

TEST(Legend, DrawsSymbolsWhereTheyWerePlaced) {
  Result<Canvas> canvas = Canvas::Make(PictureFormat::kPng, 100, 100);
  const std::vector<PlacedEntry> legend = PlaceLegend({Square("a", 6), Square("b", 6)}, 30);
  DrawLegend(legend, {20, 30}, *canvas);
  const Pixels pixels = DecodePng(*canvas->Finish(""));
  EXPECT_EQ(pixels.Count(kRedPixel), 2 * 12 * 12);  // two pixels per unit
  for (const PlacedEntry& placed : legend) {
    EXPECT_EQ(pixels.At(2 * 20 + 1, static_cast<int>(2 * (30 + placed.left.y))), kRedPixel);
  }
}

}  // namespace
}  // namespace fedgen
