// SPDX-License-Identifier: Apache-2.0
#include "fedgen/certify/certificate.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "fedgen/base/hash.h"
#include "fedgen/base/json-inl.h"
#include "fedgen/certify/bounds.h"
#include "fedgen/certify/ladder.h"

namespace fedgen {
namespace {

constexpr const char* kFormat = "fedgen-certificate";
constexpr int kVersion = 2;
constexpr std::size_t kMaxBytes = 1 << 16;
constexpr JsonLimits kLimits{.max_depth = 2, .max_values = 100};
constexpr std::array<std::string_view, 2> kMethods = {"clopper-pearson", "betting"};
constexpr std::int32_t kMaxStarts = 10'000;

nlohmann::ordered_json ToJson(const std::optional<Promise>& choice) {
  if (!choice) return nullptr;
  return {{"confidence", choice->confidence},
          {"safe_arrival", choice->safe_arrival},
          {"expected_cost", choice->expected_cost}};
}

nlohmann::ordered_json ToJson(const Certificate& c) {
  const bool old = c.version == 1;
  nlohmann::ordered_json json;
  json["format"] = kFormat;
  json["version"] = c.version;
  json["program"] = c.program;
  json["policy"] = c.policy;
  json["robot"] = c.robot;
  json["sensor"] = c.sensor;
  json["policy_sha256"] = c.policy_sha256;
  json["task_sha256"] = c.task_sha256;
  if (!old) {
    if (c.challenge_sha256.empty()) {
      json["challenge_sha256"] = nullptr;
    } else {
      json["challenge_sha256"] = c.challenge_sha256;
    }
  }
  json["worlds"] = c.worlds;
  json["starts_per_world"] = c.starts_per_world;
  if (old) json["confidence"] = c.confidence;
  json["seed"] = fmt::format("0x{:016x}", c.seed);
  json["safe"] = c.safe;
  json["collided"] = c.collided;
  json["timed_out"] = c.timed_out;
  json["mean_cost"] = c.mean_cost;
  json["outcome_hash"] = fmt::format("0x{:016x}", c.outcome_hash);
  if (!old) {
    json["confidence"] = c.confidence;
    json["risk_share"] = c.risk_share;
  }
  json["safe_arrival"] = c.safe_arrival;
  json["safe_arrival_method"] = BoundMethodName(c.safe_arrival_method);
  json["expected_cost"] = c.expected_cost;
  json["expected_cost_method"] = BoundMethodName(c.expected_cost_method);
  json["t1_cost_bound"] = c.t1_cost_bound;
  json["t2_safe_arrival"] = c.t2_safe_arrival;
  if (!old) {
    json["makers_choice"] = ToJson(c.makers_choice);
    json["note"] = kCertificateNote;
  }
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

Problem ReadFixedConfidence(const Json& json, double& value) {
  if (json.is_number()) value = json.get<double>();
  if (json.is_number() && value == kCertificateConfidence) return std::nullopt;
  return fmt::format("{}: must be {}, another one is makers_choice", Describe(json),
                     kCertificateConfidence);
}

Problem ReadRung(const Json& json, std::int64_t& worlds) {
  if (Problem problem = ReadInt(json, 1, kMaxCertificateWorlds, worlds)) return problem;
  if (IsRung(worlds)) return std::nullopt;
  return fmt::format("{}: {}", worlds, kLadderRule);
}

Problem ReadChallenge(const Json& json, std::string& sha256) {
  if (json.is_null()) return std::nullopt;
  return ReadSha256(json, sha256);
}

Problem ReadNote(const Json& json) {
  if (json.is_string() && json.get_ref<const std::string&>() == kCertificateNote) {
    return std::nullopt;
  }
  return Describe(json) + ": must be what every certificate says about itself";
}

Problem ReadMakersChoice(const Json& json, std::optional<Promise>& choice) {
  if (json.is_null()) return std::nullopt;
  if (!json.is_object()) return Describe(json) + ": must be an object or null";
  if (Problem problem = CheckFields(json, "", {"confidence", "safe_arrival", "expected_cost"})) {
    return "{...}: " + *problem;
  }
  choice.emplace();
  const auto named = [](const char* field, const Problem& problem) -> Problem {
    if (!problem) return std::nullopt;
    return fmt::format("{{...}}: {} = {}", field, *problem);
  };
  for (const Problem& problem :
       {named("confidence", ReadConfidence(*FindField(json, "confidence"), choice->confidence)),
        named("safe_arrival", ReadUnit(*FindField(json, "safe_arrival"), choice->safe_arrival)),
        named("expected_cost",
              ReadUnit(*FindField(json, "expected_cost"), choice->expected_cost))}) {
    if (problem) return problem;
  }
  return std::nullopt;
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
  const Json* const version = FindField(json, "version");
  c.version = version != nullptr && *version == 1 ? 1 : kVersion;
  if (Problem problem = CheckFormat(json, kFormat, c.version)) return problem;
  std::vector<std::string> fields;
  const nlohmann::ordered_json example = ToJson(c);
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
  if (c.version == 1) {
    read("worlds",
         [&](const Json& value) { return ReadInt(value, 1, kMaxCertificateWorlds, c.worlds); });
    read("confidence", ReadConfidence, c.confidence);
  } else {
    read("challenge_sha256", ReadChallenge, c.challenge_sha256);
    read("worlds", ReadRung, c.worlds);
    read("confidence", ReadFixedConfidence, c.confidence);
    read("risk_share", ReadUnit, c.risk_share);
    read("makers_choice", ReadMakersChoice, c.makers_choice);
    read("note", ReadNote);
  }
  read("starts_per_world",
       [&](const Json& value) { return ReadInt(value, 1, kMaxStarts, c.starts_per_world); });
  const auto read_episodes = [&](const Json& value, std::int64_t& count) {
    return ReadInt(value, 0, c.worlds * c.starts_per_world, count);
  };
  read("seed", ReadWord, c.seed);
  read("safe", read_episodes, c.safe);
  read("collided", read_episodes, c.collided);
  read("timed_out", read_episodes, c.timed_out);
  if (const std::int64_t episodes = c.worlds * c.starts_per_world;
      !first && c.safe + c.collided + c.timed_out != episodes) {
    first = fmt::format("safe = {}: with collided and timed_out must be the {} episodes", c.safe,
                        episodes);
  }
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

bool IsChallenge(std::string_view text) {
  constexpr std::size_t kLongest = 500;
  return !text.empty() && text.size() <= kLongest &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::uint64_t CertificationSeed(const Certificate& c) {
  if (c.version == 1) {
    return Sha256Word(
        fmt::format("fedgen-certification 1\npolicy_sha256={}\ntask_sha256={}\nworlds={}\n"
                    "confidence={}\n",
                    c.policy_sha256, c.task_sha256, c.worlds, c.confidence));
  }
  return Sha256Word(
      fmt::format("fedgen-certification 2\npolicy_sha256={}\ntask_sha256={}\n"
                  "challenge_sha256={}\n",
                  c.policy_sha256, c.task_sha256, c.challenge_sha256));
}

std::uint64_t ChallengeSeed(const Certificate& c, std::string_view challenge) {
  return Sha256Word(
      fmt::format("fedgen-challenge 2\npolicy_sha256={}\ntask_sha256={}\nchallenge_sha256={}\n",
                  c.policy_sha256, c.task_sha256, Sha256Hex(challenge)));
}

namespace {

// Both statements at one confidence (Eq. 40), with the share of its risk that n owns.
Promise PromiseAt(double confidence, double share, std::span<const double> costs,
                  std::span<const double> failed_shares, const Certificate& c) {
  const double delta = (1 - confidence) / 2 * share;
  Promise promise;
  promise.confidence = confidence;
  promise.safe_arrival = c.starts_per_world == 1 ? SuccessLowerBound(c.safe, c.worlds, delta)
                                                 : 1 - BettingUpperBound(failed_shares, delta);
  promise.expected_cost = BettingUpperBound(costs, delta);
  return promise;
}

}  // namespace

void ComputeBounds(std::span<const double> costs, std::span<const double> safe_shares,
                   Certificate& c) {
  FEDGEN_CHECK(costs.size() == static_cast<std::size_t>(c.worlds), "{} costs of {} worlds",
               costs.size(), c.worlds);
  std::vector<double> failed_shares;
  if (c.starts_per_world > 1) {
    FEDGEN_CHECK(safe_shares.size() == costs.size(), "{} shares of {} worlds", safe_shares.size(),
                 costs.size());
    failed_shares.assign(safe_shares.begin(), safe_shares.end());
    for (double& share : failed_shares) share = 1 - share;
  }
  c.risk_share = c.version == 1 ? 1 : RiskShare(c.worlds);
  const Promise promise = PromiseAt(c.confidence, c.risk_share, costs, failed_shares, c);
  c.safe_arrival_method =
      c.starts_per_world == 1 ? BoundMethod::kClopperPearson : BoundMethod::kBetting;
  c.safe_arrival = promise.safe_arrival;
  c.expected_cost_method = BoundMethod::kBetting;
  c.expected_cost = promise.expected_cost;
  const double gamma = (1 - c.confidence) * c.risk_share;
  const double bias = LearnerBias(c.worlds, gamma);
  c.t1_cost_bound = CostBoundT1(c.mean_cost, bias);
  c.t2_safe_arrival = SafeArrivalT2(c.mean_cost, bias, gamma);
  if (auto& choice = c.makers_choice) {
    choice = PromiseAt(choice->confidence, c.risk_share, costs, failed_shares, c);
  }
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
