// SPDX-License-Identifier: Apache-2.0
#include "fedgen/cli/live_view.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <span>
#include <utility>

#include "fedgen/base/text.h"
#include "fedgen/cli/print.h"
#include "fedgen/cli/progress.h"
#include "fedgen/run/guarantees.h"
#include "fedgen/run/run_tables.h"

namespace fedgen {
namespace {

std::string StateOf(const LearnerRound& row) {
  if (row.adopted_from) return "adopted from " + row.adopted_from->name();
  return std::string(NameOf(row.phase));
}

std::string Optional(const std::optional<double>& value) {
  return value ? fmt::format("{:.3g}", *value) : "-";
}

// Before a learner's y in a line of the log.
const char* MarkOf(LearnerPhase phase) {
  switch (phase) {
    case LearnerPhase::kRunning:
      return "";
    case LearnerPhase::kStopping:
    case LearnerPhase::kStopped:
      return "s";
    case LearnerPhase::kAdopted:
      return "a";
    case LearnerPhase::kResting:
      return "r";
  }
  return "";
}

// What training takes is known from the rounds so far; the race and the certificate come after it.
std::string Phase(const RoundReport& report, int num_rounds, double seconds, int first_round) {
  constexpr std::string_view kAfter = "then race and certificate";
  const std::string where = fmt::format("training: round {}/{}", report.round, num_rounds);
  if (report.ending != Ending::kNotYet) return fmt::format("{}  done, {}", where, kAfter);
  const double rounds_done = report.round - first_round;
  const std::string left =
      rounds_done > 0 ? DurationText(seconds / rounds_done * (num_rounds - report.round)) : "?";
  return fmt::format("{}  at most {} left, {}", where, left, kAfter);
}

std::string BestSoFar(const RoundReport& report) {
  const std::string incumbent =
      report.incumbent ? fmt::format("incumbent: learner {}, round {}, y {:.3f} +- {:.3f}",
                                     report.incumbent->learner.name(), report.incumbent->round,
                                     report.incumbent->y, report.incumbent->b)
                       : "no incumbent";
  return fmt::format("{:.2f} M episodes  {}", static_cast<double>(report.episodes) / 1e6,
                     incumbent);
}

}  // namespace

std::string LiveTable(const RoundReport& report, int num_rounds, double seconds, int first_round,
                      TerminalSize size) {
  std::string text;
  const auto add = [&](std::string line) { text += FitLine(std::move(line), size.columns) + "\n"; };
  add(Phase(report, num_rounds, seconds, first_round));
  add(BestSoFar(report));
  add("  learner      y +- b          |z|     noise  state");
  constexpr int kOtherRows = 4;  // those above, and the cursor's
  const auto room = static_cast<std::size_t>(std::max(size.rows - kOtherRows, 1));
  const std::size_t num_learners = report.learners.size();
  const std::size_t shown = num_learners <= room ? num_learners : room - 1;
  for (const LearnerRound& row : std::span(report.learners).first(shown)) {
    add(fmt::format("  {:>7}  {:.3f} +- {:.3f}  {:>7}  {:>8}  {}", row.learner.name(), row.y, row.b,
                    Optional(row.z_norm), Optional(row.spread), StateOf(row)));
  }
  if (shown < num_learners) add(fmt::format("  and {} more", num_learners - shown));
  return text;
}

std::string LiveEvents(const RoundReport& report) {
  std::string text;
  for (const LearnerRound& row : report.learners) {
    if (row.adopted_from && report.incumbent) {
      text +=
          fmt::format("round {:>4}  learner {} adopts from {}: y {:.3f} -> {:.3f}\n", report.round,
                      row.learner.name(), row.adopted_from->name(), row.y, report.incumbent->y);
    } else if (row.phase == LearnerPhase::kStopping) {
      text += fmt::format("round {:>4}  learner {} stops at y {:.3f} +- {:.3f}\n", report.round,
                          row.learner.name(), row.y, row.b);
    }
  }
  return text;
}

std::string LiveLine(const RoundReport& report, int num_rounds, double seconds, int first_round) {
  std::string states;
  for (const LearnerRound& row : report.learners) {
    states += fmt::format(" {}{:.3f}", MarkOf(row.phase), row.y);
  }
  return fmt::format("{}  {}  y:{}\n", Phase(report, num_rounds, seconds, first_round),
                     BestSoFar(report), states);
}

LiveView::LiveView(int num_rounds, int first_round)
    : num_rounds_(num_rounds),
      first_round_(first_round),
      terminal_(IsTerminal()),
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
    std::fputs(
        "(y of each learner; a: adopted in this round, s: stopped, r: resting, follows the "
        "incumbent)\n",
        stderr);
  }
  if (report.round >= next_line_round_) {
    std::fputs(LiveLine(report, num_rounds_, seconds(), first_round_).c_str(), stderr);
    last_line_round_ = report.round;
    next_line_round_ = report.round + std::max(1, num_rounds_ / 20);
  }
}

void LiveView::Draw() {
  Wipe();
  const std::string table = LiveTable(last_, num_rounds_, seconds(), first_round_, StderrSize());
  lines_drawn_ = static_cast<int>(std::ranges::count(table, '\n'));
  std::fputs(table.c_str(), stderr);
  std::fflush(stderr);
}

void LiveView::Wipe() {
  if (lines_drawn_ > 0) PrintError("\033[{}A\033[J", std::exchange(lines_drawn_, 0));
}

void LiveView::Say(const std::string& line) {
  Wipe();
  PrintError("{}\n", line);
}

void LiveView::Finish() {
  if (last_.round == 0) return;
  if (terminal_) {
    Draw();
  } else if (last_line_round_ != last_.round) {
    std::fputs(LiveLine(last_, num_rounds_, seconds(), first_round_).c_str(), stderr);
  }
}

namespace {

// What is said on stderr while a run goes on.
class Terminal final : public RunListener {
 public:
  Terminal(const LocalRun& run, bool resumed) : run_(run), resumed_(resumed) {}

  Result<void> OnBegin(const Host& host) override {
    const std::string& directory = run_.files.directory();
    for (const std::string& warning : Warnings(run_.experiment.training())) {
      PrintError("warning: {}\n", warning);
    }
    if (host.round() > 0) {
      PrintError("{}: continuing after round {}\n", directory, host.round());
    } else if (resumed_) {
      PrintError("{}: no round was finished; starting again\n", directory);
    }
    PrintError("{}: {}, {}, seed {}\n", directory,
               Counted(static_cast<std::int64_t>(host.learners().size()), "learner"),
               Counted(host.options().rounds, "round"), run_.experiment.seed);
    const double bytes = TotalBytes(MemoryOf(run_.experiment.config, run_.experiment.num_threads));
    if (bytes >= 1e9) PrintError("{}: needs at least {} of memory\n", directory, BytesText(bytes));
    view_.emplace(host.options().rounds, host.round());
    return {};
  }
  Result<void> OnRound(const Host& /*host*/, const RoundReport& report,
                       double /*seconds*/) override {
    if (!view_) return {};
    for (const std::string& remark : report.remarks) view_->Say(remark);
    view_->Show(report);
    return {};
  }
  Result<void> OnEnd(const Host& /*host*/, const Finalists& /*finalists*/) override {
    if (view_) view_->Finish();
    return {};
  }
  void OnProgress(std::string_view what, std::int64_t done, std::int64_t total) override {
    if (what != working_) {
      working_ = what;
      progress_.emplace(working_, "episodes", total);
    }
    if (progress_) progress_->Update(done);
  }

 private:
  const LocalRun& run_;
  bool resumed_;
  std::optional<LiveView> view_;
  std::string working_;
  std::optional<Progress> progress_;
};

}  // namespace

std::unique_ptr<RunListener> MakeTerminalView(const LocalRun& run, bool resumed) {
  return std::make_unique<Terminal>(run, resumed);
}

Result<RunSummary> ExecuteWithView(const LocalRun& run, bool resumed) {
  const auto view = MakeTerminalView(run, resumed);
  RunListener* const listeners[] = {view.get()};
  return Execute(run, listeners);
}

}  // namespace fedgen
