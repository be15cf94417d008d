// SPDX-License-Identifier: Apache-2.0
#include "fedgen/policy/policy_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <limits>

#include "fedgen/base/file_testing.h"

namespace fedgen {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// A network with a number of its own in every place.
Mlp MakeNetwork(const MlpOptions& options, int num_beams, std::uint64_t seed) {
  Mlp mlp = MakeMlp(options, num_beams, 5.1, 0.7);
  DrawParameters(Key(seed), 1.3, mlp);
  for (std::size_t index = 0; index < mlp.parameters.size(); ++index) {
    if (mlp.parameters[index] == 0) mlp.parameters[index] = 0.1F + static_cast<float>(index);
  }
  for (std::size_t input = 0; input < mlp.input_scale.size(); ++input) {
    mlp.input_scale[input] = 0.3F + 0.1F * static_cast<float>(input);
    mlp.input_shift[input] = -0.7F * static_cast<float>(input);
  }
  return mlp;
}

// 2 beams, 2 hidden: 2-2-1, 9 parameters, 40 + 4 + 4 * (2 + 2 + 9) + 4 = 100 bytes.
Mlp MakeSmallNetwork() {
  MlpOptions options;
  options.hidden = {2};
  options.state_inputs = false;
  return MakeNetwork(options, 2, 5);
}
constexpr std::size_t kSmallBytes = 100;

std::vector<std::uint32_t> Bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

void ExpectSame(const Mlp& a, const Mlp& b) {
  EXPECT_EQ(a.num_beams, b.num_beams);
  EXPECT_EQ(Bits({a.max_range, a.control_limit, a.range_offset}),
            Bits({b.max_range, b.control_limit, b.range_offset}));
  EXPECT_EQ(a.state_inputs, b.state_inputs);
  EXPECT_EQ(a.goal_inputs, b.goal_inputs);
  EXPECT_EQ(a.range_code, b.range_code);
  EXPECT_EQ(a.activation, b.activation);
  EXPECT_EQ(a.output_map, b.output_map);
  EXPECT_EQ(a.hidden, b.hidden);
  EXPECT_EQ(Bits(a.input_scale), Bits(b.input_scale));
  EXPECT_EQ(Bits(a.input_shift), Bits(b.input_shift));
  EXPECT_EQ(Bits(a.parameters), Bits(b.parameters));
}

// The message of bytes that must be refused.
std::string Problem(const Result<Mlp>& mlp) {
  if (mlp) return "(no error)";
  EXPECT_EQ(mlp.error().code, ErrorCode::kData);
  return mlp.error().message;
}
std::string BinaryProblem(std::string_view bytes) { return Problem(PolicyFromBinary(bytes, "p")); }
std::string JsonProblem(std::string_view text) { return Problem(PolicyFromJson(text, "p")); }

void PutInt(std::size_t offset, std::uint32_t value, std::string& bytes) {
  for (std::size_t byte = 0; byte < 4; ++byte) {
    bytes[offset + byte] = static_cast<char>(static_cast<unsigned char>(value >> (8 * byte)));
  }
}

// The small network's file with one integer replaced and the checksum made right again: what an
// attacker writes, not what a disk does.
std::string SmallWith(std::size_t offset, std::uint32_t value) {
  std::string bytes = PolicyToBinary(MakeSmallNetwork());
  PutInt(offset, value, bytes);
  const auto* data = reinterpret_cast<const Bytef*>(bytes.data());
  PutInt(kSmallBytes - 4, static_cast<std::uint32_t>(crc32_z(0, data, kSmallBytes - 4)), bytes);
  return bytes;
}

// The small network's JSON with `from` replaced.
std::string JsonWith(const std::string& from, const std::string& to) {
  std::string text = PolicyToJson(MakeSmallNetwork());
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

// ---------------------------------------------------------------------------------- round trips

TEST(PolicyFile, KeepsEveryBitInBothForms) {
  for (const RangeCode code : {RangeCode::kRaw, RangeCode::kScaled, RangeCode::kInverse}) {
    for (int choice = 0; choice < 16; ++choice) {
      MlpOptions options;
      options.hidden.resize(static_cast<std::size_t>(choice % 4), 3 + choice);
      options.range_code = code;
      options.range_offset = 0.1 + choice;
      options.state_inputs = (choice & 1) != 0;
      options.goal_inputs = (choice & 2) != 0;
      options.activation = (choice & 4) != 0 ? Activation::kTanh : Activation::kRelu;
      options.output_map = (choice & 8) != 0 ? OutputMap::kTanh : OutputMap::kClamp;
      const Mlp mlp = MakeNetwork(options, 1 + choice, static_cast<std::uint64_t>(choice));
      const Result<Mlp> from_binary = PolicyFromBinary(PolicyToBinary(mlp), "p");
      ASSERT_TRUE(from_binary) << from_binary.error().message;
      ExpectSame(*from_binary, mlp);
      const Result<Mlp> from_json = PolicyFromJson(PolicyToJson(mlp), "p");
      ASSERT_TRUE(from_json) << from_json.error().message;
      ExpectSame(*from_json, mlp);
      EXPECT_EQ(PolicyToBinary(*from_json), PolicyToBinary(mlp));
      EXPECT_EQ(PolicyToJson(*from_binary), PolicyToJson(mlp));
    }
  }
}

TEST(PolicyFile, KeepsFloatsOfEveryExponent) {
  // One random mantissa for each sign and exponent, subnormals and zeros included.
  MlpOptions options;
  options.hidden = {};
  Mlp mlp = MakeNetwork(options, 510, 1);  // 514 inputs and a bias
  for (std::uint32_t exponent = 0; exponent < 255; ++exponent) {
    const std::uint32_t mantissa = Key(3).Block(exponent)[0] >> 9;
    mlp.parameters[2 * exponent] = std::bit_cast<float>((exponent << 23) | mantissa);
    mlp.parameters[2 * exponent + 1] = -mlp.parameters[2 * exponent];
  }
  mlp.parameters[510] = 0.0F;
  mlp.parameters[511] = -0.0F;
  mlp.parameters[512] = std::numeric_limits<float>::max();
  mlp.parameters[513] = std::numeric_limits<float>::denorm_min();
  const Result<Mlp> from_binary = PolicyFromBinary(PolicyToBinary(mlp), "p");
  ASSERT_TRUE(from_binary) << from_binary.error().message;
  ExpectSame(*from_binary, mlp);
  const Result<Mlp> from_json = PolicyFromJson(PolicyToJson(mlp), "p");
  ASSERT_TRUE(from_json) << from_json.error().message;
  ExpectSame(*from_json, mlp);
}

TEST(PolicyFile, LaysOutBytesAsDocumented) {
  Mlp mlp = MakeSmallNetwork();
  mlp.max_range = 1;
  mlp.goal_inputs = false;
  const std::string bytes = PolicyToBinary(mlp);
  ASSERT_EQ(bytes.size(), kSmallBytes);
  const std::string head("FGP\x01\r\n\x1a\n\x01\0\0\0\x02\0\0\0\0\0\x80\x3f", 20);
  EXPECT_EQ(bytes.substr(0, 20), head);
  // After control_limit and range_offset: no state, no goal, scaled ranges, relu, tanh; one layer
  // of two.
  EXPECT_EQ(bytes.substr(28, 16), std::string("\0\0\x01\0\x01\0\0\0\x01\0\0\0\x02\0\0\0", 16));
}

TEST(PolicyFile, WritesJsonForPeople) {
  MlpOptions options;
  options.hidden = {};
  options.state_inputs = false;
  options.range_offset = 0.5;
  Mlp mlp = MakeMlp(options, 1, 5, 0.25);
  mlp.parameters = {1.5F, -2};
  EXPECT_EQ(PolicyToJson(mlp), R"({
  "format": "fedgen-policy",
  "version": 1,
  "beams": 1,
  "max_range": 5.0,
  "control_limit": 0.25,
  "state_inputs": false,
  "goal_inputs": false,
  "range_code": "scaled",
  "range_offset": 0.5,
  "activation": "relu",
  "output_map": "tanh",
  "hidden": [],
  "input_scale": [1.0],
  "input_shift": [0.0],
  "parameters": [1.5,-2.0]
}
)");
}

TEST(PolicyFile, TellsTheFormsApart) {
  const Mlp mlp = MakeSmallNetwork();
  const Result<Mlp> binary = ParsePolicy(PolicyToBinary(mlp), "p");
  ASSERT_TRUE(binary);
  ExpectSame(*binary, mlp);
  const Result<Mlp> json = ParsePolicy(" \n" + PolicyToJson(mlp), "p");
  ASSERT_TRUE(json);
  ExpectSame(*json, mlp);
  EXPECT_EQ(Problem(ParsePolicy("", "p")), "p: empty, not a policy");
  EXPECT_EQ(Problem(ParsePolicy(" \n", "p")),
            R"(p: starts with ' \x0a': neither an .fgp nor a JSON policy)");
  EXPECT_EQ(Problem(ParsePolicy("\x1b[31mred", "p")),
            R"(p: starts with '\x1b[31mred': neither an .fgp nor a JSON policy)");
}

TEST(PolicyFile, SavesByExtensionAndRefusesBrokenNetworks) {
  const TemporaryDirectory directory;
  const Mlp mlp = MakeSmallNetwork();
  for (const char* name : {"best.fgp", "best.json"}) {
    const std::string path = directory.Path(name);
    ASSERT_TRUE(SavePolicy(mlp, path, IfExists::kRefuse));
    const Result<Mlp> loaded = LoadPolicy(path);
    ASSERT_TRUE(loaded) << loaded.error().message;
    ExpectSame(*loaded, mlp);
    const Result<void> again = SavePolicy(mlp, path, IfExists::kRefuse);
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, ErrorCode::kExists);
  }
  EXPECT_EQ(std::filesystem::file_size(directory.Path("best.fgp")), kSmallBytes);

  Mlp diverged = mlp;
  diverged.parameters[3] = kNaN;
  const Result<void> saved = SavePolicy(diverged, directory.Path("nan.fgp"), IfExists::kRefuse);
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().message,
            directory.Path("nan.fgp") + ": parameters[3] = nan: must be finite");
  EXPECT_FALSE(std::filesystem::exists(directory.Path("nan.fgp")));
  const Result<Mlp> missing = LoadPolicy(directory.Path("nan.fgp"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kIo);
}

TEST(PolicyFile, SavesLargeNetworksInBinaryOnly) {
  // 2048-2048-1 after 1028 inputs: 6.3 million parameters, above the 4 million of JSON.
  MlpOptions options;
  options.hidden = {2048, 2048};
  const Mlp mlp = MakeMlp(options, 1024, 5, 1);
  const Result<void> saved = SavePolicy(mlp, "large.json", IfExists::kRefuse);
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().message,
            "large.json: 6305793 parameters: JSON takes at most 4194304, .fgp takes all");
}

// ---------------------------------------------------------------------------------- binary

TEST(PolicyBinary, RefusesEveryTruncation) {
  const std::string bytes = PolicyToBinary(MakeSmallNetwork());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const char* rule = size < 44 ? "at least 44" : size < 48 ? "at least 48" : "100";
    EXPECT_EQ(BinaryProblem(bytes.substr(0, size)),
              fmt::format("p: truncated: has {} bytes, should have {}", size, rule));
    EXPECT_FALSE(ParsePolicy(bytes.substr(0, size), "p"));
  }
}

TEST(PolicyBinary, RefusesEveryFlippedBit) {
  const std::string bytes = PolicyToBinary(MakeSmallNetwork());
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(PolicyFromBinary(flipped, "p")) << "bit " << bit;
    EXPECT_FALSE(ParsePolicy(flipped, "p")) << "bit " << bit;
  }
}

TEST(PolicyBinary, SaysThatAWeightWasAltered) {
  std::string bytes = PolicyToBinary(MakeSmallNetwork());
  bytes[70] = static_cast<char>(bytes[70] ^ 1);
  EXPECT_THAT(BinaryProblem(bytes), StartsWith("p: checksum "));
  EXPECT_THAT(BinaryProblem(bytes), HasSubstr(": the file was altered"));
}

TEST(PolicyBinary, RefusesOtherFilesAndVersions) {
  EXPECT_EQ(BinaryProblem("{\"format\": 1}"), "p: starts with '{\"format': not an .fgp policy");
  EXPECT_EQ(BinaryProblem("FGP\x02\r\n\x1a\n"),
            R"(p: starts with 'FGP\x02\x0d\x0a\x1a\x0a': not an .fgp policy)");
  EXPECT_EQ(BinaryProblem(SmallWith(8, 7)), "p: version 7: this program reads version 1");
  EXPECT_EQ(BinaryProblem(SmallWith(8, 0)), "p: version 0: this program reads version 1");
  EXPECT_EQ(BinaryProblem(PolicyToBinary(MakeSmallNetwork()) + "\n"),
            "p: has 101 bytes, should have 100: something follows the policy");
}

TEST(PolicyBinary, RefusesHeadersThatAreWrongUnderARightChecksum) {
  ASSERT_EQ(BinaryProblem(SmallWith(12, 2)), "(no error)");
  EXPECT_EQ(BinaryProblem(SmallWith(12, 0)),
            "p: has 100 bytes, should have 68: something follows the policy");
  EXPECT_EQ(BinaryProblem(SmallWith(12, 3)), "p: truncated: has 100 bytes, should have 116");
  EXPECT_EQ(BinaryProblem(SmallWith(12, 4097)), "p: beams = 4097: must be at most 4096");
  EXPECT_EQ(BinaryProblem(SmallWith(12, 0xFFFFFFFF)),
            "p: beams = 4294967295: must be at most 4096");
  EXPECT_EQ(BinaryProblem(SmallWith(16, 0)), "p: max_range = 0: must be in (0, 1e4]");
  EXPECT_EQ(BinaryProblem(SmallWith(20, std::bit_cast<std::uint32_t>(kInfinity))),
            "p: control_limit = inf: must be in (0, 1e4]");
  EXPECT_EQ(BinaryProblem(SmallWith(24, std::bit_cast<std::uint32_t>(kNaN))),
            "p: range_offset = nan: must be in (0, 1e4]");
  EXPECT_EQ(BinaryProblem(SmallWith(28, 0x00000002)), "p: state_inputs = 2: must be in 0..1");
  EXPECT_EQ(BinaryProblem(SmallWith(28, 0x0000FF00)), "p: goal_inputs = 255: must be in 0..1");
  EXPECT_EQ(BinaryProblem(SmallWith(28, 0x00030000)), "p: range_code = 3: must be in 0..2");
  EXPECT_EQ(BinaryProblem(SmallWith(28, 0x02000000)), "p: activation = 2: must be in 0..1");
  EXPECT_EQ(BinaryProblem(SmallWith(32, 0x00000002)), "p: output_map = 2: must be in 0..1");
  EXPECT_EQ(BinaryProblem(SmallWith(32, 0x01000000)), "p: byte 35: must be zero");
  EXPECT_EQ(BinaryProblem(SmallWith(36, 0x7FFFFFFF)),
            "p: hidden layers = 2147483647: must be at most 4096");
  // Sizes that a hostile header may claim cost no memory: the file is too short for them.
  EXPECT_EQ(BinaryProblem(SmallWith(36, 4096)),
            "p: truncated: has 100 bytes, should have at least 16428");
  EXPECT_EQ(BinaryProblem(SmallWith(40, 4096)), "p: truncated: has 100 bytes, should have 65604");
  EXPECT_EQ(BinaryProblem(SmallWith(40, 4097)), "p: hidden = 4097: must be at most 4096");
}

TEST(PolicyBinary, RefusesMoreLayersThanANetworkMayHave) {
  MlpOptions options;
  options.hidden.assign(17, 1);
  EXPECT_EQ(BinaryProblem(PolicyToBinary(MakeMlp(options, 1, 5, 1))),
            "p: hidden = 17 integers: must be at most 16");
}

TEST(PolicyBinary, RefusesNumbersThatAreNotFinite) {
  for (const float bad : {kNaN, kInfinity, -kInfinity}) {
    Mlp mlp = MakeSmallNetwork();
    mlp.parameters[4] = bad;
    EXPECT_EQ(BinaryProblem(PolicyToBinary(mlp)),
              fmt::format("p: parameters[4] = {}: must be finite", bad));
    mlp = MakeSmallNetwork();
    mlp.input_scale[1] = bad;
    EXPECT_EQ(BinaryProblem(PolicyToBinary(mlp)),
              fmt::format("p: input_scale[1] = {}: must be finite", bad));
    mlp = MakeSmallNetwork();
    mlp.input_shift[0] = bad;
    EXPECT_EQ(BinaryProblem(PolicyToBinary(mlp)),
              fmt::format("p: input_shift[0] = {}: must be finite", bad));
  }
}

// ---------------------------------------------------------------------------------- JSON

TEST(PolicyJson, RefusesEveryTruncation) {
  const std::string text = PolicyToJson(MakeSmallNetwork());
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {  // the last bytes are "}\n"
    EXPECT_THAT(JsonProblem(text.substr(0, size)),
                AnyOf(HasSubstr("the JSON ends too early"), HasSubstr("not valid JSON")));
  }
}

TEST(PolicyJson, RefusesWhatIsNotAPolicy) {
  EXPECT_EQ(JsonProblem(""), "p: column 1: the JSON ends too early");
  EXPECT_EQ(JsonProblem("[]"), "p: []: must be an object");
  EXPECT_EQ(JsonProblem("{}"), R"(p: format: missing, must be "fedgen-policy")");
  EXPECT_EQ(JsonProblem(JsonWith("fedgen-policy", "fedgen-worlds")),
            R"(p: format = "fedgen-worlds": must be "fedgen-policy")");
  EXPECT_EQ(JsonProblem(JsonWith("\"version\": 1", "\"version\": 7")),
            "p: version = 7: this program reads version 1");
  EXPECT_EQ(JsonProblem(JsonWith("\"beams\": 2,", "\"beams\": 2;")),
            R"(p: line 4, column 13: not valid JSON after '  "beams": 2')");
  EXPECT_EQ(JsonProblem(JsonWith("\"hidden\": [2]", "\"hidden\": [[2]]")),
            "p: nested more than 2 levels deep");
}

TEST(PolicyJson, RefusesUnknownMissingAndRepeatedFields) {
  EXPECT_EQ(JsonProblem(JsonWith("\"beams\"", "\"beam\"")),
            "p: beam: unknown key, did you mean beams?");
  EXPECT_EQ(JsonProblem(JsonWith("  \"beams\": 2,\n", "")), "p: beams: missing");
  EXPECT_EQ(JsonProblem(JsonWith("\"beams\": 2", "\"beams\": 2, \"beams\": 2")),
            "p: beams: given twice");
}

TEST(PolicyJson, RefusesWrongValues) {
  EXPECT_EQ(JsonProblem(JsonWith("\"beams\": 2", "\"beams\": 2.0")),
            "p: beams = 2: must be an integer in 1..1024");
  EXPECT_EQ(JsonProblem(JsonWith("\"beams\": 2", "\"beams\": 1025")),
            "p: beams = 1025: must be an integer in 1..1024");
  EXPECT_EQ(JsonProblem(JsonWith("\"beams\": 2", "\"beams\": 18446744073709551615")),
            "p: beams = 18446744073709551615: must be an integer in 1..1024");
  EXPECT_EQ(JsonProblem(JsonWith("\"max_range\": 5", "\"max_range\": -5")),
            "p: max_range = -5.1: must be in (0, 1e4]");
  EXPECT_EQ(JsonProblem(JsonWith("\"control_limit\": ", "\"control_limit\": \"a\", \"\": ")),
            "p: : unknown key, did you mean beams?");
  EXPECT_EQ(JsonProblem(JsonWith("\"state_inputs\": false", "\"state_inputs\": 0")),
            "p: state_inputs = 0: must be true or false");
  EXPECT_EQ(
      JsonProblem(JsonWith("\"range_code\": \"scaled\"", "\"range_code\": \"scale\"")),
      R"(p: range_code = "scale": must be one of raw, scaled, inverse, did you mean scaled?)");
  EXPECT_EQ(JsonProblem(JsonWith("\"activation\": \"relu\"", "\"activation\": null")),
            "p: activation = null: must be one of relu, tanh");
  EXPECT_EQ(JsonProblem(JsonWith("\"output_map\": \"tanh\"", "\"output_map\": \"clip\"")),
            R"(p: output_map = "clip": must be one of clamp, tanh, did you mean clamp?)");
  EXPECT_EQ(JsonProblem(JsonWith("\"hidden\": [2]", "\"hidden\": 2")),
            "p: hidden = 2: must be an array");
  EXPECT_EQ(JsonProblem(JsonWith("\"hidden\": [2]", "\"hidden\": [0]")),
            "p: hidden[0] = 0: must be an integer in 1..4096");
  EXPECT_EQ(JsonProblem(JsonWith("\"hidden\": [2]", "\"hidden\": [3]")),
            "p: 9 parameters: a 2-3-1 network has 13");
  EXPECT_EQ(JsonProblem(JsonWith("\"input_shift\": [", "\"input_shift\": [0, ")),
            "p: input_scale has 2 and input_shift 3 numbers: must be 2 each");
  EXPECT_EQ(JsonProblem(JsonWith("\"parameters\": [", "\"parameters\": [0, ")),
            "p: 10 parameters: a 2-2-1 network has 9");
  EXPECT_EQ(JsonProblem(JsonWith("\"parameters\": [", "\"parameters\": [null, ")),
            "p: parameters[0] = null: must be a number");
  EXPECT_EQ(JsonProblem(JsonWith("\"parameters\": [", "\"parameters\": [-1e39, ")),
            "p: parameters[0] = -1e+39: must fit a 32-bit float");
}

TEST(PolicyJson, RefusesNumbersThatAreNotFinite) {
  // JSON has no such numbers; the writer's library puts null in their place.
  for (const float bad : {kNaN, kInfinity, -kInfinity}) {
    Mlp mlp = MakeSmallNetwork();
    mlp.parameters[4] = bad;
    EXPECT_EQ(JsonProblem(PolicyToJson(mlp)), "p: parameters[4] = null: must be a number");
  }
  EXPECT_THAT(JsonProblem(JsonWith("\"parameters\": [", "\"parameters\": [1e999, ")),
              HasSubstr("1e999: number too large"));
  EXPECT_THAT(JsonProblem(JsonWith("\"parameters\": [", "\"parameters\": [NaN, ")),
              HasSubstr("not valid JSON after"));
}

TEST(PolicyJson, QuotesHostileTextShortAndPrintable) {
  std::string shown;
  for (int byte = 0; byte < 40; ++byte) shown += "\\x7f";
  EXPECT_EQ(JsonProblem(JsonWith("scaled", std::string(1'000'000, '\x7f'))),
            "p: range_code = \"" + shown +
                "...\": must be one of raw, scaled, inverse, did you mean raw?");
}

}  // namespace
}  // namespace fedgen
