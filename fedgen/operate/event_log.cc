// SPDX-License-Identifier: Apache-2.0
#include "fedgen/operate/event_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <ctime>

#include "fedgen/base/json-inl.h"
#include "fedgen/base/text.h"

namespace fedgen {
namespace {

const char* NameOf(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      break;
  }
  return "error";
}

// UTC, "2026-11-18T11:31:23.642" with another character for the T.
std::string TimeText(std::chrono::system_clock::time_point time, char between) {
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  const std::time_t seconds = ms / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}{}{:02}:{:02}:{:02}.{:03}", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, between, parts.tm_hour, parts.tm_min,
                     parts.tm_sec, ms % 1000);
}

// ASCII only; what is no UTF-8 is replaced, for a line must be valid JSON whatever a peer sends.
std::string Quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::string JsonValue(const LogField::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return Quoted(*text);
  if (const auto* number = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *number);
  const double number = std::get<double>(value);
  return std::isfinite(number) ? fmt::format("{}", number) : "null";
}

// Bare where that can be told from the rest of the line, quoted otherwise.
std::string TextValue(const LogField::Value& value) {
  constexpr std::size_t kLongest = 1000;
  if (const auto* text = std::get_if<std::string>(&value)) {
    const std::string shown = Printable(*text, kLongest);
    const bool bare = !shown.empty() && shown.find_first_of(" \"=") == std::string::npos;
    return bare ? shown : '"' + shown + '"';
  }
  if (const auto* number = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *number);
  return fmt::format("{:.6g}", std::get<double>(value));
}

void WriteOnce(int descriptor, std::string_view line) {
  while (::write(descriptor, line.data(), line.size()) < 0 && errno == EINTR) {
  }
}

}  // namespace

void EventLog::Write(LogLevel level, std::string_view event,
                     std::initializer_list<LogField> fields) const {
  const auto now = clock_();
  std::string line;
  if (form_ == LogForm::kJson) {
    line = fmt::format("{{\"time\":\"{}Z\",\"level\":\"{}\",\"event\":\"{}\"", TimeText(now, 'T'),
                       NameOf(level), event);
    for (const LogField& field : fields) {
      line += fmt::format(",\"{}\":{}", field.name, JsonValue(field.value));
    }
    line += "}\n";
  } else {
    line = fmt::format("{} {:<7} {}", TimeText(now, ' '), NameOf(level), event);
    for (const LogField& field : fields) {
      line += fmt::format(" {}={}", field.name, TextValue(field.value));
    }
    line += "\n";
  }
  WriteOnce(descriptor_, line);
}

}  // namespace fedgen
