// SPDX-License-Identifier: Apache-2.0
#include "fedgen/fuse/cloud.h"

namespace fedgen {
namespace {

Error NotAllHere() {
  return {ErrorCode::kUsage, "a local exchange waits for learners that live elsewhere"};
}

}  // namespace

Result<std::vector<Welcome>> LocalExchange::Join(std::span<const JoinMessage> messages) {
  for (const JoinMessage& message : messages) FEDGEN_TRY(cloud_.Receive(message));
  std::vector<Welcome> welcomes;
  for (const JoinMessage& message : messages) {
    const std::optional<Welcome> welcome = cloud_.WelcomeOf(message.learner);
    if (!welcome) return NotAllHere();
    welcomes.push_back(*welcome);
  }
  return welcomes;
}

Result<RoundAnswer> LocalExchange::Submit(std::span<const RoundMessage> messages) {
  for (const RoundMessage& message : messages) FEDGEN_TRY(cloud_.Receive(message));
  std::optional<RoundAnswer> answer =
      cloud_.AnswerTo(messages.front().learner, messages.front().round);
  if (!answer) return NotAllHere();
  return *std::move(answer);
}

Result<Ending> LocalExchange::Close(std::span<const CloseMessage> messages) {
  for (const CloseMessage& message : messages) FEDGEN_TRY(cloud_.Receive(message));
  const std::optional<Ending> ending =
      cloud_.EndingAfter(messages.front().learner, messages.front().round);
  if (!ending) return NotAllHere();
  return *ending;
}

Result<Finalists> LocalExchange::Finish(std::span<const FinalMessage> messages) {
  for (const FinalMessage& message : messages) FEDGEN_TRY(cloud_.Receive(message));
  std::optional<Finalists> finalists = cloud_.FindFinalists();
  if (!finalists) return NotAllHere();
  return *std::move(finalists);
}

Result<RaceAnswer> LocalExchange::Race(std::span<const RaceMessage> messages) {
  for (const RaceMessage& message : messages) FEDGEN_TRY(cloud_.Receive(message));
  std::optional<RaceAnswer> answer = cloud_.FindRaceAnswer();
  if (!answer) return NotAllHere();
  return *std::move(answer);
}

}  // namespace fedgen
