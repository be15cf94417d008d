// SPDX-License-Identifier: Apache-2.0
#include "fedgen/policy/policy_file.h"

#include <zlib.h>

#include <array>
#include <bit>
#include <cstdint>

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
//   offset  bytes  what
//        0      8  magic
//        8      4  version
//       12      4  beams
//       16     12  max_range, control_limit, range_offset
//       28      5  state_inputs, goal_inputs, range_code, activation, output_map
//       33      3  zero
//       36      4  number of hidden layers
//       40         their sizes, then input_scale, input_shift, parameters: 4 bytes each
//      end      4  CRC-32 of everything before
//
// Integers are unsigned, numbers IEEE 754 binary32, all little endian.

// The line ends and the end-of-file mark show at once if a transfer took the file for text.
constexpr std::string_view kMagic("FGP\x01\r\n\x1a\n", 8);
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderBytes = 40;
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

// Everything up to the sizes of the hidden layers.
Problem ReadBinaryHeader(std::string_view bytes, Mlp& mlp) {
  ByteReader reader(bytes.substr(kMagic.size() + sizeof kVersion));
  if (Problem problem = ReadSize(reader, "beams", mlp.num_beams)) return problem;
  mlp.max_range = reader.TakeFloat();
  mlp.control_limit = reader.TakeFloat();
  mlp.range_offset = reader.TakeFloat();

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
  for (int spare = 33; spare < 36; ++spare) {
    if (reader.TakeByte() != 0) return fmt::format("byte {}: must be zero", spare);
  }

  int num_hidden = 0;
  if (Problem problem = ReadSize(reader, "hidden layers", num_hidden)) return problem;
  const std::size_t needs =
      kHeaderBytes + sizeof(std::uint32_t) * static_cast<std::size_t>(num_hidden);
  if (bytes.size() < needs + kChecksumBytes) {
    return Truncated(bytes.size(), needs + kChecksumBytes, "at least ");
  }
  mlp.hidden.resize(static_cast<std::size_t>(num_hidden));
  for (int& size : mlp.hidden) {
    if (Problem problem = ReadSize(reader, "hidden", size)) return problem;
  }
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
  const std::uint32_t version = ByteReader(bytes.substr(kMagic.size())).TakeInt();
  if (version != kVersion) {
    return fmt::format("version {}: this program reads version {}", version, kVersion);
  }
  if (bytes.size() < kHeaderBytes + kChecksumBytes) {
    return Truncated(bytes.size(), kHeaderBytes + kChecksumBytes, "at least ");
  }
  if (Problem problem = ReadBinaryHeader(bytes, mlp)) return problem;

  // The header says how long the file is. Only if it is, memory is taken for its numbers.
  const auto num_inputs = static_cast<std::size_t>(mlp.num_inputs());
  const std::size_t numbers_at = kHeaderBytes + sizeof(std::uint32_t) * mlp.hidden.size();
  const std::size_t needs =
      numbers_at + sizeof(float) * (2 * num_inputs + NumParameters(mlp)) + kChecksumBytes;
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
  ByteReader reader(bytes.substr(numbers_at));
  mlp.input_scale = reader.TakeFloats(num_inputs);
  mlp.input_shift = reader.TakeFloats(num_inputs);
  mlp.parameters = reader.TakeFloats(NumParameters(mlp));
  return FindProblem(mlp);
}

// ---------------------------------------------------------------------------------- JSON

constexpr const char* kJsonFormat = "fedgen-policy";
constexpr int kJsonVersion = 1;

// The form for people has a size people can bear; larger networks have the binary form.
constexpr std::size_t kMaxJsonParameters = std::size_t{1} << 22;
constexpr std::size_t kMaxJsonBytes = std::size_t{1} << 27;
constexpr JsonLimits kJsonLimits{.max_depth = 2, .max_values = kMaxJsonParameters + 4096};

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

Problem ReadJson(std::string_view text, Mlp& mlp) {
  if (text.size() > kMaxJsonBytes) {
    return fmt::format("{} bytes of JSON: must be at most {}", text.size(), kMaxJsonBytes);
  }
  Json json;
  if (Problem problem = ParseJson(text, kJsonLimits, json)) return problem;
  if (Problem problem = CheckFormat(json, kJsonFormat, kJsonVersion)) return problem;
  if (Problem problem =
          CheckFields(json, "",
                      {"format", "version", "beams", "max_range", "control_limit", "state_inputs",
                       "goal_inputs", "range_code", "range_offset", "activation", "output_map",
                       "hidden", "input_scale", "input_shift", "parameters"}))
    return problem;

  const auto field = [&json](const char* name) -> const Json& { return *FindField(json, name); };
  for (const Problem& problem : {
           Named("beams", ReadInt(field("beams"), 1, 1024, mlp.num_beams)),
           Named("max_range", ReadFloat(field("max_range"), mlp.max_range)),
           Named("control_limit", ReadFloat(field("control_limit"), mlp.control_limit)),
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
  return FindProblem(mlp);
}

}  // namespace

std::string PolicyToBinary(const Mlp& mlp) {
  std::string bytes(kMagic);
  Append(kVersion, bytes);
  Append(static_cast<std::uint32_t>(mlp.num_beams), bytes);
  Append(std::array{mlp.max_range, mlp.control_limit, mlp.range_offset}, bytes);
  for (const int choice : {static_cast<int>(mlp.state_inputs), static_cast<int>(mlp.goal_inputs),
                           static_cast<int>(mlp.range_code), static_cast<int>(mlp.activation),
                           static_cast<int>(mlp.output_map), 0, 0, 0}) {
    bytes += static_cast<char>(choice);
  }
  Append(static_cast<std::uint32_t>(mlp.hidden.size()), bytes);
  for (const int size : mlp.hidden) Append(static_cast<std::uint32_t>(size), bytes);
  Append(mlp.input_scale, bytes);
  Append(mlp.input_shift, bytes);
  Append(mlp.parameters, bytes);
  Append(Checksum(bytes), bytes);
  return bytes;
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
  json["version"] = kJsonVersion;
  json["beams"] = mlp.num_beams;
  json["max_range"] = mlp.max_range;
  json["control_limit"] = mlp.control_limit;
  json["state_inputs"] = mlp.state_inputs;
  json["goal_inputs"] = mlp.goal_inputs;
  json["range_code"] = NameOf(mlp.range_code);
  json["range_offset"] = mlp.range_offset;
  json["activation"] = NameOf(mlp.activation);
  json["output_map"] = NameOf(mlp.output_map);
  json["hidden"] = mlp.hidden;
  json["input_scale"] = mlp.input_scale;
  json["input_shift"] = mlp.input_shift;
  json["parameters"] = mlp.parameters;
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
