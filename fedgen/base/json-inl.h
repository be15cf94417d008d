// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

// Strict reading of JSON that a stranger may have written. For the .cc files of rooms that link
// nlohmann-json; no header of ours includes this.
//
// A Problem is one sentence without the name of the file: `discs[3][2] = -0.1: must be > 0`. What
// it quotes is short and printable, whatever the file holds. Nothing here throws on bad input.

namespace fedgen {

using Json = nlohmann::json;
using Problem = std::optional<std::string>;

/// What a document may cost: nesting and number of values. Both bound the memory of reading it.
struct JsonLimits {
  std::size_t max_depth = 8;
  std::size_t max_values = 100'000;
};

/// A value as a message may show it; what is large is counted instead.
std::string Describe(const Json& json);

/// Reads a whole text. Keys given twice, numbers beyond a double and anything after the document
/// are problems too.
Problem ParseJson(std::string_view text, const JsonLimits& limits, Json& json);

/// The path of a field below another, "" being the document.
std::string FieldPath(const std::string& parent, std::string_view field);

/// The field of an object, or nullptr.
const Json* FindField(const Json& object, const char* field);

/// Checks that `json` is an object with all required and no unknown fields.
Problem CheckFields(const Json& json, const std::string& path,
                    const std::vector<std::string>& required,
                    const std::vector<std::string>& optional = {});

/// Checks the fields `format` and `version`, which say what a document is. Others may be present.
Problem CheckFormat(const Json& json, std::string_view format, int version);

// The readers below return `value: rule`, without the name of the field, so that a path is put
// together only when something is wrong.

/// A number that a float can hold, rounded to one.
Problem ReadFloat(const Json& json, float& value);

/// An integer (3, not 3.0) in [low, high].
template <typename Integer>
Problem ReadInt(const Json& json, std::type_identity_t<Integer> low,
                std::type_identity_t<Integer> high, Integer& value) {
  if (!json.is_number_integer() || json < low || json > high) {
    const char* has_point = json.is_number_float() ? " (with a point or exponent)" : "";
    return fmt::format("{}{}: must be an integer in {}..{}", Describe(json), has_point, low, high);
  }
  value = json.get<Integer>();
  return std::nullopt;
}

/// One of several names, as its index.
Problem ReadName(const Json& json, std::span<const std::string_view> names, std::size_t& index);

/// One of the names of an enumeration that counts from 0.
template <typename Enum>
Problem ReadEnum(const Json& json, std::span<const std::string_view> names, Enum& value) {
  std::size_t index = 0;
  if (Problem problem = ReadName(json, names, index)) return problem;
  value = static_cast<Enum>(index);
  return std::nullopt;
}

}  // namespace fedgen
