// SPDX-License-Identifier: Apache-2.0
#include "fedgen/certify/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "fedgen/base/hash.h"
#include "fedgen/certify/bounds.h"

namespace fedgen {
namespace {

using ::testing::HasSubstr;

Certificate Example() {
  Certificate c;
  c.program = "fedgen 0.1.0";
  c.policy = "20-20-1 network, 441 parameters";
  c.robot = "car";
  c.sensor = "20 beams";
  c.policy_sha256 = Sha256Hex("policy");
  c.task_sha256 = Sha256Hex("task");
  c.worlds = 1000;
  c.confidence = 0.98;
  c.seed = CertificationSeed(c);
  c.safe = 990;
  c.collided = 7;
  c.timed_out = 3;
  c.outcome_hash = 0xfedcba9876543210U;
  std::vector<double> costs(1000, 0.3);
  for (std::size_t failure = 0; failure < 10; ++failure) costs[100 * failure + 7] = 1;
  c.mean_cost = 0.307;
  ComputeBounds(costs, {}, c);
  return c;
}

// Eq. 40: each bound at delta / 2; the paper's at gamma.
TEST(ComputeBounds, SplitsTheRisk) {
  const Certificate c = Example();
  EXPECT_NEAR(c.safe_arrival, SuccessLowerBound(990, 1000, 0.01), 1e-12);
  EXPECT_EQ(c.safe_arrival_method, BoundMethod::kClopperPearson);
  EXPECT_GT(c.expected_cost, 0.307);
  EXPECT_LT(c.expected_cost, 0.32);
  const double bias = LearnerBias(1000, 0.02);
  EXPECT_NEAR(c.t1_cost_bound, 0.307 + bias, 1e-12);
  EXPECT_NEAR(c.t2_safe_arrival, 0.98 - 0.98 * (0.307 + bias), 1e-12);
}

// Half of the worlds let all four starts arrive, half three of four. Counted as 4,000 independent
// episodes the same data would promise more than 1,000 worlds can.
TEST(ComputeBounds, TakesWorldsAsSamplesWhereTheyHaveSeveralStarts) {
  Certificate c = Example();
  c.starts_per_world = 4;
  std::vector<double> costs(1000, 0.3);
  std::vector<double> shares;
  for (int world = 0; world < 1000; ++world) shares.push_back(world % 2 == 0 ? 1 : 0.75);
  ComputeBounds(costs, shares, c);
  EXPECT_EQ(c.safe_arrival_method, BoundMethod::kBetting);
  std::vector<double> failed;
  for (const double share : shares) failed.push_back(1 - share);
  EXPECT_EQ(c.safe_arrival, 1 - BettingUpperBound(failed, (1 - 0.98) / 2));
  EXPECT_LT(c.safe_arrival, 0.875);
  EXPECT_GT(c.safe_arrival, 0.86);
}

// Eq. 42, spelled out: whoever has the certificate can compute its seed with sha256sum.
TEST(CertificationSeed, IsTheHashOfTheQuestion) {
  Certificate c = Example();
  EXPECT_EQ(c.seed,
            Sha256Word("fedgen-certification 1\npolicy_sha256=" + c.policy_sha256 +
                       "\ntask_sha256=" + c.task_sha256 + "\nworlds=1000\nconfidence=0.98\n"));
  const std::uint64_t seed = c.seed;
  c.safe = 5;
  c.mean_cost = 0.9;
  EXPECT_EQ(CertificationSeed(c), seed) << "the answer does not count";
  ++c.worlds;
  EXPECT_NE(CertificationSeed(c), seed);
  c = Example();
  c.confidence = std::nextafter(c.confidence, 1.0);
  EXPECT_NE(CertificationSeed(c), seed);
  c = Example();
  c.policy_sha256 = Sha256Hex("another");
  EXPECT_NE(CertificationSeed(c), seed);
  c = Example();
  c.task_sha256 = Sha256Hex("another");
  EXPECT_NE(CertificationSeed(c), seed);
}

TEST(Certificate, ComesBackFromItsFileBitForBit) {
  const Certificate c = Example();
  const std::string text = CertificateToJson(c);
  const Result<Certificate> back = ParseCertificate(text, "c.json");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_FALSE(FindDifference(c, *back));
  EXPECT_EQ(back->program, c.program);
  EXPECT_EQ(back->expected_cost, c.expected_cost);
  EXPECT_EQ(CertificateToJson(*back), text);
}

TEST(FindDifference, NamesAnyFieldThatChanged) {
  const Certificate original = Example();
  const auto json = nlohmann::ordered_json::parse(CertificateToJson(original));
  for (const auto& [field, value] : json.items()) {
    if (field == "format" || field == "version" || field == "program") continue;
    nlohmann::ordered_json changed = json;
    if (value.is_number_integer()) {
      changed[field] = value.get<std::int64_t>() + 1;
    } else if (value.is_number()) {
      changed[field] = std::nextafter(value.get<double>(), 2.0);
    } else if (field.ends_with("_method")) {
      changed[field] = value == "betting" ? "clopper-pearson" : "betting";
    } else {
      std::string text = value;
      text.back() = text.back() == '0' ? '1' : '0';
      changed[field] = text;
    }
    const Result<Certificate> parsed = ParseCertificate(changed.dump(), "c.json");
    ASSERT_TRUE(parsed) << parsed.error().message;
    const auto difference = FindDifference(*parsed, original);
    ASSERT_TRUE(difference) << field;
    EXPECT_EQ(difference->field, field);
    EXPECT_EQ(difference->stated, changed[field].dump());
    EXPECT_EQ(difference->recomputed, value.dump());
  }
  Certificate other = original;
  other.program = "fedgen 9";
  EXPECT_FALSE(FindDifference(other, original)) << "who wrote it is not what it says";
}

std::string ErrorOf(const std::string& text) {
  const Result<Certificate> parsed = ParseCertificate(text, "c.json");
  if (parsed) return "(no error)";
  EXPECT_EQ(parsed.error().code, ErrorCode::kData);
  EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
  return parsed.error().message;
}

TEST(ParseCertificate, SaysWhatIsWrong) {
  const auto json = nlohmann::ordered_json::parse(CertificateToJson(Example()));
  const auto with = [&](const std::string& field, const nlohmann::ordered_json& value) {
    nlohmann::ordered_json changed = json;
    changed[field] = value;
    return ErrorOf(changed.dump());
  };
  EXPECT_EQ(with("format", "x"), "c.json: format = \"x\": must be \"fedgen-certificate\"");
  EXPECT_EQ(with("version", 2), "c.json: version = 2: this program reads version 1");
  EXPECT_EQ(with("wrlds", 3), "c.json: wrlds: unknown key, did you mean worlds?");
  EXPECT_EQ(with("worlds", 0), "c.json: worlds = 0: must be an integer in 1..100000000");
  EXPECT_EQ(with("worlds", 1e3), "c.json: worlds = 1000: must be an integer in 1..100000000");
  EXPECT_EQ(with("starts_per_world", -1),
            "c.json: starts_per_world = -1: must be an integer in 1..10000");
  EXPECT_EQ(with("confidence", 1), "c.json: confidence = 1: must be in [1e-6, 1 - 1e-9]");
  // A number, but 1 - 1e-300 is 1.
  EXPECT_EQ(with("confidence", 1e-300), "c.json: confidence = 1e-300: must be in [1e-6, 1 - 1e-9]");
  EXPECT_EQ(with("confidence", "high"),
            "c.json: confidence = \"high\": must be in [1e-6, 1 - 1e-9]");
  EXPECT_EQ(with("seed", 7), "c.json: seed = 7: must be 0x and 16 lower-case hexadecimal digits");
  EXPECT_THAT(with("seed", "0x0123456789ABCDEF"), HasSubstr("lower-case"));
  EXPECT_THAT(with("policy_sha256", "abc"), HasSubstr("policy_sha256 = \"abc\": must be 64"));
  EXPECT_EQ(with("safe", 1001), "c.json: safe = 1001: must be an integer in 0..1000");
  EXPECT_EQ(with("mean_cost", 1.5), "c.json: mean_cost = 1.5: must be a number in [0, 1]");
  EXPECT_EQ(with("expected_cost", nullptr),
            "c.json: expected_cost = null: must be a number in [0, 1]");
  EXPECT_THAT(with("safe_arrival_method", "beting"), HasSubstr("did you mean betting?"));
  EXPECT_THAT(with("robot", "a\nb"), HasSubstr("robot = \"a\\x0ab\": must be at most 500"));
  EXPECT_THAT(with("robot", std::string(501, 'r')), HasSubstr("robot = "));
  EXPECT_THAT(with("robot", nlohmann::ordered_json::array()), HasSubstr("nested"));

  for (const auto& [field, value] : json.items()) {
    nlohmann::ordered_json changed = json;
    changed.erase(field);
    EXPECT_THAT(ErrorOf(changed.dump()), HasSubstr("c.json: " + field + ": missing")) << field;
    changed[field] = true;
    EXPECT_THAT(ErrorOf(changed.dump()), HasSubstr("c.json: " + field + " = true: "));
  }
  EXPECT_THAT(ErrorOf(""), HasSubstr("c.json: "));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("must be an object"));
  EXPECT_THAT(ErrorOf("{\"format\": \"fedgen-certificate\", \"format\": 1}"),
              HasSubstr("given twice"));
  EXPECT_THAT(ErrorOf(json.dump() + "x"), HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOf(json.dump() + std::string(70000, ' ')), HasSubstr("at most 65536"));
}

TEST(ParseCertificate, RefusesEveryTruncation) {
  const std::string text = CertificateToJson(Example());
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    EXPECT_FALSE(ParseCertificate(text.substr(0, size), "c.json")) << size;
  }
}

TEST(LoadCertificate, NamesTheFileThatIsNotThere) {
  const Result<Certificate> missing = LoadCertificate("no/such/certificate.json");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace fedgen
