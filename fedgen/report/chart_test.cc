// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "fedgen/base/file_testing.h"
#include "fedgen/report/picture.h"
#include "fedgen/report/picture_testing.h"

namespace fedgen {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Colours that nothing but the test draws in.
constexpr Colour kRed = Rgb(0xff0000);
constexpr Colour kGreen = Rgb(0x00ff00);
constexpr std::uint32_t kRedPixel = 0xff0000;
constexpr std::uint32_t kGreenPixel = 0x00ff00;

class ChartTest : public ::testing::Test, protected TemporaryDirectory {
 protected:
  std::string Save(const ChartFigure& figure, const std::string& name) const {
    const Result<void> saved = SaveChart(Path(name), figure, IfExists::kReplace);
    EXPECT_TRUE(saved) << (saved ? "" : saved.error().message);
    return *ReadFile(Path(name), 100'000'000);
  }

  Pixels SavePixels(const ChartFigure& figure) const {
    return DecodePng(Save(figure, "picture.png"));
  }
};

// One chart without words, x in [0, 10] and y in [0, 1].
ChartFigure Plain(std::vector<Series> series) {
  Chart chart;
  chart.x = {.low = 0, .high = 10};
  chart.y = {.low = 0, .high = 1};
  chart.series = std::move(series);
  return {.charts = {std::move(chart)}};
}

Series Line(std::vector<SeriesPoint> points) {
  return {.colour = kRed, .points = std::move(points), .line_width = 2};
}

// Smallest box around the pixels of a colour.
struct PixelBox {
  int left = 1 << 20, right = -1, top = 1 << 20, bottom = -1;
};
PixelBox Find(const Pixels& pixels, std::uint32_t colour) {
  PixelBox box;
  for (int y = 0; y < pixels.height; ++y) {
    for (int x = 0; x < pixels.width; ++x) {
      if (pixels.At(x, y) != colour) continue;
      box.left = std::min(box.left, x);
      box.right = std::max(box.right, x);
      box.top = std::min(box.top, y);
      box.bottom = std::max(box.bottom, y);
    }
  }
  return box;
}

// The colours as seen with a missing cone type (Machado, Oliveira and Fernandes 2009, severity 1).
using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;
constexpr std::array<Matrix, 4> kVisions = {{{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
                                             {{{0.152286, 1.052583, -0.204868},
                                               {0.114503, 0.786281, 0.099216},
                                               {-0.003882, -0.048116, 1.051998}}},
                                             {{{0.367322, 0.860646, -0.227968},
                                               {0.280085, 0.672501, 0.047413},
                                               {-0.011820, 0.042940, 0.968881}}},
                                             {{{1.255528, -0.076749, -0.178779},
                                               {-0.078411, 0.930809, 0.147602},
                                               {0.004733, 0.691367, 0.303900}}}}};

Vector Times(const Matrix& matrix, const Vector& vector) {
  Vector product = {};
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 3; ++column) {
      product[row] += matrix[row][column] * vector[column];
    }
  }
  return product;
}

// CIE Lab under D65.
Vector Lab(const Colour& colour, const Matrix& vision) {
  Vector linear = {colour.red, colour.green, colour.blue};
  for (double& part : linear) {
    part = part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4);
  }
  Vector seen = Times(vision, linear);
  for (double& part : seen) part = std::clamp(part, 0.0, 1.0);
  const Vector xyz = Times({{{0.4124564, 0.3575761, 0.1804375},
                             {0.2126729, 0.7151522, 0.0721750},
                             {0.0193339, 0.1191920, 0.9503041}}},
                           seen);
  const auto f = [](double t) { return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116; };
  const double x = f(xyz[0] / 0.95047);
  const double y = f(xyz[1]);
  const double z = f(xyz[2] / 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

TEST(SeriesStyles, StayApartForEveryVision) {
  std::vector<Colour> colours = {kInk, {1, 1, 1}};
  for (int number = 0; number < 8; ++number) colours.push_back(StyleOfSeries(number).colour);
  for (const Matrix& vision : kVisions) {
    for (std::size_t one = 0; one < colours.size(); ++one) {
      for (std::size_t other = 0; other < one; ++other) {
        const Vector a = Lab(colours[one], vision);
        const Vector b = Lab(colours[other], vision);
        EXPECT_GT(std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]), 24) << one << " " << other;
      }
    }
  }
}

TEST(SeriesStyles, RepeatInDashes) {
  EXPECT_EQ(StyleOfSeries(0).dash, 0);
  EXPECT_EQ(StyleOfSeries(8).colour.red, StyleOfSeries(0).colour.red);
  EXPECT_GT(StyleOfSeries(8).dash, 0);
  EXPECT_NE(StyleOfSeries(16).gap, StyleOfSeries(8).gap);
}

TEST_F(ChartTest, IsAPngAndAnSvg) {
  ChartFigure figure = Plain({Line({{0, 0}, {10, 1}})});
  figure.title = "Cost & safety";
  EXPECT_THAT(Save(figure, "a.png"), StartsWith("\x89PNG\r\n\x1a\n"));
  const std::string svg = Save(figure, "a.svg");
  EXPECT_THAT(svg, StartsWith("<?xml"));
  EXPECT_THAT(svg, HasSubstr("<title>Cost &amp; safety</title>"));
  EXPECT_THAT(svg, EndsWith("</svg>\n"));
}

TEST_F(ChartTest, GivesTheSameBytesAgain) {
  Series series = Line({{0, 0.2, 0.1, 0.3}, {4, 0.5, 0.4, 0.6}, {9, 0.9, 0.8, 1}});
  series.label = "one";
  series.spread = Spread::kBand;
  ChartFigure figure = Plain({series});
  figure.charts[0].marks = {{"stops", MarkShape::kSquare, {{4, 0.5, kGreen, "here"}}}};
  figure.charts[0].references = {{0.4, "limit"}};
  EXPECT_EQ(Save(figure, "a.svg"), Save(figure, "b.svg"));
  EXPECT_EQ(Save(figure, "a.png"), Save(figure, "b.png"));
}

// A frame of 420 x 270 units at two pixels each; a level line has the height of its number.
TEST_F(ChartTest, PutsNumbersWhereTheAxesSay) {
  const PixelBox bottom = Find(SavePixels(Plain({Line({{0, 0.25}, {10, 0.25}})})), kRedPixel);
  const PixelBox top = Find(SavePixels(Plain({Line({{2.5, 0.75}, {7.5, 0.75}})})), kRedPixel);
  EXPECT_NEAR(bottom.right - bottom.left, 840, 6);
  EXPECT_NEAR(top.right - top.left, 420, 6);
  EXPECT_NEAR(bottom.top - top.top, 270, 2);
}

TEST_F(ChartTest, SpacesLogarithmically) {
  ChartFigure figure = Plain({Line({{10, 0.5}, {100, 0.5}})});
  figure.charts[0].x = {.scale = Scale::kLog, .low = 1, .high = 1000};
  const PixelBox box = Find(SavePixels(figure), kRedPixel);
  EXPECT_NEAR(box.right - box.left, 280, 6);
}

// From 0 to 0.9 as from 0.9 to 0.99; 1 is drawn at the upper end.
TEST_F(ChartTest, SpacesByNines) {
  ChartFigure figure = Plain({Line({{0, 0.9}, {10, 0.9}})});
  figure.charts[0].y = {.scale = Scale::kNines, .low = 0, .high = 0.99};
  const PixelBox middle = Find(SavePixels(figure), kRedPixel);
  figure.charts[0].series = {Line({{0, 1}, {10, 1}})};
  const PixelBox top = Find(SavePixels(figure), kRedPixel);
  figure.charts[0].series = {Line({{0, 0}, {10, 0}})};
  const PixelBox bottom = Find(SavePixels(figure), kRedPixel);
  EXPECT_NEAR(middle.top - top.top, 270, 2);
  EXPECT_NEAR(bottom.bottom - middle.bottom, 270, 2);
}

TEST_F(ChartTest, LeavesGapsWhereNumbersAreMissing) {
  const Pixels whole = SavePixels(Plain({Line({{0, 0.5}, {4, 0.5}, {6, 0.5}, {10, 0.5}})}));
  for (const double missing : {kNan, kInfinity, -kInfinity}) {
    const Pixels gap =
        SavePixels(Plain({Line({{0, 0.5}, {4, 0.5}, {5, missing}, {6, 0.5}, {10, 0.5}})}));
    const double share =
        static_cast<double>(gap.Count(kRedPixel)) / static_cast<double>(whole.Count(kRedPixel));
    EXPECT_NEAR(share, 0.8, 0.02);
  }
  // A number between two gaps is still to be seen.
  EXPECT_GT(SavePixels(Plain({Line({{1, kNan}, {5, 0.5}, {9, kNan}})})).Count(kRedPixel), 4);
}

TEST_F(ChartTest, DrawsWithoutAnyNumber) {
  EXPECT_EQ(SavePixels(Plain({})).Count(kRedPixel), 0);
  EXPECT_EQ(SavePixels(Plain({Line({})})).Count(kRedPixel), 0);
  EXPECT_EQ(SavePixels(Plain({Line({{kNan, 1}, {1, kNan}})})).Count(kRedPixel), 0);
  // Nor do axes that have nothing to follow need one.
  for (const Scale scale : {Scale::kLinear, Scale::kLog, Scale::kNines}) {
    ChartFigure figure = {.charts = {Chart{.x = {.scale = scale}, .y = {.scale = scale}}}};
    EXPECT_GT(SavePixels(figure).width, 0);
  }
}

TEST_F(ChartTest, DrawsNumbersThatAreAllEqualOrExtreme) {
  for (const double number : {0.0, 1.0, -3e-300, 1e300, -1e300, 5e15}) {
    ChartFigure figure = {.charts = {Chart{.series = {Line({{number, number}})}}}};
    EXPECT_GT(SavePixels(figure).Count(kRedPixel), 0) << number;
  }
  ChartFigure far = {.charts = {Chart{.series = {Line({{-1e300, -1e300}, {1e300, 1e300}})}}}};
  EXPECT_GT(SavePixels(far).Count(kRedPixel), 0);
}

TEST_F(ChartTest, HoldsEachStepUntilTheNext) {
  Series series = Line({{0, 0.2}, {10, 0.8}});
  series.steps = true;
  const Pixels pixels = SavePixels(Plain({series}));
  const PixelBox box = Find(pixels, kRedPixel);
  // The lower line goes all the way, so does the rise: nothing is in the middle.
  EXPECT_EQ(pixels.At((box.left + box.right) / 2, box.bottom - 1), kRedPixel);
  EXPECT_NE(pixels.At((box.left + box.right) / 2, (box.top + box.bottom) / 2), kRedPixel);
}

TEST_F(ChartTest, KeepsExtremesOfLongSeries) {
  Series series = Line({});
  for (int index = 0; index <= 200'000; ++index) {
    series.points.push_back({index / 20'000.0, index == 77'777 ? 0.9 : 0.1});
  }
  ChartFigure figure = Plain({series});
  const PixelBox box = Find(SavePixels(figure), kRedPixel);
  EXPECT_GT(box.bottom - box.top, 400);
  EXPECT_LT(Save(figure, "long.svg").size(), 500'000U);
}

TEST_F(ChartTest, ShowsIntervals) {
  Series series = Line({{2, 0.5, 0.25, 0.75}, {8, 0.5, 0.25, 0.75}});
  series.line_width = 0;
  series.spread = Spread::kBars;
  const PixelBox bars = Find(SavePixels(Plain({series})), kRedPixel);
  EXPECT_NEAR(bars.bottom - bars.top, 270, 6);
  series.spread = Spread::kBand;
  const Pixels band = SavePixels(Plain({series}));
  // Pale red over 504 x 270 pixels, some of them grid.
  const auto pale = std::count_if(band.rgb.begin(), band.rgb.end(), [](std::uint32_t pixel) {
    return pixel >> 16 == 0xff && (pixel & 0xff) > 0xc0 && (pixel & 0xff) < 0xf0;
  });
  EXPECT_NEAR(static_cast<double>(pale), 504 * 270, 504 * 270 * 0.03);
}

TEST_F(ChartTest, DrawsDotsWhereSomethingWasMeasured) {
  Series series = Line({{2, 0.5}, {4, 0.5}, {6, 0.5, kNan, kNan, false}, {8, 0.5}});
  series.line_width = 0;
  series.dot_radius = 4;
  const std::int64_t three = SavePixels(Plain({series})).Count(kRedPixel);
  series.points[2].dot = true;
  EXPECT_EQ(3 * SavePixels(Plain({series})).Count(kRedPixel), 4 * three);
}

TEST_F(ChartTest, MarksWhatHappened) {
  for (const MarkShape shape : {MarkShape::kTriangle, MarkShape::kSquare, MarkShape::kDiamond}) {
    ChartFigure figure = Plain({Line({{0, 0.5}, {10, 0.5}})});
    figure.charts[0].marks = {{"", shape, {{5, 0.5, kGreen, "from 3"}, {5, kNan, kGreen, ""}}}};
    const Pixels pixels = SavePixels(figure);
    EXPECT_GT(pixels.Count(kGreenPixel), 40);
    const PixelBox line = Find(pixels, kRedPixel);
    const PixelBox mark = Find(pixels, kGreenPixel);
    EXPECT_NEAR((mark.left + mark.right) / 2.0, (line.left + line.right) / 2.0, 2);
  }
}

TEST_F(ChartTest, LeavesOutTextsThatWouldOverlap) {
  ChartFigure figure = Plain({Line({{0, 0.5}, {10, 0.5}})});
  std::vector<Mark> marks(200, Mark{5, 0.5, kGreen, "from 3"});
  figure.charts[0].marks = {{"", MarkShape::kTriangle, marks}};
  const std::size_t many = Save(figure, "many.svg").size();
  for (Mark& mark : marks) mark.text.clear();
  figure.charts[0].marks = {{"", MarkShape::kTriangle, marks}};
  const std::size_t none = Save(figure, "none.svg").size();
  EXPECT_LT(many - none, 20'000U);
}

TEST_F(ChartTest, NamesReferenceLinesApart) {
  ChartFigure figure = Plain({Line({{0, 0.5}, {10, 0.5}})});
  const int width = SavePixels(figure).width;
  figure.charts[0].references = {{0.98, "upper", kGreen}, {0.981, "uppermost", kGreen}};
  const Pixels pixels = SavePixels(figure);
  EXPECT_GT(pixels.width, width + 80);  // room for the names, outside the frame
  EXPECT_GT(pixels.Count(kGreenPixel), 400);
}

TEST_F(ChartTest, ListsALabelOnceBelowTheCharts) {
  ChartFigure figure = Plain({Line({{0, 0.5}, {10, 0.5}})});
  const int without = SavePixels(figure).height;
  figure.charts[0].series[0].label = "one";
  EXPECT_EQ(SavePixels(figure).height, without + 44);  // a line of 22 units
  // Copies would fill many lines.
  figure.charts[0].series.resize(100, figure.charts[0].series[0]);
  EXPECT_EQ(SavePixels(figure).height, without + 44);
}

TEST_F(ChartTest, PlacesChartsInAGrid) {
  ChartFigure figure = Plain({Line({{0, 0.5}, {10, 0.5}})});
  const Pixels one = SavePixels(figure);
  figure.charts.resize(3, figure.charts[0]);
  figure.columns = 1;
  const Pixels stacked = SavePixels(figure);
  EXPECT_EQ(stacked.width, one.width);
  EXPECT_GT(stacked.height, 2 * one.height);
  figure.columns = 3;
  const Pixels beside = SavePixels(figure);
  EXPECT_EQ(beside.height, one.height);
  EXPECT_GT(beside.width, 2 * one.width);
}

TEST_F(ChartTest, RefusesOtherEndingsAndExistingFiles) {
  const ChartFigure figure = Plain({Line({{0, 0}, {1, 1}})});
  const Result<void> pdf = SaveChart(Path("a.pdf"), figure, IfExists::kReplace);
  ASSERT_FALSE(pdf);
  EXPECT_EQ(pdf.error().code, ErrorCode::kUsage);
  Save(figure, "a.svg");
  const Result<void> again = SaveChart(Path("a.svg"), figure, IfExists::kRefuse);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kExists);
}

TEST_F(ChartTest, RefusesTextThatIsNotUtf8AndLeavesNothing) {
  ChartFigure figure = Plain({Line({{0, 0}, {1, 1}})});
  figure.title = "\xff";
  const Result<void> saved = SaveChart(Path("a.svg"), figure, IfExists::kReplace);
  ASSERT_FALSE(saved);
  EXPECT_THAT(saved.error().message, HasSubstr("not UTF-8"));
  EXPECT_THAT(Names(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace fedgen
