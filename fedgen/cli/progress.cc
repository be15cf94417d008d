// SPDX-License-Identifier: Apache-2.0
#include "fedgen/cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

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

std::string ProgressLine(const std::string& what, const std::string& unit, std::int64_t done,
                         std::int64_t total, double seconds) {
  constexpr int kWidth = 30;
  const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1.0;
  const int filled = static_cast<int>(share * kWidth);
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  const std::string left =
      rate > 0 ? DurationText(static_cast<double>(total - done) / rate) + " left" : "";
  return fmt::format("{} [{:#>{}}{:.>{}}] {:3.0f} %  {}{}/s  {}", what, "", filled, "",
                     kWidth - filled, 100 * share, Rate(rate), unit, left);
}

Progress::Progress(std::string what, std::string unit, std::int64_t total)
    : what_(std::move(what)),
      unit_(std::move(unit)),
      total_(total),
      shown_(::isatty(STDERR_FILENO) == 1),
      begin_(std::chrono::steady_clock::now()),
      last_(begin_) {}

Progress::~Progress() {
  if (shown_) PrintError("\r\033[K");
}

double Progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

void Progress::Update(std::int64_t done) {
  if (!shown_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  PrintError("\r\033[K{}", ProgressLine(what_, unit_, done, total_, seconds()));
  std::fflush(stderr);
}

}  // namespace fedgen
