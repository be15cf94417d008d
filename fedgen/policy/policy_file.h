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

// Version 2 is written. Version 1, which knows nothing about the body that a policy was made for,
// is read too.

std::string PolicyToBinary(const Mlp& mlp);
Result<Mlp> PolicyFromBinary(std::string_view bytes, const std::string& name);

std::string PolicyToJson(const Mlp& mlp);
Result<Mlp> PolicyFromJson(std::string_view text, const std::string& name);

/// The bytes of version 1, by which a certificate of version 1 names a policy. They leave out the
/// body that it was made for.
std::string PolicyToBinaryV1(const Mlp& mlp);

/// What acts when the network drives, and nothing else: the part of version 2 from the beams to the
/// parameters. What this network does not read is zero: max_range unless ranges are scaled,
/// range_offset unless they are inverse, the activation where no layer is hidden; so is -0. Two
/// policies with the same bytes decide alike wherever both may drive.
std::string NetworkBytes(const Mlp& mlp);

/// Reads either form; the first bytes tell which.
Result<Mlp> ParsePolicy(std::string_view bytes, const std::string& name);
Result<Mlp> LoadPolicy(const std::string& path);

/// Writes JSON if the path ends in .json (at most 2^22 parameters), binary otherwise. Refuses a
/// network that could not be read back.
Result<void> SavePolicy(const Mlp& mlp, const std::string& path, IfExists if_exists);

}  // namespace fedgen
