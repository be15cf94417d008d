// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/canvas.h"

#include <cairo-svg.h>
#include <cairo.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <new>
#include <numbers>

#include "fedgen/base/check.h"

#ifdef __SANITIZE_ADDRESS__
// Fontconfig, which finds the font for cairo, keeps a kilobyte of what it found until the process
// ends. LeakSanitizer asks the program here what it may lose, and to lose it in silence.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_options();
const char* __lsan_default_suppressions() { return "leak:libfontconfig\n"; }
const char* __lsan_default_options() { return "print_suppressions=0"; }
// NOLINTEND(bugprone-reserved-identifier)
#endif

namespace fedgen {
namespace {

constexpr double kPngScale = 2;
constexpr double kMostPngPixels = 1e8;  // 400 MB while drawing
constexpr double kMostPngSide = 32767;  // what cairo's images can hold

// Cairo's objects are counted references.
struct Release {
  void operator()(cairo_t* context) const { cairo_destroy(context); }
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
  void operator()(cairo_pattern_t* pattern) const { cairo_pattern_destroy(pattern); }
  void operator()(cairo_font_options_t* options) const { cairo_font_options_destroy(options); }
};
using Context = std::unique_ptr<cairo_t, Release>;
using Surface = std::unique_ptr<cairo_surface_t, Release>;
using Pattern = std::unique_ptr<cairo_pattern_t, Release>;
using FontOptions = std::unique_ptr<cairo_font_options_t, Release>;

// A context whose texts are as wide on every kind of surface.
Context MakeContext(cairo_surface_t* surface) {
  Context context(cairo_create(surface));
  const FontOptions options(cairo_font_options_create());
  cairo_font_options_set_hint_style(options.get(), CAIRO_HINT_STYLE_NONE);
  cairo_font_options_set_hint_metrics(options.get(), CAIRO_HINT_METRICS_OFF);
  cairo_font_options_set_antialias(options.get(), CAIRO_ANTIALIAS_GRAY);
  cairo_set_font_options(context.get(), options.get());
  cairo_set_line_join(context.get(), CAIRO_LINE_JOIN_ROUND);
  return context;
}

void SetFont(cairo_t* cr, const Font& font) {
  cairo_select_font_face(cr, "DejaVu Sans", CAIRO_FONT_SLANT_NORMAL,
                         font.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(cr, font.size);
}

double Advance(cairo_t* cr, const std::string& text) {
  cairo_text_extents_t extents{};
  cairo_text_extents(cr, text.c_str(), &extents);
  return extents.x_advance;
}

void SetColour(cairo_t* cr, const Colour& colour, double alpha = 1) {
  cairo_set_source_rgba(cr, colour.red, colour.green, colour.blue, alpha);
}

// Inks the current outline and forgets it.
void Apply(cairo_t* cr, const Ink& ink) {
  if (ink.fill) {
    SetColour(cr, *ink.fill, ink.fill_alpha);
    cairo_fill_preserve(cr);
  }
  if (ink.line) {
    SetColour(cr, *ink.line, ink.line_alpha);
    cairo_set_line_width(cr, ink.line_width);
    const double dashes[] = {ink.dash, ink.gap};
    cairo_set_dash(cr, dashes, ink.dash > 0 ? 2 : 0, 0);
    cairo_set_line_cap(cr, ink.dash > 0 ? CAIRO_LINE_CAP_BUTT : CAIRO_LINE_CAP_ROUND);
    cairo_stroke_preserve(cr);
  }
  cairo_new_path(cr);
}

void Trace(cairo_t* cr, std::span<const Point> points) {
  for (const Point& point : points) cairo_line_to(cr, point.x, point.y);
}

// Cairo hands us the bytes of a file piece by piece.
cairo_status_t Append(void* bytes, const unsigned char* piece, unsigned int length) {
  try {
    static_cast<std::string*>(bytes)->append(piece, piece + length);
    return CAIRO_STATUS_SUCCESS;
  } catch (const std::bad_alloc&) {
    return CAIRO_STATUS_NO_MEMORY;
  }
}

Result<void> CheckStatus(cairo_status_t status) {
  if (status == CAIRO_STATUS_SUCCESS) return {};
  if (status == CAIRO_STATUS_INVALID_STRING) {
    return Error{ErrorCode::kUsage, "a title or label of the picture is not UTF-8"};
  }
  return Error{ErrorCode::kIo, fmt::format("cannot draw: {}", cairo_status_to_string(status))};
}

// Cairo numbers the parts of an SVG by a counter of the process, so a second drawing would differ
// from the first. Renames every id, where it is defined (id="a") and used ("#a" and (#a)), by its
// first place in the file.
std::string RenumberIds(std::string_view svg) {
  std::string renumbered;
  std::map<std::string, std::size_t, std::less<>> number_of;
  std::size_t copied = 0;
  std::size_t mark = 0;
  while ((mark = svg.find_first_of("\"(", mark)) != std::string_view::npos) {
    const bool defines = svg.substr(0, ++mark).ends_with(" id=\"");
    const bool uses = svg.substr(mark).starts_with('#');
    if (!defines && !uses) continue;
    const std::size_t begin = mark + (uses ? 1 : 0);
    const std::size_t end = std::min(svg.find_first_of("\")", begin), svg.size());
    const std::string id(svg.substr(begin, end - begin));
    const std::size_t number = number_of.try_emplace(id, number_of.size()).first->second;
    renumbered += svg.substr(copied, begin - copied);
    renumbered += fmt::format("p{}", number);
    copied = end;
    // Behind the closing quote, so that it is not taken for an opening one.
    mark = std::min(end + 1, svg.size());
  }
  renumbered += svg.substr(copied);
  return renumbered;
}

std::string EscapeXml(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      default:
        // XML allows no control characters but white space.
        escaped += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
    }
  }
  return escaped;
}

}  // namespace

double TextWidth(const std::string& text, const Font& font) {
  const Surface nowhere(cairo_image_surface_create(CAIRO_FORMAT_A8, 1, 1));
  const Context ruler = MakeContext(nowhere.get());
  SetFont(ruler.get(), font);
  return Advance(ruler.get(), text);
}

std::string FitText(std::string text, const Font& font, double width) {
  if (TextWidth(text, font) <= width) return text;
  const std::string ellipsis = "\u2026";
  while (!text.empty() && TextWidth(text + ellipsis, font) > width) {
    // Take away one code point: its continuation bytes 10xxxxxx, then its first byte.
    while (text.size() > 1 && (static_cast<unsigned char>(text.back()) & 0xc0) == 0x80) {
      text.pop_back();
    }
    text.pop_back();
  }
  return text + ellipsis;
}

Result<PictureFormat> PictureFormatOf(const std::string& path) {
  if (path.ends_with(".svg")) return PictureFormat::kSvg;
  if (path.ends_with(".png")) return PictureFormat::kPng;
  return Error{ErrorCode::kUsage,
               fmt::format("{}: a picture's name must end in .svg or .png", path)};
}

struct Canvas::Sheet {
  PictureFormat format;
  std::string bytes;  // of the SVG, as far as cairo has written them
  Surface surface;
  Context context;
};

Canvas::Canvas(std::unique_ptr<Sheet> sheet) : sheet_(std::move(sheet)) {}
Canvas::Canvas(Canvas&&) noexcept = default;
Canvas::~Canvas() = default;

Result<Canvas> Canvas::Make(PictureFormat format, double width, double height) {
  FEDGEN_CHECK(width >= 1 && height >= 1, "a picture of {} x {}", width, height);
  auto sheet = std::make_unique<Sheet>();
  sheet->format = format;
  if (format == PictureFormat::kSvg) {
    sheet->surface.reset(cairo_svg_surface_create_for_stream(Append, &sheet->bytes, width, height));
    cairo_svg_surface_set_document_unit(sheet->surface.get(), CAIRO_SVG_UNIT_PX);
  } else {
    const double columns = std::ceil(kPngScale * width);
    const double rows = std::ceil(kPngScale * height);
    if (std::max(columns, rows) > kMostPngSide || columns * rows > kMostPngPixels) {
      return Error{
          ErrorCode::kUsage,
          fmt::format("picture of {} x {} pixels: at most {} on a side and {} in all; an .svg "
                      "may be larger",
                      columns, rows, kMostPngSide, static_cast<std::int64_t>(kMostPngPixels))};
    }
    sheet->surface.reset(cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(columns),
                                                    static_cast<int>(rows)));
    cairo_surface_set_device_scale(sheet->surface.get(), kPngScale, kPngScale);
  }
  sheet->context = MakeContext(sheet->surface.get());
  SetColour(sheet->context.get(), {1, 1, 1});
  cairo_paint(sheet->context.get());
  return Canvas(std::move(sheet));
}

void Canvas::Circle(Point centre, double radius, const Ink& ink) {
  cairo_t* const cr = sheet_->context.get();
  cairo_arc(cr, centre.x, centre.y, radius, 0, 2 * std::numbers::pi);
  cairo_close_path(cr);
  Apply(cr, ink);
}

void Canvas::Box(const Rectangle& rectangle, const Ink& ink) {
  cairo_t* const cr = sheet_->context.get();
  cairo_rectangle(cr, rectangle.left, rectangle.top, rectangle.width, rectangle.height);
  Apply(cr, ink);
}

void Canvas::Polygon(std::span<const Point> corners, const Ink& ink) {
  cairo_t* const cr = sheet_->context.get();
  Trace(cr, corners);
  cairo_close_path(cr);
  Apply(cr, ink);
}

void Canvas::Polyline(std::span<const Point> points, const Ink& ink) {
  cairo_t* const cr = sheet_->context.get();
  Trace(cr, points);
  Ink line = ink;
  line.fill.reset();
  Apply(cr, line);
}

void Canvas::Line(Point from, Point to, const Ink& ink) {
  const Point ends[] = {from, to};
  Polyline(ends, ink);
}

void Canvas::Text(Point at, const std::string& text, const Font& font, const Colour& colour,
                  double align, double angle) {
  cairo_t* const cr = sheet_->context.get();
  cairo_save(cr);
  SetFont(cr, font);
  SetColour(cr, colour);
  cairo_translate(cr, at.x, at.y);
  cairo_rotate(cr, -angle);
  cairo_move_to(cr, -align * Advance(cr, text), 0);
  cairo_show_text(cr, text.c_str());
  cairo_new_path(cr);
  cairo_restore(cr);
}

void Canvas::Image(const Rectangle& rectangle, int columns, std::span<const Colour> pixels) {
  FEDGEN_CHECK(
      columns >= 1 && !pixels.empty() && pixels.size() % static_cast<std::size_t>(columns) == 0,
      "{} pixels in {} columns", pixels.size(), columns);
  const int rows = static_cast<int>(pixels.size()) / columns;
  const Surface image(cairo_image_surface_create(CAIRO_FORMAT_RGB24, columns, rows));
  unsigned char* const bytes = cairo_image_surface_get_data(image.get());
  const int stride = cairo_image_surface_get_stride(image.get());
  const auto byte = [](double share) {
    return static_cast<std::uint32_t>(std::lround(255 * share));
  };
  for (int row = 0; bytes != nullptr && row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const Colour& colour =
          pixels[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) +
                 static_cast<std::size_t>(column)];
      // Pixels are words 0x00rrggbb in the machine's byte order.
      const std::uint32_t word =
          byte(colour.red) << 16 | byte(colour.green) << 8 | byte(colour.blue);
      std::memcpy(bytes + row * stride + 4 * column, &word, sizeof word);
    }
  }
  cairo_surface_mark_dirty(image.get());
  cairo_t* const cr = sheet_->context.get();
  cairo_save(cr);
  cairo_translate(cr, rectangle.left, rectangle.top);
  cairo_scale(cr, rectangle.width / columns, rectangle.height / rows);
  cairo_set_source_surface(cr, image.get(), 0, 0);
  cairo_paint(cr);
  cairo_restore(cr);
}

void Canvas::Gradient(const Rectangle& rectangle, std::span<const Colour> colours) {
  FEDGEN_CHECK(colours.size() >= 2, "a gradient of {} colours", colours.size());
  cairo_t* const cr = sheet_->context.get();
  const Pattern gradient(cairo_pattern_create_linear(rectangle.left, 0, rectangle.right(), 0));
  for (std::size_t stop = 0; stop < colours.size(); ++stop) {
    const Colour& colour = colours[stop];
    cairo_pattern_add_color_stop_rgb(
        gradient.get(), static_cast<double>(stop) / static_cast<double>(colours.size() - 1),
        colour.red, colour.green, colour.blue);
  }
  cairo_rectangle(cr, rectangle.left, rectangle.top, rectangle.width, rectangle.height);
  cairo_set_source(cr, gradient.get());
  cairo_fill(cr);
}

void Canvas::BeginClip(const Rectangle& rectangle) {
  cairo_t* const cr = sheet_->context.get();
  cairo_save(cr);
  cairo_rectangle(cr, rectangle.left, rectangle.top, rectangle.width, rectangle.height);
  cairo_clip(cr);
}

void Canvas::EndClip() { cairo_restore(sheet_->context.get()); }

Result<std::string> Canvas::Finish(std::string_view title) {
  cairo_surface_t* const surface = sheet_->surface.get();
  if (auto drawn = CheckStatus(cairo_status(sheet_->context.get())); !drawn) return drawn.error();
  if (sheet_->format == PictureFormat::kPng) {
    const cairo_status_t written =
        cairo_surface_write_to_png_stream(surface, Append, &sheet_->bytes);
    if (auto checked = CheckStatus(written); !checked) return checked.error();
    return std::move(sheet_->bytes);
  }
  cairo_surface_finish(surface);
  if (auto checked = CheckStatus(cairo_surface_status(surface)); !checked) return checked.error();
  std::string svg = RenumberIds(sheet_->bytes);
  const std::size_t root = svg.find("<svg ");
  FEDGEN_CHECK(root != std::string::npos, "cairo wrote no <svg>");
  if (!title.empty()) {
    svg.insert(svg.find('>', root) + 1, fmt::format("\n<title>{}</title>", EscapeXml(title)));
  }
  return svg;
}

}  // namespace fedgen
