// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fedgen/base/result.h"

namespace fedgen {

// A sheet of white paper to draw on, which becomes an SVG or a PNG file: the same strokes either
// way.
//
// Coordinates and sizes are in CSS pixels, x to the right and y down from the top left corner. The
// PNG has two image pixels per unit, so that it is sharp in print and on dense screens. Text is set
// in DejaVu Sans and drawn as outlines: the picture needs no fonts where it is looked at.
//
// The same calls give the same bytes, on one system with one set of fonts.

struct Colour {
  double red = 0, green = 0, blue = 0;  // in [0, 1], sRGB
};

/// The colour written 0xrrggbb.
constexpr Colour Rgb(int hex) {
  return {(hex >> 16) / 255.0, (hex >> 8 & 0xff) / 255.0, (hex & 0xff) / 255.0};
}

struct Point {
  double x = 0, y = 0;
};

struct Rectangle {
  double left = 0, top = 0, width = 0, height = 0;
  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

/// How a shape is inked: filled, outlined, or both.
struct Ink {
  std::optional<Colour> fill = std::nullopt;
  double fill_alpha = 1;
  std::optional<Colour> line = std::nullopt;
  double line_width = 1;
  double line_alpha = 1;
  double dash = 0;  // length of dashes; 0 for a solid line
  double gap = 0;   // between dashes
};

/// The look of one of several lines.
struct LineStyle {
  Colour colour = {};
  double dash = 0, gap = 0;  // as in Ink
};

struct Font {
  double size = 10;
  bool bold = false;
};

/// Width of a text.
double TextWidth(const std::string& text, const Font& font);

/// The text, or as much of its beginning as fits into `width` with an ellipsis behind it.
std::string FitText(std::string text, const Font& font, double width);

enum class PictureFormat { kSvg, kPng };

/// By the ending of the path: .svg or .png. Any other is a usage error that names the two.
Result<PictureFormat> PictureFormatOf(const std::string& path);

class Canvas {
 public:
  /// Requires width and height >= 1. Fails if a PNG would be larger than we are willing to hold in
  /// memory (1e8 pixels, or 32767 on a side).
  static Result<Canvas> Make(PictureFormat format, double width, double height);
  Canvas(Canvas&&) noexcept;
  ~Canvas();

  void Circle(Point centre, double radius, const Ink& ink);
  void Box(const Rectangle& rectangle, const Ink& ink);
  void Polygon(std::span<const Point> corners, const Ink& ink);  // closed
  void Polyline(std::span<const Point> points, const Ink& ink);  // open; only the line is inked
  void Line(Point from, Point to, const Ink& ink);

  /// Text on a baseline through `at`, turned counter-clockwise by `angle` (rad). `align` is the
  /// share of the text before `at`: 0 if it begins there, 0.5 if it is centred, 1 if it ends there.
  void Text(Point at, const std::string& text, const Font& font, const Colour& colour,
            double align = 0, double angle = 0);

  /// A smooth picture: pixel (column, row) of pixels[row * columns + column], from the top left,
  /// stretched over the rectangle. Half of a border pixel's width fades into what is below.
  void Image(const Rectangle& rectangle, int columns, std::span<const Colour> pixels);

  /// Colours from left to right, evenly spaced, blending into each other.
  void Gradient(const Rectangle& rectangle, std::span<const Colour> colours);

  /// Nothing outside the rectangle is drawn until EndClip().
  void BeginClip(const Rectangle& rectangle);
  void EndClip();

  /// The bytes of the file; nothing can be drawn after this. A title goes into the SVG for programs
  /// that read pictures aloud; it is not drawn. Fails if a text was not UTF-8.
  Result<std::string> Finish(std::string_view title);

 private:
  struct Sheet;
  explicit Canvas(std::unique_ptr<Sheet> sheet);
  std::unique_ptr<Sheet> sheet_;
};

}  // namespace fedgen
