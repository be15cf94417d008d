// SPDX-License-Identifier: Apache-2.0
#include "fedgen/policy/policy_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "fedgen/base/file_testing.h"
#include "fedgen/policy/mlp_kernel.h"

namespace fedgen {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// A body with a number of its own in every place.
Body MakeBody(RobotOptions::Kind kind, int num_beams) {
  Body body{{num_beams, 5.1, -70.1, 50.2}, {kind, 2.1, 0.31}, 0.0625};
  if (kind == RobotOptions::Kind::kCar) {
    body.robot.length = 0.11;
    body.robot.steering_limit_degrees = 40.3;
  } else {
    body.robot.turn_rate_limit = 4.7;
  }
  return body;
}

// A network with a number of its own in every place.
Mlp MakeNetwork(const MlpOptions& options, int num_beams, std::uint64_t seed) {
  Mlp mlp = MakeMlp(options, num_beams, 5.1, 0.7);
  if (seed % 3 != 0) {
    mlp = MakeMlp(options, MakeBody(static_cast<RobotOptions::Kind>(seed % 3 - 1), num_beams));
  }
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

// 2 beams, 2 hidden: 2-2-1, 9 parameters, made for a differential drive: 40 + 4 + 4 + 4 * (2 + 2 +
// 9) + 4 + 7 * 8 + 4 = 164 bytes. What it was made for begins at byte 100.
Mlp MakeSmallNetwork() {
  MlpOptions options;
  options.hidden = {2};
  options.state_inputs = false;
  return MakeNetwork(options, 2, 5);
}
constexpr std::size_t kSmallBytes = 164;
constexpr std::size_t kSmallBody = 100;

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
  EXPECT_EQ(a.made_for.has_value(), b.made_for.has_value());
  if (a.made_for && b.made_for) {
    EXPECT_EQ(FindDifferences(*a.made_for, *b.made_for), std::nullopt);
  }
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
  const std::string head("FGP\x01\r\n\x1a\n\x02\0\0\0\x02\0\0\0\0\0\x80\x3f", 20);
  EXPECT_EQ(bytes.substr(0, 20), head);
  // After range_offset: no state, no goal, scaled ranges, relu, tanh; one hidden layer, one output;
  // the layer has two units.
  EXPECT_EQ(bytes.substr(24, 20),
            std::string("\0\0\x01\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\x02\0\0\0", 20));
  // Made for a differential drive. The last of its numbers is the time step, 1/16 s.
  EXPECT_EQ(bytes.substr(kSmallBody, 4), std::string("\x02\0\0\0", 4));
  EXPECT_EQ(bytes.substr(kSmallBytes - 12, 8), std::string("\0\0\0\0\0\0\xb0\x3f", 8));
  // The network's own bytes are those between, with 0 for -0.
  mlp.range_offset = 0;
  Mlp positive = mlp;
  for (float& shift : positive.input_shift) shift += 0.0F;
  EXPECT_NE(PolicyToBinary(positive), PolicyToBinary(mlp)) << "it has a -0";
  EXPECT_EQ(NetworkBytes(mlp), NetworkBytes(positive));
  EXPECT_EQ(NetworkBytes(mlp), PolicyToBinary(positive).substr(12, kSmallBody - 12));
}

// Files of version 1 that are in the world.
TEST(PolicyFile, ReadsVersion1) {
  for (const char* name : {"default.fgp", "linear.fgp", "small.fgp"}) {
    const std::string stored =
        *ReadFile(std::string(FEDGEN_SOURCE_DIR "/fuzz/corpus/policy/") + name, 1 << 20);
    const Result<Mlp> mlp = ParsePolicy(stored, name);
    ASSERT_TRUE(mlp) << mlp.error().message;
    EXPECT_FALSE(mlp->made_for) << "it does not say";
    EXPECT_TRUE(PolicyToBinaryV1(*mlp) == stored) << name;
    // ... and keeps every bit in version 2.
    const Result<Mlp> again = ParsePolicy(PolicyToBinary(*mlp), name);
    ASSERT_TRUE(again);
    ExpectSame(*again, *mlp);
    EXPECT_TRUE(PolicyToBinaryV1(*again) == stored) << name;
    for (std::size_t bit = 0; bit < 8 * std::min<std::size_t>(stored.size(), 300); ++bit) {
      std::string flipped = stored;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
      EXPECT_FALSE(ParsePolicy(flipped, name)) << name << ", bit " << bit;
    }
  }
  const std::string json = *ReadFile(FEDGEN_SOURCE_DIR "/fuzz/corpus/policy/small.json", 1 << 20);
  const std::string binary = *ReadFile(FEDGEN_SOURCE_DIR "/fuzz/corpus/policy/small.fgp", 1 << 20);
  const Result<Mlp> from_json = ParsePolicy(json, "small.json");
  ASSERT_TRUE(from_json) << from_json.error().message;
  EXPECT_TRUE(PolicyToBinaryV1(*from_json) == binary);
}

// Who decides alike has the same bytes, and who does not has others.
TEST(NetworkBytes, HoldWhatActsAndNothingElse) {
  for (const RangeCode code : {RangeCode::kRaw, RangeCode::kScaled, RangeCode::kInverse}) {
    MlpOptions options;
    options.hidden = {2};
    options.range_code = code;
    const Mlp mlp = MakeNetwork(options, 3, 4);
    const auto changes = [&](auto change) {
      Mlp changed = mlp;
      change(changed);
      return NetworkBytes(changed) != NetworkBytes(mlp);
    };
    EXPECT_FALSE(changes([](Mlp& m) { m.made_for.reset(); }));
    EXPECT_FALSE(changes([](Mlp& m) { m.made_for->time_step = 1; }));
    EXPECT_EQ(changes([](Mlp& m) { m.max_range = 6; }), code == RangeCode::kScaled);
    EXPECT_EQ(changes([](Mlp& m) { m.range_offset = 6; }), code == RangeCode::kInverse);
    EXPECT_TRUE(changes([](Mlp& m) { m.control_limit = 6; }));
    EXPECT_TRUE(changes([](Mlp& m) { m.activation = Activation::kTanh; }));
    EXPECT_TRUE(changes([](Mlp& m) { m.output_map = OutputMap::kClamp; }));
    EXPECT_TRUE(changes([](Mlp& m) { m.input_scale[1] = 6; }));
    EXPECT_TRUE(changes([](Mlp& m) { m.input_shift[1] = 6; }));
    EXPECT_TRUE(changes([](Mlp& m) { m.parameters[1] = 6; }));
  }
  MlpOptions options;
  options.hidden = {};
  Mlp linear = MakeNetwork(options, 3, 4);
  const std::string bytes = NetworkBytes(linear);
  linear.activation = Activation::kTanh;
  EXPECT_EQ(NetworkBytes(linear), bytes) << "there is nothing to activate";
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
  "version": 2,
  "beams": 1,
  "max_range": 5.0,
  "state_inputs": false,
  "goal_inputs": false,
  "range_code": "scaled",
  "range_offset": 0.5,
  "activation": "relu",
  "output_map": "tanh",
  "hidden": [],
  "outputs": [{"control_limit":0.25}],
  "input_scale": [1.0],
  "input_shift": [0.0],
  "parameters": [1.5,-2.0]
}
)");
  mlp.made_for = MakeBody(RobotOptions::Kind::kCar, 1);
  EXPECT_THAT(PolicyToJson(mlp), HasSubstr(R"(
  "made_for": {"lidar":{"range":5.1,"from_degrees":-70.1,"to_degrees":50.2},)"
                                           R"("robot":{"kind":"car","speed":2.1,"radius":0.31,)"
                                           R"("length":0.11,"steering_limit_degrees":40.3},)"
                                           R"("episode":{"time_step":0.0625}}
}
)"));
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

// ---------------------------------------------------------------------------------- documents

// A row of a Markdown table, cell by cell.
std::vector<std::string> Cells(const std::string& row) {
  std::vector<std::string> cells;
  std::istringstream rest(row.substr(1));
  for (std::string cell; std::getline(rest, cell, '|');) {
    cells.push_back(cell.substr(1, cell.size() - 2));
  }
  return cells;
}

// The worked example of docs/formats.md: its policy, what the robot senses, and its arithmetic.
struct WorkedExample {
  std::string policy;
  std::vector<std::vector<std::string>> rows;  // of the table, one per input
  std::string text;
};
WorkedExample ReadWorkedExample() {
  WorkedExample example;
  std::ifstream file(FEDGEN_SOURCE_DIR "/docs/formats.md");
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) inside = line == "### A worked example";
    if (!inside) continue;
    if (line.starts_with("    ")) {
      example.policy += line + "\n";
    } else if (line.starts_with("| ") && !line.starts_with("| input")) {
      example.rows.push_back(Cells(line));
    } else {
      example.text += line + " ";
    }
  }
  return example;
}

TEST(PolicyFile, ComputesTheWorkedExampleOfItsDocument) {
  const WorkedExample example = ReadWorkedExample();
  const Result<Mlp> mlp = ParsePolicy(example.policy, "docs/formats.md");
  ASSERT_TRUE(mlp) << mlp.error().message;
  ASSERT_TRUE(mlp->made_for);
  ASSERT_EQ(example.rows.size(), static_cast<std::size_t>(mlp->num_inputs()));
  const Lidar lidar(mlp->made_for->lidar);
  Batch batch(1, lidar);
  float* const places[] = {batch.x.data(),
                           batch.y.data(),
                           batch.sin.data(),
                           batch.cos.data(),
                           batch.goal_forward.data(),
                           batch.goal_left.data(),
                           batch.ranges.data(),
                           batch.ranges.data() + 1};
  float sum = mlp->parameters[8];
  for (std::size_t input = 0; input < example.rows.size(); ++input) {
    const std::vector<std::string>& row = example.rows[input];
    *places[input] = std::stof(row.at(1));
    EXPECT_EQ(std::stof(row.at(3)),
              std::stof(row.at(2)) * mlp->input_scale[input] + mlp->input_shift[input]);
    EXPECT_EQ(std::stof(row.at(4)), mlp->parameters[input]);
    EXPECT_EQ(std::stof(row.at(5)), std::stof(row.at(3)) * std::stof(row.at(4)));
    sum += std::stof(row.at(5));
  }
  EXPECT_THAT(example.text, HasSubstr(fmt::format("add up to {}, ", sum)));
  const float control = mlp->parameters[9] * std::max(sum, 0.0F) + mlp->parameters[10];
  EXPECT_THAT(example.text, HasSubstr(fmt::format("The control is u = {} rad/s", control)));

  // What drives says the same.
  for (const Kernel kernel : {Kernel::kScalar, BestKernel()}) {
    std::vector<float> encoded(example.rows.size());
    RawInputs(kernel, *mlp, batch, 0, encoded);
    for (std::size_t input = 0; input < encoded.size(); ++input) {
      EXPECT_EQ(encoded[input], std::stof(example.rows[input].at(2))) << example.rows[input].at(0);
    }
    MlpWorkspace workspace(*mlp);
    DecideMlp(kernel, *mlp, 1, workspace, batch);
    EXPECT_EQ(batch.control[0], control);
    EXPECT_EQ(batch.control[0], -0.34375F);
  }
}

// ---------------------------------------------------------------------------------- binary

TEST(PolicyBinary, RefusesEveryTruncation) {
  const std::string bytes = PolicyToBinary(MakeSmallNetwork());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const char* rule = size < 44    ? "at least 44"
                       : size < 52  ? "at least 52"
                       : size < 108 ? "at least 108"
                                    : "164";
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
  EXPECT_EQ(BinaryProblem(SmallWith(8, 7)), "p: version 7: this program reads versions 1 and 2");
  EXPECT_EQ(BinaryProblem(SmallWith(8, 0)), "p: version 0: this program reads versions 1 and 2");
  EXPECT_EQ(BinaryProblem(PolicyToBinary(MakeSmallNetwork()) + "\n"),
            "p: has 165 bytes, should have 164: something follows the policy");
}

TEST(PolicyBinary, RefusesHeadersThatAreWrongUnderARightChecksum) {
  ASSERT_EQ(BinaryProblem(SmallWith(12, 2)), "(no error)");
  EXPECT_EQ(BinaryProblem(SmallWith(12, 0)), "p: made_for = 3203995255: must be in 0..2");
  EXPECT_EQ(BinaryProblem(SmallWith(12, 99)),
            "p: truncated: has 164 bytes, should have at least 1660");
  EXPECT_EQ(BinaryProblem(SmallWith(12, 4097)), "p: beams = 4097: must be at most 4096");
  EXPECT_EQ(BinaryProblem(SmallWith(12, 0xFFFFFFFF)),
            "p: beams = 4294967295: must be at most 4096");
  EXPECT_EQ(BinaryProblem(SmallWith(16, 0)), "p: max_range = 0: must be in (0, 1e4]");
  EXPECT_EQ(BinaryProblem(SmallWith(44, std::bit_cast<std::uint32_t>(kInfinity))),
            "p: control_limit = inf: must be in (0, 1e4]");
  EXPECT_EQ(BinaryProblem(SmallWith(20, std::bit_cast<std::uint32_t>(kNaN))),
            "p: range_offset = nan: must be in (0, 1e4]");
  EXPECT_EQ(BinaryProblem(SmallWith(24, 0x00000002)), "p: state_inputs = 2: must be in 0..1");
  EXPECT_EQ(BinaryProblem(SmallWith(24, 0x0000FF00)), "p: goal_inputs = 255: must be in 0..1");
  EXPECT_EQ(BinaryProblem(SmallWith(24, 0x00030000)), "p: range_code = 3: must be in 0..2");
  EXPECT_EQ(BinaryProblem(SmallWith(24, 0x02000000)), "p: activation = 2: must be in 0..1");
  EXPECT_EQ(BinaryProblem(SmallWith(28, 0x00000002)), "p: output_map = 2: must be in 0..1");
  EXPECT_EQ(BinaryProblem(SmallWith(28, 0x01000000)), "p: byte 31: must be zero");
  EXPECT_EQ(BinaryProblem(SmallWith(32, 0x7FFFFFFF)),
            "p: hidden layers = 2147483647: must be at most 4096");
  // Sizes that a hostile header may claim cost no memory: the file is too short for them.
  EXPECT_EQ(BinaryProblem(SmallWith(32, 4096)),
            "p: truncated: has 164 bytes, should have at least 16432");
  EXPECT_EQ(BinaryProblem(SmallWith(40, 4096)),
            "p: truncated: has 164 bytes, should have at least 65612");
  EXPECT_EQ(BinaryProblem(SmallWith(40, 4097)), "p: hidden = 4097: must be at most 4096");
}

// Room for several, which nobody drives yet.
TEST(PolicyFile, RefusesAnotherNumberOfOutputs) {
  const std::string rule = ": must be 1, a robot is steered by one number";
  EXPECT_EQ(BinaryProblem(SmallWith(36, 2)), "p: outputs = 2" + rule);
  EXPECT_EQ(BinaryProblem(SmallWith(36, 0)), "p: outputs = 0" + rule);
  EXPECT_EQ(JsonProblem(JsonWith("\"outputs\": [", "\"outputs\": [{\"control_limit\": 1}, ")),
            "p: outputs = 2" + rule);
  EXPECT_EQ(JsonProblem(JsonWith("\"outputs\": [", "\"outputs\": [], \"\": [")),
            "p: : unknown key");
}

// What it was made for must be a body, and the one that the network is scaled for.
TEST(PolicyFile, RefusesToBeMadeForWhatIsNoBody) {
  EXPECT_EQ(BinaryProblem(SmallWith(kSmallBody, 3)), "p: made_for = 3: must be in 0..2");
  EXPECT_EQ(BinaryProblem(SmallWith(kSmallBody, 0)),
            "p: has 164 bytes, should have 108: something follows the policy");
  EXPECT_EQ(BinaryProblem(SmallWith(kSmallBody, 1)),
            "p: truncated: has 164 bytes, should have 172");
  const auto problem = [](auto change) {
    Mlp mlp = MakeSmallNetwork();
    change(*mlp.made_for);
    const std::string from_binary = BinaryProblem(PolicyToBinary(mlp));
    EXPECT_EQ(JsonProblem(PolicyToJson(mlp)), from_binary);
    return from_binary;
  };
  EXPECT_EQ(problem([](Body& b) { b.lidar.range = 5.2; }),
            "p: made_for: policy expects a range of 5.1 m, lidar.range = 5.2");
  EXPECT_EQ(problem([](Body& b) { b.lidar.from_degrees = -181; }),
            "p: made_for.lidar.from_degrees = -181: must be in [-180, 180]");
  EXPECT_EQ(problem([](Body& b) { b.robot.turn_rate_limit = 4; }),
            "p: made_for: policy steers within +-4.7, the robot within +-4");
  EXPECT_EQ(problem([](Body& b) { b.robot.speed = 0; }),
            "p: made_for.robot.speed = 0: must be in [0.001, 1e4]");
  EXPECT_EQ(problem([](Body& b) { b.time_step = -1; }),
            "p: made_for.episode.time_step = -1: must be in (0, 10]");
  Mlp mlp = MakeSmallNetwork();
  mlp.made_for->time_step = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(BinaryProblem(PolicyToBinary(mlp)),
            "p: made_for.episode.time_step = nan: must be in (0, 10]");
  // In JSON: every key of this kind of robot and no other.
  EXPECT_EQ(JsonProblem(JsonWith("\"kind\":\"differential\"", "\"kind\":\"car\"")),
            "p: made_for.robot.turn_rate_limit: unknown key");
  EXPECT_EQ(JsonProblem(JsonWith("\"kind\":\"differential\",", "")),
            "p: made_for.robot.kind: missing");
  EXPECT_EQ(JsonProblem(JsonWith("\"time_step\":", "\"timestep\":")),
            "p: made_for.episode.timestep: unknown key, did you mean time_step?");
  EXPECT_EQ(JsonProblem(JsonWith("\"speed\":2.1", "\"speed\":\"fast\"")),
            "p: made_for.robot.speed = \"fast\": must be a number");
  EXPECT_EQ(JsonProblem(JsonWith("\"made_for\": {", "\"made_for\": 1, \"\": {")),
            "p: : unknown key");
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
  EXPECT_EQ(JsonProblem(JsonWith("\"version\": 2", "\"version\": 7")),
            "p: version = 7: this program reads version 2");
  EXPECT_EQ(JsonProblem(JsonWith("\"beams\": 2,", "\"beams\": 2;")),
            R"(p: line 4, column 13: not valid JSON after '  "beams": 2')");
  EXPECT_EQ(JsonProblem(JsonWith("\"hidden\": [2]", "\"hidden\": [[[2]]]")),
            "p: nested more than 3 levels deep");
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
            "p: beams = 2 (with a point or exponent): must be an integer in 1..1024");
  EXPECT_EQ(JsonProblem(JsonWith("\"beams\": 2", "\"beams\": 1025")),
            "p: beams = 1025: must be an integer in 1..1024");
  EXPECT_EQ(JsonProblem(JsonWith("\"beams\": 2", "\"beams\": 18446744073709551615")),
            "p: beams = 18446744073709551615: must be an integer in 1..1024");
  EXPECT_EQ(JsonProblem(JsonWith("\"max_range\": 5", "\"max_range\": -5")),
            "p: max_range = -5.1: must be in (0, 1e4]");
  EXPECT_EQ(JsonProblem(JsonWith("\"control_limit\":", "\"control_limit\": \"a\", \"\": ")),
            "p: outputs[0].: unknown key");
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
            "p: range_code = \"" + shown + "...\": must be one of raw, scaled, inverse");
}

}  // namespace
}  // namespace fedgen
