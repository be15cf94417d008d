// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/picture.h"

#include <fmt/format.h>

#include <utility>

namespace fedgen {

PictureFile::PictureFile(std::string path, PictureFormat format, AtomicFile file)
    : path_(std::move(path)), format_(format), file_(std::move(file)) {}

Result<PictureFile> PictureFile::Create(const std::string& path, IfExists if_exists) {
  const Result<PictureFormat> format = PictureFormatOf(path);
  if (!format) return format.error();
  Result<AtomicFile> file = AtomicFile::Create(path, if_exists);
  if (!file) return file.error();
  return PictureFile(path, *format, *std::move(file));
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
  if (Result<void> written = file_.Write(*bytes); !written) return written;
  return file_.Commit();
}

}  // namespace fedgen
