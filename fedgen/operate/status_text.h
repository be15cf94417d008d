// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "fedgen/federation/status.h"

namespace fedgen {

/// What `fedgen cloud status` prints: a table for people. Nothing that the Cloud sends can move a
/// cursor.
std::string StatusText(const CloudStatus& status);

/// The same as one JSON document, for programs.
std::string StatusJson(const CloudStatus& status);

}  // namespace fedgen
