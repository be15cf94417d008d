// SPDX-License-Identifier: Apache-2.0
#include "bench/bench_task.h"

#include <fmt/format.h>

#include "fedgen/base/check.h"
#include "fedgen/run/config.h"

namespace fedgen {
namespace {

bool IsTextNet(std::string_view net) {
  FEDGEN_CHECK(net == kBenchNets[0] || net == kBenchNets[1], "no such net: {}", net);
  return net == kBenchNets[0];
}

}  // namespace

Task BenchTask(std::string_view net) {
  const std::string path =
      fmt::format("{}/{}.toml", FEDGEN_CONFIG_DIR, IsTextNet(net) ? "default" : "paper-tables");
  const Result<Config> config = LoadConfig(path);
  FEDGEN_CHECK(config.has_value(), "{}", config.error().message);
  return config->task();
}

std::string BenchPolicyPath(std::string_view net) {
  return fmt::format("{}/{}.fgp", FEDGEN_BENCH_POLICY_DIR, net);
}

}  // namespace fedgen
