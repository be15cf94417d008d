// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

namespace fedgen {

// What happens, one line each, for people or for programs:
//
//   EventLog log(STDERR_FILENO, LogForm::kJson);
//   log.Write(LogLevel::kInfo, "round", {{"run", name}, {"round", 12}});
//
//   {"time":"2026-11-18T11:31:23.642Z","level":"info","event":"round","run":"a","round":12}
//   2026-11-18 11:31:23.642 info    round run=a round=12
//
// A line is one write, so that lines of several processes do not mix. Values are escaped: nothing
// that a peer sends can end a line or move a cursor. A line that cannot be written is lost: the
// Cloud does not stop for its log.

enum class LogForm { kText, kJson };
enum class LogLevel { kInfo, kWarning, kError };

struct LogField {
  using Value = std::variant<std::string, std::int64_t, double>;
  LogField(std::string_view field, std::string text) : name(field), value(std::move(text)) {}
  LogField(std::string_view field, const char* text) : name(field), value(std::string(text)) {}
  LogField(std::string_view field, std::int64_t number) : name(field), value(number) {}
  LogField(std::string_view field, int number) : name(field), value(std::int64_t{number}) {}
  LogField(std::string_view field, double number) : name(field), value(number) {}

  std::string_view name;
  Value value;
};

/// Thread-safe.
class EventLog {
 public:
  using Clock = std::function<std::chrono::system_clock::time_point()>;

  /// The descriptor stays the caller's.
  EventLog(int descriptor, LogForm form, Clock clock = std::chrono::system_clock::now)
      : descriptor_(descriptor), form_(form), clock_(std::move(clock)) {}

  void Write(LogLevel level, std::string_view event,
             std::initializer_list<LogField> fields = {}) const;

 private:
  const int descriptor_;
  const LogForm form_;
  const Clock clock_;
};

}  // namespace fedgen
