// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "fedgen/base/check.h"

namespace fedgen {

// What went wrong outside of us: a file, a flag, a peer. Nothing in FedGen throws; what may fail
// returns a Result. The member names are those of std::expected (C++23), which g++ 12 lacks.
//
// The code decides the exit code of the program (docs/exit-codes.md), the message is the one line a
// person reads: `file:line: field = value: rule`.

enum class ErrorCode {
  kUsage,     // flags or arguments do not make sense together
  kConfig,    // a configuration file or --set breaks a rule
  kData,      // a world, policy or certificate file is malformed or altered
  kMismatch,  // well-formed things disagree: a policy and a sensor, a certificate and facts
  kIo,        // the operating system said no: cannot open, read, write, sync
  kExists,    // an output path is already there and was not overwritten
  kMissed,    // all was done, and a result is not what was expected
};

struct Error {
  ErrorCode code = ErrorCode::kUsage;
  std::string message;
};

/// What a room's Validate() says about its options: the field, and "value: rule". Who read the
/// options from a file knows its name and line, and makes an Error of it.
struct FieldError {
  std::string field;
  std::string problem;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool has_value() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return has_value(); }

  const T& value() const& {
    FEDGEN_CHECK(has_value(), "value() of an error: {}", std::get<Error>(state_).message);
    return std::get<T>(state_);
  }
  T& value() & {
    FEDGEN_CHECK(has_value(), "value() of an error: {}", std::get<Error>(state_).message);
    return std::get<T>(state_);
  }
  T&& value() && { return std::move(value()); }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

  const Error& error() const {
    FEDGEN_CHECK(!has_value(), "error() of a value");
    return std::get<Error>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  const Error& error() const {
    FEDGEN_CHECK(error_.has_value(), "error() of a value");
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

/// What a Result holds, moved out of it. For FEDGEN_TRY.
template <typename T>
T Unwrap(Result<T>&& result) {
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

/// The value of a Result, or out of this function with its error:
///
///   const Config config = FEDGEN_TRY(LoadConfig(path));
///   FEDGEN_TRY(Save(config));
///
/// (A statement that is an expression: g++ and clang have it, ISO C++ does not.)
#define FEDGEN_TRY(...)                                          \
  __extension__({                                                \
    auto fedgen_result = (__VA_ARGS__);                          \
    if (!fedgen_result) return std::move(fedgen_result).error(); \
    ::fedgen::Unwrap(std::move(fedgen_result));                  \
  })

}  // namespace fedgen
