// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>
#include <vector>

namespace fedgen {

// The program on a terminal: what a person sees once it has ended.

/// What a terminal of this size shows after these bytes. It knows what the program uses: carriage
/// return, line feed, cursor up (CSI n A), erase to the end of line (CSI K) and screen (CSI J).
class Screen {
 public:
  Screen(int rows, int columns)
      : columns_(static_cast<std::size_t>(columns)), rows_(static_cast<std::size_t>(rows), "") {}

  void Feed(const std::string& bytes) {
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      const char c = bytes[at];
      if (c == '\033') {
        std::size_t end = at + 2;
        while (end < bytes.size() && (std::isdigit(static_cast<unsigned char>(bytes[end])) != 0)) {
          ++end;
        }
        if (end < bytes.size()) Control(bytes[end], std::atoi(bytes.c_str() + at + 2));
        at = end;
      } else if (c == '\n') {
        NextRow();
      } else if (c == '\r') {
        column_ = 0;
      } else {
        Put(c);
      }
    }
  }

  /// Everything, with what has scrolled off first.
  std::vector<std::string> Lines() const {
    std::vector<std::string> lines = scrolled_;
    lines.insert(lines.end(), rows_.begin(), rows_.end());
    while (!lines.empty() && lines.back().empty()) lines.pop_back();
    return lines;
  }

 private:
  void Put(char c) {
    if (column_ == columns_) {
      column_ = 0;
      NextRow();
    }
    std::string& row = rows_[row_];
    if (row.size() <= column_) row.resize(column_ + 1, ' ');
    row[column_++] = c;
  }
  void NextRow() {
    if (++row_ < rows_.size()) return;
    --row_;
    scrolled_.push_back(rows_.front());
    std::rotate(rows_.begin(), rows_.begin() + 1, rows_.end());
    rows_.back().clear();
  }
  void Control(char what, int number) {
    if (what == 'A') row_ -= std::min(row_, static_cast<std::size_t>(std::max(number, 1)));
    if (what == 'K' || what == 'J') rows_[row_].resize(std::min(rows_[row_].size(), column_));
    if (what == 'J') std::fill(rows_.begin() + static_cast<long>(row_) + 1, rows_.end(), "");
  }

  std::size_t columns_, row_ = 0, column_ = 0;
  std::vector<std::string> rows_, scrolled_;
};

/// Runs a shell command on a terminal of this size; the bytes that it wrote there.
inline std::string RunOnTerminal(const std::string& command, int rows, int columns) {
  winsize size{};
  size.ws_row = static_cast<unsigned short>(rows);
  size.ws_col = static_cast<unsigned short>(columns);
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    ::setenv("TERM", "xterm", 1);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  std::string bytes;
  char buffer[4096];
  for (ssize_t count = 0; (count = ::read(terminal, buffer, sizeof buffer)) > 0;) {
    bytes.append(buffer, static_cast<std::size_t>(count));
  }
  ::close(terminal);
  ::waitpid(child, nullptr, 0);
  return bytes;
}

}  // namespace fedgen
