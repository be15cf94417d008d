// SPDX-License-Identifier: Apache-2.0

// fedgen-bench: end-to-end throughput against peers.
//
//   fedgen-bench rollout [--json] [--worlds N] [--seconds S]

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "bench/rollout_bench.h"

int main(int argc, char** argv) {
  CLI::App app("How fast FedGen is, against peers.", "fedgen-bench");
  app.require_subcommand(1);
  fedgen::RolloutBenchOptions options;
  bool json = false;
  CLI::App* rollout = app.add_subcommand("rollout", "Whole episodes: steps per second");
  rollout->add_flag("--json", json, "Print one JSON object instead of a table");
  rollout->add_option("--worlds", options.num_worlds, "Worlds to drive through")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  rollout->add_option("--seconds", options.seconds, "Time for each contestant and network")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const auto rows = fedgen::RunRolloutBench(options);
  if (!rows) {
    fmt::print(stderr, "fedgen-bench: {}\n", rows.error().message);
    return 1;
  }
  fmt::print("{}", json ? fedgen::RolloutBenchToJson(*rows) : fedgen::RolloutBenchToTable(*rows));
  return 0;
}
