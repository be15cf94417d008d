// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "fedgen/base/random.h"
#include "fedgen/base/result.h"

namespace fedgen {

// A learner's secret: the seed that everything it draws follows from. Who knows it can redraw the
// learner's worlds, so it is drawn by the system, never leaves the machine, and lives in a file
// that only its owner can read: 16 hexadecimal digits and a newline.

Key DrawSecret();

std::string SecretToText(Key secret);
/// Refuses a file that others may read.
Result<Key> LoadSecret(const std::string& path);
/// The one in the file, or a new one that is kept there.
Result<Key> LoadOrDrawSecret(const std::string& path);

/// A seed for what a learner measures at home beside learning. It follows from the secret, but does
/// not tell it (SHA-256), since it is written into files that others may see.
std::uint64_t HomeSeed(Key secret);

}  // namespace fedgen
