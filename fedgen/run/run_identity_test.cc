// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/run_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace fedgen {
namespace {

using ::testing::HasSubstr;

TEST(RunIdentity, ComesBack) {
  for (const std::uint64_t seed :
       {std::uint64_t{0}, std::uint64_t{1}, std::numeric_limits<std::uint64_t>::max()}) {
    const std::string text = RunIdentityToJson({seed, "a \"name\"\n"});
    ASSERT_TRUE(nlohmann::json::accept(text));
    const Result<RunIdentity> back = ParseRunIdentity(text, "run.json");
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(back->seed, seed);
    EXPECT_EQ(back->config_name, "a \"name\"\n");
  }
  EXPECT_TRUE(nlohmann::json::accept(RunIdentityToJson({1, "\xff\xfe"})));  // no UTF-8
}

TEST(RunIdentity, MalformedIsOneLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "format"},
      {"{", "format"},
      {"[]", "format"},
      {"null", "format"},
      {R"({"format": 3})", "format"},
      {R"({"format": "fedgen-run-summary"})", "format"},
      {R"({"format": "fedgen-run"})", "version"},
      {R"({"format": "fedgen-run", "version": 2})", "version"},
      {R"({"format": "fedgen-run", "version": 1})", "seed"},
      {R"({"format": "fedgen-run", "version": 1, "seed": -1})", "seed"},
      {R"({"format": "fedgen-run", "version": 1, "seed": 1.5})", "seed"},
      {R"({"format": "fedgen-run", "version": 1, "seed": "1"})", "seed"},
      {R"({"format": "fedgen-run", "version": 1, "seed": 18446744073709551616})", "seed"},
      {R"({"format": "fedgen-run", "version": 1, "seed": 1})", "config"},
      {R"({"format": "fedgen-run", "version": 1, "seed": 1, "config": []})", "config"},
  };
  for (const auto& [text, field] : cases) {
    const Result<RunIdentity> result = ParseRunIdentity(text, "run.json");
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, ErrorCode::kData);
    EXPECT_THAT(result.error().message, HasSubstr(std::string("run.json: ") + field)) << text;
    EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
  }
  const std::string whole = RunIdentityToJson({5, "c"});
  for (std::size_t size = 0; size + 2 < whole.size(); ++size) {
    EXPECT_FALSE(ParseRunIdentity(std::string_view(whole).substr(0, size), "r")) << size;
  }
}

}  // namespace
}  // namespace fedgen
