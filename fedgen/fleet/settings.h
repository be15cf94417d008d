// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fedgen/base/result.h"
#include "fedgen/fuse/knowledge.h"
#include "fedgen/run/config.h"

namespace fedgen {

// The configuration of a run whose learners belong to different owners, in two files:
//
//   RUN.toml    what all share: robot, sensor, policy, rounds, algorithm; the Cloud has it
//   MINE.toml   what is a learner's own: its worlds, how it measures and improves; it stays at home
//
// Together they are a configuration like any other (docs/configuration.md says whose each key is).
// A key in the wrong file is an error.

/// What a Cloud reads. Whatever is a learner's own has its default, and nobody looks at it.
Result<Config> ParseShared(std::string_view text, const std::string& name,
                           std::span<const std::string> overrides = {});
Result<Config> LoadShared(const std::string& path, std::span<const std::string> overrides = {});

/// Whether its algorithm has learners that talk to a Cloud. `name` stands for where it is set.
Result<void> CheckHasCloud(const Config& config, const std::string& name);

/// What a learner runs by: what the run shares, as the Cloud tells it, and the learner's own file.
Result<Config> ParseOwn(const std::string& shared, std::string_view text, const std::string& name,
                        LearnerId learner);
Result<Config> LoadOwn(const std::string& shared, const std::string& path, LearnerId learner);

/// Whether a learner's own file is one, as far as can be told without the run's.
Result<void> CheckOwn(const std::string& path);

/// The two files of a configuration. Read again they give what it says of this learner.
std::string SharedText(const Config& config);
std::string OwnText(const Config& config, LearnerId learner);

}  // namespace fedgen
