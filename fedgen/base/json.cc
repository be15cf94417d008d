// SPDX-License-Identifier: Apache-2.0
#include "fedgen/base/json-inl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "fedgen/base/check.h"
#include "fedgen/base/text.h"

namespace fedgen {
namespace {

// Builds a document from the parser's events and stops at the first thing that is not allowed.
class JsonBuilder final : public Json::json_sax_t {
 public:
  JsonBuilder(std::string_view text, const JsonLimits& limits, Json& root)
      : text_(text), limits_(limits), root_(root) {}

  const Problem& problem() const { return problem_; }

  bool null() override { return Put(nullptr) != nullptr; }
  bool boolean(bool value) override { return Put(value) != nullptr; }
  bool number_integer(std::int64_t value) override { return Put(value) != nullptr; }
  bool number_unsigned(std::uint64_t value) override { return Put(value) != nullptr; }
  bool number_float(double value, const std::string& /*text*/) override {
    return Put(value) != nullptr;
  }
  bool string(std::string& value) override { return Put(std::move(value)) != nullptr; }
  bool binary(Json::binary_t& /*value*/) override { return Refuse("binary value"); }
  bool start_object(std::size_t /*size*/) override { return Open(Json::object()); }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t /*size*/) override { return Open(Json::array()); }
  bool end_array() override { return Close(); }

  bool key(std::string& name) override {
    if (open_.back()->contains(name)) return Refuse(Printable(name) + ": given twice");
    key_ = std::move(name);
    return true;
  }

  // `position` counts bytes read so far, the offending one included; the end counts as a byte.
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) override {
    constexpr int kNumberOverflow = 406;
    constexpr std::size_t kShownBefore = 30;
    const std::size_t offset = std::min(position > 0 ? position - 1 : 0, text_.size());
    if (error.id == kNumberOverflow) {
      return Refuse(fmt::format("{}: {}: number too large", Place(offset), Printable(token)));
    }
    if (offset == text_.size()) {
      return Refuse(fmt::format("{}: the JSON ends too early", Place(offset)));
    }
    const std::size_t column = offset - LineStart(offset);
    const std::size_t shown = std::min(column, kShownBefore);
    const std::string before = Printable(text_.substr(offset - shown, shown));
    return Refuse(fmt::format("{}: not valid JSON{}", Place(offset),
                              before.empty() ? "" : fmt::format(" after '{}'", before)));
  }

 private:
  // Puts a value where the document has come to. The address stays valid while the value is open:
  // its parent grows only after it is closed.
  Json* Put(Json value) {
    if (++num_values_ > limits_.max_values) {
      Refuse(fmt::format("more than {} values", limits_.max_values));
      return nullptr;
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_object()) return &(parent[key_] = std::move(value));
    parent.push_back(std::move(value));
    return &parent.back();
  }

  bool Open(Json container) {
    if (open_.size() >= limits_.max_depth) {
      return Refuse(fmt::format("nested more than {} levels deep", limits_.max_depth));
    }
    Json* const opened = Put(std::move(container));
    if (opened != nullptr) open_.push_back(opened);
    return opened != nullptr;
  }

  bool Close() {
    open_.pop_back();
    return true;
  }

  bool Refuse(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  std::size_t LineStart(std::size_t offset) const {
    return text_.substr(0, offset).rfind('\n') + 1;  // npos + 1 is 0
  }

  // "column 7", or "line 2, column 7" in a text of several lines; both from 1, in bytes.
  std::string Place(std::size_t offset) const {
    const std::size_t column = offset - LineStart(offset) + 1;
    if (text_.find('\n') == std::string_view::npos) return fmt::format("column {}", column);
    const std::string_view before = text_.substr(0, offset);
    return fmt::format("line {}, column {}", 1 + std::count(before.begin(), before.end(), '\n'),
                       column);
  }

  std::string_view text_;
  JsonLimits limits_;
  Json& root_;
  std::vector<Json*> open_;  // the containers around the next value, outermost first
  std::string key_;          // of the next value, in an object
  std::size_t num_values_ = 0;
  Problem problem_;
};

}  // namespace

std::string Describe(const Json& json) {
  constexpr std::size_t kFewEntries = 5;
  switch (json.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::boolean:
      return json.get<bool>() ? "true" : "false";
    case Json::value_t::number_integer:
      return fmt::format("{}", json.get<std::int64_t>());
    case Json::value_t::number_unsigned:
      return fmt::format("{}", json.get<std::uint64_t>());
    case Json::value_t::number_float:
      return fmt::format("{}", json.get<double>());
    case Json::value_t::string:
      return fmt::format("\"{}\"", Printable(json.get_ref<const std::string&>()));
    case Json::value_t::array: {
      std::string shown;
      for (const Json& entry : json) {
        if (json.size() > kFewEntries || !entry.is_number()) {
          return fmt::format("[{} entries]", json.size());
        }
        shown += (shown.empty() ? "" : ", ") + Describe(entry);
      }
      return fmt::format("[{}]", shown);
    }
    case Json::value_t::object:
      return fmt::format("{{{} fields}}", json.size());
    default:
      return "?";
  }
}

Problem ParseJson(std::string_view text, const JsonLimits& limits, Json& json) {
  // The parser would take a zero byte for the end of the text.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return fmt::format("byte {}: zero bytes are not JSON", zero + 1);
  }
  JsonBuilder builder(text, limits, json);
  if (Json::sax_parse(text.begin(), text.end(), &builder)) return std::nullopt;
  FEDGEN_CHECK(builder.problem().has_value(), "refused without a reason");
  return builder.problem();
}

std::string FieldPath(const std::string& parent, std::string_view field) {
  return parent.empty() ? std::string(field) : fmt::format("{}.{}", parent, field);
}

const Json* FindField(const Json& object, const char* field) {
  const auto found = object.find(field);
  return found == object.end() ? nullptr : &*found;
}

Problem CheckFields(const Json& json, const std::string& path,
                    const std::vector<std::string>& required,
                    const std::vector<std::string>& optional) {
  if (!json.is_object()) {
    return fmt::format("{}{}{}: must be an object", path, path.empty() ? "" : " = ",
                       Describe(json));
  }
  std::vector<std::string> known = required;
  known.insert(known.end(), optional.begin(), optional.end());
  for (const auto& [name, value] : json.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      return fmt::format("{}: unknown key{}", FieldPath(path, Printable(name)),
                         DidYouMean(name, known));
    }
  }
  for (const std::string& name : required) {
    if (!json.contains(name)) return FieldPath(path, name) + ": missing";
  }
  return std::nullopt;
}

Problem CheckFormat(const Json& json, std::string_view format, int version) {
  if (!json.is_object()) return Describe(json) + ": must be an object";
  const Json* const name = FindField(json, "format");
  if (name == nullptr) return fmt::format("format: missing, must be \"{}\"", format);
  if (!name->is_string() || name->get_ref<const std::string&>() != format) {
    return fmt::format("format = {}: must be \"{}\"", Describe(*name), format);
  }
  const Json* const number = FindField(json, "version");
  if (number == nullptr) return fmt::format("version: missing, must be {}", version);
  if (!number->is_number_integer() || *number != version) {
    return fmt::format("version = {}: this program reads version {}", Describe(*number), version);
  }
  return std::nullopt;
}

Problem ReadFloat(const Json& json, float& value) {
  if (!json.is_number()) return Describe(json) + ": must be a number";
  const auto number = json.get<double>();
  if (std::fabs(number) > static_cast<double>(std::numeric_limits<float>::max())) {
    return Describe(json) + ": must fit a 32-bit float";
  }
  value = static_cast<float>(number);
  return std::nullopt;
}

Problem ReadName(const Json& json, std::span<const std::string_view> names, std::size_t& index) {
  std::string rule = fmt::format("{}: must be one of {}", Describe(json), fmt::join(names, ", "));
  if (!json.is_string()) return rule;
  const auto& text = json.get_ref<const std::string&>();
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) {
    const std::vector<std::string> known(names.begin(), names.end());
    return rule + DidYouMean(text, known);
  }
  index = static_cast<std::size_t>(found - names.begin());
  return std::nullopt;
}

}  // namespace fedgen
