// SPDX-License-Identifier: Apache-2.0

// The TOML reader: whatever the text, it ends in a configuration whose worlds can be drawn, or in
// one line that says what is wrong.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fedgen/run/config.h"
#include "fuzz/one_line.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const fedgen::Result<fedgen::Config> config = fedgen::ParseConfig(text, "c.toml");
  if (!config) {
    FEDGEN_CHECK(fedgen::IsOneLine(config.error().message), "{}", config.error().message);
    return 0;
  }
  // Small enough to draw in no time: then the world must be sound.
  const fedgen::WorldDistribution& world = config->task().world;
  if (world.start.per_world <= 10 && world.random_discs.count.high <= 50 &&
      world.random_boxes.count.high <= 10 && world.disturbance.modes <= 64) {
    fedgen::World drawn;
    fedgen::DrawWorld(world, config->task().robot.radius, fedgen::Key(1), fedgen::Kernel::kScalar,
                      drawn);
    const double clearance = fedgen::Clearance(drawn, drawn.starts[0].x, drawn.starts[0].y);
    FEDGEN_CHECK(!std::isnan(clearance), "clearance {}", clearance);
    for (const float k : drawn.disturbance.kx) FEDGEN_CHECK(std::isfinite(k), "wave number {}", k);
  }
  return 0;
}
