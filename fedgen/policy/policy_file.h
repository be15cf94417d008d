// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "fedgen/base/file.h"
#include "fedgen/base/result.h"
#include "fedgen/policy/mlp.h"

namespace fedgen {

// A network as a file, in two forms that hold the same (docs/formats.md): binary `.fgp`, little
// endian with a checksum, and JSON for people. Both come back bit for bit. Whatever the bytes,
// reading ends in a network for which FindProblem() is empty, or in one line that says what is
// wrong.

std::string PolicyToBinary(const Mlp& mlp);
Result<Mlp> PolicyFromBinary(std::string_view bytes, const std::string& name);

std::string PolicyToJson(const Mlp& mlp);
Result<Mlp> PolicyFromJson(std::string_view text, const std::string& name);

/// Reads either form; the first bytes tell which.
Result<Mlp> ParsePolicy(std::string_view bytes, const std::string& name);
Result<Mlp> LoadPolicy(const std::string& path);

/// Writes JSON if the path ends in .json (at most 2^22 parameters), binary otherwise. Refuses a
/// network that could not be read back.
Result<void> SavePolicy(const Mlp& mlp, const std::string& path, IfExists if_exists);

}  // namespace fedgen
