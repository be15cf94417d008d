// SPDX-License-Identifier: Apache-2.0
#include "fedgen/run/run_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include "fedgen/base/check.h"
#include "fedgen/base/file.h"
#include "fedgen/base/text.h"

namespace fedgen {
namespace {

constexpr std::size_t kMaxLineBytes = 4096;
constexpr double kUnbounded = std::numeric_limits<double>::max();
constexpr int kMostInt = std::numeric_limits<int>::max();
constexpr std::int64_t kMostInt64 = std::numeric_limits<std::int64_t>::max();

// ---- Writing ------------------------------------------------------------------------------------

std::string OptionalText(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : std::string();
}

// ---- Reading ------------------------------------------------------------------------------------

// Takes the columns of a line one by one. The first problem stays; after it, what is read is of no
// meaning.
class RowReader {
 public:
  RowReader(std::string_view line, std::string where) : rest_(line), where_(std::move(where)) {}

  double Number(std::string_view column, double low, double high) {
    Next(column);
    return ParseNumber(low, high);
  }
  std::optional<double> OptionalNumber(std::string_view column, double low, double high) {
    if (Next(column).empty()) return std::nullopt;
    return ParseNumber(low, high);
  }
  template <typename Int>
  Int Integer(std::string_view column, Int low, Int high) {
    Next(column);
    return ParseInteger(low, high);
  }
  bool Flag(std::string_view column) { return Integer(column, 0, 1) == 1; }
  LearnerId Author(std::string_view column) {
    Next(column);
    return ParseAuthor();
  }
  std::optional<LearnerId> OptionalAuthor(std::string_view column) {
    if (Next(column).empty()) return std::nullopt;
    return ParseAuthor();
  }
  LearnerPhase State(std::string_view column) {
    constexpr const auto& kNames = kWords<LearnerPhase>;
    const auto* const found = std::ranges::find(kNames, Next(column));
    if (found != kNames.end()) return static_cast<LearnerPhase>(found - kNames.begin());
    Refuse("must be running, stopping, stopped, adopted or resting");
    return LearnerPhase::kRunning;
  }
  std::optional<int> LearnerOrIncumbent(std::string_view column) {
    if (Next(column) == "incumbent") return std::nullopt;
    return ParseInteger(1, kMostInt, "must be a learner's number from 1 on, or incumbent");
  }

  // About the column read last.
  void Require(bool condition, std::string_view rule) {
    if (!condition) Refuse(rule);
  }

  // The first problem, if there was one; call it after the last column.
  std::optional<Error> Finish() {
    if (!done_ && !error_) {
      Fail(fmt::format("{}: more columns than the header", Printable(rest_)));
    }
    return std::move(error_);
  }

 private:
  std::string_view Next(std::string_view column) {
    column_ = column;
    field_ = {};
    if (error_) return field_;
    if (done_) {
      Fail(fmt::format("{}: column missing", column));
      return field_;
    }
    const std::size_t comma = rest_.find(',');
    field_ = rest_.substr(0, comma);
    done_ = comma == std::string_view::npos;
    rest_ = done_ ? std::string_view() : rest_.substr(comma + 1);
    return field_;
  }

  double ParseNumber(double low, double high) {
    double number = 0;
    const char* const begin = field_.data();
    const char* const end = begin + field_.size();
    const auto [stop, problem] = std::from_chars(begin, end, number);
    if (problem != std::errc() || stop != end || !std::isfinite(number)) {
      Refuse("must be a number");
    } else if (number < low || number > high) {
      Refuse(high == kUnbounded ? fmt::format("must be >= {}", low)
                                : fmt::format("must be in [{}, {}]", low, high));
    }
    return number;
  }

  template <typename Int>
  Int ParseInteger(Int low, Int high, std::string_view rule = "") {
    Int number = 0;
    const char* const begin = field_.data();
    const char* const end = begin + field_.size();
    const auto [stop, problem] = std::from_chars(begin, end, number);
    if (problem != std::errc() || stop != end || number < low || number > high) {
      Refuse(rule.empty() ? fmt::format("must be a whole number in {}..{}", low, high)
                          : std::string(rule));
    }
    return number;
  }

  LearnerId ParseAuthor() {
    if (field_ == LearnerId::Cloud().name()) return LearnerId::Cloud();
    const int number =
        ParseInteger(1, kMostInt, "must be a learner's number from 1 on, or average");
    return LearnerId(static_cast<std::uint32_t>(std::max(number, 1) - 1));
  }

  void Refuse(std::string_view rule) {
    Fail(fmt::format("{} = {}: {}", column_, field_.empty() ? "(empty)" : Printable(field_), rule));
  }
  void Fail(const std::string& problem) {
    if (!error_) error_ = Error{ErrorCode::kData, fmt::format("{}: {}", where_, problem)};
  }

  std::string_view rest_;
  std::string where_;
  std::string_view column_;
  std::string_view field_;
  bool done_ = false;  // the last column was taken
  std::optional<Error> error_;
};

MetricsRow ReadRow(RowReader& reader, const MetricsRow* previous) {
  MetricsRow row;
  row.round = reader.Integer("round", 1, kMostInt);
  if (previous != nullptr) {
    reader.Require(row.round >= previous->round, "must not be lower than in the row before");
  }
  row.learner = reader.Integer("learner", 1, kMostInt);
  if (previous != nullptr && row.round == previous->round) {
    reader.Require(row.learner > previous->learner, "must be higher than in the row before");
  }
  row.state = reader.State("state");
  row.took_stock = reader.Flag("took_stock");
  row.kept_policy = reader.Flag("kept_policy");
  row.y = reader.Number("y", 0, 1);
  row.b = reader.Number("b", 0, kUnbounded);
  row.z_norm = reader.OptionalNumber("z_norm", 0, kUnbounded);
  row.q = reader.OptionalNumber("q", 0, kUnbounded);
  row.spread = reader.OptionalNumber("spread", 0, kUnbounded);
  row.step = reader.Number("step", 0, kUnbounded);
  row.adopted_from = reader.OptionalAuthor("adopted_from");
  reader.Require(row.adopted_from.has_value() == (row.state == LearnerPhase::kAdopted),
                 "must be given if and only if the state is adopted");
  reader.Require(!row.adopted_from || row.adopted_from->is_cloud() ||
                     static_cast<int>(row.adopted_from->number()) != row.learner,
                 "must be another learner");
  row.zeta = reader.Number("zeta", 0, 1);
  row.incumbent_learner = reader.Author("incumbent_learner");
  row.incumbent_round = reader.Integer("incumbent_round", 1, std::max(1, row.round));
  row.incumbent_y = reader.Number("incumbent_y", 0, 1);
  row.incumbent_b = reader.Number("incumbent_b", 0, kUnbounded);
  row.episodes = reader.Integer<std::int64_t>("episodes", 0, kMostInt64);
  return row;
}

TruthRow ReadRow(RowReader& reader, const TruthRow* previous) {
  // The incumbent comes after all learners.
  const auto place = [](const std::optional<int>& who) {
    return who ? std::int64_t{*who} : kMostInt64;
  };
  TruthRow row;
  row.round = reader.Integer("round", 0, kMostInt);
  if (previous != nullptr) {
    reader.Require(row.round >= previous->round, "must not be lower than in the row before");
  }
  row.learner = reader.LearnerOrIncumbent("learner");
  if (previous != nullptr && row.round == previous->round) {
    reader.Require(
        place(row.learner) > place(previous->learner),
        "must come after the row before: learners by number, then the incumbent, each once");
  }
  row.worlds = reader.Integer<std::int64_t>("worlds", 1, kMostInt64);
  row.starts = reader.Integer("starts", 1, kMostInt);
  row.cost = reader.Number("cost", 0, 1);
  row.safe_rate = reader.Number("safe_rate", 0, 1);
  return row;
}

TimingRow ReadRow(RowReader& reader, const TimingRow* previous) {
  TimingRow row;
  row.round = reader.Integer("round", 0, kMostInt);
  reader.Require(previous == nullptr || row.round > previous->round,
                 "must be higher than in the row before");
  row.seconds = reader.Number("seconds", 0, 1e12);  // 30,000 years
  reader.Require(previous == nullptr || row.seconds >= previous->seconds,
                 "must not be lower than in the row before");
  row.episodes = reader.Integer<std::int64_t>("episodes", 0, kMostInt64);
  reader.Require(previous == nullptr || row.episodes >= previous->episodes,
                 "must not be lower than in the row before");
  return row;
}

template <typename Row>
Result<std::vector<Row>> ParseTable(std::string_view text, std::string_view header,
                                    const std::string& name) {
  const auto problem = [&](std::size_t line, std::string_view what) {
    return Error{ErrorCode::kData, fmt::format("{}:{}: {}", name, line, what)};
  };
  if (text.size() > kMaxRunFileBytes) {
    return problem(1, fmt::format("{} bytes: more than {}", text.size(), kMaxRunFileBytes));
  }
  std::vector<Row> rows;
  for (std::size_t line_number = 1; line_number == 1 || !text.empty(); ++line_number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (line.size() > kMaxLineBytes) {
      return problem(line_number,
                     fmt::format("line of {} bytes: more than {}", line.size(), kMaxLineBytes));
    }
    if (line_number == 1 && line != header) {
      return problem(1, fmt::format("header = {}: must be {}",
                                    line.empty() ? "(empty)" : Printable(line), header));
    }
    if (end == std::string_view::npos) {
      return problem(line_number, "the last line has no newline: the file is cut off");
    }
    text.remove_prefix(end + 1);
    if (line_number == 1) continue;
    RowReader reader(line, fmt::format("{}:{}", name, line_number));
    Row row = ReadRow(reader, rows.empty() ? nullptr : &rows.back());
    if (std::optional<Error> error = reader.Finish()) return *std::move(error);
    rows.push_back(std::move(row));
  }
  return rows;
}

template <typename Rows>
Rows LoadTable(const std::string& path, Rows (*parse)(std::string_view, const std::string&)) {
  return parse(FEDGEN_TRY(ReadFile(path, kMaxRunFileBytes)), path);
}

}  // namespace

std::string FormatRow(const MetricsRow& row) {
  const std::string from = row.adopted_from ? row.adopted_from->name() : "";
  FEDGEN_CHECK(row.adopted_from.has_value() == (row.state == LearnerPhase::kAdopted),
               "round {}, learner {}: {} from '{}'", row.round, row.learner, NameOf(row.state),
               from);
  return fmt::format("{},{},{},{:d},{:d},{},{},{},{},{},{},{},{},{},{},{},{},{}", row.round,
                     row.learner, NameOf(row.state), row.took_stock, row.kept_policy, row.y, row.b,
                     OptionalText(row.z_norm), OptionalText(row.q), OptionalText(row.spread),
                     row.step, from, row.zeta, row.incumbent_learner.name(), row.incumbent_round,
                     row.incumbent_y, row.incumbent_b, row.episodes);
}

std::string FormatRow(const TruthRow& row) {
  return fmt::format("{},{},{},{},{},{}", row.round,
                     row.learner ? fmt::format("{}", *row.learner) : "incumbent", row.worlds,
                     row.starts, row.cost, row.safe_rate);
}

std::string FormatRow(const TimingRow& row) {
  return fmt::format("{},{},{}", row.round, row.seconds, row.episodes);
}

Result<std::vector<MetricsRow>> ParseMetrics(std::string_view text, const std::string& name) {
  return ParseTable<MetricsRow>(text, kMetricsHeader, name);
}

Result<std::vector<TruthRow>> ParseTruth(std::string_view text, const std::string& name) {
  return ParseTable<TruthRow>(text, kTruthHeader, name);
}

Result<std::vector<TimingRow>> ParseTiming(std::string_view text, const std::string& name) {
  return ParseTable<TimingRow>(text, kTimingHeader, name);
}

Result<std::vector<MetricsRow>> LoadMetrics(const std::string& path) {
  return LoadTable(path, ParseMetrics);
}

Result<std::vector<TruthRow>> LoadTruth(const std::string& path) {
  return LoadTable(path, ParseTruth);
}

Result<std::vector<TimingRow>> LoadTiming(const std::string& path) {
  return LoadTable(path, ParseTiming);
}

}  // namespace fedgen
