// SPDX-License-Identifier: Apache-2.0
#include "fedgen/policy/policy_file.h"

#include <zlib.h>

#include <array>
#include <bit>
#include <cstdint>
#include <map>

#include "fedgen/base/json-inl.h"
#include "fedgen/base/text.h"

namespace fedgen {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;

Error Refuse(const std::string& name, const std::string& problem) {
  return {ErrorCode::kData, fmt::format("{}: {}", name, problem)};
}

// ---------------------------------------------------------------------------------- binary
//
//   offset  bytes  version 2                         version 1
//        0      8  magic                             the same
//        8      4  version
//       12      4  beams                             the same
//       16      8  max_range, range_offset           12: max_range, control_limit, range_offset
//       24      8  state_inputs, goal_inputs, range_code, activation, output_map, three zeros
//       32      4  number of hidden layers           the same
//       36      4  number of outputs, 1              (none)
//       40         sizes of the hidden layers        the same
//                  control_limit of each output      (none)
//                  input_scale, input_shift, parameters: 4 bytes each
//               4  made for: 0 unknown, 1 car,       (none)
//                  2 differential
//                  the numbers of the body it was    (none)
//                  made for: 8 bytes each
//      end      4  CRC-32 of everything before
//
// Integers are unsigned, numbers IEEE 754 binary32 (the body's binary64), all little endian.

// The line ends and the end-of-file mark show at once if a transfer took the file for text.
constexpr std::string_view kMagic("FGP\x01\r\n\x1a\n", 8);
constexpr std::uint32_t kVersion = 2;
constexpr std::uint32_t kOldVersion = 1;
constexpr std::size_t kHeaderBytes = 40;  // before the sizes of the hidden layers
constexpr std::size_t kChecksumBytes = 4;

std::uint32_t Checksum(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

void Append(std::uint32_t value, std::string& bytes) {
  for (int shift = 0; shift < 32; shift += 8) {
    bytes += static_cast<char>(static_cast<unsigned char>(value >> shift));
  }
}

void Append(double value, std::string& bytes) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  Append(static_cast<std::uint32_t>(bits), bytes);
  Append(static_cast<std::uint32_t>(bits >> 32), bytes);
}

void Append(std::span<const float> values, std::string& bytes) {
  for (const float value : values) Append(std::bit_cast<std::uint32_t>(value), bytes);
}

// Takes numbers off the front of bytes that are known to be there.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  std::uint8_t TakeByte() {
    const auto byte = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return byte;
  }
  std::uint32_t TakeInt() {
    std::uint32_t value = 0;
    for (int shift = 0; shift < 32; shift += 8) value |= std::uint32_t{TakeByte()} << shift;
    return value;
  }
  float TakeFloat() { return std::bit_cast<float>(TakeInt()); }
  double TakeDouble() {
    const std::uint64_t low = TakeInt();
    return std::bit_cast<double>(std::uint64_t{TakeInt()} << 32 | low);
  }
  std::vector<float> TakeFloats(std::size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = TakeFloat();
    return values;
  }

 private:
  std::string_view rest_;
};

std::string Truncated(std::size_t has, std::size_t needs, const char* at_least) {
  return fmt::format("truncated: has {} bytes, should have {}{}", has, at_least, needs);
}

// A byte that stands for one of `count` choices.
Problem ReadChoice(ByteReader& reader, const char* field, int count, std::uint8_t& choice) {
  choice = reader.TakeByte();
  if (choice < count) return std::nullopt;
  return fmt::format("{} = {}: must be in 0..{}", field, choice, count - 1);
}

// A count or size. FindProblem knows its range; this only keeps sums of products of such from
// overflowing before it is asked.
Problem ReadSize(ByteReader& reader, const char* field, int& size) {
  constexpr std::uint32_t kLargest = 4096;
  const std::uint32_t value = reader.TakeInt();
  size = static_cast<int>(value);
  if (value <= kLargest) return std::nullopt;
  return fmt::format("{} = {}: must be at most {}", field, value, kLargest);
}

// state_inputs to output_map, and the zeros behind them, which begin at byte `at`.
Problem ReadCodes(ByteReader& reader, int at, Mlp& mlp) {
  std::array<std::uint8_t, 5> choices{};
  constexpr std::array<std::pair<const char*, int>, 5> kChoices = {{{"state_inputs", 2},
                                                                    {"goal_inputs", 2},
                                                                    {"range_code", 3},
                                                                    {"activation", 2},
                                                                    {"output_map", 2}}};
  for (std::size_t index = 0; index < choices.size(); ++index) {
    const auto& [field, count] = kChoices[index];
    if (Problem problem = ReadChoice(reader, field, count, choices[index])) return problem;
  }
  mlp.state_inputs = choices[0] != 0;
  mlp.goal_inputs = choices[1] != 0;
  mlp.range_code = static_cast<RangeCode>(choices[2]);
  mlp.activation = static_cast<Activation>(choices[3]);
  mlp.output_map = static_cast<OutputMap>(choices[4]);
  for (int spare = at; spare < at + 3; ++spare) {
    if (reader.TakeByte() != 0) return fmt::format("byte {}: must be zero", spare);
  }
  return std::nullopt;
}

std::string OtherOutputs(std::uint64_t count) {
  return fmt::format("outputs = {}: must be 1, a robot is steered by one number", count);
}

// Everything up to the normalisation. Afterwards `reader` stands there.
Problem ReadBinaryHeader(std::string_view bytes, std::uint32_t version, ByteReader& reader,
                         Mlp& mlp) {
  if (Problem problem = ReadSize(reader, "beams", mlp.num_beams)) return problem;
  mlp.max_range = reader.TakeFloat();
  if (version == kOldVersion) mlp.control_limit = reader.TakeFloat();
  mlp.range_offset = reader.TakeFloat();
  if (Problem problem = ReadCodes(reader, version == kOldVersion ? 33 : 29, mlp)) return problem;

  int num_hidden = 0;
  if (Problem problem = ReadSize(reader, "hidden layers", num_hidden)) return problem;
  std::size_t words = static_cast<std::size_t>(num_hidden);
  if (version != kOldVersion) {
    if (const std::uint32_t outputs = reader.TakeInt(); outputs != 1) return OtherOutputs(outputs);
    words += 1;
  }
  const std::size_t needs = kHeaderBytes + sizeof(std::uint32_t) * words + kChecksumBytes;
  if (bytes.size() < needs) return Truncated(bytes.size(), needs, "at least ");
  mlp.hidden.resize(static_cast<std::size_t>(num_hidden));
  for (int& size : mlp.hidden) {
    if (Problem problem = ReadSize(reader, "hidden", size)) return problem;
  }
  if (version != kOldVersion) mlp.control_limit = reader.TakeFloat();
  return std::nullopt;
}

// How many bytes the part of the body has, behind the word that says its kind.
std::size_t BodyBytes(const std::optional<Body>& body) {
  std::size_t bytes = 0;
  if (body) VisitNumbers(*body, [&](auto, auto, double) { bytes += sizeof(double); });
  return bytes;
}

Problem ReadBodyKind(std::string_view bytes, std::size_t at, Mlp& mlp) {
  constexpr std::size_t kWord = sizeof(std::uint32_t);
  if (bytes.size() < at + kWord + kChecksumBytes) {
    return Truncated(bytes.size(), at + kWord + kChecksumBytes, "at least ");
  }
  const std::uint32_t kind = ByteReader(bytes.substr(at)).TakeInt();
  if (kind > kWords<RobotOptions::Kind>.size()) {
    return fmt::format("made_for = {}: must be in 0..{}", kind, kWords<RobotOptions::Kind>.size());
  }
  if (kind == 0) return std::nullopt;
  mlp.made_for.emplace();
  mlp.made_for->robot.kind = static_cast<RobotOptions::Kind>(kind - 1);
  mlp.made_for->lidar.beams = mlp.num_beams;
  return std::nullopt;
}

Problem ReadBinary(std::string_view bytes, Mlp& mlp) {
  const std::string_view magic = bytes.substr(0, kMagic.size());
  if (!kMagic.starts_with(magic)) {
    return fmt::format("starts with '{}': not an .fgp policy", Printable(magic));
  }
  if (bytes.size() < kMagic.size() + sizeof kVersion) {
    return Truncated(bytes.size(), kHeaderBytes + kChecksumBytes, "at least ");
  }
  ByteReader reader(bytes.substr(kMagic.size()));
  const std::uint32_t version = reader.TakeInt();
  if (version != kVersion && version != kOldVersion) {
    return fmt::format("version {}: this program reads versions {} and {}", version, kOldVersion,
                       kVersion);
  }
  if (bytes.size() < kHeaderBytes + kChecksumBytes) {
    return Truncated(bytes.size(), kHeaderBytes + kChecksumBytes, "at least ");
  }
  if (Problem problem = ReadBinaryHeader(bytes, version, reader, mlp)) return problem;

  // The header says how long the file is. Only if it is, memory is taken for its numbers.
  const auto num_inputs = static_cast<std::size_t>(mlp.num_inputs());
  const bool old = version == kOldVersion;
  const std::size_t words = mlp.hidden.size() + (old ? 0 : 1) + 2 * num_inputs + NumParameters(mlp);
  std::size_t needs = kHeaderBytes + sizeof(float) * words;
  if (!old) {
    if (Problem problem = ReadBodyKind(bytes, needs, mlp)) return problem;
    needs += sizeof(std::uint32_t) + BodyBytes(mlp.made_for);
  }
  needs += kChecksumBytes;
  if (bytes.size() < needs) return Truncated(bytes.size(), needs, "");
  if (bytes.size() > needs) {
    return fmt::format("has {} bytes, should have {}: something follows the policy", bytes.size(),
                       needs);
  }
  const std::uint32_t stored = ByteReader(bytes.substr(needs - kChecksumBytes)).TakeInt();
  const std::uint32_t computed = Checksum(bytes.substr(0, needs - kChecksumBytes));
  if (stored != computed) {
    return fmt::format("checksum {:08x}, should be {:08x}: the file was altered", computed, stored);
  }
  mlp.input_scale = reader.TakeFloats(num_inputs);
  mlp.input_shift = reader.TakeFloats(num_inputs);
  mlp.parameters = reader.TakeFloats(NumParameters(mlp));
  if (mlp.made_for) {
    reader.TakeInt();  // its kind, known
    VisitNumbers(*mlp.made_for, [&](auto, auto, double& number) { number = reader.TakeDouble(); });
  }
  return FindProblem(mlp);
}

std::string Head(std::uint32_t version) {
  std::string bytes(kMagic);
  Append(version, bytes);
  return bytes;
}

std::string WithChecksum(std::string bytes) {
  Append(Checksum(bytes), bytes);
  return bytes;
}

void AppendCodes(const Mlp& mlp, std::string& bytes) {
  for (const int choice : {static_cast<int>(mlp.state_inputs), static_cast<int>(mlp.goal_inputs),
                           static_cast<int>(mlp.range_code), static_cast<int>(mlp.activation),
                           static_cast<int>(mlp.output_map), 0, 0, 0}) {
    bytes += static_cast<char>(choice);
  }
}

void AppendSizes(const Mlp& mlp, std::string& bytes) {
  for (const int size : mlp.hidden) Append(static_cast<std::uint32_t>(size), bytes);
}

void AppendNumbers(const Mlp& mlp, std::string& bytes) {
  Append(mlp.input_scale, bytes);
  Append(mlp.input_shift, bytes);
  Append(mlp.parameters, bytes);
}

// The part of version 2 that is the network: beams to parameters.
std::string NetworkPart(const Mlp& mlp) {
  std::string bytes;
  Append(static_cast<std::uint32_t>(mlp.num_beams), bytes);
  Append(std::array{mlp.max_range, mlp.range_offset}, bytes);
  AppendCodes(mlp, bytes);
  Append(static_cast<std::uint32_t>(mlp.hidden.size()), bytes);
  Append(std::uint32_t{1}, bytes);  // outputs
  AppendSizes(mlp, bytes);
  Append(std::array{mlp.control_limit}, bytes);
  AppendNumbers(mlp, bytes);
  return bytes;
}

// ---------------------------------------------------------------------------------- JSON

constexpr const char* kJsonFormat = "fedgen-policy";

// The form for people has a size people can bear; larger networks have the binary form.
constexpr std::size_t kMaxJsonParameters = std::size_t{1} << 22;
constexpr std::size_t kMaxJsonBytes = std::size_t{1} << 27;
constexpr JsonLimits kJsonLimits{.max_depth = 3, .max_values = kMaxJsonParameters + 4096};

// Prefixes the name of the field to `value: rule`.
Problem Named(const std::string& field, const Problem& problem) {
  if (!problem) return std::nullopt;
  return fmt::format("{} = {}", field, *problem);
}

Problem ReadBool(const Json& json, bool& value) {
  if (!json.is_boolean()) return Describe(json) + ": must be true or false";
  value = json.get<bool>();
  return std::nullopt;
}

// An array; `read` takes one entry as ReadFloat does.
template <typename T, typename Read>
Problem ReadList(const Json& document, const char* field, std::vector<T>& values,
                 const Read& read) {
  const Json& json = *FindField(document, field);
  if (!json.is_array()) return fmt::format("{} = {}: must be an array", field, Describe(json));
  values.resize(json.size());
  for (std::size_t index = 0; index < values.size(); ++index) {
    if (const Problem problem = read(json[index], values[index])) {
      return fmt::format("{}[{}] = {}", field, index, *problem);
    }
  }
  return std::nullopt;
}

Problem ReadNumber(const Json& json, double& number) {
  if (!json.is_number()) return Describe(json) + ": must be a number";
  number = json.get<double>();
  return std::nullopt;
}

// "made_for": the groups and keys that a configuration has for a body.
Problem ReadBody(const Json& json, Body& body) {
  if (Problem problem = CheckFields(json, "made_for", {"lidar", "robot", "episode"}))
    return problem;
  const Json& robot = *FindField(json, "robot");
  const Json* const kind = robot.is_object() ? FindField(robot, "kind") : nullptr;
  if (kind == nullptr) return "made_for.robot.kind: missing";
  if (Problem problem = ReadEnum(*kind, kWords<RobotOptions::Kind>, body.robot.kind)) {
    return Named("made_for.robot.kind", problem);
  }
  std::map<std::string, std::vector<std::string>> keys = {{"robot", {"kind"}}};
  VisitNumbers(
      body, [&](const char* group, const char* name, double) { keys[group].emplace_back(name); });
  for (const auto& [group, names] : keys) {
    const Json& fields = *FindField(json, group.c_str());
    if (Problem problem = CheckFields(fields, "made_for." + group, names)) return problem;
  }
  Problem first;
  VisitNumbers(body, [&](const char* group, const char* name, double& number) {
    const Problem problem = ReadNumber(*FindField(*FindField(json, group), name), number);
    if (!first) first = Named(fmt::format("made_for.{}.{}", group, name), problem);
  });
  return first;
}

Problem ReadOutputs(const Json& json, Mlp& mlp) {
  if (!json.is_array()) return fmt::format("outputs = {}: must be an array", Describe(json));
  if (json.size() != 1) return OtherOutputs(json.size());
  if (Problem problem = CheckFields(json[0], "outputs[0]", {"control_limit"})) return problem;
  return Named("outputs[0].control_limit",
               ReadFloat(*FindField(json[0], "control_limit"), mlp.control_limit));
}

// `format`, `version` and the names of all other fields.
Problem CheckJson(const Json& json, bool& old) {
  const Json* const version = json.is_object() ? FindField(json, "version") : nullptr;
  old = version != nullptr && *version == static_cast<int>(kOldVersion);
  const auto reads = static_cast<int>(old ? kOldVersion : kVersion);
  if (Problem problem = CheckFormat(json, kJsonFormat, reads)) return problem;
  std::vector<std::string> fields = {"format",       "version",     "beams",      "max_range",
                                     "state_inputs", "goal_inputs", "range_code", "range_offset",
                                     "activation",   "output_map",  "hidden",     "input_scale",
                                     "input_shift",  "parameters"};
  fields.emplace_back(old ? "control_limit" : "outputs");
  std::vector<std::string> optional;
  if (!old) optional.emplace_back("made_for");
  return CheckFields(json, "", fields, optional);
}

Problem ReadJson(std::string_view text, Mlp& mlp) {
  if (text.size() > kMaxJsonBytes) {
    return fmt::format("{} bytes of JSON: must be at most {}", text.size(), kMaxJsonBytes);
  }
  Json json;
  bool old = false;
  if (Problem problem = ParseJson(text, kJsonLimits, json)) return problem;
  if (Problem problem = CheckJson(json, old)) return problem;

  const auto field = [&json](const char* name) -> const Json& { return *FindField(json, name); };
  for (const Problem& problem : {
           Named("beams", ReadInt(field("beams"), 1, 1024, mlp.num_beams)),
           Named("max_range", ReadFloat(field("max_range"), mlp.max_range)),
           old ? Named("control_limit", ReadFloat(field("control_limit"), mlp.control_limit))
               : ReadOutputs(field("outputs"), mlp),
           Named("state_inputs", ReadBool(field("state_inputs"), mlp.state_inputs)),
           Named("goal_inputs", ReadBool(field("goal_inputs"), mlp.goal_inputs)),
           Named("range_code", ReadEnum(field("range_code"), kWords<RangeCode>, mlp.range_code)),
           Named("range_offset", ReadFloat(field("range_offset"), mlp.range_offset)),
           Named("activation", ReadEnum(field("activation"), kWords<Activation>, mlp.activation)),
           Named("output_map", ReadEnum(field("output_map"), kWords<OutputMap>, mlp.output_map)),
       }) {
    if (problem) return problem;
  }
  const auto read_size = [](const Json& entry, int& size) { return ReadInt(entry, 1, 4096, size); };
  if (Problem problem = ReadList(json, "hidden", mlp.hidden, read_size)) return problem;
  if (Problem problem = ReadList(json, "input_scale", mlp.input_scale, ReadFloat)) return problem;
  if (Problem problem = ReadList(json, "input_shift", mlp.input_shift, ReadFloat)) return problem;
  if (Problem problem = ReadList(json, "parameters", mlp.parameters, ReadFloat)) return problem;
  if (const Json* const made_for = FindField(json, "made_for")) {
    mlp.made_for.emplace().lidar.beams = mlp.num_beams;
    if (Problem problem = ReadBody(*made_for, *mlp.made_for)) return problem;
  }
  return FindProblem(mlp);
}

}  // namespace

std::string PolicyToBinary(const Mlp& mlp) {
  std::string bytes = Head(kVersion) + NetworkPart(mlp);
  const std::uint32_t kind =
      mlp.made_for ? 1 + static_cast<std::uint32_t>(mlp.made_for->robot.kind) : 0;
  Append(kind, bytes);
  if (mlp.made_for) {
    VisitNumbers(*mlp.made_for, [&](auto, auto, double number) { Append(number, bytes); });
  }
  return WithChecksum(std::move(bytes));
}

std::string PolicyToBinaryV1(const Mlp& mlp) {
  std::string bytes = Head(kOldVersion);
  Append(static_cast<std::uint32_t>(mlp.num_beams), bytes);
  Append(std::array{mlp.max_range, mlp.control_limit, mlp.range_offset}, bytes);
  AppendCodes(mlp, bytes);
  Append(static_cast<std::uint32_t>(mlp.hidden.size()), bytes);
  AppendSizes(mlp, bytes);
  AppendNumbers(mlp, bytes);
  return WithChecksum(std::move(bytes));
}

std::string NetworkBytes(const Mlp& mlp) {
  Mlp acts = mlp;
  if (acts.range_code != RangeCode::kScaled) acts.max_range = 0;
  if (acts.range_code != RangeCode::kInverse) acts.range_offset = 0;
  if (acts.hidden.empty()) acts.activation = {};
  for (std::vector<float>* numbers : {&acts.input_scale, &acts.input_shift, &acts.parameters}) {
    for (float& number : *numbers) number += 0.0F;  // -0 is 0
  }
  return NetworkPart(acts);
}

Result<Mlp> PolicyFromBinary(std::string_view bytes, const std::string& name) {
  Mlp mlp;
  if (const Problem problem = ReadBinary(bytes, mlp)) return Refuse(name, *problem);
  return mlp;
}

// One field per line. A float goes in as the double of the same value and comes out with enough
// digits for it.
std::string PolicyToJson(const Mlp& mlp) {
  nlohmann::ordered_json json;
  json["format"] = kJsonFormat;
  json["version"] = kVersion;
  json["beams"] = mlp.num_beams;
  json["max_range"] = mlp.max_range;
  json["state_inputs"] = mlp.state_inputs;
  json["goal_inputs"] = mlp.goal_inputs;
  json["range_code"] = NameOf(mlp.range_code);
  json["range_offset"] = mlp.range_offset;
  json["activation"] = NameOf(mlp.activation);
  json["output_map"] = NameOf(mlp.output_map);
  json["hidden"] = mlp.hidden;
  json["outputs"] = {{{"control_limit", mlp.control_limit}}};
  json["input_scale"] = mlp.input_scale;
  json["input_shift"] = mlp.input_shift;
  json["parameters"] = mlp.parameters;
  if (mlp.made_for) {
    nlohmann::ordered_json body;
    body["lidar"] = {};
    body["robot"] = {{"kind", NameOf(mlp.made_for->robot.kind)}};
    VisitNumbers(*mlp.made_for, [&](const char* group, const char* name, double number) {
      body[group][name] = number;
    });
    json["made_for"] = std::move(body);
  }
  std::string text;
  for (const auto& [field, value] : json.items()) {
    text += fmt::format("{}\"{}\": {}", text.empty() ? "{\n  " : ",\n  ", field, value.dump());
  }
  return text + "\n}\n";
}

Result<Mlp> PolicyFromJson(std::string_view text, const std::string& name) {
  Mlp mlp;
  if (const Problem problem = ReadJson(text, mlp)) return Refuse(name, *problem);
  return mlp;
}

Result<Mlp> ParsePolicy(std::string_view bytes, const std::string& name) {
  if (bytes.empty()) return Refuse(name, "empty, not a policy");
  if (kMagic.starts_with(bytes.substr(0, 3))) return PolicyFromBinary(bytes, name);
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && bytes[first] == '{') return PolicyFromJson(bytes, name);
  return Refuse(name, fmt::format("starts with '{}': neither an .fgp nor a JSON policy",
                                  Printable(bytes.substr(0, kMagic.size()))));
}

Result<Mlp> LoadPolicy(const std::string& path) {
  const Result<std::string> bytes = ReadFile(path, kMaxFileBytes);
  if (!bytes) return bytes.error();
  return ParsePolicy(*bytes, path);
}

Result<void> SavePolicy(const Mlp& mlp, const std::string& path, IfExists if_exists) {
  if (const Problem problem = FindProblem(mlp)) return Refuse(path, *problem);
  if (!path.ends_with(".json")) {
    return WriteFileAtomically(path, PolicyToBinary(mlp), if_exists);
  }
  if (mlp.parameters.size() > kMaxJsonParameters) {
    return Refuse(path, fmt::format("{} parameters: JSON takes at most {}, .fgp takes all",
                                    mlp.parameters.size(), kMaxJsonParameters));
  }
  return WriteFileAtomically(path, PolicyToJson(mlp), if_exists);
}

}  // namespace fedgen
