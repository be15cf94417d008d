// SPDX-License-Identifier: Apache-2.0
#include "fedgen/certify/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "fedgen/base/text.h"
#include "fedgen/certify/ladder.h"
#include "fedgen/cli/commands.h"
#include "fedgen/cli/print.h"
#include "fedgen/run/certify.h"

namespace fedgen {
namespace {

Result<void> CheckShare(const char* flag, double value) {
  if (value > 0 && value < 1) return {};
  return Error{ErrorCode::kUsage, fmt::format("{} = {}: must be in (0, 1)", flag, value)};
}

// Rounded down: only a policy that never fails is certain to have no failure.
std::string ChanceText(const PlanRow& row, const PlanCommand& command) {
  const bool certain = command.assume && *command.assume == 1;
  return certain ? "1" : fmt::format("{:.4f}", std::min(0.9999, std::floor(1e4 * row.power) / 1e4));
}

std::string RowText(const PlanRow& row, const PlanCommand& command) {
  std::string text =
      fmt::format("{:>13}  {:>16}", Grouped(row.worlds), Grouped(row.allowed_failures));
  if (command.assume) text += fmt::format("  {:>6}", ChanceText(row, command));
  return text + "\n";
}

std::string RowJson(const PlanRow& row, bool with_chance) {
  std::string text =
      fmt::format("{{\"worlds\":{},\"allowed_failures\":{}", row.worlds, row.allowed_failures);
  if (with_chance) text += fmt::format(",\"power\":{}", row.power);
  return text + "}";
}

std::string QuestionText(const PlanCommand& command) {
  return fmt::format(
      "safe arrival >= {} with {} confidence, in a certificate, which also bounds the cost{}\n",
      command.safe, Percent(command.confidence),
      command.assume ? fmt::format("; for a policy whose true rate is {}", *command.assume) : "");
}

std::string QuestionJson(const PlanCommand& command) {
  std::string text = fmt::format("\"safe\":{},\"confidence\":{}", command.safe, command.confidence);
  if (command.assume) {
    text += fmt::format(",\"assume\":{},\"target_power\":{}", *command.assume, command.power);
  }
  return text;
}

}  // namespace

Result<void> RunPlan(const PlanCommand& command) {
  FEDGEN_TRY(CheckShare("--safe", command.safe));
  FEDGEN_TRY(CheckConfidence(command.confidence));
  FEDGEN_TRY(CheckShare("--power", command.power));
  if (command.assume && !(*command.assume > command.safe && *command.assume <= 1)) {
    return Error{ErrorCode::kUsage,
                 fmt::format("--assume = {}: must be above --safe = {} and at most 1",
                             *command.assume, command.safe)};
  }
  const std::vector<PlanRow> rows =
      PlanRungs(command.safe, command.confidence, command.assume.value_or(1));
  // Without an assumption: enough if nothing fails.
  const auto enough = std::find_if(rows.begin(), rows.end(),
                                   [&](const PlanRow& row) { return row.power >= command.power; });
  if (enough == rows.end()) {
    const std::string worlds = Counted(kMaxCertificateWorlds, "world");
    return Error{ErrorCode::kUsage,
                 command.assume
                     ? fmt::format("--assume = {}: too close to --safe = {}: {} do not tell them "
                                   "apart",
                                   *command.assume, command.safe, worlds)
                     : fmt::format("--safe = {}: {} without a failure do not certify it",
                                   command.safe, worlds)};
  }
  const bool with_chance = command.assume.has_value();
  if (command.json) {
    std::string list;
    for (const PlanRow& row : rows) {
      list += (list.empty() ? "" : ",") + RowJson(row, with_chance);
    }
    Print("{{{},\"worlds\":{},\"sizes\":[{}]}}\n", QuestionJson(command), enough->worlds, list);
    return {};
  }
  std::string table = fmt::format("{:>13}  {:>16}{}\n", "worlds", "failures allowed",
                                  with_chance ? "  chance" : "");
  for (const PlanRow& row : rows) {
    table += RowText(row, command);
    if (row.worlds >= 10 * enough->worlds) break;  // more than anybody needs
  }
  Print("{}{}\n{}", QuestionText(command),
        with_chance ? fmt::format("{} are enough: such a policy has at most {} with probability {}",
                                  Counted(enough->worlds, "world"),
                                  Counted(enough->allowed_failures, "failure"),
                                  ChanceText(*enough, command))
                    : fmt::format("{} are enough with at most {}", Counted(enough->worlds, "world"),
                                  Counted(enough->allowed_failures, "failure")),
        table);
  return {};
}

}  // namespace fedgen
