// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fedgen/base/result.h"
#include "fedgen/policy/policy.h"

namespace fedgen {

// The verbs of the program, one file each. main.cc turns flags into these structs; a verb does its
// work, prints its result on stdout, and returns what went wrong, if anything.

/// fedgen evaluate: how a policy does on many worlds.
struct EvaluateCommand {
  std::string config;
  std::vector<std::string> overrides;
  std::string policy;
  std::optional<std::int64_t> worlds;  // 10000, or all of world_file
  std::string world_file;
  int threads = 0;  // 0: as many as there are cores
  std::uint64_t seed = 1;
  std::string kernel = "auto";
  bool json = false;
};
Result<void> RunEvaluate(const EvaluateCommand& command);

/// fedgen worlds generate: draws worlds into a file.
struct WorldsGenerateCommand {
  std::string config;
  std::vector<std::string> overrides;
  std::int64_t worlds = 10;
  std::uint64_t seed = 1;
  std::string output;
  bool force = false;
};
Result<void> RunWorldsGenerate(const WorldsGenerateCommand& command);

/// fedgen worlds show: describes worlds of a file and draws them, with ways through them if
/// policies are named.
struct WorldsShowCommand {
  std::string world_file;
  std::int64_t first = 0;
  std::int64_t count = 6;
  std::string picture;  // .svg or .png; nothing is drawn if empty
  std::string config;   // whose robot and lidar drive; needed with policies
  std::vector<std::string> overrides;
  std::vector<std::string> policies;
  bool force = false;
};
Result<void> RunWorldsShow(const WorldsShowCommand& command);

/// fedgen policy new: a network with random weights, as a configuration asks for.
struct PolicyNewCommand {
  std::string config;
  std::vector<std::string> overrides;
  std::uint64_t seed = 1;
  std::string output;
  bool force = false;
};
Result<void> RunPolicyNew(const PolicyNewCommand& command);

/// fedgen policy show: describes a policy file.
struct PolicyShowCommand {
  std::string policy;
  bool json = false;
};
Result<void> RunPolicyShow(const PolicyShowCommand& command);

/// fedgen policy convert: between .fgp and .json.
struct PolicyConvertCommand {
  std::string input, output;
  bool force = false;
};
Result<void> RunPolicyConvert(const PolicyConvertCommand& command);

/// A built-in policy by its name, or one from a file; checked against the robot and the sensor that
/// it will drive with.
Result<Policy> FindPolicy(const std::string& name_or_path, const LidarOptions& lidar,
                          const RobotOptions& robot);

}  // namespace fedgen
