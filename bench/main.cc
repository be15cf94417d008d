// SPDX-License-Identifier: Apache-2.0

// fedgen-bench: end-to-end throughput against peers.
//
//   fedgen-bench rollout [--json] [--save STEM] [--worlds N] [--seconds S]
//   fedgen-bench training [--json] [--seconds S]
//   fedgen-bench learning [--json] [--seconds S]
//   fedgen-bench cloud [--quick] [--part all|load|learners|state] [--directory DIR]

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "bench/cloud_bench.h"
#include "bench/learning_bench.h"
#include "bench/rollout_bench.h"
#include "bench/training_bench.h"
#include "fedgen/base/file.h"

namespace fedgen {
namespace {

Result<void> RunRollout(const RolloutBenchOptions& options, bool as_json, const std::string& stem) {
  const auto rows = RunRolloutBench(options);
  if (!rows) return rows.error();
  const std::string json = RolloutBenchToJson(*rows);
  const std::string table = RolloutBenchToTable(*rows);
  fmt::print("{}", as_json ? json : table);
  if (stem.empty()) return {};
  if (auto written = WriteFileAtomically(stem + ".json", json, IfExists::kReplace); !written) {
    return written;
  }
  return WriteFileAtomically(stem + ".txt", table, IfExists::kReplace);
}

Result<void> RunTraining(double seconds, bool as_json) {
  const auto row = RunTrainingBench(seconds);
  if (!row) return row.error();
  fmt::print("{}\n", as_json ? TrainingBenchToJson(*row) : TrainingBenchToLine(*row));
  return {};
}

Result<void> RunLearning(double seconds, bool as_json) {
  const auto rows = RunLearningBench(seconds);
  if (!rows) return rows.error();
  fmt::print("{}", as_json ? LearningBenchToJson(*rows) : LearningBenchToTable(*rows));
  return {};
}

}  // namespace
}  // namespace fedgen

int main(int argc, char** argv) {
  CLI::App app("How fast FedGen is, against peers.", "fedgen-bench");
  app.require_subcommand(1);
  fedgen::RolloutBenchOptions options;
  bool json = false;
  std::string stem;
  CLI::App* rollout = app.add_subcommand("rollout", "Whole episodes: steps per second");
  rollout->add_flag("--json", json, "Print one JSON object instead of a table");
  rollout->add_option("--save", stem, "Also write STEM.json and STEM.txt, replacing them");
  rollout->add_option("--worlds", options.num_worlds, "Worlds to drive through")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  rollout->add_option("--seconds", options.seconds, "Time for each contestant and network")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  double training_seconds = 4;
  CLI::App* training =
      app.add_subcommand("training", "Measuring a gradient, against driving the same policy");
  training->add_flag("--json", json, "Print one JSON object instead of a line");
  training->add_option("--seconds", training_seconds, "Time for each contestant")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  double learning_seconds = 1;
  CLI::App* learning = app.add_subcommand(
      "learning", "Backpropagation through many samples, against its products alone");
  learning->add_flag("--json", json, "Print one JSON object instead of a table");
  learning->add_option("--seconds", learning_seconds, "Time for each contestant and network")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  fedgen::CloudBenchOptions cloud_options;
  CLI::App* cloud = app.add_subcommand("cloud", "Requests that a Cloud sustains, and its memory");
  cloud->add_flag("--quick", cloud_options.quick, "Fewer of everything");
  cloud->add_option("--runs", cloud_options.runs, "Runs among which the learners are divided")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  cloud->add_option("--part", cloud_options.part, "all, load, learners or state")
      ->check(CLI::IsMember({"all", "load", "learners", "state"}))
      ->capture_default_str();
  cloud->add_option("--directory", cloud_options.directory, "Where its store is made for a while")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const auto done = *cloud      ? fedgen::RunCloudBench(cloud_options)
                    : *training ? fedgen::RunTraining(training_seconds, json)
                    : *learning ? fedgen::RunLearning(learning_seconds, json)
                                : fedgen::RunRollout(options, json, stem);
  if (!done) {
    fmt::print(stderr, "fedgen-bench: {}\n", done.error().message);
    return 1;
  }
  return 0;
}
