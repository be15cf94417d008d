// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "fedgen/base/parallel.h"
#include "fedgen/cli/commands.h"

// What the files that turn flags into commands share (main.cc, federation_flags.cc). CLI11 is
// included here only, since it is slow to compile.

namespace fedgen {

// Checks of a flag's value. Each returns "= value: rule", or nothing if the value is good. CLI11
// puts the flag and a colon before that text; Problem() takes the colon away.

template <typename Int>
bool IsInteger(const std::string& text, Int low, Int high) {
  Int value = 0;
  const char* end = text.data() + text.size();
  const auto [parsed_to, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && parsed_to == end && value >= low && value <= high;
}

inline std::string Refusal(const std::string& text, const std::string& rule) {
  return fmt::format("= {}: must be {}", text.substr(0, 60), rule);
}

// CLI11 would read -1 and anything too large as 2^64 - 1.
inline std::string CheckSeed(const std::string& text) {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();
  if (IsInteger<std::uint64_t>(text, 0, kLargest)) return "";
  return Refusal(text, "an integer in 0..2^64 - 1");
}

inline std::function<std::string(const std::string&)> InRange(std::int64_t low, std::int64_t high) {
  return [=](const std::string& text) {
    if (IsInteger(text, low, high)) return std::string();
    return Refusal(text, fmt::format("an integer in {}..{}", low, high));
  };
}

// CLI11 would read 010 as 8, which is another learner.
inline std::string CheckNoLeadingZero(const std::string& text) {
  return text.starts_with('0') ? Refusal(text, "without leading zeros") : "";
}

inline std::string CheckAlgorithm(const std::string& text) {
  if (std::ranges::find(kWords<Algorithm>, text) != kWords<Algorithm>.end()) return "";
  return Refusal(text, fmt::format("one of {}", fmt::join(kWords<Algorithm>, ", ")));
}

inline std::function<std::string(const std::string&)> Seconds(double low, double high) {
  return [=](const std::string& text) {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [parsed_to, error] = std::from_chars(text.data(), end, value);
    const bool sound = error == std::errc() && parsed_to == end && value >= low && value <= high;
    return sound ? std::string() : Refusal(text, fmt::format("seconds in {}..{}", low, high));
  };
}

// host:port. gRPC would take 99999 for 34463, and no port at all for some.
inline std::function<std::string(const std::string&)> Address(int least_port) {
  return [=](const std::string& text) {
    const std::size_t colon = text.rfind(':');
    const bool sound = colon != std::string::npos && colon > 0 &&
                       IsInteger(text.substr(colon + 1), least_port, 65535);
    return sound ? std::string()
                 : Refusal(text, fmt::format("host:port, the port in {}..65535", least_port));
  };
}

// An empty name is a mistake, such as a shell variable that was never set.
inline std::string CheckName(const std::string& text) {
  return text.empty() ? "must not be empty" : "";
}

// What the verb on the command line will do, once all flags are read.
using Work = std::function<Result<void>()>;

template <typename Command>
struct Verb {
  CLI::App* app;
  std::shared_ptr<Command> command;  // lives as long as the callbacks of `app`
};

template <typename Command>
Verb<Command> AddVerb(CLI::App& parent, const char* name, const char* help,
                      Result<void> (*run)(const Command&), Work& work) {
  const auto command = std::make_shared<Command>();
  CLI::App* const verb = parent.add_subcommand(name, help);
  verb->callback([=, &work] { work = [=] { return run(*command); }; });
  return {verb, command};
}

// A file, a directory or a name.
template <typename Text>
CLI::Option* AddName(CLI::App* verb, const char* flags, Text& value, const char* help,
                     const char* type = "FILE") {
  return verb->add_option(flags, value, help)->check(CheckName)->type_name(type);
}

template <typename Int>
CLI::Option* AddInteger(CLI::App* verb, const char* flags, Int& value, const char* help,
                        std::int64_t low, std::int64_t high, const char* type = "N") {
  return verb->add_option(flags, value, help)->check(InRange(low, high))->type_name(type);
}

constexpr std::int64_t kMostWorlds = 1'000'000'000'000;

template <typename Command>
CLI::Option* AddConfig(CLI::App* verb, Command& command) {
  CLI::Option* const config =
      AddName(verb, "-c,--config", command.config, "experiment, a TOML file (see configs/)");
  verb->add_option("--set", command.overrides, "overrides a key of the configuration; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  return config;
}

template <typename Seed>
void AddSeed(CLI::App* verb, Seed& seed, const char* help) {
  verb->add_option("-s,--seed", seed, help)->check(CheckSeed)->type_name("S");
}

inline void AddAnyway(CLI::App* verb, bool& anyway) {
  verb->add_flag("--anyway", anyway,
                 "drive though the policy was made for another sensor, robot or time step");
}

template <typename Command>
void AddPolicy(CLI::App* verb, Command& command) {
  AddName(verb, "-p,--policy", command.policy, "straight, gap-follower, or a policy file",
          "NAME|FILE")
      ->required();
  AddAnyway(verb, command.anyway);
}

inline void AddThreads(CLI::App* verb, int& threads) {
  AddInteger(
      verb, "-t,--threads", threads,
      "threads [FEDGEN_NUM_THREADS, or one per core]; the result is the same to the last bit", 1,
      kMaxThreads, "T");
}

inline void AddKernel(CLI::App* verb, std::string& kernel) {
  verb->add_option("--kernel", kernel,
                   "auto, simd or scalar; the result is the same to the last bit")
      ->type_name("K");
}

inline void AddForce(CLI::App* verb, bool& force) {
  verb->add_flag("--force", force, "replace an existing file");
}

// A verb that only groups others.
inline CLI::App& AddGroup(CLI::App& app, const char* name, const char* help) {
  CLI::App* const group = app.add_subcommand(name, help);
  group->require_subcommand(1);
  return *group;
}

/// The verbs of a federation: pki, cloud, learner, up.
void AddFederationVerbs(CLI::App& app, Work& work);

}  // namespace fedgen
