// SPDX-License-Identifier: Apache-2.0
#include "fedgen/cli/live_view.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "fedgen/cli/progress.h"

namespace fedgen {
namespace {

// Learners count from 1 for people; one past the last is the Cloud's average.
std::string Name(int learner, std::size_t num_learners) {
  return learner < static_cast<int>(num_learners) ? fmt::format("{}", learner + 1) : "average";
}

std::string StateOf(const LearnerRound& row, std::size_t num_learners) {
  if (row.adopted) return fmt::format("adopted from {}", Name(row.adopted_from, num_learners));
  if (row.resting) return "resting";
  return row.stopped ? "stopped" : "running";
}

std::string Head(const RoundReport& report, int num_rounds, double seconds, int first_round) {
  const double rounds_done = report.round - first_round;
  const std::string left =
      rounds_done > 0 ? DurationText(seconds / rounds_done * (num_rounds - report.round)) : "?";
  const std::string incumbent =
      report.incumbent
          ? fmt::format("incumbent: learner {}, round {}, y {:.3f} +- {:.3f}",
                        Name(report.incumbent->learner, report.learners.size()),
                        report.incumbent->round, report.incumbent->y, report.incumbent->b)
          : "no incumbent";
  return fmt::format("round {}/{}  {:.2f} M episodes  at most {} left  {}", report.round,
                     num_rounds, static_cast<double>(report.episodes) / 1e6, left, incumbent);
}

}  // namespace

std::string LiveTable(const RoundReport& report, int num_rounds, double seconds, int first_round) {
  std::string text = Head(report, num_rounds, seconds, first_round) + "\n";
  text += "  learner      y +- b          |z|     noise  state\n";
  for (std::size_t i = 0; i < report.learners.size(); ++i) {
    const LearnerRound& row = report.learners[i];
    text += fmt::format("  {:>7}  {:.3f} +- {:.3f}  {:>7.3g}  {:>8.3g}  {}\n", i + 1, row.y, row.b,
                        row.z_norm, row.spread, StateOf(row, report.learners.size()));
  }
  return text;
}

std::string LiveEvents(const RoundReport& report) {
  std::string text;
  for (std::size_t i = 0; i < report.learners.size(); ++i) {
    const LearnerRound& row = report.learners[i];
    if (row.adopted && report.incumbent) {
      text += fmt::format("round {:>4}  learner {} adopts from {}: y {:.3f} -> {:.3f}\n",
                          report.round, i + 1, Name(row.adopted_from, report.learners.size()),
                          row.y, report.incumbent->y);
    } else if (row.stopped && !row.was_stopped) {
      text += fmt::format("round {:>4}  learner {} stops at y {:.3f} +- {:.3f}\n", report.round,
                          i + 1, row.y, row.b);
    }
  }
  return text;
}

std::string LiveLine(const RoundReport& report, int num_rounds, double seconds, int first_round) {
  std::string states;
  for (const LearnerRound& row : report.learners) {
    const char* const mark = row.adopted ? "a" : row.resting ? "r" : row.stopped ? "s" : "";
    states += fmt::format(" {}{:.3f}", mark, row.y);
  }
  return fmt::format("{}  y:{}\n", Head(report, num_rounds, seconds, first_round), states);
}

LiveView::LiveView(int num_rounds, int first_round)
    : num_rounds_(num_rounds),
      first_round_(first_round),
      terminal_(::isatty(STDERR_FILENO) == 1),
      begin_(std::chrono::steady_clock::now()),
      last_drawn_(begin_ - std::chrono::seconds(1)) {}

double LiveView::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

void LiveView::Show(const RoundReport& report) {
  last_ = report;
  if (terminal_) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_drawn_ < std::chrono::milliseconds(100)) return;
    last_drawn_ = now;
    Draw();
    return;
  }
  std::fputs(LiveEvents(report).c_str(), stderr);
  if (report.round == first_round_ + 1) {
    std::fputs("(y of each learner; a: adopts, s: stopped, r: rests with the incumbent)\n", stderr);
  }
  if (report.round >= next_line_round_) {
    std::fputs(LiveLine(report, num_rounds_, seconds(), first_round_).c_str(), stderr);
    last_line_round_ = report.round;
    next_line_round_ = report.round + std::max(1, num_rounds_ / 20);
  }
}

void LiveView::Draw() {
  // Up over what was drawn, then over it line by line.
  std::string text = lines_drawn_ > 0 ? fmt::format("\033[{}A", lines_drawn_) : "";
  lines_drawn_ = 0;
  for (const char c : LiveTable(last_, num_rounds_, seconds(), first_round_)) {
    if (c == '\n') {
      text += "\033[K";
      ++lines_drawn_;
    }
    text += c;
  }
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

void LiveView::Finish() {
  if (last_.round == 0) return;
  if (terminal_) {
    Draw();
  } else if (last_line_round_ != last_.round) {
    std::fputs(LiveLine(last_, num_rounds_, seconds(), first_round_).c_str(), stderr);
  }
}

}  // namespace fedgen
