// SPDX-License-Identifier: Apache-2.0
#include "fedgen/certify/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "fedgen/base/hash.h"
#include "fedgen/certify/bounds.h"

namespace fedgen {
namespace {

using ::testing::HasSubstr;

// What was seen in 1,000 worlds: ten failures, and costs that scatter a little.
std::vector<double> ExampleCosts() {
  std::vector<double> costs;
  for (int world = 0; world < 1000; ++world) {
    costs.push_back(world % 100 == 7 ? 1 : 0.28 + 0.002 * (world % 21));
  }
  return costs;
}

Certificate Example(int version = 2) {
  Certificate c;
  c.version = version;
  c.program = "fedgen 0.1.0";
  c.policy = "20-20-1 network, 441 parameters";
  c.robot = "car";
  c.sensor = "20 beams";
  c.policy_sha256 = Sha256Hex("policy");
  c.task_sha256 = Sha256Hex("task");
  c.worlds = 1000;
  if (version == 1) {
    c.confidence = 0.98;
  } else {
    c.challenge_sha256 = Sha256Hex("my own word");
    c.makers_choice = Promise{0.95, 0, 0};
  }
  c.seed = CertificationSeed(c);
  c.safe = 990;
  c.collided = 7;
  c.timed_out = 3;
  c.outcome_hash = 0xfedcba9876543210U;
  const std::vector<double> costs = ExampleCosts();
  c.mean_cost = 0;
  for (const double cost : costs) c.mean_cost += cost / 1000;
  ComputeBounds(costs, {}, c);
  return c;
}

// An independent Eq. 15, one-sided: the rate at which so many successes or more have probability
// delta, by bisection over a sum of terms.
double NaiveSuccessBound(int successes, int trials, double delta) {
  const auto tail = [&](double p) {  // P(Binomial(trials, p) >= successes)
    double sum = 0;
    for (int k = successes; k <= trials; ++k) {
      sum +=
          std::exp(std::lgamma(trials + 1.0) - std::lgamma(k + 1.0) -
                   std::lgamma(trials - k + 1.0) + k * std::log(p) + (trials - k) * std::log1p(-p));
    }
    return sum;
  };
  double low = 0, high = 1;
  for (int halving = 0; halving < 60; ++halving) {
    const double p = (low + high) / 2;
    (tail(p) < delta ? low : high) = p;
  }
  return low;
}

// An independent Eq. 39, straight from the page: the bet on sample t uses the variance of the
// samples before its betting round, rounds begin at f + max(1, f / 64), the capital is a logarithm.
double NaiveBettingBound(const std::vector<double>& x, double delta) {
  const auto n = static_cast<double>(x.size());
  const auto refutes = [&](double m) {
    double log_capital = 0, sum = 0.5, squares = 0.25, variance = 0.25;
    std::size_t next_round = 0;
    for (std::size_t t = 0; t < x.size(); ++t) {
      if (t == next_round) {
        variance = squares / static_cast<double>(t + 1);
        next_round = t + std::max<std::size_t>(1, t / 64);
      }
      const double bet =
          std::min(std::sqrt(2 * std::log(1 / delta) / (n * variance)), 0.75 / (1 - m));
      log_capital += std::log1p(bet * (m - x[t]));
      if (log_capital >= std::log(1 / delta)) return true;
      sum += x[t];
      const double mean = sum / static_cast<double>(t + 2);
      squares += (x[t] - mean) * (x[t] - mean);
    }
    return false;
  };
  double survives = 0, refuted = 1;
  for (int halving = 0; halving < 40; ++halving) {
    const double m = (survives + refuted) / 2;
    (refutes(m) ? refuted : survives) = m;
  }
  return refuted;
}

// Eq. 40 and 41: every number that follows, computed another way. 1,000 worlds own 4 of 64 shares;
// each of the two statements has half.
TEST(ComputeBounds, GivesWhatAnIndependentComputationGives) {
  const Certificate c = Example();
  const std::vector<double> costs = ExampleCosts();
  constexpr double kRisk = 0.01 / 2 * 4 / 64;
  EXPECT_EQ(c.confidence, 0.99);
  EXPECT_EQ(c.risk_share, 4.0 / 64);
  EXPECT_EQ(c.safe_arrival_method, BoundMethod::kClopperPearson);
  EXPECT_NEAR(c.safe_arrival, NaiveSuccessBound(990, 1000, kRisk), 1e-9);
  EXPECT_EQ(c.expected_cost_method, BoundMethod::kBetting);
  EXPECT_NEAR(c.expected_cost, NaiveBettingBound(costs, kRisk), 1e-9);
  // The paper's, each alone: gamma = 0.01 * 4 / 64, b = sqrt(log(2 / gamma) / 2000).
  constexpr double kGamma = 0.01 * 4 / 64;
  const double bias = std::sqrt(std::log(2 / kGamma) / 2000);
  EXPECT_NEAR(c.t1_cost_bound, c.mean_cost + bias, 1e-12);
  EXPECT_NEAR(c.t2_safe_arrival, 1 - kGamma - (1 - kGamma) * (c.mean_cost + bias), 1e-12);
  ASSERT_TRUE(c.makers_choice);
  const Promise choice = c.makers_choice.value_or(Promise{});
  EXPECT_EQ(choice.confidence, 0.95);
  EXPECT_NEAR(choice.safe_arrival, NaiveSuccessBound(990, 1000, 5 * kRisk), 1e-9);
  EXPECT_NEAR(choice.expected_cost, NaiveBettingBound(costs, 5 * kRisk), 1e-9);
}

// A certificate of version 1 is still recomputed: the whole risk of its confidence for its n.
TEST(ComputeBounds, KeepsTheArithmeticOfVersionOne) {
  const Certificate c = Example(1);
  EXPECT_NEAR(c.safe_arrival, NaiveSuccessBound(990, 1000, 0.01), 1e-9);
  EXPECT_NEAR(c.expected_cost, NaiveBettingBound(ExampleCosts(), 0.01), 1e-9);
  const double bias = std::sqrt(std::log(2 / 0.02) / 2000);
  EXPECT_NEAR(c.t1_cost_bound, c.mean_cost + bias, 1e-12);
  EXPECT_NEAR(c.t2_safe_arrival, 0.98 - 0.98 * (c.mean_cost + bias), 1e-12);
  EXPECT_FALSE(c.makers_choice);
}

// Half of the worlds let all four starts arrive, half three of four. Counted as 4,000 independent
// episodes the same data would promise more than 1,000 worlds can.
TEST(ComputeBounds, TakesWorldsAsSamplesWhereTheyHaveSeveralStarts) {
  Certificate c = Example();
  c.starts_per_world = 4;
  const std::vector<double> costs = ExampleCosts();
  std::vector<double> shares, failed;
  for (int world = 0; world < 1000; ++world) {
    shares.push_back(world % 2 == 0 ? 1 : 0.75);
    failed.push_back(1 - shares.back());
  }
  ComputeBounds(costs, shares, c);
  EXPECT_EQ(c.safe_arrival_method, BoundMethod::kBetting);
  EXPECT_NEAR(c.safe_arrival, 1 - NaiveBettingBound(failed, 0.005 * 4 / 64), 1e-9);
  EXPECT_NEAR(c.expected_cost, NaiveBettingBound(costs, 0.005 * 4 / 64), 1e-9);
  EXPECT_LT(c.safe_arrival, 0.875);
  EXPECT_GT(c.safe_arrival, 0.85);
}

// Eq. 42, spelled out: whoever has the certificate can compute its seed with sha256sum. Only
// policy, task and challenge count.
TEST(CertificationSeed, IsTheHashOfPolicyTaskAndChallenge) {
  const Certificate original = Example();
  EXPECT_EQ(original.seed, Sha256Word("fedgen-certification 2\npolicy_sha256=" +
                                      Sha256Hex("policy") + "\ntask_sha256=" + Sha256Hex("task") +
                                      "\nchallenge_sha256=" + Sha256Hex("my own word") + "\n"));
  Certificate c = original;
  c.worlds = 3000;
  c.starts_per_world = 7;
  c.confidence = 0.5;
  c.makers_choice = Promise{0.9, 0, 1};
  c.policy = c.robot = c.sensor = c.program = "other words";
  c.safe = 5;
  c.mean_cost = 0.9;
  EXPECT_EQ(CertificationSeed(c), original.seed) << "nothing that a maker may choose counts";
  std::set<std::uint64_t> seeds = {original.seed, CertificationSeed(Example(1)),
                                   ChallengeSeed(original, "my own word"),
                                   ChallengeSeed(original, "another")};
  c = original;
  c.policy_sha256 = Sha256Hex("another");
  seeds.insert(CertificationSeed(c));
  c = original;
  c.task_sha256 = Sha256Hex("another");
  seeds.insert(CertificationSeed(c));
  c = original;
  c.challenge_sha256.clear();
  seeds.insert(CertificationSeed(c));
  EXPECT_EQ(seeds.size(), 7U) << "each of these draws other worlds";
}

// Version 1, as it was: n and confidence chose the worlds.
TEST(CertificationSeed, KeepsTheSeedsOfVersionOne) {
  const Certificate c = Example(1);
  EXPECT_EQ(c.seed,
            Sha256Word("fedgen-certification 1\npolicy_sha256=" + c.policy_sha256 +
                       "\ntask_sha256=" + c.task_sha256 + "\nworlds=1000\nconfidence=0.98\n"));
}

TEST(IsChallenge, TakesOneLineOfPrintableText) {
  EXPECT_TRUE(IsChallenge("tower bridge 2031"));
  EXPECT_TRUE(IsChallenge(std::string(500, '~')));
  for (const std::string& text :
       {std::string(), std::string(501, 'x'), std::string("a\nb"), std::string("\xc3\xa9")}) {
    EXPECT_FALSE(IsChallenge(text));
  }
}

TEST(Certificate, ComesBackFromItsFileBitForBit) {
  Certificate plain = Example();
  plain.challenge_sha256.clear();
  plain.makers_choice.reset();
  for (const Certificate& c : {Example(), plain, Example(1)}) {
    const std::string text = CertificateToJson(c);
    const Result<Certificate> back = ParseCertificate(text, "c.json");
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_FALSE(FindDifference(c, *back));
    EXPECT_EQ(back->version, c.version);
    EXPECT_EQ(back->program, c.program);
    EXPECT_EQ(back->expected_cost, c.expected_cost);
    EXPECT_EQ(CertificateToJson(*back), text);
  }
}

// The reader of a certificate finds its weakness in the file itself.
TEST(Certificate, SaysHowItCouldStillBeBeaten) {
  const auto json = nlohmann::json::parse(CertificateToJson(Example()));
  EXPECT_THAT(json["note"].get<std::string>(), HasSubstr("nearly equal policies or tasks"));
  EXPECT_THAT(json["note"].get<std::string>(), HasSubstr("--challenge"));
}

TEST(FindDifference, NamesAnyFieldThatChanged) {
  const Certificate original = Example();
  const auto json = nlohmann::ordered_json::parse(CertificateToJson(original));
  for (const auto& [field, value] : json.items()) {
    if (field == "format" || field == "version" || field == "program") continue;
    if (field == "confidence" || field == "note") continue;  // one value only
    nlohmann::ordered_json changed = json;
    if (field == "worlds") {
      changed[field] = 3000;
    } else if (field == "makers_choice") {
      changed[field]["safe_arrival"] = 0.5;
    } else if (value.is_number_integer()) {
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
    // Counts must add up: what one gains another loses, the next one in the file if there is one.
    if (field == "safe") changed["collided"] = 6;
    if (field == "collided") changed["timed_out"] = 2;
    if (field == "timed_out") changed["safe"] = 989;
    if (field == "worlds") changed["safe"] = 2990;
    if (field == "starts_per_world") changed["safe"] = 1990;
    const Result<Certificate> parsed = ParseCertificate(changed.dump(), "c.json");
    ASSERT_TRUE(parsed) << parsed.error().message;
    if (field == "timed_out") continue;  // found by the count before it
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
  EXPECT_EQ(with("version", 3), "c.json: version = 3: this program reads version 2");
  EXPECT_EQ(with("wrlds", 3), "c.json: wrlds: unknown key, did you mean worlds?");
  EXPECT_EQ(with("worlds", 0), "c.json: worlds = 0: must be an integer in 1..100000000");
  EXPECT_EQ(with("worlds", 1e3),
            "c.json: worlds = 1000 (with a point or exponent): must be an integer in 1..100000000");
  EXPECT_EQ(with("starts_per_world", -1),
            "c.json: starts_per_world = -1: must be an integer in 1..10000");
  EXPECT_EQ(with("worlds", 1001),
            "c.json: worlds = 1001: must be 1 or 3 times a power of ten, from 100 to 100000000 (so "
            "that nobody can choose a lucky size)");
  EXPECT_EQ(with("confidence", 0.95),
            "c.json: confidence = 0.95: must be 0.99, another one is makers_choice");
  const auto with_choice = [&](const std::string& field, const nlohmann::ordered_json& value) {
    nlohmann::ordered_json choice = json["makers_choice"];
    choice[field] = value;
    return with("makers_choice", choice);
  };
  EXPECT_EQ(with_choice("confidence", 1),
            "c.json: makers_choice = {...}: confidence = 1: must be in [1e-6, 1 - 1e-9]");
  // A number, but 1 - 1e-300 is 1.
  EXPECT_EQ(with_choice("confidence", 1e-300),
            "c.json: makers_choice = {...}: confidence = 1e-300: must be in [1e-6, 1 - 1e-9]");
  EXPECT_THAT(with_choice("safe_arrival", 2), HasSubstr("must be a number in [0, 1]"));
  EXPECT_THAT(with_choice("x", 2), HasSubstr("x: unknown key"));
  EXPECT_THAT(with("makers_choice", 3), HasSubstr("must be an object or null"));
  EXPECT_THAT(with("challenge_sha256", "my own word"), HasSubstr("must be 64"));
  EXPECT_THAT(with("note", "trust me"), HasSubstr("must be what every certificate says"));
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
  EXPECT_THAT(with("robot", nlohmann::ordered_json::array()), HasSubstr("must be a string"));
  EXPECT_THAT(with("robot", {{{"a", 1}}}), HasSubstr("nested"));

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
