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

// What the plan needs at one confidence: without a failure, and for success with some power.
struct Answer {
  std::int64_t without_failure;
  std::optional<Plan> with_power;
};

Result<Answer> FindAnswer(const PlanCommand& command, double confidence) {
  Answer answer{WorldsNeeded(command.safe, confidence), std::nullopt};
  if (!command.assume) return answer;
  answer.with_power = WorldsToSucceed(command.safe, confidence, *command.assume, command.power);
  if (!answer.with_power) {
    return Error{ErrorCode::kUsage,
                 fmt::format("--assume = {}: too close to --safe = {} to tell them apart",
                             *command.assume, command.safe)};
  }
  return answer;
}

std::string AnswerText(const Answer& answer) {
  std::string text =
      fmt::format("  {} without a failure\n", Counted(answer.without_failure, "world"));
  if (const auto& plan = answer.with_power) {
    text += fmt::format("  {} with at most {}: succeeds with probability {:.4f}\n",
                        Counted(plan->worlds, "world"), Counted(plan->allowed_failures, "failure"),
                        plan->power);
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
  for (const Result<void>& checked :
       {CheckShare("--safe", command.safe), CheckConfidence(command.confidence),
        CheckShare("--power", command.power)}) {
    if (!checked) return checked;
  }
  if (command.assume && !(*command.assume > command.safe && *command.assume <= 1)) {
    return Error{ErrorCode::kUsage,
                 fmt::format("--assume = {}: must be above --safe = {} and at most 1",
                             *command.assume, command.safe)};
  }
  const Result<Answer> alone = FindAnswer(command, command.confidence);
  if (!alone) return alone.error();
  const Result<Answer> joint = FindAnswer(command, JointConfidence(command.confidence));
  if (!joint) return joint.error();

  if (command.json) {
    std::string question =
        fmt::format("\"safe\":{},\"confidence\":{}", command.safe, command.confidence);
    if (command.assume) {
      question += fmt::format(",\"assume\":{},\"target_power\":{}", *command.assume, command.power);
    }
    Print("{{{},\"alone\":{},\"certificate\":{}}}\n", question, AnswerJson(*alone),
          AnswerJson(*joint));
    return {};
  }
  const std::string assumed =
      command.assume ? fmt::format(", if it is truly {}", *command.assume) : "";
  Print(
      "safe arrival >= {} with {:.6g} % confidence{}\n"
      "by itself:\n{}"
      "in a certificate, which bounds the cost too:\n{}",
      command.safe, 100 * command.confidence, assumed, AnswerText(*alone), AnswerText(*joint));
  return {};
}

}  // namespace fedgen
