// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace fedgen {

// Structs as bytes and back. A struct lists its fields once, for both directions:
//
//   void Fields(auto& archive, Is<Submission> auto& s) { archive(s.learner, s.round, s.theta); }
//
//   const std::string bytes = ToBytes(submission);
//   Reader reader(bytes);
//   reader(submission);                     // reader.problem() is empty if all went well
//
// Little endian: integers and IEEE 754 numbers as they are in memory, a flag as one byte, lists
// behind their 8-byte length. Reading ends, whatever the bytes, in values whose numbers are finite,
// or in one problem; a length that the bytes cannot hold costs no memory.

static_assert(std::endian::native == std::endian::little);

template <typename T, typename Struct>
concept Is = std::same_as<std::remove_const_t<T>, Struct>;

class Writer {
 public:
  template <typename... Values>
  void operator()(const Values&... values) {
    (Put(values), ...);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  template <typename T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void Put(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value),  // NOLINT(*reinterpret-cast)
                  sizeof value);
  }
  void Put(const std::string& text) {
    Put(std::uint64_t{text.size()});
    bytes_ += text;
  }
  template <typename T>
  void Put(const std::vector<T>& values) {
    PutAll(values);
  }
  // A policy: thousands of numbers, in memory as they are in the bytes.
  void Put(const std::vector<float>& values) {
    Put(std::uint64_t{values.size()});
    bytes_.append(reinterpret_cast<const char*>(values.data()),  // NOLINT(*reinterpret-cast)
                  values.size() * sizeof(float));
  }
  template <typename T>
  void Put(const std::set<T>& values) {
    PutAll(values);
  }
  template <typename K, typename T>
  void Put(const std::map<K, T>& values) {
    Put(std::uint64_t{values.size()});
    for (const auto& [key, value] : values) (*this)(key, value);
  }
  template <typename T, std::size_t kSize>
  void Put(const std::array<T, kSize>& values) {
    for (const T& value : values) Put(value);
  }
  template <typename T>
  void Put(const std::optional<T>& value) {
    Put(static_cast<std::uint8_t>(value.has_value()));
    if (value) Put(*value);
  }
  template <typename T>
    requires requires(Writer& w, const T& v) { Fields(w, v); }
  void Put(const T& value) {
    Fields(*this, value);
  }
  void PutAll(const auto& values) {
    Put(std::uint64_t{values.size()});
    for (const auto& value : values) Put(value);
  }

  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <typename... Values>
  void operator()(Values&... values) {
    (Get(values), ...);
  }
  /// Writes down the first problem; later ones are its consequences.
  void Fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }
  const std::string& problem() const { return problem_; }
  /// To be called last: nothing may follow.
  void Finish() {
    if (!bytes_.empty()) Fail("there are bytes after the end");
  }

 private:
  template <typename T>
    requires std::is_arithmetic_v<T>
  void Get(T& value) {
    if (!Has(sizeof value)) return;
    bytes_.copy(reinterpret_cast<char*>(&value), sizeof value);  // NOLINT(*reinterpret-cast)
    bytes_.remove_prefix(sizeof value);
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(value)) Fail("a number is not finite");
    }
  }
  void Get(bool& value) {
    std::uint8_t byte = 0;
    Get(byte);
    if (byte > 1) Fail("a flag is neither 0 nor 1");
    value = byte == 1;
  }
  /// An enum says how many values it has: constexpr int NumValues(Enum).
  template <typename T>
    requires std::is_enum_v<T>
  void Get(T& value) {
    std::underlying_type_t<T> number{};
    Get(number);
    if (number < 0 || number >= NumValues(T{})) return Fail("a word is unknown");
    value = static_cast<T>(number);
  }
  void Get(std::string& text) {
    const std::uint64_t size = Length();
    if (!Has(size)) return;
    text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
  }
  template <typename T>
  void Get(std::vector<T>& values) {
    const std::uint64_t size = Length();
    values.clear();
    for (std::uint64_t index = 0; index < size && problem_.empty(); ++index) {
      Get(values.emplace_back());
    }
  }
  template <typename T>
  void Get(std::set<T>& values) {
    const std::uint64_t size = Length();
    values.clear();
    for (std::uint64_t index = 0; index < size && problem_.empty(); ++index) {
      T value{};
      Get(value);
      if (!values.empty() && !(*values.rbegin() < value)) Fail("a list is out of order");
      values.insert(values.end(), std::move(value));
    }
  }
  template <typename K, typename T>
  void Get(std::map<K, T>& values) {
    const std::uint64_t size = Length();
    values.clear();
    for (std::uint64_t index = 0; index < size && problem_.empty(); ++index) {
      std::pair<K, T> value{};
      (*this)(value.first, value.second);
      if (!values.empty() && !(values.rbegin()->first < value.first)) {
        Fail("a list is out of order");
      }
      values.insert(values.end(), std::move(value));
    }
  }
  template <typename T, std::size_t kSize>
  void Get(std::array<T, kSize>& values) {
    for (T& value : values) Get(value);
  }
  template <typename T>
  void Get(std::optional<T>& value) {
    bool present = false;
    Get(present);
    value.reset();
    if (present && problem_.empty()) Get(value.emplace());
  }
  template <typename T>
    requires requires(Reader& r, T& v) { Fields(r, v); }
  void Get(T& value) {
    Fields(*this, value);
  }

  // Of a list; 0 if it cannot be. An item has at least one byte.
  std::uint64_t Length() {
    std::uint64_t size = 0;
    Get(size);
    return Has(size) ? size : 0;
  }
  bool Has(std::uint64_t size) {
    if (!problem_.empty()) return false;
    if (size > bytes_.size()) Fail("truncated");
    return problem_.empty();
  }

  std::string_view bytes_;
  std::string problem_;
};

template <typename T>
std::string ToBytes(const T& value) {
  Writer writer;
  writer(value);
  return writer.Take();
}

}  // namespace fedgen
