// SPDX-License-Identifier: Apache-2.0
#include "fedgen/certify/certificate.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "fedgen/base/hash.h"
#include "fedgen/base/json-inl.h"
#include "fedgen/certify/bounds.h"

namespace fedgen {
namespace {

constexpr const char* kFormat = "fedgen-certificate";
constexpr int kVersion = 1;
constexpr std::size_t kMaxBytes = 1 << 16;
constexpr JsonLimits kLimits{.max_depth = 1, .max_values = 100};
constexpr std::array<std::string_view, 2> kMethods = {"clopper-pearson", "betting"};
constexpr std::int32_t kMaxStarts = 10'000;

nlohmann::ordered_json ToJson(const Certificate& c) {
  nlohmann::ordered_json json;
  json["format"] = kFormat;
  json["version"] = kVersion;
  json["program"] = c.program;
  json["policy"] = c.policy;
  json["robot"] = c.robot;
  json["sensor"] = c.sensor;
  json["policy_sha256"] = c.policy_sha256;
  json["task_sha256"] = c.task_sha256;
  json["worlds"] = c.worlds;
  json["starts_per_world"] = c.starts_per_world;
  json["confidence"] = c.confidence;
  json["seed"] = fmt::format("0x{:016x}", c.seed);
  json["safe"] = c.safe;
  json["collided"] = c.collided;
  json["timed_out"] = c.timed_out;
  json["mean_cost"] = c.mean_cost;
  json["outcome_hash"] = fmt::format("0x{:016x}", c.outcome_hash);
  json["safe_arrival"] = c.safe_arrival;
  json["safe_arrival_method"] = BoundMethodName(c.safe_arrival_method);
  json["expected_cost"] = c.expected_cost;
  json["expected_cost_method"] = BoundMethodName(c.expected_cost_method);
  json["t1_cost_bound"] = c.t1_cost_bound;
  json["t2_safe_arrival"] = c.t2_safe_arrival;
  return json;
}

// The readers return `value: rule`, as those of json-inl.h do.

Problem ReadText(const Json& json, std::string& text) {
  constexpr std::size_t kLongest = 500;
  if (!json.is_string()) return Describe(json) + ": must be a string";
  text = json.get_ref<const std::string&>();
  const bool plain =
      std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (plain && text.size() <= kLongest) return std::nullopt;
  return fmt::format("{}: must be at most {} printable ASCII characters", Describe(json), kLongest);
}

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return ('0' <= c && c <= '9') || ('a' <= c && c <= 'f'); });
}

Problem ReadSha256(const Json& json, std::string& hex) {
  if (json.is_string()) hex = json.get_ref<const std::string&>();
  if (json.is_string() && hex.size() == 64 && IsHex(hex)) return std::nullopt;
  return Describe(json) + ": must be 64 lower-case hexadecimal digits";
}

Problem ReadWord(const Json& json, std::uint64_t& word) {
  constexpr std::size_t kDigits = 16;
  if (json.is_string()) {
    const std::string_view text = json.get_ref<const std::string&>();
    if (text.size() == kDigits + 2 && text.starts_with("0x") && IsHex(text.substr(2))) {
      std::from_chars(text.data() + 2, text.data() + text.size(), word, 16);
      return std::nullopt;
    }
  }
  return Describe(json) + ": must be 0x and 16 lower-case hexadecimal digits";
}

Problem ReadUnit(const Json& json, double& value) {
  if (json.is_number()) value = json.get<double>();
  if (json.is_number() && value >= 0 && value <= 1) return std::nullopt;
  return Describe(json) + ": must be a number in [0, 1]";
}

Problem ReadConfidence(const Json& json, double& value) {
  if (json.is_number()) value = json.get<double>();
  if (json.is_number() && IsConfidence(value)) return std::nullopt;
  return fmt::format("{}: {}", Describe(json), kConfidenceRule);
}

Problem ReadMethod(const Json& json, BoundMethod& method) {
  return ReadEnum(json, kMethods, method);
}

Problem ReadCertificate(std::string_view text, Certificate& c) {
  if (text.size() > kMaxBytes) {
    return fmt::format("{} bytes: a certificate has at most {}", text.size(), kMaxBytes);
  }
  Json json;
  if (Problem problem = ParseJson(text, kLimits, json)) return problem;
  if (Problem problem = CheckFormat(json, kFormat, kVersion)) return problem;
  std::vector<std::string> fields;
  const nlohmann::ordered_json example = ToJson(Certificate());
  for (const auto& [name, value] : example.items()) fields.push_back(name);
  if (Problem problem = CheckFields(json, "", fields)) return problem;

  // Reads one field and puts its name before what is wrong with it.
  Problem first;
  const auto read = [&](const char* name, const auto& reader, auto&... rest) {
    if (first) return;
    if (const Problem problem = reader(*FindField(json, name), rest...)) {
      first = fmt::format("{} = {}", name, *problem);
    }
  };
  read("program", ReadText, c.program);
  read("policy", ReadText, c.policy);
  read("robot", ReadText, c.robot);
  read("sensor", ReadText, c.sensor);
  read("policy_sha256", ReadSha256, c.policy_sha256);
  read("task_sha256", ReadSha256, c.task_sha256);
  read("worlds",
       [&](const Json& value) { return ReadInt(value, 1, kMaxCertificateWorlds, c.worlds); });
  read("starts_per_world",
       [&](const Json& value) { return ReadInt(value, 1, kMaxStarts, c.starts_per_world); });
  const auto read_episodes = [&](const Json& value, std::int64_t& count) {
    return ReadInt(value, 0, c.worlds * c.starts_per_world, count);
  };
  read("confidence", ReadConfidence, c.confidence);
  read("seed", ReadWord, c.seed);
  read("safe", read_episodes, c.safe);
  read("collided", read_episodes, c.collided);
  read("timed_out", read_episodes, c.timed_out);
  read("mean_cost", ReadUnit, c.mean_cost);
  read("outcome_hash", ReadWord, c.outcome_hash);
  read("safe_arrival", ReadUnit, c.safe_arrival);
  read("safe_arrival_method", ReadMethod, c.safe_arrival_method);
  read("expected_cost", ReadUnit, c.expected_cost);
  read("expected_cost_method", ReadMethod, c.expected_cost_method);
  read("t1_cost_bound", ReadUnit, c.t1_cost_bound);
  read("t2_safe_arrival", ReadUnit, c.t2_safe_arrival);
  return first;
}

}  // namespace

std::string_view BoundMethodName(BoundMethod method) {
  return kMethods[static_cast<std::size_t>(method)];
}

std::uint64_t CertificationSeed(const Certificate& c) {
  return Sha256Word(
      fmt::format("fedgen-certification 1\npolicy_sha256={}\ntask_sha256={}\nworlds={}\n"
                  "confidence={}\n",
                  c.policy_sha256, c.task_sha256, c.worlds, c.confidence));
}

void ComputeBounds(std::span<const double> costs, std::span<const double> safe_shares,
                   Certificate& c) {
  FEDGEN_CHECK(costs.size() == static_cast<std::size_t>(c.worlds), "{} costs of {} worlds",
               costs.size(), c.worlds);
  const double gamma = 1 - c.confidence;
  const double delta = gamma / 2;
  if (c.starts_per_world == 1) {
    c.safe_arrival_method = BoundMethod::kClopperPearson;
    c.safe_arrival = SuccessLowerBound(c.safe, c.worlds, delta);
  } else {
    FEDGEN_CHECK(safe_shares.size() == costs.size(), "{} shares of {} worlds", safe_shares.size(),
                 costs.size());
    std::vector<double> failed_shares(safe_shares.begin(), safe_shares.end());
    for (double& share : failed_shares) share = 1 - share;
    c.safe_arrival_method = BoundMethod::kBetting;
    c.safe_arrival = 1 - BettingUpperBound(failed_shares, delta);
  }
  c.expected_cost_method = BoundMethod::kBetting;
  c.expected_cost = BettingUpperBound(costs, delta);
  const double bias = LearnerBias(c.worlds, gamma);
  c.t1_cost_bound = CostBoundT1(c.mean_cost, bias);
  c.t2_safe_arrival = SafeArrivalT2(c.mean_cost, bias, gamma);
}

std::optional<CertificateDifference> FindDifference(const Certificate& stated,
                                                    const Certificate& recomputed) {
  const nlohmann::ordered_json a = ToJson(stated);
  const nlohmann::ordered_json b = ToJson(recomputed);
  for (const auto& [field, value] : a.items()) {
    if (field == "program") continue;
    std::string text = value.dump();
    std::string other = b[field].dump();
    if (text != other) return CertificateDifference{field, std::move(text), std::move(other)};
  }
  return std::nullopt;
}

std::string CertificateToJson(const Certificate& certificate) {
  return ToJson(certificate).dump(2) + "\n";
}

Result<Certificate> ParseCertificate(std::string_view text, const std::string& name) {
  Certificate certificate;
  if (const Problem problem = ReadCertificate(text, certificate)) {
    return Error{ErrorCode::kData, fmt::format("{}: {}", name, *problem)};
  }
  return certificate;
}

Result<Certificate> LoadCertificate(const std::string& path) {
  const Result<std::string> text = ReadFile(path, kMaxBytes);
  if (!text) return text.error();
  return ParseCertificate(*text, path);
}

}  // namespace fedgen
