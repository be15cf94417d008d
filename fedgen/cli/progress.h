// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace fedgen {

// A progress bar on stderr with rate and time left, if stderr is a terminal; silent otherwise.
class Progress {
 public:
  /// `what` names the work ("evaluate"), `unit` what is counted ("episodes").
  Progress(std::string what, std::string unit, std::int64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Redraws at most ten times a second.
  void Update(std::int64_t done);
  /// Seconds since the work began.
  double seconds() const;

 private:
  std::string what_, unit_;
  std::int64_t total_;
  bool shown_;
  std::chrono::steady_clock::time_point begin_, last_;
};

/// "48 s", "3 min 05 s", "2 h 10 min".
std::string DurationText(double seconds);

/// The bar as text: "evaluate [######......]  52 %  312,000 episodes/s  12 s left".
std::string ProgressLine(const std::string& what, const std::string& unit, std::int64_t done,
                         std::int64_t total, double seconds);

}  // namespace fedgen
