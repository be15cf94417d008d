// SPDX-License-Identifier: Apache-2.0
#include "fedgen/certify/plan.h"

#include <fmt/format.h>

#include "fedgen/base/text.h"
#include "fedgen/cli/commands.h"
#include "fedgen/cli/print.h"
#include "fedgen/run/certify.h"

namespace fedgen {
namespace {

Result<void> CheckShare(const char* flag, double value) {
  if (value > 0 && value < 1) return {};
  return Error{ErrorCode::kUsage, fmt::format("{} = {}: must be in (0, 1)", flag, value)};
}

// How many worlds one confidence needs: if none fails, and to succeed with the wanted power.
struct Answer {
  std::int64_t without_failure;
  std::optional<Plan> with_power;
};

Result<Answer> FindAnswer(const PlanCommand& command, double confidence) {
  Answer answer{WorldsNeeded(command.safe, confidence), std::nullopt};
  if (!command.assume) return answer;
  answer.with_power = WorldsToSucceed(command.safe, confidence, *command.assume, command.power);
  if (!answer.with_power) {
    return Error{
        ErrorCode::kUsage,
        fmt::format("--assume = {}: too close to --safe = {}: no number of worlds tells them apart",
                    *command.assume, command.safe)};
  }
  return answer;
}

std::string AnswerText(const Answer& answer) {
  std::string text =
      fmt::format("  {} without a failure are enough\n", Counted(answer.without_failure, "world"));
  if (const auto& plan = answer.with_power) {
    text += fmt::format(
        "  {} with at most {} are enough; the policy manages that with probability {:.4f}\n",
        Counted(plan->worlds, "world"), Counted(plan->allowed_failures, "failure"), plan->power);
  }
  return text;
}

std::string AnswerJson(const Answer& answer) {
  std::string text = fmt::format("{{\"worlds_without_failure\":{}", answer.without_failure);
  if (const auto& plan = answer.with_power) {
    text += fmt::format(",\"worlds\":{},\"allowed_failures\":{},\"power\":{}", plan->worlds,
                        plan->allowed_failures, plan->power);
  }
  return text + "}";
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
  const Answer alone = FEDGEN_TRY(FindAnswer(command, command.confidence));
  const Answer joint = FEDGEN_TRY(FindAnswer(command, JointConfidence(command.confidence)));

  if (command.json) {
    std::string question =
        fmt::format("\"safe\":{},\"confidence\":{}", command.safe, command.confidence);
    if (command.assume) {
      question += fmt::format(",\"assume\":{},\"target_power\":{}", *command.assume, command.power);
    }
    Print("{{{},\"alone\":{},\"certificate\":{}}}\n", question, AnswerJson(alone),
          AnswerJson(joint));
    return {};
  }
  const std::string assumed =
      command.assume ? fmt::format(", for a policy whose true rate is {}", *command.assume) : "";
  Print(
      "safe arrival >= {} with {:.6g} % confidence{}\n"
      "as a statement by itself:\n{}"
      "in a certificate, which also bounds the cost:\n{}",
      command.safe, 100 * command.confidence, assumed, AnswerText(alone), AnswerText(joint));
  return {};
}

}  // namespace fedgen
