// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fedgen/base/result.h"
#include "fedgen/federation/cloud_server.h"
#include "fedgen/store/store.h"

namespace fedgen {

// The process of a Cloud: its runs, each from a file that says what all share, in one store.

struct CloudRunSettings {
  std::vector<std::string> runs;       // RUN.toml files, at least one; the stem is the run's name
  std::vector<std::string> overrides;  // of keys in all of them
  std::string store;                   // sqlite:PATH
  std::optional<std::uint64_t> seed;   // of the races; none: drawn when a run begins
  CloudServerOptions server;           // but for what its runs share
};

/// A Cloud that serves as long as it lives.
struct ServingCloud {
  std::unique_ptr<Store> store;
  std::unique_ptr<CloudServer> server;
  std::vector<std::string> runs;  // names
};

/// Begins its runs, or goes on with those that are in the store. A run's shared settings may not
/// change.
Result<ServingCloud> Serve(const CloudRunSettings& settings);

/// What the store keeps of a run's settings.
struct KeptSettings {
  std::string shared;      // what all share, as TOML
  std::uint64_t seed = 0;  // of its race
};
std::string KeptToText(const KeptSettings& kept);
/// Nothing if another program wrote it.
std::optional<KeptSettings> KeptFromText(const std::string& text);

/// The name of the run of such a file: its name without directory and .toml.
std::string RunNameOf(const std::string& path);

}  // namespace fedgen
