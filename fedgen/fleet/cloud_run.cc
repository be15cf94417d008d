// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fleet/cloud_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "fedgen/fleet/secret.h"
#include "fedgen/fleet/settings.h"
#include "fedgen/learn/navigation.h"
#include "fedgen/run/experiment.h"

namespace fedgen {
namespace {

// A run is kept with the text that all share, and the seed of its race behind it.
constexpr std::string_view kSeedLine = "\n[race]\nseed = ";

}  // namespace

std::string KeptToText(const KeptSettings& kept) {
  return fmt::format("{}{}{}\n", kept.shared, kSeedLine, kept.seed);
}

std::optional<KeptSettings> KeptFromText(const std::string& text) {
  const std::size_t at = text.rfind(kSeedLine);
  if (at == std::string::npos) return std::nullopt;
  KeptSettings kept{text.substr(0, at), 0};
  const char* begin = text.data() + at + kSeedLine.size();
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(begin, end, kept.seed);
  if (error != std::errc() || stopped + 1 != end) return std::nullopt;
  return kept;
}

namespace {

// The seed of a run's race: the one it was begun with, or the one that is given, or a new one.
Result<std::uint64_t> SeedOf(const std::string& run, const std::string& shared,
                             const CloudRunSettings& settings, Store& store) {
  for (const RunHeader& known : FEDGEN_TRY(store.Runs())) {
    if (known.run != run) continue;
    const std::optional<KeptSettings> kept = KeptFromText(known.settings);
    if (!kept) {
      return Error{ErrorCode::kData,
                   fmt::format("{}: run {}: was begun by another program", settings.store, run)};
    }
    if (const auto difference = FindDifference(shared, kept->shared)) {
      return Error{ErrorCode::kMismatch,
                   fmt::format("run {}: {}, as it was begun (in {}); another name is another run",
                               run, *difference, settings.store)};
    }
    if (settings.seed && *settings.seed != kept->seed) {
      return Error{ErrorCode::kMismatch,
                   fmt::format("--seed = {}: run {} was begun with another", *settings.seed, run)};
    }
    return kept->seed;
  }
  return settings.seed ? *settings.seed : DrawSecret().bits();
}

}  // namespace

std::string RunNameOf(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

Result<ServingCloud> Serve(const CloudRunSettings& settings) {
  ServingCloud cloud;
  std::vector<std::pair<std::string, Config>> configs;
  configs.reserve(settings.runs.size());
  for (const std::string& path : settings.runs) {
    configs.emplace_back(RunNameOf(path), FEDGEN_TRY(LoadShared(path, settings.overrides)));
  }
  cloud.store = FEDGEN_TRY(OpenStore(settings.store));
  CloudServerOptions options = settings.server;
  std::vector<ServedRun> runs;
  for (const auto& [name, config] : configs) {
    if (options.shared.contains(name)) {
      return Error{ErrorCode::kUsage, fmt::format("--run: two files are called {}", name)};
    }
    const TrainingSettings& training = config.training;
    ServedSettings served;
    served.run = name;
    served.options = FederationOf(training);
    for (const Seat& seat : SeatsOf(training, Key())) served.learners.push_back(seat.id);
    served.num_parameters = ThetaOf(ShapeOf(training)).size();
    const std::string shared = SharedText(config);
    served.race_seed = FEDGEN_TRY(SeedOf(name, shared, settings, *cloud.store));
    served.text = KeptToText({shared, served.race_seed});
    runs.push_back(FEDGEN_TRY(ServedRun::Open(served, *cloud.store)));
    options.shared[name] = shared;
    cloud.runs.push_back(name);
  }
  cloud.server = FEDGEN_TRY(CloudServer::Start(options, std::move(runs)));
  return cloud;
}

}  // namespace fedgen
