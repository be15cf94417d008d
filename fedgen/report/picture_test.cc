// SPDX-License-Identifier: Apache-2.0
#include "fedgen/report/picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedgen/base/file_testing.h"
#include "fedgen/report/picture_testing.h"

namespace fedgen {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(PictureFile, HoldsWhatWasDrawn) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("a.png");
  Result<PictureFile> file = PictureFile::Create(path, IfExists::kRefuse);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_THAT(directory.Names(), IsEmpty());
  ASSERT_TRUE(file->Save("a box", 30, 20, [](Canvas& canvas) {
    canvas.Box({5, 5, 10, 10}, {.fill = Rgb(0xff0000)});
  }));
  const Pixels pixels = DecodePng(*ReadFile(path, 1 << 20));
  EXPECT_EQ(pixels.width, 60);
  EXPECT_EQ(pixels.height, 40);
  EXPECT_EQ(pixels.Count(0xff0000), 400);
}

TEST(PictureFile, IsRefusedBeforeAnythingIsDrawn) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(WriteFileAtomically(directory.Path("a.svg"), "precious", IfExists::kRefuse));
  EXPECT_EQ(PictureFile::Create(directory.Path("a.svg"), IfExists::kRefuse).error().code,
            ErrorCode::kExists);
  EXPECT_EQ(PictureFile::Create(directory.Path("a.pdf"), IfExists::kReplace).error().code,
            ErrorCode::kUsage);
}

TEST(PictureFile, NamesItselfWhenItCannotBeDrawnAndKeepsWhatWasThere) {
  const TemporaryDirectory directory;
  const std::string path = directory.Path("a.png");
  ASSERT_TRUE(WriteFileAtomically(path, "precious", IfExists::kRefuse));
  const auto save = [&](double height, const std::string& text) {
    Result<PictureFile> file = PictureFile::Create(path, IfExists::kReplace);
    return file->Save("", 30, height,
                      [&](Canvas& canvas) { canvas.Text({5, 15}, text, {10}, kInk); });
  };
  EXPECT_THAT(save(20, "\xff").error().message, HasSubstr(path + ": "));
  EXPECT_THAT(save(1e6, "more than a PNG may hold").error().message, HasSubstr(path + ": "));
  EXPECT_EQ(*ReadFile(path, 100), "precious");
}

}  // namespace
}  // namespace fedgen
