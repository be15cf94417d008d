// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace fedgen {

struct TerminalSize {
  int rows = 24, columns = 80;
};

/// Of the terminal that stderr is, as it is now; 24 x 80 if it does not say.
TerminalSize StderrSize();

/// A line that does not wrap: cut where it would reach the last column.
std::string FitLine(std::string line, int columns);

// A progress bar on stderr with rate and time left, if stderr is a terminal; silent otherwise.
class Progress {
 public:
  /// `what` names the work ("evaluate"), `unit` what is counted ("episodes").
  Progress(std::string what, std::string unit, std::int64_t total);
  ~Progress() { Wipe(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Redraws at most ten times a second.
  void Update(std::int64_t done);
  /// Takes the bar off the terminal. Before a result is printed, which would stand behind it.
  void Wipe();
  /// Seconds since the work began.
  double seconds() const;

 private:
  std::string what_, unit_;
  std::int64_t total_;
  bool shown_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point begin_, last_;
};

/// "48 s", "3 min 05 s", "2 h 10 min".
std::string DurationText(double seconds);

/// The bar as text: "evaluate [######......]  52 %  312.0 k episodes/s  12 s left". It is as long
/// as the columns leave room for, up to 30.
std::string ProgressLine(const std::string& what, const std::string& unit, std::int64_t done,
                         std::int64_t total, double seconds, int columns = 80);

}  // namespace fedgen
