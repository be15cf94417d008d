// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fedgen/base/check.h"
#include "fedgen/world/world_file.h"
#include "fuzz/one_line.h"

// Any bytes are a world file or one line that says why not. A file that is read, written and read
// again is the same file, and its walls and fields are the same numbers.

namespace fedgen {
namespace {

std::string Write(const std::vector<World>& worlds) {
  std::string text = WorldFileHeader();
  for (const World& world : worlds) text += "\n" + WorldToJson(world);
  return text;
}

void Check(std::string_view text) {
  const Result<std::vector<World>> worlds = ParseWorlds(text, "fuzz", 0);
  if (!worlds) {
    FEDGEN_CHECK(IsOneLine(worlds.error().message), "{}", worlds.error().message);
    return;
  }
  const std::string written = Write(*worlds);
  const Result<std::vector<World>> again = ParseWorlds(written, "written", 0);
  FEDGEN_CHECK(again.has_value(), "{}", again.error().message);
  FEDGEN_CHECK(Write(*again) == written, "{}", written);
  for (std::size_t index = 0; index < worlds->size(); ++index) {
    const World& a = (*worlds)[index];
    const World& b = (*again)[index];
    FEDGEN_CHECK(a.walls.dx == b.walls.dx && a.walls.dy == b.walls.dy, "{}", written);
    FEDGEN_CHECK(a.box_edges.dx == b.box_edges.dx && a.box_edges.dy == b.box_edges.dy, "{}",
                 written);
    FEDGEN_CHECK(a.boxes == b.boxes && a.starts == b.starts && a.goal == b.goal, "{}", written);
    FEDGEN_CHECK(a.disturbance.kx == b.disturbance.kx && a.disturbance.ky == b.disturbance.ky, "{}",
                 written);
  }
}

}  // namespace
}  // namespace fedgen

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fedgen::Check({reinterpret_cast<const char*>(data), size});
  return 0;
}
