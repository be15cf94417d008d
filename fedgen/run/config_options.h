// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "fedgen/base/option.h"
#include "fedgen/run/experiment.h"
#include "fedgen/run/race.h"

namespace fedgen {

// The options of a run that no room to the left describes: a learner's, and what joins learners.

struct Config;

/// A learner's settings, as [learner] and each entry of [[learners]] have them.
void Describe(OptionVisitor& visitor, LearnerSettings& settings);

/// What only an entry of [[learners]] has: how the learner begins.
void DescribeBeginning(OptionVisitor& visitor, LearnerSettings& settings, std::string& policy);

/// Everything but [[learners]].
void Describe(OptionVisitor& visitor, Config& config);

}  // namespace fedgen
