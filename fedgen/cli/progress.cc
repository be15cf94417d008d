// SPDX-License-Identifier: Apache-2.0
#include "fedgen/cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "fedgen/cli/print.h"

namespace fedgen {
namespace {

std::string Rate(double per_second) {
  if (per_second >= 1e6) return fmt::format("{:.1f} M ", per_second / 1e6);
  if (per_second >= 1e3) return fmt::format("{:.1f} k ", per_second / 1e3);
  return fmt::format("{:.0f} ", per_second);
}

}  // namespace

std::string DurationText(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(std::min(seconds, 1e9)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

TerminalSize StderrSize() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
    return {};
  }
  return {size.ws_row, size.ws_col};
}

std::string FitLine(std::string line, int columns) {
  // Some terminals wrap as soon as the last column is written.
  line.resize(std::min(line.size(), static_cast<std::size_t>(std::max(columns - 1, 1))));
  return line;
}

std::string ProgressLine(const std::string& what, const std::string& unit, std::int64_t done,
                         std::int64_t total, double seconds, int columns) {
  const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1.0;
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  const std::string left = rate > 0 && done < total
                               ? DurationText(static_cast<double>(total - done) / rate) + " left"
                               : "";
  const std::string after =
      fmt::format(" {:3.0f} %  {}{}/s  {}", 100 * share, Rate(rate), unit, left);
  const int room = columns - 1 - static_cast<int>(what.size() + after.size() + 3);
  const int width = std::clamp(room, 0, 30);
  const int filled = static_cast<int>(share * width);
  const std::string bar =
      width == 0 ? "" : fmt::format(" [{:#>{}}{:.>{}}]", "", filled, "", width - filled);
  return FitLine(what + bar + after, columns);
}

Progress::Progress(std::string what, std::string unit, std::int64_t total)
    : what_(std::move(what)),
      unit_(std::move(unit)),
      total_(total),
      shown_(IsTerminal()),
      begin_(std::chrono::steady_clock::now()),
      last_(begin_ - std::chrono::seconds(1)) {}  // the first is drawn at once

void Progress::Wipe() {
  if (std::exchange(drawn_, false)) PrintError("\r\033[K");
}

double Progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

void Progress::Update(std::int64_t done) {
  if (!shown_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  drawn_ = true;
  PrintError("\r\033[K{}",
             ProgressLine(what_, unit_, done, total_, seconds(), StderrSize().columns));
  std::fflush(stderr);
}

}  // namespace fedgen
