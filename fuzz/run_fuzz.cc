// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fedgen/base/check.h"
#include "fedgen/run/run_outcome.h"
#include "fedgen/run/run_tables.h"
#include "fuzz/one_line.h"

// Any bytes are a table of a training run or one line that says why not. A table that is read,
// written and read again is the same. The outcome of a run has one spelling only.

namespace fedgen {
namespace {

template <typename Row>
void Check(std::string_view text, std::string_view header,
           Result<std::vector<Row>> (*parse)(std::string_view, const std::string&)) {
  const Result<std::vector<Row>> rows = parse(text, "fuzz");
  if (!rows) {
    FEDGEN_CHECK(IsOneLine(rows.error().message), "{}", rows.error().message);
    return;
  }
  std::string written = std::string(header) + "\n";
  for (const Row& row : *rows) written += FormatRow(row) + "\n";
  const Result<std::vector<Row>> again = parse(written, "written");
  FEDGEN_CHECK(again.has_value(), "{}", again.error().message);
  FEDGEN_CHECK(*again == *rows, "{}", written);
}

}  // namespace
}  // namespace fedgen

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fedgen::Check<fedgen::MetricsRow>(text, fedgen::kMetricsHeader, fedgen::ParseMetrics);
  fedgen::Check<fedgen::TruthRow>(text, fedgen::kTruthHeader, fedgen::ParseTruth);
  fedgen::Check<fedgen::TimingRow>(text, fedgen::kTimingHeader, fedgen::ParseTiming);
  if (const auto outcome = fedgen::RunOutcomeFromText(text)) {
    FEDGEN_CHECK(fedgen::RunOutcomeToText(*outcome) == text, "{}", text);
  }
  return 0;
}
