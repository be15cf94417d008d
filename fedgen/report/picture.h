// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "fedgen/base/file.h"
#include "fedgen/base/result.h"
#include "fedgen/report/canvas.h"

namespace fedgen {

// What charts and drawings of worlds have in common: their look, and how they become files.

inline constexpr Colour kPaper = Rgb(0xffffff);
inline constexpr Colour kInk = Rgb(0x24292e);      // titles, and what matters most
inline constexpr Colour kSoftInk = Rgb(0x545c64);  // ticks, legend
inline constexpr Colour kFrame = Rgb(0xa4abb2);

inline constexpr Font kTitleFont = {16, true};
inline constexpr Font kTickFont = {9.5};

inline constexpr double kMargin = 26;
inline constexpr double kTickLength = 4;
/// From the middle of a line of text to its baseline, in units of its size.
inline constexpr double kBaseline = 0.36;

inline const Ink kFrameInk = {.line = kFrame, .line_width = 0.8};

/// A tick below the frame at x, or left of the frame at y, and its text, which may be empty.
void DrawTickX(const Rectangle& frame, double x, const std::string& text, Canvas& canvas);
void DrawTickY(const Rectangle& frame, double y, const std::string& text, Canvas& canvas);

/// A picture on its way to a file. On failure, or without Save, nothing is left behind and what was
/// at the path is still there.
class PictureFile {
 public:
  /// The ending of `path` must be .svg or .png. Fails early if the file cannot be written, for
  /// laying out and drawing take a while.
  static Result<PictureFile> Create(const std::string& path, IfExists if_exists);

  /// Draws on paper of the given size and writes it, once. The title is for programs that read
  /// pictures aloud.
  Result<void> Save(const std::string& title, double width, double height,
                    const std::function<void(Canvas&)>& draw);

 private:
  PictureFile(std::string path, PictureFormat format, AtomicFile file);

  std::string path_;
  PictureFormat format_;
  AtomicFile file_;
};

}  // namespace fedgen
