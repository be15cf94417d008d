// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "fedgen/base/result.h"

namespace fedgen {

// How a learner finds out what it takes part in, before it says anything else: it names the run and
// its own version, and hears what all participants share. One that has been there before, or whose
// owner has agreed on something, says what it expects, and is refused if that differs.

/// What a learner says first.
struct Entry {
  std::string run;       // empty: the only one that is served
  std::string version;   // of its program
  std::string settings;  // what it expects to share, as TOML; empty: whatever the Cloud says
};

/// What it hears.
struct Entered {
  std::string run;
  std::string settings;
};

/// What the runs of a Cloud share, by name.
using SharedSettings = std::map<std::string, std::string>;

/// Lets a learner in, or says what differs.
Result<Entered> Enter(const SharedSettings& served, const Entry& entry);

/// The first line in which two configurations differ, as the program itself writes them:
/// "federation.rounds = 300: must be 200"; nothing if they are equal.
std::optional<std::string> FindDifference(const std::string& has, const std::string& wanted);

}  // namespace fedgen
