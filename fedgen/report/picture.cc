// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/picture.h"

#include <fmt/format.h>

#include <utility>

namespace fedgen {

void DrawTickX(const Rectangle& frame, double x, const std::string& text, Canvas& canvas) {
  canvas.Line({x, frame.bottom()}, {x, frame.bottom() + kTickLength}, kFrameInk);
  canvas.Text({x, frame.bottom() + kTickLength + 11}, text, kTickFont, kSoftInk, 0.5);
}

void DrawTickY(const Rectangle& frame, double y, const std::string& text, Canvas& canvas) {
  canvas.Line({frame.left - kTickLength, y}, {frame.left, y}, kFrameInk);
  canvas.Text({frame.left - kTickLength - 4, y + kBaseline * kTickFont.size}, text, kTickFont,
              kSoftInk, 1);
}

PictureFile::PictureFile(std::string path, PictureFormat format, AtomicFile file)
    : path_(std::move(path)), format_(format), file_(std::move(file)) {}

Result<PictureFile> PictureFile::Create(const std::string& path, IfExists if_exists) {
  const PictureFormat format = FEDGEN_TRY(PictureFormatOf(path));
  return PictureFile(path, format, FEDGEN_TRY(AtomicFile::Create(path, if_exists)));
}

Result<void> PictureFile::Save(const std::string& title, double width, double height,
                               const std::function<void(Canvas&)>& draw) {
  const auto with_path = [&](const Error& error) {
    return Error{error.code, fmt::format("{}: {}", path_, error.message)};
  };
  Result<Canvas> canvas = Canvas::Make(format_, width, height);
  if (!canvas) return with_path(canvas.error());
  draw(*canvas);
  const Result<std::string> bytes = canvas->Finish(title);
  if (!bytes) return with_path(bytes.error());
  FEDGEN_TRY(file_.Write(*bytes));
  return file_.Commit();
}

}  // namespace fedgen
