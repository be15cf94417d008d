// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fedgen/base/result.h"
#include "fedgen/world/world.h"

namespace fedgen {

// World files: JSON Lines (docs/formats.md). The first line names the format and its version,
//
//   {"format": "fedgen-worlds", "version": 1}
//
// and every further line is one world. Numbers are written so that they come back bit for bit, and
// a field or a noise is stored as its key, so a written world drives exactly as the drawn one did.
// Limits: 1 GiB a file, 4 MiB a line, 1000 obstacles of each kind, 10000 starts, numbers up to 1e6.

/// What a reader accepts at most.
inline constexpr std::size_t kMaxWorldFileBytes = std::size_t{1} << 30;

/// The first line of a world file, without the newline.
std::string WorldFileHeader();

/// One world as one line, without the newline. Requires a world within the limits above.
std::string WorldToJson(const World& world);

/// Reads one line. `where` ("file:line") starts the error's message. Every number is checked:
/// finite, in range, radii > 0; at least one start; unknown fields are errors that name the nearest
/// known one. Reads no more than the world: a start inside an obstacle is LoadWorlds' concern.
Result<World> ParseWorld(std::string_view line, const std::string& where);

/// Reads a whole file. A start whose robot disc (robot_radius, m; 0 for a point) touches an
/// obstacle is an error. All worlds of a file must have the same number of starts.
Result<std::vector<World>> LoadWorlds(const std::string& path, double robot_radius);

/// The same from bytes already read; `name` stands for the file in messages.
Result<std::vector<World>> ParseWorlds(std::string_view text, const std::string& name,
                                       double robot_radius);

}  // namespace fedgen
